//! Objects about which the API server has not answered, and who refers to them.

use std::collections::BTreeSet;

use pingsix_translate::{Kind, ObjectKey};
use tokio::time::Instant;

use super::Engine;
use crate::controller::Feed;
use crate::watch::Availability;

/// How many objects a line of the log names.
const NAMED: usize = 8;

impl<F: Feed + 'static> Engine<F> {
    /// Takes down what an owner refers to and nothing is known of.
    pub(super) fn awaits(&mut self, owner: &ObjectKey, awaited: BTreeSet<ObjectKey>) {
        if awaited.is_empty() {
            self.waiting.remove(owner);
        } else {
            self.waiting.insert(owner.clone(), awaited);
        }
    }

    /// Goes on without answers for which it has been waited long enough.
    pub(super) fn end_waits(&mut self, now: Instant) {
        let owners = self.parts.reconciler.end_waits(now, self.is_api_server_answering());
        for owner in &owners {
            let awaited = self.waiting.get(owner).into_iter().flatten();
            let named: Vec<String> = awaited.clone().take(NAMED).map(ToString::to_string).collect();
            tracing::warn!(
                %owner, objects = awaited.count(), ?named,
                "the API server does not say whether these objects exist; what refers to them fails closed"
            );
        }
        self.push(owners);
    }

    /// Whether the API server answers at all. It is asked for Services all the time, which it serves itself, as it does
    /// Secrets and ConfigMaps; other kinds may fail alone.
    fn is_api_server_answering(&self) -> bool {
        !matches!(self.availability.get(&Kind::Service), Some(Availability::Unreachable { .. }))
    }
}
