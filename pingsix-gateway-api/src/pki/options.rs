//! The options of the authority of a feed.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_sink::Scope;
use pingsix_translate::ObjectName;

use super::rotation::Lifetimes;
use crate::clock::Clock;

/// The Secret with the authorities, and their use. [`new`](Self::new) has the defaults.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AuthorityOptions {
    /// The Secret. Its readers can read the feed, so only the controller should have access.
    pub secret: ObjectName,
    /// The DNS names and IP addresses of the server. A client that connects by another name has to verify one of them:
    /// `pingsix.etcd.tls.domain`.
    pub server_names: Vec<String>,
    /// The prefixes of data planes that others run, by the Secret with their client certificate. The leader creates and
    /// renews these Secrets.
    pub clients: BTreeMap<ObjectName, BTreeSet<Scope>>,
    /// Whether the writer of the Secrets of managed data planes reports editions. Without its reports, a step of a rotation
    /// waits for the Secrets of [`clients`](Self::clients) alone. Without these Secrets either, a step waits until earlier
    /// certificates have expired.
    pub has_reports: bool,
    /// The lifetimes of certificates.
    pub lifetimes: Lifetimes,
    /// The clock for times of day.
    pub clock: Clock,
}

impl AuthorityOptions {
    /// The options for a feed behind a Service of the same namespace.
    pub fn new(secret: ObjectName, service: &str) -> Self {
        let host = format!("{service}.{}", secret.namespace);
        let server_names = vec![format!("{host}.svc"), format!("{host}.svc.cluster.local"), host];
        Self {
            secret,
            server_names,
            clients: BTreeMap::new(),
            has_reports: true,
            lifetimes: Lifetimes::default(),
            clock: Clock::default(),
        }
    }
}
