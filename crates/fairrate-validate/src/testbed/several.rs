//! Checks of runs whose traffic blocks have algorithms of their own.

use std::process::Command;

use super::{Bench, KERNEL, StandIn, expect};

/// Checks that the sockets of two blocks have their own algorithms: in a buffer of a third of a bandwidth-delay product
/// CUBIC halves at each loss, and BBR hardly yields. The bound is far from the measured share of 10 to 20 %, for a busy
/// machine.
pub fn two_algorithms(bench: &Bench) -> Result<(), String> {
    let topology = "kind = \"dumbbell\"\nleft = 2\nright = 2\nhost_rate = \"200Mbps\"\nhost_delay = \"0s\"\nbottleneck_rate = \"50Mbps\"\n\
                    bottleneck_delay = \"20ms\"";
    let block = |name, from, to| {
        format!("name = \"{name}\"\nkind = \"incast\"\nsenders = \"{from}\"\nreceiver = \"{to}\"\nbytes = \"endless\"")
    };
    let traffic = format!("{}\n[[traffic]]\ncc = \"bbr\"\n{}", block("old", "h0", "h2"), block("new", "h1", "h3"));
    let file = bench.scenario("two-algorithms", topology, &traffic)?;
    let arguments = ["--set", "duration=8s", "--set", "stop=duration", "--set", "switch.queue_limit=80KB"];
    let results = bench.run_with(&file, "two-algorithms", &arguments)?;
    let linux = results.summary.linux.as_ref().ok_or("no word of the machine")?;
    expect(linux.algorithm == "cubic, bbr", || linux.algorithm.clone())?;
    let groups = &results.summary.measured.groups;
    let is_each = groups.len() == 2 && groups[0].cc == "cubic" && groups[1].cc == "bbr";
    // Drops as senders know them are those of the queues, but for packets that were lost last.
    let drops: u64 = groups.iter().map(|group| group.drops).sum();
    let all_drops = results.summary.drops;
    expect(is_each && groups[0].goodput_bytes < groups[1].goodput_bytes && 0 < drops && drops <= all_drops + 5, || {
        format!("{groups:?}, {all_drops} drops")
    })
}

/// Checks what `fairrate-kernel` is asked for where blocks have algorithms of its own.
pub fn brought_beside(bench: &Bench) -> Result<(), String> {
    let stand_in = StandIn::new(bench, "stand-in-beside")?;
    let block = |from, cc| {
        format!("kind = \"incast\"\nreceiver = \"h0\"\nsenders = \"{from}\"\nbytes = \"50KB\"\ncc = \"{cc}\"")
    };
    let all = ["h1", "h2", "h3"].into_iter().zip(["cubic", "theta-powertcp", "dctcp"]);
    let traffic: Vec<String> = all.map(|(from, cc)| block(from, cc)).collect();
    let topology = "kind = \"star\"\nhosts = 5\nrate = \"100Mbps\"";
    let file = bench.scenario("beside", topology, &traffic.join("\n[[traffic]]\n"))?;
    let mut command = Command::new(&bench.program);
    command.arg(&file).args(["--quiet", "--out"]).arg(bench.dir.join("beside"));
    let done = command.env(KERNEL, &stand_in.program).output().map_err(|e| e.to_string())?;
    expect(done.status.success(), || String::from_utf8_lossy(&done.stderr).into_owned())?;
    let lines = stand_in.heard()?;
    // Each is attached at its sender and the receiver; DCTCP's marks at the ports of the switch.
    let is_attach = |line: &String, name: &str, n_ports: usize| {
        let asked = line.strip_prefix("attach ").and_then(|rest| rest.strip_prefix(name));
        asked.is_some_and(|rest| rest.contains(" --print-name --netns fr-"))
            && line.matches("--netns").count() == 2
            && line.matches("--switch-port").count() == n_ports
    };
    let is_back = |name: &str| lines.iter().any(|line| line.starts_with(&format!("detach {name} --unused --force")));
    let is_asked = lines.len() == 4 && is_attach(&lines[0], "theta-powertcp", 0) && is_attach(&lines[1], "dctcp", 5);
    expect(is_asked && is_back("theta-powertcp") && is_back("dctcp"), || lines.join("\n"))
}
