//! Counts by key, without keys that count zero.

use std::borrow::Borrow;
use std::collections::BTreeMap;

/// Lowers the count of a key, if there is one. Returns whether the key is gone with it.
pub(crate) fn decrement<K, Q>(counts: &mut BTreeMap<K, usize>, key: &Q) -> bool
where
    K: Borrow<Q> + Ord,
    Q: Ord + ?Sized,
{
    let Some(count) = counts.get_mut(key) else { return false };
    *count -= 1;
    let is_gone = *count == 0;
    if is_gone {
        counts.remove(key);
    }
    is_gone
}
