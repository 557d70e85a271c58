//! Admission of fronted listeners: their certificates and routes come before the rules of stream routes.

use std::collections::{BTreeMap, BTreeSet};

use super::Lowering;
use super::document::Writer;
use super::matches::StreamMatch;
use crate::lower::Size;
use crate::lower::budget::Share;
use crate::model::{Budget, DataPlaneKey, Problem, Reason, Refusal, compare_age};
use crate::stream::{StreamConfig, StreamKey};

/// The fronted listeners that there is room for.
#[derive(Debug, Default)]
pub(super) struct AdmittedFronts {
    pub(super) fronts: BTreeSet<usize>,
    /// The others.
    pub(super) problems: Vec<Problem>,
}

impl Lowering<'_> {
    /// Admits fronted listeners, the oldest owner first, each with the certificates that no earlier one has. The
    /// authorities are those of the Gateway, so no other owner is charged for them.
    pub(super) fn admit_fronts(&self, percent: u8, plane: &DataPlaneKey, budget: Budget) -> AdmittedFronts {
        let mut fronts: Vec<&StreamMatch> = self
            .stream_matches
            .iter()
            .filter(|(_, wanted)| wanted.is_front)
            .map(|(wanted, _)| wanted)
            .collect();
        if fronts.is_empty() {
            return AdmittedFronts::default();
        }
        let listener = |front: &StreamMatch| &self.listeners[front.listener];
        fronts.sort_by(|one, other| {
            let (one, other) = ((listener(one), one.listener), (listener(other), other.listener));
            compare_age((one.0.age, &one.0.owner), (other.0.age, &other.0.owner)).then(one.1.cmp(&other.1))
        });
        let left = self.left_by_guards(budget);
        let share = Share::of(percent, left);
        let mut all = left;
        let mut namespaces: BTreeMap<&str, Size> = BTreeMap::new();
        let mut written: BTreeSet<StreamKey> = BTreeSet::new();
        let mut admitted = AdmittedFronts::default();
        let mut of_gateway = Writer::new(self.backends);
        let validations =
            fronts.iter().filter_map(|front| listener(front).front.as_ref()?.validation.as_ref());
        for validation in validations {
            of_gateway.client_auth(validation);
        }
        let of_gateway = of_gateway.finish().config;
        all = take(all, size(&of_gateway, self.prefix)).unwrap_or_default();
        written.extend(of_gateway.iter().map(|(key, _)| key.clone()));
        for front in fronts {
            let listener = listener(front);
            let (config, keys) = self.documents_of(front, &written);
            let size = size(&config, self.prefix);
            let of_namespace = share
                .map(|share| namespaces.get(&*listener.owner.name.namespace).copied().unwrap_or(share.size));
            let rest = take(all, size);
            let rest_of_namespace = of_namespace.map(|of| take(of, size));
            match (rest, rest_of_namespace) {
                (Some(rest), None | Some(Some(_))) => {
                    all = rest;
                    if let Some(rest) = rest_of_namespace.flatten() {
                        namespaces.insert(&listener.owner.name.namespace, rest);
                    }
                    written.extend(keys);
                    admitted.fronts.insert(front.listener);
                }
                (rest, _) => {
                    let (reason, bound) = match share.filter(|_| rest.is_some()) {
                        Some(share) => (Reason::ShareExceeded, share.named(&listener.owner.name.namespace)),
                        None => (Reason::BudgetExceeded, format!("its budget of {} bytes", budget.bytes)),
                    };
                    let message = format!(
                        "Data plane {plane} has no room for the listener: its certificates and those of older listeners \
                         exceed {bound}. Its connections are closed."
                    );
                    admitted.problems.push(Refusal::new(listener.at(), reason, message).of(&listener.owner));
                }
            }
        }
        admitted
    }

    /// The documents of a fronted listener without those that are written already.
    fn documents_of(
        &self,
        front: &StreamMatch,
        written: &BTreeSet<StreamKey>,
    ) -> (StreamConfig, Vec<StreamKey>) {
        let mut writer = Writer::new(self.backends);
        writer.front(front, &self.listeners[front.listener]);
        let mut config = writer.finish().config;
        let keys: Vec<StreamKey> = config.iter().map(|(key, _)| key.clone()).collect();
        for key in keys.iter().filter(|key| written.contains(*key)) {
            config.remove(key);
        }
        (config, keys)
    }
}

fn size(config: &StreamConfig, prefix: &str) -> Size {
    Size { bytes: config.size_in_bytes(prefix), matcher_entries: config.matcher_entries() }
}

/// The rest of a size; `None` if another one is larger.
fn take(from: Size, taken: Size) -> Option<Size> {
    Some(Size {
        bytes: from.bytes.checked_sub(taken.bytes)?,
        matcher_entries: from.matcher_entries.checked_sub(taken.matcher_entries)?,
    })
}
