//! `fairrate-watch DIR`: the program that `fairrate watch` starts.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use fairrate_scenario::printable;
use fairrate_watch::{Error, Server};
use tokio::sync::watch;

/// Shows runs on a page of this machine's loopback
///
/// Prints the address of the page, which has a secret part, and serves it until Ctrl-C. The page shows the network with
/// utilisation, queues and pauses over time, ports and flows as series, and of two runs the difference. A run that goes
/// on is followed. Nothing is served to other machines; from afar, forward the port, as by ssh -L.
#[derive(Debug, Parser)]
#[command(name = "fairrate-watch", version, max_term_width = 100)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
struct Cli {
    #[command(flatten)]
    watch: Option<Watch>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Args)]
struct Watch {
    /// Results directory of a run, or of two that are shown beside each other
    #[arg(value_name = "DIR", required = true, num_args = 1..=2)]
    dirs: Vec<PathBuf>,
    /// Port of the loopback; 0 takes a free one
    #[arg(long, value_name = "P", default_value_t = 0)]
    port: u16,
    /// If true, the page is that of the run which started this program: it ends when its input does, and prints `stop`
    /// when the page asks
    #[arg(long, hide = true)]
    of_run: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Prints completions for a shell
    Completions {
        /// Shell to complete for
        shell: clap_complete::Shell,
    },
    /// Writes the manual page
    Man {
        /// Directory for fairrate-watch.1
        #[arg(long, value_name = "DIR", default_value = ".")]
        out: PathBuf,
    },
    /// Prints the licences of the libraries in the page
    Licences,
}

fn main() -> ExitCode {
    let result = match Cli::parse() {
        Cli { command: Some(Command::Completions { shell }), .. } => completions(shell),
        Cli { command: Some(Command::Man { out }), .. } => man(&out),
        Cli { command: Some(Command::Licences), .. } => print(fairrate_watch::LICENCES),
        Cli { watch: Some(watch), .. } => run(&watch).map_err(|error| {
            let code = if matches!(error, Error::System(_)) { 1 } else { 2 };
            (code, error.to_string())
        }),
        Cli { watch: None, command: None } => Err((2, "give the results directory of a run".to_owned())),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, message)) => {
            // Names in files of others may have characters that act on a terminal.
            eprintln!("error: {}", printable(&message));
            ExitCode::from(code)
        }
    }
}

/// Serves the page until Ctrl-C.
fn run(watch: &Watch) -> Result<(), Error> {
    let system = |e: std::io::Error| Error::System(e.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    let done = runtime.block_on(async {
        let stop: Option<fairrate_watch::Stop> = if watch.of_run { Some(Box::new(|| say("stop"))) } else { None };
        let server = Server::new(&watch.dirs, watch.port, stop).await?;
        let (end, ended) = watch::channel(false);
        say(server.address());
        if watch.of_run {
            std::thread::spawn(move || {
                input_ends();
                let _ = end.send(true);
            });
            ignore_interrupts();
        } else {
            eprintln!("Open this address in a browser of this machine. It is secret, and ends with Ctrl-C.");
            tokio::spawn(async move {
                interrupted().await;
                let _ = end.send(true);
            });
        }
        server.serve(ended).await;
        Ok(())
    });
    // Tables may be on their way into memory: nobody waits for them.
    runtime.shutdown_background();
    done
}

/// Prints a line at once. Whoever does not read it any more does not need it.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Waits until nothing more can come from the standard input: the run that holds its other end has ended.
fn input_ends() {
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
}

/// Lets Ctrl-C at a terminal, which reaches the run too, pass: the run says when the page ends.
fn ignore_interrupts() {
    tokio::spawn(async { while tokio::signal::ctrl_c().await.is_ok() {} });
}

/// Waits for Ctrl-C or SIGTERM.
async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminated) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminated.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

/// Prints the completions for `shell`.
fn completions(shell: clap_complete::Shell) -> Result<(), (u8, String)> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "fairrate-watch", &mut text);
    print(&String::from_utf8_lossy(&text))
}

/// Prints `text`.
fn print(text: &str) -> Result<(), (u8, String)> {
    std::io::stdout().write_all(text.as_bytes()).map_err(|e| (1, format!("cannot print: {e}")))
}

/// Writes the manual pages to the directory `out`.
fn man(out: &Path) -> Result<(), (u8, String)> {
    let written = std::fs::create_dir_all(out).and_then(|()| clap_mangen::generate_to(Cli::command(), out));
    written.map_err(|e| (1, format!("writing `{}` failed: {e}", out.display())))
}
