//! A Lease, a candidate, and the times of the election.

use std::time::Duration;

use pingsix_translate::DEFAULT_CONTROLLER_NAME;
use thiserror::Error;

use crate::clock::{Clock, LeaseClock};
use crate::digest::short_digest;

/// The tolerated delay of a request, as a factor: the accuracy of timers.
const DRIFT_FACTOR: f64 = 1.2;

/// The longest name that is valid for all uses of a Kubernetes object.
const MAX_NAME_CHARS: usize = 63;

/// A Lease, a candidate, and the times of the election.
#[derive(Clone, Debug)]
pub struct LeaseOptions {
    /// The namespace of the Lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Our identity, unique for every process.
    pub identity: String,
    /// The time after which other replicas take over the Lease of a silent holder; in whole seconds.
    pub duration: Duration,
    /// The time of leadership after the request of a successful renewal.
    pub renew_deadline: Duration,
    /// The interval of renewals and of observations.
    ///
    /// Other replicas count [`duration`](Self::duration) from their observation of a renewal, up to this interval after
    /// the renewal. So the succession of a crashed holder takes at most both times and three requests.
    pub retry: Duration,
    /// The clock of the written renewal times. No decision depends on it.
    pub clock: Clock,
    /// The clock of decisions.
    pub lease_clock: LeaseClock,
}

impl LeaseOptions {
    /// The Lease of a controller, for a process in a Pod: 12 s, renewed every 2 s, given up after 8 s. There is
    /// another holder within 15 s of any failure.
    pub fn new(namespace: impl Into<String>, controller_name: &str, pod: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: lease_name(controller_name),
            identity: format!("{pod}_{:016x}", fastrand::u64(..)),
            duration: Duration::from_secs(12),
            renew_deadline: Duration::from_secs(8),
            retry: Duration::from_secs(2),
            clock: Clock::default(),
            lease_clock: LeaseClock::default(),
        }
    }

    /// Whether the times are consistent.
    ///
    /// # Errors
    ///
    /// When two replicas could lead at once, or none for long.
    pub fn validate(&self) -> Result<(), LeaseOptionsError> {
        let &Self { duration, renew_deadline, retry, .. } = self;
        if self.identity.is_empty() {
            return Err(LeaseOptionsError::NoIdentity);
        }
        if duration.is_zero() || duration.subsec_nanos() != 0 || i32::try_from(duration.as_secs()).is_err() {
            return Err(LeaseOptionsError::Duration { duration });
        }
        if renew_deadline >= duration {
            return Err(LeaseOptionsError::RenewDeadline { renew_deadline, duration });
        }
        if retry.is_zero() || retry.mul_f64(DRIFT_FACTOR) >= renew_deadline {
            return Err(LeaseOptionsError::Retry { retry, renew_deadline });
        }
        Ok(())
    }
}

/// Inconsistent times of a Lease.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LeaseOptionsError {
    /// The identity is empty.
    #[error("the identity is empty")]
    NoIdentity,
    /// The API counts the duration in seconds.
    #[error("the lease duration {duration:?} is not a positive number of whole seconds")]
    Duration {
        /// The given duration.
        duration: Duration,
    },
    /// A holder must give up before others may take over.
    #[error("the renew deadline {renew_deadline:?} is not shorter than the lease duration {duration:?}")]
    RenewDeadline {
        /// The given duration.
        renew_deadline: Duration,
        /// The given renew deadline.
        duration: Duration,
    },
    /// A holder must be able to renew before it gives up.
    #[error(
        "the retry period {retry:?}, with a fifth for timers, is not positive and shorter than the renew deadline {renew_deadline:?}"
    )]
    Retry {
        /// The given renew deadline.
        retry: Duration,
        /// The given interval.
        renew_deadline: Duration,
    },
}

/// The name of the Lease of a controller: readable, a DNS label, and different for different controller names.
///
/// `pingsix.io/gateway-controller` becomes `pingsix-io-gateway-controller`. A name with other characters gets a
/// digest as a suffix, since dashes replace the characters that a label cannot hold.
pub fn lease_name(controller_name: &str) -> String {
    let label: String = controller_name
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' })
        .collect();
    if controller_name == DEFAULT_CONTROLLER_NAME {
        return label;
    }
    let digest = short_digest(controller_name);
    // All of it is ASCII.
    let readable: String = label.chars().take(MAX_NAME_CHARS - digest.len() - 1).collect();
    match readable.trim_matches('-') {
        "" => format!("lease-{digest}"),
        readable => format!("{readable}-{digest}"),
    }
}
