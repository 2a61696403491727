//! The answers of a page about a run.

mod common;

use common::{INCAST, Served, run};

/// Returns numbers of 32 bits.
fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

#[test]
fn a_run_is_told_as_it_was() {
    let served = Served::new(&[run("told", INCAST)], None).expect("it is served");
    let about = served.json("api/runs");
    assert_eq!(about["can_stop"], false);
    let of = &about["runs"][0];
    assert_eq!(
        (&of["cc"], &of["state"], &of["n_sampled"], &of["n_ports"]),
        (&"dctcp".into(), &"complete".into(), &6.into(), &6.into())
    );
    let network = served.json("api/runs/0/network");
    assert_eq!(network["nodes"], serde_json::json!(["h0", "h1", "h2", "sw0"]));
    assert_eq!(network["links"], serde_json::json!([[0, 3], [1, 3], [2, 3]]));
    assert_eq!(network["rows"][0]["name"], "hosts");
    assert_eq!(network["rows"][0]["slots"][0]["nodes"], serde_json::json!([0, 1, 2]));
    let times = served.json("api/runs/0/times");
    assert_eq!(times["times"].as_array().map(Vec::len), Some(11));
    assert_eq!(times["times"][10], 1_000_000);
    assert_eq!(times["sampled"], serde_json::json!([0, 1, 2, 3, 4, 5]));
    // Two senders at 10 Gb/s each into a port of 10 Gb/s, which is port 5, of link 2 from its second end.
    let all = floats(&served.get("api/runs/0/frames?quantity=utilisation&from=0&n=99").2);
    assert_eq!(all.len(), 11 * 6);
    assert_eq!(all[..6], [0.0; 6], "nothing was sent before the start");
    assert!((0.98..1.03).contains(&all[10 * 6 + 5]), "{}", all[10 * 6 + 5]);
    assert_eq!(floats(&served.get("api/runs/0/frames?quantity=utilisation&from=10&n=1").2), all[60..]);
    let queue = floats(&served.get("api/runs/0/frames?quantity=queue&from=1&n=1").2);
    assert!(0.0 < queue[5] && queue[4] == 0.0);
    assert!(queue[5] <= times["largest_queue"].as_f64().expect("a number") as f32);
    let paused = floats(&served.get("api/runs/0/frames?quantity=paused&from=5&n=1").2);
    assert!(paused.iter().all(|share| (0.0..=1.0).contains(share)));
}

#[test]
fn ports_and_flows_have_series() {
    let served = Served::new(&[run("series", INCAST)], None).expect("it is served");
    let port = served.json("api/runs/0/ports/5");
    assert_eq!((&port["name"], &port["rate_bps"]), (&"sw0->h2".into(), &10_000_000_000_u64.into()));
    assert_eq!((port["t_ns"].as_array().map(Vec::len), &port["utilisation"][0]), (Some(11), &0.0.into()));
    let active = served.json("api/runs/0/flows?t_ns=500000");
    assert_eq!(active["n"], 2, "the short flow is done");
    assert_eq!((&active["flows"][0]["src"], &active["flows"][0]["dst"]), (&0.into(), &2.into()));
    assert_eq!(served.json("api/runs/0/flows?t_ns=1000")["n"], 3);
    let sampled = served.json("api/runs/0/flows/0");
    assert!(3 < sampled["series"]["t_ns"].as_array().map_or(0, Vec::len));
    assert_eq!(sampled["flow"]["bytes"], serde_json::Value::Null, "it is endless");
    let short = served.json("api/runs/0/flows?t_ns=1000")["flows"]
        .as_array()
        .and_then(|flows| flows.iter().find(|flow| flow["bytes"] == 10_000).cloned())
        .expect("the short flow");
    let of_short = served.json(&format!("api/runs/0/flows/{}", short["id"]));
    assert_eq!(
        (&of_short["flow"], &of_short["series"]["t_ns"]),
        (&short, &serde_json::json!([])),
        "it was not sampled"
    );
}

#[test]
fn what_was_not_sampled_is_empty() {
    let scenario = INCAST.replace("*->*", "sw0->h2");
    let served = Served::new(&[run("few", &scenario)], None).expect("it is served");
    assert_eq!(served.json("api/runs/0/times")["sampled"], serde_json::json!([5]));
    assert_eq!(floats(&served.get("api/runs/0/frames?quantity=queue&from=0&n=11").2).len(), 11);
    assert_eq!(served.json("api/runs/0/ports/0")["t_ns"], serde_json::json!([]));
    let without = &INCAST[..INCAST.find("[[probe]]").expect("a probe")];
    let served = Served::new(&[run("none", without)], None).expect("it is served");
    assert_eq!(served.json("api/runs/0/times")["times"], serde_json::json!([]));
    assert!(served.get("api/runs/0/frames?quantity=queue&from=0&n=11").2.is_empty());
}

#[test]
fn two_runs_have_numbers_of_their_own() {
    let other = INCAST.replace("dctcp", "hpcc");
    let served = Served::new(&[run("a", INCAST), run("b", &other)], None).expect("it is served");
    let about = served.json("api/runs");
    assert_eq!((&about["runs"][0]["cc"], &about["runs"][1]["cc"]), (&"dctcp".into(), &"hpcc".into()));
    assert_ne!(served.json("api/runs/0/ports/5"), served.json("api/runs/1/ports/5"));
}

#[test]
fn all_files_of_the_page_are_there() {
    let served = Served::new(&[run("page", INCAST)], None).expect("it is served");
    let (code, head, body) = served.get("");
    let page = String::from_utf8(body).expect("text");
    assert!(code == 200 && head.contains("content-type: text/html"));
    let is_file = |text: &&str| ["js", "css", "txt"].iter().any(|end| text.split('.').nth(1) == Some(end));
    let named = page.split('"').filter(is_file);
    let mut files: Vec<String> = named.map(str::to_owned).collect();
    assert!(5 <= files.len(), "{files:?}");
    let mut seen = 0;
    while let Some(name) = files.get(seen).cloned() {
        let (code, head, body) = served.get(&name);
        assert!(code == 200 && !body.is_empty() && head.contains("content-type: text/"), "{name}");
        seen += 1;
        let text = String::from_utf8(body).expect("text");
        for module in
            text.lines().filter_map(|line| line.strip_prefix("import ")?.split("\"./").nth(1)?.split('"').next())
        {
            if !files.iter().any(|file| file == module) {
                files.push(module.to_owned());
            }
        }
    }
    assert!(10 <= files.len(), "{files:?}");
}
