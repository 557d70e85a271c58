//! ApisixRoute: its rules become HTTPRoutes with policies, grouped by their hosts.

use std::collections::BTreeMap;

use pingsix_translate::ObjectName;
use serde_json::{Value, json};

use super::covering::covering;
use super::matches::{self, Matching};
use super::output::Output;
use super::parent::Section;
use super::rules::{self, Document, Rule};
use super::{Context, Draft, backend, competition, layer4, plugin_config};
use crate::objects::label;
use crate::owner::Owner;
use crate::plugin::{self, Effects, Level, PluginUse, Scope, Switch};
use crate::report::{Place, Reason, Report};
use crate::source::{Field, Fields, Source, SourceKind};

/// The most matches of all rules, times their hosts, whose order is compared.
const MAX_COMPARED_ENTRIES: usize = 131_072;

/// The status of redirects to HTTPS in APISIX.
const HTTPS_REDIRECT_STATUS: u16 = 301;

/// The class and the namespace of a rule.
struct Origin<'a> {
    name: &'a ObjectName,
    owner: &'a Owner,
    may_be_weaker: bool,
    /// Whether the object has a field that is not understood.
    is_unclear: bool,
}

/// Converts all ApisixRoutes.
pub(super) fn convert(routes: Vec<Source>, draft: &mut Draft<'_>) {
    let context = draft.context;
    let mut documents = Vec::new();
    // Matches of all rules, times their hosts.
    let mut entries = 0;
    for source in routes {
        let Source { kind, name, place, mut spec } = source;
        let may_be_weaker = context.choices.may_be_weaker(kind.as_str(), &name);
        let owner = context.owners.of_class(&mut spec, draft.report);
        let items = spec.list("http", draft.report);
        let streams = spec.list("stream", draft.report);
        let losses = draft.report.losses();
        spec.finish(draft.report);
        let is_unclear = draft.report.losses() > losses;
        let origin = Origin { name: &name, owner: &owner, may_be_weaker, is_unclear };
        let rules: Vec<Rule> =
            items.into_iter().filter_map(|item| rule(item, &origin, &mut entries, draft)).collect();
        group(&name, rules, &mut documents, draft.output);
        if is_unclear && !may_be_weaker && !streams.is_empty() {
            draft.report.withhold_until_named(&place, "Its rules for connections are not written.");
        } else {
            layer4::convert(streams, &name, draft);
        }
    }
    documents.extend(guards(context, draft.output));
    competition::compare_priorities(&mut documents, draft.report);
    competition::compare_plugins(&mut documents, draft.report);
    for document in documents {
        let _ = rules::write(document, draft.output);
    }
}

/// HTTPRoutes that refuse the requests for hosts whose clients need certificates. Hostnames are compared before paths, so
/// that no route of a wider hostname takes these requests.
fn guards(context: &Context<'_>, output: &mut Output) -> Vec<Document> {
    let mut guards = Vec::new();
    for (name, hosts) in &context.refused_hosts.of_objects {
        // No host would stand for all hosts.
        if hosts.is_empty() {
            continue;
        }
        let place = Place::object(format!("{} {name}", SourceKind::ApisixTls.as_str()));
        let mut rule = Rule::of_path(place, "refuse", hosts.clone(), &rules::every_path());
        rule.refuse();
        guards.push(Document {
            namespace: name.namespace.to_string(),
            name: output.route_name(&name.namespace, &format!("{}-refused", name.name)),
            hosts: hosts.clone(),
            section: Section::All,
            rules: vec![rule],
        });
    }
    guards
}

/// Rules with equal hosts, all or none of which redirect requests in plaintext.
type Group = ((Vec<String>, bool), Vec<Rule>);

/// Groups rules by their hosts, which an HTTPRoute has for all of its rules.
fn group(name: &ObjectName, rules: Vec<Rule>, documents: &mut Vec<Document>, output: &mut Output) {
    // By hosts, and whether requests in plaintext are redirected.
    let mut groups: Vec<Group> = Vec::new();
    for rule in rules {
        let key = (rule.hosts.clone(), rule.effects.https_only);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, rules)) => rules.push(rule),
            None => groups.push((key, vec![rule])),
        }
    }
    let has_several = groups.len() > 1;
    for ((hosts, https_only), mut rules) in groups {
        // The sort is stable: rules of one priority keep their order.
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.priority));
        let wanted = if has_several {
            of_host(&name.name, hosts.first().map_or("", String::as_str))
        } else {
            name.name.to_string()
        };
        let section = if https_only { Section::Https } else { Section::All };
        let document = Document {
            namespace: name.namespace.to_string(),
            name: output.route_name(&name.namespace, &wanted),
            hosts,
            section,
            rules,
        };
        if https_only {
            let redirect = output.route_name(&name.namespace, &format!("{wanted}-redirect"));
            documents.push(document.redirect_to_https(redirect, HTTPS_REDIRECT_STATUS));
        }
        documents.push(document);
    }
}

/// The name of one of several routes that an object becomes, by its first host; an empty host stands for all hosts.
pub(super) fn of_host(object: &str, host: &str) -> String {
    let host = match host.strip_prefix("*.") {
        Some(domain) => format!("wildcard-{domain}"),
        None if host.is_empty() => "all-hosts".to_owned(),
        None => host.to_owned(),
    };
    format!("{object}-{}", host.replace('.', "-"))
}

impl Context<'_> {
    /// Refuses hosts whose clients need certificates in the original. Returns whether there are any.
    pub(super) fn refuse_certificates(&self, hosts: &[String], place: &Place, report: &mut Report) -> bool {
        let mut covering = hosts.iter().flat_map(|host| covering(host));
        let is_refused = covering.any(|host| self.refused_hosts.all.contains(&*host));
        if is_refused {
            let message = "The clients of a host need certificates, and PingSIX asks for none.";
            report.blocking(place, Reason::ClientCertificate, message);
        }
        is_refused
    }
}

/// The plugin of `authentication`, if it is in use.
fn authentication(fields: Option<Fields>, report: &mut Report) -> Option<Vec<Field>> {
    let mut fields = fields?;
    let is_enabled = fields.truth("enable", report);
    let kind = fields.text("type", report);
    let place = fields.place.clone();
    let names = [
        ("keyAuth", "key-auth"),
        ("basicAuth", "basic-auth"),
        ("jwtAuth", "jwt-auth"),
        ("wolfRBAC", "wolf-rbac"),
        ("hmacAuth", "hmac-auth"),
        ("ldapAuth", "ldap-auth"),
    ];
    let configs: BTreeMap<&str, Field> =
        names.iter().filter_map(|(field, _)| Some((*field, fields.take(field)?))).collect();
    fields.finish(report);
    if !is_enabled.is_some_and(|(_, is_enabled)| is_enabled) {
        report.exact_whole(&place, "Authentication is switched off.");
        return None;
    }
    let kind = kind.map(|(_, kind)| kind).unwrap_or_default();
    // The original takes an unknown type for this one.
    let (field, plugin) =
        names.into_iter().find(|(field, _)| *field == kind).unwrap_or(("basicAuth", "basic-auth"));
    let config = configs.get(field).map_or_else(|| json!({}), |config| config.value.clone());
    Some(vec![Field { place: place.at(field), value: json!({ "name": plugin, "config": config }) }])
}

/// The plugins of a rule, in the order in which they replace each other.
fn plugins(fields: &mut Fields, namespace: &str, draft: &mut Draft<'_>) -> Vec<PluginUse> {
    let mut lists = Vec::new();
    let name = fields.filled("plugin_config_name", draft.report);
    let other = fields.text("plugin_config_namespace", draft.report);
    if let Some((place, name)) = name {
        let other = other.map(|(_, namespace)| namespace).filter(|namespace| !namespace.is_empty());
        let config = ObjectName::new(other.unwrap_or_else(|| namespace.to_owned()), name);
        lists.push(plugin_config::find(SourceKind::ApisixPluginConfig, &config, &place, draft));
    }
    let own = fields.list("plugins", draft.report);
    lists.push(plugin::read(own, Switch::Enable, draft.report));
    let field = fields.object("authentication", draft.report);
    if let Some(items) = authentication(field, draft.report) {
        let mut uses = plugin::read(items, Switch::Always, draft.report);
        for one in &mut uses {
            // The fields of the configuration are those of `authentication`.
            one.config.place = one.place.clone();
        }
        lists.push(uses);
    }
    plugin::merge(lists, draft.report)
}

/// Converts an item of `spec.http`. `None` if nothing is written for it.
fn rule(item: Field, origin: &Origin<'_>, entries: &mut usize, draft: &mut Draft<'_>) -> Option<Rule> {
    let context = draft.context;
    let mut fields = item.object(draft.report)?;
    let place = fields.place.clone();
    let before = draft.report.losses();
    let name = fields.text_or_empty("name", draft.report);
    let priority = priority(&mut fields, draft.report);
    let matching = fields.object("match", draft.report);
    let matching = matching.map(|fields| matches::of_rule(fields, draft.report));
    let Matching { hosts, mut matches, networks } = matching.unwrap_or_else(|| {
        let message = "The rule matches no request. Give it a match with paths.";
        draft.report.blocking(&place.at("match"), Reason::MissingField, message);
        Matching::default()
    });
    *entries = entries.saturating_add(matches.len().saturating_mul(hosts.len().max(1)));
    if *entries > MAX_COMPARED_ENTRIES {
        let message = format!(
            "The rules of the input have more than {MAX_COMPARED_ENTRIES} matches, times their hosts."
        );
        draft.report.blocking(&place.at("match"), Reason::TooMany, message);
        matches.clear();
    }
    let namespace = &*origin.name.namespace;
    let losses = draft.report.losses();
    let plugins = plugins(&mut fields, namespace, draft);
    // Plugins that are not known may protect the rule.
    let is_unclear = draft.report.losses() > losses || origin.is_unclear;
    if origin.is_unclear {
        let message = "A field of the object is not understood, and it may protect the rule.";
        draft.report.blocking(&place, Reason::UnknownField, message);
    }
    let consumers = context.consumers.pool(origin.owner);
    let base = format!("{}-{}", origin.name.name, label(&name, "rule"));
    let scope = Scope { namespace, name: &base, consumers: Some(consumers), level: Level::Rule };
    let mut effects = plugin::convert(plugins, scope, draft.report);
    effects.protects |= is_unclear;
    draft.output.write_secrets(&mut effects, namespace);
    draft.output.keep_telemetry(&mut effects);
    if !networks.is_empty() {
        effects.protects = true;
        let at = place.at("match.remoteAddrs");
        effects.secure("authorization", json!({ "allow": networks }), &at, draft.report);
    }
    let timeout = timeout(&mut fields, draft.report);
    if let Some((place, _)) = fields.truth("websocket", draft.report) {
        draft.report.exact(&place, "PingSIX lets connections change to WebSocket.");
    }
    let backends = backend::of_rule(&mut fields, origin.name, &mut effects, context, draft.report);
    let losses = draft.report.losses();
    fields.finish(draft.report);
    effects.protects |= draft.report.losses() > losses;
    if effects.https_only && !draft.output.gateway.serves_https(&hosts) {
        let message = "No ApisixTls of the input has a certificate for the hosts, so there is no HTTPS to redirect to. Name a \
                       certificate for hosts without one by --default-certificate NAMESPACE/NAME.";
        draft.report.blocking(&place.at("plugins"), Reason::TlsWithoutSecret, message);
    }
    if backends.is_empty() && effects.response.is_none() && effects.redirect.is_none() {
        let message = "The rule has no backend that PingSIX could reach.";
        draft.report.blocking(&place.at("backends"), Reason::UnsupportedBackend, message);
    }
    let gateways = std::slice::from_ref(&context.owners.gateway);
    context.refuse_second_protection(&mut effects, gateways, &place, draft.report);
    effects.protects |= context.refuse_certificates(&hosts, &place.at("match.hosts"), draft.report);
    let mut rule = Rule {
        place,
        name,
        priority,
        hosts,
        matches,
        effects,
        backends,
        timeout,
        may_be_weaker: origin.may_be_weaker,
    };
    if draft.report.losses() == before {
        return Some(rule);
    }
    if origin.may_be_weaker {
        let is_written = !rule.matches.is_empty()
            && (!rule.backends.is_empty()
                || rule.effects.response.is_some()
                || rule.effects.redirect.is_some());
        return is_written.then_some(rule);
    }
    rule.withhold(draft.report).then_some(rule)
}

fn priority(fields: &mut Fields, report: &mut Report) -> i64 {
    let Some(field) = fields.take("priority") else { return 0 };
    let Some(priority) = field.value.as_i64() else {
        report.blocking(&field.place, Reason::InvalidValue, "The value is not a whole number.");
        return 0;
    };
    if priority == 0 {
        report.exact(&field.place, "This is the default.");
    } else {
        let message =
            "HTTPRoutes have no priority. The rules are in an order that has the same effect on each other.";
        report.limited(&field.place, Reason::Precedence, message);
    }
    priority
}

/// The seconds of `timeouts.backendRequest`.
fn timeout(fields: &mut Fields, report: &mut Report) -> Option<u64> {
    let mut timeout = fields.object("timeout", report)?;
    let at = timeout.place.clone();
    let connect = timeout.take("connect").and_then(|field| field.seconds(report));
    let send = timeout.take("send").and_then(|field| field.seconds(report));
    let read = timeout.take("read").and_then(|field| field.seconds(report));
    timeout.finish(report);
    if let Some((place, _)) = connect {
        let message = "The time to connect is that of the Service, in a BackendTrafficPolicy.";
        report.limited(&place, Reason::DifferentScope, message);
    }
    // The original has 60 seconds for an absent value, and for zero.
    let value = |given: &Option<(Place, crate::source::Seconds)>| {
        given.as_ref().map(|(_, seconds)| seconds.value).filter(|value| *value > 0).unwrap_or(60)
    };
    let longest = value(&send).max(value(&read));
    let is_exact = [&send, &read].into_iter().flatten().all(|(_, seconds)| seconds.is_exact);
    if value(&send) == value(&read) && is_exact {
        report.exact(&at, "The field becomes timeouts.backendRequest.");
    } else {
        let message = "The longer one of send and read, in whole seconds, becomes timeouts.backendRequest.";
        report.limited(&at, Reason::DifferentConnection, message);
    }
    Some(longest.clamp(1, 86_400))
}

impl Rule {
    /// Turns the rule into one that refuses its requests, if the original protects it: no other rule may take them.
    /// Without protection, another rule may take them, and false is returned.
    fn withhold(&mut self, report: &mut Report) -> bool {
        if !self.effects.protects {
            report.withhold_until_named(&self.place, "The rule is not written.");
            return false;
        }
        if self.matches.is_empty() {
            let message = "The rule is not written, and nothing refuses its requests: see that no other rule takes them.";
            report.withhold_until_named(&self.place, message);
            return false;
        }
        let message = "The rule is not written, because it protects its backends or may do so. A rule in its place answers 503.";
        report.withhold_until_named(&self.place, message);
        self.refuse();
        true
    }

    /// Makes the rule answer 503.
    pub(super) fn refuse(&mut self) {
        self.effects = Effects { response: Some(refusal()), protects: true, ..Effects::default() };
        self.backends = Vec::new();
        self.timeout = None;
    }
}

/// The answer to requests that no backend may serve.
pub(super) fn refusal() -> Value {
    json!({ "statusCode": 503 })
}
