//! Trees that grew key by key.

/// Builds a collection anew, as small as it can be.
///
/// The nodes of a tree that keys came to in their order are half empty; one that is made of all of them has full nodes.
pub(crate) fn pack<C: Default + IntoIterator + FromIterator<C::Item>>(collection: &mut C) {
    *collection = std::mem::take(collection).into_iter().collect();
}
