//! The options of watches.

use std::collections::BTreeSet;
use std::time::Duration;

use super::backoff::BackoffBounds;

/// The options of watches.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// The namespaces of namespaced kinds.
    pub namespaces: Namespaces,
    /// A label selector, in the form of `kubectl --selector`, for Gateways, ListenerSets, routes and Ingresses.
    /// Classes, grants and policies need no label: a hidden BackendTLSPolicy would leave its traffic in plaintext.
    pub labels: Option<String>,
    /// The watch of Secrets.
    pub secrets: SecretWatch,
    /// The limits of objects watched by name.
    pub names: NameBounds,
    /// The number of objects in one page of a list.
    pub page_size: u32,
    /// The delays after failures.
    pub backoff: BackoffBounds,
    /// The longest interval of lookups of an absent kind. Jitter shortens it to half at most.
    pub discovery_interval: Duration,
    /// The timeout of one page of a list, of opening a watch, and of one discovery request.
    pub request_timeout: Duration,
    /// The idle timeout of a watch, after which another watch replaces it: a connection may break without a sign at
    /// either end. API servers send a bookmark every minute. Without bookmarks, idle watches are reopened at this
    /// interval.
    pub silence: Duration,
    /// The number of concurrent lists of objects watched by name.
    pub concurrent_lists: usize,
    /// The capacity of the channel of inputs. Watches wait while it is full.
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

/// The namespaces of namespaced kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// All namespaces.
    All,
    /// These namespaces, each with its own watch, so permissions of these namespaces suffice. Cluster-scoped kinds are
    /// watched, too. In an empty set, namespaced kinds have no objects.
    Only(BTreeSet<String>),
}

impl Namespaces {
    /// Each namespace; `None` for all.
    pub(crate) fn scopes(&self) -> Vec<Option<String>> {
        match self {
            Self::All => vec![None],
            Self::Only(namespaces) => namespaces.iter().cloned().map(Some).collect(),
        }
    }

    /// Whether a namespace is among them.
    pub(crate) fn contains(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(namespaces) => namespaces.contains(namespace),
        }
    }
}

/// The limits of Secrets and ConfigMaps watched by name, each of which takes a connection. Beyond a limit, one watch
/// covers a namespace and keeps the referenced objects; then one watch covers all namespaces. While the API server
/// forbids the wider watch, as many objects as the limits allow are watched by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameBounds {
    /// The limit for one kind in one namespace.
    pub names_per_namespace: usize,
    /// The limit of all watches. While one watch replaces others, both run. Each
    /// [selected namespace](Namespaces::Only) has at least two watches.
    pub watches: usize,
}

impl Default for NameBounds {
    /// The connections take about 40 MB.
    fn default() -> Self {
        Self { names_per_namespace: 64, watches: 1000 }
    }
}

/// The watch of Secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretWatch {
    /// One watch for each referenced Secret. Roles can name single Secrets. Within [`NameBounds`], the controller reads
    /// no other Secret.
    ByName,
    /// One watch for all Secrets.
    All {
        /// A label selector. All other Secrets count as absent.
        labels: Option<String>,
        /// A field selector, for example `type=kubernetes.io/tls`.
        fields: Option<String>,
    },
}
