//! The phases of nginx for a request: the server, the location, rewrites, redirects, access, and the backend.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::ObjectName;
use regex::bytes::{Captures, Regex};

use super::servers::{CATCH_ALL, Certificate, DEFAULT, Location, Server, Upstream};
use super::settings::{Canary, Origins, Settings};
use super::{Nginx, wildcard};
use crate::answer::{Answer, Backend, Request};
use crate::original::uri::{escaped, normalised};
use crate::original::{Told, host_name, objects};

/// The status of redirects to HTTPS and to other hosts.
const REDIRECT_STATUS: u16 = 308;

/// Locations that are neither redirected to HTTPS nor ask for credentials.
const CHALLENGES: &str = "/.well-known/acme-challenge";

/// The statuses of `return` with a location.
const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];

/// A request and what nginx derives from it.
struct Asked<'a> {
    request: &'a Request,
    /// The host without port.
    host: String,
    /// The decoded path.
    uri: String,
    /// Path and query, as they were sent.
    request_uri: String,
}

impl Asked<'_> {
    fn scheme(&self) -> &'static str {
        if self.request.https { "https" } else { "http" }
    }

    fn header(&self, name: &str) -> Option<String> {
        let same = self.request.headers.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name));
        let values: Vec<&str> = same.map(|(_, value)| value.as_str()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    fn cookie(&self, name: &str) -> Option<String> {
        let cookies = self.header("cookie")?;
        let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(own, _)| *own == name).map(|(_, value)| value.to_owned())
    }
}

/// A location with its regular expression, if it has one.
type Found<'s> = (&'s Location, Option<&'s Regex>);

fn unknown(why: impl Into<String>) -> Answer {
    Answer::Unknown(why.into())
}

/// The path of a request at its backend, or an answer without one.
enum Rewritten {
    Path(String),
    Answer(Answer),
}

impl Nginx {
    pub(in crate::original) fn answer(&self, request: &Request) -> Told {
        let told = |answer| Told { answer, by: None, is_fallback: false };
        if let Some(conflict) = &self.conflict {
            return told(unknown(conflict.clone()));
        }
        let Some(uri) = normalised(&request.path) else { return told(Answer::Status(400)) };
        let asked = Asked {
            request,
            host: host_name(&request.host),
            uri,
            request_uri: request.with_query(&request.path),
        };
        if let Some(to) = self.redirects.get(&asked.host) {
            if request.https {
                return told(unknown("the certificate of a host that is redirected is not modelled"));
            }
            let path = asked.request_uri.strip_suffix('/').unwrap_or(&asked.request_uri);
            let location = format!("{}://{to}:80{path}", asked.scheme());
            return told(Answer::Redirect { status: REDIRECT_STATUS, location });
        }
        let Some((name, server)) = self.server(&asked.host) else { return told(Answer::Status(404)) };
        if let Some(why) = &server.unknown {
            return told(unknown(why.clone()));
        }
        let is_alias =
            name != CATCH_ALL && name != asked.host && wildcard(&asked.host).is_none_or(|own| own != name);
        if request.https && (is_alias || server.certificate != Certificate::Secret) {
            return told(unknown(
                "the host has no certificate of a Secret, and the default one is not modelled",
            ));
        }
        let roots = server
            .locations
            .iter()
            .filter_map(|location| Some((location, location.settings.app_root.as_ref()?)));
        if let Some((location, root)) = roots.into_iter().next().filter(|_| asked.uri == "/") {
            let location_url = format!("{}://{}{root}", asked.scheme(), request.host);
            let answer = Answer::Redirect { status: 302, location: location_url };
            return Told { answer, by: location.origin.clone(), is_fallback: location.is_default };
        }
        if let Some(location) = self.with_slash(name, server, &asked.uri) {
            let path = request.with_query(&format!("{}/", asked.uri));
            let url = format!("{}://{}{path}", asked.scheme(), host_of(&request.host));
            let answer = Answer::Redirect { status: 301, location: url };
            return Told { answer, by: location.origin.clone(), is_fallback: location.is_default };
        }
        let (location, expression) = match self.location(name, server, &asked.uri) {
            Ok(Some(found)) => found,
            Ok(None) => return told(Answer::Status(404)),
            Err(why) => return told(unknown(why)),
        };
        let answer = self.at(location, expression, is_alias, &asked);
        Told { answer, by: location.origin.clone(), is_fallback: location.is_default }
    }

    /// The server of a host: one with the name, one with a wildcard, and the one for all other hosts.
    fn server(&self, host: &str) -> Option<(&str, &Server)> {
        let servers = &self.configuration.servers;
        let named = |name: &str| servers.get_key_value(name);
        let alias = |alias: &str| named(self.aliases.get(alias)?);
        // Wildcards of aliases are those of nginx, and stand for several labels.
        let mut parents = host.match_indices('.').map(|(at, _)| format!("*{}", &host[at..]));
        let found = named(host).filter(|_| host != CATCH_ALL).or_else(|| alias(host));
        let found = found.or_else(|| parents.find_map(|parent| alias(&parent)));
        let found = found.or_else(|| named(&wildcard(host)?)).or_else(|| named(CATCH_ALL));
        found.map(|(name, server)| (name.as_str(), server))
    }

    /// The location of a path with a slash behind it, to which nginx redirects requests for the path that has none itself.
    fn with_slash<'s>(&self, host: &str, server: &'s Server, uri: &str) -> Option<&'s Location> {
        if self.expressions.contains_key(host)
            || server.locations.iter().any(|one| one.is_exact && one.path == uri)
        {
            return None;
        }
        server.locations.iter().find(|one| one.path.strip_suffix('/') == Some(uri) && one.path != "/")
    }

    /// The location of a path. Regular expressions are tried in order; of others, an exact one comes first, then the longest.
    /// The error is the reason for which it is unknown.
    fn location<'s>(
        &'s self,
        host: &str,
        server: &'s Server,
        uri: &str,
    ) -> Result<Option<Found<'s>>, String> {
        if let Some(expressions) = self.expressions.get(host) {
            for (location, expression) in server.locations.iter().zip(expressions) {
                match expression {
                    Some(expression) if expression.is_match(uri.as_bytes()) => {
                        return Ok(Some((location, Some(expression))));
                    }
                    Some(_) => {}
                    None => return Err(format!("the regular expression {} is not modelled", location.path)),
                }
            }
            return Ok(None);
        }
        let exact = server.locations.iter().find(|location| location.is_exact && location.path == uri);
        let prefixes = server.locations.iter().filter(|one| !one.is_exact && uri.starts_with(&one.path));
        let found = exact.or_else(|| prefixes.max_by_key(|location| location.path.len()));
        Ok(found.map(|location| (location, None)))
    }

    /// The answer of a location.
    fn at(
        &self,
        location: &Location,
        expression: Option<&Regex>,
        is_alias: bool,
        asked: &Asked<'_>,
    ) -> Answer {
        let settings = &*location.settings;
        if let Some(why) = &settings.unknown {
            return unknown(why.clone());
        }
        if location.is_doubtful {
            return unknown("several Ingresses have the path, and the input does not tell the older one");
        }
        if settings.body.is_some_and(|most| asked.request.body > most) {
            return Answer::Status(413);
        }
        // The modules for rewrites run before the redirect to HTTPS, which comes before access.
        let rewritten = match rewrite(location, expression, asked) {
            Rewritten::Answer(answer) => return answer,
            Rewritten::Path(path) => path,
        };
        match self.redirect_to_https(location, is_alias, asked) {
            Some(true) => {
                let keeps_slash = settings.preserve_trailing_slash;
                let path = asked.request_uri.strip_suffix('/').filter(|_| !keeps_slash);
                let host = host_of(&asked.request.host);
                let location = format!("https://{host}{}", path.unwrap_or(&asked.request_uri));
                return Answer::Redirect { status: REDIRECT_STATUS, location };
            }
            Some(false) => {}
            None => return unknown("the certificate of an alias is not modelled"),
        }
        if location.backend == DEFAULT {
            return checked(settings, location, asked).unwrap_or(Answer::Status(404));
        }
        let Some(upstream) = self.configuration.upstreams.get(&location.backend) else {
            return Answer::Status(503);
        };
        let main = match port(upstream) {
            Ok(Some(port)) => port,
            Ok(None) => return Answer::Status(503),
            Err(why) => return unknown(why),
        };
        if let Some(answer) = checked(settings, location, asked) {
            return answer;
        }
        let host = settings.host.clone().unwrap_or_else(|| asked.request.host.clone());
        let gets = |upstream: &Upstream, port| Backend {
            service: ObjectName::new(upstream.namespace.as_str(), upstream.service.as_str()),
            port: i32::from(port),
            target: rewritten.clone(),
            host: Some(host.clone()),
        };
        let mut backends: BTreeMap<Backend, u64> = BTreeMap::new();
        match self.canary_share(upstream, asked) {
            Err(why) => return unknown(why),
            Ok(None) => {
                backends.insert(gets(upstream, main), 1);
            }
            Ok(Some((canary, port, share, total))) => {
                for (backend, weight) in [(gets(upstream, main), total - share), (gets(canary, port), share)]
                {
                    if weight > 0 {
                        *backends.entry(backend).or_default() += u64::from(weight);
                    }
                }
            }
        }
        Answer::Backends { backends, checks: checks(settings, location) }
    }

    /// Whether a request is redirected to HTTPS; `None` if that is unknown.
    fn redirect_to_https(&self, location: &Location, is_alias: bool, asked: &Asked<'_>) -> Option<bool> {
        let settings = &*location.settings;
        if asked.request.https || location.path.starts_with(CHALLENGES) {
            return Some(false);
        }
        if settings.force_ssl_redirect {
            return Some(true);
        }
        if !settings.ssl_redirect {
            return Some(false);
        }
        let has = |name: &str| {
            let server = self.configuration.servers.get(name);
            server.is_some_and(|server| name != CATCH_ALL && server.certificate != Certificate::None)
        };
        if has(&asked.host) || wildcard(&asked.host).is_some_and(|wildcard| has(&wildcard)) {
            return Some(true);
        }
        let of_alias = self.server(&asked.host).filter(|_| is_alias);
        if of_alias.is_some_and(|(name, _)| has(name)) { None } else { Some(false) }
    }

    /// The upstream that takes a share of the requests, its port, the share and the total.
    fn canary_share(
        &self,
        upstream: &Upstream,
        asked: &Asked<'_>,
    ) -> Result<Option<(&Upstream, u16, u32, u32)>, String> {
        let name = upstream.alternatives.first();
        let Some(other) = name.and_then(|name| self.configuration.upstreams.get(name)) else {
            return Ok(None);
        };
        let Some(canary) = &other.canary else { return Ok(None) };
        let Some(port) = port(other)? else { return Ok(None) };
        let (share, total) = share(canary, asked)?;
        Ok((share > 0).then_some((other, port, share, total)))
    }
}

/// The port of an upstream with endpoints; `None` without.
fn port(upstream: &Upstream) -> Result<Option<u16>, String> {
    match &upstream.backend {
        objects::Backend::Port { number, has_endpoints } => Ok(has_endpoints.then_some(*number)),
        objects::Backend::NoPort => Ok(None),
        objects::Backend::NoService(Some(number)) => Ok(Some(*number)),
        objects::Backend::NoService(None) => Err(format!(
            "the input lacks Service {}/{}, whose port has a name",
            upstream.namespace, upstream.service
        )),
    }
}

/// The share of a canary, and the total.
fn share(canary: &Canary, asked: &Asked<'_>) -> Result<(u32, u32), String> {
    let (all, none) = ((1, 1), (0, 1));
    if let Some(value) = canary.header.as_ref().and_then(|name| asked.header(name)) {
        match &canary.header_value {
            Some(wanted) if *wanted == value => return Ok(all),
            None if canary.header_pattern => {
                return Err("canary-by-header-pattern is not modelled".to_owned());
            }
            None if value == "always" => return Ok(all),
            None if value == "never" => return Ok(none),
            Some(_) | None => {}
        }
    }
    match canary.cookie.as_ref().and_then(|name| asked.cookie(name)).as_deref() {
        Some("always") => Ok(all),
        Some("never") => Ok(none),
        _ => Ok((canary.weight.min(canary.total), canary.total)),
    }
}

/// The answer to clients and bodies that are refused.
fn checked(settings: &Settings, location: &Location, asked: &Asked<'_>) -> Option<Answer> {
    let is_refused = asked.request.client.is_some_and(|client| {
        let is_denied = settings.denied.iter().any(|network| network.has(client));
        let allowed = settings.allowed.as_ref();
        is_denied || allowed.is_some_and(|allowed| !allowed.iter().any(|network| network.has(client)))
    });
    if is_refused {
        return Some(Answer::Status(403));
    }
    let has_credentials = asked.request.header("authorization").is_some();
    let asks = settings.has_basic_auth && !location.path.starts_with(CHALLENGES);
    (asks && !has_credentials).then_some(Answer::Status(401))
}

/// The checks that a request has to pass, in the words of the answers.
fn checks(settings: &Settings, location: &Location) -> BTreeSet<String> {
    let has_lists = settings.allowed.is_some() || !settings.denied.is_empty();
    let asks = settings.has_basic_auth && !location.path.starts_with(CHALLENGES);
    let all = [(has_lists, "ip-restriction"), (asks, "basic-auth"), (settings.has_limit, "limit-count")];
    all.into_iter().filter(|(is_there, _)| *is_there).map(|(_, name)| name.to_owned()).collect()
}

/// The host of a header `Host`.
fn host_of(host: &str) -> &str {
    host.split(':').next().unwrap_or_default()
}

/// The answers of a location that need no backend, and the path of a request at its backend.
fn rewrite(location: &Location, expression: Option<&Regex>, asked: &Asked<'_>) -> Rewritten {
    let settings = &*location.settings;
    if settings.is_refused {
        return Rewritten::Answer(Answer::Status(503));
    }
    if let (Some(origins), "OPTIONS") = (settings.cors, asked.request.method.as_str()) {
        return Rewritten::Answer(match origins {
            Origins::All => Answer::Status(204),
            Origins::Some => unknown("cors-allow-origin is not modelled"),
        });
    }
    if let Some((status, url)) = &settings.redirect {
        return Rewritten::Answer(redirect(*status, url, asked));
    }
    let Some(target) = settings.target.as_ref().filter(|target| **target != location.path) else {
        return Rewritten::Path(asked.request_uri.clone());
    };
    // A target makes the location a regular expression.
    let Some(found) = expression.and_then(|expression| expression.captures(asked.uri.as_bytes())) else {
        return Rewritten::Path(asked.request_uri.clone());
    };
    let Some(path) = expanded(target, &found) else {
        return Rewritten::Answer(unknown("variables of rewrite-target are not modelled"));
    };
    if path.starts_with("http://") || path.starts_with("https://") {
        let location = asked.request.with_query(&path);
        return Rewritten::Answer(Answer::Redirect { status: 302, location });
    }
    Rewritten::Path(asked.request.with_query(&escaped(&path)))
}

/// A target with its groups; `None` for other variables.
fn expanded(target: &str, found: &Captures<'_>) -> Option<String> {
    let mut parts = target.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digit = part.chars().next().and_then(|letter| letter.to_digit(10))?;
        let group = found.get(usize::try_from(digit).ok()?).map(|group| group.as_bytes());
        text.push_str(&String::from_utf8_lossy(group.unwrap_or_default()));
        text.push_str(part.get(1..)?);
    }
    Some(text)
}

/// `return` with a URL.
fn redirect(status: u16, url: &str, asked: &Asked<'_>) -> Answer {
    if !REDIRECTS.contains(&status) {
        return Answer::Status(status);
    }
    let variables = [
        ("request_uri", asked.request_uri.clone()),
        ("http_host", asked.request.host.clone()),
        ("scheme", asked.scheme().to_owned()),
        ("host", asked.host.clone()),
    ];
    let mut location = url.to_owned();
    for (name, value) in variables {
        location = location.replace(&format!("${{{name}}}"), &value).replace(&format!("${name}"), &value);
    }
    if url.replace("$request_uri", "").contains('$')
        && location.contains('$')
        && !asked.request_uri.contains('$')
    {
        return unknown("variables of the redirect are not modelled");
    }
    if location.starts_with('/') {
        location = format!("{}://{}{location}", asked.scheme(), host_of(&asked.request.host));
    }
    Answer::Redirect { status, location }
}
