//! Refusals of a page, from the attacker's side: other users of the machine, pages of other sites, and files that were
//! tampered with.

mod common;

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use common::{INCAST, Served, begun, fresh, run};
use parquet::data_type::BoolType;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

#[test]
fn only_the_loopback_is_served() {
    let served = Served::new(&[run("loopback", INCAST)], None).expect("it is served");
    assert!(served.at.ip().is_loopback());
}

#[test]
fn what_lacks_the_token_the_host_or_the_origin_is_refused_with_nothing() {
    let served = Served::new(&[run("refused", INCAST)], None).expect("it is served");
    let host = served.host();
    let page = served.path.as_str();
    let port = served.at.port();
    let wrong_token = format!("/{}/", "0".repeat(page.len() - 2));
    // The last digit of the token is another one.
    let (most, last) = page[..page.len() - 1].split_at(page.len() - 2);
    let almost = format!("{most}{}/", if last == "0" { "1" } else { "0" });
    assert_eq!(served.ask("GET", page, &[&host]).0, 200);
    assert_eq!(served.ask("GET", page, &[&format!("Host: localhost:{port}")]).0, 200);
    let mut refused = Vec::new();
    let paths = ["/", "/main.js", "/api/runs", "//api/runs", &wrong_token, &format!("{wrong_token}api/runs"), &almost];
    refused.extend(paths.map(|path| served.ask("GET", path, &[&host])));
    let upper = page.to_uppercase();
    refused.push(served.ask("GET", &upper, &[&host]));
    for host in
        [&format!("Host: evil.example:{port}"), "Host: 127.0.0.1", "Host: ", "Host: 127.0.0.1.evil.example", "X: y"]
    {
        refused.push(served.ask("GET", page, &[host]));
    }
    refused.push(served.ask("GET", page, &[&host, "Host: evil.example"]));
    for origin in ["Origin: http://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site"] {
        refused.push(served.ask("GET", page, &[&host, origin]));
    }
    let stop = format!("{page}api/stop");
    refused.push(served.ask("POST", &stop, &[&host]));
    refused.push(served.ask("POST", &stop, &[&host, "Origin: http://evil.example"]));
    for (i, (code, _, body)) in refused.iter().enumerate() {
        assert!([400, 403].contains(code) && body.is_empty(), "{i}: {code}, {} bytes", body.len());
    }
}

#[test]
fn no_path_leads_to_a_file() {
    let served = Served::new(&[run("paths", INCAST)], None).expect("it is served");
    for path in [
        "../../../../etc/passwd",
        "..%2f..%2f..%2f..%2fetc%2fpasswd",
        "%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "scenario.toml",
        "summary.json",
        "ports.parquet",
        "api/runs/0/scenario.toml",
        "api/runs/../../scenario.toml",
        "api/runs/0/network/../../../summary.json",
        "src/main.rs",
        "page/main.js",
    ] {
        let (code, _, body) = served.get(path);
        assert!(code == 404 && body.is_empty(), "{path}: {code}");
    }
}

#[test]
fn numbers_out_of_range_are_errors_and_no_panics() {
    let served = Served::new(&[run("numbers", INCAST)], None).expect("it is served");
    let max = u64::MAX;
    for (path, wanted) in [
        ("api/runs/1/network".to_owned(), 404),
        (format!("api/runs/{max}0/network"), 400),
        ("api/runs/-1/network".to_owned(), 400),
        ("api/runs/0/ports/6".to_owned(), 404),
        (format!("api/runs/0/ports/{max}"), 404),
        ("api/runs/0/flows/77".to_owned(), 404),
        ("api/runs/0/flows/x".to_owned(), 400),
        ("api/runs/0/flows".to_owned(), 400),
        ("api/runs/0/frames?quantity=colour&from=0&n=1".to_owned(), 400),
        ("api/runs/0/frames?quantity=queue&from=0".to_owned(), 400),
        (format!("api/runs/0/frames?quantity=queue&from={max}&n={max}"), 200),
        (format!("api/runs/0/frames?quantity=queue&from=0&n={max}"), 200),
    ] {
        assert_eq!(served.get(&path).0, wanted, "{path}");
    }
    let long = "x".repeat(1 << 20);
    let (code, _, _) = served.ask("GET", &served.path, &[&served.host(), &format!("X-Long: {long}")]);
    assert!(code == 431 || code == 0, "{code}");
    assert_eq!(served.get("").0, 200, "it goes on");
}

#[test]
fn every_answer_forbids_what_the_page_does_not_need() {
    let served = Served::new(&[run("headers", INCAST)], None).expect("it is served");
    let refused = served.ask("GET", "/", &[&served.host()]);
    for (code, head, _) in [served.get(""), served.get("main.js"), served.get("api/runs"), served.get("none"), refused]
    {
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self';",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cache-control: no-store",
            "x-frame-options: deny",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(head.contains(header), "{code}: {header}");
        }
        assert!(!head.contains("access-control"));
    }
}

#[test]
fn only_a_run_that_may_be_stopped_is_stopped_and_only_by_the_page() {
    let dir = run("stop", INCAST);
    let without = Served::new(std::slice::from_ref(&dir), None).expect("it is served");
    let origin = |served: &Served| format!("Origin: http://{}", served.at);
    let stop = |served: &Served, origin: &str| {
        served.ask("POST", &format!("{}api/stop", served.path), &[&served.host(), origin, "Content-Length: 0"]).0
    };
    assert_eq!(stop(&without, &origin(&without)), 409);
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    let count_one = move || {
        counted.fetch_add(1, Ordering::SeqCst);
    };
    let with = Served::new(&[dir], Some(Box::new(count_one))).expect("it is served");
    assert_eq!(stop(&with, "Origin: http://evil.example"), 403);
    assert_eq!(with.get("api/stop").0, 405);
    assert_eq!(count.load(Ordering::SeqCst), 0);
    assert_eq!(stop(&with, &origin(&with)), 204);
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

/// Returns the message for the directory of a run after `spoil` did something to it.
fn message(name: &str, spoil: impl FnOnce(&std::path::Path)) -> String {
    let dir = run(name, INCAST);
    spoil(&dir);
    Served::new(&[dir], None).err().expect("it is refused").to_string()
}

#[test]
fn damaged_and_hostile_directories_are_refused_with_the_reason() {
    let has = |message: String, words: &str| assert!(message.contains(words), "{message}");
    let write = |dir: &std::path::Path, name: &str, text: &[u8]| fs::write(dir.join(name), text).expect("a file");
    has(message("no_summary", |dir| fs::remove_file(dir.join("summary.json")).expect("it goes")), "holds no results");
    has(message("bad_summary", |dir| write(dir, "summary.json", b"{")), "summary.json`");
    has(message("bad_ports", |dir| write(dir, "ports.parquet", b"PAR1 and nothing")), "is damaged");
    has(message("no_flows", |dir| fs::remove_file(dir.join("flows.parquet")).expect("it goes")), "flows.parquet`");
    has(message("no_scenario", |dir| fs::remove_file(dir.join("scenario.toml")).expect("it goes")), "scenario.toml`");
    has(message("bad_scenario", |dir| write(dir, "scenario.toml", b"[topology")), "scenario.toml`");
    has(message("no_topology", |dir| write(dir, "scenario.toml", b"a = 1")), "no [topology]");
    let elsewhere = b"[topology]\nkind = 'file'\npath = '../../../../../../../../etc/passwd'\n";
    has(message("elsewhere", |dir| write(dir, "scenario.toml", elsewhere)), "is no file of that directory");
    let absolute = b"[topology]\nkind = 'file'\npath = '/etc/passwd'\n";
    has(message("absolute", |dir| write(dir, "scenario.toml", absolute)), "is no file of that directory");
    let large = b"[topology]\nkind = 'star'\nhosts = 1000000000\n";
    has(message("large", |dir| write(dir, "scenario.toml", large)), "nodes");
    has(
        message("comparison", |dir| {
            fs::remove_file(dir.join("summary.json")).expect("it goes");
            write(dir, "compare.json", b"{}");
        }),
        "is a comparison",
    );
    let nothing = fresh("nothing");
    has(Served::new(&[nothing], None).err().expect("it is refused").to_string(), "holds no results");
}

#[cfg(unix)]
#[test]
fn links_out_of_the_directory_are_not_followed() {
    for name in ["summary.json", "scenario.toml", "ports.parquet", "flows.parquet", "rates.parquet"] {
        let told = message(&format!("link_{name}"), |dir| {
            let outside = fresh(&format!("outside_{name}")).join("file");
            fs::rename(dir.join(name), &outside).expect("it moves");
            std::os::unix::fs::symlink(&outside, dir.join(name)).expect("a link");
        });
        assert!(told.contains("no plain file"), "{name}: {told}");
    }
}

#[test]
fn messages_do_not_act_on_the_terminal() {
    let dir = run("escape", INCAST);
    let hostile = "[topology]\nkind = 'file'\npath = \"/\\u001b]0;owned\\u0007\"\n";
    fs::write(dir.join("scenario.toml"), hostile).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_fairrate-watch")).arg(&dir).output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.contains("owned") && !said.contains('\u{1b}') && !said.contains('\u{7}'), "{said:?}");
}

/// A file of a few kilobytes can state millions of equal rows; read at once they would take all memory.
#[test]
fn tables_with_too_many_rows_at_once_are_refused() {
    let dir = begun("bomb");
    assert!(Served::new(std::slice::from_ref(&dir), None).is_ok(), "without rows it is shown");
    let schema = parse_message_type("message ports { required boolean pause; }").expect("it is right");
    let file = fs::File::create(dir.join("ports.parquet")).expect("a file");
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::default()).expect("a writer");
    let mut group = writer.next_row_group().expect("a group");
    let mut column = group.next_column().expect("no error").expect("a column");
    column.typed::<BoolType>().write_batch(&vec![true; (1 << 20) + 1], None, None).expect("it is written");
    column.close().and_then(|()| group.close()).and_then(|_| writer.close()).expect("it is written");
    let told = Served::new(&[dir], None).err().expect("it is refused").to_string();
    assert!(told.contains("1048577 rows in a group"), "{told}");
}

/// A library named as the algorithm, and lists named by traffic, are neither loaded nor read: the network alone is.
#[test]
fn the_rest_of_a_scenario_is_not_read() {
    let dir = run("rest", INCAST);
    let hostile = "duration = '1ms'\n[topology]\nkind = 'star'\nhosts = 3\nrate = '10Gbps'\n[transport]\ncc = './evil.so'\n\
                   [[traffic]]\nkind = 'list'\npath = '/etc/passwd'\n";
    fs::write(dir.join("scenario.toml"), hostile).expect("a file");
    assert_eq!(Served::new(&[dir], None).expect("it is served").json("api/runs/0/network")["kind"], "star");
}
