//! Lines of figures.

/// A line: an algorithm with something set.
#[derive(Clone, Copy)]
pub struct Variant {
    /// Its part of claims' names.
    pub id: &'static str,
    /// Its name in pictures.
    pub line: &'static str,
    pub cc: &'static str,
    pub sets: &'static [(&'static str, &'static str)],
}

impl Variant {
    /// An algorithm as the paper has it.
    pub const fn of(cc: &'static str) -> Self {
        Self { id: cc, line: cc, cc, sets: &[] }
    }

    /// The same under other names, with keys of the scenario set.
    pub const fn with(
        self,
        id: &'static str,
        line: &'static str,
        sets: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self { id, line, cc: self.cc, sets }
    }
}
