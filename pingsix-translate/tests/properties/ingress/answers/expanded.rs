//! Annotated Ingresses as plain ones: what their annotations say about hosts and paths, written as rules.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::super::oracle::REST;
use super::meaning::{Meaning, Share};

/// Plain Ingresses, and the acts of their paths.
pub(super) struct Expanded {
    pub(super) objects: Vec<Value>,
    /// By Ingress and field.
    pub(super) acts: BTreeMap<(String, String), Act>,
}

/// The act of a path.
#[derive(Clone, Debug)]
pub(super) struct Act {
    /// Whether requests in plaintext are redirected to HTTPS.
    pub(super) to_https: bool,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A redirect to a path of the host.
    Root(&'static str),
    /// A redirect to a host that has a certificate or none.
    Host { to: String, is_tls: bool },
    /// An error in the place of a protected path that cannot be matched.
    Closing,
    /// A backend, with the path as the Ingress has it, and the share of a canary.
    Backend { path: Option<String>, backend: Value, canary: Option<(Share, Value)> },
}

/// A path that no request has.
const NEVER: &str = "never";

/// The ends of the regular expressions that stand for a prefix, as the page about annotations lists them, and whether longer
/// names match.
const ENDS: [(&str, bool); 9] = [
    ("(/|$)(.*)", false),
    ("(/.*)?", true),
    ("/?(.*)", true),
    ("/(.*)", false),
    ("/.*", false),
    ("(.*)", true),
    (".*", true),
    ("/?", true),
    ("", true),
];

pub(super) fn name_of(ingress: &Value) -> String {
    let part = |field: &str| ingress["metadata"][field].as_str().unwrap_or_default();
    format!("{}/{}", part("namespace"), part("name"))
}

fn is_ingress(object: &Value) -> bool {
    object["kind"] == "Ingress"
}

fn rules(ingress: &Value) -> &[Value] {
    ingress["spec"]["rules"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn paths(rule: &Value) -> &[Value] {
    rule.pointer("/http/paths").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn host(rule: &Value) -> Option<&str> {
    rule["host"].as_str()
}

/// The older Ingress compares less.
fn age(ingress: &Value) -> (bool, Option<&str>, String) {
    let age = ingress["metadata"]["creationTimestamp"].as_str();
    (age.is_none(), age, name_of(ingress))
}

/// Whether a rule serves its host: with paths, or with the default backend.
fn serves(ingress: &Value, rule: &Value) -> bool {
    !paths(rule).is_empty() || !ingress["spec"]["defaultBackend"].is_null()
}

impl Expanded {
    /// `of_class` are the names of the Ingresses of the class.
    pub(super) fn new(
        objects: &[Value],
        meanings: &BTreeMap<String, Meaning>,
        of_class: &BTreeSet<String>,
    ) -> Self {
        let ingresses: Vec<&Value> = objects
            .iter()
            .filter(|object| is_ingress(object))
            .filter(|ingress| of_class.contains(&name_of(ingress)))
            .collect();
        let is_canary = |ingress: &&&Value| meanings[&name_of(ingress)].canary.is_some();
        let mut canaries: Vec<&Value> = ingresses.iter().filter(is_canary).copied().collect();
        canaries.sort_by(|one, other| age(one).cmp(&age(other)));
        let mut tls_hosts: BTreeSet<&str> = BTreeSet::new();
        for ingress in &ingresses {
            let entries = ingress["spec"]["tls"].as_array().map(Vec::as_slice).unwrap_or_default();
            let listed = entries.iter().filter_map(|entry| entry["hosts"].as_array()).flatten();
            tls_hosts.extend(listed.filter_map(Value::as_str));
            // A certificate is for all hosts of an Ingress.
            if !entries.is_empty() && !is_canary(&ingress) {
                tls_hosts.extend(rules(ingress).iter().filter_map(host));
            }
        }
        let mut expanded = Self { objects: Vec::new(), acts: BTreeMap::new() };
        for object in objects.iter().filter(|object| !is_ingress(object)) {
            expanded.objects.push(object.clone());
        }
        for ingress in ingresses.iter().filter(|ingress| !is_canary(ingress)) {
            let others =
                ingresses.iter().filter(|other| !is_canary(other) && name_of(other) != name_of(ingress));
            // A rule without paths names its host, too.
            let taken: BTreeSet<&str> = others.flat_map(|other| rules(other)).filter_map(host).collect();
            let older = ingresses.iter().filter(|other| !is_canary(other) && age(other) < age(ingress));
            let older: BTreeSet<&str> = older.flat_map(|other| rules(other)).filter_map(host).collect();
            let hosts = (&taken, &older, &tls_hosts);
            expanded.add(ingress, &meanings[&name_of(ingress)], &canaries, meanings, hosts);
        }
        expanded
    }

    /// Adds an Ingress. `taken` are the hosts of the rules of others, `older` those of older ones, and `tls_hosts` those
    /// with a certificate.
    fn add(
        &mut self,
        ingress: &Value,
        meaning: &Meaning,
        canaries: &[&Value],
        meanings: &BTreeMap<String, Meaning>,
        (taken, older, tls_hosts): (&BTreeSet<&str>, &BTreeSet<&str>, &BTreeSet<&str>),
    ) {
        let own: BTreeSet<Option<&str>> = rules(ingress).iter().map(host).collect();
        let tls = |host: Option<&str>| {
            host.is_some_and(|host| {
                let around = host.split_once('.').map(|(_, domain)| format!("*.{domain}"));
                tls_hosts.contains(host) || around.is_some_and(|around| tls_hosts.contains(around.as_str()))
            })
        };
        let to_https = |host: Option<&str>| {
            let by_default = meaning.is_of_nginx && !meaning.keeps_plaintext && tls(host);
            meaning.forces_https || by_default
        };
        let mut written = Vec::new();
        let mut add_rule = |host: Option<&str>, act_host: Option<&str>, acts: Vec<(Value, Kind)>| {
            let at = written.len();
            for (index, (_, kind)) in acts.iter().enumerate() {
                let field = if acts.len() == 1 && acts[0].0.is_null() {
                    format!("spec.rules[{at}]")
                } else {
                    format!("spec.rules[{at}].http.paths[{index}]")
                };
                let to_https = (to_https(act_host) || to_https(host)) && !matches!(kind, Kind::Host { .. });
                self.acts.insert((name_of(ingress), field), Act { to_https, kind: kind.clone() });
            }
            let paths: Vec<Value> =
                acts.into_iter().map(|(path, _)| path).filter(|path| !path.is_null()).collect();
            let mut rule = json!({});
            if let Some(host) = host {
                rule["host"] = json!(host);
            }
            if !paths.is_empty() {
                rule["http"] = json!({ "paths": paths });
            }
            written.push(rule);
        };
        let default = &ingress["spec"]["defaultBackend"];
        // The name of the server for all hosts is `_`.
        let main = own.iter().copied().min_by_key(|host| host.unwrap_or("_")).flatten();
        // A redirect is for the requests that no path takes, too, if no older Ingress has the host.
        let redirects = meaning.is_of_nginx && !meaning.is_closed && meaning.redirect().is_some();
        let has_rest = |rule: &Value| redirects && host(rule).is_some_and(|host| !older.contains(host));
        for rule in rules(ingress).iter().filter(|rule| serves(ingress, rule) || has_rest(rule)) {
            // For all hosts, the default backend has the requests anyway, and no root.
            let own_name = Some(host(rule)).filter(|host| host.is_some() || !paths(rule).is_empty());
            let has_rest = has_rest(rule);
            let aliases = meaning.aliases.iter().filter(|_| host(rule) == main);
            let aliases = aliases.filter(|alias| !own.contains(&Some(**alias)) && !taken.contains(**alias));
            for name in own_name.into_iter().chain(aliases.map(|alias| Some(*alias))) {
                if has_rest {
                    let path = json!({ "path": "", "pathType": REST, "backend": {} });
                    let kind = Kind::Backend { path: None, backend: json!({}), canary: None };
                    add_rule(name, host(rule), vec![(path, kind)]);
                    if paths(rule).is_empty() {
                        continue;
                    }
                }
                if let Some(root) = meaning.app_root.filter(|_| !meaning.is_closed) {
                    let path = json!({ "path": "/", "pathType": "Exact", "backend": {} });
                    add_rule(name, host(rule), vec![(path, Kind::Root(root))]);
                }
                add_rule(name, host(rule), acts(ingress, rule, meaning, canaries, meanings));
            }
        }
        for to in own.iter().flatten().filter(|to| meaning.redirects_www && !to.starts_with('*')) {
            let from = to.strip_prefix("www.").map_or_else(|| format!("www.{to}"), str::to_owned);
            if !own.contains(&Some(from.as_str())) && !taken.contains(from.as_str()) {
                let kind = Kind::Host { to: (*to).to_owned(), is_tls: tls(Some(to)) };
                add_rule(Some(&from), None, vec![(prefix("/"), kind)]);
            }
        }
        if !default.is_null() {
            let kind = Kind::Backend { path: None, backend: default.clone(), canary: None };
            let act = Act { to_https: false, kind };
            self.acts.insert((name_of(ingress), "spec.defaultBackend".to_owned()), act);
        }
        let mut plain = ingress.clone();
        plain["spec"]["rules"] = json!(written);
        self.objects.push(plain);
    }
}

/// A path of a plain Ingress. Its backend plays no part.
fn prefix(path: &str) -> Value {
    json!({ "path": path, "pathType": "Prefix", "backend": {} })
}

/// The paths of a rule with their acts; a single null for the default backend.
fn acts(
    ingress: &Value,
    rule: &Value,
    meaning: &Meaning,
    canaries: &[&Value],
    meanings: &BTreeMap<String, Meaning>,
) -> Vec<(Value, Kind)> {
    let (mut acts, mut closing) = (Vec::new(), Vec::new());
    for path in paths(rule) {
        let text = path["path"].as_str().filter(|text| !text.is_empty()).unwrap_or("/");
        let mut plain = path.clone();
        plain["backend"] = json!({});
        if meaning.has_patterns() {
            if let Some((stem, is_open)) = stem(text) {
                plain["path"] = json!(stem);
                if is_open && !stem.ends_with('/') {
                    plain["pathType"] = json!("Literal");
                }
            } else {
                plain["path"] = json!(NEVER);
                plain["pathType"] = json!("Exact");
                let elements = text.split('/').take_while(|element| !element.contains(['(', '[']));
                let whole = elements.collect::<Vec<_>>().join("/");
                let whole = if whole.is_empty() { "/" } else { &whole };
                closing.extend(meaning.protects().then(|| (prefix(whole), Kind::Closing)));
            }
        }
        let canary = canary(ingress, rule, path, canaries).map(|(canary, backend)| {
            (meanings[&name_of(canary)].canary.expect("it is one"), backend.clone())
        });
        let kind = Kind::Backend { path: Some(text.to_owned()), backend: path["backend"].clone(), canary };
        acts.push((plain, kind));
    }
    if acts.is_empty() {
        let backend = ingress["spec"]["defaultBackend"].clone();
        acts.push((Value::Null, Kind::Backend { path: None, backend, canary: None }));
    }
    // Of one Ingress, they come first.
    closing.append(&mut acts);
    closing
}

/// The prefix for which a regular expression stands, and whether longer names match; `None` if it stands for none.
fn stem(text: &str) -> Option<(&str, bool)> {
    let is_literal = |(stem, _): &(&str, bool)| !stem.contains(['(', '[', '|', '*', '+', '?', '$']);
    let mut stems = ENDS.into_iter().filter_map(|(end, is_open)| Some((text.strip_suffix(end)?, is_open)));
    let (stem, is_open) = stems.find(is_literal)?;
    Some((if stem.is_empty() { "/" } else { stem }, is_open))
}

/// The canary for a path: the oldest of the namespace with the same host, path and type.
fn canary<'c>(
    ingress: &Value,
    rule: &Value,
    path: &Value,
    canaries: &[&'c Value],
) -> Option<(&'c Value, &'c Value)> {
    let of_namespace =
        canaries.iter().filter(|canary| canary["metadata"]["namespace"] == ingress["metadata"]["namespace"]);
    let all = of_namespace.flat_map(|canary| {
        let same_host = rules(canary).iter().filter(|own| host(own) == host(rule));
        same_host.flat_map(paths).map(move |own| (*canary, own))
    });
    // All paths that are not exact are prefixes.
    let is_exact = |path: &Value| path["pathType"] == "Exact";
    let mut same = all.filter(|(_, own)| own["path"] == path["path"] && is_exact(own) == is_exact(path));
    same.next().map(|(canary, own)| (canary, &own["backend"]))
}
