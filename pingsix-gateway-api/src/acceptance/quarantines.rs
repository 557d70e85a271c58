//! The exchange of quarantines between replicas.
//!
//! A replica finds the refusals of its own readers, but the leader writes the statuses, and may have no readers. So
//! each replica reports its quarantines after PingSIX has accepted the rest, and the other replicas **adopt** them: a
//! source in quarantine at one replica is so at all. All replicas then serve the same documents, and readers may move
//! between them. Statuses and Events follow as from any quarantine.
//!
//! An adopted quarantine ends with that of the replica that reported it, and stays if that replica disappears, because
//! the quarantine must survive. A change of the object ends the quarantine at each replica, as with quarantines of its
//! own. A replica adopts the same version of an object only.
//!
//! Objects that are held back in a former version cannot be adopted, because other replicas do not have that version.
//! Other replicas report the problem only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_translate::snapshot::OwnerSnapshot;
use pingsix_translate::{ObjectKey, Origin};

use super::backoff::Backoff;
use super::sources::{parts_of, sources};
use super::{Acceptance, Quarantined};
use crate::digest::short_digest;

/// A culprit that PingSIX refuses, as one replica reports it to the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quarantine {
    /// The culprit.
    pub(crate) culprit: Culprit,
    /// The message of PingSIX.
    pub(crate) message: Arc<str>,
    /// The digest of the faulty objects.
    pub(crate) version: String,
}

/// The culprit of a quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Culprit {
    /// A source in quarantine.
    Source(Origin),
    /// Objects without a source in quarantine. Each stays at its accepted version, or absent.
    Parts {
        /// The objects with a former version, which is served.
        served: BTreeSet<ObjectKey>,
        /// All others.
        absent: BTreeSet<ObjectKey>,
    },
}

/// The quarantines of the other replicas, by replica and owner. Replicas without quarantines are included.
pub(crate) type Quarantines = BTreeMap<String, BTreeMap<ObjectKey, Vec<Quarantine>>>;

/// A quarantine of another replica that counts here as well.
#[derive(Debug)]
pub(super) struct Adopted {
    pub(super) quarantined: Quarantined,
    /// The replica.
    from: String,
}

/// The objects that another replica holds back.
#[derive(Debug)]
pub(super) struct RemoteHeldBack {
    pub(super) message: Arc<str>,
    pub(super) served: BTreeSet<ObjectKey>,
    pub(super) absent: BTreeSet<ObjectKey>,
}

/// The digest of these parts, equal in every replica.
fn version(of: &OwnerSnapshot, parts: &BTreeSet<ObjectKey>) -> String {
    let texts = parts.iter().map(|part| format!("{part} {}", of.text_of(part).unwrap_or_default()));
    short_digest(&texts.collect::<Vec<_>>().join("\n"))
}

impl Acceptance {
    /// The quarantines of this replica, for others. Empty until PingSIX has accepted the rest, because PingSIX may
    /// refuse any publication at the moment.
    pub(crate) fn quarantines(&self) -> Vec<Quarantine> {
        let quarantined = self.quarantined.iter().filter(|(_, quarantined)| quarantined.is_proven);
        let quarantined = quarantined.map(|(source, quarantined)| Quarantine {
            culprit: Culprit::Source(source.clone()),
            message: quarantined.message.clone(),
            version: version(&quarantined.version, &quarantined.parts),
        });
        let held_back = self.held_back.iter().filter(|refused| refused.is_proven).map(|refused| {
            let (served, absent) =
                refused.parts.iter().cloned().partition(|part| refused.retained.has_part(part));
            let version = version(&refused.version, &refused.parts);
            Quarantine {
                culprit: Culprit::Parts { served, absent },
                message: refused.message.clone(),
                version,
            }
        });
        quarantined.chain(held_back).collect()
    }

    /// Adopts the quarantines that other replicas report for an owner. `newest` is its present snapshot.
    pub(crate) fn apply_quarantines(
        &mut self,
        owner: &ObjectKey,
        reported: &Quarantines,
        newest: &OwnerSnapshot,
    ) {
        self.remote_held_back.clear();
        // A running search here finds the culprit itself.
        if self.search.is_some() {
            return;
        }
        self.release_changed(newest);
        let mut remote: BTreeMap<&Origin, Vec<(&String, &Quarantine)>> = BTreeMap::new();
        let of_owner = reported.iter().filter_map(|(replica, of)| Some((replica, of.get(owner)?)));
        for (replica, quarantine) in
            of_owner.flat_map(|(replica, of)| of.iter().map(move |one| (replica, one)))
        {
            match &quarantine.culprit {
                Culprit::Source(source) => {
                    remote.entry(source).or_default().push((replica, quarantine));
                }
                Culprit::Parts { served, absent } => {
                    let parts = served.union(absent).cloned().collect();
                    if version(newest, &parts) == quarantine.version {
                        let (served, absent) = (served.clone(), absent.clone());
                        self.remote_held_back.push(RemoteHeldBack {
                            message: quarantine.message.clone(),
                            served,
                            absent,
                        });
                    }
                }
            }
        }
        for (source, adopted) in std::mem::take(&mut self.adopted) {
            if let Some([(replica, _), ..]) = remote.get(&source).map(Vec::as_slice) {
                // Of which version is not asked: this replica may be behind.
                self.adopted.insert(source, Adopted { from: (*replica).clone(), ..adopted });
            } else if !reported.contains_key(&adopted.from) {
                // No other replica has the quarantine any more.
                self.quarantined.entry(source).or_insert(adopted.quarantined);
            }
        }
        for (source, (replica, quarantine)) in
            remote.into_iter().flat_map(|(source, by)| by.into_iter().map(move |by| (source, by)))
        {
            if let Some(quarantined) = self.adopt(source, quarantine, newest) {
                self.adopted.insert(source.clone(), Adopted { quarantined, from: replica.clone() });
            }
        }
    }

    fn adopt(&self, source: &Origin, quarantine: &Quarantine, newest: &OwnerSnapshot) -> Option<Quarantined> {
        let parts = parts_of(source);
        let is_known = self.quarantined.contains_key(source)
            || self.adopted.contains_key(source)
            || self.held_back.iter().any(|refused| !refused.parts.is_disjoint(&parts));
        let is_there = || parts.iter().any(|part| sources(newest, part).contains(source));
        if is_known || !is_there() || version(newest, &parts) != quarantine.version {
            return None;
        }
        let version = newest.only(&parts);
        let (message, retries) = (quarantine.message.clone(), Backoff::default());
        Some(Quarantined { message, retries, parts, version, is_proven: true })
    }

    /// The objects that other replicas hold back, with the message of PingSIX.
    pub(super) fn remote_held_back(&self) -> impl Iterator<Item = (&ObjectKey, &str)> {
        self.remote_held_back
            .iter()
            .flat_map(|remote| remote.served.union(&remote.absent).map(|part| (part, &*remote.message)))
    }

    /// Marks all quarantines as proven, because PingSIX has accepted everything outside of them.
    pub(super) fn prove(&mut self) {
        self.quarantined.values_mut().for_each(|quarantined| quarantined.is_proven = true);
        self.held_back.iter_mut().for_each(|refused| refused.is_proven = true);
    }
}
