//! Ingress to the kind-neutral shape.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::networking::v1 as api;

use super::canary::{Canary, divide};
use super::filter::{DirectResponse, FilterReader, FilterScope, Filters, ReadFilters, Redirect};
use super::{
    BackendPort, BackendProtocol, BackendRef, BackendSettings, Conditions, Hostnames, Match, Part, Path,
    PathKind, Route, Rule, RuleRole, beginnings,
};
use crate::annotations::{self, AllowedMethods, HostRedirect, IngressAnnotations, MoreHosts, PathChange};
use crate::model::{
    Age, Capability, FieldPath, Hostname, ObjectKey, ObjectName, Problem, Reason, Refusal, Severity, Traffic,
    field,
};
use crate::responder::{RedirectScheme, RedirectStatus};
use crate::snapshot::Ingress;
use thin_vec::ThinVec;

/// Characters that other controllers read as part of a pattern in a path of type `ImplementationSpecific`.
const PATTERN_CHARACTERS: [char; 4] = ['*', '(', ')', '$'];

/// The type of path whose meaning is left to the controller.
const IMPLEMENTATION_SPECIFIC: &str = "ImplementationSpecific";

/// The effects of other Ingresses on one.
#[derive(Debug, Default)]
pub(crate) struct Neighbours<'a> {
    /// The canaries that may take requests of the Ingress.
    pub(crate) canaries: &'a [&'a Canary],
    /// The hosts besides those of the rules, without the hosts of others.
    pub(crate) more_hosts: MoreHosts,
    /// The hosts of the Ingress for which the class has a certificate.
    pub(crate) tls_hosts: BTreeSet<Hostname>,
    /// The hosts of the rules whose requests without a path have the redirect of the Ingress.
    pub(crate) led_hosts: BTreeSet<Hostname>,
    /// Whether each data plane has one port, so that a redirect to another host may keep the scheme of a request.
    pub(crate) keeps_scheme: bool,
}

/// Normalises an Ingress: a route for each rule, because each has a host of its own, and one for the default backend.
///
/// Never fails: an unusable part becomes a refusal of its rule. Served parts with surprising behaviour go to
/// `problems`. The problems of annotations are not among them. A canary has no routes.
pub(crate) fn normalise_ingress(
    key: &Arc<ObjectKey>,
    ingress: &Ingress,
    annotations: &IngressAnnotations,
    neighbours: &Neighbours<'_>,
    problems: &mut Vec<Problem>,
) -> Vec<Route> {
    if annotations.canary.is_some() {
        return Vec::new();
    }
    let reader = &Reader {
        annotations,
        neighbours,
        key: key.clone(),
        generation: ingress.metadata.generation.unwrap_or_default(),
        age: Age::of(&ingress.metadata),
    };
    let rules = ingress.spec.iter().flat_map(|spec| spec.rules.iter().flatten());
    let default_backend = ingress.spec.as_ref().and_then(|spec| spec.default_backend.as_ref());
    let mut routes: Vec<Route> = rules
        .enumerate()
        .flat_map(|(index, rule)| {
            let own = reader.route((index, rule), hostnames_of(index, rule), default_backend, problems);
            let aliases = reader.aliases((index, rule), default_backend);
            let rest = reader.host_redirect((index, rule));
            let is_tls = !neighbours.tls_hosts.is_empty() && reader.is_tls(&hostnames_of(index, rule).0);
            let routes = own.into_iter().chain(aliases).flat_map(move |route| {
                let is_tls = is_tls || reader.is_tls(&route.hostnames);
                reader.with_redirects(index, route, is_tls)
            });
            routes.chain(rest)
        })
        .collect();
    routes.extend(reader.host_redirects(ingress));
    routes.extend(
        default_backend.map(|backend| reader.default_route(Part::DefaultBackend, Hostnames::Any, backend)),
    );
    if routes.is_empty() && problems.iter().all(|problem| problem.object != reader.key) {
        let message = "The Ingress needs rules or a default backend.";
        problems.push(reader.warning(FieldPath::new("spec"), Reason::BackendNotFound, message));
    }
    routes
}

/// All requests for a host without a matching path, in the name of an entry of `spec.rules`, without backends.
pub(crate) fn host_fallback(key: &Arc<ObjectKey>, age: Age, entry: usize, host: &Hostname) -> Route {
    let hostnames = Hostnames::Named(Box::new([host.clone()]));
    let rules = vec![rule(0, vec![everything()], Vec::new(), Vec::new())];
    // The entry has all messages, so the generation does not matter.
    Route::of_ingress((key, 0, age), Part::HostFallback(entry), hostnames, rules)
}

/// Every request, behind every path that is written.
fn everything() -> Match {
    Match { index: 0, path: Path::unwritten(), method: None, conditions: Conditions::default() }
}

/// An Ingress that is read.
struct Reader<'a> {
    annotations: &'a IngressAnnotations,
    neighbours: &'a Neighbours<'a>,
    key: Arc<ObjectKey>,
    generation: i64,
    age: Age,
}

impl Reader<'_> {
    /// An entry of `spec.rules` for its host or an alias; `None` when it asks for nothing of its own.
    fn route(
        &self,
        (index, rule): (usize, &api::IngressRule),
        (hostnames, refusal): (Hostnames, Option<Refusal>),
        default_backend: Option<&api::IngressBackend>,
        problems: &mut Vec<Problem>,
    ) -> Option<Route> {
        let at = field::rule(index);
        let paths = rule.http.as_ref().map(|http| http.paths.as_slice()).unwrap_or_default();
        let mut route = if paths.is_empty() {
            match default_backend {
                _ if self.leads(rule) && self.annotations.host_redirect().is_some() => return None,
                // For every host, the default backend has the same route already.
                Some(_) if hostnames == Hostnames::Any => return None,
                Some(backend) => self.default_route(Part::IngressHost(index), hostnames, backend),
                None => {
                    let message = "The rule needs paths, or the Ingress a default backend.";
                    problems.push(self.warning(at.child("http"), Reason::BackendNotFound, message));
                    return None;
                }
            }
        } else {
            // An Ingress may have thousands of entries, and most have as many rules as paths.
            let mut rules = Vec::with_capacity(paths.len());
            for (path, content) in paths.iter().enumerate() {
                let own = self.path_rule((index, path), &hostnames, content);
                let own = self.with_canaries(own, (index, path), rule.host.as_deref(), content);
                rules.extend(own.into_iter().flat_map(|rule| self.with_methods(rule)));
            }
            self.of_rules(Part::IngressRule(index), hostnames, rules)
        };
        route.refusals = refusal.into_iter().collect();
        Some(route)
    }

    /// An entry of `spec.rules` for the aliases of its host. Its problems are those of the host.
    fn aliases(
        &self,
        (index, rule): (usize, &api::IngressRule),
        default_backend: Option<&api::IngressBackend>,
    ) -> Vec<Route> {
        let routes = self.aliases_of(index, rule).filter_map(|(number, hostnames)| {
            let route = self.route((index, rule), (hostnames, None), default_backend, &mut Vec::new())?;
            Some(Route { alias: number, ..route })
        });
        routes.collect()
    }

    /// The aliases of the host of a rule, with their numbers.
    fn aliases_of(&self, index: usize, rule: &api::IngressRule) -> impl Iterator<Item = (u8, Hostnames)> {
        let MoreHosts { main, aliases, .. } = &self.neighbours.more_hosts;
        let is_main = match hostnames_of(index, rule) {
            (Hostnames::Any, _) => main.is_none(),
            (Hostnames::Named(names), _) => names.first() == main.as_ref() && main.is_some(),
        };
        let aliases = aliases.iter().filter(move |_| is_main);
        aliases.map(|(number, alias)| (*number, Hostnames::Named(Box::new([alias.clone()]))))
    }

    /// Whether requests without a path for the host of a rule have the redirect of the Ingress.
    fn leads(&self, rule: &api::IngressRule) -> bool {
        let host = rule.host.as_deref().and_then(|host| Hostname::parse(host).ok());
        host.is_some_and(|host| self.neighbours.led_hosts.contains(&host))
    }

    /// The redirect of the requests without a path for the host of a rule and its aliases.
    fn host_redirect(&self, (index, rule): (usize, &api::IngressRule)) -> Vec<Route> {
        let Some(redirect) = self.annotations.host_redirect().filter(|_| self.leads(rule)) else {
            return Vec::new();
        };
        // A later filter takes the place of an equal one of the annotations.
        let change = PathChange::Redirect(Box::new(redirect));
        let own = (0, hostnames_of(index, rule).0);
        let hosts = std::iter::once(own).chain(self.aliases_of(index, rule));
        let routes = hosts.map(|(alias, hostnames)| {
            let rest = self::rule(0, vec![everything()], Vec::new(), Vec::new());
            let rest = self.annotated(rest, &hostnames, Some(&change), &field::rule(index));
            Route { alias, ..self.of_rules(Part::IngressHost(index), hostnames, vec![rest]) }
        });
        routes.collect()
    }

    /// The redirects from other hosts to those of the rules.
    fn host_redirects(&self, ingress: &Ingress) -> Vec<Route> {
        let Neighbours { more_hosts, keeps_scheme, .. } = self.neighbours;
        let rules = || ingress.spec.iter().flat_map(|spec| spec.rules.iter().flatten());
        let routes = more_hosts.redirects.iter().filter_map(|HostRedirect { from, to }| {
            let is_to = |rule: &api::IngressRule| {
                rule.host.as_deref().is_some_and(|host| host.eq_ignore_ascii_case(to.as_str()))
            };
            let entry = rules().position(is_to)?;
            let is_tls = self.neighbours.tls_hosts.contains(to);
            let with_tls = if is_tls { RedirectScheme::Https } else { RedirectScheme::Http };
            let scheme = (!keeps_scheme).then_some(with_tls);
            let redirect = Redirect::to_host(RedirectStatus::PermanentRedirect, scheme, to)?;
            let rule = redirecting(rule(0, vec![everything()], Vec::new(), Vec::new()), redirect);
            let hostnames = Hostnames::Named(Box::new([from.clone()]));
            Some(self.of_rules(Part::HostRedirect(entry), hostnames, vec![rule]))
        });
        routes.collect()
    }

    /// A route of an entry of `spec.rules`, with the redirects of the root and of plaintext.
    fn with_redirects(&self, entry: usize, route: Route, is_tls: bool) -> Vec<Route> {
        let IngressAnnotations { https, app_root, .. } = self.annotations;
        if self.annotations.is_closed() {
            return vec![route];
        }
        let mut routes = Vec::with_capacity(1);
        let root = app_root.as_ref().map(|path| {
            let redirect = Redirect::to_path(RedirectStatus::Found, path.clone());
            let (root, _) = Path::parse(PathKind::Exact, "/");
            let root = root.into_iter().map(|path| Match { path, ..everything() }).collect();
            let of_root = redirecting(rule(0, root, Vec::new(), Vec::new()), redirect);
            let root = self.of_rules(Part::IngressRoot(entry), route.hostnames.clone(), vec![of_root]);
            Route { alias: route.alias, ..root }
        });
        // nginx redirects by other annotations before it redirects to HTTPS.
        let redirects = self.annotations.redirects_to_https(is_tls) && !self.annotations.redirects();
        let is_challenge_redirected = redirects && !https.spares_challenges;
        let challenges =
            if self.annotations.security.basic_auth.is_some() || (redirects && https.spares_challenges) {
                let (rest, challenges) = split_challenges(entry, route);
                routes.push(rest);
                challenges
            } else {
                routes.push(route);
                None
            };
        let (redirected, served) =
            if is_challenge_redirected { (challenges, None) } else { (None, challenges) };
        routes.extend(redirected);
        if redirects {
            let redirect = Redirect::to_https(RedirectStatus::PermanentRedirect);
            let redirects: Vec<Route> = routes
                .iter()
                .map(|route| {
                    // The rules for a header of a canary have the same path as the rule for the rest.
                    let rules = route.rules.iter().filter(|rule| is_unconditional(rule));
                    let rules = rules.map(|rule| redirecting(rule.clone(), redirect.clone()));
                    Route { ingress_port: Some(PLAINTEXT), rules: rules.collect(), ..route.clone() }
                })
                .collect();
            for route in &mut routes {
                route.ingress_port = Some(TLS);
            }
            routes.extend(redirects);
        }
        // nginx redirects the root before it redirects to HTTPS.
        root.into_iter().chain(routes).chain(served).collect()
    }

    /// Whether the class has a certificate for a host. It has none for every host.
    fn is_tls(&self, hostnames: &Hostnames) -> bool {
        match hostnames {
            Hostnames::Any => false,
            Hostnames::Named(names) => names.iter().any(|name| self.neighbours.tls_hosts.contains(name)),
        }
    }

    /// All requests for these hosts without a matching rule.
    fn default_route(&self, part: Part, hostnames: Hostnames, backend: &api::IngressBackend) -> Route {
        let mut refusals = Vec::new();
        let backends =
            normalise_backend(&self.key.name.namespace, backend, &field::default_backend(), &mut refusals);
        let content = rule(0, vec![everything()], backends, refusals);
        let change = self.annotations.path_change.as_ref();
        let content = self.annotated(content, &hostnames, change, &field::default_backend());
        self.of_rules(part, hostnames, self.with_methods(content))
    }

    /// An entry of `http.paths`.
    fn path_rule(
        &self,
        (entry, index): (usize, usize),
        hostnames: &Hostnames,
        content: &api::HTTPIngressPath,
    ) -> Rule {
        let at = field::ingress_path(entry, index);
        let mut refusals = Vec::new();
        let written = content.path.as_deref().unwrap_or_default();
        let mut closing = Vec::new();
        let (paths, limitation, change) = match self.annotations.rewriting.as_ref() {
            None => {
                let paths = normalise_path(content, content.path.as_deref(), &at, &mut refusals);
                let limitation =
                    paths.first().filter(|_| refusals.is_empty()).and_then(|path| no_pattern(content, path));
                (paths, limitation, None)
            }
            Some(rewriting) => match rewriting.read(written) {
                Ok(pattern) => {
                    let mut paths = normalise_path(content, Some(&pattern.path), &at, &mut refusals);
                    let is_open = pattern.is_open && refusals.is_empty();
                    let open = Path::literal(&pattern.path).filter(|_| is_open);
                    if is_open && open.is_none() {
                        closing = vec![Path::everything_below(&pattern.path)];
                    }
                    let limitation = pattern.limitation.filter(|_| open.is_none());
                    paths = open.map_or(paths, |open| vec![open]);
                    (paths, limitation.map(|limitation| format!("{limitation}.")), pattern.rewrite)
                }
                Err(why) => {
                    let message = format!("{}; requests are not served by this path.", capitalised(why));
                    refusals.push(Refusal::new(at.child("path"), Reason::UnsupportedValue, message));
                    closing = beginnings(written);
                    (Vec::new(), None, None)
                }
            },
        };
        let backends = normalise_backend(
            &self.key.name.namespace,
            &content.backend,
            &at.child("backend"),
            &mut refusals,
        );
        if paths.is_empty() && closing.is_empty() {
            closing = Path::in_place_of(written);
        }
        let matches = paths.into_iter().map(|path| Match { path, ..everything() });
        let closing = closing.into_iter().map(|path| Match { path, ..everything() });
        let limitation = limitation.map(|message| Refusal::limited(at.child("path"), message));
        let content = Rule {
            limitations: limitation.into_iter().collect(),
            closing: closing.collect(),
            ..rule(index, matches.collect(), backends, refusals)
        };
        self.annotated(content, hostnames, change.as_ref().or(self.annotations.path_change.as_ref()), &at)
    }

    /// A rule for a path, with the rules for the requests of a canary. The first canary of a path counts, as in
    /// ingress-nginx, and has the annotations of this Ingress.
    fn with_canaries(
        &self,
        own: Rule,
        (entry, path): (usize, usize),
        host: Option<&str>,
        content: &api::HTTPIngressPath,
    ) -> Vec<Rule> {
        let canaries = self.neighbours.canaries.iter().filter(|_| !own.backends.is_empty());
        let mut found = canaries.filter_map(|canary| Some((&canary.share, canary.path(host, content)?)));
        let Some((share, of_canary)) = found.next() else { return vec![own] };
        let at = field::ingress_path(entry, path).child("backend");
        let backends = normalise_backend(&self.key.name.namespace, &of_canary.backend, &at, &mut Vec::new());
        if backends.is_empty() { vec![own] } else { divide(own, share, &backends) }
    }

    /// A rule for the methods that the annotations allow, and one that answers 405 to others.
    fn with_methods(&self, rule: Rule) -> Vec<Rule> {
        let Some(methods) = self.annotations.methods.as_ref().filter(|_| !self.annotations.is_closed())
        else {
            return vec![rule];
        };
        let with = |methods: &[&'static str]| -> Arc<[Match]> {
            let of = |matched: &Match| {
                let of_method = |method: &&'static str| Match { method: Some(method), ..matched.clone() };
                methods.iter().map(of_method).collect::<Vec<_>>()
            };
            rule.matches.iter().flat_map(of).collect()
        };
        let response = Some(Arc::new(DirectResponse::status(METHOD_NOT_ALLOWED)));
        let filters = Filters { response, ..Filters::default() };
        let refused = |matches| Rule {
            matches,
            filters: Some(Arc::new(filters)),
            role: refusing(&rule),
            backends: Box::default(),
            ..rule.clone()
        };
        match methods {
            AllowedMethods::Only(methods) => {
                vec![Rule { matches: with(methods), ..rule.clone() }, refused(rule.matches.clone())]
            }
            AllowedMethods::AllBut(methods) => vec![refused(with(methods)), rule.clone()],
        }
    }

    /// A rule with the filters of the annotations.
    fn annotated(
        &self,
        content: Rule,
        hostnames: &Hostnames,
        change: Option<&PathChange>,
        at: &FieldPath,
    ) -> Rule {
        let annotations = self.annotations;
        if annotations.is_closed() {
            let response = Some(Arc::new(DirectResponse::status(UNAVAILABLE)));
            let filters = Filters { response, ..Filters::default() };
            let role = refusing(&content);
            return Rule { filters: Some(Arc::new(filters)), backends: Box::default(), role, ..content };
        }
        let mut refusals: Vec<Refusal> = content.refusals.iter().cloned().collect();
        let backend_settings = self.backend_settings(hostnames, &mut refusals);
        let IngressAnnotations { filters, host, response_status, .. } = annotations;
        if filters.is_empty() && host.is_none() && change.is_none() && response_status.is_none() {
            return Rule { backend_settings, refusals: refusals.into(), ..content };
        }
        let scope = FilterScope { namespace: &self.key.name.namespace, extensions: None };
        let mut reader = FilterReader::new(scope, &content.matches, &mut refusals);
        reader.read(filters, &FieldPath::new("metadata").child("annotations"));
        if let Some(change) = change {
            reader.rewrite(change, at.child("path"));
        }
        if let Some(status) = response_status {
            reader.answer_with(*status);
        }
        let ReadFilters { filters, .. } = reader.finish();
        // No backend gets the request or responds, so there is nothing else to change.
        if let Some(redirect) = filters.as_ref().and_then(|filters| filters.redirect.clone()) {
            let limitations = content.limitations.clone();
            let content = Rule { refusals: refusals.into(), ..content };
            return Rule { limitations, ..redirecting(content, redirect) };
        }
        Rule { filters, host: host.clone(), backend_settings, refusals: refusals.into(), ..content }
    }

    fn backend_settings(
        &self,
        hostnames: &Hostnames,
        refusals: &mut Vec<Refusal>,
    ) -> Option<Box<BackendSettings>> {
        let IngressAnnotations { by_cluster_ip, default_backend, .. } = self.annotations;
        let default_backend =
            default_backend.as_deref().map(|name| ObjectName::new(self.key.name.namespace.clone(), name));
        let protocol = self.backend_protocol(hostnames, refusals);
        let settings = BackendSettings { protocol, by_cluster_ip: *by_cluster_ip, default_backend };
        (settings != BackendSettings::default()).then(|| Box::new(settings))
    }

    /// The protocol of the backends of a rule for these hosts.
    fn backend_protocol(
        &self,
        hostnames: &Hostnames,
        refusals: &mut Vec<Refusal>,
    ) -> Option<BackendProtocol> {
        use annotations::BackendProtocol as Annotated;
        let traffic = match self.annotations.backend_protocol {
            Annotated::OfService => return None,
            Annotated::Grpc => return Some(BackendProtocol::Grpc),
            Annotated::Https => Traffic::Http,
            Annotated::Grpcs => Traffic::Grpc,
        };
        let of_route = match hostnames {
            Hostnames::Named(names) => names.first().filter(|name| !name.is_wildcard()),
            Hostnames::Any => None,
        };
        if let Some(name) = self.annotations.host.as_ref().or(of_route) {
            return Some(BackendProtocol::Tls { traffic, name: name.clone() });
        }
        let at = FieldPath::new("metadata").child("annotations");
        refusals.push(Capability::TlsWithoutName.refuse(at));
        None
    }

    fn of_rules(&self, part: Part, hostnames: Hostnames, rules: Vec<Rule>) -> Route {
        Route::of_ingress((&self.key, self.generation, self.age), part, hostnames, rules)
    }

    fn warning(&self, field: FieldPath, reason: Reason, message: impl Into<String>) -> Problem {
        Problem {
            object: self.key.clone(),
            field,
            severity: Severity::Warning,
            reason,
            message: message.into(),
        }
    }
}

/// The index of the port for plaintext in [`INGRESS_PORTS`](crate::infrastructure::INGRESS_PORTS).
pub(crate) const PLAINTEXT: u8 = 0;

/// The index of the port for TLS.
const TLS: u8 = 1;

/// Splits the challenges of ACME off a route. A path of a challenge that is a prefix stays in the route, too, for the
/// requests below it.
fn split_challenges(entry: usize, route: Route) -> (Route, Option<Route>) {
    let is_challenge = |rule: &Rule| {
        !rule.matches.is_empty()
            && rule.matches.iter().all(|matched| annotations::is_challenge(&matched.path.text))
    };
    if route.part != Part::IngressRule(entry) || !route.rules.iter().any(is_challenge) {
        return (route, None);
    }
    let exact = |rule: &Rule| {
        let exact = |matched: &Match| {
            let path = Path { kind: PathKind::Exact, ..matched.path.clone() };
            Match { path, ..matched.clone() }
        };
        Rule { matches: rule.matches.iter().map(exact).collect(), ..rule.clone() }
    };
    let rules: Vec<Rule> = route.rules.iter().filter(|rule| is_challenge(rule)).map(exact).collect();
    let is_whole = |rule: &Rule| {
        is_challenge(rule) && rule.matches.iter().all(|matched| matched.path.kind == PathKind::Exact)
    };
    let challenges = Route { part: Part::IngressChallenges(entry), rules, ..route.clone() };
    let rest = Route { rules: route.rules.into_iter().filter(|rule| !is_whole(rule)).collect(), ..route };
    (rest, Some(challenges))
}

fn is_unconditional(rule: &Rule) -> bool {
    rule.matches.iter().all(|matched| matched.conditions.is_empty())
}

/// A rule that redirects instead of serving.
fn redirecting(rule: Rule, redirect: Redirect) -> Rule {
    let filters = Filters { redirect: Some(redirect), ..Filters::default() };
    Rule {
        filters: Some(Arc::new(filters)),
        backends: Box::default(),
        host: None,
        backend_settings: None,
        limitations: ThinVec::default(),
        ..rule
    }
}

/// The status of the paths of an Ingress that an annotation closes.
const UNAVAILABLE: u16 = 503;

/// The response of a path to other methods than its Ingress allows.
const METHOD_NOT_ALLOWED: u16 = 405;

/// The limitation of a path that other controllers would read as a pattern.
fn no_pattern(content: &api::HTTPIngressPath, path: &Path) -> Option<String> {
    let text = content.path.as_deref().filter(|text| looks_like_pattern(text, &content.path_type))?;
    let how = if path.kind == PathKind::Exact {
        "it is matched literally"
    } else {
        "it is matched literally, as a prefix"
    };
    Some(format!("Path \"{text}\" is no pattern here: {how}."))
}

/// A clause as the beginning of a sentence.
fn capitalised(clause: &str) -> String {
    let (first, rest) = clause.split_at_checked(1).unwrap_or((clause, ""));
    format!("{}{rest}", first.to_ascii_uppercase())
}

/// Whether the author of a path may have meant a pattern: `*` or `:name` as an element, or the patterns of other
/// controllers.
fn looks_like_pattern(text: &str, path_type: &str) -> bool {
    let is_wildcard = |element: &str| element == "*" || (element.len() > 1 && element.starts_with(':'));
    text.split('/').any(is_wildcard)
        || (path_type == IMPLEMENTATION_SPECIFIC && text.contains(PATTERN_CHARACTERS))
}

/// A rule with all parts that an Ingress can have.
fn rule(index: usize, matches: Vec<Match>, backends: Vec<BackendRef>, refusals: Vec<Refusal>) -> Rule {
    Rule {
        index,
        matches: matches.into(),
        backends: backends.into(),
        refusals: refusals.into(),
        ..Rule::default()
    }
}

/// The hostnames of an entry of `spec.rules`, and the refusal of its host.
fn hostnames_of(index: usize, rule: &api::IngressRule) -> (Hostnames, Option<Refusal>) {
    match rule.host.as_deref().filter(|host| !host.is_empty()) {
        None => (Hostnames::Any, None),
        Some(host) => normalise_host(host, &field::rule(index)),
    }
}

fn normalise_host(host: &str, at: &FieldPath) -> (Hostnames, Option<Refusal>) {
    match Hostname::parse(host) {
        Ok(hostname) => (Hostnames::Named(Box::new([hostname])), None),
        Err(error) => {
            let message = format!("\"{host}\" is not a hostname a request could have: {error}.");
            let refusal = Refusal::new(at.child("host"), Reason::UnsupportedValue, message);
            (Hostnames::Named(Box::default()), Some(refusal))
        }
    }
}

/// Reads a path and its type: every spelling of a path that is refused, and none if the match is inexpressible.
fn normalise_path(
    content: &api::HTTPIngressPath,
    path: Option<&str>,
    at: &FieldPath,
    refusals: &mut Vec<Refusal>,
) -> Vec<Path> {
    let kind = match content.path_type.as_str() {
        "Exact" => PathKind::Exact,
        // The API leaves the meaning of the type to the controller.
        "Prefix" | IMPLEMENTATION_SPECIFIC => PathKind::Prefix,
        other => {
            refusals.push(Refusal::new(
                at.child("pathType"),
                Reason::UnsupportedValue,
                format!("\"{other}\" is not a type of path; requests are not served by this path."),
            ));
            return Vec::new();
        }
    };
    let text = path.filter(|path| !path.is_empty()).unwrap_or("/");
    let (path, problem) = Path::parse(kind, text);
    if let Some(problem) = problem {
        let message = problem.message(text, "cannot be matched; it is no pattern");
        refusals.push(Refusal::new(at.child("path"), Reason::UnsupportedValue, message));
    }
    path.map(|path| path.with_spellings(text, problem)).unwrap_or_default()
}

/// The role of a rule in the place of another one.
fn refusing(rule: &Rule) -> RuleRole {
    RuleRole::Refusing(rule.backends.iter().map(|backend| backend.name.clone()).collect())
}

/// The backend of an Ingress of `namespace`, unless it is no Service.
fn normalise_backend(
    namespace: &Arc<str>,
    backend: &api::IngressBackend,
    at: &FieldPath,
    refusals: &mut Vec<Refusal>,
) -> Vec<BackendRef> {
    if let Some(resource) = &backend.resource {
        let group = resource.api_group.as_deref().filter(|group| !group.is_empty());
        refusals.push(Refusal::new(
            at.child("resource"),
            Reason::InvalidKind,
            format!(
                "A backend of kind {} of {} is not supported; use a Service.",
                resource.kind,
                group.unwrap_or("the core group")
            ),
        ));
        return Vec::new();
    }
    let Some(service) = &backend.service else {
        refusals.push(Refusal::new(at.clone(), Reason::BackendNotFound, "The backend names no Service."));
        return Vec::new();
    };
    let port = service.port.as_ref().and_then(|port| match (port.number, port.name.as_deref()) {
        (Some(number), _) if number != 0 => Some(BackendPort::Number(number)),
        (_, Some(name)) if !name.is_empty() => Some(BackendPort::Name(name.into())),
        (_, _) => None,
    });
    vec![BackendRef {
        index: 0,
        other: None,
        // A backend is of the Ingress's own namespace.
        name: ObjectName::new(namespace.clone(), &service.name),
        port,
        weight: 1,
    }]
}
