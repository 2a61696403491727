//! A running allocator takes over a new configuration and states of links, and loses no agent.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::program::{ANY_PORT, Program, file, program, stderr};
use crate::common::{ALONE_BPS, INSECURE, client, host, is_near, keys_in, secure, until};
use fairrate_daemon::{Client, ClientOptions, Security};

/// A program with a socket for commands, and its file.
struct Changing {
    server: Program,
    name: String,
    text: String,
    control: PathBuf,
}

impl Changing {
    fn start(name: &str, text: &str) -> Self {
        let control = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.socket"));
        let listen = format!("{ANY_PORT}\ncontrol = \"{}\"", control.display());
        let text = text.replace("listen = \"127.0.0.1:0\"", &listen);
        let name = format!("{name}.toml");
        Self { server: Program::start_with_text(&name, &text), name, text, control }
    }

    /// Writes another configuration and lets the allocator load it.
    fn reload(&self, text: &str) -> Output {
        file(&self.name, text);
        self.command(&["reload"])
    }

    fn command(&self, words: &[&str]) -> Output {
        let mut command = program();
        command.arg(words[0]).arg("--control").arg(&self.control).args(&words[1..]);
        command.output().expect("it starts")
    }

    fn metric(&self, name: &str) -> String {
        let page = self.server.get("/metrics");
        let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or("none").trim().to_owned()
    }

    fn assert_nobody_was_lost(&self) {
        for why in ["Rekeyed", "Shutdown", "Silent", "Protocol"] {
            assert_eq!(self.metric(&format!("fairrate_connections_closed_total{{why=\"{why}\"}}")), "0");
        }
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(output)
}

#[test]
fn a_link_gets_slower_fails_and_comes_back() {
    let of = Changing::start("links", INSECURE);
    let client = client(&[of.server.address]);
    client.begin(1, host(1), host(2), 1.0);
    client.begin(2, host(3), host(4), 1.0);
    let rates = |first: Option<f64>| {
        let has = |flow, rate: Option<f64>| match rate {
            Some(rate) => is_near(client.rate_bps(flow), rate),
            None => client.rate_bps(flow).is_none(),
        };
        has(1, first) && has(2, Some(ALONE_BPS))
    };
    until("both have their rates", || rates(Some(ALONE_BPS)));
    // By file.
    let slow = of.reload(&(of.text.clone() + "[[link]]\nname = \"h0->sw0\"\nrate = \"2Gbps\"\n"));
    assert!(slow.status.success() && said(&slow).contains("8 hosts"), "{}", said(&slow));
    until("the first falls", || rates(Some(ALONE_BPS / 5.0)));
    assert_eq!((of.metric("fairrate_links_changed"), of.metric("fairrate_links_down")), ("1".into(), "0".into()));
    // By command, which prevails.
    let down = of.command(&["link", "sw0->h1", "down"]);
    assert!(down.status.success() && said(&down).contains("sw0->h1 down (by command)"), "{}", said(&down));
    until("the first has no path", || rates(None));
    until("it is kept", || of.metric("fairrate_flows_without_path") == "1" && of.metric("fairrate_flows") == "1");
    // A new configuration keeps commands.
    assert!(of.reload(&of.text).status.success());
    assert!(said(&of.command(&["link"])).contains("1 links down, 0 with another rate\nsw0->h1 down (by command)\n"));
    assert!(of.command(&["link", "sw0->h1", "reset"]).status.success());
    until("the first is back", || rates(Some(ALONE_BPS)));
    // A link that is down is so in both directions, and a command for either is the last word.
    for (down, word, left) in [("sw0->h1", "reset", ""), ("h1->sw0", "10Gbps", "sw0->h1 10Gbps (by command)\n")] {
        assert!(of.command(&["link", down, "down"]).status.success());
        let other = if down == "sw0->h1" { "h1->sw0" } else { "sw0->h1" };
        let back = of.command(&["link", other, word]);
        assert!(said(&back).contains(&format!("0 links down, 0 with another rate\n{left}")), "{}", said(&back));
    }
    assert!(of.command(&["link", "sw0->h1", "reset"]).status.success());
    // Neither flowlet has ended, and none has begun.
    let flowlets = || ["starts", "ends"].map(|what| of.metric(&format!("fairrate_flow_{what}_total")));
    assert_eq!(flowlets(), ["2", "0"]);
    for (words, expected) in [
        (["link", "sw0->h11", "down"], "no link `sw0->h11`: did you mean `sw0->h1`?"),
        (["link", "sw0->h1", "fast"], "or write `down` or `reset`"),
        (["link", "sw0->h1", "0bps"], "a link without a rate is down"),
        (["link", "sw0->h1", "down down"], "has a space"),
    ] {
        let output = of.command(&words);
        assert!(output.status.code() == Some(2) && said(&output).contains(expected), "{}", said(&output));
    }
    // One that ends without a path ends once, and so does the other.
    assert!(of.command(&["link", "sw0->h1", "down"]).status.success());
    until("the first has no path", || rates(None));
    client.end(1);
    client.end(2);
    until("both have ended", || flowlets() == ["2", "2"]);
    of.assert_nobody_was_lost();
}

#[test]
fn hosts_come_and_go() {
    let of = Changing::start("hosts", INSECURE);
    let client = client(&[of.server.address]);
    client.begin(1, host(1), host(2), 1.0);
    client.begin(2, host(3), host(12), 1.0);
    until("the first has its rate", || is_near(client.rate_bps(1), ALONE_BPS));
    assert_eq!(client.rate_bps(2), None);
    // Twelve hosts: all links have other numbers.
    assert!(of.reload(&of.text.replace("hosts = 8", "hosts = 12").replace("10Gbps", "20Gbps")).status.success());
    let has = |flow, rate| is_near(client.rate_bps(flow), rate);
    until("both have the new links", || has(1, 2.0 * ALONE_BPS) && has(2, 2.0 * ALONE_BPS));
    assert!(of.reload(&of.text).status.success());
    until("as before", || has(1, ALONE_BPS) && client.rate_bps(2).is_none());
    client.end(2);
    until("it is forgotten", || of.metric("fairrate_flows_without_path") == "0");
    of.assert_nobody_was_lost();
}

#[test]
fn a_bad_configuration_changes_nothing() {
    let of = Changing::start("bad-reload", INSECURE);
    let client = client(&[of.server.address]);
    client.begin(1, host(1), host(2), 1.0);
    until("it has its rate", || is_near(client.rate_bps(1), ALONE_BPS));
    let link = |lines: &str| of.text.clone() + "[[link]]\n" + lines;
    for (text, expected) in [
        (of.text.replace("hosts = 8", "host = 8"), vec!["bad-reload.toml", "did you mean `hosts`?"]),
        (of.text.replace("\"300ms\"", "\"300\""), vec!["line 5", "write a time such as"]),
        (
            of.text.replace("\"300ms\"", "\"400ms\""),
            vec!["line 5, column 9", "`lease` cannot change without a restart"],
        ),
        (
            of.text.replace("[topology]", "[engine]\ngamma = 0.5\n[limits]\nconnections = 9\n[topology]"),
            vec!["line 8", "`engine.gamma`, `limits.connections` cannot change without a restart"],
        ),
        (link("name = \"h0->h1\"\ndown = true\n"), vec!["line 12, column 8", "no link `h0->h1`: did you mean `"]),
        (link("name = \"h0->sw0\"\n"), vec!["line 12", "say one thing of a link"]),
        (link("name = \"h0->sw0\"\nrate = \"0bps\"\n"), vec!["line 13", "write `down = true`"]),
        (link("name = \"h0->sw0\"\nrate = \"fast\"\n"), vec!["line 13", "fast"]),
        (String::new(), vec!["bad-reload.toml", "missing field"]),
    ] {
        let output = of.reload(&text);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        for part in expected {
            assert!(said(&output).contains(part), "{part}: {}", said(&output));
        }
    }
    assert_eq!(of.metric("fairrate_reloads_total{result=\"error\"}"), "9");
    assert!(is_near(client.rate_bps(1), ALONE_BPS));
    // Bounds and the quorum can change.
    let bounds = of.text.clone() + "[quorum]\nagents = 3\n[limits]\nagents = 7\nflows_per_agent = 9\n";
    assert!(of.reload(&bounds).status.success());
    until("it has no quorum", || client.rate_bps(1).is_none() && of.metric("fairrate_quorum_agents") == "3");
    assert!(of.reload(&of.text).status.success());
    until("it decides again", || is_near(client.rate_bps(1), ALONE_BPS));
    of.assert_nobody_was_lost();
}

#[test]
fn new_keys_close_connections_and_the_same_ones_do_not() {
    let dir = keys_in("reload-keys");
    let of = Changing::start("reload-keys", &secure(&dir));
    let files = crate::common::files(&dir, host(1));
    let client = Client::connect(&[of.server.address], Security::Tls(files), ClientOptions::default()).expect("keys");
    client.begin(1, host(1), host(2), 1.0);
    until("it has its rate", || is_near(client.rate_bps(1), ALONE_BPS));
    assert!(of.command(&["reload"]).status.success());
    of.assert_nobody_was_lost();
    let args = ["--allocators", "127.0.0.1", "--renew"];
    assert!(program().arg("keys").arg(&dir).args(args).output().expect("it starts").status.success());
    let output = of.command(&["reload"]);
    assert!(output.status.success() && said(&output).contains("new keys"), "{}", said(&output));
    until("the connection is closed", || of.metric("fairrate_connections_closed_total{why=\"Rekeyed\"}") == "1");
    until("it has its rate", || is_near(client.rate_bps(1), ALONE_BPS));
    // Keys that cannot be used change nothing, not even the rest of the file.
    std::fs::write(dir.join("allocator.key"), "no key").expect("it is ours");
    let output = of.reload(&of.text.replace("hosts = 8", "hosts = 9"));
    assert!(output.status.code() == Some(2) && said(&output).contains("allocator.key"), "{}", said(&output));
    assert!(is_near(client.rate_bps(1), ALONE_BPS));
}

#[test]
fn commands_are_for_root_and_the_own_user() {
    let of = Changing::start("strangers", INSECURE);
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&of.control).expect("it is there").permissions());
    assert_eq!(mode & 0o777, 0o600);
    let nobody = program().args(["reload", "--control", "/no/such/socket"]).output().expect("it starts");
    assert!(nobody.status.code() == Some(1) && said(&nobody).contains("does the allocator run"), "{}", said(&nobody));
    // A command that is too long, or never ends, holds up nobody for long.
    let silent = std::os::unix::net::UnixStream::connect(&of.control).expect("it listens");
    assert!(of.command(&["reload"]).status.success());
    drop(silent);
    if !nix::unistd::geteuid().is_root() {
        return println!("not run: it needs root to be another user");
    }
    // Even if the socket's mode is changed, others may not.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(&of.control, open).expect("it is ours");
    let mut command = program();
    command.args(["link", "--control"]).arg(&of.control).args(["sw0->h1", "down"]).uid(65534).gid(65534);
    let output = command.output().expect("it starts");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(of.metric("fairrate_links_down"), "0");
}
