//! The authorities of a feed, and how one follows another.
//!
//! ```text
//!             it is time, or a request                      all processes trust it
//!  Settled ───────────────────────────────► Introducing ─────────────────────────► Retiring ───► Settled
//!  A signs                                  A signs                                B signs       B signs
//!  A is trusted                             A and B are trusted                    A and B are   B is trusted
//!                                                                                  trusted
//!                                                                  nothing that A signed is in use any more ─┘
//! ```
//!
//! The writer of the Secrets of data planes reports when all of them hold the present edition ([`Authorities::confirm_edition`]).
//! Files follow their Secret, and the servers of replicas follow ours, within the overlap ([`Lifetimes::overlap`]). The
//! overlap also covers the clock skew between leaders. So one overlap after the report, all processes have the edition,
//! and the next step is safe.
//!
//! **An unreachable data plane.** A step waits for a data plane only while its Secret holds an unexpired certificate of
//! a trusted authority ([`Authorities::waits_for`]). Without such a certificate, its feed is closed for another reason,
//! and the step takes nothing from it. All certificates from before a phase expire within their lifetime. So a phase
//! ends a lifetime and an overlap after its begin at the latest ([`Authorities::latest_step`]), even without a leader
//! that reports.
//!
//! **Processes that follow the rules accept each other.** While Introducing, only A signs, and all trust A. B signs
//! after all trust B. While Retiring, all trust both, until each holder of a certificate of A has one of B in its
//! files. Then the trust in A ends, and certificates of A are out of use. The test
//! `peers_that_keep_to_the_rules_never_refuse_each_other` checks this with any clocks and any order of events.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::IssueError;
use super::authority::{Authority, accepts_client};
use super::certificate::Certificate;
use crate::digest::short_digest;

/// The shortest lifetime of an authority in multiples of a certificate's lifetime and an overlap. The rotation begins
/// with a third of the lifetime left, and each of its two steps may have to wait until certificates expire.
const MIN_LIFETIMES_PER_AUTHORITY: u32 = 6;

/// No authority is good for longer.
const MAX_AUTHORITY_LIFETIME: Duration = Duration::from_hours(100 * 365 * 24);

/// The lifetime of certificates, and the time of their distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    authority: Duration,
    certificate: Duration,
    overlap: Duration,
}

/// The times are inconsistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LifetimesError {
    /// A certificate would be valid for less than a second.
    #[error("a certificate has to be good for a second at least")]
    Certificate,
    /// An authority would be valid for longer than a century.
    #[error("an authority may not be good for longer than 100 years")]
    Authority,
    /// An authority could expire before all its certificates are replaced.
    #[error(
        "an authority has to be good for at least six times as long as a certificate and the overlap together"
    )]
    TooShort,
}

impl Default for Lifetimes {
    /// An authority is valid for ten years, a certificate for 90 days, and all processes know a change after ten
    /// minutes.
    fn default() -> Self {
        let day = Duration::from_hours(24);
        Self { authority: 3_650 * day, certificate: 90 * day, overlap: Duration::from_mins(10) }
    }
}

impl Lifetimes {
    /// Custom times: the lifetimes of an authority and of a certificate, and the longest time until a change of a
    /// Secret is in the files of Pods and known to all replicas.
    ///
    /// # Errors
    /// [`LifetimesError`] when they do not go together.
    pub fn new(
        authority: Duration,
        certificate: Duration,
        overlap: Duration,
    ) -> Result<Self, LifetimesError> {
        if certificate < Duration::from_secs(1) {
            return Err(LifetimesError::Certificate);
        }
        if authority > MAX_AUTHORITY_LIFETIME {
            return Err(LifetimesError::Authority);
        }
        if authority < certificate.saturating_add(overlap).saturating_mul(MIN_LIFETIMES_PER_AUTHORITY) {
            return Err(LifetimesError::TooShort);
        }
        Ok(Self { authority, certificate, overlap })
    }

    /// The lifetime of an authority.
    pub const fn authority(&self) -> Duration {
        self.authority
    }

    /// The lifetime of a certificate.
    pub const fn certificate(&self) -> Duration {
        self.certificate
    }

    /// The longest time from a write until all processes know it.
    pub const fn overlap(&self) -> Duration {
        self.overlap
    }
}

/// The edition for data planes: the trusted authorities, and the signing one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edition(String);

/// The authorities of a feed: the one that signs, and another one that is introduced or retired. The module explains
/// both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorities {
    signing: Authority,
    phase: Phase,
    /// The last handled request for a rotation.
    last_request: Option<String>,
}

/// The phase of a rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Settled,
    Introducing { next: Authority, progress: PhaseProgress },
    Retiring { previous: Certificate, progress: PhaseProgress },
}

/// The progress of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PhaseProgress {
    /// The time of its begin.
    pub(super) since: Timestamp,
    /// The time of the first report that every data plane has the edition.
    #[serde(default, rename = "told", skip_serializing_if = "Option::is_none")]
    pub(super) confirmed_at: Option<Timestamp>,
}

impl PhaseProgress {
    const fn begin(now: Timestamp) -> Self {
        Self { since: now, confirmed_at: None }
    }

    /// The time at which all processes have the edition, or hold no valid certificate from before.
    fn end(&self, lifetimes: &Lifetimes) -> Timestamp {
        let latest = self.latest(lifetimes);
        self.confirmed_at.map_or(latest, |confirmed| latest.min(later(confirmed, lifetimes.overlap)))
    }

    /// The time at which all certificates from before the phase have expired.
    fn latest(&self, lifetimes: &Lifetimes) -> Timestamp {
        later(self.since, lifetimes.certificate.saturating_add(lifetimes.overlap))
    }
}

impl Authorities {
    /// A single new authority. A pending request for a rotation counts as handled.
    ///
    /// # Errors
    /// [`IssueError`] when no certificate can be made.
    pub fn new(now: Timestamp, request: Option<&str>, lifetimes: &Lifetimes) -> Result<Self, IssueError> {
        let signing = Authority::new(now, lifetimes.authority)?;
        Ok(Self::of(signing, Phase::Settled, request.map(str::to_owned)))
    }

    pub(super) const fn of(signing: Authority, phase: Phase, last_request: Option<String>) -> Self {
        Self { signing, phase, last_request }
    }

    /// The authority that signs.
    pub const fn signing(&self) -> &Authority {
        &self.signing
    }

    pub(super) const fn phase(&self) -> &Phase {
        &self.phase
    }

    /// The phase of the rotation, for logs.
    pub(super) const fn phase_name(&self) -> &'static str {
        match &self.phase {
            Phase::Settled => "settled",
            Phase::Introducing { .. } => "introducing",
            Phase::Retiring { .. } => "retiring",
        }
    }

    pub(super) fn last_request(&self) -> Option<&str> {
        self.last_request.as_deref()
    }

    /// The trusted authorities, the signing one first.
    pub fn trusted(&self) -> impl Iterator<Item = &Certificate> {
        let other = match &self.phase {
            Phase::Settled => None,
            Phase::Introducing { next, .. } => Some(next.certificate()),
            Phase::Retiring { previous, .. } => Some(previous),
        };
        [self.signing.certificate()].into_iter().chain(other)
    }

    /// The trusted authorities as PEM.
    pub fn bundle(&self) -> String {
        self.trusted().map(Certificate::pem).collect()
    }

    /// The edition for data planes.
    pub fn edition(&self) -> Edition {
        // The signing authority comes first.
        Edition(short_digest(&self.bundle()))
    }

    /// The latest time of the next step; `None` without a rotation.
    pub(crate) fn latest_step(&self, lifetimes: &Lifetimes) -> Option<Timestamp> {
        match &self.phase {
            Phase::Settled => None,
            Phase::Introducing { progress, .. } | Phase::Retiring { progress, .. } => {
                Some(progress.latest(lifetimes))
            }
        }
    }

    /// Whether a server that trusts these authorities accepts the holder of a certificate now.
    pub(crate) fn accept_client(&self, certificate: &Certificate, now: Timestamp) -> bool {
        accepts_client(self.trusted(), certificate, now)
    }

    /// The authorities after the next step; `None` while no step is due. A new `request` asks for a rotation.
    ///
    /// # Errors
    /// [`IssueError`] when no certificate can be made.
    pub fn step(
        &self,
        now: Timestamp,
        request: Option<&str>,
        lifetimes: &Lifetimes,
    ) -> Result<Option<Self>, IssueError> {
        // All certificates of this authority have expired, so its removal causes no refusal.
        if self.signing.certificate().has_expired(now) {
            return Self::new(now, request, lifetimes).map(Some);
        }
        let last_request = self.last_request.clone();
        Ok(match &self.phase {
            Phase::Settled => {
                let is_asked = request.is_some() && request != self.last_request();
                if !is_asked && !self.signing.certificate().needs_renewal(now) {
                    return Ok(None);
                }
                let next = Authority::new(now, lifetimes.authority)?;
                let phase = Phase::Introducing { next, progress: PhaseProgress::begin(now) };
                Some(Self::of(self.signing.clone(), phase, request.map(str::to_owned).or(last_request)))
            }
            Phase::Introducing { next, progress } => (now >= progress.end(lifetimes)).then(|| {
                let previous = self.signing.certificate().clone();
                let phase = Phase::Retiring { previous, progress: PhaseProgress::begin(now) };
                Self::of(next.clone(), phase, last_request)
            }),
            Phase::Retiring { progress, .. } => (now >= progress.end(lifetimes))
                .then(|| Self::of(self.signing.clone(), Phase::Settled, last_request)),
        })
    }

    /// Records that every data plane has an edition; `None` if that was known.
    #[must_use]
    pub fn confirm_edition(&self, edition: &Edition, now: Timestamp) -> Option<Self> {
        let mut confirmed = self.clone();
        let (Phase::Introducing { progress, .. } | Phase::Retiring { progress, .. }) = &mut confirmed.phase
        else {
            return None;
        };
        if *edition != self.edition() || progress.confirmed_at.is_some() {
            return None;
        }
        progress.confirmed_at = Some(now);
        Some(confirmed)
    }
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}
