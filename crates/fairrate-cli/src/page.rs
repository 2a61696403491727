//! The page of a run that goes on: `fairrate run --watch` starts the program `fairrate-watch` and hears from it.
//!
//! Two pipes are all that the two programs have in common. The page's output says its address, and `stop` when its
//! reader asks to stop the run. Its input ends with this process, and then it ends too. No file or number of a process
//! can be another's.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::drive;
use crate::external;
use crate::failure::Failure;

const NAME: &str = "fairrate-watch";
/// Time between two looks for a Ctrl-C while the page stays.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The program that serves pages.
#[derive(Debug)]
pub struct Program(PathBuf);

impl Program {
    /// Finds the program.
    ///
    /// # Errors
    /// If it is missing.
    pub fn find() -> Result<Self, Failure> {
        let program = external::program(OsStr::new(NAME));
        match Command::new(&program).arg("--version").output() {
            Ok(_) => Ok(Self(program)),
            Err(_) => Err(Failure::Usage {
                message: format!("`--watch` needs the program `{NAME}`, which is not there"),
                help: external::HOW_TO_WATCH.to_owned(),
            }),
        }
    }

    /// Starts the page of the run whose results are in `dir`, and says its address on stderr when it has one.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn start(&self, dir: &Path) -> Result<Page, Failure> {
        let mut command = Command::new(&self.0);
        command.arg("--of-run").arg(dir).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|e| Failure::io("starting", &self.0, e))?;
        let said = child.stdout.take().map(BufReader::new);
        std::thread::spawn(move || {
            for line in said.into_iter().flat_map(|said| said.lines().map_while(Result::ok)) {
                match line.as_str() {
                    "stop" => drive::stop_for_page(),
                    address => eprintln!("page        {address}"),
                }
            }
        });
        Ok(Page(child))
    }
}

/// The page of a run; it ends with the value.
#[derive(Debug)]
pub struct Page(Child);

impl Page {
    /// Waits until Ctrl-C, or until the page has ended for another reason. After an earlier Ctrl-C it does not wait.
    pub fn stay(mut self) {
        if !drive::interrupted() {
            eprintln!("the page stays until Ctrl-C");
        }
        drive::run_has_ended();
        while !drive::interrupted() && matches!(self.0.try_wait(), Ok(None)) {
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

impl Drop for Page {
    /// Ends the page: its input ends.
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
