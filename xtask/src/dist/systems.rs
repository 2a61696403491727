//! The systems that a release runs on, as its programs say.

use std::fmt::Write;
use std::path::Path;

use super::files;

/// The oldest version of glibc that has all that a program uses.
type Glibc = (u32, u32);

/// Returns a sentence or two about the systems that the programs in `bin` of `stage` run on.
///
/// # Errors
/// If a program cannot be read.
pub fn text(stage: &Path) -> Result<String, String> {
    let dir = stage.join("bin");
    let mut programs = Vec::new();
    for path in if dir.is_dir() { files::all_below(&dir)? } else { Vec::new() } {
        let bytes = std::fs::read(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        programs.extend(glibc(&bytes).map(|glibc| (files::name(&path), glibc)));
    }
    Ok(sentence(&programs))
}

/// Returns the sentences for programs and the version that each needs.
fn sentence(programs: &[(String, Glibc)]) -> String {
    let mut text = format!("It runs on {} Linux", std::env::consts::ARCH.replace('_', "-"));
    if let Some((major, minor)) = programs.iter().map(|(_, glibc)| *glibc).min() {
        let _ = write!(text, " with glibc {major}.{minor} or later (`ldd --version`)");
        for (name, (a, b)) in programs.iter().filter(|(_, glibc)| *glibc != (major, minor)) {
            let _ = write!(text, "; {name} needs {a}.{b}");
        }
    }
    text + ".\nfairrate-agent (Linux 6.3 or later) and fairrate-kernel need root, BTF, libelf and zlib; fairrate-testbed needs root."
}

/// Returns the version of glibc that the program `bytes` asks for: the largest of its symbols' versions, as
/// `GLIBC_2.34`.
fn glibc(bytes: &[u8]) -> Option<Glibc> {
    const NAME: &[u8] = b"GLIBC_";
    let version = |window: &[u8]| {
        let text = window.strip_prefix(NAME)?;
        let end = text.iter().position(|&byte| byte != b'.' && !byte.is_ascii_digit()).unwrap_or(text.len());
        let (major, minor) = std::str::from_utf8(&text[..end]).ok()?.split_once('.')?;
        Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
    };
    // A version has at most ten characters.
    (0..bytes.len()).filter_map(|at| version(&bytes[at..bytes.len().min(at + NAME.len() + 10)])).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_version_counts() {
        assert_eq!(glibc(b"x\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_PRIVATE\0GLIBC_2.9\0"), Some((2, 34)));
        assert_eq!(glibc(b"GLIBC_2.17"), Some((2, 17)));
        assert_eq!(glibc(b"static"), None);
    }

    #[test]
    fn programs_that_need_more_are_named() {
        let programs = [("a", (2, 34)), ("b", (2, 35))].map(|(name, glibc)| (name.to_owned(), glibc));
        assert!(sentence(&programs).contains("glibc 2.34 or later (`ldd --version`); b needs 2.35.\n"));
        assert!(!sentence(&[]).contains("glibc"));
    }
}
