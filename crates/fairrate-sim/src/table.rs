//! Vectors indexed by number types.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Index, IndexMut};

use crate::huge_pages;
use crate::ids::Number;
use crate::prefetch::Cache;

/// The values of all things of a kind, by their number `I`. As a slice it can be iterated, but not indexed by other
/// numbers.
#[derive(Clone, Debug)]
pub struct Table<I, T> {
    values: Vec<T>,
    by: PhantomData<I>,
}

impl<I: Number, T> Table<I, T> {
    /// Appends a value; returns its number.
    pub fn push(&mut self, value: T) -> I {
        self.values.push(value);
        I::from_index(self.values.len() - 1)
    }

    /// Returns a value, if there is one of this number.
    #[inline]
    pub fn get(&self, number: I) -> Option<&T> {
        self.values.get(number.index())
    }

    /// Returns a value as mutable, if there is one of this number.
    #[inline]
    pub fn get_mut(&mut self, number: I) -> Option<&mut T> {
        self.values.get_mut(number.index())
    }

    /// Returns `n` values, from that of number `first` on, as mutable.
    #[inline]
    pub fn run_mut(&mut self, first: I, n: usize) -> &mut [T] {
        &mut self.values[first.index()..][..n]
    }

    /// Prefetches a value that will be read soon. There may be no value of this number.
    #[inline]
    pub fn prefetch(&self, cache: Cache, number: I) {
        cache.fetch_place(self.values.as_ptr().wrapping_add(number.index()));
    }

    /// Gives the table room for `capacity` values, in large pages if that is large.
    pub fn grow(&mut self, capacity: usize) {
        huge_pages::grow(&mut self.values, capacity);
    }

    /// Returns the number of values there is room for.
    pub fn capacity(&self) -> usize {
        self.values.capacity()
    }

    /// Returns the numbers of all values.
    pub fn numbers(&self) -> impl ExactSizeIterator<Item = I> + use<I, T> {
        (0..self.values.len()).map(I::from_index)
    }

    /// Returns all values with their numbers.
    pub fn numbered(&self) -> impl Iterator<Item = (I, &T)> {
        self.numbers().zip(&self.values)
    }
}

impl<I, T> Default for Table<I, T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<I, T> From<Vec<T>> for Table<I, T> {
    fn from(values: Vec<T>) -> Self {
        Self { values, by: PhantomData }
    }
}

impl<I, T> FromIterator<T> for Table<I, T> {
    fn from_iter<V: IntoIterator<Item = T>>(values: V) -> Self {
        Vec::from_iter(values).into()
    }
}

impl<I: Number, T> Index<I> for Table<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, number: I) -> &T {
        &self.values[number.index()]
    }
}

impl<I: Number, T> IndexMut<I> for Table<I, T> {
    #[inline]
    fn index_mut(&mut self, number: I) -> &mut T {
        &mut self.values[number.index()]
    }
}

impl<'a, I, T> IntoIterator for &'a Table<I, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.values.iter()
    }
}

impl<I, T> Deref for Table<I, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.values
    }
}

impl<I, T> DerefMut for Table<I, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values
    }
}
