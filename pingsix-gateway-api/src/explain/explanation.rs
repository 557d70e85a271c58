//! The parts of an explanation.

use std::collections::BTreeMap;

use serde::Serialize;

use super::candidates::RejectedMatch;
use super::check::Check;
use super::decision::Step;
use super::listener::{ClosedCause, Listener};
use super::policies::PolicyPlugins;
use super::sent::Sent;

/// The handling of a request, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The request.
    pub(crate) request: RequestLine,
    /// The data plane of the request's port, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_plane: Option<String>,
    /// The listeners of the data plane that serve the request's host, one per port. For a port of a stream proxy, the
    /// listeners of the port.
    pub listeners: Vec<Listener>,
    /// The PingSIX Route that takes the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) route: Option<MatchedRoute>,
    /// The Route's decision list: the matches that are tried, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) steps: Vec<Step>,
    /// The plugins that may answer the request or hold it up before the rest does, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) before: Vec<Check>,
    /// The answer to the client.
    pub answer: Answer,
    /// The problems of the deciding object, or of objects that could have decided, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// Matches near the request that PingSIX does not choose, nearest first.
    #[serde(rename = "losers", skip_serializing_if = "Vec::is_empty")]
    pub(crate) rejected: Vec<RejectedMatch>,
    /// The number of further matches that `rejected` leaves out.
    #[serde(rename = "moreLosers")]
    pub(crate) more_rejected: usize,
}

/// The explained request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestLine {
    /// The method.
    pub method: String,
    /// Scheme, host, path and query.
    pub url: String,
    /// The port of its arrival, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The version of HTTP.
    pub version: &'static str,
}

/// The PingSIX Route that takes the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MatchedRoute {
    /// The key below the prefix.
    pub key: String,
    /// The served host; `None` for every host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The served path, in words.
    pub path: String,
    /// The served methods; empty for every method.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// The priority among Routes of one matcher entry.
    pub priority: u32,
    /// The plugins that run, those of global rules first, without those of policies. Their configurations may hold
    /// secrets and are not shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<String>,
    /// The plugins of policies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PolicyPlugins>,
    /// Other objects that shape the Route, if the caller has named them by [`Explanation::name_objects`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<String>,
    /// The purpose of a Route without rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
}

/// The answer to the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Answer {
    /// The request goes to one of these backends, by weight.
    Forward {
        /// The backends and their shares.
        backends: Vec<Backend>,
    },
    /// A status without a backend.
    Status {
        /// The status.
        status: u16,
        /// The answering program.
        by: &'static str,
        /// The reason, in one sentence.
        why: String,
    },
    /// A redirect.
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
        /// The cause.
        cause: NotFoundCause,
        /// The cause, in one sentence.
        why: String,
    },
    /// No answer: the port is closed, or the connection is closed.
    Closed {
        /// The cause.
        cause: ClosedCause,
        /// The reasons, in sentences.
        why: String,
        /// The answer of a PingSIX that takes the connection all the same: it has the port open, because PingSIX cannot
        /// distinguish ports, or has no ports with TLS.
        #[serde(rename = "ifOpen", skip_serializing_if = "Option::is_none")]
        if_open: Option<Box<Answer>>,
    },
    /// The connection to a stream port goes to one of these backends, by weight.
    Connection {
        /// The backends and their shares.
        backends: Vec<Backend>,
    },
}

/// The first part of a request without a match.
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

impl Answer {
    /// No answer, because no listener takes the connection.
    pub(super) const fn closed(why: String) -> Self {
        Self::Closed { cause: ClosedCause::Listener, why, if_open: None }
    }

    fn name_objects(&mut self, of: &impl Fn(&str) -> Vec<String>) {
        match self {
            Self::Forward { backends } | Self::Connection { backends } => {
                for backend in backends {
                    if let Some(id) = &backend.upstream {
                        backend.objects = of(&format!("upstreams/{id}"));
                    }
                }
            }
            Self::Closed { if_open, .. } => {
                if let Some(answer) = if_open {
                    answer.name_objects(of);
                }
            }
            Self::Status { .. } | Self::Redirect { .. } | Self::Preflight { .. } | Self::NotFound { .. } => {}
        }
    }
}

/// A possible backend of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Backend {
    /// The share, in proportion to the other weights.
    pub weight: u32,
    /// The target.
    #[serde(flatten)]
    pub target: Target,
    /// The PingSIX upstream; `None` for an inline one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// The addresses, each with its weight.
    pub endpoints: BTreeMap<String, u32>,
    /// The request that the backend gets; `None` for a target that is no Service, and for a connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sends: Option<Sent>,
    /// Other objects that shape the upstream, if the caller has named them by [`Explanation::name_objects`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<String>,
}

/// The target of a backend.
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
    /// A status of the responder.
    Status {
        /// The status.
        status: u16,
    },
    /// The connection is closed.
    Rejected {
        /// The reason in the stream document.
        rejected: &'static str,
    },
    /// The responder, which redirects.
    Redirect {},
    /// An upstream without provenance.
    Unknown {},
}

impl Explanation {
    /// The explanation of a connection that no listener takes.
    pub(super) const fn closed(
        request: RequestLine,
        data_plane: Option<String>,
        listeners: Vec<Listener>,
        why: String,
    ) -> Self {
        Self {
            request,
            data_plane,
            listeners,
            route: None,
            steps: Vec::new(),
            before: Vec::new(),
            answer: Answer::closed(why),
            problems: Vec::new(),
            rejected: Vec::new(),
            more_rejected: 0,
        }
    }

    /// Names the objects that shape the Route and the upstreams, such as policies of Services. The provenance of a document
    /// lacks them, so the caller finds them by the key of the document, below the prefix.
    pub fn name_objects(&mut self, of: impl Fn(&str) -> Vec<String>) {
        if let Some(route) = &mut self.route {
            route.objects = of(&route.key);
        }
        self.answer.name_objects(&of);
    }

    /// Whether the request succeeds: with a backend for at least a share of such requests, with a redirect, or with a
    /// status below 400.
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
