//! Filters: what Gateway API says that becomes of a message, and which of it PingSIX cannot do.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::World;
use super::world::{Route, Rule};
use super::{BackendProtocol, Target};
use crate::effect::{Effect, Headers, Permission, Way, backend_answer, collect, resolve, split, take_script};
use crate::probe::Probe;

/// The effect of a rule on messages. Rules with the same effect are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filters {
    request: Changes,
    pub(super) response: Changes,
    path: Option<NewPath>,
    pub(super) cors: Option<Cors>,
    pub(super) redirect: Option<Redirect>,
}

/// Changes to headers, by lower-case name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    set: BTreeMap<String, String>,
    add: BTreeMap<String, Vec<String>>,
    remove: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum NewPath {
    Full(String),
    /// The prefix that is matched, without a slash at its end, and what replaces it.
    Prefix(String, String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redirect {
    status: u16,
    scheme: Option<String>,
    hostname: Option<String>,
    port: Option<u16>,
    path: Option<NewPath>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cors {
    origins: BTreeSet<String>,
    methods: BTreeSet<String>,
    headers: BTreeSet<String>,
    expose: BTreeSet<String>,
    max_age: i64,
    credentials: bool,
}

/// A rule's filters, and what else it says about the way to its backends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Read {
    /// Whether there is something PingSIX cannot do.
    pub(super) is_unsupported: bool,
    pub(super) filters: Filters,
    /// The Host that backends see.
    host: Option<String>,
}

/// Reads the filters of a rule and those of its only backend, which are run after them.
pub(super) fn read(rule: &Rule) -> Read {
    let mut all = Read::default();
    let prefix = match rule.matches.as_slice() {
        // No match at all is one of the prefix `/`.
        [] => Some("/".to_owned()),
        [one] if one.call.is_none() && one.path.r#type.as_deref() != Some("Exact") => {
            Some(one.path.value.clone().unwrap_or_else(|| "/".to_owned()))
        }
        _ => None,
    };
    all.read_list(&rule.filters, prefix.as_deref());
    for backend in &rule.backend_refs {
        let own = Read::of_list(&backend.filters, prefix.as_deref());
        // PingSIX runs filters per rule, so several backends cannot have their own.
        all.is_unsupported |=
            own.is_unsupported || (!backend.filters.is_empty() && rule.backend_refs.len() > 1);
        all.then(own);
    }
    all.is_unsupported |= all.filters.redirect.is_some()
        && (!rule.backend_refs.is_empty() || all.filters.path.is_some() || all.host.is_some());
    all.is_unsupported |= rule.session_persistence.is_some() || way(rule, BackendProtocol::Http1).is_none();
    all
}

impl Read {
    fn of_list(list: &[Value], prefix: Option<&str>) -> Self {
        let mut read = Self::default();
        read.read_list(list, prefix);
        read
    }

    fn read_list(&mut self, list: &[Value], prefix: Option<&str>) {
        let mut seen = BTreeSet::new();
        for filter in list {
            let kind = filter["type"].as_str().unwrap();
            let is_new = seen.insert(kind);
            if !is_new || self.read_one(kind, filter, prefix).is_none() {
                self.is_unsupported = true;
            }
        }
    }

    /// `None` when there is something PingSIX cannot do.
    fn read_one(&mut self, kind: &str, filter: &Value, prefix: Option<&str>) -> Option<()> {
        match kind {
            "RequestHeaderModifier" => {
                self.filters.request = Changes::read(&filter["requestHeaderModifier"], true)?;
            }
            "ResponseHeaderModifier" => {
                self.filters.response = Changes::read(&filter["responseHeaderModifier"], false)?;
            }
            "URLRewrite" => {
                let rewrite = &filter["urlRewrite"];
                self.host = rewrite["hostname"].as_str().map(str::to_owned);
                if rewrite["path"].is_object() {
                    self.filters.path = Some(NewPath::read(&rewrite["path"], prefix)?);
                }
                // PingSIX takes a dollar sign in a replacement for a reference.
                if matches!(&self.filters.path, Some(NewPath::Prefix(_, to)) if to.contains('$')) {
                    return None;
                }
            }
            "RequestRedirect" => {
                self.filters.redirect = Some(Redirect::read(&filter["requestRedirect"], prefix)?);
            }
            "CORS" => self.filters.cors = Some(Cors::read(&filter["cors"], false)?),
            _ => return None,
        }
        Some(())
    }

    /// Adds the filters of a backend after the filters of its rule. Filters of both for the same part of a message are not
    /// supported.
    fn then(&mut self, next: Self) {
        let (one, other) = (&mut self.filters, next.filters);
        let meet = one.request.meets(&other.request)
            || one.response.meets(&other.response)
            || (one.path.is_some() && other.path.is_some())
            || (one.cors.is_some() && other.cors.is_some())
            || (self.host.is_some() && next.host.is_some());
        self.is_unsupported |= meet;
        one.request.extend(other.request);
        one.response.extend(other.response);
        one.path = one.path.take().or(other.path);
        one.cors = one.cors.take().or(other.cors);
        one.redirect = one.redirect.take().or(other.redirect);
        self.host = self.host.take().or(next.host);
    }

    /// Whether a backend that speaks HTTP/2 would lose the host, which PingSIX does when it rewrites nothing but the
    /// path.
    pub(super) fn loses_host(&self) -> bool {
        self.filters.path.is_some() && self.host.is_none()
    }

    /// The effect on a request to a backend and on its answer.
    pub(super) fn effect(&self, request: &Probe) -> Effect {
        let Filters { request: to_backend, response, path, cors, redirect: _ } = &self.filters;
        let mut received = backend_answer();
        if let Some(cors) = cors {
            cors.mark(&mut received, request.header("origin"));
        }
        response.apply(&mut received);
        let script = take_script(&mut received, request.header("origin"));
        let mut sent = collect(&request.headers);
        to_backend.apply(&mut sent);
        let path = path.as_ref().map_or(request.path.clone(), |path| path.applied(&request.path));
        Effect {
            target: path + &request.query_string(),
            host: self.host.clone().or_else(|| request.host.clone()),
            request: sent,
            response: received,
            script,
        }
    }
}

impl Changes {
    /// `None` when PingSIX cannot make them.
    pub(super) fn read(modifier: &Value, of_request: bool) -> Option<Self> {
        let mut changes = Self::default();
        let list = |name: &str| modifier[name].as_array().cloned().unwrap_or_default();
        let read = |header: &Value| {
            let name = header["name"].as_str().unwrap().to_ascii_lowercase();
            let value = header["value"].as_str().unwrap().to_owned();
            // PingSIX replaces these in responses.
            let expanded = ["$remote_addr", "$upstream_addr", "$request_id"];
            let is_literal = of_request || !expanded.iter().any(|variable| value.contains(variable));
            (may_be_changed(&name, of_request) && is_literal).then_some((name, value))
        };
        for header in list("set") {
            let (name, value) = read(&header)?;
            changes.set.entry(name).or_insert(value);
        }
        for header in list("add") {
            let (name, value) = read(&header)?;
            changes.add.entry(name).or_default().push(value);
        }
        for name in list("remove") {
            let name = name.as_str().unwrap().to_ascii_lowercase();
            if !may_be_changed(&name, of_request) {
                return None;
            }
            changes.remove.insert(name);
        }
        // Of a name in several lists the specification does not speak; it is removed.
        let Self { set, add, remove } = &mut changes;
        set.retain(|name, _| !remove.contains(name));
        add.retain(|name, _| !remove.contains(name));
        Some(changes)
    }

    fn names(&self) -> BTreeSet<&String> {
        self.set.keys().chain(self.add.keys()).chain(&self.remove).collect()
    }

    fn meets(&self, other: &Self) -> bool {
        !self.names().is_disjoint(&other.names())
    }

    fn extend(&mut self, other: Self) {
        self.set.extend(other.set);
        self.add.extend(other.add);
        self.remove.extend(other.remove);
    }

    pub(super) fn apply(&self, headers: &mut Headers) {
        for (name, value) in &self.set {
            headers.insert(name.clone(), vec![value.clone()]);
        }
        for (name, values) in &self.add {
            headers.entry(name.clone()).or_default().extend(values.iter().cloned());
        }
        headers.retain(|name, _| !self.remove.contains(name));
    }
}

/// Headers that belong to the gateway, and the Host, which a `URLRewrite` changes.
fn may_be_changed(name: &str, of_request: bool) -> bool {
    let is_framing = ["content-length", "transfer-encoding", "connection", "upgrade", "x-pingsix-redirect"]
        .contains(&name);
    !(is_framing || (of_request && name == "host"))
}

impl NewPath {
    /// `None` when it cannot be: a prefix is replaced where one is matched.
    fn read(modifier: &Value, prefix: Option<&str>) -> Option<Self> {
        if modifier["type"] == "ReplaceFullPath" {
            return Some(Self::Full(modifier["replaceFullPath"].as_str().unwrap().to_owned()));
        }
        let prefix = prefix?;
        let stem = prefix.strip_suffix('/').unwrap_or(prefix).to_owned();
        Some(Self::Prefix(stem, modifier["replacePrefixMatch"].as_str().unwrap().to_owned()))
    }

    /// The table of `HTTPPathModifier`.
    fn applied(&self, path: &str) -> String {
        let new = match self {
            Self::Full(value) => value.clone(),
            Self::Prefix(stem, replacement) => match &path[stem.len()..] {
                "" => replacement.clone(),
                rest => format!("{}{rest}", replacement.strip_suffix('/').unwrap_or(replacement)),
            },
        };
        if new.starts_with('/') { new } else { format!("/{new}") }
    }
}

impl Redirect {
    fn read(redirect: &Value, prefix: Option<&str>) -> Option<Self> {
        Some(Self {
            status: redirect["statusCode"].as_u64().map_or(302, |status| u16::try_from(status).unwrap()),
            scheme: redirect["scheme"].as_str().map(str::to_owned),
            hostname: redirect["hostname"].as_str().map(str::to_owned),
            port: redirect["port"].as_u64().map(|port| u16::try_from(port).unwrap()),
            path: match redirect.get("path") {
                None => None,
                Some(path) => Some(NewPath::read(path, prefix)?),
            },
        })
    }

    /// The answer to a request that came in by a port.
    pub(super) fn target(&self, port: u16, request: &Probe) -> Target {
        let own_scheme = if request.tls { "https" } else { "http" };
        let scheme = self.scheme.as_deref().unwrap_or(own_scheme);
        let well_known = if scheme == "https" { 443 } else { 80 };
        let port = match (self.port, &self.scheme) {
            (Some(port), _) => port,
            (None, Some(_)) => well_known,
            (None, None) => port,
        };
        let path = self.path.as_ref().map_or(request.path.clone(), |path| path.applied(&request.path));
        let host = self.hostname.clone().or_else(|| request.usable_host());
        let location = host.map(|host| {
            let path = path + &request.query_string();
            resolve(&format!("{scheme}://{host}:{port}{path}"), false, "")
        });
        Target::Redirect { status: self.status, location }
    }

    /// Whether listeners, as scheme and port, send a client to different places.
    fn depends_on(&self, listeners: &BTreeSet<(bool, u16)>) -> bool {
        let schemes: BTreeSet<bool> = listeners.iter().map(|(tls, _)| *tls).collect();
        let ports: BTreeSet<u16> = listeners.iter().map(|(_, port)| *port).collect();
        self.scheme.is_none() && (schemes.len() > 1 || (self.port.is_none() && ports.len() > 1))
    }

    /// Whether only the path changes, to one that is surely a path: PingSIX tells the client so, whatever it spoke to.
    fn keeps_origin(&self) -> bool {
        let path = match &self.path {
            None => return false,
            // An empty replacement may leave a path that starts with two slashes.
            Some(NewPath::Prefix(_, path)) if path.trim_matches('/').is_empty() => return false,
            Some(NewPath::Full(path) | NewPath::Prefix(_, path)) => path,
        };
        self.scheme.is_none()
            && self.hostname.is_none()
            && self.port.is_none()
            && !path.starts_with("//")
            && !path.contains('$')
    }
}

impl Filters {
    /// Whether a data plane for all these listeners, as scheme and port, cannot redirect as the filters say. If it has
    /// nothing else to do for the request, it can leave to the client what only the client knows.
    pub(super) fn is_ambiguous(&self, listeners: &BTreeSet<(bool, u16)>, alone: bool) -> bool {
        let Some(redirect) = &self.redirect else { return false };
        let is_left_to_client =
            alone && redirect.keeps_origin() && self.cors.is_none() && self.response == Changes::default();
        redirect.depends_on(listeners) && !is_left_to_client
    }
}

impl Cors {
    /// Reads the field of a policy, or of a filter, whose specification admits credentials of any origin.
    pub(super) fn read(cors: &Value, is_of_policy: bool) -> Option<Self> {
        let list = |name: &str| -> BTreeSet<String> {
            let values = cors[name].as_array().into_iter().flatten();
            values.map(|value| value.as_str().unwrap().to_owned()).collect()
        };
        let lower = |names: BTreeSet<String>| -> BTreeSet<String> {
            names.into_iter().map(|name| name.to_ascii_lowercase()).collect()
        };
        // A star is all, whatever else is listed.
        let or_all = |names: BTreeSet<String>| {
            if names.contains("*") { ["*".to_owned()].into() } else { names }
        };
        let mut methods = or_all(list("allowMethods"));
        // The only methods PingSIX knows here.
        let known = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "*"];
        if !methods.iter().all(|method| known.contains(&method.as_str())) {
            return None;
        }
        if !methods.contains("*") {
            methods.extend(["GET", "HEAD", "POST"].map(str::to_owned));
        }
        let origins = or_all(list("allowOrigins"));
        let is_any = |origin: &String| origin == "*" || origin.contains("://*") && !origin.contains("://*.");
        let is_for_any = is_of_policy && origins.iter().any(is_any);
        let read = Self {
            origins,
            methods,
            headers: or_all(lower(list("allowHeaders"))),
            expose: or_all(lower(list("exposeHeaders"))),
            max_age: cors["maxAge"].as_i64().unwrap_or(5),
            credentials: cors["allowCredentials"] == true && !is_for_any,
        };
        // A browser would take the star for a name, and PingSIX cannot know the names.
        (!(read.credentials && read.expose.contains("*"))).then_some(read)
    }

    fn allows(&self, origin: &str) -> bool {
        self.origins.iter().any(|allowed| match allowed.split_once("://*") {
            _ if allowed == "*" => true,
            Some((scheme, suffix)) => origin
                .strip_prefix(&format!("{scheme}://"))
                .is_some_and(|host| host.len() > suffix.len() && host.ends_with(suffix)),
            None => allowed == origin,
        })
    }

    /// Lets a script of an allowed origin read an answer.
    fn mark(&self, headers: &mut Headers, origin: Option<&str>) {
        let Some(origin) = origin.filter(|origin| self.allows(origin)) else { return };
        let mut set = |name: &str, value: String| headers.insert(name.to_owned(), vec![value]);
        set("access-control-allow-origin", origin.to_owned());
        set("access-control-allow-credentials", self.credentials.to_string());
        set("access-control-expose-headers", self.expose.iter().cloned().collect::<Vec<_>>().join(", "));
    }

    /// The permission of a preflight.
    pub(super) fn permit(&self, request: &Probe) -> Option<Permission> {
        let origin = request.header("origin")?;
        let method = request.header("access-control-request-method")?;
        let asked = request.header("access-control-request-headers").unwrap_or_default();
        let lists = |names: &BTreeSet<String>, name: &str| names.contains("*") || names.contains(name);
        let is_permitted = self.allows(origin)
            && lists(&self.methods, method)
            && split(asked).all(|name| lists(&self.headers, &name.to_ascii_lowercase()));
        is_permitted.then_some(Permission { credentials: self.credentials, max_age: self.max_age })
    }
}

/// The connection to the backends of a rule; `None` if PingSIX cannot honour the rule.
pub(super) fn way(rule: &Rule, protocol: BackendProtocol) -> Option<Way> {
    const MAX_SECONDS: u64 = 86_400;
    let mut idle = None;
    for name in ["request", "backendRequest"] {
        let Some(text) = rule.timeouts[name].as_str() else { continue };
        // Zero is no timeout at all.
        let seconds = match duration(text)? {
            0 => MAX_SECONDS,
            millis => millis.div_ceil(1000).min(MAX_SECONDS),
        };
        idle = Some(idle.map_or(seconds, |other: u64| other.min(seconds)));
    }
    let idle = idle.or_else(|| (protocol != BackendProtocol::Http1).then_some(MAX_SECONDS));
    let retry = &rule.retry;
    if retry["codes"].as_array().is_some_and(|codes| !codes.is_empty()) || retry["backoff"].is_string() {
        return None;
    }
    Some(Way {
        timeout: idle.map(|seconds| (seconds.min(5), seconds, seconds)),
        retries: retry["attempts"].as_u64().unwrap_or(1).min(16),
    })
}

/// A duration of Gateway API in milliseconds.
fn duration(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut sum = 0;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        let unit = &rest[digits..];
        let end = unit.find(|letter: char| letter.is_ascii_digit()).unwrap_or(unit.len());
        sum += number
            * match &unit[..end] {
                "h" => 3_600_000,
                "m" => 60_000,
                "s" => 1000,
                "ms" => 1,
                _ => return None,
            };
        rest = &unit[end..];
    }
    Some(sum)
}

impl World {
    /// The origins, as scheme and port, of the requests that these listeners take.
    pub(super) fn origins(&self, listeners: &BTreeSet<usize>) -> BTreeSet<(bool, u16)> {
        let listener = |index: &usize| &self.listeners[*index];
        listeners.iter().map(listener).map(|listener| (listener.protocol == "HTTPS", listener.port)).collect()
    }

    /// Whether a rule has a backend that its filters cannot be run for.
    pub(crate) fn has_hostless_backend(&self, route: &Route, rule: &Rule) -> bool {
        let loses_host = read(rule).loses_host();
        let speaks_http2 =
            |target: &Target| matches!(target, Target::Service { protocol: BackendProtocol::H2c, .. });
        loses_host && rule.backend_refs.iter().any(|backend| speaks_http2(&self.target_of(route, backend)))
    }

    /// Whether a rule with such a backend has no other that takes requests.
    pub(crate) fn has_hostless_backends_alone(&self, route: &Route, rule: &Rule) -> bool {
        let weighted = rule.backend_refs.iter().filter(|backend| backend.weight != Some(0));
        let mut targets = weighted.map(|backend| self.target_of(route, backend));
        let takes_requests = |target: Target| match target {
            Target::Service { protocol, .. } => protocol != BackendProtocol::H2c,
            Target::Status(_) | Target::Redirect { .. } | Target::Preflight(_) => false,
        };
        self.has_hostless_backend(route, rule) && !targets.any(takes_requests)
    }
}
