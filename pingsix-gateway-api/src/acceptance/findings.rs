//! What replicas tell each other of what PingSIX refuses.
//!
//! A replica finds out what those refuse who read from it; the statuses are written by the one that leads, from which maybe
//! nobody reads. So each tells what it has found, once PingSIX has taken everything else, and the others **adopt** it: what
//! is in quarantine at one is so at all of them. They serve the same then, and whoever reads from one of them may go to
//! another; statuses and Events follow as from anything in quarantine.
//!
//! What was adopted goes with what is said by whoever has found it, and stays when that one goes: somebody has to know.
//! It ends for each when its object changes, as what was found here. Only the same version of an object is adopted.
//!
//! What is held back as it was before cannot be adopted, for nobody else knows how that was. Of that, others say what there
//! is to say, and no more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_translate::{ObjectKey, Origin};

use super::backoff::Backoff;
use super::parts::{has, only, version};
use super::sources::{parts_of, sources};
use super::{Acceptance, Quarantined};
use crate::world::OwnerSnapshot;

/// Something that PingSIX refuses, as one replica tells it to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is at fault.
    pub culprit: Culprit,
    /// What PingSIX said.
    pub said: Arc<str>,
    /// What stands for the objects as they are at fault.
    pub version: String,
}

/// What is at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Culprit {
    /// It is in quarantine.
    Source(Origin),
    /// They are held back as they were before, those that are there.
    Parts {
        /// Those that were there before, and are served as they were.
        served: BTreeSet<ObjectKey>,
        /// All others.
        absent: BTreeSet<ObjectKey>,
    },
}

/// What the other replicas have found, by replica and owner. Those that are there and found nothing are among them.
pub type Findings = BTreeMap<String, BTreeMap<ObjectKey, Vec<Finding>>>;

/// What another replica has found, and is in quarantine here as well.
#[derive(Debug)]
pub(super) struct Adopted {
    pub(super) held: Quarantined,
    /// The replica.
    from: String,
}

/// What another replica holds back.
#[derive(Debug)]
pub(super) struct ToldBack {
    pub(super) said: Arc<str>,
    pub(super) served: BTreeSet<ObjectKey>,
    pub(super) absent: BTreeSet<ObjectKey>,
}

impl Acceptance {
    /// What was found here, for others. Not before PingSIX has taken everything else: it may refuse whatever it is given.
    pub fn findings(&self) -> Vec<Finding> {
        let quarantined = self.quarantined.iter().filter(|(_, held)| held.is_proven);
        let quarantined = quarantined.map(|(source, held)| Finding {
            culprit: Culprit::Source(source.clone()),
            said: held.said.clone(),
            version: version(&held.version, &held.parts),
        });
        let held_back = self.held_back.iter().filter(|held| held.is_proven).map(|held| {
            let (served, absent) = held.parts.iter().cloned().partition(|part| has(&held.held, part));
            let version = version(&held.version, &held.parts);
            Finding { culprit: Culprit::Parts { served, absent }, said: held.said.clone(), version }
        });
        quarantined.chain(held_back).collect()
    }

    /// Takes in what other replicas have found of an owner, of which this is the newest.
    pub fn learn(&mut self, owner: &ObjectKey, findings: &Findings, newest: &OwnerSnapshot) {
        self.told_back.clear();
        // What is being looked for here is found here.
        if self.search.is_some() {
            return;
        }
        self.release_what_changed(newest);
        let mut told: BTreeMap<&Origin, Vec<(&String, &Finding)>> = BTreeMap::new();
        let of_owner = findings.iter().filter_map(|(replica, of)| Some((replica, of.get(owner)?)));
        for (replica, finding) in of_owner.flat_map(|(replica, of)| of.iter().map(move |one| (replica, one)))
        {
            match &finding.culprit {
                Culprit::Source(source) => {
                    told.entry(source).or_default().push((replica, finding));
                }
                Culprit::Parts { served, absent } => {
                    let parts = served.union(absent).cloned().collect();
                    if version(newest, &parts) == finding.version {
                        let (served, absent) = (served.clone(), absent.clone());
                        self.told_back.push(ToldBack { said: finding.said.clone(), served, absent });
                    }
                }
            }
        }
        for (source, adopted) in std::mem::take(&mut self.adopted) {
            if let Some([(replica, _), ..]) = told.get(&source).map(Vec::as_slice) {
                // Of which version is not asked: this replica may be behind.
                self.adopted.insert(source, Adopted { from: (*replica).clone(), ..adopted });
            } else if !findings.contains_key(&adopted.from) {
                // Nobody else is left who knows.
                self.quarantined.entry(source).or_insert(adopted.held);
            }
        }
        for (source, (replica, finding)) in
            told.into_iter().flat_map(|(source, by)| by.into_iter().map(move |by| (source, by)))
        {
            if let Some(held) = self.adopt(source, finding, newest) {
                self.adopted.insert(source.clone(), Adopted { held, from: replica.clone() });
            }
        }
    }

    fn adopt(&self, source: &Origin, finding: &Finding, newest: &OwnerSnapshot) -> Option<Quarantined> {
        let parts = parts_of(source);
        let is_known = self.quarantined.contains_key(source)
            || self.adopted.contains_key(source)
            || self.held_back.iter().any(|held| !held.parts.is_disjoint(&parts));
        let is_there = || parts.iter().any(|part| sources(newest, part).contains(source));
        if is_known || !is_there() || version(newest, &parts) != finding.version {
            return None;
        }
        let version = only(newest, &parts);
        let (said, retries) = (finding.said.clone(), Backoff::default());
        Some(Quarantined { said, retries, parts, version, is_proven: true })
    }

    /// What other replicas hold back, with what PingSIX said.
    pub(super) fn told_back(&self) -> impl Iterator<Item = (&ObjectKey, &str)> {
        self.told_back.iter().flat_map(|told| told.served.union(&told.absent).map(|part| (part, &*told.said)))
    }

    /// PingSIX has taken everything but what is at fault.
    pub(super) fn prove(&mut self) {
        self.quarantined.values_mut().for_each(|held| held.is_proven = true);
        self.held_back.iter_mut().for_each(|held| held.is_proven = true);
    }
}
