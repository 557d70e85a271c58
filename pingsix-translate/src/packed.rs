//! Trees that grew key by key.

/// Rebuilds a collection as small as possible.
///
/// The nodes of a tree with keys inserted in order are half empty; a tree built from all keys at once has full nodes.
pub(crate) fn pack<C: Default + IntoIterator + FromIterator<C::Item>>(collection: &mut C) {
    *collection = std::mem::take(collection).into_iter().collect();
}
