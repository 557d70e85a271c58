//! Probation of namespaces with repeated quarantines.
//!
//! A search takes seconds, and other changes wait for it. A changed source is tried again at once, so an author who
//! mends an object need not wait. An author who changes a faulty object faster than a search ends, or creates a new one
//! each time, would keep searches going without end.
//!
//! So a namespace has a few free quarantines. With the next quarantine it is on **probation**: its ListenerSets,
//! routes, Ingresses, filters, policies, Services and Secrets stay at the versions that PingSIX accepted last, and
//! later changes of them wait. A policy whose former version would leave its targets open goes into quarantine instead,
//! so its targets fail closed ([`may_retain`]). All other changes are published without a search. The time doubles with
//! every quarantine.
//!
//! Deletions and endpoints do not wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pingsix_sink::backoff::doubled;
use pingsix_translate::snapshot::OwnerSnapshot;
use pingsix_translate::status::{Problem, Reason, Severity};
use pingsix_translate::{FieldPath, Kind, ObjectKey, Origin, Section};
use tokio::time::Instant;

use super::Acceptance;
use super::may_retain;
use super::search::Content;
use super::sources::parts_of;

/// The number of quarantines of a namespace without further consequence. The count starts anew after
/// [`QUARANTINE_MEMORY`] without a quarantine.
const FREE_QUARANTINES: u32 = 3;

/// The length of the first probation.
const FIRST_PROBATION: Duration = Duration::from_secs(10);

/// The length of the longest probation.
const MAX_PROBATION: Duration = Duration::from_mins(1);

/// The time without a quarantine after which quarantines are forgotten.
const QUARANTINE_MEMORY: Duration = Duration::from_mins(10);

/// The quarantines and the probation of a namespace.
#[derive(Debug, Default)]
pub(super) struct ProbationRecord {
    quarantines: u32,
    /// The time of the last quarantine; `None` until the next tick.
    last: Option<Instant>,
    held: Option<OnProbation>,
}

/// A probation.
#[derive(Debug)]
struct OnProbation {
    /// The content that PingSIX accepted before the quarantine.
    content: Content,
    message: Arc<str>,
    /// The end; `None` until the next tick.
    end: Option<Instant>,
}

/// Whether changes of this kind are held back. PingSIX cannot refuse objects of other kinds, or tenants do not own
/// them.
const fn is_held(kind: Kind) -> bool {
    kind.has_requests()
        || kind.is_policy()
        || matches!(
            kind,
            Kind::ListenerSet | Kind::Ingress | Kind::HttpRouteFilter | Kind::Service | Kind::Secret
        )
}

/// The namespaces that a quarantine in these parts is charged to: those of routes and Ingresses, because other tenants
/// may own the referenced objects. Without routes and Ingresses, those of all parts.
fn charged(parts: &BTreeSet<ObjectKey>) -> BTreeSet<Arc<str>> {
    let of = |is_meant: &dyn Fn(Kind) -> bool| -> BTreeSet<Arc<str>> {
        parts.iter().filter(|part| is_meant(part.kind)).map(|part| part.name.namespace.clone()).collect()
    };
    let of_routes = of(&|kind| kind.has_requests() || kind == Kind::Ingress);
    if of_routes.is_empty() { of(&is_held) } else { of_routes }
}

impl Acceptance {
    /// Charges a quarantine in these parts. `before` is accepted content without them.
    pub(super) fn charge(&mut self, parts: &BTreeSet<ObjectKey>, message: &Arc<str>, before: &Content) {
        if self.accepted.is_none() {
            return;
        }
        for namespace in charged(parts) {
            let record = self.records.entry(namespace).or_default();
            record.quarantines = record.quarantines.saturating_add(1);
            record.last = None;
            if record.quarantines > FREE_QUARANTINES {
                record.held =
                    Some(OnProbation { content: before.clone(), message: message.clone(), end: None });
            }
        }
    }

    /// Ends probations that have reached their time. Returns whether other content is to be published.
    pub(super) fn end_probations(&mut self, now: Instant) -> bool {
        let mut has_ended = false;
        self.records.retain(|_, record| {
            let last = *record.last.get_or_insert(now);
            let time =
                doubled(FIRST_PROBATION, record.quarantines.saturating_sub(FREE_QUARANTINES), MAX_PROBATION);
            let is_over = record.held.as_mut().is_some_and(|held| now >= *held.end.get_or_insert(now + time));
            if is_over {
                record.held = None;
                has_ended = true;
            }
            record.held.is_some() || now.duration_since(last) < QUARANTINE_MEMORY
        });
        has_ended
    }

    /// Restores the former version of held-back parts, and records them.
    pub(super) fn hold_on_probation(&mut self, newest: &OwnerSnapshot, content: &mut Content) {
        let mut waiting = BTreeMap::new();
        for record in
            self.records.iter().filter_map(|(namespace, record)| Some((namespace, record.held.as_ref()?)))
        {
            let (namespace, OnProbation { content: before, message, .. }) = record;
            let mut parts = newest.differences(&before.snapshot);
            // Accepted content of a search may have more sources in quarantine than the newest search has found.
            parts.extend(before.quarantine.keys().map(|source| (*source.object).clone()));
            parts.retain(|part| {
                is_held(part.kind) && part.name.namespace == *namespace && newest.has_part(part)
            });
            let closed = parts.extract_if(.., |part| !may_retain(newest, &before.snapshot, part));
            for part in closed {
                let source = Origin { object: Arc::new(part), section: Section::Whole };
                content.quarantine.insert(source, message.clone());
            }
            content.snapshot.take_parts(&before.snapshot, &parts);
            let is_of_them = |source: &&Origin| !parts_of(source).is_disjoint(&parts);
            let sources: Vec<Origin> = content.quarantine.keys().filter(is_of_them).cloned().collect();
            for source in sources {
                content.quarantine.remove(&source);
            }
            for source in before.quarantine.keys().filter(is_of_them) {
                content.quarantine.insert(source.clone(), message.clone());
            }
            waiting.extend(parts.into_iter().map(|part| (part, message.clone())));
        }
        self.waiting_parts = waiting;
    }

    /// The message about objects that wait.
    pub(super) fn waiting_problems(&self) -> impl Iterator<Item = Problem> {
        self.waiting_parts.iter().map(|(part, message)| Problem {
            object: Arc::new(part.clone()),
            field: FieldPath::new("spec"),
            severity: Severity::Error,
            reason: Reason::Quarantined,
            message: format!(
                "PingSIX has refused several objects of namespace {}. Changes of the namespace wait \
                 for up to a minute. The previous version of this object stays in force. PingSIX: \
                 {message}",
                part.name.namespace
            ),
        })
    }
}
