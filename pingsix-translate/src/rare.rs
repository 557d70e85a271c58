//! A list that is nearly always empty.

use std::ops::{Deref, DerefMut};

/// A list for what few of many things have: it takes a word where there is nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rare<T>(
    #[allow(
        clippy::box_collection,
        reason = "the box is a third as large as what it holds, and mostly not there"
    )]
    Option<Box<Vec<T>>>,
);

impl<T> Rare<T> {
    /// Adds an element at the end.
    pub(crate) fn push(&mut self, element: T) {
        self.0.get_or_insert_default().push(element);
    }
}

impl<T> Deref for Rare<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0.as_deref().map(Vec::as_slice).unwrap_or_default()
    }
}

impl<T> DerefMut for Rare<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.0.as_deref_mut().map(Vec::as_mut_slice).unwrap_or_default()
    }
}

impl<T> Default for Rare<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> From<Vec<T>> for Rare<T> {
    fn from(mut elements: Vec<T>) -> Self {
        // Most often there is one, and room for four.
        elements.shrink_to_fit();
        Self(Some(elements).filter(|elements| !elements.is_empty()).map(Box::new))
    }
}

impl<T> From<Rare<T>> for Vec<T> {
    fn from(elements: Rare<T>) -> Self {
        elements.0.map(|elements| *elements).unwrap_or_default()
    }
}

impl<T> FromIterator<T> for Rare<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        Vec::from_iter(elements).into()
    }
}

impl<'r, T> IntoIterator for &'r Rare<T> {
    type Item = &'r T;
    type IntoIter = std::slice::Iter<'r, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_list_and_a_word_when_empty() {
        let mut rare = Rare::from(Vec::new());
        assert_eq!((rare.len(), &rare), (0, &Rare::default()));
        rare.push(1);
        rare.push(2);
        rare[0] = 3;
        assert_eq!(rare.iter().collect::<Vec<_>>(), [&3, &2]);
        assert_eq!(rare, [3, 2].into_iter().collect());
        assert_eq!(size_of::<Rare<u8>>(), size_of::<usize>());
    }
}
