//! The amount of memory available to this process, so that a run that cannot fit is refused before it begins.

use std::fs;
use std::path::{Path, PathBuf};

/// Approximate memory of a flow until the end of its run; measured as the growth of whole runs with the number of
/// flows: 290 bytes for flows of closed loops and 320 for others over RDMA, 440 over TCP with one subflow.
pub const FLOW_BYTES: u64 = 450;

/// Returns the number of bytes that this process can still allocate: the least of the machine's available memory, the
/// rest of its control groups' limits, and the rest of its own limit of address space. `None` where none of them is
/// known, as outside of Linux.
pub fn available_memory() -> Option<u64> {
    let read = |path: &Path| fs::read_to_string(path).ok();
    let of_machine = read(Path::new("/proc/meminfo")).and_then(|text| kilobytes(&text, "MemAvailable:"));
    let limits = read(Path::new("/proc/self/limits"));
    let status = read(Path::new("/proc/self/status"));
    let of_process = limits
        .zip(status)
        .and_then(|(limits, status)| Some(address_space(&limits)?.saturating_sub(kilobytes(&status, "VmSize:")?)));
    let groups = read(Path::new("/proc/self/cgroup")).map_or_else(Vec::new, |text| groups(&text));
    let of_groups = groups.iter().filter_map(|group| {
        let number = |name: &str| read(&group.dir.join(name))?.trim().parse::<u64>().ok();
        // The file of a group without a limit contains `max`.
        let (most, used) = (number(group.most)?, number(group.used)?);
        // The kernel frees cached files when memory is needed.
        let files = read(&group.dir.join("memory.stat")).map_or(0, |text| file_cache(&text));
        Some(most.saturating_sub(used.saturating_sub(files)))
    });
    of_machine.into_iter().chain(of_process).chain(of_groups).min()
}

/// Returns a number of bytes in readable form: `3.2 GB`.
pub fn shown_bytes(bytes: u64) -> String {
    let units = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    let (unit, size) = units.into_iter().find(|(_, size)| *size <= bytes as f64).unwrap_or(("B", 1.0));
    if unit == "B" { format!("{bytes} B") } else { format!("{:.1} {unit}", bytes as f64 / size) }
}

/// Returns the value, in bytes, of a line such as `MemAvailable:   23783192 kB`.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    number.checked_mul(1_024)
}

/// Returns the soft limit of `Max address space` in bytes; `None` if it is unlimited.
fn address_space(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A control group, and its files with the limit of memory and the current use.
#[derive(Debug, PartialEq)]
struct Group {
    dir: PathBuf,
    most: &'static str,
    used: &'static str,
}

/// Returns this process's control groups of memory, and all groups above them.
fn groups(text: &str) -> Vec<Group> {
    let mut groups = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let (root, most, used) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max", "memory.current"),
            c if c.split(',').any(|c| c == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes")
            }
            _ => continue,
        };
        let below = Path::new(path.trim_start_matches('/'));
        groups.extend(below.ancestors().map(|group| Group { dir: Path::new(root).join(group), most, used }));
    }
    groups
}

/// Returns the bytes of files that the kernel caches for a group, from its `memory.stat`. In cgroup v1, the names with
/// `total_` include the groups below.
fn file_cache(stat: &str) -> u64 {
    let value = |name: &str| {
        let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.trim().parse::<u64>().ok()
    };
    let of = |old: &str, new: &str| value(old).or_else(|| value(new)).unwrap_or(0);
    of("total_inactive_file", "inactive_file") + of("total_active_file", "active_file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        let meminfo = "MemTotal:       24684100 kB\nMemFree:        15163880 kB\nMemAvailable:   23783192 kB\n";
        assert_eq!(kilobytes(meminfo, "MemAvailable:"), Some(23_783_192 * 1_024));
        assert_eq!(kilobytes("MemTotal: 1 kB\n", "MemAvailable:"), None);
        let limits =
            |soft: &str| format!("Limit  Soft Limit  Hard Limit  Units\nMax address space         {soft} x bytes\n");
        assert_eq!((address_space(&limits("unlimited")), address_space(&limits("2048"))), (None, Some(2_048)));
        let of = |text: &str| groups(text).iter().map(|g| g.dir.join(g.most).display().to_string()).collect::<Vec<_>>();
        let root = "/sys/fs/cgroup/";
        assert_eq!(of("0::/a/b\n"), ["a/b/memory.max", "a/memory.max", "memory.max"].map(|f| format!("{root}{f}")));
        let old = ["memory/x/memory.limit_in_bytes", "memory/memory.limit_in_bytes"].map(|f| format!("{root}{f}"));
        assert_eq!(of("4:memory:/x\n1:cpu:/x\nnonsense\n"), old);
        assert_eq!(file_cache("inactive_file 5\nactive_file 6\nactive_files 9\n"), 11);
        assert_eq!(file_cache("inactive_file 5\ntotal_inactive_file 7\ntotal_active_file 8\n"), 15);
    }

    #[test]
    fn there_is_some() {
        assert!(available_memory().is_none_or(|bytes| 0 < bytes));
        assert_eq!([0, 999, 1_500, 3_200_000_000].map(shown_bytes), ["0 B", "999 B", "1.5 kB", "3.2 GB"]);
    }
}
