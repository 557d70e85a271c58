//! The order of certificates between which server names move.
//!
//! PingSIX refuses a configuration in which a server name is in two `ssls` documents. The document that loses a name
//! is therefore written before the one that gains it. Documents that exchange names form a cycle without such an
//! order: one of them is deleted first and created again in its turn.
//!
//! After a write without a result, a document may have the names of before or of after. The document then counts as one that
//! loses all of them, and that has none of its new names yet.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::{Step, UnknownDocuments};
use crate::desired::DocumentSet;
use crate::document::{Document, Key};
use crate::resource::ResourceKind;

/// Pairs of steps between which a name moves: from the first to the second.
pub(super) fn moves(
    steps: &[Step],
    current: &DocumentSet,
    unknown: &UnknownDocuments,
) -> BTreeSet<(usize, usize)> {
    let certificates = || steps.iter().enumerate().filter(|(_, step)| is_certificate(step.key()));
    let is_new = |key: &Key| current.get(key).is_none() && !unknown.contains_key(key);
    if certificates().all(|(_, step)| is_new(step.key())) {
        return BTreeSet::new();
    }
    // Several unknown documents may give one name.
    let mut given: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut taken = Vec::new();
    let no_names = BTreeSet::new();
    let mut deleted = BTreeSet::new();
    for (index, step) in certificates() {
        let is_deleted = deleted.contains(step.key());
        let published = current.get(step.key()).filter(|_| !is_deleted);
        let known = published.map(|document| names(&document.value)).unwrap_or_default();
        let possible = unknown.get(step.key()).filter(|_| !is_deleted);
        let (before, kept) = possible.map_or((&known, &known), |possible| (possible, &no_names));
        let after = match step {
            Step::Create(document) | Step::Update(document) => names(&document.value),
            Step::Delete { key, .. } => {
                deleted.insert(key);
                BTreeSet::new()
            }
        };
        taken.extend(after.difference(kept).map(|name| (name.clone(), index)));
        for name in before.difference(&after) {
            given.entry(name.clone()).or_default().push(index);
        }
    }
    let moves = taken.iter().flat_map(|(name, successor)| {
        let predecessors = given.get(name).into_iter().flatten();
        predecessors.map(|predecessor| (*predecessor, *successor))
    });
    moves.collect()
}

/// Orders the steps so that no name occurs twice. Other steps keep their positions.
pub(super) fn ordered(steps: Vec<Step>, current: &DocumentSet, unknown: &UnknownDocuments) -> Vec<Step> {
    let moves = moves(&steps, current, unknown);
    if moves.is_empty() {
        return steps;
    }
    let mut writes = TopologicalSort::new(&steps, &moves).writes().into_iter();
    let mut all = Vec::with_capacity(steps.len());
    for step in &steps {
        if !is_certificate(step.key()) {
            all.push(step.clone());
            continue;
        }
        for write in writes.by_ref() {
            match (write, &steps[write.step()]) {
                // An unknown document is created, although it may exist.
                (ScheduledWrite::DeleteEarly(_), Step::Create(document) | Step::Update(document)) => {
                    let published = current.get(&document.key).unwrap_or(document);
                    let (key, order, owner) =
                        (published.key.clone(), published.order, published.owner.clone());
                    all.push(Step::Delete { key, order, owner });
                    continue;
                }
                (ScheduledWrite::Recreate(_), Step::Update(document)) => {
                    all.push(Step::Create(document.clone()));
                }
                (
                    ScheduledWrite::DeleteEarly(_) | ScheduledWrite::Recreate(_) | ScheduledWrite::Single(_),
                    step,
                ) => all.push(step.clone()),
            }
            break;
        }
    }
    all
}

/// A write in the sorted order.
#[derive(Clone, Copy, Debug)]
enum ScheduledWrite {
    Single(usize),
    /// Its document is deleted before its turn.
    DeleteEarly(usize),
    /// Its document was deleted early.
    Recreate(usize),
}

impl ScheduledWrite {
    const fn step(self) -> usize {
        match self {
            Self::Single(step) | Self::DeleteEarly(step) | Self::Recreate(step) => step,
        }
    }
}

/// Topological sort of steps.
struct TopologicalSort {
    /// For each step, the unwritten steps from which it gains a name.
    predecessors: BTreeMap<usize, BTreeSet<usize>>,
    /// For each step, the steps that gain a name from it.
    successors: BTreeMap<usize, BTreeSet<usize>>,
    /// Steps without dependencies.
    ready: BTreeSet<usize>,
    /// Steps with dependencies.
    waiting: BTreeSet<usize>,
}

impl TopologicalSort {
    fn new(steps: &[Step], moves: &BTreeSet<(usize, usize)>) -> Self {
        let mut order = Self {
            predecessors: BTreeMap::new(),
            successors: BTreeMap::new(),
            ready: BTreeSet::new(),
            waiting: BTreeSet::new(),
        };
        for &(predecessor, successor) in moves {
            order.predecessors.entry(successor).or_default().insert(predecessor);
            order.successors.entry(predecessor).or_default().insert(successor);
        }
        for (index, _) in steps.iter().enumerate().filter(|(_, step)| is_certificate(step.key())) {
            let waits = order.predecessors.contains_key(&index);
            if waits { &mut order.waiting } else { &mut order.ready }.insert(index);
        }
        order
    }

    fn writes(mut self) -> Vec<ScheduledWrite> {
        let mut writes = Vec::new();
        let mut early = BTreeSet::new();
        loop {
            if let Some(step) = self.ready.pop_first() {
                writes.push(if early.contains(&step) {
                    ScheduledWrite::Recreate(step)
                } else {
                    ScheduledWrite::Single(step)
                });
                self.complete(step);
            } else if let Some(step) = self.in_cycle() {
                writes.push(ScheduledWrite::DeleteEarly(step));
                early.insert(step);
                self.complete(step);
            } else {
                return writes;
            }
        }
    }

    /// Removes a written step from the dependencies of others.
    fn complete(&mut self, step: usize) {
        for successor in self.successors.remove(&step).unwrap_or_default() {
            let Some(predecessors) = self.predecessors.get_mut(&successor) else { continue };
            predecessors.remove(&step);
            if predecessors.is_empty() && self.waiting.remove(&successor) {
                self.ready.insert(successor);
            }
        }
    }

    /// A step on a cycle, when no step is ready.
    fn in_cycle(&self) -> Option<usize> {
        let mut step = *self.waiting.first()?;
        let mut seen = BTreeSet::new();
        while seen.insert(step) {
            step = *self.predecessors.get(&step)?.first()?;
        }
        Some(step)
    }
}

/// The steps for a target that applies all at once: only the last step of a key counts, so early deletions are left
/// out.
pub(crate) fn net_steps(steps: &[Step]) -> impl Iterator<Item = &Step> {
    let is_deleted = |step: &Step| matches!(step, Step::Delete { .. }) && is_certificate(step.key());
    let mut created: BTreeSet<&Key> = BTreeSet::new();
    // Most plans delete no certificate.
    if steps.iter().any(is_deleted) {
        let certificates =
            steps.iter().filter(|step| matches!(step, Step::Create(_)) && is_certificate(step.key()));
        created.extend(certificates.map(Step::key));
    }
    steps.iter().filter(move |step| !is_deleted(step) || !created.contains(step.key()))
}

/// The server names of a certificate; none of another document.
pub(crate) fn server_names(document: &Document) -> BTreeSet<String> {
    if is_certificate(&document.key) { names(&document.value) } else { BTreeSet::new() }
}

fn is_certificate(key: &Key) -> bool {
    ResourceKind::of(key).is_ok_and(|(kind, _)| kind == ResourceKind::Ssl)
}

/// The server names of a document, in the case in which PingSIX compares them.
fn names(value: &[u8]) -> BTreeSet<String> {
    #[derive(Default, Deserialize)]
    struct Ssl {
        #[serde(default)]
        snis: Vec<String>,
    }
    let Ssl { snis } = serde_json::from_slice(value).unwrap_or_default();
    snis.into_iter().map(|name| name.to_ascii_lowercase()).collect()
}
