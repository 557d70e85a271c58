//! Admission of fronted listeners: their certificates and routes come before the rules of stream routes.

use std::collections::BTreeSet;

use super::Lowering;
use super::document::Writer;
use super::matches::StreamMatch;
use crate::lower::budget::{Share, Shares};
use crate::lower::room::Room;
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
        let (mut all, mut shares) = (Room::new(left), Shares::new(share));
        let mut written: BTreeSet<StreamKey> = BTreeSet::new();
        let mut admitted = AdmittedFronts::default();
        let mut of_gateway = Writer::new(self.backends);
        let validations =
            fronts.iter().filter_map(|front| listener(front).front.as_ref()?.validation.as_ref());
        for validation in validations {
            of_gateway.client_auth(validation);
        }
        let of_gateway = of_gateway.finish().config;
        if all.take_size(self.size_of(&of_gateway)).is_none() {
            all = Room::default();
        }
        written.extend(of_gateway.iter().map(|(key, _)| key.clone()));
        for front in fronts {
            let listener = listener(front);
            let (config, keys) = self.documents_of(front, &written);
            let size = self.size_of(&config);
            let namespace = &listener.owner.name.namespace;
            let fits = |mut room: Room| room.take_size(size).is_some();
            if fits(all) && shares.left(namespace).is_none_or(fits) {
                all.take_size(size).unwrap_or_default();
                shares.take(&listener.owner, size);
                written.extend(keys);
                admitted.fronts.insert(front.listener);
                continue;
            }
            let (reason, bound) = match share.filter(|_| fits(all)) {
                Some(share) => (Reason::ShareExceeded, share.named(namespace)),
                None => (Reason::BudgetExceeded, format!("its budget of {} bytes", budget.bytes)),
            };
            let message = format!(
                "Data plane {plane} has no room for the listener: its certificates and those of older listeners exceed \
                 {bound}. Its connections are closed."
            );
            admitted.problems.push(Refusal::new(listener.at(), reason, message).of(&listener.owner));
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
