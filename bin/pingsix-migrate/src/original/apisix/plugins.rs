//! Plugins of APISIX that answer requests, or change them for backends.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use regex::Regex;
use serde_json::Value;

use crate::answer::{Answer, Request};
use crate::original::network::Network;
use crate::original::uri::escaped;

/// Plugins by name.
pub(super) type Plugins = BTreeMap<String, Value>;

/// Plugins that change neither the Service of a request nor its path, host and status.
const WITHOUT_EFFECT: &[&str] = &[
    "client-control",
    "gzip",
    "http-logger",
    "limit-conn",
    "limit-req",
    "opentelemetry",
    "prometheus",
    "proxy-buffering",
    "real-ip",
    "request-id",
    "zipkin",
];

/// The request that a backend gets.
pub(super) struct Sent {
    pub(super) target: String,
    pub(super) host: String,
    pub(super) checks: BTreeSet<String>,
}

pub(super) fn is_without_effect(name: &str) -> bool {
    WITHOUT_EFFECT.contains(&name)
}

fn unknown(why: impl Into<String>) -> Answer {
    Answer::Unknown(why.into())
}

/// Runs the plugins of a route: those for the phase `rewrite` by their priority, then those for `access`. The error is an
/// answer without a backend.
pub(super) fn run(plugins: &Plugins, request: &Request, host: &str, uri: &str) -> Result<Sent, Answer> {
    let mut sent = Sent {
        target: request.with_query(&request.path),
        host: request.host.clone(),
        checks: BTreeSet::new(),
    };
    for name in plugins.keys() {
        let is_read = [
            "basic-auth",
            "cors",
            "csrf",
            "fault-injection",
            "ip-restriction",
            "jwt-auth",
            "key-auth",
            "limit-count",
            "proxy-rewrite",
            "redirect",
        ];
        if !is_without_effect(name) && !is_read.contains(&name.as_str()) {
            return Err(unknown(format!("plugin {name} is not modelled")));
        }
    }
    if let Some(config) = plugins.get("fault-injection") {
        inject(config, request)?;
    }
    if plugins.contains_key("cors") && request.method == "OPTIONS" {
        return Err(unknown("preflights are not modelled"));
    }
    for name in ["csrf", "limit-count"].iter().filter(|name| plugins.contains_key(**name)) {
        sent.checks.insert((*name).to_owned());
    }
    for name in ["basic-auth", "jwt-auth", "key-auth"] {
        if let Some(config) = plugins.get(name) {
            sent.checks.insert(name.to_owned());
            ask(name, config, request)?;
        }
    }
    if let Some(config) = plugins.get("proxy-rewrite") {
        rewrite(config, request, uri, &mut sent)?;
    }
    if let Some(config) = plugins.get("redirect") {
        redirect(config, request, host, uri)?;
    }
    if let Some(config) = plugins.get("ip-restriction") {
        sent.checks.insert("ip-restriction".to_owned());
        if let Some(client) = request.client {
            restrict(config, client)?;
        }
    }
    Ok(sent)
}

fn inject(config: &Value, request: &Request) -> Result<(), Answer> {
    let Some(abort) = config.get("abort") else { return Ok(()) };
    let status = abort["http_status"].as_u64().and_then(|status| u16::try_from(status).ok());
    let (Some(status), None) = (status, abort.get("percentage")) else {
        return Err(unknown("fault-injection is not modelled"));
    };
    let Some(vars) = abort.get("vars") else { return Err(Answer::Status(status)) };
    // The form that annotations for methods have.
    let words: Vec<&Value> = vars.pointer("/0/0").and_then(Value::as_array).into_iter().flatten().collect();
    let (names, is_inverted) = match words.as_slice() {
        [subject, operator, names] if *subject == "request_method" && *operator == "in" => (names, false),
        [subject, not, operator, names]
            if *subject == "request_method" && *not == "!" && *operator == "in" =>
        {
            (names, true)
        }
        _ => return Err(unknown("vars of fault-injection are not modelled")),
    };
    let is_listed = names.as_array().into_iter().flatten().any(|name| *name == request.method);
    if is_listed == is_inverted { Ok(()) } else { Err(Answer::Status(status)) }
}

/// Credentials are not verified.
fn ask(name: &str, config: &Value, request: &Request) -> Result<(), Answer> {
    let header = match name {
        "key-auth" => config["header"].as_str().unwrap_or("apikey"),
        "jwt-auth" => config["header"].as_str().unwrap_or("authorization"),
        _ => "authorization",
    };
    let has_header = request.header(header).is_some();
    let may_have_more = request.query.is_some() || request.header("cookie").is_some();
    match (has_header, name) {
        (false, "basic-auth") => Err(Answer::Status(401)),
        (false, _) if !may_have_more => Err(Answer::Status(401)),
        (false, _) => Err(unknown("credentials in queries and cookies are not modelled")),
        (true, _) => Ok(()),
    }
}

fn rewrite(config: &Value, request: &Request, uri: &str, sent: &mut Sent) -> Result<(), Answer> {
    if let Some(host) = config["host"].as_str() {
        host.clone_into(&mut sent.host);
    }
    if config.get("use_real_request_uri_unsafe").is_some() || config.get("method").is_some() {
        return Err(unknown("options of proxy-rewrite are not modelled"));
    }
    let pairs: Vec<&str> =
        config["regex_uri"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let path = if let Some(path) = config["uri"].as_str() {
        if path.contains('$') || path.contains('?') {
            return Err(unknown("variables of proxy-rewrite are not modelled"));
        }
        path.to_owned()
    } else {
        let mut path = uri.to_owned();
        for pair in pairs.chunks_exact(2) {
            let [pattern, replacement] = pair else { continue };
            let expression = Regex::new(pattern)
                .map_err(|_| unknown(format!("the regular expression {pattern} is not modelled")))?;
            if let Some(changed) = substituted(&expression, replacement, uri) {
                path = changed;
                break;
            }
        }
        path
    };
    let is_changed = config["uri"].is_string() || !pairs.is_empty();
    if is_changed {
        sent.target = request.with_query(&escaped(&path));
    }
    Ok(())
}

/// The path with the first match replaced; `None` without a match.
fn substituted(expression: &Regex, replacement: &str, uri: &str) -> Option<String> {
    let found = expression.captures(uri)?;
    let all = found.get(0)?;
    let mut parts = replacement.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let group = part[..digits].parse::<usize>().ok()?;
        text.push_str(found.get(group).map_or("", |group| group.as_str()));
        text.push_str(&part[digits..]);
    }
    Some(format!("{}{text}{}", &uri[..all.start()], &uri[all.end()..]))
}

fn redirect(config: &Value, request: &Request, host: &str, uri: &str) -> Result<(), Answer> {
    let request_uri = request.with_query(&request.path);
    if config["http_to_https"] == true && !request.https {
        let status = if matches!(request.method.as_str(), "GET" | "HEAD") { 301 } else { 308 };
        return Err(Answer::Redirect { status, location: format!("https://{host}{request_uri}") });
    }
    if config.get("regex_uri").is_some()
        || config.get("encode_uri").is_some()
        || config.get("append_query_string").is_some()
    {
        return Err(unknown("options of redirect are not modelled"));
    }
    let Some(target) = config["uri"].as_str() else { return Ok(()) };
    let scheme = if request.https { "https" } else { "http" };
    let mut location = target.to_owned();
    for (name, value) in
        [("request_uri", request_uri.as_str()), ("host", host), ("scheme", scheme), ("uri", uri)]
    {
        location = location.replace(&format!("${{{name}}}"), value).replace(&format!("${name}"), value);
    }
    if target.contains('$') && location.contains('$') {
        return Err(unknown("variables of redirect are not modelled"));
    }
    let status = config["ret_code"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(302);
    Err(Answer::Redirect { status, location })
}

fn restrict(config: &Value, client: IpAddr) -> Result<(), Answer> {
    let list = |name: &str| -> Result<Option<Vec<Network>>, Answer> {
        let Some(items) = config[name].as_array() else { return Ok(None) };
        let networks = items.iter().map(|item| item.as_str().unwrap_or_default().parse());
        networks
            .collect::<Result<_, _>>()
            .map(Some)
            .map_err(|()| unknown("a network of ip-restriction is none"))
    };
    let is_in = |networks: &[Network]| networks.iter().any(|network| network.has(client));
    let is_refused = list("blacklist")?.is_some_and(|denied| is_in(&denied))
        || list("whitelist")?.is_some_and(|allowed| !is_in(&allowed));
    if is_refused { Err(Answer::Status(403)) } else { Ok(()) }
}
