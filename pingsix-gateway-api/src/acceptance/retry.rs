//! Periodic retries of unchanged objects in quarantine. A quarantine may be wrong, or its cause may be outside of the
//! object, such as a name that does not resolve.
//!
//! A retry is a trial with the content in force and one object of the quarantine. Meanwhile PingSIX keeps its
//! configuration, and no other delivery is pending: a retry begins when the wanted content is in force, and any
//! change ends the retry. Retries are rare, because a PingSIX that starts in that second begins with a refused configuration.

use std::collections::BTreeSet;

use pingsix_translate::snapshot::OwnerSnapshot;
use pingsix_translate::{ObjectKey, Origin};
use tokio::time::Instant;

use super::backoff::Backoff;
use super::evaluation::{Verdict, verdict};
use super::search::Content;
use super::{Acceptance, AcceptanceOutcome, DraftNumber, RefusedParts};

/// The object of a retry.
#[derive(Clone, Debug, PartialEq, Eq)]
enum RetryObject {
    Source(Origin),
    Parts(BTreeSet<ObjectKey>),
}

/// A retry.
#[derive(Debug)]
pub(super) struct Retry {
    object: RetryObject,
    /// The newest snapshot at the start of the publication.
    newest: Option<OwnerSnapshot>,
    pub(super) number: Option<DraftNumber>,
}

impl Acceptance {
    /// Begins a retry that is due, unless another publication is pending.
    pub(super) fn retry(&mut self, now: Instant) -> AcceptanceOutcome {
        let Some(last) = self.published.back() else { return AcceptanceOutcome::Nothing };
        if self.is_restoring || verdict(&self.receptions, last) != Verdict::Accepted {
            return AcceptanceOutcome::Nothing;
        }
        let sources = self.quarantined.iter_mut();
        let mut sources =
            sources.filter_map(|(source, quarantined)| quarantined.retries.is_due(now).then_some(source));
        let object = sources.next().map(|source| RetryObject::Source(source.clone())).or_else(|| {
            let parts = self.held_back.iter_mut();
            let mut parts = parts.filter_map(|refused| refused.retries.is_due(now).then_some(&refused.parts));
            parts.next().map(|parts| RetryObject::Parts(parts.clone()))
        });
        let Some(object) = object else { return AcceptanceOutcome::Nothing };
        self.retry = Some(Box::new(Retry { object, newest: None, number: None }));
        AcceptanceOutcome::Search
    }

    /// The content of a retry, if one is due and undisturbed.
    pub(super) fn retried(&mut self, newest: &OwnerSnapshot, wanted: &Content) -> Option<Content> {
        let is_in_force = self.accepted.as_ref().is_some_and(|accepted| accepted.content.is_same(wanted));
        self.is_restoring &= is_in_force;
        let retry = self.retry.as_mut()?;
        let is_undisturbed =
            is_in_force && retry.newest.as_ref().is_none_or(|before| newest.differences(before).is_empty());
        let mut content = None;
        if is_undisturbed {
            content = match &retry.object {
                RetryObject::Source(source) if wanted.quarantine.contains_key(source) => {
                    let mut content = wanted.clone();
                    content.quarantine.remove(source);
                    Some(content)
                }
                RetryObject::Parts(parts) if self.held_back.iter().any(|refused| refused.parts == *parts) => {
                    let mut snapshot = wanted.snapshot.clone();
                    snapshot.take_parts(newest, parts);
                    Some(Content { snapshot, quarantine: wanted.quarantine.clone() })
                }
                RetryObject::Source(_) | RetryObject::Parts(_) => None,
            };
            retry.newest = Some(newest.clone());
        }
        if content.is_none() {
            self.stop_retry();
            // The next publication has other content.
            self.is_restoring = is_in_force;
        }
        content
    }

    /// Ends a retry without a result.
    pub(super) fn stop_retry(&mut self) {
        let Some(retry) = self.retry.take() else { return };
        self.restore(&retry);
        if let Some(retries) = self.retries_of(&retry.object) {
            retries.postpone();
        }
    }

    /// Ends a retry that PingSIX has accepted or refused.
    pub(super) fn judge_retry(&mut self) -> AcceptanceOutcome {
        let number = self.retry.as_ref().and_then(|retry| retry.number);
        let Some(trial) = self.published.back().filter(|last| Some(last.number) == number) else {
            return AcceptanceOutcome::Nothing;
        };
        match (verdict(&self.receptions, trial), self.retry.take()) {
            (Verdict::Accepted, Some(retry)) => {
                self.accepted = self.published.back().cloned();
                let objects = match &retry.object {
                    RetryObject::Source(source) => {
                        self.quarantined.remove(source);
                        vec![(*source.object).clone()]
                    }
                    RetryObject::Parts(parts) => {
                        self.held_back.retain(|refused| refused.parts != *parts);
                        parts.iter().cloned().collect()
                    }
                };
                AcceptanceOutcome::Released(objects)
            }
            (Verdict::Refused(_), Some(retry)) => {
                self.restore(&retry);
                if let Some(retries) = self.retries_of(&retry.object) {
                    retries.failed();
                }
                AcceptanceOutcome::Search
            }
            (_, retry) => {
                self.retry = retry;
                AcceptanceOutcome::Nothing
            }
        }
    }

    /// Publishes the former content again; its acceptance is unknown until then.
    fn restore(&mut self, retry: &Retry) {
        self.is_restoring = true;
        self.published.retain(|published| Some(published.number) != retry.number);
        if let Some(last) = self.published.back_mut() {
            last.revisions.clear();
        }
    }

    fn retries_of(&mut self, object: &RetryObject) -> Option<&mut Backoff> {
        match object {
            RetryObject::Source(source) => {
                self.quarantined.get_mut(source).map(|quarantined| &mut quarantined.retries)
            }
            RetryObject::Parts(parts) => {
                let mut refused =
                    self.held_back.iter_mut().filter(|refused: &&mut RefusedParts| refused.parts == *parts);
                refused.next().map(|refused| &mut refused.retries)
            }
        }
    }
}
