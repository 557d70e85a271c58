//! Where a PingSIX document comes from: the way back from what PingSIX does to the object that asked for it.

use std::sync::Arc;

use crate::field::{self, FieldPath};
use crate::object::ObjectKey;

/// The part of an object that asked for something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The object.
    pub object: Arc<ObjectKey>,
    /// Index into `spec.rules`, for routes.
    pub rule: Option<usize>,
    /// Index into `spec.rules[rule].matches`, for routes.
    pub matched: Option<usize>,
}

impl Origin {
    /// The whole object.
    pub fn object(object: Arc<ObjectKey>) -> Self {
        Self { object, rule: None, matched: None }
    }

    /// The field of the object.
    pub fn field(&self) -> FieldPath {
        match (self.rule, self.matched) {
            (Some(rule), Some(matched)) => field::rule_match(rule, matched),
            (Some(rule), None) => field::rule(rule),
            (None, _) => FieldPath::new("spec"),
        }
    }
}

/// Why a document exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// A PingSIX Route that answers for rules.
    Rules {
        /// The hostname of the Gateway listener, `None` when it accepts any.
        listener: Option<String>,
        /// The hostname requests are served under, `None` for any.
        host: Option<String>,
        /// What is tried, in order. Entry `i` belongs to rule `i` of the Route's `traffic-split`; the last one
        /// without conditions may be the Route's own answer instead.
        decisions: Vec<Decision>,
        /// The match whose redirect takes requests without TLS, before anything is tried.
        redirect: Option<Origin>,
        /// Matches that are never reached, because an equal one comes first.
        shadowed: Vec<Origin>,
    },
    /// A Route that answers 404 so that a listener's hostname does not fall to a less specific listener.
    Guard {
        /// The hostname of the guarded listener.
        listener: String,
    },
    /// The endpoints of a Service port.
    Backend {
        /// The Service.
        service: Arc<ObjectKey>,
        /// Its port number.
        port: i32,
    },
    /// An upstream that stands for a status code, or for nothing at all.
    Status {
        /// The status the responder gives, `None` for the target of Routes that never reach an upstream.
        status: Option<u16>,
    },
    /// The responder, for redirects.
    Redirect,
    /// A listener's certificate.
    Certificate {
        /// The Gateway or ListenerSet the listener stands in.
        owner: Arc<ObjectKey>,
        /// The listener's name.
        listener: String,
    },
}

/// Why a stream document exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamProvenance {
    /// A stream route that sends connections where a route asks for.
    Route {
        /// The Gateway or ListenerSet with the listener.
        owner: Arc<ObjectKey>,
        /// The listener's name.
        listener: String,
        /// The route that decides.
        origin: Origin,
        /// Routes that ask for the same connections and do not get them.
        shadowed: Vec<Origin>,
    },
    /// A stream route that rejects, so that a listener's server names do not fall to a less specific listener.
    Guard {
        /// The Gateway or ListenerSet with the guarded listener.
        owner: Arc<ObjectKey>,
        /// The listener's name.
        listener: String,
    },
    /// The endpoints of a Service port.
    Backend {
        /// The Service.
        service: Arc<ObjectKey>,
        /// Its port number.
        port: i32,
    },
    /// A certificate of listeners.
    Certificate {
        /// The Secret.
        secret: Arc<ObjectKey>,
    },
}

/// One step of a decision list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The match that is tried; `None` for the 404 at the end.
    pub origin: Option<Origin>,
    /// Whether the match has header or query conditions.
    pub conditional: bool,
    /// How many `traffic-split` rules the step takes (several spellings of one query value), 0 when it is the
    /// Route's own answer.
    pub split_rules: usize,
}
