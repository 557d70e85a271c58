//! Rules of HTTPRoutes with their policies, and how they are written.

use std::collections::BTreeMap;

use pingsix_translate::{GATEWAY_GROUP, Kind, ObjectKey, ObjectName, PINGSIX_GROUP};
use serde_json::{Map, Value, json};

use super::Context;
use super::output::Output;
use super::parent::Section;
use crate::objects::label;
use crate::plugin::{AUTHENTICATIONS, Effects};
use crate::report::{Place, Reason, Report};

/// The limits of an HTTPRoute.
const MAX_HOSTS: usize = 16;
const MAX_RULES: usize = 16;
const MAX_MATCHES_PER_RULE: usize = 64;
const MAX_MATCHES_PER_ROUTE: usize = 128;

/// A rule.
#[derive(Clone)]
pub(super) struct Rule {
    pub(super) place: Place,
    pub(super) name: String,
    pub(super) priority: i64,
    pub(super) hosts: Vec<String>,
    pub(super) matches: Vec<Value>,
    pub(super) effects: Effects,
    /// Items of `backendRefs`.
    pub(super) backends: Vec<Value>,
    /// Seconds of `timeouts.backendRequest`.
    pub(super) timeout: Option<u64>,
    pub(super) may_be_weaker: bool,
}

impl Rule {
    /// A rule for a path of some hosts, without effects and backends.
    pub(super) fn of_path(place: Place, name: impl Into<String>, hosts: Vec<String>, path: &Value) -> Self {
        Self {
            place,
            name: name.into(),
            priority: 0,
            hosts,
            matches: vec![json!({ "path": path })],
            effects: Effects::default(),
            backends: Vec::new(),
            timeout: None,
            may_be_weaker: false,
        }
    }
}

/// The path of all requests.
pub(super) fn every_path() -> Value {
    json!({ "type": "PathPrefix", "value": "/" })
}

/// An HTTPRoute, before it is split to the limits of the API.
pub(super) struct Document {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) hosts: Vec<String>,
    pub(super) section: Section,
    pub(super) rules: Vec<Rule>,
}

impl Document {
    /// The HTTPRoute that redirects the requests of this one to HTTPS.
    pub(super) fn redirect_to_https(&self, name: String, status: u16) -> Self {
        let redirect = |rule: &Rule| Rule {
            effects: Effects {
                redirect: Some(json!({ "scheme": "https", "statusCode": status })),
                ..Effects::default()
            },
            backends: Vec::new(),
            timeout: None,
            ..rule.clone()
        };
        Self {
            namespace: self.namespace.clone(),
            name,
            hosts: self.hosts.clone(),
            section: Section::Http,
            rules: self.rules.iter().map(redirect).collect(),
        }
    }
}

impl Context<'_> {
    /// Refuses protection of a rule that would replace that of its Gateway: the original checks both.
    pub(super) fn refuse_second_protection(
        &self,
        effects: &mut Effects,
        gateways: &[ObjectName],
        place: &Place,
        report: &mut Report,
    ) {
        if self.protection.is_lost && gateways.contains(&self.owners.gateway) {
            effects.protects = true;
            let message = "Plugins for all rules protect this one, and they cannot be converted.";
            report.blocking(place, Reason::LostReferent, message);
        }
        let is_authentication = |field: &str| AUTHENTICATIONS.contains(&field);
        let rate_limit = effects.traffic.keys().filter(|field| *field == "rateLimit");
        let fields: Vec<String> = effects.security.keys().chain(rate_limit).cloned().collect();
        for field in fields {
            let mut others =
                gateways.iter().filter_map(|gateway| self.protection.fields.get(gateway)).flatten();
            let conflict = others
                .any(|other| *other == field || (is_authentication(other) && is_authentication(&field)));
            if conflict {
                let message = format!(
                    "The Gateway has {field}, too. The original checks both, and here the one of the rule counts."
                );
                report.blocking(place, Reason::Conflict, message);
            }
        }
    }
}

/// A rule that fits into an HTTPRoute, and where its policies come from.
struct Piece {
    name: String,
    place: Place,
    value: Value,
    matches: usize,
    policies: PolicyFields,
}

/// The kinds of policies of rules.
const POLICIES: [Kind; 2] = [Kind::SecurityPolicy, Kind::TrafficPolicy];

/// The fields of the policies of a rule, by kind.
pub(super) type PolicyFields = [Map<String, Value>; POLICIES.len()];

/// Writes an HTTPRoute, or several if it is longer than the API admits, with its filters and policies. Returns their names.
pub(super) fn write(document: Document, output: &mut Output) -> Vec<String> {
    let Document { namespace, name, hosts, section, rules, .. } = document;
    let mut pieces: Vec<Piece> = Vec::new();
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for rule in rules {
        let Rule { place, name: rule_name, matches, mut effects, backends, timeout, .. } = rule;
        if matches.is_empty() {
            continue;
        }
        let wanted = label(&rule_name, "rule");
        let base = format!("{name}-{wanted}");
        let (filters, backends) = filters(&namespace, &base, &mut effects, backends, output);
        for matches in matches.chunks(MAX_MATCHES_PER_RULE) {
            let mut rule_name = wanted.clone();
            while names.contains_key(&rule_name) {
                let number = names.entry(wanted.clone()).or_insert(1);
                *number += 1;
                rule_name = format!("{wanted}-{number}");
            }
            names.insert(rule_name.clone(), 1);
            let mut value = json!({ "name": rule_name });
            value["matches"] = Value::Array(matches.to_vec());
            if !filters.is_empty() {
                value["filters"] = Value::Array(filters.clone());
            }
            if !backends.is_empty() {
                value["backendRefs"] = Value::Array(backends.clone());
            }
            if let Some(seconds) = timeout {
                value["timeouts"] = json!({ "backendRequest": format!("{seconds}s") });
            }
            pieces.push(Piece {
                name: rule_name,
                place: place.clone(),
                value,
                matches: matches.len(),
                policies: [effects.security.clone(), effects.traffic.clone()],
            });
        }
    }
    let parent = output.gateway.reference(&namespace, section);
    // No host stands for all hosts.
    let hosts: Vec<&[String]> = if hosts.is_empty() { vec![&[]] } else { hosts.chunks(MAX_HOSTS).collect() };
    let mut written = Vec::new();
    for (hosts, pieces) in
        hosts.into_iter().flat_map(|hosts| chunks(&pieces).map(move |pieces| (hosts, pieces)))
    {
        let rules = pieces.iter().map(|piece| piece.value.clone());
        let mut spec = json!({ "parentRefs": [parent] });
        if !hosts.is_empty() {
            spec["hostnames"] = json!(hosts);
        }
        spec["rules"] = Value::Array(rules.collect());
        let wanted = if written.is_empty() { name.clone() } else { format!("{name}-more") };
        let route = output.objects.add(Kind::HttpRoute, &namespace, &wanted, spec);
        let policies: Vec<_> = pieces.iter().map(|piece| (&*piece.name, &piece.policies)).collect();
        write_policies(&namespace, (Kind::HttpRoute, &route), &policies, output);
        let key = ObjectKey::new(Kind::HttpRoute, namespace.as_str(), route.as_str());
        let places = pieces.iter().map(|piece| piece.place.clone()).collect();
        output.objects.origins.note_rules(key, places);
        output.gateway.note_route(Kind::HttpRoute, &namespace, &route);
        written.push(route);
    }
    written
}

/// The rules of each HTTPRoute.
fn chunks(pieces: &[Piece]) -> impl Iterator<Item = &[Piece]> {
    let (mut rules, mut matches) = (0_usize, 0_usize);
    // The next piece begins another HTTPRoute if this one has no room for it.
    pieces.chunk_by(move |piece, next| {
        rules += 1;
        matches += piece.matches;
        let has_room = rules < MAX_RULES && matches + next.matches <= MAX_MATCHES_PER_ROUTE;
        if !has_room {
            (rules, matches) = (0, 0);
        }
        has_room
    })
}

/// The filters of a rule and its backends, which a rule without them does not have. HTTPRouteFilters are written.
pub(super) fn filters(
    namespace: &str,
    base: &str,
    effects: &mut Effects,
    backends: Vec<Value>,
    output: &mut Output,
) -> (Vec<Value>, Vec<Value>) {
    let mut extension = |spec: Value| {
        let name = output.objects.add(Kind::HttpRouteFilter, namespace, base, spec);
        json!({
            "type": "ExtensionRef",
            "extensionRef": { "group": PINGSIX_GROUP, "kind": Kind::HttpRouteFilter.as_str(), "name": name },
        })
    };
    if let Some(response) = effects.response.take() {
        return (vec![extension(json!({ "directResponse": response }))], Vec::new());
    }
    if let Some(redirect) = effects.redirect.take() {
        return (vec![json!({ "type": "RequestRedirect", "requestRedirect": redirect })], Vec::new());
    }
    let mut filters = std::mem::take(&mut effects.filters);
    let mut rewrite = Map::new();
    if let Some(hostname) = effects.hostname.take() {
        rewrite.insert("hostname".to_owned(), json!(hostname));
    }
    if let Some(path) = effects.path.take() {
        rewrite.insert("path".to_owned(), path);
    }
    if !rewrite.is_empty() {
        filters.push(json!({ "type": "URLRewrite", "urlRewrite": rewrite }));
    }
    if let Some(regex) = effects.regex.take() {
        filters.push(extension(json!({ "urlRewrite": regex })));
    }
    (filters, backends)
}

/// Writes the policies of the named rules of a route: one of a kind for all rules with equal fields.
pub(super) fn write_policies(
    namespace: &str,
    route: (Kind, &str),
    rules: &[(&str, &PolicyFields)],
    output: &mut Output,
) {
    for (index, kind) in POLICIES.into_iter().enumerate() {
        let rules: Vec<_> = rules.iter().map(|(name, fields)| (*name, &fields[index])).collect();
        write_policies_of_kind(kind, namespace, route, &rules, output);
    }
}

fn write_policies_of_kind(
    kind: Kind,
    namespace: &str,
    (route_kind, route): (Kind, &str),
    rules: &[(&str, &Map<String, Value>)],
    output: &mut Output,
) {
    let mut groups: Vec<(&Map<String, Value>, Vec<&str>)> = Vec::new();
    for (name, fields) in rules {
        if fields.is_empty() {
            continue;
        }
        // Rules of one policy share the counts of a limit, and those of the original do not.
        let shares = !fields.contains_key("rateLimit");
        match groups.iter_mut().find(|(known, _)| shares && *known == *fields) {
            Some((_, names)) => names.push(name),
            None => groups.push((fields, vec![name])),
        }
    }
    for (fields, names) in groups {
        let target = json!({ "group": GATEWAY_GROUP, "kind": route_kind.as_str(), "name": route });
        let is_whole = names.len() == rules.len();
        let targets: Vec<Value> = if is_whole {
            vec![target]
        } else {
            let with = |name: &&str| {
                let mut target = target.clone();
                target["sectionName"] = json!(name);
                target
            };
            names.iter().map(with).collect()
        };
        let mut spec = fields.clone();
        spec.insert("targetRefs".to_owned(), json!(targets));
        let wanted = match names.first() {
            Some(first) if !is_whole => format!("{route}-{first}"),
            _ => route.to_owned(),
        };
        output.objects.add(kind, namespace, &wanted, Value::Object(spec));
    }
}
