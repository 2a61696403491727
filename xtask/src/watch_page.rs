//! `cargo xtask watch-page`: tests the page of `fairrate-watch` in a headless Chromium.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::args::Args;
use crate::cargo::{self, succeeds};

/// The directory of the tests.
const TESTS: &str = "crates/fairrate-watch/browser";
/// Names of the browser.
const CHROMIUMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// The oldest version of Node.js that the tests run on.
const NODE_MIN: u32 = 20;

/// Options of the task.
pub struct Options {
    /// `true` if the check is left out where something it needs is missing.
    if_possible: bool,
    /// `true` if times between frames are measured in place of the tests.
    measure: bool,
    /// The directory for pictures of the page.
    shots: Option<PathBuf>,
}

impl Options {
    /// Reads the options from `args`.
    ///
    /// # Errors
    /// If `--shots` has no directory.
    pub fn read(args: &mut Args) -> Result<Self, String> {
        let shots = args.values("--shots")?.pop().map(PathBuf::from);
        Ok(Self { if_possible: args.flag("--if-possible"), measure: args.flag("--measure"), shots })
    }
}

/// Builds the programs and runs the tests. Returns `true` if all pass.
///
/// # Errors
/// If something that the tests need is missing and `if_possible` is not set.
pub fn run(root: &Path, options: &Options) -> Result<bool, String> {
    let browser = match needs(root) {
        Ok(browser) => browser,
        Err(what) if options.if_possible => {
            println!("not run: {what}: the page of fairrate-watch is not tested in a browser");
            return Ok(true);
        }
        Err(what) => return Err(format!("the page of fairrate-watch cannot be tested in a browser: {what}")),
    };
    if !cargo::build(root, &["--bin", "fairrate", "--bin", "fairrate-watch", "--test", "memory"])? {
        return Ok(false);
    }
    let mut node = Command::new("node");
    node.arg(root.join(TESTS).join("test.mjs")).arg(cargo::target(root).join("debug")).arg(browser).arg(packages(root));
    if options.measure {
        node.arg("--measure");
    }
    if let Some(dir) = &options.shots {
        node.args([OsString::from("--shots"), dir.into()]);
    }
    succeeds(&mut node)
}

/// Returns the browser, after fetching the packages of the tests.
///
/// # Errors
/// The requirement that this machine lacks.
fn needs(root: &Path) -> Result<OsString, String> {
    let version = |program: &str| {
        let output = Command::new(program).arg("--version").output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let node = version("node").ok_or("needs Node.js and npm")?;
    let major = node.trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_none_or(|major| major < NODE_MIN) {
        return Err(format!("needs Node.js {NODE_MIN} or later, and {node} is there"));
    }
    let named = std::env::var_os("CHROMIUM");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = |name: &&str| std::env::split_paths(&path).map(|dir| dir.join(name)).find(|place| place.is_file());
    // Whoever starts it needs its path, and not its name alone.
    let found = CHROMIUMS.iter().find_map(places).map(PathBuf::into_os_string);
    let browser = named.or(found).ok_or("needs Chromium; CHROMIUM names it where it is not in PATH")?;
    let place = packages(root);
    let failed = |what: &str, e: std::io::Error| format!("{what} `{}`: {e}", place.display());
    std::fs::create_dir_all(&place).map_err(|e| failed("cannot make", e))?;
    for name in ["package.json", "package-lock.json"] {
        let copied = std::fs::copy(root.join(TESTS).join(name), place.join(name));
        copied.map_err(|e| failed("cannot copy to", e))?;
    }
    let mut npm = Command::new("npm");
    npm.args([
        "ci",
        "--ignore-scripts",
        "--prefer-offline",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
        "--silent",
    ]);
    if succeeds(npm.current_dir(&place))? {
        Ok(browser)
    } else {
        Err("npm cannot fetch the packages of the tests".to_owned())
    }
}

/// Returns the directory of the packages of the tests.
fn packages(root: &Path) -> PathBuf {
    cargo::target(root).join("watch-page")
}
