//! Limits of concurrent requests to status pages.
//!
//! A request to a silent instance takes until its timeout. A request therefore takes a permit of its owner, then a permit of
//! its namespace, then a permit of all, so that one owner cannot use the permits of others. Pages that administrators name
//! have separate permits.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use pingsix_translate::ObjectKey;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most concurrent requests to pages of one Gateway or IngressClass.
const MAX_REQUESTS_PER_OWNER: usize = 8;

/// The most concurrent requests to pages of all Gateways of a namespace.
pub(super) const MAX_REQUESTS_PER_NAMESPACE: usize = 16;

/// The most concurrent requests to pages that Gateways name or that are of their Pods. Other pages have as many.
const MAX_REQUESTS: usize = 64;

/// The semaphores of requests.
#[derive(Debug)]
pub(super) struct RequestLimits {
    all: Arc<Semaphore>,
    of_administrators: Arc<Semaphore>,
    namespaces: SemaphoreMap<Arc<str>>,
    owners: SemaphoreMap<ObjectKey>,
}

impl Default for RequestLimits {
    fn default() -> Self {
        let [all, of_administrators] = [(); 2].map(|()| Arc::new(Semaphore::new(MAX_REQUESTS)));
        Self { all, of_administrators, namespaces: SemaphoreMap::default(), owners: SemaphoreMap::default() }
    }
}

impl RequestLimits {
    /// The turn for pages that an owner names, and for pages of its Pods.
    pub(super) fn of(&mut self, owner: &ObjectKey) -> RequestSemaphores {
        let namespace = self.namespaces.of(&owner.name.namespace, MAX_REQUESTS_PER_NAMESPACE);
        RequestSemaphores(vec![self.owners.of(owner, MAX_REQUESTS_PER_OWNER), namespace, self.all.clone()])
    }

    /// The turn for pages of an owner that administrators name.
    pub(super) fn of_administrators(&mut self, owner: &ObjectKey) -> RequestSemaphores {
        RequestSemaphores(vec![self.owners.of(owner, MAX_REQUESTS_PER_OWNER), self.of_administrators.clone()])
    }
}

/// A semaphore for each key with a turn.
#[derive(Debug)]
struct SemaphoreMap<K>(BTreeMap<K, Weak<Semaphore>>);

impl<K> Default for SemaphoreMap<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Clone> SemaphoreMap<K> {
    fn of(&mut self, key: &K, count: usize) -> Arc<Semaphore> {
        if let Some(semaphore) = self.0.get(key).and_then(Weak::upgrade) {
            return semaphore;
        }
        self.0.retain(|_, semaphore| semaphore.strong_count() > 0);
        let semaphore = Arc::new(Semaphore::new(count));
        self.0.insert(key.clone(), Arc::downgrade(&semaphore));
        semaphore
    }
}

/// The semaphores of a request, in the order of acquisition. A request that waits for the last one has permits of the
/// others.
#[derive(Clone, Debug)]
pub(super) struct RequestSemaphores(Vec<Arc<Semaphore>>);

impl RequestSemaphores {
    /// Waits for a permit of each semaphore. Dropping the result releases them.
    pub(super) async fn take(&self) -> Vec<OwnedSemaphorePermit> {
        let mut taken = Vec::with_capacity(self.0.len());
        for semaphore in &self.0 {
            // The semaphores are never closed.
            taken.extend(semaphore.clone().acquire_owned().await);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use pingsix_translate::Kind;

    use super::*;

    fn gateway(namespace: &str, name: &str) -> ObjectKey {
        ObjectKey::new(Kind::Gateway, namespace, name)
    }

    /// Takes turns until one has to wait.
    fn taken(turn: &RequestSemaphores) -> Vec<Vec<OwnedSemaphorePermit>> {
        std::iter::from_fn(|| turn.take().now_or_never()).collect()
    }

    #[test]
    fn owners_and_namespaces_leave_places_to_others() {
        let mut turns = RequestLimits::default();
        let one = taken(&turns.of(&gateway("a", "one")));
        assert_eq!(one.len(), MAX_REQUESTS_PER_OWNER);
        let rest = taken(&turns.of(&gateway("a", "two"))).len() + one.len();
        assert_eq!(rest, MAX_REQUESTS_PER_NAMESPACE.min(2 * MAX_REQUESTS_PER_OWNER));
        let others: Vec<_> = ["a", "b", "c", "d", "e", "f"]
            .into_iter()
            .flat_map(|namespace| ["three", "four", "five"].map(|name| gateway(namespace, name)))
            .flat_map(|gateway| taken(&turns.of(&gateway)))
            .collect();
        assert_eq!(others.len() + one.len(), MAX_REQUESTS);
        assert_eq!(taken(&turns.of_administrators(&gateway("f", "four"))).len(), MAX_REQUESTS_PER_OWNER);
        drop((one, others));
        assert_eq!(taken(&turns.of(&gateway("z", "one"))).len(), MAX_REQUESTS_PER_OWNER);
        assert!(turns.owners.0.len() <= 2, "who has no turns is forgotten");
    }
}
