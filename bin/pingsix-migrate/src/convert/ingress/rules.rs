//! The rules for the paths of an Ingress.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::annotations::AllowedMethods;
use pingsix_translate::crd::AnnotationDialect;
use pingsix_translate::{Kind, ObjectName};
use serde_json::{Map, Value, json};

use super::annotated::{Annotated, Entry, PathEntry, Target};
use super::canary::{self, Canaries};
use super::precedence::{Candidate, Rank};
use super::tls_hosts::{TlsHosts, wants_https};
use super::{paths, services};
use crate::convert::Draft;
use crate::convert::rules::{Rule, every_path};
use crate::objects::label;
use crate::plugin::Effects;
use crate::report::{Place, Reason, Report};
use crate::source::Sources;

/// The answer to methods that the annotations do not admit.
const METHOD_NOT_ALLOWED: u16 = 405;

/// The beginning of the paths that ingress-nginx neither redirects to HTTPS nor protects by credentials.
pub(super) const CHALLENGES: &str = "/.well-known/acme-challenge";

/// An Ingress that is read.
pub(super) struct Reader<'a> {
    pub(super) canaries: &'a Canaries<'a>,
    pub(super) ingress: &'a Annotated,
    /// The place of the Ingress among all of them.
    pub(super) index: usize,
    pub(super) sources: &'a Sources,
    /// The hosts all of whose paths are regular expressions.
    pub(super) regular: &'a BTreeSet<&'a str>,
    pub(super) tls_hosts: &'a TlsHosts<'a>,
    pub(super) leaders: &'a BTreeMap<&'a str, Leader>,
    /// The effects of its annotations on every path ([`effects`]).
    pub(super) effects: Effects,
}

/// The oldest Ingress with rules for a host.
pub(super) struct Leader {
    /// Its place among all of them.
    pub(super) ingress: usize,
    /// Whether an Ingress has a path for all requests of the host.
    pub(super) has_root: bool,
}

impl Reader<'_> {
    /// Adds the rules of the Ingress.
    pub(super) fn read(&self, candidates: &mut Vec<Candidate>, draft: &mut Draft<'_>) {
        let Annotated { entries, default_backend, is_closed, .. } = self.ingress;
        let hosts: BTreeSet<&str> = entries.iter().map(|entry| entry.host.as_str()).collect();
        if self.ingress.is_bypassed && !is_closed {
            self.redirected(&hosts, candidates, draft.report);
            return;
        }
        if let Some(root) = self.ingress.read.app_root.as_ref().filter(|_| !is_closed) {
            candidates.extend(hosts.iter().map(|host| self.root(host, root)));
        }
        for entry in entries {
            for path in &entry.paths {
                candidates.extend(self.path(entry, path, draft));
            }
        }
        candidates.extend(hosts.iter().filter_map(|host| self.rest(host, draft.report)));
        if let Some(backend) = default_backend {
            if !hosts.is_empty() && self.ingress.dialect.annotations == AnnotationDialect::IngressNginx {
                let message = "The backend gets the requests that no rule takes, for all hosts. ingress-nginx sends those for \
                               the hosts of the rules alone.";
                draft.report.limited(&backend.place, Reason::DifferentScope, message);
            }
            for host in hosts.into_iter().chain([""]).collect::<BTreeSet<&str>>() {
                candidates.push(self.everything(host, backend, draft));
            }
        }
    }

    /// The rules of an Ingress whose plaintext is redirected as a whole, and whose TLS passes through.
    fn redirected(&self, hosts: &BTreeSet<&str>, candidates: &mut Vec<Candidate>, report: &mut Report) {
        let paths = || self.ingress.entries.iter().flat_map(|entry| &entry.paths);
        for path in paths() {
            let message =
                "TLS passes through to the backend of the path /, and plaintext is redirected for all paths.";
            report.exact(&path.place, message);
        }
        let Some(first) = paths().next() else { return };
        for host in hosts {
            let rule = self.rule(host, &first.place, &every_path());
            candidates.push(self.candidate(host, Rank::Path, every_path(), vec![rule]));
        }
    }

    /// The rules for a path, with those of a canary.
    fn path(&self, entry: &Entry, path: &PathEntry, draft: &mut Draft<'_>) -> Option<Candidate> {
        let Annotated { read, is_closed, .. } = self.ingress;
        let matched = match self.ingress.dialect.annotations {
            AnnotationDialect::IngressNginx => {
                let is_regular = self.regular.contains(entry.host.as_str());
                paths::read(path, read.rewriting.as_ref(), is_regular, draft.report)
            }
            AnnotationDialect::Apisix => paths::read_apisix(path, read.rewriting.as_ref(), draft.report),
        };
        let matched = match matched {
            Ok(matched) => matched,
            Err(stem) => {
                let object = &self.ingress.place.object;
                let redirects = self.ingress.read.redirects();
                if !self.ingress.protects() && !redirects {
                    let message = "The path is not written, and its requests go to other paths.";
                    draft.report.withhold(&path.place, message);
                    return None;
                }
                let why = if redirects { "redirects its requests" } else { "is protected" };
                let message = format!("{object} {why}, so a rule answers 503 in place of the path.");
                draft.report.withhold(&path.place, message);
                let mut rule = self.rule(&entry.host, &path.place, &stem);
                rule.refuse();
                let guard = self.of_path(entry, path, stem, vec![rule]);
                return Some(Candidate { rank: Rank::Guard, ..guard });
            }
        };
        let mut rule = self.rule(&entry.host, &path.place, &matched.path);
        matched.change.apply(&mut rule.effects);
        if *is_closed {
            rule.refuse();
            return Some(self.of_path(entry, path, matched.path, vec![rule]));
        }
        if self.ingress.is_of_nginx()
            && path.path.starts_with(CHALLENGES)
            && (read.security.basic_auth.is_some() || wants_https(self.ingress, &entry.host, self.tls_hosts))
        {
            let message = "ingress-nginx neither redirects challenges of ACME nor asks for credentials, and an HTTPRoute does both. \
                           cert-manager has a solver for Gateways.";
            draft.report.limited(&path.place, Reason::AcmeChallenge, message);
        }
        if let (Some(_), Some(target)) = (&rule.effects.redirect, &path.target) {
            draft.report.exact(&target.place, "All requests are redirected, so no backend gets any.");
        }
        if rule.effects.redirect.is_some() || rule.effects.response.is_some() {
            return Some(self.of_path(entry, path, matched.path, self.with_methods(vec![rule])));
        }
        let Some(own) = path.target.as_ref().and_then(|target| self.backend(self.ingress, target, draft))
        else {
            rule.refuse();
            return Some(self.of_path(entry, path, matched.path, vec![rule]));
        };
        let mut rules = Vec::new();
        let share = self.canaries.find(self.ingress, entry, path);
        let share = share.and_then(|canary| {
            let backend = self.backend(canary.ingress, canary.target, draft)?;
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
        Some(self.of_path(entry, path, matched.path, self.with_methods(rules)))
    }

    /// Whether an Ingress of the host turns its paths into regular expressions.
    fn is_regular(&self, host: &str) -> bool {
        self.ingress.dialect.annotations == AnnotationDialect::IngressNginx && self.regular.contains(host)
    }

    /// The rules for the methods that the annotations admit, and one that answers 405 to others.
    fn with_methods(&self, rules: Vec<Rule>) -> Vec<Rule> {
        let (Some(methods), Some(first)) = (&self.ingress.read.methods, rules.first()) else { return rules };
        let with = |rule: &Rule, methods: &[&'static str]| -> Vec<Value> {
            let of = |matched: &Value| {
                let of_method = |method: &&'static str| {
                    let mut one = matched.clone();
                    one["method"] = json!(method);
                    one
                };
                methods.iter().map(of_method).collect::<Vec<_>>()
            };
            rule.matches.iter().flat_map(of).collect()
        };
        let Effects { security, traffic, .. } = &first.effects;
        let (security, traffic) = (security.clone(), traffic.clone());
        let response = Some(json!({ "statusCode": METHOD_NOT_ALLOWED }));
        let refused = Rule {
            name: format!("{}-methods", first.name),
            effects: Effects { response, security, traffic, protects: true, ..Effects::default() },
            backends: Vec::new(),
            ..first.clone()
        };
        match methods {
            AllowedMethods::Only(methods) => {
                let admitted = rules.iter().map(|rule| Rule { matches: with(rule, methods), ..rule.clone() });
                admitted.chain(std::iter::once(refused.clone())).collect()
            }
            AllowedMethods::AllBut(methods) => {
                let refused = Rule { matches: with(&refused, methods), ..refused.clone() };
                std::iter::once(refused).chain(rules.iter().cloned()).collect()
            }
        }
    }

    fn of_path(&self, entry: &Entry, path: &PathEntry, matched: Value, rules: Vec<Rule>) -> Candidate {
        let length = if self.is_regular(&entry.host) { path.path.len() } else { 0 };
        Candidate { length, ..self.candidate(&entry.host, Rank::Path, matched, rules) }
    }

    fn candidate(&self, host: &str, rank: Rank, matched: Value, rules: Vec<Rule>) -> Candidate {
        Candidate { ingress: self.index, host: host.to_owned(), length: 0, rank, matched, rules }
    }

    /// A rule without backends, with the effects of the annotations.
    fn rule(&self, host: &str, place: &Place, matched: &Value) -> Rule {
        let name =
            matched.get("value").and_then(Value::as_str).map_or_else(String::new, |path| label(path, "root"));
        let (effects, may_be_weaker) = (self.effects.clone(), self.ingress.may_be_weaker);
        Rule { effects, may_be_weaker, ..Rule::of_path(place.clone(), name, hosts(host), matched) }
    }

    /// The rule of the default backend.
    fn everything(&self, host: &str, backend: &Target, draft: &mut Draft<'_>) -> Candidate {
        let mut rule = self.rule(host, &backend.place, &every_path());
        if self.ingress.is_closed {
            rule.refuse();
        } else if rule.effects.redirect.is_none() {
            match self.backend(self.ingress, backend, draft) {
                Some(backend) => rule.backends = vec![backend],
                None => rule.refuse(),
            }
        }
        self.candidate(host, Rank::Fallback, every_path(), vec![rule])
    }

    /// The rule that redirects the requests of a host that no path takes. In ingress-nginx, the oldest Ingress of a host decides
    /// about them.
    fn rest(&self, host: &str, report: &mut Report) -> Option<Candidate> {
        let filter = self.ingress.read.host_redirect().filter(|_| !self.ingress.is_closed)?;
        let leader = self.leaders.get(host).filter(|leader| leader.ingress == self.index)?;
        if host.is_empty() || leader.has_root {
            return None;
        }
        let message =
            format!("Requests for {host} that no path takes are redirected, too, as in ingress-nginx.");
        report.exact(&self.ingress.place, message);
        let mut rule = self.rule(host, &self.ingress.place, &every_path());
        rule.effects.redirect = paths::redirect(&filter);
        Some(self.candidate(host, Rank::Fallback, every_path(), vec![rule]))
    }

    /// The rule for `app-root`.
    fn root(&self, host: &str, target: &str) -> Candidate {
        let matched = json!({ "type": "Exact", "value": "/" });
        let mut rule = self.rule(host, &self.ingress.at_own("app-root"), &matched);
        let change = json!({ "type": "ReplaceFullPath", "replaceFullPath": target });
        "app-root".clone_into(&mut rule.name);
        rule.effects =
            Effects { redirect: Some(json!({ "path": change, "statusCode": 302 })), ..Effects::default() };
        Candidate { length: usize::MAX, ..self.candidate(host, Rank::Path, matched, vec![rule]) }
    }

    /// An item of `backendRefs`.
    fn backend(&self, ingress: &Annotated, target: &Target, draft: &mut Draft<'_>) -> Option<Value> {
        match services::number(ingress, target, self.sources) {
            Ok(number) => {
                let service = ObjectName::new(ingress.service_namespace.as_str(), target.service.as_str());
                let message = format!("The backend becomes Service {service} port {number}.");
                draft.report.exact(&target.place, message);
                let mut backend = json!({ "name": &*service.name, "port": number });
                if &*service.namespace != ingress.namespace() {
                    draft.output.objects.grant(
                        (Kind::HttpRoute, ingress.namespace()),
                        Kind::Service,
                        &service,
                    );
                    backend["namespace"] = json!(&*service.namespace);
                }
                Some(backend)
            }
            Err(why) => {
                let message = format!("{why} The path answers 503.");
                draft.report.impossible(&target.place, Reason::MissingReferent, message);
                None
            }
        }
    }
}

/// The hostnames of a route for a host; none for all hosts.
pub(super) fn hosts(host: &str) -> Vec<String> {
    if host.is_empty() { Vec::new() } else { vec![host.to_owned()] }
}

/// The effects of the annotations on every path, and of the plugins that they name.
pub(super) fn effects(ingress: &Annotated) -> Effects {
    let mut effects = Effects { protects: ingress.protects(), ..ingress.plugins.clone() };
    effects.security.extend(fields(&ingress.read.security));
    effects.traffic.extend(fields(&ingress.read.traffic));
    if let Some(host) = &ingress.read.host {
        effects.hostname = Some(host.to_string());
    }
    if let Some(change) = &ingress.read.path_change {
        paths::change(change).apply(&mut effects);
    }
    for filter in &ingress.read.filters {
        match paths::redirect(filter) {
            Some(redirect) => effects.redirect = Some(redirect),
            None => effects.filters.extend(serde_json::to_value(filter)),
        }
    }
    effects
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
