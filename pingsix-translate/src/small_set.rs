//! A small sorted set.

use thin_vec::ThinVec;

/// A sorted set that usually has one element, and then no allocation.
///
/// A tree would allocate eleven elements for the first. A larger set moves its elements on a change, which is cheap
/// for the number of routes that share anything.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SmallSet<T> {
    One(T),
    /// Sorted; none, or several.
    Several(ThinVec<T>),
}

impl<T> SmallSet<T> {
    /// The elements in order.
    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            Self::One(element) => std::slice::from_ref(element),
            Self::Several(elements) => elements,
        }
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    /// The elements in order.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.as_slice().iter()
    }
}

impl<T: Ord> SmallSet<T> {
    /// Whether it is there.
    pub(crate) fn contains(&self, element: &T) -> bool {
        self.as_slice().binary_search(element).is_ok()
    }

    /// Adds an element, unless it is there.
    pub(crate) fn insert(&mut self, element: T) {
        let Err(at) = self.as_slice().binary_search(&element) else { return };
        *self = match std::mem::take(self) {
            Self::One(other) if at == 0 => Self::Several(vec![element, other].into()),
            Self::One(other) => Self::Several(vec![other, element].into()),
            Self::Several(elements) if elements.is_empty() => Self::One(element),
            Self::Several(mut elements) => {
                elements.insert(at, element);
                Self::Several(elements)
            }
        };
    }

    /// Takes an element out, if it is there.
    pub(crate) fn remove(&mut self, element: &T) {
        let Ok(at) = self.as_slice().binary_search(element) else { return };
        *self = match std::mem::take(self) {
            Self::One(_) => Self::default(),
            Self::Several(elements) => {
                let mut elements = Vec::from(elements);
                elements.remove(at);
                match <[T; 1]>::try_from(elements) {
                    Ok([last]) => Self::One(last),
                    Err(elements) => Self::Several(elements.into()),
                }
            }
        };
    }
}

impl<T> Default for SmallSet<T> {
    fn default() -> Self {
        Self::Several(ThinVec::default())
    }
}

impl<T: Ord> FromIterator<T> for SmallSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut elements: Vec<T> = elements.into_iter().collect();
        elements.sort_unstable();
        elements.dedup();
        match <[T; 1]>::try_from(elements) {
            Ok([only]) => Self::One(only),
            Err(mut elements) => {
                elements.shrink_to_fit();
                Self::Several(elements.into())
            }
        }
    }
}

impl<'f, T> IntoIterator for &'f SmallSet<T> {
    type Item = &'f T;
    type IntoIter = std::slice::Iter<'f, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::rngs::SmallRng;
    use rand::{Rng as _, SeedableRng as _};

    use super::*;

    #[test]
    fn it_is_a_sorted_set() {
        let mut rng = SmallRng::seed_from_u64(7);
        let (mut few, mut model) = (SmallSet::default(), BTreeSet::new());
        for _ in 0..2_000 {
            let element: u8 = rng.random_range(0..4);
            if rng.random() {
                few.insert(element);
                model.insert(element);
            } else {
                few.remove(&element);
                model.remove(&element);
            }
            assert!(few.iter().eq(&model));
            assert_eq!(few, model.iter().copied().collect());
            assert_eq!(
                (few.is_empty(), few.contains(&element)),
                (model.is_empty(), model.contains(&element))
            );
        }
    }
}
