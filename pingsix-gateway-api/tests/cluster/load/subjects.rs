//! The subjects of changes, with the right answers before and after.

use pingsix_translate::Kind;
use rand::Rng;
use rand::rngs::StdRng;
use serde_json::Value;

use super::checker::{State, SubjectStates, distinguishes};

/// The ports of the Gateway's listeners. Each has a data plane of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    Plain,
    Secure,
}

/// A request whose answers are judged.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    pub(crate) host: String,
    pub(crate) path: String,
    /// Whether the request has the header `x-user: one`.
    pub(crate) is_user: bool,
}

/// A constant or changing subject.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) listener: Listener,
    pub(crate) probes: Vec<Probe>,
    pub(crate) states: SubjectStates,
    pub(crate) sort: Sort,
    /// Candidate certificates in DER, to identify the presented one.
    pub(crate) certificates: Vec<Vec<u8>>,
    /// A variant: the objects to write, and the right answers.
    pub(super) variants: Vec<(Write, State)>,
}

/// The changing part of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sort {
    /// No change.
    Stable,
    /// The Service of a rule.
    Backend,
    /// The matches of a route: paths and headers come and go.
    Matches,
    /// The presence of the route itself.
    Life,
    /// Weights of Services.
    Weights,
    /// Filters, one of which does not exist.
    Filter,
    /// Endpoints of a Service.
    Endpoints,
    /// The port of a Service.
    Port,
    /// The grant for a Service in another namespace.
    Grant,
    /// Listeners of the Gateway and their hostnames.
    Listeners,
    /// The certificate of a listener.
    Certificate,
}

/// The write at the API server.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    Create(Kind, Value),
    Merge(Kind, String, Value),
    Delete(Kind, &'static str, String),
    Nothing,
}

impl Probe {
    pub(crate) fn new(host: &str, path: &str) -> Self {
        Self { host: host.to_owned(), path: path.to_owned(), is_user: false }
    }
}

impl Subject {
    /// A change with a distinguishable state before and after.
    pub(crate) fn change(&self, now: usize, rng: &mut StdRng) -> (usize, Write) {
        loop {
            let next = rng.random_range(0..self.variants.len());
            if distinguishes(&self.variants[now].1, &self.variants[next].1) {
                return (next, self.variants[next].0.clone());
            }
        }
    }

    /// The right answers for a variant.
    pub(crate) fn state(&self, variant: usize) -> State {
        self.variants[variant].1.clone()
    }
}
