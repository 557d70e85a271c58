//! Annotations of other controllers that change an Ingress.
//!
//! Each file below has one concern: the rows of its annotations in the table, and a reader that turns their values into
//! typed settings. The settings are filters and the specs of policies, as an author of Gateway API would write them, so
//! one reading serves Ingresses that keep their annotations and those that are migrated. A value never reaches PingSIX as
//! text: it is parsed, or refused.
//!
//! An annotation that protects an Ingress and cannot be honoured closes all of its paths ([`IngressAnnotations::is_closed`]).
//! An annotation that tunes an Ingress and cannot be honoured has no effect. Both have a problem.

mod access;
mod authentication;
mod backend;
mod canary;
mod cors;
mod destination;
mod headers;
mod hosts;
mod limits;
mod observability;
mod redirect;
mod rewrite;
mod session;
mod snippet;
mod timeouts;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gateway_api::experimental::httproutes as api;
use kube::core::ObjectMeta;

pub use self::canary::CanaryShare;
pub use self::hosts::{HostRedirect, MoreHosts};
pub(crate) use self::rewrite::regex_uri;
pub use self::rewrite::{PathChange, PathPattern, Rewriting};
use self::values::Values;
pub use self::values::truth;
use crate::crd::{
    AnnotationDialect, BackendTrafficPolicySpec, Cors, PolicyTargetReference, SecurityPolicySpec,
    TrafficPolicySpec,
};
use crate::infrastructure::HIDDEN_CLIENTS;
use crate::model::{FieldPath, Hostname, Kind, ObjectKey, ObjectName, Problem, Reason, Severity};
use crate::snapshot::{AnyPolicy, BackendTrafficPolicy, CUSTOM_HEADERS, SecurityPolicy, TrafficPolicy};

/// An annotation of a dialect.
#[derive(Clone, Copy, Debug)]
pub struct Annotation {
    /// The name behind the domain.
    pub name: &'static str,
    /// The loss of an Ingress without it.
    pub purpose: Purpose,
    /// How far PingSIX honours it.
    pub support: Support,
    /// Whether the value may have several lines: a list, or directives of nginx.
    pub has_lines: bool,
}

/// The purpose of an annotation: the loss of an Ingress without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Requests that its author wants to reject.
    Protects,
    /// Anything else.
    Tunes,
}

/// How far PingSIX honours an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// As the other controller does.
    Exact,
    /// With a difference.
    Limited(&'static str),
    /// Not at all, except for values that ask for nothing.
    Impossible {
        /// The values that ask for nothing.
        unless: Unless,
        /// The reason, as a sentence.
        lacks: &'static str,
    },
    /// There is nothing to honour: no answer depends on it.
    NoEffect,
}

/// The values of an annotation that ask for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unless {
    /// These.
    Values(&'static [&'static str]),
    /// All but these, because the other controller ignores any other value.
    AllBut(&'static [&'static str]),
    /// This truth value, as the other controller spells it.
    Is(bool),
}

/// The annotations of one concern in one dialect.
struct Concern {
    annotations: &'static [Annotation],
    read: fn(&mut Values<'_>, &mut IngressAnnotations),
}

/// The concerns of ingress-nginx.
const INGRESS_NGINX: &[Concern] = &[
    access::NGINX,
    authentication::NGINX,
    backend::NGINX,
    canary::NGINX,
    cors::NGINX,
    // A snippet redirects before other annotations do.
    snippet::NGINX,
    headers::NGINX,
    hosts::NGINX,
    limits::NGINX,
    observability::NGINX,
    redirect::NGINX,
    rewrite::NGINX,
    session::NGINX,
    timeouts::NGINX,
];

/// The concerns of the APISIX Ingress controller.
const APISIX: &[Concern] = &[
    access::APISIX,
    authentication::APISIX,
    backend::APISIX,
    cors::APISIX,
    headers::APISIX,
    redirect::APISIX,
    rewrite::APISIX,
    timeouts::APISIX,
];

const fn concerns(dialect: AnnotationDialect) -> &'static [Concern] {
    match dialect {
        AnnotationDialect::IngressNginx => INGRESS_NGINX,
        AnnotationDialect::Apisix => APISIX,
    }
}

/// The annotation of a dialect with this name behind the domain.
pub fn annotation(dialect: AnnotationDialect, name: &str) -> Option<&'static Annotation> {
    concerns(dialect).iter().flat_map(|concern| concern.annotations).find(|known| known.name == name)
}

/// The names of the annotations that an Ingress gives up.
pub fn ignored(annotations: &BTreeMap<String, String>) -> BTreeSet<&str> {
    let names = annotations.get(IGNORED_ANNOTATIONS).into_iter().flat_map(|names| names.split(','));
    names.map(str::trim).collect()
}

/// The key of the lists of addresses among the sources of fields.
const AUTHORIZATION: &str = "authorization";

/// The key of the limit of requests among the sources of fields.
const RATE_LIMIT: &str = "rateLimit";

/// The key of the redirect to HTTPS among the sources of fields.
const SSL_REDIRECT: &str = "ssl-redirect";

/// The key of the regular expression of a path among the sources of fields.
const REWRITE_REGEX: &str = "rewrite-target-regex";

/// The key of a snippet with headers among the sources of fields.
const SNIPPET: &str = "snippet";

/// The key of credentials of scripts among the sources of fields.
const CORS_CREDENTIALS: &str = "allowCredentials";

/// A list of permissions for scripts: its field, its annotation, and itself.
type CorsList = (&'static str, &'static str, fn(&mut Cors) -> &mut Vec<String>);

const CORS_LISTS: [CorsList; 4] = [
    ("allowOrigins", "cors-allow-origin", |cors| &mut cors.allow_origins),
    ("allowMethods", "cors-allow-methods", |cors| &mut cors.allow_methods),
    ("allowHeaders", "cors-allow-headers", |cors| &mut cors.allow_headers),
    ("exposeHeaders", "cors-expose-headers", |cors| &mut cors.expose_headers),
];

/// The annotation with which an Ingress gives up others: their names, separated by commas.
pub const IGNORED_ANNOTATIONS: &str = "pingsix.io/ignored-annotations";

/// The settings of an Ingress by its annotations.
#[derive(Debug, Default)]
pub struct IngressAnnotations {
    /// Filters of every path.
    pub filters: Vec<api::HttpRouteRulesFilters>,
    /// The meaning of paths, and their changes.
    pub rewriting: Option<Rewriting>,
    /// The path for backends, whatever the path of a rule is.
    pub path_change: Option<PathChange>,
    /// The methods of requests; others answer 405.
    pub methods: Option<AllowedMethods>,
    /// The Host for backends.
    pub host: Option<Hostname>,
    /// The ConfigMap with headers of responses.
    pub custom_headers: Option<ObjectName>,
    /// The status of the responses of backends, in place of their own.
    pub response_status: Option<u16>,
    /// The protocol of backends.
    pub backend_protocol: BackendProtocol,
    /// Whether requests go to the cluster IPs of Services instead of their endpoints.
    pub by_cluster_ip: bool,
    /// The name of the Service that answers in place of one without endpoints.
    pub default_backend: Option<String>,
    /// Fields of a SecurityPolicy, without targets.
    pub security: SecurityPolicySpec,
    /// Fields of a TrafficPolicy, without targets.
    pub traffic: TrafficPolicySpec,
    /// Fields of a BackendTrafficPolicy for the backends of the Ingress, without targets.
    pub backend_traffic: BackendTrafficPolicySpec,
    /// Redirects to HTTPS.
    pub https: HttpsRedirect,
    /// The share of the Ingress in the requests of others; its own paths are not served.
    pub canary: Option<CanaryShare>,
    /// Whether a redirect of all paths is for the other requests of their hosts, too.
    pub redirects_hosts: bool,
    /// The directives of snippets that are honoured, in the order of their lines.
    pub directives: Vec<DirectiveOfSnippet>,
    /// The path to which requests for the root are redirected.
    pub app_root: Option<String>,
    /// Aliases of a host, without those that [`Self::more_hosts`] leaves out.
    pub aliases: Vec<Hostname>,
    /// Whether the hosts with or without `www.` are redirected to those of the rules.
    pub redirects_www: bool,
    /// By field of a policy: the annotation that sets it.
    sources: BTreeMap<&'static str, String>,
    problems: Vec<AnnotationProblem>,
}

/// Whether requests in plaintext are redirected to HTTPS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HttpsRedirect {
    /// For hosts with a certificate.
    pub with_tls: bool,
    /// For other hosts.
    pub without_tls: bool,
    /// Not for the challenges of ACME ([`is_challenge`]).
    pub spares_challenges: bool,
}

/// The methods that requests may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedMethods {
    /// These.
    Only(Vec<&'static str>),
    /// All but these.
    AllBut(Vec<&'static str>),
}

/// The protocol of backends, where the annotations set it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendProtocol {
    /// The one of the Service's port.
    #[default]
    OfService,
    /// gRPC in plaintext.
    Grpc,
    /// HTTP over TLS.
    Https,
    /// gRPC over TLS.
    Grpcs,
}

/// A directive of nginx that is honoured.
#[derive(Debug)]
pub struct DirectiveOfSnippet {
    /// The name of the annotation behind the domain.
    pub annotation: &'static str,
    /// A sentence about its line. One about a difference is among the problems, too.
    pub sentence: String,
    /// Whether it is honoured as it is written.
    pub is_exact: bool,
}

/// An annotation that is not honoured, or with a difference.
#[derive(Debug)]
pub struct AnnotationProblem {
    /// The whole name; `None` if no single annotation has the problem.
    pub annotation: Option<String>,
    /// The loss of the Ingress.
    pub purpose: Purpose,
    /// A sentence about the problem.
    pub message: String,
    /// True if PingSIX honours the annotation, with the difference that the message names.
    pub is_honoured: bool,
    /// True if the other controller ignores the annotation, too, so that nothing is lost.
    pub is_ignored: bool,
}

impl AnnotationProblem {
    /// The problem of an annotation that is not honoured.
    fn new(annotation: Option<String>, purpose: Purpose, message: impl Into<String>) -> Self {
        Self { annotation, purpose, message: message.into(), is_honoured: false, is_ignored: false }
    }
}

impl IngressAnnotations {
    /// Reads the annotations of an Ingress in a namespace. Annotations of other dialects than these are left alone.
    pub(crate) fn read(
        namespace: &str,
        annotations: Option<&BTreeMap<String, String>>,
        dialects: &[AnnotationDialect],
    ) -> Self {
        let mut read = Self::default();
        let Some(annotations) = annotations else { return read };
        for dialect in dialects {
            let mut values = Values::of(*dialect, namespace, annotations);
            for concern in concerns(*dialect) {
                (concern.read)(&mut values, &mut read);
            }
            read.problems.extend(values.finish());
        }
        read
    }

    /// Adds a problem of the policies that the annotations stand for. `field` is a field of their specs.
    pub(crate) fn add_problem(&mut self, protects: bool, field: &str, message: String) {
        let purpose = if protects { Purpose::Protects } else { Purpose::Tunes };
        self.problems.push(AnnotationProblem::new(self.sources.get(field).cloned(), purpose, message));
    }

    /// Leaves the parts of the permissions for scripts out that cannot be honoured. `problem_of` is the first problem
    /// of permissions, and `admits_any_origin` says whether they are for scripts of any origin.
    pub(crate) fn check_cors(
        &mut self,
        problem_of: impl Fn(&Cors) -> Option<String>,
        admits_any_origin: impl Fn(&Cors) -> bool,
    ) {
        let Some(mut cors) = self.security.cors.take() else { return };
        if cors.allow_credentials && admits_any_origin(&cors) {
            cors.allow_credentials = false;
            self.add_difference(
                CORS_CREDENTIALS,
                "Scripts may not send credentials, because any origin is allowed; browsers ignore the two together.",
            );
        }
        for (field, _, list) in CORS_LISTS {
            let mut problems = Vec::new();
            let nothing = Cors { allow_credentials: cors.allow_credentials, ..Cors::default() };
            let is_usable = |name: &String| {
                let mut alone = nothing.clone();
                list(&mut alone).push(name.clone());
                problem_of(&alone).map(|problem| problems.push(problem)).is_none()
            };
            let mut names = std::mem::take(list(&mut cors));
            names.retain(is_usable);
            *list(&mut cors) = names;
            for problem in problems {
                self.add_problem(false, field, format!("{problem} The item is left out."));
            }
        }
        // An empty list would be a promise to answer preflights, and to allow none.
        if !cors.allow_origins.is_empty() {
            match problem_of(&cors) {
                Some(problem) => self.add_problem(false, "cors", problem),
                None => self.security.cors = Some(cors),
            }
        }
    }

    /// Closes the Ingress if a snippet changes headers that PingSIX cannot change. `problem_of` is the first problem of
    /// a filter.
    pub(crate) fn check_directives(
        &mut self,
        problem_of: impl Fn(&api::HttpRouteRulesFilters) -> Option<String>,
    ) {
        if self.sources.contains_key(SNIPPET) {
            let problems: Vec<String> = self.filters.iter().filter_map(problem_of).collect();
            for problem in problems {
                self.add_problem(true, SNIPPET, problem);
            }
        }
    }

    /// Adds a filter. A rule has one filter of each type, so further changes of headers are added to it.
    pub fn add_filter(&mut self, filter: api::HttpRouteRulesFilters) {
        fn extend<T>(list: &mut Option<Vec<T>>, more: Option<Vec<T>>, name: fn(&T) -> &str) {
            let Some(more) = more else { return };
            let list = list.get_or_insert_default();
            for one in more {
                if !list.iter().any(|known| name(known).eq_ignore_ascii_case(name(&one))) {
                    list.push(one);
                }
            }
        }

        let Some(earlier) = self.filters.iter_mut().find(|earlier| earlier.r#type == filter.r#type) else {
            self.filters.push(filter);
            return;
        };
        if let (Some(earlier), Some(more)) =
            (&mut earlier.request_header_modifier, filter.request_header_modifier)
        {
            extend(&mut earlier.set, more.set, |header| &header.name);
            extend(&mut earlier.add, more.add, |header| &header.name);
            extend(&mut earlier.remove, more.remove, |name| name);
        }
        if let (Some(earlier), Some(more)) =
            (&mut earlier.response_header_modifier, filter.response_header_modifier)
        {
            extend(&mut earlier.set, more.set, |header| &header.name);
            extend(&mut earlier.add, more.add, |header| &header.name);
            extend(&mut earlier.remove, more.remove, |name| name);
        }
    }

    /// Whether the requests of all paths are redirected, and no backend gets any.
    pub fn redirects(&self) -> bool {
        self.filters.iter().any(|filter| filter.request_redirect.is_some())
            || self.rewriting.as_ref().is_some_and(Rewriting::is_redirect)
    }

    /// The redirect of the requests that no path of a host takes. ingress-nginx has a location `/` for each host, with the
    /// annotations of the oldest Ingress of the host (`createServers` of `internal/ingress/controller/controller.go`).
    pub fn host_redirect(&self) -> Option<api::HttpRouteRulesFilters> {
        let of_path = || match self.rewriting.as_ref()?.read("/").ok()?.rewrite? {
            PathChange::Redirect(filter) => Some(*filter),
            PathChange::Full(_) | PathChange::Regex(_) => None,
        };
        let mut filters = self.filters.iter().filter(|_| self.redirects_hosts);
        let redirect = filters.find(|filter| filter.request_redirect.is_some()).cloned();
        redirect.or_else(of_path).filter(|_| !self.is_closed())
    }

    /// Leaves the path for backends as it is, because of a problem of the regular expression.
    pub(crate) fn lose_path_change(&mut self, message: String) {
        self.path_change = None;
        self.add_problem(false, REWRITE_REGEX, message);
    }

    /// Notes that a header of the ConfigMap, or all of them, cannot be set.
    pub(crate) fn lose_custom_headers(&mut self, message: String) {
        self.add_problem(false, CUSTOM_HEADERS, message);
    }

    /// Whether requests in plaintext are redirected to HTTPS for some hosts, or for hosts with a certificate.
    pub(crate) const fn redirects_to_https(&self, has_tls: bool) -> bool {
        self.https.without_tls || (self.https.with_tls && has_tls)
    }

    /// Notes that PingSIX cannot redirect to HTTPS.
    pub(crate) fn lose_https_redirect(&mut self) {
        self.https = HttpsRedirect::default();
        let message = "Requests in plaintext are not redirected to HTTPS, because that needs the layout perPort; \
                       ssl-redirect \"false\" says that none is wanted.";
        self.add_problem(false, SSL_REDIRECT, message.to_owned());
    }

    /// Notes that clients may have the address of a node.
    pub(crate) fn limit_addresses(&mut self) {
        // The limits of annotations count the requests of addresses.
        let fields = [
            (AUTHORIZATION, self.security.authorization.is_some()),
            (RATE_LIMIT, self.traffic.rate_limit.is_some()),
        ];
        for (field, needs_address) in fields {
            if needs_address {
                self.add_difference(field, HIDDEN_CLIENTS);
            }
        }
    }

    /// Notes a difference with which the annotation of a field is honoured.
    fn add_difference(&mut self, field: &str, message: &str) {
        let annotation = self.sources.get(field).cloned();
        let problem = AnnotationProblem::new(annotation, Purpose::Tunes, message);
        self.problems.push(AnnotationProblem { is_honoured: true, ..problem });
    }

    /// The policies for which the annotations of an Ingress stand, without those that would be empty.
    pub(crate) fn policies(&self, ingress: &ObjectName) -> Vec<AnyPolicy> {
        let Self { security, traffic, backend_traffic, .. } = self;
        let target = PolicyTargetReference {
            group: Kind::Ingress.group().to_owned(),
            kind: Kind::Ingress.as_str().to_owned(),
            name: ingress.name.to_string(),
            section_name: None,
        };
        let metadata = ObjectMeta {
            name: Some(ingress.name.to_string()),
            namespace: Some(ingress.namespace.to_string()),
            ..ObjectMeta::default()
        };
        let mut policies = Vec::new();
        if *security != SecurityPolicySpec::default() {
            let spec = SecurityPolicySpec { target_refs: vec![target.clone()], ..security.clone() };
            let policy = SecurityPolicy { metadata: metadata.clone(), spec, status: None };
            policies.push(AnyPolicy::from(Arc::new(policy)));
        }
        if *traffic != TrafficPolicySpec::default() {
            let spec = TrafficPolicySpec { target_refs: vec![target], ..traffic.clone() };
            let policy = TrafficPolicy { metadata: metadata.clone(), spec, status: None };
            policies.push(AnyPolicy::from(Arc::new(policy)));
        }
        if *backend_traffic != BackendTrafficPolicySpec::default() {
            // The settings hold for the backends of the Ingress, and for no other route to the same Services.
            let policy = BackendTrafficPolicy { metadata, spec: backend_traffic.clone(), status: None };
            policies.push(AnyPolicy::from(Arc::new(policy)));
        }
        policies
    }

    /// The annotations that are not honoured as they are written.
    pub fn problems(&self) -> &[AnnotationProblem] {
        &self.problems
    }

    /// Whether an annotation that protects the Ingress cannot be honoured.
    pub fn is_closed(&self) -> bool {
        self.problems.iter().any(|problem| problem.purpose == Purpose::Protects)
    }

    /// A problem for each annotation that is not honoured as it is written, those that close the Ingress first. An Ingress
    /// may have thousands of annotations, so the first problems are listed, and all others become one.
    pub(crate) fn problems_of(&self, key: &Arc<ObjectKey>) -> Vec<Problem> {
        let of = |purpose| self.problems.iter().filter(move |problem| problem.purpose == purpose);
        let problem = |severity, message| Problem {
            object: key.clone(),
            field: FieldPath::new("metadata").child("annotations"),
            severity,
            reason: Reason::UnsupportedAnnotation,
            message,
        };
        let listed = of(Purpose::Protects).chain(of(Purpose::Tunes)).take(LISTED);
        let mut problems: Vec<Problem> = listed
            .map(|AnnotationProblem { annotation, purpose, message, .. }| {
                let (severity, closed) = match purpose {
                    Purpose::Protects => (Severity::Error, CLOSED),
                    Purpose::Tunes => (Severity::Warning, ""),
                };
                let named =
                    annotation.as_ref().map(|annotation| format!("{annotation}: ")).unwrap_or_default();
                problem(severity, format!("{named}{message}{closed}"))
            })
            .collect();
        if let Some(others) = self.problems.len().checked_sub(LISTED).filter(|others| *others > 0) {
            let message =
                format!("{others} more annotations of the Ingress are not honoured as they are written.");
            problems.push(problem(Severity::Warning, message));
        }
        problems
    }
}

/// The most problems of annotations that are listed one by one.
const LISTED: usize = 16;

/// The consequence of an annotation that protects an Ingress and cannot be honoured.
const CLOSED: &str = " The annotation protects the Ingress, so all of its paths answer 503. Name it in \
                      pingsix.io/ignored-annotations to serve them without it.";

/// The filter that changes the headers of requests.
fn request_headers(modifier: api::HttpRouteRulesFiltersRequestHeaderModifier) -> api::HttpRouteRulesFilters {
    api::HttpRouteRulesFilters {
        r#type: api::HttpRouteRulesFiltersType::RequestHeaderModifier,
        request_header_modifier: Some(modifier),
        ..api::HttpRouteRulesFilters::default()
    }
}

/// The filter that changes the headers of responses.
fn response_headers(
    modifier: api::HttpRouteRulesFiltersResponseHeaderModifier,
) -> api::HttpRouteRulesFilters {
    api::HttpRouteRulesFilters {
        r#type: api::HttpRouteRulesFiltersType::ResponseHeaderModifier,
        response_header_modifier: Some(modifier),
        ..api::HttpRouteRulesFilters::default()
    }
}

/// Whether a path is the one of a challenge of ACME: a single element of base64url below `/.well-known/acme-challenge/`
/// (RFC 8555, section 8.3).
///
/// ingress-nginx neither redirects requests for challenges to HTTPS nor asks for credentials (`no-tls-redirect-locations`
/// and `no-auth-locations` of `internal/ingress/controller/config/config.go`), whatever path of an Ingress begins so.
pub fn is_challenge(path: &str) -> bool {
    let token = path.strip_prefix("/.well-known/acme-challenge/");
    let is_letter = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'-' || letter == b'_';
    token.is_some_and(|token| !token.is_empty() && token.bytes().all(is_letter))
}

/// Whether an annotation is read for an Ingress of a class with these dialects.
pub(crate) fn is_read(annotation: &str, dialects: &[AnnotationDialect]) -> bool {
    let domain = annotation.split_once('/').map(|(domain, _)| domain);
    dialects.iter().any(|dialect| Some(dialect.domain()) == domain)
}

/// A blank value, which asks for nothing.
const BLANK: Unless = Unless::Values(&[""]);

/// An unsupported annotation that protects nothing. Its values in `unless` ask for nothing.
const fn lacking(name: &'static str, unless: Unless, lacks: &'static str) -> Annotation {
    tunes(name, Support::Impossible { unless, lacks })
}

/// An unsupported annotation that protects. Its values in `unless` ask for nothing; any other value closes the Ingress.
const fn closing(name: &'static str, unless: Unless, lacks: &'static str) -> Annotation {
    protects(name, Support::Impossible { unless, lacks })
}

/// An annotation without an effect in PingSIX.
const fn no_effect(name: &'static str) -> Annotation {
    tunes(name, Support::NoEffect)
}

/// An annotation that protects an Ingress, and that PingSIX honours.
const fn protects(name: &'static str, support: Support) -> Annotation {
    Annotation { name, purpose: Purpose::Protects, support, has_lines: false }
}

/// An annotation that tunes an Ingress, and that PingSIX honours.
const fn tunes(name: &'static str, support: Support) -> Annotation {
    Annotation { name, purpose: Purpose::Tunes, support, has_lines: false }
}

/// An annotation whose value is a list, with commas between its items.
const fn list(annotation: Annotation) -> Annotation {
    lines(annotation)
}

/// An annotation whose value may have several lines.
const fn lines(annotation: Annotation) -> Annotation {
    Annotation { has_lines: true, ..annotation }
}

#[cfg(test)]
mod tests;
