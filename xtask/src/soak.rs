//! `cargo xtask soak`: agents, two allocators and a load with a fault every minute, on hosts in network namespaces, as
//! root.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::args::Args;
use crate::{cargo, kernel};

/// Options of the task.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    minutes: u32,
    seed: u32,
    hosts: u32,
    /// The load in per cent of what links carry.
    load: u32,
    /// The directory of the results; below `target` if it is not given.
    out: Option<OsString>,
    /// `true` for cargo's profile for development.
    dev: bool,
}

impl Options {
    /// Reads the options from `args`.
    ///
    /// # Errors
    /// If a value is no number, or out of range.
    pub fn read(args: &mut Args) -> Result<Self, String> {
        let mut within = |name: &str, default: u32, least: u32, most: u32| {
            let number = args.number(name, default)?;
            let fits = (least..=most).contains(&number);
            fits.then_some(number)
                .ok_or_else(|| format!("`{name}` of `soak` is {number}: it is from {least} to {most}"))
        };
        Ok(Self {
            minutes: within("--minutes", 60, 1, 10_000)?,
            seed: within("--seed", 1, 0, u32::MAX)?,
            hosts: within("--hosts", 8, 3, 64)?,
            load: within("--load", 80, 1, 95)?,
            out: args.values("--out")?.pop(),
            dev: args.flag("--dev"),
        })
    }
}

/// Builds the soak and becomes it: so an interruption reaches it, and its exit status is the task's.
///
/// # Errors
/// If something that it needs is missing, or it cannot be started.
pub fn run(root: &Path, options: &Options) -> Result<bool, String> {
    if let Some(what) = kernel::missing() {
        return Err(format!("the soak cannot be run: {what}"));
    }
    let (profile, of_profile): (_, &[&str]) = if options.dev { ("debug", &[]) } else { ("release", &["--release"]) };
    let mut args = vec!["build", "--locked", "--quiet", "--workspace", "--features", kernel::FEATURES];
    args.extend(["--bin", "fairrate-allocator", "--test", "soak"]);
    args.extend(of_profile);
    if !cargo::run(root, &args)? {
        return Ok(false);
    }
    args.push("--message-format=json");
    let built = cargo::command(root).args(&args).stderr(Stdio::null()).output();
    let built = built.map_err(|e| format!("cannot run `cargo`: {e}"))?;
    let program = String::from_utf8_lossy(&built.stdout).lines().find_map(executable);
    let program = program.ok_or("cargo does not say where the soak is")?;
    let target = std::path::absolute(cargo::target(root)).map_err(|e| format!("cannot find `target`: {e}"))?;
    let out = options.out.as_ref().map_or_else(|| target.join("soak"), PathBuf::from);
    println!("results are written to {}", out.display());
    let mut soak = Command::new(&program);
    for (name, number) in
        [("--minutes", options.minutes), ("--seed", options.seed), ("--hosts", options.hosts), ("--load", options.load)]
    {
        soak.arg(format!("{name}={number}"));
    }
    soak.arg("--out").arg(out).env("FAIRRATE_ALLOCATOR", target.join(profile).join("fairrate-allocator"));
    Err(format!("cannot run {program}: {}", soak.exec()))
}

/// Returns the path of the soak's program, if cargo's message `line` has it.
fn executable(line: &str) -> Option<String> {
    if !line.contains("\"name\":\"soak\"") {
        return None;
    }
    Some(line.split("\"executable\":\"").nth(1)?.split('"').next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Options, String> {
        Options::read(&mut Args::new("soak", text.split_whitespace().map(OsString::from).collect()))
    }

    #[test]
    fn options_are_in_their_ranges() {
        let all = read("--minutes 10 --seed=3 --dev --out x").unwrap();
        assert_eq!((all.minutes, all.seed, all.hosts, all.load, all.dev), (10, 3, 8, 80, true));
        assert_eq!(all.out, Some("x".into()));
        assert_eq!(read("").unwrap().minutes, 60);
        assert_eq!(read("--load 100"), Err("`--load` of `soak` is 100: it is from 1 to 95".to_owned()));
        assert_eq!(read("--minutes ten"), Err("`--minutes` of `soak` needs a number".to_owned()));
    }

    #[test]
    fn the_program_is_in_a_message_of_cargo() {
        let line = r#"{"reason":"compiler-artifact","target":{"kind":["test"],"name":"soak"},"executable":"/t/soak-1","fresh":true}"#;
        assert_eq!(executable(line), Some("/t/soak-1".to_owned()));
        assert_eq!(executable(r#"{"target":{"name":"field"},"executable":"/t/field-1"}"#), None);
        assert_eq!(executable(r#"{"target":{"name":"soak"},"executable":null}"#), None);
    }
}
