//! The notes in an algorithm's map `namespaces`: for each namespace whose default it became, the default before.
//!
//! If several algorithms become the default of a namespace one after the other, the note of each names the one before
//! it. So they can be detached in any order: the last remaining one is the default, and in the end the default from
//! before all of them.

use std::collections::BTreeMap;

use libbpf_rs::{MapCore, MapHandle};

use super::directory::Directory;
use super::netns::{self, Namespace};
use super::pins::Pins;
use super::{open, read, write};
use crate::error::Error;
use crate::setup::{Algorithm, IN_KERNEL};

/// Key of the note that the algorithm was attached for all namespaces without a note.
pub(super) const ALL_OTHERS: u64 = 0;
/// Offsets of the parts of a note, and its end: the default before, the setup, the path.
const PARTS: [usize; 4] = [0, 16, 256, 512];
/// The congestion control that every kernel has, and that every user may choose.
const ALWAYS_THERE: &str = "reno";

/// A note.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Note {
    /// Congestion control that was the namespace's default before.
    pub before: String,
    /// The algorithm with its parameters, as text.
    pub setup: String,
    /// The namespace's path; empty if it has no permanent path.
    pub path: String,
}

impl Note {
    fn from_bytes(bytes: &[u8]) -> Self {
        let part = |i: usize| text(bytes.get(PARTS[i]..PARTS[i + 1]).unwrap_or_default());
        Self { before: part(0), setup: part(1), path: part(2) }
    }

    /// Returns the note in `room` bytes. Each part ends with a zero; a path that does not fit is left out.
    fn to_bytes(&self, room: usize) -> Vec<u8> {
        let mut bytes = vec![0; PARTS[3]];
        let path = if self.path.len() < PARTS[3] - PARTS[2] { &*self.path } else { "" };
        for (i, text) in [&*self.before, &*self.setup, path].into_iter().enumerate() {
            let n = text.len().min(PARTS[i + 1] - PARTS[i] - 1);
            bytes[PARTS[i]..PARTS[i] + n].copy_from_slice(&text.as_bytes()[..n]);
        }
        bytes.resize(room, 0);
        bytes
    }
}

/// All notes of an algorithm.
pub(super) struct Notes(MapHandle);

impl Notes {
    pub fn open(dir: &Directory) -> Result<Self, Error> {
        open(dir, "namespaces").map(Self)
    }

    pub fn get(&self, cookie: u64) -> Result<Option<Note>, Error> {
        Ok(read(&self.0, &cookie.to_ne_bytes())?.map(|bytes| Note::from_bytes(&bytes)))
    }

    pub fn put(&self, cookie: u64, note: &Note) -> Result<(), Error> {
        // The map of an earlier version has less room.
        write(&self.0, &cookie.to_ne_bytes(), &note.to_bytes(self.0.value_size() as usize))
    }

    pub fn remove(&self, cookie: u64) {
        // There may be none.
        let _ = self.0.delete(&cookie.to_ne_bytes());
    }

    /// Returns the notes of namespaces by the namespaces' numbers.
    pub fn of_namespaces(&self) -> Result<BTreeMap<u64, Note>, Error> {
        let cookies = self.0.keys().map(|key| u64::from_ne_bytes(key.try_into().unwrap_or_default()));
        let noted = cookies.filter(|&cookie| cookie != ALL_OTHERS).map(|cookie| Ok((cookie, self.get(cookie)?)));
        let noted = noted.collect::<Result<Vec<_>, Error>>()?;
        Ok(noted.into_iter().filter_map(|(cookie, note)| Some((cookie, note?))).collect())
    }

    /// Returns the namespaces that have a note and still exist.
    pub fn living(&self) -> Result<BTreeMap<u64, Namespace>, Error> {
        let noted = self.of_namespaces()?;
        netns::find(&noted.into_iter().map(|(cookie, note)| (cookie, note.path)).collect())
    }
}

/// Makes an algorithm the default of a namespace, after those that are its default already.
pub(super) fn take(pins: &Pins, algorithm: Algorithm, namespace: &Namespace, setup: &str) -> Result<(), Error> {
    let Some(dir) = pins.of(algorithm)? else { return Ok(()) };
    let (notes, cookie) = (Notes::open(&dir)?, namespace.cookie());
    let present = namespace.default()?;
    let before = if present == algorithm.tcp_name {
        before(&notes, cookie)?
    } else {
        leave_out(pins, algorithm, cookie)?;
        present
    };
    notes.put(cookie, &Note { before, setup: setup.to_owned(), path: namespace.lasting_path() })?;
    namespace.set_default(algorithm.tcp_name)
}

/// Restores the default that a namespace had before an algorithm, if the algorithm is the default now. Returns a
/// message if that default no longer exists.
pub(super) fn give_back(pins: &Pins, algorithm: Algorithm, namespace: &Namespace) -> Result<Option<String>, Error> {
    let Some(dir) = pins.of(algorithm)? else { return Ok(None) };
    leave_out(pins, algorithm, namespace.cookie())?;
    if namespace.default()? != algorithm.tcp_name {
        return Ok(None);
    }
    let before = before(&Notes::open(&dir)?, namespace.cookie())?;
    if namespace.set_default(&before).is_ok() {
        return Ok(None);
    }
    namespace.set_default(ALWAYS_THERE)?;
    Ok(Some(format!("{namespace} has the default `{ALWAYS_THERE}`: `{before}`, which it had before, is not there")))
}

/// Restores the default that all namespaces had before an algorithm.
pub(super) fn give_all_back(pins: &Pins, algorithm: Algorithm) -> Result<Vec<String>, Error> {
    let Some(dir) = pins.of(algorithm)? else { return Ok(Vec::new()) };
    let noted = Notes::open(&dir)?.living()?;
    let mut words = Vec::new();
    for namespace in noted.values() {
        words.extend(give_back(pins, algorithm, namespace)?);
    }
    // Namespaces made meanwhile took it from the first one.
    netns::each(|namespace| {
        if !noted.contains_key(&namespace.cookie()) {
            words.extend(give_back(pins, algorithm, namespace)?);
        }
        Ok(())
    })?;
    Ok(words)
}

/// Returns the default that a namespace had before an algorithm. A namespace without a note took its default from the
/// first namespace.
fn before(notes: &Notes, cookie: u64) -> Result<String, Error> {
    if let Some(note) = notes.get(cookie)? {
        return Ok(note.before);
    }
    let first = netns::first().map(|first| notes.get(first)).transpose()?.flatten();
    Ok(first.map_or_else(|| ALWAYS_THERE.to_owned(), |note| note.before))
}

/// Removes an algorithm from the chain of notes: a note that names it as the default before gets the one before it.
fn leave_out(pins: &Pins, algorithm: Algorithm, cookie: u64) -> Result<(), Error> {
    let Some(dir) = pins.of(algorithm)? else { return Ok(()) };
    let before = before(&Notes::open(&dir)?, cookie)?;
    for other in IN_KERNEL.into_iter().filter(|other| *other != algorithm) {
        let Some(dir) = pins.of(other)? else { continue };
        let notes = Notes::open(&dir)?;
        if let Some(note) = notes.get(cookie)?.filter(|note| note.before == algorithm.tcp_name) {
            notes.put(cookie, &Note { before: before.clone(), ..note })?;
        }
    }
    Ok(())
}

/// Returns the text up to the first zero.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|&b| b == 0).next().unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let note =
            |setup: &str, path: &str| Note { before: "bbr".to_owned(), setup: setup.to_owned(), path: path.to_owned() };
        let one = note("dctcp:g=0.1", "/run/netns/h1");
        assert_eq!(Note::from_bytes(&one.to_bytes(512)), one);
        // The map of an earlier version has no room for paths.
        assert_eq!(Note::from_bytes(&one.to_bytes(256)), note("dctcp:g=0.1", ""));
        // A text that is too long does not run into the next part, and a path that is too long is left out.
        let long = note(&"x".repeat(300), &"y".repeat(300));
        assert_eq!(Note::from_bytes(&long.to_bytes(512)), note(&"x".repeat(239), ""));
    }
}
