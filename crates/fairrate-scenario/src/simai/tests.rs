use fairrate_sim::FileError;

use super::{Choices, Workload, import};
use crate::ImportedJob;
use crate::{Overrides, Scenario};

const HEAD: &str = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 1 ga: 1 all_gpus: 8 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 0\n";
const LAYERS: &str = "3\n\
    grad_gather -1 1 NONE 0 1 NONE 0 1 ALLGATHER 800000 100\n\
    attention -1 5000 ALLGATHER 100000 9000 REDUCESCATTER 100000 1 NONE 0 100\n\
    moe -1 7000 ALLTOALL_EP 512 1 ALLTOALL_EP 60000 1 REDUCESCATTER_DP_EP 400000 100\n";

fn imported(text: &str, serial: bool) -> Result<ImportedJob, FileError> {
    import("w.txt", &Workload::parse(text)?, Choices { gpus_per_server: 4, serial })
}

/// Groups of 8 ranks with tensor groups of 2 and experts on 2: four tensor groups, and four copies of each place.
#[test]
fn a_workload_becomes_operations_of_all_ranks() {
    let imported = imported(&format!("{HEAD}{LAYERS}"), false).expect("it is read");
    let groups: Vec<&str> = imported.operations.lines().filter(|line| line.starts_with("group")).collect();
    assert_eq!(groups.len(), 4 + 2 + 4 + 4);
    // Two ranks of a server of four are in the same group; a data group has two of them.
    assert!(groups.contains(&"group,,,tp1,,,,,2,2;3"), "{groups:?}");
    assert!(groups.contains(&"group,,,dp1,,,,,2,1;3;5;7"));
    assert!(groups.contains(&"group,,,ep3,,,,,2,5;7"));
    assert!(groups.contains(&"group,,,edp2,,,,,1,2;6"));
    let of_rank: Vec<&str> = imported.operations.lines().filter(|line| line.split(',').nth(1) == Some("5")).collect();
    let want = [
        "compute,5,1,attention forward,,5000,,,,",
        "all-gather,5,2,attention,1,,tp2,100000,,",
        "compute,5,3,moe forward,2,7000,,,,",
        "all-to-all,5,4,moe,3,,ep3,4096,,",
        "all-to-all,5,5,moe,4,,ep3,60000,,",
        "reduce-scatter,5,6,moe,5,,edp1,400000,,",
        "compute,5,7,attention backward,5,9000,,,,",
        "reduce-scatter,5,8,attention,7,,tp2,100000,,",
        "all-gather,5,9,grad_gather,8,,dp1,800000,,",
    ];
    assert_eq!(of_rank, want);
    let said = imported.content.join("; ");
    assert!(said.contains("edp: 4 groups of 2 ranks, each with 1 operations of 400000 bytes in all"), "{said}");
    let files = [("operations.csv", imported.operations.as_str())];
    let scenario = Scenario::from_texts(&imported.scenario, "s.toml", &files, &Overrides::default()).expect("it runs");
    assert_eq!(scenario.sim_config().jobs[0].ranks.len(), 8);
}

/// Without overlap, the next operation waits for the reduction of gradients.
#[test]
fn serial_reductions_block() {
    let imported = imported(&format!("{HEAD}{LAYERS}"), true).expect("it is read");
    assert!(imported.operations.contains("compute,5,7,attention backward,6,9000,,,,"), "{}", imported.operations);
}

#[test]
fn errors_name_line_and_field() {
    let line = |line: &str| format!("{HEAD}1\n{line}\n");
    let cases = [
        (String::new(), "line 1: the file is empty"),
        ("DLRM\n1\n".to_owned(), "line 1: `DLRM` is no kind of workload that is read"),
        ("MICRO\n1\n".to_owned(), "line 1: there is no `all_gpus`"),
        (
            HEAD.replace("pp: 1", "pp: 2"),
            "line 1: stages of a pipeline are not in this format: SimAI adds their messages by a formula",
        ),
        (HEAD.replace("all_gpus: 8", "all_gpus: x"), "line 1: `x` is not `all_gpus`"),
        (
            HEAD.replace("all_gpus: 8", "all_gpus: 7") + "0\n",
            "line 1: `all_gpus` 7 cannot be divided by `model_parallel_NPU_group` 2",
        ),
        (HEAD.replace("ep: 2", "ep: 8") + "0\n", "line 1: the number of tensor groups 4 cannot be divided by `ep` 8"),
        (HEAD.to_owned(), "line 2: the number of layers is missing"),
        (format!("{HEAD}2\n"), "line 2: 2 layers are announced, and there are 0"),
        (line("a -1 1 NONE"), "line 3: expected 12 fields, found 4"),
        (line("a -1 1 BROADCAST 9 1 NONE 0 1 NONE 0 1"), "line 3: unknown operation `BROADCAST`"),
        (line("a -1 1 ALLREDUCEALLTOALL 9 1 NONE 0 1 NONE 0 1"), "line 3: unknown operation `ALLREDUCEALLTOALL`"),
        (line("a -1 1 NONE x 1 NONE 0 1 NONE 0 1"), "line 3: `x` is not a size in bytes"),
        (line("a -1 -3 NONE 0 1 NONE 0 1 NONE 0 1"), "line 3: `-3` is not a time in ns"),
    ];
    for (text, message) in cases {
        assert_eq!(imported(&text, false).expect_err(&text).to_string(), message);
    }
}
