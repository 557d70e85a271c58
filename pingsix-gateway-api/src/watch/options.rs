//! What is watched, and how patiently.

use std::collections::BTreeSet;
use std::time::Duration;

use super::backoff::BackoffBounds;

/// What is watched, and how patiently.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// Where namespaced kinds are watched.
    pub namespaces: Namespaces,
    /// A label selector, as `kubectl --selector` takes it, for the objects that ask for something: Gateways,
    /// ListenerSets, routes and Ingresses. Classes, grants and policies are always seen: a BackendTLSPolicy that is
    /// overlooked would send in plaintext what it wants encrypted.
    pub labels: Option<String>,
    /// How Secrets are watched.
    pub secrets: SecretWatch,
    /// How many objects are watched by their name.
    pub names: NameBounds,
    /// How many objects one page of a list has.
    pub page_size: u32,
    /// How long is waited after a failure.
    pub backoff: BackoffBounds,
    /// How often a kind that is absent is looked for; up to a fifth more or less.
    pub discovery_interval: Duration,
    /// How long the API server may take for one page of a list, for opening a watch, and for one look at what it serves.
    pub request_timeout: Duration,
    /// How long nothing may come of a watch, no bookmark either, before it is opened again: a connection may be cut so that
    /// neither end hears of it. API servers send a bookmark every minute; one that sends none has watches opened more often
    /// than it ends them.
    pub silence: Duration,
    /// How many of the objects that are watched by their name are listed at a time.
    pub concurrent_lists: usize,
    /// How many inputs may wait for their consumer; after that, watches wait.
    pub capacity: usize,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            namespaces: Namespaces::All,
            labels: None,
            secrets: SecretWatch::ByName,
            names: NameBounds::default(),
            page_size: 500,
            backoff: BackoffBounds::default(),
            discovery_interval: Duration::from_secs(30),
            request_timeout: Duration::from_mins(1),
            silence: Duration::from_secs(100),
            concurrent_lists: 32,
            capacity: 1024,
        }
    }
}

/// Where namespaced kinds are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// Everywhere.
    All,
    /// In these alone, each by a watch of its own, so that no permission for the whole cluster is needed. Cluster-scoped
    /// kinds are watched all the same. With none, namespaced kinds have no objects.
    Only(BTreeSet<String>),
}

/// How many Secrets and ConfigMaps are watched by their name, each of which takes a connection. Beyond that, namespaces are
/// watched as a whole, and of their objects those are kept that are referred to; then all namespaces at once. A watch that
/// is needed for that and forbidden leaves as many objects that are watched by name as the bounds have room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameBounds {
    /// How many of one kind in one namespace.
    pub names_per_namespace: usize,
    /// How many watches there are in all. While one takes the place of others, both run. Where
    /// [some namespaces](Namespaces::Only) are watched, each has two at least.
    pub watches: usize,
}

impl Default for NameBounds {
    /// Some 40 MB of connections.
    fn default() -> Self {
        Self { names_per_namespace: 64, watches: 1000 }
    }
}

/// How Secrets are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretWatch {
    /// Each that is referred to, by its name. Permission can be given Secret by Secret, and no other is read within
    /// [`NameBounds`].
    ByName,
    /// All of them, as any other kind. One connection instead of one per Secret.
    All {
        /// Only those with these labels. A Secret that does not have them is as good as not there.
        labels: Option<String>,
        /// Only those with these fields, for example `type=kubernetes.io/tls`.
        fields: Option<String>,
    },
}
