//! The answer of a data plane to a request, with the object behind the answer and the reason against each other object.
//!
//! The explanation comes from the published documents, the model of PingSIX's router, and the provenance of the
//! documents. So the explanation describes the actual behaviour. The tables are closed, hence the answer does not
//! depend on the order in which PingSIX inserts them.

mod candidates;
mod check;
mod connection;
mod decision;
mod explanation;
mod inquiry;
mod listener;
mod policies;
mod related;
mod sent;
mod source;
#[cfg(test)]
mod tests;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName};
use pingsix_translate::pingsix::plugin::ProxyRewrite;
use pingsix_translate::pingsix::router::{InsertionError, UpstreamRef};
use pingsix_translate::pingsix::{
    Config, DocumentKey, Outcome, PluginConfig, Request, ResourceKind, Route, Router, Upstream,
};
use pingsix_translate::responder::RedirectInstruction;
use pingsix_translate::status::{ConditionType, Problem, Reason, Severity, Verdicts};
use pingsix_translate::{DataPlaneKey, Kind, Provenance, SharedMap};

pub(crate) use candidates::{MissReason, RejectedMatch};
pub(crate) use check::Check;
pub use connection::{StreamPorts, explain_connection};
pub(crate) use decision::{FailedCondition, Step, StepResult};
pub use explanation::{Answer, Backend, Explanation, NotFoundCause, Target};
pub(crate) use explanation::{MatchedRoute, RequestLine};
#[cfg(feature = "view")]
pub(crate) use inquiry::has_scheme;
pub use inquiry::{ArrivalPort, Inquiry, InquiryAnswerError, InquiryError, RequestOptions, parse_header};
use listener::Closed;
pub(crate) use listener::serving_listeners;
pub use listener::{ClosedCause, Listener, has_port, listeners};
pub(crate) use policies::PolicyPlugins;
use policies::{injecting_policy, policies};
pub(crate) use related::RelatedObjects;
pub use related::is_accepted;
pub use sent::{HeaderChange, Sent};
pub use source::Source;
pub use text::in_words;
#[cfg(feature = "view")]
pub(crate) use text::{NO_SOURCE, answer_lines, route_lines};

/// A data plane with its provenance and verdicts.
#[derive(Clone, Copy, Debug)]
pub struct Plane<'a> {
    /// The data plane.
    pub key: &'a DataPlaneKey,
    /// The published documents: [`crate::Bridged::config`], or the translation's own configuration.
    pub config: &'a Config,
    /// The provenance of the documents.
    pub provenance: &'a SharedMap<DocumentKey, Provenance>,
    /// The verdicts of the translation.
    pub verdicts: &'a Verdicts,
}

/// The router could not be built.
#[derive(Debug, thiserror::Error)]
#[error("the configuration of data plane {data_plane} cannot be inserted")]
pub struct ExplainError {
    /// The data plane.
    pub data_plane: DataPlaneKey,
    /// The pattern at fault.
    #[source]
    pub source: Box<InsertionError>,
}

/// Explains a request; see [`mod@crate::explain`]. `port` is the port of its arrival, if known.
///
/// # Errors
///
/// [`ExplainError`] for a configuration that PingSIX would refuse; the bridge emits none.
pub fn explain(plane: &Plane<'_>, request: &Request, port: Option<u16>) -> Result<Explanation, ExplainError> {
    Ok(PreparedPlane::new(*plane)?.explain(request, port))
}

/// A data plane whose router is built, for many requests.
#[derive(Debug)]
pub struct PreparedPlane<'a> {
    plane: Plane<'a>,
    router: Router<'a>,
    listeners: Vec<Listener>,
    /// The places of listeners by hostname; empty for every host.
    by_hostname: BTreeMap<String, Vec<usize>>,
    is_fronted: bool,
    /// The problems by the names of their objects.
    problems: BTreeMap<String, Vec<&'a Problem>>,
    /// Whether the data plane lacks room for a rule.
    is_full: bool,
}

/// The answer to a request, without the reasons against other objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BriefAnswer<'a> {
    /// The PingSIX Route that takes the request.
    pub route: Option<&'a DocumentKey>,
    /// The object, and its part, that decides, if a rule takes the request.
    pub source: Option<Source>,
    /// The answer. The cause of a 404 is unknown here.
    pub answer: Answer,
    /// Whether the answer is a fault that a policy injects.
    pub is_injected: bool,
}

impl<'a> PreparedPlane<'a> {
    /// Builds the router of a data plane.
    ///
    /// # Errors
    ///
    /// [`ExplainError`] for a configuration that PingSIX would refuse; the bridge emits none.
    pub fn new(plane: Plane<'a>) -> Result<Self, ExplainError> {
        let router = Router::build(plane.config, 0..plane.config.routes().count())
            .map_err(|source| ExplainError { data_plane: plane.key.clone(), source: Box::new(source) })?;
        let listeners = listeners(&plane);
        let mut by_hostname: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, listener) in listeners.iter().enumerate() {
            let hostname = listener.hostname.as_deref().unwrap_or_default().to_ascii_lowercase();
            by_hostname.entry(hostname).or_default().push(index);
        }
        let is_fronted = listener::is_fronted(&plane);
        let mut problems: BTreeMap<String, Vec<&Problem>> = BTreeMap::new();
        for problem in &plane.verdicts.problems {
            problems.entry(problem.object.to_string()).or_default().push(problem);
        }
        let is_full = plane.verdicts.problems.iter().any(is_of_budget);
        Ok(Self { plane, router, listeners, by_hostname, is_fronted, problems, is_full })
    }

    /// Whether a listener is for the scheme and the host of a request.
    pub fn serves(&self, request: &Request, port: Option<u16>) -> bool {
        let host = request.routing_host().unwrap_or_default().to_ascii_lowercase();
        let wildcards = host.match_indices('.').map(|(dot, _)| format!("*{}", &host[dot..]));
        let hostnames = wildcards.chain([host.clone(), String::new()]);
        let places = hostnames.filter_map(|hostname| self.by_hostname.get(&hostname)).flatten();
        let mut listeners = places.filter_map(|index| self.listeners.get(*index));
        listeners.any(|listener| listener.serves(request, port))
    }

    /// The request as PingSIX gets it.
    fn arrival(&self, request: &Request) -> Result<Request, String> {
        if self.is_fronted { listener::arrival(&self.plane, request) } else { Ok(request.clone()) }
    }

    /// The answer to a request; `None` if no listener takes its connection.
    pub fn answer(&self, request: &Request, port: Option<u16>) -> Option<BriefAnswer<'a>> {
        if !listener::is_open(&self.listeners, request, port) {
            return None;
        }
        let arrived = self.arrival(request).ok()?;
        let outcome = self.router.outcome(&arrived);
        let (matched, steps) = self.decide(&arrived, &outcome);
        let is_static = matches!(outcome, Outcome::Static { .. });
        let injects = |(_, route): (_, &Route)| injecting_policy(&self.plane, route).is_some();
        let is_injected = is_static && matched.is_some_and(injects);
        let answer = answer(self, &arrived, outcome, self.serves(request, port), &steps, &[]);
        let source = deciding_source(&steps).cloned();
        Some(BriefAnswer { route: matched.map(|(key, _)| key), source, answer, is_injected })
    }

    /// The names of the plugins that run for a request with this answer.
    pub fn plugins(&self, answer: &BriefAnswer<'a>) -> impl Iterator<Item = &'a str> {
        let config = self.plane.config;
        let route = answer.route.and_then(|key| config.route(&key.id));
        let service = route.and_then(|route| config.service(route.service_id.as_deref()?));
        let global = config.global_rules().flat_map(|(_, rule)| rule.plugins.iter());
        let own = route.into_iter().flat_map(|route| route.plugins.iter());
        let of_service = service.into_iter().flat_map(|service| service.plugins.iter());
        global.chain(own).chain(of_service).map(|(name, _)| name)
    }

    /// The configuration of a plugin that runs for a request with this answer.
    pub fn plugin<C: PluginConfig>(&self, answer: &BriefAnswer<'a>) -> Option<C> {
        let config = self.plane.config;
        let route = config.route(&answer.route?.id)?;
        config.plugin(route)?.ok()
    }

    /// The problems of an object.
    fn problems_of(&self, source: &Source) -> &[&'a Problem] {
        self.problems.get(&source.object).map(Vec::as_slice).unwrap_or_default()
    }

    /// The Route of an outcome, and the steps of its decision list.
    fn decide(
        &self,
        arrived: &Request,
        outcome: &Outcome<'a>,
    ) -> (Option<(&'a DocumentKey, &'a Route)>, Vec<Step>) {
        let plane = &self.plane;
        let key: Option<&'a DocumentKey> = match outcome {
            Outcome::NotFound => None,
            Outcome::Static { route, .. }
            | Outcome::Preflight { route, .. }
            | Outcome::Redirect { route, .. }
            | Outcome::Forward { route, .. } => Some(*route),
        };
        let matched = key.and_then(|key| Some((key, plane.config.route(&key.id)?)));
        let injects = |(_, route): (_, &Route)| injecting_policy(plane, route).is_some();
        let native = match outcome {
            Outcome::Static { .. } => !matched.is_some_and(injects),
            Outcome::Redirect { .. } => true,
            Outcome::NotFound | Outcome::Preflight { .. } | Outcome::Forward { .. } => false,
        };
        let steps =
            matched.map_or_else(Vec::new, |(key, route)| decision::steps(plane, key, route, arrived, native));
        (matched, steps)
    }

    /// Explains a request. `port` is the port of its arrival, if known.
    pub fn explain(&self, request: &Request, port: Option<u16>) -> Explanation {
        let plane = &self.plane;
        let arrival = self.arrival(request);
        let arrived = arrival.as_ref().unwrap_or(request);
        let outcome = self.router.outcome(arrived);
        let listeners = listener::serving(&self.listeners, request, port);
        let closed = if listener::is_open(&self.listeners, request, port) {
            listener::closed_http2(plane, request)
        } else {
            Some(listener::closed(plane, request, port))
        };
        let is_served = closed.is_some() || !listeners.is_empty();
        // The documents have no ports. This request cannot reach the data plane, because no port is open for it.
        let unreachable = match (&closed, &arrival) {
            (Some(Closed { why, may_be_open: false, .. }), _) | (None | Some(_), Err(why)) => {
                Some(why.clone())
            }
            (None | Some(_), Ok(_)) => None,
        };
        let is_unreachable = unreachable.is_some();
        let data_plane = Some(plane.key.to_string());
        let nothing = Explanation::closed(
            request_line(request, port),
            data_plane,
            listeners,
            unreachable.unwrap_or_default(),
        );
        if is_unreachable {
            return nothing;
        }
        let (matched, steps) = self.decide(arrived, &outcome);
        let key = matched.map(|(key, _)| key);
        let (rejected, more_rejected) = candidates::rejected(plane, request, key, &steps);
        // These answers come before all other plugins.
        let is_first = matches!(outcome, Outcome::Static { .. } | Outcome::Preflight { .. });
        let answer = answer(self, arrived, outcome, is_served, &steps, &rejected);
        let problems = problems(self, &steps, &answer);
        let answer = match closed {
            Some(Closed { cause, why, .. }) => Answer::Closed { cause, why, if_open: Some(Box::new(answer)) },
            None => answer,
        };
        let is_possible = |source: &Source| listener::may_arrive(plane, &source.object, request, port);
        let is_shown = |step: &Step| {
            step.result != StepResult::NotReached || step.source.as_ref().is_none_or(is_possible)
        };
        let steps = steps.into_iter().filter(is_shown).collect();
        let rejected = rejected.into_iter().filter(|rejected| is_possible(&rejected.source)).collect();
        let before = matched.filter(|_| !is_first).map_or_else(Vec::new, |(_, route)| {
            check::checks(plane, route, &policies(plane, route), arrived)
        });
        let route = matched.map(|(key, route)| matched_route(plane, key, route));
        Explanation { route, steps, before, answer, problems, rejected, more_rejected, ..nothing }
    }
}

fn request_line(request: &Request, port: Option<u16>) -> RequestLine {
    let scheme = if request.tls { "https" } else { "http" };
    let host = request.host.as_deref().unwrap_or_default();
    let query = request.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
    RequestLine {
        method: request.method.clone(),
        url: format!("{scheme}://{host}{}{query}", request.path),
        port,
        version: if request.http2 { "HTTP/2" } else { "HTTP/1.1" },
    }
}

fn matched_route(plane: &Plane<'_>, key: &DocumentKey, route: &Route) -> MatchedRoute {
    let global = plane.config.global_rules().flat_map(|(_, rule)| rule.plugins.iter());
    let service = route.service_id.as_ref().map(|id| DocumentKey::new(ResourceKind::Service, id));
    let of_filters = service.filter(|key| plane.provenance.get(key) == Some(&Provenance::Filters));
    let service = of_filters.and_then(|key| plane.config.service(&key.id));
    let filters = service.into_iter().flat_map(|service| service.plugins.iter());
    let (mut host, mut purpose) = (None, None);
    match plane.provenance.get(key) {
        Some(Provenance::Rules { host: of_rules, .. }) => host = of_rules.as_ref().map(ToString::to_string),
        Some(Provenance::Guard { listener }) if listener.is_empty() => {
            purpose = Some("answers requests that no rule takes".to_owned());
        }
        Some(Provenance::Guard { listener }) => {
            host = Some(listener.clone());
            purpose = Some(format!("keeps requests for {listener} from listeners with a wider hostname"));
        }
        Some(_) | None => {}
    }
    MatchedRoute {
        key: key.to_string(),
        host,
        path: path_in_words(route),
        methods: route.methods.clone(),
        priority: route.priority,
        plugins: global.chain(filters).chain(route.plugins.iter()).map(|(name, _)| name.to_owned()).collect(),
        policies: policies(plane, route),
        objects: Vec::new(),
        purpose,
    }
}

/// The suffix of a pattern that matches all paths below its literal part.
const CATCH_ALL: &str = "/{*";

/// The own path of a Route, in words. The Route lists it after the narrower patterns of other Routes.
fn path_in_words(route: &Route) -> String {
    let widest = route.path_patterns().last().map(String::as_str).unwrap_or_default();
    match widest.split_once(CATCH_ALL) {
        Some(("", _)) => "prefix /".to_owned(),
        Some((prefix, _)) => format!("prefix {prefix}"),
        None => format!("exactly {widest}"),
    }
}

fn answer(
    prepared: &PreparedPlane<'_>,
    request: &Request,
    outcome: Outcome<'_>,
    is_served: bool,
    steps: &[Step],
    rejected: &[RejectedMatch],
) -> Answer {
    let PreparedPlane { plane, router, .. } = prepared;
    match outcome {
        Outcome::NotFound => not_found(plane, is_served, rejected),
        Outcome::Static { route, status: 404, .. }
            if matches!(plane.provenance.get(route), Some(Provenance::Guard { .. })) =>
        {
            not_found(plane, is_served, rejected)
        }
        Outcome::Static { route, status, body, .. } => {
            let policy = plane.config.route(&route.id).and_then(|route| injecting_policy(plane, route));
            let source = deciding_source(steps);
            let why = match (policy, source) {
                (Some(policy), _) => format!("{policy} injects this fault."),
                // Errors have no body.
                (None, Some(source)) if !body.is_empty() => {
                    format!("{} {} asks for it.", source.object, source.field)
                }
                (None, Some(_) | None) => why_status(prepared, status, source),
            };
            Answer::Status { status, by: "PingSIX", why }
        }
        Outcome::Redirect { status, location, .. } => Answer::Redirect { status, location },
        Outcome::Preflight { allowed, .. } => Answer::Preflight { allowed },
        Outcome::Forward { route, candidates } => {
            let backends: Vec<Backend> = candidates
                .into_iter()
                .map(|candidate| {
                    let sent = |upstream: &Upstream| router.sent(route, upstream, request);
                    let sent = |upstream: &Upstream| Some(Sent::of(request, sent(upstream)?));
                    backend(plane, candidate.weight, candidate.upstream, sent)
                })
                .collect();
            match backends.as_slice() {
                [Backend { target: Target::Status { status }, .. }] => {
                    let source = deciding_source(steps);
                    let is_guard = matches!(plane.provenance.get(route), Some(Provenance::Guard { .. }));
                    if *status == 404 && is_guard {
                        return not_found(plane, is_served, rejected);
                    }
                    if *status == 404 && source.is_none() {
                        return Answer::NotFound {
                            cause: NotFoundCause::Conditions,
                            why: "The conditions of every match with this path and method fail.".to_owned(),
                        };
                    }
                    Answer::Status {
                        status: *status,
                        by: "the responder",
                        why: why_status(prepared, *status, source),
                    }
                }
                [Backend { target: Target::Redirect {}, .. }] => redirect_of_responder(plane, route, request)
                    .unwrap_or_else(|| Answer::Status {
                        status: 500,
                        by: "the responder",
                        why: "The redirect cannot be applied to the request.".to_owned(),
                    }),
                _ => Answer::Forward { backends },
            }
        }
    }
}

/// The answer of the responder to the instruction of the Route.
fn redirect_of_responder(plane: &Plane<'_>, route: &DocumentKey, request: &Request) -> Option<Answer> {
    let rewrite: ProxyRewrite = plane.config.plugin(plane.config.route(&route.id)?)?.ok()?;
    let mut headers = HeaderMap::new();
    for header in rewrite.headers?.set {
        headers.append(HeaderName::from_bytes(header.name.as_bytes()).ok()?, header.value.parse().ok()?);
    }
    let instruction = RedirectInstruction::from_headers(&headers).ok()??;
    let query = request.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
    let target: PathAndQuery = format!("{}{query}", request.path).parse().ok()?;
    let location = instruction.location(request.host.as_deref().unwrap_or_default(), &target).ok()?;
    Some(Answer::Redirect { status: instruction.status.code().as_u16(), location })
}

/// The source of the match that decides.
fn deciding_source(steps: &[Step]) -> Option<&Source> {
    steps.iter().find(|step| step.result == StepResult::Decides)?.source.as_ref()
}

fn why_status(prepared: &PreparedPlane<'_>, status: u16, source: Option<&Source>) -> String {
    let is_grpc = source.is_some_and(|source| source.object.starts_with(Kind::GrpcRoute.as_str()));
    let who =
        source.map_or_else(|| "The table".to_owned(), |source| format!("{} {}", source.object, source.field));
    let is_without_backends = |source: &Source| {
        let mut problems = prepared.problems_of(source).iter();
        problems.any(|problem| problem.reason == Reason::NoBackends && is_about(problem, source))
    };
    if status >= 500 && source.is_some_and(is_without_backends) {
        return format!("{who} has no backend that takes requests.");
    }
    match status {
        // To gRPC clients, both are UNAVAILABLE.
        503 if is_grpc => {
            format!("{who} cannot be honoured, or none of its backends has an endpoint that takes traffic.")
        }
        // A rule may ask for this status, too.
        421 if source.is_none() => {
            "The host is that of another listener than the one by whose connection the request came in."
                .to_owned()
        }
        500 => format!("{who} cannot be honoured, so it fails closed."),
        503 => format!("{who} {}.", why_unavailable(prepared, source)),
        _ => format!("{who} asks for it."),
    }
}

/// The cause of a 503 that no object asks for: a Service without endpoints, or a refusal. Says both if both may hold.
fn why_unavailable(prepared: &PreparedPlane<'_>, source: Option<&Source>) -> &'static str {
    let has = |is_one: fn(&Problem, &Source) -> bool| {
        source
            .is_some_and(|source| prepared.problems_of(source).iter().any(|problem| is_one(problem, source)))
    };
    if has(|problem, _| closes_ingress(problem)) {
        "is refused, because an annotation of the Ingress cannot be honoured"
    } else if has(|problem, source| is_of_budget(problem) && is_about(problem, source)) {
        "is refused, because the data plane has no room for it"
    } else if prepared.is_full || has(|problem, _| problem.severity == Severity::Error) {
        // A rule is also closed if the budget has no room for another rule.
        "has no endpoint that takes traffic, or is refused"
    } else {
        "has no endpoint that takes traffic"
    }
}

fn is_of_budget(problem: &Problem) -> bool {
    matches!(problem.reason, Reason::BudgetExceeded | Reason::ShareExceeded)
}

/// Whether a problem of an Ingress is that of an annotation for which all of its paths answer an error.
fn closes_ingress(problem: &Problem) -> bool {
    problem.reason == Reason::UnsupportedAnnotation && problem.severity == Severity::Error
}

/// Whether a problem of an object is one of the rule of a route, or of the path of an Ingress, because each path has its own
/// backend.
fn is_about(problem: &Problem, source: &Source) -> bool {
    let rule = source.field.split_once(".matches[").map_or(&*source.field, |(rule, _)| rule);
    let field = problem.field.as_str();
    field == rule || field.strip_prefix(rule).is_some_and(|rest| rest.starts_with(['.', '[']))
}

fn backend(
    plane: &Plane<'_>,
    weight: u32,
    upstream: UpstreamRef,
    sent: impl Fn(&Upstream) -> Option<Sent>,
) -> Backend {
    let (id, upstream, provenance) = match upstream {
        UpstreamRef::Named(id) => {
            let key = DocumentKey::new(ResourceKind::Upstream, id.as_str());
            let upstream = plane.config.upstream(&id).cloned();
            (Some(id), upstream, plane.provenance.get(&key))
        }
        UpstreamRef::Inline(upstream) => (None, Some(*upstream), None),
    };
    let target = match provenance {
        Some(Provenance::Backend { service, port }) => {
            Target::Service { service: service.name.to_string(), port: *port }
        }
        Some(Provenance::Status { status: Some(status) }) => Target::Status { status: *status },
        Some(Provenance::Redirect) => Target::Redirect {},
        Some(_) | None => Target::Unknown {},
    };
    let is_service = matches!(target, Target::Service { .. });
    let sends = upstream.as_ref().filter(|_| is_service).and_then(sent);
    let endpoints = upstream.map(|upstream| upstream.nodes).unwrap_or_default();
    Backend { weight, target, upstream: id, endpoints, sends, objects: Vec::new() }
}

/// The answer to an unmatched request. `is_served` is whether a listener serves the host.
fn not_found(plane: &Plane<'_>, is_served: bool, rejected: &[RejectedMatch]) -> Answer {
    let mut methods: BTreeSet<&str> = BTreeSet::new();
    for rejected_match in rejected {
        if let MissReason::Method { methods: of_match } = &rejected_match.reason {
            methods.extend(of_match.iter().map(String::as_str));
        }
    }
    let (cause, why) = if !is_served {
        let known: Vec<String> = listener::listeners(plane).iter().map(ToString::to_string).collect();
        (NotFoundCause::Listener, format!("No listener is for this host. Served: {}.", known.join("; ")))
    } else if !methods.is_empty() {
        let methods: Vec<&str> = methods.into_iter().collect();
        (NotFoundCause::Method, format!("The path is served for {} only.", methods.join(", ")))
    } else if rejected.iter().any(|rejected_match| matches!(rejected_match.reason, MissReason::Path { .. })) {
        (NotFoundCause::Path, "No rule for this host matches the path.".to_owned())
    } else {
        (NotFoundCause::Host, "No rule is for this host.".to_owned())
    };
    Answer::NotFound { cause, why }
}

/// The problems of the deciding object. For a failed request, they include those of its attachment and annotations. For an
/// unmatched request, the result has the messages of routes that are not accepted.
fn problems(prepared: &PreparedPlane<'_>, steps: &[Step], answer: &Answer) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(source) = deciding_source(steps) {
        for problem in prepared.problems_of(source) {
            let of_attachment = problem.field.as_str().starts_with("spec.parentRefs[");
            let fails = matches!(answer, Answer::Status { status: 500.., .. });
            if is_about(problem, source) || (fails && (of_attachment || closes_ingress(problem))) {
                sentences.push(problem.to_string());
            }
        }
    }
    if matches!(answer, Answer::NotFound { .. }) {
        for (key, verdict) in &prepared.plane.verdicts.routes {
            for parent in verdict.parents.iter() {
                let accepted = parent.conditions.get(ConditionType::Accepted);
                let refused = accepted.filter(|_| !parent.conditions.is_true(ConditionType::Accepted));
                sentences.extend(refused.map(|condition| format!("{key}: {}", condition.message)));
            }
        }
    }
    sentences.dedup();
    sentences
}
