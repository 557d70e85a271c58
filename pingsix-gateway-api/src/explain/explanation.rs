//! The parts of an explanation.

use std::collections::BTreeMap;

use pingsix_translate::{Origin, Section};
use serde::Serialize;

use super::{Listener, Loser, Step};

/// The handling of a request, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The request.
    pub request: RequestLine,
    /// The data plane that was asked; none when the request's port has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_plane: Option<String>,
    /// The listeners of the data plane that serve the request's host: one per port. For a port that is not PingSIX's,
    /// the listeners that have it.
    pub listeners: Vec<Listener>,
    /// The PingSIX Route that takes the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<MatchedRoute>,
    /// The Route's decision list: the matches that are tried, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// The answer to the client.
    pub answer: Answer,
    /// Sentences on what is wrong with the object that decides, or with objects that would have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// Matches that could have been meant and did not decide, nearest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub losers: Vec<Loser>,
    /// The number of further matches that `losers` leaves out.
    pub more_losers: usize,
}

/// The request that is explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestLine {
    /// The method.
    pub method: String,
    /// Scheme, host, path and query.
    pub url: String,
    /// The port it arrives at, when it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The version of HTTP.
    pub version: &'static str,
}

/// The object, and the part of it, that a document stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Source {
    /// Kind, namespace and name.
    pub object: String,
    /// The field.
    pub field: String,
    /// Index into `spec.rules`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<usize>,
    /// Index into `spec.rules[rule].matches`, or `spec.rules[rule].http.paths` of an Ingress.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub matched: Option<usize>,
}

impl Source {
    pub(super) fn of(origin: &Origin) -> Self {
        Self {
            object: origin.object.to_string(),
            field: origin.field().to_string(),
            rule: origin.section.rule(),
            matched: match origin.section {
                Section::Match { index, .. } => Some(index),
                Section::Whole | Section::Rule(_) | Section::DefaultBackend | Section::Tls(_) => None,
            },
        }
    }
}

/// The PingSIX Route that takes the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MatchedRoute {
    /// Its key below the prefix.
    pub key: String,
    /// The host it serves; none is every host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The path it serves, in words.
    pub path: String,
    /// The methods it serves; none is every method.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// Its priority among Routes of one matcher entry.
    pub priority: u32,
    /// The plugins that run, those of global rules first, without those of policies. Their configurations may hold secrets
    /// and are not shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<String>,
    /// The plugins that policies ask for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PolicyPlugins>,
    /// Why the Route exists, when no rule asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
}

/// The plugins to which a policy contributes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyPlugins {
    /// Kind, namespace and name.
    pub policy: String,
    /// The names of the plugins.
    pub plugins: Vec<String>,
}

/// The answer to the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Answer {
    /// The request goes to one of these, by weight.
    Forward {
        /// The backends and their shares.
        backends: Vec<Backend>,
    },
    /// A status, without any backend.
    Status {
        /// The status.
        status: u16,
        /// The program that answers.
        by: &'static str,
        /// Why, in one sentence.
        why: String,
    },
    /// The client is sent elsewhere.
    Redirect {
        /// The status.
        status: u16,
        /// The `Location` header.
        location: String,
    },
    /// A CORS preflight.
    Preflight {
        /// Whether it is allowed.
        allowed: bool,
    },
    /// 404, because nothing matches.
    NotFound {
        /// The first thing that did not match.
        cause: NotFoundCause,
        /// The same in one sentence.
        why: String,
    },
    /// No answer: nothing listens, or what listens closes the connection.
    Closed {
        /// Why, in sentences.
        why: String,
        /// The answer of PingSIX on an open port all the same: PingSIX cannot tell ports apart.
        #[serde(rename = "ifOpen", skip_serializing_if = "Option::is_none")]
        if_open: Option<Box<Answer>>,
    },
    /// The port is one for streams: the connection goes to one of these, by weight, whatever is asked over it.
    Connection {
        /// The backends and their shares.
        backends: Vec<Backend>,
    },
}

/// The first thing about a request that nothing matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum NotFoundCause {
    /// No listener of the port has a hostname that covers the host.
    Listener,
    /// No route serves the host.
    Host,
    /// No rule has the path.
    Path,
    /// A rule has the path, but not the method.
    Method,
    /// Rules have path and method, but their conditions on headers or query fail.
    Conditions,
}

/// One place a request may go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Backend {
    /// The share, in proportion to the other weights.
    pub weight: u32,
    /// The target.
    #[serde(flatten)]
    pub target: Target,
    /// The PingSIX upstream; none when it is written inline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// The addresses, each with its weight.
    pub endpoints: BTreeMap<String, u32>,
}

/// A backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Target {
    /// A port of a Service.
    Service {
        /// The Service.
        service: String,
        /// Its port.
        port: i32,
    },
    /// A status given by the responder.
    Status {
        /// The status.
        status: u16,
    },
    /// The connection is closed.
    Rejected {
        /// Why: the word of the stream document.
        rejected: &'static str,
    },
    /// The responder, which redirects.
    Redirect {},
    /// An upstream nothing is known about.
    Unknown {},
}

impl Explanation {
    /// Whether the client gets an answer to what it asked for: a backend for at least a share of such requests, a
    /// redirect, or a status below 400.
    pub fn is_answered(&self) -> bool {
        match &self.answer {
            Answer::Forward { backends } | Answer::Connection { backends } => backends
                .iter()
                .any(|backend| !matches!(backend.target, Target::Status { .. } | Target::Rejected { .. })),
            Answer::Status { status, .. } => *status < 400,
            Answer::Redirect { .. } => true,
            Answer::Preflight { allowed } => *allowed,
            Answer::NotFound { .. } | Answer::Closed { .. } => false,
        }
    }
}
