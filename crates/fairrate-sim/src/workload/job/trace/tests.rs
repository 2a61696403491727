//! Lists of operations that are read, and those that are refused.

use std::fmt::Write;

use super::*;

const HEADER: &str = "kind,rank,id,name,after,duration_ns,group,bytes,peer,channels,ranks\n";

fn read(rows: &str) -> Result<Job, FileError> {
    parse_trace(&format!("{HEADER}{rows}"), TraceDefaults { channels: 1, chunks: 1 })
}

/// A list cannot ask for more memory than its lines are worth.
#[test]
fn operations_without_parts_are_refused_early() {
    let ranks: Vec<String> = (0..2_000).map(|rank| rank.to_string()).collect();
    let mut text = format!("kind,rank,id,group,bytes,name,ranks,duration_ns\ngroup,,,,,all,{},\n", ranks.join(";"));
    for rank in 0..2_000 {
        let _ = writeln!(text, "compute,{rank},0,,,,,5");
    }
    for id in 1..2_000 {
        let _ = writeln!(text, "all-reduce,0,{id},all,8,,,");
    }
    let error = parse_trace(&text, TraceDefaults { channels: 1, chunks: 1 }).expect_err("it is refused").to_string();
    assert!(error.contains("more parts than the list has lines"), "{error}");
}

#[test]
fn lines_become_operations() {
    let rows = "group,,,all,,,,,,2,0;1\n\
                compute,0,7,work,,500,,,,,\n\
                all-reduce,0,8,sum,7,,all,4000,,,\n\
                all-reduce,1,1,sum,,,all,4000,,,\n\
                send,0,9,,8,,,100,1,,\n\
                receive,1,2,,1,,,100,0,,\n";
    let job = read(rows).expect("a job");
    assert_eq!((job.n_ranks, job.groups.len(), job.operations.len(), job.parts.len()), (2, 1, 3, 5));
    assert_eq!(job.waits.len(), 3);
    assert!(matches!(&job.operations[1].work, Work::Collective { collective, .. } if collective.channels == 2));
}

/// In a ring each rank sends and then receives. The other way round each waits for the one before.
#[test]
fn a_sender_does_not_wait_for_its_receiver() {
    let ring = |kinds: [&str; 2]| {
        let mut rows = String::new();
        for rank in 0..3 {
            for (id, kind) in kinds.iter().enumerate() {
                let peer = (rank + if *kind == "send" { 1 } else { 2 }) % 3;
                let after = if id == 0 { "" } else { "0" };
                let _ = writeln!(rows, "{kind},{rank},{id},,{after},,,9,{peer},,");
            }
        }
        read(&rows)
    };
    assert_eq!(ring(["send", "receive"]).map(|job| job.operations.len()), Ok(3));
    let error = ring(["receive", "send"]).expect_err("a circle").to_string();
    assert!(error.ends_with("waits for operations that wait for it: a circle"), "{error}");
}

#[test]
fn errors_name_the_line() {
    let cases = [
        ("compute,0,1,,,,,,,,\n", "line 2: this `compute` has no `duration_ns`"),
        ("compute,0,1,,,soon,,,,,\n", "line 2: `soon` is no number for `duration_ns`"),
        ("scatter,0,1,,,,all,9,,,\n", "line 2: unknown kind `scatter`"),
        ("all-reduce,0,1,,,,all,9,,,\n", "line 2: there is no group `all`"),
        ("group,,,a,,,,,,,0;3\ncompute,0,1,,,5,,,,,\n", "line 2: `3` is none of the 1 ranks"),
        ("compute,0,1,,,5,,,,,\ncompute,0,1,,,5,,,,,\n", "line 3: rank 0 has an operation 1 already, in line 2"),
        ("compute,0,1,,4,5,,,,,\n", "line 2: operation 1 of rank 0 waits for `4`, which the rank lacks"),
        (
            "compute,0,1,a,2,5,,,,,\ncompute,0,2,b,1,5,,,,,\n",
            "line 2: `a` of rank 0 waits for operations that wait for it: a circle",
        ),
        (
            "group,,,all,,,,,,,0;1\nall-reduce,0,1,,,,all,9,,,\ncompute,1,1,,,5,,,,,\n",
            "line 3: rank 1 of group `all` has no part in this",
        ),
        (
            "group,,,all,,,,,,,0;1\nall-reduce,0,1,,,,all,9,,,\nall-reduce,1,1,,,,all,8,,,\n",
            "line 4: rank 1 does all-reduce of 8 B as operation 0 of group `all`, and line 3 all-reduce of 9 B",
        ),
        ("receive,0,1,,,,,9,1,,\ncompute,1,1,,,5,,,,,\n", "line 2: this message from rank 1 to rank 0 is not sent"),
        ("compute,4000000,1,,,5,,,,,\n", "line 2: `4000000` is no number for `rank`"),
        ("compute,7,1,,,5,,,,,\n", "line 2: the highest rank is 7, and there are 1 operations"),
        ("compute,0\n", "line 2: expected 11 fields, found 2"),
    ];
    for (rows, message) in cases {
        assert_eq!(read(rows).expect_err(rows).to_string(), message);
    }
    // Two ranks reach two groups in different orders.
    let rows = "group,,,a,,,,,,,0;1\ngroup,,,b,,,,,,,1;0\n\
                all-reduce,0,1,x,,,a,9,,,\nall-reduce,0,2,y,1,,b,9,,,\n\
                all-reduce,1,1,y,,,b,9,,,\nall-reduce,1,2,x,1,,a,9,,,\n";
    let error = read(rows).expect_err("a circle").to_string();
    assert!(error.ends_with("waits for operations that wait for it: a circle"), "{error}");
}
