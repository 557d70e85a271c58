//! The owners for which a rotation of the feed's authority waits.
//!
//! A step of a rotation waits for each data plane whose Secret can be written, and for each other data plane that could
//! lose a feed ([`Authorities::waits_for`]). An Event of the owner, a metric and an annotation of the authority's Secret
//! name the latter.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use pingsix_translate::status::{Problem, Reason, Severity};
use pingsix_translate::{FieldPath, ObjectKey};

use super::{Provisioner, names};
use crate::pki::{Authorities, Edition};
use crate::provision::ChildKind;

/// Whether the data planes of an owner know the authorities of the feed.
#[derive(Debug, PartialEq, Eq)]
enum AuthorityRollout {
    /// They do, or have no feed to lose.
    Yes,
    /// They will.
    Soon,
    /// Their Secret cannot be written, for this reason.
    Blocked(String),
}

impl Provisioner {
    /// Reports to the authority when all data planes have the present edition, and the owners for which it waits.
    pub(super) fn acknowledge(&mut self) {
        let Some(authority) = self.parts.authority.clone() else { return };
        let options = authority.options();
        let rotation = authority.authorities().and_then(|authorities| {
            let latest = authorities.latest_step(&options.lifetimes)?;
            Some((authorities, latest))
        });
        let Some((authorities, latest)) = rotation.filter(|_| self.leads) else {
            return self.name(&BTreeMap::new(), None);
        };
        let wanted = self.parts.wanted.borrow().clone();
        if !self.children.is_listed() || !wanted.is_complete {
            return;
        }
        let (edition, now) = (authorities.edition(), options.clock.now());
        let (mut is_everybody_told, mut blocked) = (true, BTreeMap::new());
        for owner in wanted.needs.keys().chain(&wanted.unclear) {
            match self.rollout_of(owner, &authorities, &edition, now) {
                AuthorityRollout::Yes => {}
                AuthorityRollout::Soon => is_everybody_told = false,
                AuthorityRollout::Blocked(why) => {
                    is_everybody_told = false;
                    blocked.insert(owner.clone(), why);
                }
            }
        }
        if is_everybody_told {
            authority.report_edition(edition);
        }
        self.name(&blocked, Some(latest));
    }

    fn rollout_of(
        &self,
        owner: &ObjectKey,
        authorities: &Authorities,
        edition: &Edition,
        now: Timestamp,
    ) -> AuthorityRollout {
        let state = self.owners.get(owner);
        // The running pass may still write a former edition.
        if state.is_some_and(|state| state.is_running && state.running_edition.as_ref() != Some(edition)) {
            return AuthorityRollout::Soon;
        }
        let wanted = self.parts.wanted.borrow();
        let Some(need) = wanted.needs.get(owner) else {
            let of_owner = self
                .children
                .iter()
                .filter(|(_, child)| child.owner.as_ref().is_some_and(|(of, _)| of == owner));
            let mut identities = of_owner.filter_map(|(_, child)| child.identity.as_ref());
            let why = "The parameters of the owner are invalid, so its running processes stay.";
            return if identities.any(|identity| authorities.waits_for(identity, now)) {
                AuthorityRollout::Blocked(why.to_owned())
            } else {
                AuthorityRollout::Yes
            };
        };
        // The owner has no publication. A later publication writes the identity.
        if need.infrastructure.ports.is_empty() {
            return AuthorityRollout::Yes;
        }
        let feed = (ChildKind::Secret, names::feed_secret(&need.infrastructure));
        let uid = need.infrastructure.uid.as_deref().unwrap_or_default();
        let waits = match self.children.of_owner(&feed, uid) {
            Some(secret) => {
                secret.identity.as_ref().is_some_and(|identity| authorities.waits_for(identity, now))
            }
            // Without permission to watch Secrets, an unobserved one may exist.
            None => {
                !self.children.is_watched(&feed)
                    && state.and_then(|state| state.edition.as_ref()) != Some(edition)
            }
        };
        match state.and_then(|state| state.error.clone()).filter(|_| waits) {
            Some(error) => AuthorityRollout::Blocked(error),
            None if waits => AuthorityRollout::Soon,
            None => AuthorityRollout::Yes,
        }
    }

    /// Reports exactly the owners that delay a rotation, with the latest end of the delay.
    fn name(&mut self, blocked: &BTreeMap<ObjectKey, String>, latest: Option<Timestamp>) {
        let owners: BTreeSet<ObjectKey> = blocked.keys().cloned().collect();
        for gone in self.waited_for.difference(&owners) {
            self.parts.events.delays_rotation(gone, None);
        }
        for (owner, why) in blocked {
            let until = latest.map_or_else(String::new, |latest| format!(" until {latest:.0} at the latest"));
            let message = format!(
                "The rotation of the feed's certificate authority waits for this owner{until}, \
                 because the Secrets of its data planes cannot be written: {why}"
            );
            if !self.waited_for.contains(owner) {
                tracing::warn!(%owner, reason = why, "the rotation of the feed's authority waits for an owner whose Secret cannot be written");
            }
            let problem = Problem {
                object: Arc::new(owner.clone()),
                field: FieldPath::new("spec"),
                severity: Severity::Warning,
                reason: Reason::NoResources,
                message,
            };
            self.parts.events.delays_rotation(owner, Some(problem));
        }
        if owners == self.waited_for {
            return;
        }
        if let Some(authority) = &self.parts.authority {
            authority.waits_for(owners.clone());
        }
        if let Some(metrics) = &self.parts.metrics {
            metrics.feed_authority_waits_for(owners.len());
        }
        self.waited_for = owners;
    }
}
