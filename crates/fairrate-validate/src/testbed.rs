//! `cargo xtask testbed`: tests the testbed on this machine, as root: small runs, their results, and their complete
//! removal afterwards.

mod perc;
mod several;

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use fairrate_experiment::drive;
use fairrate_results::Results;
use fairrate_scenario::{Overrides, Scenario};
use fairrate_units::Time;

/// Options of `testbed`.
#[derive(Args)]
pub struct Options {
    /// Without root or iproute2, says so and tests nothing
    #[arg(long)]
    if_possible: bool,
    /// Directory of the programs `fairrate-testbed` and `fairrate-kernel`, which `cargo xtask testbed` has built
    #[arg(long, value_name = "DIR", hide = true)]
    programs: PathBuf,
    /// A requirement of `fairrate-kernel` that this machine lacks, so that its program is not there
    #[arg(long, value_name = "WHAT", hide = true)]
    no_kernel: Option<String>,
}

/// A check: its name and its function.
type Check = (&'static str, fn(&Bench) -> Result<(), String>);

const CHECKS: [Check; 18] = [
    ("an incast delivers its bytes, and its results read", incast),
    ("flows take the simulator's paths", paths),
    ("a connection of two subflows uses two paths", multipath),
    ("links have their delays, to the millisecond", delays),
    ("two links with different delays have each its own", two_delays),
    ("packets keep their order over a link with a delay, and none is lost", whole),
    ("a killed run is cleaned up by the next one", killed),
    ("an interrupted run leaves valid results and no network", interrupted),
    ("two testbeds do not disturb each other", two_at_once),
    ("CUBIC beside BBR: each block has its own algorithm, and its own numbers", several::two_algorithms),
    ("algorithms of several blocks are asked for at their hosts, and all given back", several::brought_beside),
    ("PERC: flows that come and go reach the exact max-min rates", perc::settles),
    ("an algorithm that the kernel lacks is asked for and given back", brought),
    ("an algorithm of a killed run is given back by the next one", brought_and_killed),
    ("an algorithm of a killed run leaves the kernel", attached_and_killed),
    ("marks are root's alone", marks),
    ("a results directory of another user is refused", of_another_user),
    ("without root it says so and makes nothing", no_root),
];

/// Runs the checks. Returns `true` if all pass.
///
/// # Errors
/// If the testbed cannot run here and `if_possible` is not set.
pub fn run(options: &Options) -> Result<bool, String> {
    if let Err(why) = possible() {
        let message = format!("not run: {why} ({} checks of the testbed)", CHECKS.len());
        return if options.if_possible {
            println!("{message}");
            Ok(true)
        } else {
            Err(message)
        };
    }
    let bench = Bench::new(options)?;
    let mut outside = 0;
    for (name, check) in CHECKS {
        let outcome = check(&bench).and_then(|()| nothing_is_left(&bench));
        println!("{name}: {}", outcome.as_ref().err().map_or("ok", String::as_str));
        outside += u32::from(outcome.is_err());
    }
    let _ = std::fs::remove_dir_all(&bench.dir);
    println!("rows: {} inside, {outside} outside", CHECKS.len() as u32 - outside);
    Ok(outside == 0)
}

/// Checks that namespaces and queues can be created here.
fn possible() -> Result<(), String> {
    let quiet = |program: &str, args: &[&str]| {
        Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
    };
    if !quiet("ip", &["-V"]) || !quiet("tc", &["-V"]) {
        return Err("needs iproute2".to_owned());
    }
    let name = format!("frx-{}", std::process::id());
    let made = quiet("ip", &["netns", "add", &name]) && quiet("ip", &["netns", "del", &name]);
    if made { Ok(()) } else { Err("needs root".to_owned()) }
}

/// The program and a directory for its results.
struct Bench {
    program: PathBuf,
    dir: PathBuf,
    no_kernel: Option<String>,
}

impl Bench {
    fn new(options: &Options) -> Result<Self, String> {
        let dir = std::env::temp_dir().join(format!("fairrate-testbed-{}", std::process::id()));
        std::fs::create_dir_all(&dir).map_err(|e| e.to_string())?;
        Ok(Self { program: options.programs.join("fairrate-testbed"), dir, no_kernel: options.no_kernel.clone() })
    }

    /// Writes a scenario file with this topology and traffic.
    fn scenario(&self, name: &str, topology: &str, traffic: &str) -> Result<PathBuf, String> {
        let file = self.dir.join(format!("{name}.toml"));
        let switch = "pfc = false\ndt_alpha = \"unlimited\"\nbuffer = \"100KB\"";
        let probes = "[[probe]]\nqueue = \"*->*\"\nevery = \"5ms\"\n[[probe]]\nflows = \"all\"\nevery = \"10ms\"";
        let text = format!(
            "duration = \"20s\"\nstop = \"all-flows-done\"\n[topology]\n{topology}\n[switch]\n{switch}\n[transport]\n\
             kind = \"tcp\"\ncc = \"cubic\"\n[[traffic]]\n{traffic}\n{probes}\n"
        );
        std::fs::write(&file, text).map_err(|e| e.to_string())?;
        Ok(file)
    }

    fn star(&self, name: &str, bytes: &str) -> Result<PathBuf, String> {
        let traffic = format!("kind = \"incast\"\nreceiver = \"h0\"\nsenders = 4\nbytes = \"{bytes}\"");
        // Two links on a path, and a namespace of wires.
        self.scenario(name, "kind = \"star\"\nhosts = 5\nrate = \"100Mbps\"\ndelay = \"1ms\"", &traffic)
    }

    /// Writes a scenario of a flow from one host over two switches to the other.
    fn line(&self, name: &str, delays: &str, bytes: &str) -> Result<PathBuf, String> {
        let rates = "host_rate = \"200Mbps\"\nbottleneck_rate = \"100Mbps\"";
        let topology = format!("kind = \"dumbbell\"\nleft = 1\nright = 1\n{rates}\n{delays}");
        let flow = format!("kind = \"incast\"\nreceiver = \"h1\"\nsenders = [\"h0\"]\nbytes = \"{bytes}\"");
        self.scenario(name, &topology, &flow)
    }

    fn start(&self, file: &Path, out: &str, arguments: &[&str]) -> Result<Child, String> {
        let mut command = Command::new(&self.program);
        command.arg(file).args(arguments).arg("--quiet").arg("--out").arg(self.dir.join(out));
        command.stderr(Stdio::piped()).spawn().map_err(|e| e.to_string())
    }

    /// Runs a scenario to its end; returns its results.
    fn run(&self, file: &Path, out: &str) -> Result<Results, String> {
        self.run_with(file, out, &[])
    }

    /// Runs a scenario to its end with additional arguments; returns its results.
    fn run_with(&self, file: &Path, out: &str, arguments: &[&str]) -> Result<Results, String> {
        let done = self.start(file, out, arguments)?.wait_with_output().map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        expect(done.status.success(), || format!("{}: {said}", done.status))?;
        self.results(out)
    }

    fn results(&self, out: &str) -> Result<Results, String> {
        Results::open(&self.dir.join(out)).map_err(|e| e.to_string())
    }
}

fn expect(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// Returns the names of the namespaces of a process.
fn namespaces(process: u32) -> Vec<String> {
    let start = format!("fr-{process}-");
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.starts_with(&start)).collect()
}

/// Checks that no namespace of a process that has ended is left, and no mark.
fn nothing_is_left(_: &Bench) -> Result<(), String> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let dead = |name: &String| {
        let process = name.strip_prefix("fr-").and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists())
    };
    let left: Vec<String> = names.filter(dead).collect();
    expect(left.is_empty(), || format!("left behind: {}", left.join(", ")))
}

fn incast(bench: &Bench) -> Result<(), String> {
    let results = bench.run(&bench.star("incast", "500KB")?, "incast")?;
    let summary = &results.summary;
    expect(summary.backend == "linux" && summary.state == "complete", || {
        format!("{} {}", summary.backend, summary.state)
    })?;
    let text = |e: fairrate_results::ResultsError| e.to_string();
    let flows = results.flows().map_err(text)?;
    let whole = |flow: &fairrate_results::FlowRow| {
        // 2 MB over 100 Mb/s take 160 ms, and a single flow takes at least a quarter of that.
        let is_whole = flow.finished && flow.delivered_bytes == 500_000 && flow.fct_ns <= flow.fct_ack_ns;
        is_whole && flow.fct_ns.is_some_and(|fct| (40..20_000).contains(&(fct / 1_000_000)))
    };
    expect(flows.len() == 4 && flows.iter().all(whole), || format!("{flows:?}"))?;
    let ports = results.ports().map_err(text)?;
    let last = ports.iter().rfind(|row| &*row.port == "sw0->h0");
    // The last sample is some milliseconds before the last byte.
    expect(last.is_some_and(|row| 1_500_000 < row.tx_bytes), || format!("{last:?}"))?;
    let rates = results.rates().map_err(text)?;
    expect(rates.iter().any(|row| row.rtt_ns.is_some_and(|rtt| 0 < rtt)), || "no round-trip times".to_owned())?;
    let linux = summary.linux.as_ref().ok_or("no word of the machine")?;
    expect(linux.largest_mean_packet_bytes <= 1_514, || "segments were put together".to_owned())?;
    let registry = fairrate_control::Registry::new();
    let data = fairrate_report::load::run(&bench.dir.join("incast"), &registry).map_err(text)?;
    expect(data.state == "complete", || data.state.clone())
}

/// Checks that each uplink carries as many flows as in the simulator: bytes on the wire are within a tenth, as
/// acknowledgments and retransmissions differ.
fn paths(bench: &Bench) -> Result<(), String> {
    let topology = "kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\nhost_rate = \"100Mbps\"\nuplink_rate = \"200Mbps\"";
    let file = bench.scenario("paths", topology, "kind = \"all-to-all\"\nbytes = \"200KB\"")?;
    let linux = bench.run(&file, "paths")?;
    let sent = |results: &Results, port: &str| {
        let rows = results.ports().map_err(|e| e.to_string())?;
        Ok::<u64, String>(rows.iter().filter(|row| &*row.port == port).map(|row| row.tx_bytes).max().unwrap_or(0))
    };
    let effective = Scenario::load(&bench.dir.join("paths/scenario.toml"), &Overrides::default());
    let effective = effective.map_err(|e| e.to_string())?;
    let place = fairrate_results::ResultsDir::claim(&bench.dir.join("paths-sim")).map_err(|e| e.to_string())?;
    drive(&effective, &std::sync::Arc::new(place), &[], 1, &mut ()).map_err(|e| e.to_string())?;
    let simulated = bench.results("paths-sim")?;
    for port in ["tor0->spine0", "tor0->spine1", "tor1->spine0", "tor1->spine1"] {
        let (a, b) = (sent(&linux, port)?, sent(&simulated, port)?);
        // A flow is 200 KB; the last sample may lack 5 ms.
        expect(a.abs_diff(b) < 130_000, || format!("`{port}` carried {a} B, in the simulator {b} B"))?;
    }
    Ok(())
}

/// Checks that an MPTCP connection uses both paths, since neither could carry all of its data.
fn multipath(bench: &Bench) -> Result<(), String> {
    if !Path::new("/proc/sys/net/mptcp/enabled").exists() {
        println!("not run: needs MPTCP");
        return Ok(());
    }
    let topology = "kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 1\nhost_rate = \"200Mbps\"\nuplink_rate = \"50Mbps\"";
    let flow = "kind = \"incast\"\nreceiver = \"h0\"\nsenders = [\"h1\"]\nbytes = \"2MB\"\nsubflows = 2";
    let paths = "[transport.tcp]\npaths = \"disjoint\"";
    let results = bench.run(&bench.scenario("multipath", topology, &format!("{flow}\n{paths}"))?, "multipath")?;
    let flows = results.flows().map_err(|e| e.to_string())?;
    expect(flows.len() == 1 && flows[0].finished && flows[0].delivered_bytes == 2_000_000, || format!("{flows:?}"))?;
    let rows = results.ports().map_err(|e| e.to_string())?;
    for port in ["tor1->spine0", "tor1->spine1"] {
        let sent = rows.iter().filter(|row| &*row.port == port).map(|row| row.tx_bytes).max().unwrap_or(0);
        expect(500_000 < sent, || format!("`{port}` carried {sent} B of 2 MB"))?;
    }
    Ok(())
}

/// Checks that the base RTT of a path is the sum of its delays, or up to a millisecond more. It is the minimum of many
/// round trips, so a busy machine does not change it.
fn has_base_rtt(bench: &Bench, delays: &str, links: u32, asked: Time) -> Result<(), String> {
    let name = format!("rtt-{}", asked.as_ns());
    let results = bench.run_with(&bench.line(&name, delays, "50KB")?, &name, &["--warm-up", "50"])?;
    let linux = results.summary.linux.ok_or("no word of the machine")?;
    let kept = linux.delays.ok_or("no word of delays")?;
    let rtt = Time::from_ns(kept.measured_rtt_ns);
    let is_kept = kept.links == links && Time::from_ns(kept.asked_rtt_ns) == asked && 0 < kept.packets;
    expect(is_kept && asked <= rtt && rtt < asked + Time::from_ms(1), || format!("{kept:?}"))?;
    let effective = Scenario::load(&bench.dir.join(name).join("scenario.toml"), &Overrides::default());
    let effective = effective.map_err(|e| e.to_string())?;
    let longest = effective.sim_config().topology.links.iter().map(|link| link.delay).max().unwrap_or_default();
    expect(asked.as_ns() / u64::from(2 * links) <= longest.as_ns(), || format!("the effective scenario has {longest}"))
}

fn delays(bench: &Bench) -> Result<(), String> {
    for ms in [5, 20] {
        let delay = format!("host_delay = \"0s\"\nbottleneck_delay = \"{ms}ms\"");
        has_base_rtt(bench, &delay, 1, Time::from_ms(2 * ms))?;
    }
    Ok(())
}

fn two_delays(bench: &Bench) -> Result<(), String> {
    has_base_rtt(bench, "host_delay = \"1ms\"\nbottleneck_delay = \"7ms\"", 3, Time::from_ms(18))
}

/// Checks that 5 MB at full rate over 10 ms, with buffers for all of them, arrive without retransmissions. A change of
/// packet order would cause some.
fn whole(bench: &Bench) -> Result<(), String> {
    let file = bench.line("whole", "host_delay = \"0s\"\nbottleneck_delay = \"10ms\"", "5MB")?;
    let room = ["--set", "switch.buffer=20MB", "--set", "switch.queue_limit=6MB"];
    let results = bench.run_with(&file, "whole", &room)?;
    let lost = results.summary.linux.as_ref().and_then(|linux| linux.delays.as_ref()).map(|delays| delays.drops);
    let flows = results.flows().map_err(|e| e.to_string())?;
    let is_whole = |flow: &fairrate_results::FlowRow| {
        flow.finished && flow.delivered_bytes == 5_000_000 && flow.retransmitted_bytes == 0
    };
    let totals = (results.summary.drops, lost);
    expect(totals == (0, Some(0)) && flows.iter().all(is_whole), || format!("{totals:?} {flows:?}"))
}

/// Waits until the flows of a run have started.
fn is_under_way(bench: &Bench, out: &str) -> Result<(), String> {
    let (begin, file) = (Instant::now(), bench.dir.join(out).join("summary.json"));
    while !file.exists() {
        expect(begin.elapsed() < Duration::from_secs(20), || "a run does not begin".to_owned())?;
        std::thread::sleep(Duration::from_millis(10));
    }
    // Flows start shortly after the first results, and take seconds.
    std::thread::sleep(Duration::from_millis(500));
    Ok(())
}

fn killed(bench: &Bench) -> Result<(), String> {
    let mut child = bench.start(&bench.star("long", "100MB")?, "killed", &[])?;
    is_under_way(bench, "killed")?;
    child.kill().and_then(|()| child.wait()).map_err(|e| e.to_string())?;
    expect(namespaces(child.id()).len() == 7, || "its namespaces were gone already".to_owned())?;
    bench.run(&bench.star("next", "50KB")?, "next")?;
    expect(namespaces(child.id()).is_empty(), || "the next run did not remove them".to_owned())
}

fn interrupted(bench: &Bench) -> Result<(), String> {
    let mut child = bench.start(&bench.star("long", "100MB")?, "interrupted", &[])?;
    is_under_way(bench, "interrupted")?;
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().map_err(|e| e.to_string())?;
    let status: ExitStatus = child.wait().map_err(|e| e.to_string())?;
    expect(sent.success() && status.code() == Some(130), || format!("it ended with {status}"))?;
    let results = bench.results("interrupted")?;
    expect(results.summary.state == "interrupted", || results.summary.state.clone())?;
    let flows = results.flows().map_err(|e| e.to_string())?;
    expect(flows.len() == 4 && flows.iter().all(|flow| !flow.finished), || format!("{flows:?}"))
}

fn two_at_once(bench: &Bench) -> Result<(), String> {
    let file = bench.star("two", "300KB")?;
    let mut other = bench.start(&file, "two-a", &[])?;
    let mine = bench.run(&file, "two-b")?;
    let status = other.wait().map_err(|e| e.to_string())?;
    expect(status.success(), || format!("the other one ended with {status}"))?;
    let both = [mine, bench.results("two-a")?];
    let done = both.iter().all(|results| results.summary.goodput_bytes == 4 * 300_000);
    expect(done, || "not all bytes have arrived".to_owned())
}

/// A program in place of `fairrate-kernel` that writes down its arguments, and attaches the kernel's Reno for every
/// algorithm.
struct StandIn {
    program: PathBuf,
    heard: PathBuf,
}

impl StandIn {
    fn new(bench: &Bench, name: &str) -> Result<Self, String> {
        let (program, heard) = (bench.dir.join(name), bench.dir.join(format!("{name}-heard")));
        let script = format!("#!/bin/sh\necho \"$@\" >> {}\necho reno\n", heard.display());
        std::fs::write(&program, script).map_err(|e| e.to_string())?;
        let may_run = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, may_run).map_err(|e| e.to_string())?;
        Ok(Self { program, heard })
    }

    fn heard(&self) -> Result<Vec<String>, String> {
        let heard = std::fs::read_to_string(&self.heard).map_err(|e| e.to_string())?;
        Ok(heard.lines().map(str::to_owned).collect())
    }
}

/// Returns `true` if a line detaches `powertcp` from a number of namespaces, and from the kernel if it is unused.
fn is_detach(line: Option<&String>, n_namespaces: usize) -> bool {
    line.is_some_and(|line| {
        line.starts_with("detach powertcp --unused --force") && line.matches("--netns fr-").count() == n_namespaces
    })
}

fn brought(bench: &Bench) -> Result<(), String> {
    let stand_in = StandIn::new(bench, "stand-in")?;
    let file = bench.star("brought", "50KB")?;
    let mut command = Command::new(&bench.program);
    command.arg(&file).args(["--cc", "powertcp:gamma=0.5", "--quiet", "--out"]).arg(bench.dir.join("brought"));
    let done = command.env(KERNEL, &stand_in.program).output().map_err(|e| e.to_string())?;
    expect(done.status.success(), || String::from_utf8_lossy(&done.stderr).into_owned())?;
    let summary = bench.results("brought")?.summary;
    let used = summary.linux.map(|linux| linux.algorithm).unwrap_or_default();
    expect(summary.cc == "powertcp" && used == "reno", || format!("{} by {used}", summary.cc))?;
    let lines = stand_in.heard()?;
    let asked = lines.first().is_some_and(|line| {
        line.starts_with("attach powertcp:gamma=0.5 --print-name --netns fr-")
            && line.matches("--netns").count() == 5
            && line.matches("--switch-port").count() == 5
            && line.contains("--line-rate 100000000bps")
    });
    expect(asked && lines.len() == 2 && is_detach(lines.last(), 7), || lines.join("\n"))
}

/// The environment variable of the testbed with the program that attaches algorithms to the kernel.
const KERNEL: &str = "FAIRRATE_KERNEL";

/// Kills a run under PowerTCP, and then does one under CUBIC.
fn kill_and_run_another(bench: &Bench, name: &str, kernel: &Path) -> Result<(), String> {
    let file = bench.star("long", "100MB")?;
    let mut command = Command::new(&bench.program);
    command.arg(&file).args(["--cc", "powertcp", "--quiet", "--out"]).arg(bench.dir.join(name)).env(KERNEL, kernel);
    let mut child = command.spawn().map_err(|e| e.to_string())?;
    let under_way = is_under_way(bench, name);
    child.kill().and_then(|()| child.wait()).map_err(|e| e.to_string())?;
    under_way?;
    let mut next = Command::new(&bench.program);
    next.arg(bench.star("next", "50KB")?).arg("--out").arg(bench.dir.join(format!("{name}-next"))).env(KERNEL, kernel);
    let done = next.output().map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&done.stderr);
    expect(done.status.success() && said.contains("removed 7 namespaces"), || format!("{}: {said}", done.status))?;
    expect(namespaces(child.id()).is_empty(), || "the next run did not remove them".to_owned())?;
    let marks = std::fs::read_dir("/run/fairrate-testbed").map_err(|e| e.to_string())?.count();
    expect(marks == 0, || format!("{marks} marks are left"))
}

fn brought_and_killed(bench: &Bench) -> Result<(), String> {
    let stand_in = StandIn::new(bench, "stand-in-killed")?;
    kill_and_run_another(bench, "brought-killed", &stand_in.program)?;
    let lines = stand_in.heard()?;
    expect(lines.len() == 2 && is_detach(lines.last(), 7), || lines.join("\n"))
}

fn attached_and_killed(bench: &Bench) -> Result<(), String> {
    if let Some(what) = &bench.no_kernel {
        println!("not run: {what}");
        return Ok(());
    }
    let program = bench.program.with_file_name("fairrate-kernel");
    kill_and_run_another(bench, "attached-killed", &program)?;
    let status = Command::new(&program).arg("status").output().map_err(|e| e.to_string())?;
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    expect(status == "nothing is attached\n", || status)
}

/// Checks that other users can neither open the files of marks, which would let them hold a lock for ever, nor create
/// files there.
fn marks(bench: &Bench) -> Result<(), String> {
    let file = bench.star("marks", "50KB")?;
    let script = |before: &str, after: &str| {
        let (program, dir) = (bench.program.display(), bench.dir.join("marks").display().to_string());
        let run = format!("{program} {} --quiet --out {dir}", file.display());
        // With a separate directory /run.
        let script = format!("mount -t tmpfs -o mode=0755 tmpfs /run && {before} && {{ {run}; {after} }}");
        let command = ["-m", "--propagation", "private", "sh", "-c", &script];
        Command::new("unshare").args(command).output().map_err(|e| e.to_string())
    };
    let marks = "/run/fairrate-testbed";
    let done = script(&format!("mkdir -m 0755 {marks}"), &format!("stat -c mode=%a {marks}; ls {marks};"))?;
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    expect(said == "mode=700\n", || format!("{said}{}", String::from_utf8_lossy(&done.stderr)))?;
    for (before, after) in [
        (format!("mkdir {marks} && chown 65534 {marks}"), "exit $?;"),
        (format!("mkdir -m 0777 {marks} && chmod 0777 {marks}"), "exit $?;"),
        (format!("mkdir /run/other && ln -s /run/other {marks}"), "exit $?;"),
    ] {
        let done = script(&before, after)?;
        let said = String::from_utf8_lossy(&done.stderr);
        let is_refused = done.status.code() == Some(2) && said.contains("is no directory that root alone can write to");
        expect(is_refused, || format!("{before}: {}: {said}", done.status))?;
    }
    Ok(())
}

/// Checks that a directory of another user is refused: links in it could lead the files that root writes and removes
/// elsewhere.
fn of_another_user(bench: &Bench) -> Result<(), String> {
    let (out, file) = (bench.dir.join("theirs"), bench.star("theirs", "50KB")?);
    std::fs::create_dir_all(&out).map_err(|e| e.to_string())?;
    std::os::unix::fs::chown(&out, Some(65_534), Some(65_534)).map_err(|e| e.to_string())?;
    let done = bench.start(&file, "theirs", &[])?.wait_with_output().map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&done.stderr);
    let is_refused = done.status.code() == Some(2) && said.contains("user 65534 can write to");
    expect(is_refused, || format!("{}: {said}", done.status))?;
    let n = std::fs::read_dir(&out).map_err(|e| e.to_string())?.count();
    expect(n == 0, || format!("it has written {n} files there"))
}

/// Checks the error for a user without rights, with a copy of the program that the user may run.
fn no_root(bench: &Bench) -> Result<(), String> {
    const NOBODY: u32 = 65_534;
    let (copy, file) = (bench.dir.join("fairrate-testbed"), bench.star("rootless", "50KB")?);
    std::fs::copy(&bench.program, &copy).map_err(|e| e.to_string())?;
    let out = bench.dir.join("rootless");
    let mut command = Command::new(copy);
    command.arg(file).arg("--out").arg(&out).uid(NOBODY).gid(NOBODY);
    let done = command.output().map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&done.stderr);
    expect(done.status.code() == Some(2) && said.contains("needs root"), || format!("{}: {said}", done.status))?;
    expect(!out.exists(), || "it has made a directory".to_owned())
}
