//! Lines of figures.

/// A line: an algorithm with its settings.
#[derive(Clone, Copy)]
pub struct Variant {
    /// The line's part of claims' names.
    pub id: &'static str,
    /// Name in pictures.
    pub line: &'static str,
    pub cc: &'static str,
    pub sets: &'static [(&'static str, &'static str)],
}

impl Variant {
    /// Returns an algorithm without changes, as in the paper.
    pub const fn of(cc: &'static str) -> Self {
        Self { id: cc, line: cc, cc, sets: &[] }
    }

    /// Returns the variant under other names, with `sets` as the scenario's changed keys.
    pub const fn with(
        self,
        id: &'static str,
        line: &'static str,
        sets: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self { id, line, cc: self.cc, sets }
    }
}
