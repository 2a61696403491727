//! The texts that Debian wants of every package: its licences in Debian's format, and a changelog.

use std::path::Path;
use std::process::Command;

use crate::dist::{VERSION, files, licences, output};

/// The time of a package's files where neither `SOURCE_DATE_EPOCH` nor git has one: lintian refuses files of 1970.
const TIME: &str = "1767225600";

/// Returns the time of the release, in seconds since 1970: that of `SOURCE_DATE_EPOCH`, or else of the last commit.
pub fn time(root: &Path) -> String {
    let of_commit = || {
        let git = output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root)).ok()?;
        Some(String::from_utf8_lossy(&git).trim().to_owned())
    };
    let of_builder = std::env::var("SOURCE_DATE_EPOCH").ok();
    let is_time = |text: &String| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    of_builder.filter(is_time).or_else(of_commit).filter(is_time).unwrap_or_else(|| TIME.to_owned())
}

/// Returns the licences in Debian's format. The Apache licence is in every Debian system; the other one is short.
///
/// # Errors
/// If a licence of the repository `root` cannot be read.
pub fn copyright(root: &Path) -> Result<String, String> {
    let holder = files::read(&root.join("LICENSE"))?;
    let holder = holder.lines().next().unwrap_or_default().trim_start_matches("Copyright ").to_owned();
    let mit = files::read(&root.join("LICENSE-MIT"))?;
    let lines = mit.lines().skip_while(|line| !line.starts_with("Permission"));
    let lines: Vec<&str> = lines.map(|line| if line.is_empty() { "." } else { line }).collect();
    let mit = format!(" {}\n", lines.join("\n "));
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: fairrate\n\
         Comment: {} beside this file has the notices of\n the packages that the programs are built with.\n\n\
         Files: *\nCopyright: {holder}\nLicense: Apache-2.0 or Expat\n\nLicense: Apache-2.0\n \
         On Debian systems the text of the Apache License, Version 2.0, is in\n /usr/share/common-licenses/Apache-2.0.\n\n\
         License: Expat\n{mit}",
        licences::FILE
    ))
}

/// Returns the changelog in Debian's format, by `maintainer` at `time`: what changes is in the project's own.
///
/// # Errors
/// If `date` cannot be run.
pub fn changelog(package: &str, maintainer: &str, time: &str) -> Result<String, String> {
    let mut date = Command::new("date");
    date.args(["--utc", "--rfc-email"]).arg(format!("--date=@{time}")).env("LC_ALL", "C");
    let date = String::from_utf8_lossy(&output(&mut date)?).trim().to_owned();
    Ok(format!(
        "{package} ({VERSION}) unstable; urgency=medium\n\n  * Version {VERSION}: see CHANGELOG.md beside this file.\n\n -- {maintainer}  {date}\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_in_debians_format() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let text = copyright(&root).unwrap();
        assert!(text.contains("\nCopyright: 2026 the fairrate authors\n"), "{text}");
        assert!(text.contains("\nLicense: Expat\n Permission is hereby granted"), "{text}");
        assert!(text.contains("\n .\n ") && text.lines().all(|line| line.len() < 100), "{text}");
        let log = changelog("fairrate-agent", "Ann <ann@example.org>", "86400").unwrap();
        assert!(log.starts_with(&format!("fairrate-agent ({VERSION}) unstable; urgency=medium\n\n  * ")), "{log}");
        assert!(log.ends_with("\n -- Ann <ann@example.org>  Fri, 02 Jan 1970 00:00:00 +0000\n"), "{log}");
        assert!(86_400 < time(&root).parse::<u64>().unwrap());
    }
}
