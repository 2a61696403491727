//! Tells the crate, for each figure, a hash of the sources by which its runs are made and read: those of its own file, of what
//! its paper's figures share, and of what all figures share; and for each paper one of those without the first. What makes runs go is hashed by `fairrate-scenario`.

use std::fmt::Write;
use std::hash::Hasher;
use std::path::{Path, PathBuf};

use twox_hash::XxHash64;

/// What all figures share, from the crate's directory on.
const SHARED: [&str; 5] =
    ["src/experiment.rs", "src/points.rs", "src/record.rs", "src/rtts.rs", "../fairrate-report/src/stats.rs"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src");
    let mut out = String::from("&[\n");
    for (id, hash) in figures().unwrap_or_else(|e| panic!("cannot read the sources: {e}")) {
        let _ = writeln!(out, "    (\"{id}\", \"{hash}\"),");
    }
    let target = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("sources.rs");
    std::fs::write(target, out + "]\n").unwrap_or_else(|e| panic!("cannot write the hashes: {e}"));
}

/// All papers and their figures with their hashes. A figure's file has its `id: "paper/name"`.
fn figures() -> std::io::Result<Vec<(String, String)>> {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut all = String::new();
    for file in SHARED.map(|file| root.join(file)) {
        println!("cargo:rerun-if-changed={}", file.display());
        all += &std::fs::read_to_string(file)?;
    }
    let mut figures = Vec::new();
    for paper in sorted(&root.join("src"))?.iter().filter(|path| path.is_dir()) {
        let name = paper.file_name().unwrap_or_default().to_string_lossy();
        let texts = sorted(paper)?.iter().map(std::fs::read_to_string).collect::<std::io::Result<Vec<String>>>()?;
        let shared: String = texts.iter().filter(|text| ids(text, &name).is_empty()).map(String::as_str).collect();
        figures.push((name.to_string(), hash(&[&all, &shared])));
        for text in &texts {
            let hash = hash(&[&all, &shared, text]);
            figures.extend(ids(text, &name).into_iter().map(|id| (id, hash.clone())));
        }
    }
    Ok(figures)
}

fn sorted(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = std::fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// The figures of a paper that stand in a file.
fn ids(text: &str, paper: &str) -> Vec<String> {
    let begin = format!("id: \"{paper}/");
    let rest = text.split(&begin).skip(1);
    rest.filter_map(|rest| Some(format!("{paper}/{}", rest.split_once('"')?.0))).collect()
}

fn hash(texts: &[&str]) -> String {
    let mut hash = XxHash64::with_seed(0);
    for text in texts {
        hash.write(text.as_bytes());
    }
    format!("{:016x}", hash.finish())
}
