//! Lists that copies of a configuration have in common.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A list whose copies share its memory until one of them is changed: a run of millions of flows has one list of them,
/// not one for each of those that look into it.
#[derive(Debug, PartialEq)]
pub struct Shared<T>(Arc<Vec<T>>);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T> Deref for Shared<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

/// Changing the list copies it, if others share it.
impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        Arc::make_mut(&mut self.0)
    }
}

impl<T> From<Vec<T>> for Shared<T> {
    fn from(list: Vec<T>) -> Self {
        Self(Arc::new(list))
    }
}

impl<T> FromIterator<T> for Shared<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Vec::from_iter(items).into()
    }
}

impl<'a, T> IntoIterator for &'a Shared<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T: Clone> IntoIterator for &'a mut Shared<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_share_memory_until_one_is_changed() {
        let all = Shared::from(vec![1, 2, 3]);
        let mut copy = all.clone();
        assert!(std::ptr::eq(all.as_ptr(), copy.as_ptr()));
        copy[1] = 5;
        copy.push(7);
        assert_eq!((all.to_vec(), copy.to_vec()), (vec![1, 2, 3], vec![1, 5, 3, 7]));
        let before = copy.as_ptr();
        copy[0] = 4;
        assert!(std::ptr::eq(copy.as_ptr(), before), "nobody shares it, so it is changed in place");
    }
}
