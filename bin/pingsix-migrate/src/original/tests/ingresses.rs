//! The random Ingresses, as the explanations of their answers look at them.

use serde_json::Value;

use super::generate::Dialect;
use crate::report::Place;

/// The beginning of the path of an Ingress in a field, behind its rule.
pub(super) const PATHS: &str = ".http.paths[";

/// An Ingress.
#[derive(Clone, Copy)]
pub(super) struct Ingress<'a>(&'a Value);

/// A path with the host of its rule.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Path<'a> {
    pub(super) host: &'a str,
    pub(super) text: &'a str,
    pub(super) kind: &'a str,
    pub(super) service: &'a str,
    pub(super) port: &'a Value,
}

impl Path<'_> {
    pub(super) fn is_exact(&self) -> bool {
        self.kind == "Exact"
    }
}

pub(super) fn of(objects: &[Value]) -> impl Iterator<Item = Ingress<'_>> {
    objects.iter().filter(|object| object["kind"] == "Ingress").map(Ingress)
}

impl<'a> Ingress<'a> {
    pub(super) fn object(self) -> String {
        format!("Ingress shop/{}", self.name())
    }

    pub(super) fn name(self) -> &'a str {
        self.0["metadata"]["name"].as_str().unwrap_or_default()
    }

    pub(super) fn created(self) -> &'a str {
        self.0["metadata"]["creationTimestamp"].as_str().unwrap_or_default()
    }

    pub(super) fn has_annotations(self) -> bool {
        self.0["metadata"]["annotations"].as_object().is_some_and(|annotations| !annotations.is_empty())
    }

    /// An annotation of ingress-nginx.
    pub(super) fn annotation(self, name: &str) -> Option<&'a str> {
        self.0["metadata"]["annotations"][format!("{}/{name}", Dialect::Nginx.domain())].as_str()
    }

    pub(super) fn is_canary(self) -> bool {
        self.annotation("canary").is_some()
    }

    /// Whether the annotations speak of regular expressions.
    pub(super) fn has_patterns(self) -> bool {
        self.annotation("use-regex") == Some("true") || self.annotation("rewrite-target").is_some()
    }

    fn rules(self) -> impl Iterator<Item = &'a Value> {
        self.0["spec"]["rules"].as_array().into_iter().flatten()
    }

    pub(super) fn hosts(self) -> impl Iterator<Item = &'a str> {
        self.rules().map(|rule| rule["host"].as_str().unwrap_or_default())
    }

    /// The hosts of `spec.tls`.
    pub(super) fn tls_hosts(self) -> impl Iterator<Item = &'a str> {
        let entries = self.0["spec"]["tls"].as_array().into_iter().flatten();
        entries.filter_map(|entry| entry["hosts"].as_array()).flatten().filter_map(Value::as_str)
    }

    pub(super) fn has_alias(self, host: &str) -> bool {
        let aliases = self.annotation("server-alias").unwrap_or_default();
        aliases.split(',').any(|alias| alias.trim() == host)
    }

    pub(super) fn paths(self) -> impl Iterator<Item = Path<'a>> {
        self.rules().flat_map(|rule| {
            let paths = rule["http"]["paths"].as_array().into_iter().flatten();
            paths.map(move |path| read(rule, path))
        })
    }

    /// The host of the rule at a field; `None` for a field of no rule.
    pub(super) fn host_at(self, field: &str) -> Option<&'a str> {
        Some(self.rule_at(field)?["host"].as_str().unwrap_or_default())
    }

    pub(super) fn path_at(self, field: &str) -> Option<Path<'a>> {
        let index = field.split_once(PATHS)?.1.split(']').next()?.parse::<usize>().ok()?;
        let rule = self.rule_at(field)?;
        Some(read(rule, rule["http"]["paths"].get(index)?))
    }

    fn rule_at(self, field: &str) -> Option<&'a Value> {
        let index = field.strip_prefix("spec.rules[")?.split(']').next()?.parse::<usize>().ok()?;
        self.0["spec"]["rules"].get(index)
    }
}

fn read<'a>(rule: &'a Value, path: &'a Value) -> Path<'a> {
    let service = &path["backend"]["service"];
    let port = &service["port"];
    Path {
        host: rule["host"].as_str().unwrap_or_default(),
        text: path["path"].as_str().unwrap_or_default(),
        kind: path["pathType"].as_str().unwrap_or_default(),
        service: service["name"].as_str().unwrap_or_default(),
        port: port.get("number").unwrap_or(&port["name"]),
    }
}

/// The Ingress of a place.
pub(super) fn at<'a>(objects: &'a [Value], place: &Place) -> Option<Ingress<'a>> {
    of(objects).find(|ingress| *ingress.object() == *place.object)
}
