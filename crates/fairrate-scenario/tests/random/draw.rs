//! Random numbers, and TOML built with them.

use std::fmt::{Display, Write};

use fairrate_sim::rng::{Purpose, Stream};

/// A stream of random numbers.
pub struct Draw(Stream);

impl Draw {
    /// Returns the stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(Stream::new(seed, 0, Purpose::Test))
    }

    /// Returns a number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0.below(n as u64) as usize
    }

    /// Returns a number in `lo..=hi`.
    pub fn between(&mut self, lo: usize, hi: usize) -> usize {
        lo + self.below(hi - lo + 1)
    }

    /// Returns `true` once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Returns one of `items`.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Returns `n` different ones of `items`, or all, in random order.
    pub fn some<'a, T>(&mut self, items: &'a [T], n: usize) -> Vec<&'a T> {
        let mut left: Vec<&T> = items.iter().collect();
        (0..n.min(items.len())).map(|_| left.swap_remove(self.below(left.len()))).collect()
    }
}

/// A key with its possible values, as TOML.
pub type Key = (&'static str, &'static [&'static str]);

/// A TOML document being built.
#[derive(Default)]
pub struct Toml(pub String);

impl Toml {
    /// Begins a section.
    pub fn section(&mut self, header: &str) {
        writeln!(self.0, "{header}").expect("text");
    }

    /// Writes a key with its value.
    pub fn key(&mut self, name: &str, value: impl Display) {
        writeln!(self.0, "{name} = {value}").expect("text");
    }

    /// Writes a key whose value is text.
    pub fn text(&mut self, name: &str, value: impl Display) {
        writeln!(self.0, "{name} = \"{value}\"").expect("text");
    }

    /// Writes a key with one of its values.
    pub fn any(&mut self, draw: &mut Draw, (name, values): Key) {
        self.key(name, draw.pick(values));
    }

    /// Writes each of the keys once in `n` times, with one of its values.
    pub fn maybe(&mut self, draw: &mut Draw, n: usize, keys: &[Key]) {
        for &key in keys {
            if draw.one_in(n) {
                self.any(draw, key);
            }
        }
    }

    /// Writes all of the keys, each with one of its values.
    pub fn all(&mut self, draw: &mut Draw, keys: &[Key]) {
        self.maybe(draw, 1, keys);
    }
}

/// Returns a TOML list of texts.
pub fn list<T: Display>(items: &[T]) -> String {
    let quoted: Vec<String> = items.iter().map(|item| format!("\"{item}\"")).collect();
    format!("[{}]", quoted.join(", "))
}
