//! `fairrate-picture IN.svg OUT.pdf`: the program that `fairrate figure --format` calls.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use fairrate_picture::{Format, convert};

#[derive(Parser)]
#[command(version, about = "Turns an SVG into a PDF or a PNG, by the ending of the output's name")]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
struct Cli {
    #[command(flatten)]
    picture: Option<Picture>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Prints completions for a shell
    Completions {
        /// Shell to complete for
        shell: clap_complete::Shell,
    },
    /// Writes the manual page
    Man {
        /// Directory for fairrate-picture.1
        #[arg(long, value_name = "DIR", default_value = ".")]
        out: PathBuf,
    },
}

#[derive(clap::Args)]
struct Picture {
    /// The SVG
    svg: PathBuf,
    /// The picture to write, as figure.pdf or figure.png
    out: PathBuf,
    /// Pixels of a PNG to a unit of the SVG
    #[arg(long, default_value_t = 2.0)]
    scale: f32,
}

fn main() -> ExitCode {
    let result = match Cli::parse() {
        Cli { command: Some(Command::Completions { shell }), .. } => completions(shell),
        Cli { command: Some(Command::Man { out }), .. } => man(&out),
        Cli { picture: Some(picture), .. } => run(&picture),
        Cli { picture: None, command: None } => Err("give an SVG and the picture to write".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

/// Prints the completions for `shell`.
fn completions(shell: clap_complete::Shell) -> Result<(), String> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "fairrate-picture", &mut text);
    std::io::stdout().write_all(&text).map_err(|e| format!("writing completions failed: {e}"))
}

/// Writes the manual pages to the directory `out`.
fn man(out: &Path) -> Result<(), String> {
    let written = std::fs::create_dir_all(out).and_then(|()| clap_mangen::generate_to(Cli::command(), out));
    written.map_err(|e| format!("writing `{}` failed: {e}", out.display()))
}

fn run(cli: &Picture) -> Result<(), String> {
    let format = match cli.out.extension().and_then(|ending| ending.to_str()) {
        Some("pdf") => Format::Pdf,
        Some("png") if 0.1 <= cli.scale && cli.scale <= 20.0 => Format::Png(cli.scale),
        Some("png") => return Err(format!("a scale of {} is out of range: write one from 0.1 to 20", cli.scale)),
        _ => return Err(format!("`{}` ends neither in .pdf nor in .png", cli.out.display())),
    };
    let failed = |doing: &str, path: &Path, e: std::io::Error| format!("{doing} `{}` failed: {e}", path.display());
    let svg = std::fs::read_to_string(&cli.svg).map_err(|e| failed("reading", &cli.svg, e))?;
    let bytes = convert(&svg, format, &[]).map_err(|e| format!("`{}`: {e}", cli.svg.display()))?;
    std::fs::write(&cli.out, bytes).map_err(|e| failed("writing", &cli.out, e))
}
