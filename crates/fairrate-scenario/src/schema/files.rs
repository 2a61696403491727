//! The files a scenario names: topology, flow lists, size distributions, and the library of an algorithm.

use std::cell::RefCell;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use fairrate_control::LibraryError;
use fairrate_sim::FileError;
use fairrate_text::nearest;

use crate::error::{Report, Site};
use crate::reader::Section;
use crate::scalar::quote;

/// Largest size of a file; a larger one is surely a mistake.
const MAX_FILE_BYTES: u64 = 4 << 30;

/// A file that belongs to a scenario, with its name in the resolved scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    /// Name beside the resolved scenario.
    pub name: String,
    /// Content: text, except for a library.
    pub content: Vec<u8>,
}

/// The place of a scenario's files.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    /// On disk: paths are relative to this directory.
    Dir(&'a Path),
    /// In memory: pairs of name and text.
    Texts(&'a [(&'a str, &'a str)]),
}

impl Place<'_> {
    fn read(self, path: &str) -> Result<String, String> {
        match self {
            Self::Dir(base) => read_regular(&base.join(path)),
            Self::Texts(texts) => {
                let found = texts.iter().find(|(name, _)| *name == path);
                found.map(|(_, text)| (*text).to_owned()).ok_or_else(no_such_file)
            }
        }
    }

    /// Returns the names of the files in the place of `path`.
    fn names_beside(self, path: &str) -> Vec<String> {
        match self {
            Self::Dir(base) => {
                let full = base.join(path);
                let entries = full.parent().and_then(|dir| std::fs::read_dir(dir).ok()).into_iter().flatten();
                entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect()
            }
            Self::Texts(texts) => texts.iter().map(|(name, _)| (*name).to_owned()).collect(),
        }
    }
}

/// The files of one scenario; those read are kept for its results.
pub(crate) struct Files<'a> {
    place: Place<'a>,
    attachments: RefCell<Vec<Attachment>>,
}

/// The text of a file and the number of its source.
pub(crate) struct Text {
    pub source: u32,
    pub text: String,
}

impl<'a> Files<'a> {
    /// Returns a reader of the files of `place`.
    pub fn new(place: Place<'a>) -> Self {
        Self { place, attachments: RefCell::new(Vec::new()) }
    }

    /// Returns the files read.
    pub fn into_attachments(self) -> Vec<Attachment> {
        self.attachments.into_inner()
    }

    /// Reads the file that `path` in `section` names. Its name in the resolved scenario will be `stem.extension`.
    pub fn read(&self, section: &mut Section<'_>, stem: &str, extension: &str) -> Option<Text> {
        self.read_from(section, "path", stem, extension)
    }

    /// Reads the file that `key` in `section` names, as [`Files::read`].
    pub fn read_from(&self, section: &mut Section<'_>, key: &str, stem: &str, extension: &str) -> Option<Text> {
        let Some(path) = section.given::<String>(key) else {
            section.missing(key, &quote(&format!("{stem}.{extension}")));
            return None;
        };
        let text = match self.place.read(&path.value) {
            Ok(text) => text,
            Err(why) => {
                let message = format!("cannot read `{}`: {why}", path.value);
                let help = match self.similar(&path.value) {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => "paths are relative to the scenario file".into(),
                };
                section.report.problem("scenario::unreadable_file", path.site, message, format!("`{key}`"), help);
                return None;
            }
        };
        let name = self.attach(stem, extension, text.clone().into_bytes());
        section.out.push(key, quote(&name));
        let source = section.report.add_source(&path.value, text.clone());
        Some(Text { source, text })
    }

    /// Returns the path and the content of the shared library that `path` names.
    pub fn library(&self, path: &str) -> Result<(PathBuf, Vec<u8>), LibraryError> {
        let Some(full) = self.library_path(path) else {
            let help = "read the scenario from its file, or name a built-in algorithm".to_owned();
            return Err(LibraryError { message: "a scenario that is no file can name no library".to_owned(), help });
        };
        let unreadable = |why| {
            let help = match self.similar(path) {
                Some(name) => format!("did you mean `{name}`?"),
                None => "paths in a scenario are relative to its file, those of `--cc` to the present directory".into(),
            };
            LibraryError { message: format!("cannot read `{path}`: {why}"), help }
        };
        let content = read_bytes(&full).map_err(unreadable)?;
        Ok((full, content))
    }

    /// Returns the full path of the library that `path` names; `None` if files are texts.
    pub fn library_path(&self, path: &str) -> Option<PathBuf> {
        match self.place {
            // Absolute, as the system's loader looks for a plain name elsewhere.
            Place::Dir(base) => std::path::absolute(base.join(path)).ok(),
            Place::Texts(_) => None,
        }
    }

    /// Keeps a file for the results; returns its name in the resolved scenario.
    pub fn attach(&self, stem: &str, extension: &str, content: Vec<u8>) -> String {
        let mut attachments = self.attachments.borrow_mut();
        if let Some(same) = attachments.iter().find(|a| a.name.starts_with(stem) && a.content == content) {
            return same.name.clone();
        }
        let n = attachments.iter().filter(|a| a.name.starts_with(stem)).count();
        let name = if n == 0 { format!("{stem}.{extension}") } else { format!("{stem}-{}.{extension}", n + 1) };
        attachments.push(Attachment { name: name.clone(), content });
        name
    }

    /// Returns the path of a file in the same directory with nearly this name.
    fn similar(&self, path: &str) -> Option<String> {
        let wanted = Path::new(path).file_name()?.to_str()?;
        let mut names = self.place.names_beside(path);
        names.sort();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let near = nearest(wanted, names.iter().copied()).filter(|near| *near != wanted)?;
        Path::new(path).with_file_name(near).to_str().map(str::to_owned)
    }
}

fn no_such_file() -> String {
    "there is no such file".to_owned()
}

fn read_regular(path: &Path) -> Result<String, String> {
    let text = String::from_utf8(read_bytes(path)?).map_err(|_| "it is not text in UTF-8".to_owned())?;
    // Some spreadsheets begin a file with a byte order mark.
    let Some(unmarked) = text.strip_prefix('\u{feff}') else { return Ok(text) };
    Ok(unmarked.to_owned())
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, String> {
    let describe = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::NotFound => no_such_file(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => e.to_string(),
    };
    let meta = std::fs::metadata(path).map_err(describe)?;
    if !meta.is_file() {
        return Err("it is no file".into());
    }
    if MAX_FILE_BYTES < meta.len() {
        return Err("it is too large".into());
    }
    let mut content = Vec::new();
    let file = std::fs::File::open(path).map_err(describe)?;
    file.take(MAX_FILE_BYTES).read_to_end(&mut content).map_err(describe)?;
    Ok(content)
}

/// Reads the text of a scenario from disk, as [`Files::read`] reads a file.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    read_regular(path)
}

/// Reports an error of a reader of text files; `fallback` is the help if the error has none.
pub(crate) fn file_problem(report: &Report, code: &'static str, file: &Text, error: &FileError, fallback: &str) {
    let start: usize = file.text.split_inclusive('\n').take(error.line.saturating_sub(1)).map(str::len).sum();
    let line = file.text[start.min(file.text.len())..].lines().next().unwrap_or_default();
    let range = match error.column {
        Some((from, to)) if to <= line.len() => start + from..start + to,
        _ => start..start + line.len(),
    };
    let help = error.help.clone().unwrap_or_else(|| fallback.to_owned());
    report.problem(code, Site::new(file.source, range), error.message.clone(), "here", help);
}

#[cfg(test)]
mod tests {
    use super::read_text;

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_text() {
        let dir = std::env::temp_dir().join(format!("fairrate-files-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let read = |content: &[u8]| {
            std::fs::write(dir.join("sizes.txt"), content).expect("it can be written");
            read_text(&dir.join("sizes.txt"))
        };
        assert_eq!(read(b"\xef\xbb\xbf1000 1\n"), Ok("1000 1\n".to_owned()));
        assert_eq!(read(b"1000 1\n"), Ok("1000 1\n".to_owned()));
        assert_eq!(read(b"\xff1000 1\n"), Err("it is not text in UTF-8".to_owned()));
        std::fs::remove_dir_all(&dir).expect("it can be removed");
    }
}
