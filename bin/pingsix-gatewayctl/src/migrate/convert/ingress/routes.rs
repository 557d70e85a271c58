//! Ingresses to HTTPRoutes: one for each host, with the policies of the Ingress.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::{GATEWAY_GROUP, Kind};
use serde_json::{Map, Value, json};

use super::annotated::{Annotated, Entry, PathEntry, Target};
use super::chosen::DOMAIN;
use super::hosts::AddedHosts;
use super::precedence::{Candidate, Rank, prefer};
use super::{canary, paths, services, tls};
use crate::migrate::convert::Conversion;
use crate::migrate::convert::rules::{self, Document, Rule, Section};
use crate::migrate::output::label;
use crate::migrate::plugin::Effects;
use crate::migrate::source::Sources;

/// The status of redirects to HTTPS in ingress-nginx.
const TO_HTTPS: u16 = 308;

/// The most targets of a policy.
const TARGETS: usize = 16;

/// The statuses of redirects in Gateway API.
const REDIRECTS: [i64; 5] = [301, 302, 303, 307, 308];

/// Writes the HTTPRoutes of all Ingresses and their policies.
pub(super) fn convert(
    ingresses: &[Annotated],
    added: &AddedHosts,
    sources: &Sources,
    conversion: &mut Conversion,
) {
    // Once an Ingress of a host asks for it, all paths of the host are regular expressions.
    let mut regular: BTreeSet<&str> = BTreeSet::new();
    for ingress in ingresses.iter().filter(|ingress| ingress.read.rewriting.is_some()) {
        regular.extend(ingress.entries.iter().map(|entry| entry.host.as_str()));
    }
    let mut candidates = Vec::new();
    for (index, ingress) in ingresses.iter().enumerate().filter(|(_, one)| one.read.canary.is_none()) {
        let reader = Reader { ingresses, ingress, index, sources, regular: &regular };
        reader.read(&mut candidates, conversion);
    }
    for ingress in ingresses.iter().filter(|ingress| ingress.read.canary.is_some()) {
        note_unused(ingress, ingresses, conversion);
    }
    let served = prefer(candidates, ingresses, &regular, conversion);
    let mut documents: Vec<Document> = Vec::new();
    let mut owners: Vec<usize> = Vec::new();
    let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
    for ((index, host), rules) in served {
        let Some(ingress) = ingresses.get(index) else { continue };
        let number = numbers.entry(index).or_default();
        *number += 1;
        let wanted = match number {
            1 => ingress.key.name.name.to_string(),
            number => format!("{}-{number}", ingress.key.name.name),
        };
        let name = conversion.free_route_name(ingress.namespace(), &wanted, &documents);
        let aliases = added.aliases(ingress, &host);
        for mut document in of_host(ingress, (&host, name), rules, &documents, conversion) {
            document.hosts.extend(aliases.iter().cloned());
            documents.push(document);
            owners.push(index);
        }
    }
    for (index, document) in added.documents(ingresses, &documents, conversion) {
        documents.push(document);
        owners.push(index);
    }
    rules::compare_plugins(&mut documents, conversion);
    let mut routes: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (mut document, owner) in documents.into_iter().zip(owners) {
        let has_backends = document.rules.iter().any(|rule| {
            rule.effects.response.is_none() && rule.effects.redirect.is_none() && !rule.matches.is_empty()
        });
        for rule in &mut document.rules {
            // The policies are those of the Ingress, so that its paths share the counts of a limit.
            rule.effects.security.clear();
            rule.effects.traffic.clear();
        }
        let written = rules::write(document, conversion);
        if has_backends {
            routes.entry(owner).or_default().extend(written);
        }
    }
    for (index, routes) in routes {
        if let Some(ingress) = ingresses.get(index) {
            write_policies(ingress, &routes, conversion);
        }
    }
}

/// An Ingress that is read.
struct Reader<'a> {
    ingresses: &'a [Annotated],
    ingress: &'a Annotated,
    index: usize,
    sources: &'a Sources,
    regular: &'a BTreeSet<&'a str>,
}

impl Reader<'_> {
    fn read(&self, candidates: &mut Vec<Candidate>, conversion: &mut Conversion) {
        let Annotated { entries, default_backend, is_closed, .. } = self.ingress;
        let hosts: BTreeSet<&str> = entries.iter().map(|entry| entry.host.as_str()).collect();
        if let Some(root) = self.ingress.read.app_root.as_ref().filter(|_| !is_closed) {
            candidates.extend(hosts.iter().map(|host| self.root(host, root)));
        }
        for entry in entries {
            for path in &entry.paths {
                candidates.extend(self.path(entry, path, conversion));
            }
        }
        if let Some(backend) = default_backend {
            for host in hosts.into_iter().chain([""]).collect::<BTreeSet<&str>>() {
                candidates.push(self.everything(host, backend, conversion));
            }
        }
    }

    /// The rules for a path, with those of a canary.
    fn path(&self, entry: &Entry, path: &PathEntry, conversion: &mut Conversion) -> Option<Candidate> {
        let Annotated { read, is_closed, .. } = self.ingress;
        let is_regular = read.rewriting.is_none() && self.regular.contains(entry.host.as_str());
        let matched = paths::read(path, read.rewriting.as_ref(), is_regular, &mut conversion.report);
        let matched = match matched {
            Ok(matched) => matched,
            Err(stem) => {
                let object = &self.ingress.place.object;
                if !self.ingress.protects() {
                    conversion.withhold(
                        &path.place,
                        "The path is not written, and its requests go to other paths.",
                    );
                    return None;
                }
                let message = format!("{object} is protected, so a rule answers 503 in place of the path.");
                conversion.withhold(&path.place, message);
                let mut rule = self.rule(&entry.host, path, &stem);
                rule.refuse();
                let guard = self.candidate(entry, path, stem, vec![rule]);
                return Some(Candidate { rank: Rank::Guard, ..guard });
            }
        };
        let mut rule = self.rule(&entry.host, path, &matched.path);
        rule.effects.path = matched.full;
        rule.effects.regex = matched.regex;
        if *is_closed {
            rule.refuse();
            return Some(self.candidate(entry, path, matched.path, vec![rule]));
        }
        if rule.effects.redirect.is_some() {
            return Some(self.candidate(entry, path, matched.path, vec![rule]));
        }
        let Some(own) =
            path.target.as_ref().and_then(|target| self.backend(self.ingress, target, conversion))
        else {
            rule.refuse();
            return Some(self.candidate(entry, path, matched.path, vec![rule]));
        };
        let mut rules = Vec::new();
        let share = canary::find(self.ingresses, self.ingress, &entry.host, path);
        let share = share.and_then(|canary| {
            let backend = self.backend(canary.ingress, canary.target, conversion)?;
            Some((canary.share, backend))
        });
        match share {
            None => rules.push(Rule { backends: vec![own], ..rule }),
            Some((share, other)) => {
                for (headers, backends) in canary::divide(share, &own, &other) {
                    let mut one = Rule { backends, ..rule.clone() };
                    for matched in &mut one.matches {
                        if let Some(headers) = &headers {
                            matched["headers"] = headers.clone();
                        }
                    }
                    rules.push(one);
                }
            }
        }
        Some(self.candidate(entry, path, matched.path, rules))
    }

    fn candidate(&self, entry: &Entry, path: &PathEntry, matched: Value, rules: Vec<Rule>) -> Candidate {
        let length = if self.regular.contains(entry.host.as_str()) { path.path.len() } else { 0 };
        let host = entry.host.clone();
        Candidate { ingress: self.index, host, length, rank: Rank::Path, matched, rules }
    }

    /// A rule without backends, with the effects of the annotations.
    fn rule(&self, host: &str, path: &PathEntry, matched: &Value) -> Rule {
        let name =
            matched.get("value").and_then(Value::as_str).map_or_else(String::new, |path| label(path, "root"));
        Rule {
            place: path.place.clone(),
            name,
            priority: 0,
            hosts: hosts(host),
            matches: vec![json!({ "path": matched })],
            effects: effects(self.ingress),
            backends: Vec::new(),
            timeout: None,
            may_be_weaker: self.ingress.may_be_weaker,
        }
    }

    /// The rule of the default backend.
    fn everything(&self, host: &str, backend: &Target, conversion: &mut Conversion) -> Candidate {
        let matched = json!({ "type": "PathPrefix", "value": "/" });
        let path = PathEntry {
            place: backend.place.clone(),
            path: "/".to_owned(),
            kind: "Prefix".to_owned(),
            target: Some(backend.clone()),
        };
        let mut rule = self.rule(host, &path, &matched);
        if self.ingress.is_closed {
            rule.refuse();
        } else if rule.effects.redirect.is_none() {
            match self.backend(self.ingress, backend, conversion) {
                Some(backend) => rule.backends = vec![backend],
                None => rule.refuse(),
            }
        }
        let (ingress, host) = (self.index, host.to_owned());
        Candidate { ingress, host, length: 0, rank: Rank::Fallback, matched, rules: vec![rule] }
    }

    /// The rule for `app-root`.
    fn root(&self, host: &str, target: &str) -> Candidate {
        let matched = json!({ "type": "Exact", "value": "/" });
        let path = PathEntry {
            place: self.ingress.at(&format!("{DOMAIN}/app-root")),
            path: "/".to_owned(),
            kind: "Exact".to_owned(),
            target: None,
        };
        let mut rule = self.rule(host, &path, &matched);
        let change = json!({ "type": "ReplaceFullPath", "replaceFullPath": target });
        "app-root".clone_into(&mut rule.name);
        rule.effects =
            Effects { redirect: Some(json!({ "path": change, "statusCode": 302 })), ..Effects::default() };
        Candidate {
            ingress: self.index,
            host: host.to_owned(),
            length: usize::MAX,
            rank: Rank::Path,
            matched,
            rules: vec![rule],
        }
    }

    /// An item of `backendRefs`.
    fn backend(&self, ingress: &Annotated, target: &Target, conversion: &mut Conversion) -> Option<Value> {
        match services::number(ingress, target, self.sources) {
            Ok(number) => {
                let service = &target.service;
                let message =
                    format!("The backend becomes Service {}/{service} port {number}.", ingress.namespace());
                conversion.report.exact(&target.place, message);
                Some(json!({ "name": service, "port": number }))
            }
            Err(why) => {
                conversion.report.impossible(&target.place, format!("{why} The path answers 503."));
                None
            }
        }
    }
}

fn hosts(host: &str) -> Vec<String> {
    if host.is_empty() { Vec::new() } else { vec![host.to_owned()] }
}

/// The effects of the annotations on every path.
fn effects(ingress: &Annotated) -> Effects {
    let mut effects = Effects {
        hostname: ingress.read.host.as_ref().map(ToString::to_string),
        security: fields(&ingress.read.security),
        traffic: fields(&ingress.read.traffic),
        protects: ingress.protects(),
        ..Effects::default()
    };
    for filter in &ingress.read.filters {
        let Ok(value) = serde_json::to_value(filter) else { continue };
        match value.get("requestRedirect") {
            Some(redirect) => effects.redirect = Some(possible(redirect.clone())),
            None => effects.filters.push(value),
        }
    }
    effects
}

/// A redirect with a status that Gateway API has.
fn possible(mut redirect: Value) -> Value {
    let status = redirect.get("statusCode").and_then(Value::as_i64).unwrap_or(302);
    if !REDIRECTS.contains(&status) {
        redirect["statusCode"] = json!(302);
    }
    redirect
}

/// The fields of a policy without its targets.
fn fields(spec: &impl serde::Serialize) -> Map<String, Value> {
    match serde_json::to_value(spec) {
        Ok(Value::Object(mut fields)) => {
            fields.remove("targetRefs");
            // The default of a policy that stands alone.
            fields.retain(|name, value| name != "strategy" && !value.is_null());
            fields
        }
        _ => Map::new(),
    }
}

/// Reports canaries that take no requests.
fn note_unused(canary: &Annotated, ingresses: &[Annotated], conversion: &mut Conversion) {
    for entry in &canary.entries {
        for path in &entry.paths {
            let mains = ingresses.iter().filter(|one| one.read.canary.is_none());
            let mut takers = mains.filter(|one| {
                let entries = one.entries.iter().filter(|other| other.host == entry.host);
                let mut paths = entries.flat_map(|other| &other.paths);
                paths.any(|own| own.path == path.path && own.kind == path.kind)
                    && canary::find(ingresses, one, &entry.host, path)
                        .is_some_and(|found| found.ingress.key == canary.key)
            });
            if takers.next().is_none() {
                let message = "No other Ingress of the namespace has the host, path and type, or an older canary takes the \
                               requests, so this one gets none, as before.";
                conversion.report.limited(&path.place, message);
            }
        }
    }
}

/// The HTTPRoutes for a host of an Ingress: the one that serves, and the one that redirects to it.
fn of_host(
    ingress: &Annotated,
    (host, name): (&str, String),
    rules: Vec<Rule>,
    documents: &[Document],
    conversion: &mut Conversion,
) -> Vec<Document> {
    let namespace = ingress.namespace().to_owned();
    let hosts = hosts(host);
    let mut document = Document { namespace, name, hosts, section: Section::All, rules };
    if !redirects(ingress, host, conversion) {
        return vec![document];
    }
    document.section = Section::Https;
    let name = format!("{}-redirect", document.name);
    let name = conversion.free_route_name(&document.namespace, &name, documents);
    let mut redirect = document.redirect_to_https(name, TO_HTTPS);
    // The rules for a header of a canary have the path of the rule for the rest.
    redirect.rules.retain(|rule| rule.matches.iter().all(|one| one.get("headers").is_none()));
    vec![redirect, document]
}

/// Whether requests in plaintext for a host are redirected. ingress-nginx does that by default for hosts with a
/// certificate.
fn redirects(ingress: &Annotated, host: &str, conversion: &mut Conversion) -> bool {
    let forced = ingress.at(&format!("{DOMAIN}/force-ssl-redirect"));
    if ingress.is_closed {
        if ingress.read.https.without_tls {
            conversion.report.limited(&forced, "All paths of the Ingress answer 503, in plaintext, too.");
        }
        return false;
    }
    let name = format!("{DOMAIN}/ssl-redirect");
    let https = ingress.read.https;
    let by_default = !ingress.annotations.contains_key(&name);
    let has_certificate = tls::has_certificate(ingress, host);
    if !https.without_tls && !(has_certificate && (https.with_tls || by_default)) {
        return false;
    }
    let at = if https.without_tls { forced } else { ingress.place.at("spec.tls") };
    if !conversion.parent.serves_https(&hosts(host)) || host.is_empty() {
        let message = format!(
            "The input has no certificate for {}, so there is no HTTPS to redirect to. Requests in plaintext are served.",
            if host.is_empty() { "all hosts" } else { host }
        );
        conversion.report.impossible(&at, message);
        return false;
    }
    if https.without_tls {
        conversion.report.exact(&at, "An HTTPRoute redirects plaintext to HTTPS with status 308.");
    } else if by_default {
        let message = "ingress-nginx redirects hosts with a certificate by default, so an HTTPRoute redirects plaintext to \
                       HTTPS with status 308.";
        conversion.report.exact(&at, message);
    }
    true
}

/// Writes the policies of an Ingress for its routes.
fn write_policies(ingress: &Annotated, routes: &[String], conversion: &mut Conversion) {
    let read = &ingress.read;
    let specs =
        [(Kind::SecurityPolicy, fields(&read.security)), (Kind::TrafficPolicy, fields(&read.traffic))];
    for (kind, fields) in specs {
        if fields.is_empty() {
            continue;
        }
        if fields.contains_key("rateLimit") && routes.len() > TARGETS {
            let message =
                format!("A policy has at most {TARGETS} targets, so the Ingress has several counts.");
            conversion.report.limited(&ingress.place, message);
        }
        for routes in routes.chunks(TARGETS) {
            let target = |route: &String| json!({ "group": GATEWAY_GROUP, "kind": Kind::HttpRoute.as_str(), "name": route });
            let mut spec = fields.clone();
            spec.insert("targetRefs".to_owned(), routes.iter().map(target).collect());
            let name = &ingress.key.name;
            conversion.output.add(kind, &name.namespace, &name.name, ("spec", Value::Object(spec)));
        }
    }
}
