//! What many objects say alike, held once.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::route::ParentRef;

/// What many objects have in common: the name of their namespace, the Gateway of thousands of routes. Whoever holds many
/// objects has them [share](super::Identified::share) it through one of these. What nobody holds any more is forgotten.
#[derive(Debug, Default)]
pub struct Pool {
    texts: Common<str>,
    parent_refs: Common<[ParentRef]>,
}

impl Pool {
    /// Makes a text the one that others have who say the same.
    pub fn text(&mut self, text: &mut Arc<str>) {
        self.texts.share(text);
    }

    /// Makes parentRefs those that others have who say the same.
    pub fn parent_refs(&mut self, parent_refs: &mut Arc<[ParentRef]>) {
        self.parent_refs.share(parent_refs);
    }
}

#[derive(Debug)]
struct Common<T: ?Sized> {
    known: BTreeSet<Arc<T>>,
    /// How many there may be before those that nobody has any more are looked for.
    limit: usize,
}

/// Fewer are not worth a look.
const FEW: usize = 1_000;

impl<T: ?Sized> Default for Common<T> {
    fn default() -> Self {
        Self { known: BTreeSet::new(), limit: FEW }
    }
}

impl<T: Ord + ?Sized> Common<T> {
    fn share(&mut self, value: &mut Arc<T>) {
        if let Some(known) = self.known.get(value) {
            *value = known.clone();
            return;
        }
        if self.known.len() >= self.limit {
            self.known.retain(|value| Arc::strong_count(value) > 1);
            // Each is looked at as often as one like it is added.
            self.limit = FEW.max(self.known.len() * 2);
        }
        self.known.insert(value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_has_any_more_is_forgotten() {
        let mut pool = Pool::default();
        let mut kept: Arc<str> = "kept".into();
        pool.text(&mut kept);
        for number in 0..10 * FEW {
            pool.text(&mut number.to_string().into());
        }
        assert!(pool.texts.known.len() <= 2 * FEW, "{}", pool.texts.known.len());
        let mut again: Arc<str> = "kept".into();
        pool.text(&mut again);
        assert!(Arc::ptr_eq(&kept, &again));
    }
}
