//! Provenance: the objects from which a PingSIX document results.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::{FieldPath, Hostname, Kind, ObjectKey, Traffic, field};

/// A policy with the plugins to which it contributes.
pub type PolicyPlugins = (Arc<ObjectKey>, Box<[&'static str]>);

/// The part of an object from which a document results.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The object.
    pub object: Arc<ObjectKey>,
    /// The part of the object.
    pub section: Section,
}

/// A part of an object's `spec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// All of it.
    Whole,
    /// An entry of `spec.rules`.
    Rule(usize),
    /// An element below an entry of `spec.rules`: one of the `matches` of a route, or of the `http.paths` of an
    /// Ingress.
    Match {
        /// Index into `spec.rules`.
        rule: usize,
        /// Index below it.
        index: usize,
    },
    /// `spec.defaultBackend` of an Ingress.
    DefaultBackend,
    /// An entry of `spec.tls` of an Ingress.
    Tls(usize),
}

impl Section {
    /// Index into `spec.rules`, if it is a rule or part of one.
    pub const fn rule(self) -> Option<usize> {
        match self {
            Self::Rule(rule) | Self::Match { rule, .. } => Some(rule),
            Self::Whole | Self::DefaultBackend | Self::Tls(_) => None,
        }
    }
}

impl Origin {
    /// The whole object.
    pub fn object(object: Arc<ObjectKey>) -> Self {
        Self { object, section: Section::Whole }
    }

    /// The field of the object.
    pub fn field(&self) -> FieldPath {
        match self.section {
            Section::Whole => FieldPath::new("spec"),
            Section::Rule(rule) => field::rule(rule),
            Section::Match { rule, index } if self.object.kind == Kind::Ingress => {
                field::ingress_path(rule, index)
            }
            Section::Match { rule, index } => field::rule_match(rule, index),
            Section::DefaultBackend => field::default_backend(),
            Section::Tls(index) => field::tls(index),
        }
    }
}

/// The origin of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// A PingSIX Route that answers for rules.
    Rules {
        /// The hostname of the Gateway listener, `None` when it accepts any.
        listener: Option<Hostname>,
        /// The hostname requests are served under, `None` for any.
        host: Option<Hostname>,
        /// The decisions in order. Entry `i` belongs to rule `i` of the Route's `traffic-split`; the last one without
        /// conditions may be the Route's own answer instead.
        decisions: Box<[Decision]>,
        /// The match whose redirect takes requests without TLS, before anything is tried.
        redirect: Option<Box<Origin>>,
        /// Matches that are never reached, because the Route takes all their requests and others come first.
        shadowed: Box<[Origin]>,
    },
    /// A Route that answers 404 so that a listener's hostname does not fall to a less specific listener, or 421 to requests
    /// that came in by another listener.
    Guard {
        /// The hostname of the guarded listener; empty for any.
        listener: String,
    },
    /// The endpoints of a Service port.
    Backend {
        /// The Service.
        service: Arc<ObjectKey>,
        /// The port number.
        port: i32,
    },
    /// An upstream or a service that stands for a status code, or an upstream for nothing at all.
    Status {
        /// The status that the responder gives, or that PingSIX gives for a service. `None` for the target of Routes that
        /// never reach an upstream.
        status: Option<u16>,
    },
    /// The responder, for redirects.
    Redirect,
    /// The global rule for metrics, access logs, request ids and response headers.
    Telemetry {
        /// The PingsixProxies that ask for it; one at least.
        proxies: Box<[Arc<ObjectKey>]>,
    },
    /// A service with the plugins of policies.
    Policies {
        /// The policies, from the widest target to the narrowest, each with the plugins to which it contributes.
        policies: Box<[PolicyPlugins]>,
    },
    /// A service with the filters that several rules have in common.
    Filters,
    /// A certificate that listeners or Ingresses of one namespace show.
    Certificate {
        /// The Secret.
        secret: Arc<ObjectKey>,
        /// The references that led to it. Entry `i` belongs to name `i` of the document.
        by: Box<[Arc<CertificateReference>]>,
    },
}

/// A reference to a certificate. Names of one document often share it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CertificateReference {
    /// A listener's.
    Listener {
        /// The Gateway or ListenerSet the listener stands in.
        owner: Arc<ObjectKey>,
        /// The listener's name.
        listener: String,
        /// The reference to the Secret there, for example `spec.listeners[0].tls.certificateRefs[1]`.
        field: FieldPath,
    },
    /// The backend of an Ingress.
    Ingress {
        /// The Ingress.
        ingress: Arc<ObjectKey>,
        /// Index into `spec.tls`.
        tls: usize,
    },
}

impl CertificateReference {
    /// The object that refers to the Secret.
    pub const fn object(&self) -> &Arc<ObjectKey> {
        match self {
            Self::Listener { owner, .. } => owner,
            Self::Ingress { ingress, .. } => ingress,
        }
    }

    /// The field with the name of the Secret.
    pub fn field(&self) -> FieldPath {
        match self {
            Self::Listener { field, .. } => field.clone(),
            Self::Ingress { tls, .. } => field::tls(*tls).child("secretName"),
        }
    }

    /// The part of the object that asks for the certificate.
    pub fn origin(&self) -> Origin {
        match self {
            Self::Listener { owner, .. } => Origin::object(owner.clone()),
            Self::Ingress { ingress, tls } => Origin { object: ingress.clone(), section: Section::Tls(*tls) },
        }
    }
}

impl fmt::Display for CertificateReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listener { owner, listener, .. } => write!(f, "{owner} listener {listener}"),
            Self::Ingress { ingress, tls } => write!(f, "{ingress} spec.tls[{tls}]"),
        }
    }
}

impl Provenance {
    /// The failure status of a Route, if all its rules fail with the same.
    pub fn failure(&self) -> u16 {
        let Self::Rules { decisions, redirect, .. } = self else { return Traffic::Http.failure() };
        let decisive = decisions.iter().filter_map(|decision| decision.origin.as_ref());
        let mut kinds =
            redirect.as_deref().into_iter().chain(decisive).map(|origin| origin.object.kind).peekable();
        let is_grpc = kinds.peek().is_some() && kinds.all(|kind| kind == Kind::GrpcRoute);
        if is_grpc { Traffic::Grpc.failure() } else { Traffic::Http.failure() }
    }
}

/// The origin of a stream document.
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
    /// A stream route that sends the connections of an HTTPS listener on to PingSIX.
    Front {
        /// The Gateway or ListenerSet with the listener.
        owner: Arc<ObjectKey>,
        /// The listener's name.
        listener: String,
    },
    /// The endpoints of a Service port.
    Backend {
        /// The Service.
        service: Arc<ObjectKey>,
        /// The port number.
        port: i32,
    },
    /// PingSIX, where requests of an HTTPS listener come in.
    PingSix {
        /// The port of clients.
        port: u16,
    },
    /// The CA certificates that client certificates are verified with.
    Authority {
        /// The ConfigMap.
        config_map: Arc<ObjectKey>,
    },
    /// A certificate of listeners.
    Certificate {
        /// The Secret.
        secret: Arc<ObjectKey>,
        /// The references that lead to it, of every listener that shows it: at least one, sorted.
        references: BTreeSet<Reference>,
    },
}

/// A field that refers to another object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// The object that refers.
    pub object: Arc<ObjectKey>,
    /// The field, for example `spec.listeners[0].tls.certificateRefs[1]`.
    pub field: FieldPath,
}

/// One step of a decision list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The match that is tried; `None` for the 404 at the end, and for the 421 at the beginning, which is conditional.
    pub origin: Option<Origin>,
    /// Whether the match has header or query conditions.
    pub conditional: bool,
    /// The number of `traffic-split` rules of the step (several spellings of one query value), 0 for the Route's own
    /// answer.
    pub split_rules: usize,
}
