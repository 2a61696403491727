//! Traces are written here byte by byte, apart from the reader: a field is `number << 3 | wire type`, then its value.

use std::collections::HashMap;
use std::io::{Cursor, Read, Write as _};

use super::*;
use crate::{Overrides, Scenario};

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while 0x80 <= number {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// A field with a number.
fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

/// A field with bytes.
fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

fn record(message: &[u8]) -> Vec<u8> {
    [varint(message.len() as u64), message.to_vec()].concat()
}

/// An attribute: its name and its value as a field of the message.
fn attribute(name: &str, value: &[u8]) -> Vec<u8> {
    bytes(10, &[bytes(1, name.as_bytes()), value.to_vec()].concat())
}

/// An attribute that is an int64, as writers of today have.
fn int64(name: &str, value: u64) -> Vec<u8> {
    attribute(name, &number(9, value))
}

fn is_gpu() -> Vec<u8> {
    attribute("is_cpu_op", &number(27, 0))
}

/// A node: id, name, type, the nodes it waits for, and more fields.
fn node(id: u64, kind: u64, deps: &[u64], more: &[Vec<u8>]) -> Vec<u8> {
    let packed: Vec<u8> = deps.iter().flat_map(|id| varint(*id)).collect();
    let deps = if deps.is_empty() { Vec::new() } else { bytes(5, &packed) };
    record(&[number(1, id), bytes(2, format!("n{id}").as_bytes()), number(3, kind), deps, more.concat()].concat())
}

fn metadata() -> Vec<u8> {
    record(&bytes(1, b"0.0.4"))
}

fn trace(nodes: &[Vec<u8>]) -> Vec<u8> {
    [metadata(), nodes.concat()].concat()
}

fn imported_with(traces: &[Vec<u8>], choices: &Choices) -> Result<ImportedJob, Error> {
    let source = |(rank, trace): (usize, &Vec<u8>)| {
        let trace = trace.clone();
        let open = move || Ok(Box::new(Cursor::new(trace.clone())) as Box<dyn Read>);
        Source { name: format!("job.{rank}.et"), open: Box::new(open) }
    };
    let sources: Vec<Source<'_>> = traces.iter().enumerate().map(source).collect();
    import("job", &sources, choices)
}

fn imported(traces: &[Vec<u8>]) -> Result<ImportedJob, Error> {
    imported_with(traces, &Choices::default())
}

fn collective(id: u64, kind: u64, size: u64, deps: &[u64]) -> Vec<u8> {
    node(id, 7, deps, &[is_gpu(), int64("comm_type", kind), int64("comm_size", size)])
}

fn compute(id: u64, us: u64, deps: &[u64]) -> Vec<u8> {
    node(id, 4, deps, &[number(7, us)])
}

/// Two ranks that compute for 5 us, reduce 1,000 bytes, gather 100 bytes each and send a message.
fn job() -> [Vec<u8>; 2] {
    let start = |rank: u64| {
        vec![compute(3, 5, &[]), collective(4, 0, 1_000, &[3]), collective(5, 2, 100, &[4]), compute(9, rank, &[5])]
    };
    let size = int64("comm_size", 64);
    let send =
        node(10, 5, &[9], &[attribute("comm_dst", &number(7, 1)), attribute("comm_tag", &number(15, 3)), size.clone()]);
    let receive = node(
        11,
        6,
        &[9],
        &[attribute("comm_src", &number(13, 0)), attribute("comm_tag", &number(7, (-2_i64) as u64)), size],
    );
    [trace(&[start(0), vec![send]].concat()), trace(&[start(1), vec![receive]].concat())]
}

fn lines(imported: &ImportedJob) -> Vec<&str> {
    imported.operations.lines().collect()
}

#[test]
fn traces_become_operations_and_run() {
    let imported = imported(&job()).expect("it is read");
    let want = [
        "kind,rank,id,name,after,duration_ns,group,bytes,peer,channels,ranks",
        "group,,,all,,,,,,,0;1",
        "compute,0,3,n3,,5000,,,,,",
        "all-reduce,0,4,n4,3,,all,1000,,,",
        "all-gather,0,5,n5,4,,all,200,,,",
        "compute,0,9,n9,5,1,,,,,",
        "compute,1,3,n3,,5000,,,,,",
        "all-reduce,1,4,n4,3,,all,1000,,,",
        "all-gather,1,5,n5,4,,all,200,,,",
        "compute,1,9,n9,5,1000,,,,,",
        // The tag of a sint32 of 3 is -2, which is the int32 at the other end.
        "send,0,10,n10,9,,,64,1,,",
        "receive,1,11,n11,9,,,64,0,,",
    ];
    assert_eq!(lines(&imported), want);
    let said = imported.content.join("; ");
    for want in [
        "2 ranks",
        "all, 2 ranks: 1 all-gather of 200 bytes in all",
        "messages: 1, of 64 bytes",
        "1 computations without time",
    ] {
        assert!(said.contains(want), "{want} in {said}");
    }
    let files = [("operations.csv", imported.operations.as_str())];
    let scenario = Scenario::from_texts(&imported.scenario, "s.toml", &files, &Overrides::default()).expect("it runs");
    assert_eq!(scenario.sim_config().jobs[0].ranks.len(), 2);
}

#[test]
fn a_compressed_trace_is_the_same() {
    let compressed = job().map(|trace| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&trace).expect("it is in memory");
        encoder.finish().expect("it is in memory")
    });
    assert_eq!(imported(&compressed), imported(&job()));
    // A file that is cut is an error wherever it is cut, not a shorter trace.
    for length in 12..compressed[0].len() {
        let error = imported(&[compressed[0][..length].to_vec(), compressed[1].clone()]).expect_err("it ends early");
        assert!(
            error.to_string().starts_with("`job.0.et`") && !error.message.contains("no nodes"),
            "{length}: {error}"
        );
    }
}

/// Each of the twelve whole kinds is read as the same number: 1,000 bytes.
#[test]
fn numbers_are_read_in_every_whole_kind() {
    let fixed32 = |field: u64| [varint(field << 3 | 5), 1_000_u32.to_le_bytes().to_vec()].concat();
    let fixed64 = |field: u64| [varint(field << 3 | 1), 1_000_u64.to_le_bytes().to_vec()].concat();
    let mut kinds: Vec<Vec<u8>> = [7, 9, 11, 13].map(|field| number(field, 1_000)).into();
    // Zigzag: 1,000 is 2,000 on the wire.
    kinds.extend([15, 17].map(|field| number(field, 2_000)));
    kinds.extend([19, 23].map(fixed32));
    kinds.extend([21, 25].map(fixed64));
    for value in kinds {
        let node = node(1, 7, &[], &[int64("comm_type", 0), attribute("comm_size", &value)]);
        let imported = imported(&[trace(std::slice::from_ref(&node)), trace(&[node])]).expect("it is read");
        assert!(imported.operations.contains("all-reduce,0,1,n1,,,all,1000,,,"), "{}", imported.operations);
    }
}

/// Checks that each first trace of a job of two is refused, with the name of its file and this message.
fn check_errors(cases: impl IntoIterator<Item = (Vec<u8>, &'static str)>) {
    let other = trace(&[compute(1, 1, &[])]);
    for (first, message) in cases {
        let error = imported(&[first, other.clone()]).expect_err(message).to_string();
        assert!(error.starts_with("`job.0.et`") && error.contains(message), "{error}, not {message}");
    }
}

#[test]
fn errors_name_the_fields_of_collectives() {
    let comm = |more: &[Vec<u8>]| trace(&[node(7, 7, &[], more)]);
    let (kind, size) = (int64("comm_type", 0), int64("comm_size", 8));
    check_errors([
        (comm(std::slice::from_ref(&kind)), "node 7, `comm_size`: it is missing"),
        (comm(std::slice::from_ref(&size)), "node 7, `comm_type`: it is missing"),
        (comm(&[int64("comm_type", 9), size.clone()]), "node 7, `comm_type`: barrier is not simulated"),
        (comm(&[int64("comm_type", 10), size.clone()]), "node 7, `comm_type`: 10 is no collective operation"),
        (
            comm(&[kind.clone(), size.clone(), attribute("is_cpu_op", &number(27, 1))]),
            "node 7, `is_cpu_op`: communication is not of the CPU",
        ),
        (
            comm(&[kind.clone(), size.clone(), attribute("pg_name", &bytes(29, b"5"))]),
            "node 7, `pg_name`: there is no group `5`",
        ),
        (
            comm(&[kind.clone(), size.clone(), attribute("involved_dim", &bytes(28, &bytes(1, &[1, 0])))]),
            "node 7, `involved_dim`: it leaves out dimensions, and the trace does not say how large they are",
        ),
        (comm(&[kind, size]), "node 7: rank 1 of group `all` has no part in this"),
    ]);
}

#[test]
fn errors_say_why_a_value_is_no_size() {
    let comm = |more: &[Vec<u8>]| trace(&[node(7, 7, &[], &[&[int64("comm_type", 0)], more].concat())]);
    let size = int64("comm_size", 8);
    let double = [varint(3 << 3 | 1), 8.0_f64.to_le_bytes().to_vec()].concat();
    check_errors([
        (comm(&[int64("comm_size", 0)]), "node 7, `comm_size`: it is zero"),
        (
            comm(&[attribute("comm_size", &bytes(29, b"8"))]),
            "node 7, `comm_size`: expected a whole number, found a text",
        ),
        (
            comm(&[attribute("comm_size", &double)]),
            "node 7, `comm_size`: expected a whole number, found a number with a fraction",
        ),
        (
            comm(&[attribute("comm_size", &bytes(9, b"8"))]),
            "node 7, `comm_size`: field 9 of the value has bytes, which is not its kind",
        ),
        (comm(&[attribute("comm_size", &[])]), "node 7, `comm_size`: it has no value"),
        (comm(&[int64("comm_size", u64::MAX)]), "node 7, `comm_size`: -1 is not from 0 to 1000000000000000"),
        (comm(&[size.clone(), size]), "node 7, `comm_size`: it is there twice"),
    ]);
}

#[test]
fn errors_name_nodes_without_type_or_time_and_circles() {
    check_errors([
        (trace(&[node(7, 0, &[], &[])]), "node 7, `type`: the node has no type"),
        (trace(&[record(&number(1, 7))]), "node 7, `type`: the node has no type"),
        (trace(&[node(7, 8, &[], &[])]), "node 7, `type`: 8 is no type of nodes: they are 1 to 7"),
        (trace(&[record(&[number(1, 7), bytes(3, b"x")].concat())]), "node 7, `type`: bytes of another kind"),
        (trace(&[compute(7, 1, &[99])]), "node 7, `data_deps`: there is no node 99"),
        (
            trace(&[compute(7, 1, &[8]), compute(8, 1, &[7])]),
            "node 7, `data_deps`: nodes wait for each other in a circle: 7, 8",
        ),
        (trace(&[compute(7, 1, &[7])]), "node 7, `data_deps`: nodes wait for each other in a circle: 7"),
        (trace(&[compute(7, 1, &[]), compute(7, 1, &[])]), "node 7, `id`: another node has this id already"),
        (trace(&[node(7, 2, &[], &[])]), "node 7, `duration_micros`: an access to memory has no time"),
        (
            trace(&[node(7, 4, &[], &[int64("num_ops", 9)])]),
            "node 7, `duration_micros`: the node has 9 operations and no time",
        ),
    ]);
}

#[test]
fn errors_name_the_fields_of_messages() {
    let size = int64("comm_size", 8);
    check_errors([
        (trace(&[node(7, 5, &[], std::slice::from_ref(&size))]), "node 7, `comm_dst`: it is missing"),
        (trace(&[node(7, 6, &[], &[size.clone(), int64("comm_src", 2)])]), "node 7, `comm_src`: 2 is not from 0 to 1"),
        (
            trace(&[node(7, 5, &[], &[size, int64("comm_dst", 1)])]),
            "node 7, `comm_tag`: the message from rank 0 to rank 1 with tag 0 is not received",
        ),
    ]);
}

#[test]
fn errors_name_records_that_are_no_trace() {
    check_errors([
        (Vec::new(), ": the trace has no nodes"),
        (record(&bytes(1, b"0.0.1")), "record 1, `version`: `0.0.1` is no version that is read: 0.0.4 is"),
        (record(&number(1, 4)), "record 1, `version`: the first record is no metadata of a trace"),
        (
            [metadata(), vec![0xff, 0xff, 0xff, 0xff, 0x0f]].concat(),
            "record 2: a length of 4294967295 bytes is too much",
        ),
        (
            [metadata(), vec![0xff, 0xff, 0xff, 0xff, 0xff]].concat(),
            "record 2: the length of a record has more than 32 bits",
        ),
        ([metadata(), vec![100, 8]].concat(), "record 2: the file ends within the record: 1 of 100 bytes are there"),
        (trace(&[record(&[0x0b])]), "record 2: field 1 has the wire type 3, which these messages do not use"),
        (trace(&[record(&[0x12, 0x70])]), "record 2: field 2 has 112 bytes, and 0 are left"),
    ]);
}

#[test]
fn ranks_that_do_not_agree_are_named() {
    let one = |size: u64| trace(&[collective(3, 0, size, &[])]);
    let error = imported(&[one(8), one(9)]).expect_err("they disagree").to_string();
    let want = "`job.1.et`, node 3: rank 1 does all-reduce of 9 B as operation 0 of group `all`, and node 3 of `job.0.et` all-reduce of 8 B";
    assert_eq!(error, want);
    let message = |kind: u64, peer: &str, rank: u64, size: u64| {
        trace(&[node(5, kind, &[], &[int64(peer, rank), int64("comm_size", size)])])
    };
    let error = imported(&[message(5, "comm_dst", 1, 8), message(6, "comm_src", 0, 9)]).expect_err("they disagree");
    assert_eq!(error.to_string(), "`job.0.et`, node 5, `comm_size`: 8 bytes, and node 5 at the other end has 9");
}

/// Messages match by their tags: the second one that is sent is the first that is received.
#[test]
fn tags_decide_which_messages_match() {
    let end = |id: u64, kind: u64, peer: (&str, u64), tag: u64, size: u64| {
        node(id, kind, &[], &[int64(peer.0, peer.1), int64("comm_tag", tag), int64("comm_size", size)])
    };
    let sender = trace(&[end(1, 5, ("comm_dst", 1), 20, 200), end(2, 5, ("comm_dst", 1), 10, 100)]);
    let receiver = trace(&[end(1, 6, ("comm_src", 0), 10, 100), end(2, 6, ("comm_src", 0), 20, 200)]);
    let imported = imported(&[sender, receiver]).expect("they match");
    let want =
        ["send,0,2,n2,,,,100,1,,", "receive,1,1,n1,,,,100,0,,", "send,0,1,n1,,,,200,1,,", "receive,1,2,n2,,,,200,0,,"];
    assert_eq!(lines(&imported)[1..], want);
}

#[test]
fn groups_come_from_files_metadata_and_dimensions() {
    let in_group = |field: Vec<u8>| node(4, 7, &[], &[int64("comm_type", 7), int64("comm_size", 80), field]);
    let pg = attribute("pg_name", &bytes(29, b"1"));
    let idle = trace(&[compute(1, 1, &[])]);
    let both = || trace(&[in_group(pg.clone())]);
    let traces = [idle.clone(), both(), idle.clone(), both()];
    let choices = Choices { groups: read_groups("{\"1\": [3, 1]}", 4).expect("it is read"), ..Choices::default() };
    let by_file = imported_with(&traces, &choices).expect("it is read");
    assert!(by_file.operations.contains("group,,,pg1,,,,,,,3;1\n"), "{}", by_file.operations);
    // Metadata has the groups in a list in quotes.
    let inputs = |text: &str| bytes(8, &bytes(1, format!("['{text}']").as_bytes()));
    let with_groups = |text: &str| {
        let traces = [idle.clone(), both(), idle.clone(), both()];
        let metadata = node(9, 1, &[], &[inputs(text)]);
        imported(&traces.map(|trace| [trace, metadata.clone()].concat()))
    };
    let found = with_groups("[{\"pg_name\": \"1\", \"ranks\": [3, 1]}]").expect("it is read");
    assert!(found.operations.contains("reduce-scatter,3,4,n4,,,pg1,80,,,\n"), "{}", found.operations);
    for (text, message) in [
        (
            "[{\"pg_name\": \"1\", \"ranks\": [0, 1, 2, 3, 4]}]",
            "`inputs.values`: group `1` has 5 ranks, and there are 4",
        ),
        ("[{\"pg_name\": \"1\", \"ranks\": [4]}]", "`inputs.values`: group `1` has 4, which is none of the 4 ranks"),
        ("[{\"pg_name\": \"1\"]", "`inputs.values`: the groups are no JSON"),
        ("[{\"pg_name\": \"1\", \"ranks\": [0, 2]}]", "`pg_name`: rank 1 is not in group `1`"),
    ] {
        let error = with_groups(text).expect_err(message).to_string();
        assert!(error.contains(message), "{error}");
    }
    // Two dimensions of two ranks: 0 and 1 differ in the first one alone, 0 and 2 in the second.
    let second = attribute("involved_dim", &bytes(28, &bytes(1, &[0, 1])));
    let choices = Choices { logical_dims: vec![2, 2], ..Choices::default() };
    let all = [(); 4].map(|()| trace(&[in_group(second.clone())]));
    let by_dimension = imported_with(&all, &choices).expect("it is read");
    assert!(
        by_dimension.operations.contains("group,,,dim1 of 0,,,,,,,0;2\ngroup,,,dim1 of 1,,,,,,,1;3\n"),
        "{}",
        by_dimension.operations
    );
    let choices = Choices { logical_dims: vec![2, 3], ..Choices::default() };
    let error = imported_with(&all, &choices).expect_err("they are six").to_string();
    assert_eq!(error, "`job`: logical dimensions of 6 ranks, and there are 4");
}

/// 4,000,000 operations at 2 Tflops take 2 us; 6,000 bytes at 1 GB/s take 6 us.
#[test]
fn operations_become_time() {
    let traces = [trace(&[node(1, 4, &[], &[int64("num_ops", 4_000_000), int64("tensor_size", 6_000)])])];
    let ns = |choices: &Choices| imported_with(&traces, choices).expect("it is read").operations;
    let fast = Choices { tflops: Some(2.0), ..Choices::default() };
    assert!(ns(&fast).contains("compute,0,1,n1,,2000,"));
    assert!(ns(&Choices { memory_gbytes_per_s: Some(1.0), ..fast }).contains("compute,0,1,n1,,6000,"));
}

#[test]
fn groups_of_files_are_checked() {
    let error = |text: &str| read_groups(text, 4).expect_err(text);
    assert_eq!(error("{\"a\": [0, 9]}"), "group `a` has 9, which is none of the 4 ranks");
    assert_eq!(error("{\"a\": [0, 0]}"), "group `a` has rank 0 twice");
    assert_eq!(error("[]"), "expected groups by name, as {\"1\": [0, 1]}");
    assert_eq!(read_groups("{\"a\": []}", 2), Ok(HashMap::from([("a".to_owned(), vec![0, 1])])));
}

/// The memory of a node does not grow with the length of its name.
#[test]
fn long_names_are_cut_and_long_texts_refused() {
    let long = vec![b'a'; 100_000];
    let named = record(&[number(1, 1), bytes(2, &long), number(3, 4), number(7, 1)].concat());
    let imported = imported(&[trace(&[named])]).expect("it is read");
    assert!(imported.operations.len() < 1_000, "{}", imported.operations.len());
    let group = attribute("pg_name", &bytes(29, &long));
    let node = node(7, 7, &[], &[int64("comm_type", 0), int64("comm_size", 8), group]);
    let error = super::tests::imported(&[trace(&[node])]).expect_err("it is no name").to_string();
    assert_eq!(error, "`job.0.et`, node 7, `pg_name`: expected a text, found one that is too long");
}

/// A gzip bomb: a gigabyte of zeros in a megabyte, which are records of length zero, is refused at the first of them.
#[test]
fn a_bomb_is_refused_at_its_first_record() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&metadata()).expect("it is in memory");
    let zeros = vec![0; 1 << 20];
    (0..64).for_each(|_| encoder.write_all(&zeros).expect("it is in memory"));
    let error = imported(&[encoder.finish().expect("it is in memory")]).expect_err("it is no trace").to_string();
    assert_eq!(error, "`job.0.et`, node 0, `type`: the node has no type");
}
