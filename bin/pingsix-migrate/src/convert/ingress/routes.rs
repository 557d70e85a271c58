//! Ingresses to HTTPRoutes: one for each host, with the policies of the Ingress.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::crd::AnnotationDialect;
use pingsix_translate::{GATEWAY_GROUP, Kind};
use serde_json::{Value, json};

use super::annotated::Annotated;
use super::canary::Canaries;
use super::hosts::{ALIAS, AddedHosts};
use super::passthrough::Passthrough;
use super::paths;
use super::precedence::prefer;
use super::rules::{Leader, Reader, effects, hosts};
use super::tls::shown;
use super::tls_hosts::{TlsHosts, by_default, wants_https};
use crate::convert::parent::Section;
use crate::convert::rules::{self, Document};
use crate::convert::{Draft, competition};
use crate::plugin::Effects;
use crate::report::Reason;

/// The status of redirects to HTTPS. APISIX has 301 for methods without a body.
const HTTPS_REDIRECT_STATUS: u16 = 308;

/// The most targets of a policy.
const MAX_TARGETS: usize = 16;

/// Writes the HTTPRoutes of all Ingresses and their policies.
pub(super) fn convert(
    ingresses: &[Annotated],
    added: &AddedHosts,
    passthrough: &Passthrough,
    draft: &mut Draft<'_>,
) {
    let context = draft.context;
    let regular = paths::regular_hosts(ingresses.iter());
    let tls_hosts = TlsHosts::of(ingresses);
    let served = || ingresses.iter().enumerate().filter(|(_, one)| one.read.canary.is_none());
    let leaders = leaders(served(), &regular);
    let canaries = Canaries::of(ingresses);
    let mut candidates = Vec::new();
    for (index, ingress) in served() {
        let (canaries, regular, tls_hosts, leaders) = (&canaries, &regular, &tls_hosts, &leaders);
        let effects = effects(ingress);
        let reader = Reader {
            canaries,
            ingress,
            index,
            sources: context.sources,
            regular,
            tls_hosts,
            leaders,
            effects,
        };
        reader.read(&mut candidates, draft);
    }
    canaries.note_unused(ingresses, draft.report);
    let served = prefer(candidates, ingresses, &regular, draft.report);
    let mut documents: Vec<Document> = Vec::new();
    let mut owners: Vec<usize> = Vec::new();
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for (index, _) in served.keys() {
        *counts.entry(*index).or_default() += 1;
    }
    let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
    for ((index, host), rules) in served {
        let Some(ingress) = ingresses.get(index) else { continue };
        let number = numbers.entry(index).or_default();
        *number += 1;
        let wanted = match number {
            _ if counts.get(&index).is_some_and(|count| *count > 1) && !ingress.annotations.is_empty() => {
                ingress.route_name(&host)
            }
            1 => ingress.key.name.name.to_string(),
            // Names of earlier versions, which an Ingress without annotations keeps.
            number => format!("{}-{number}", ingress.key.name.name),
        };
        let name = draft.output.route_name(ingress.namespace(), &wanted);
        let mut aliases = added.aliases(ingress, &host);
        if passthrough.has(&host) && !aliases.is_empty() {
            let message = "TLS of the host passes through, and an alias of such a host is not served.";
            draft.report.impossible(&ingress.at_own(ALIAS), Reason::UnsupportedHost, message);
            aliases = &[];
        }
        let document = Document {
            namespace: ingress.namespace().to_owned(),
            name,
            hosts: hosts(&host),
            section: if passthrough.has(&host) { Section::Plaintext } else { Section::All },
            rules,
        };
        for mut document in of_host((ingress, &tls_hosts), &host, document, draft) {
            if document.section == Section::Http && !aliases.is_empty() && !ingress.read.https.without_tls {
                let message = "Plaintext for the aliases is redirected to HTTPS, too. ingress-nginx redirects an alias if the \
                               certificate of the host is valid for the alias.";
                draft.report.limited(&ingress.at_own(ALIAS), Reason::DifferentScope, message);
            }
            document.hosts.extend(aliases.iter().cloned());
            documents.push(document);
            owners.push(index);
        }
    }
    for (index, document) in added.documents(ingresses, draft.output) {
        documents.push(document);
        owners.push(index);
    }
    competition::compare_plugins(&mut documents, draft.report);
    let mut routes: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (mut document, owner) in documents.into_iter().zip(owners) {
        // ingress-nginx redirects before it looks at the client.
        let is_of_nginx = ingresses
            .get(owner)
            .is_some_and(|one| one.dialect.annotations == AnnotationDialect::IngressNginx);
        let without_redirects = is_of_nginx || document.section == Section::Http;
        let has_policies = document.rules.iter().any(|rule| {
            let Effects { response, redirect, security, .. } = &rule.effects;
            !rule.matches.is_empty()
                && (redirect.is_none() || !without_redirects)
                && (response.is_none() || !security.is_empty())
        });
        for rule in &mut document.rules {
            // The policies are those of the Ingress, so that its paths share the counts of a limit.
            rule.effects.security.clear();
            rule.effects.traffic.clear();
        }
        let written = rules::write(document, draft.output);
        if has_policies {
            routes.entry(owner).or_default().extend(written);
        }
    }
    for (index, routes) in routes {
        if let Some(ingress) = ingresses.get(index) {
            write_policies(ingress, &routes, draft);
        }
    }
}

/// The oldest Ingress with rules for each host. `served` are in the order of their age.
fn leaders<'a>(
    served: impl Iterator<Item = (usize, &'a Annotated)>,
    regular: &BTreeSet<&str>,
) -> BTreeMap<&'a str, Leader> {
    let mut leaders: BTreeMap<&str, Leader> = BTreeMap::new();
    for (index, ingress) in served {
        for entry in &ingress.entries {
            let leader = leaders.entry(&entry.host).or_insert(Leader { ingress: index, has_root: false });
            let is_regular = regular.contains(entry.host.as_str());
            leader.has_root |= entry.paths.iter().any(|path| match &ingress.read.rewriting {
                Some(rewriting) if is_regular => {
                    rewriting.read(&path.path).is_ok_and(|pattern| pattern.path == "/")
                }
                Some(_) | None => path.path == "/" && (is_regular || !path.is_exact()),
            });
        }
    }
    leaders
}

/// The HTTPRoutes for a host of an Ingress: the one that serves, and the one that redirects to it. If TLS passes through, no
/// HTTPRoute serves the requests to which plaintext is redirected.
fn of_host(
    (ingress, tls_hosts): (&Annotated, &TlsHosts<'_>),
    host: &str,
    mut document: Document,
    draft: &mut Draft<'_>,
) -> Vec<Document> {
    if !redirects((ingress, tls_hosts), host, document.section, draft) {
        return vec![document];
    }
    let is_alone = document.section == Section::Plaintext;
    let name = if is_alone {
        document.name.clone()
    } else {
        draft.output.route_name(&document.namespace, &format!("{}-redirect", document.name))
    };
    let mut redirect = document.redirect_to_https(name, HTTPS_REDIRECT_STATUS);
    // ingress-nginx redirects the root to app-root before.
    for (rule, own) in redirect.rules.iter_mut().zip(&document.rules) {
        if own.effects.redirect.is_some() {
            rule.effects.redirect.clone_from(&own.effects.redirect);
        }
    }
    // The rules for a header of a canary, or for methods, have the path of the rule for the rest.
    redirect.rules.retain(|rule| {
        let is_conditional = |one: &Value| one.get("headers").is_some() || one.get("method").is_some();
        !rule.matches.iter().any(is_conditional)
    });
    if is_alone {
        redirect.section = Section::Plaintext;
        return vec![redirect];
    }
    document.section = Section::Https;
    vec![redirect, document]
}

/// Whether requests in plaintext for a host are redirected.
fn redirects(
    (ingress, tls_hosts): (&Annotated, &TlsHosts<'_>),
    host: &str,
    section: Section,
    draft: &mut Draft<'_>,
) -> bool {
    let context = draft.context;
    let forced = ingress.at_own(ingress.dialect.to_https);
    if ingress.is_closed {
        if ingress.read.https.without_tls {
            let message = "All paths of the Ingress answer 503, in plaintext, too.";
            draft.report.limited(&forced, Reason::NoEffect, message);
        }
        return false;
    }
    if ingress.read.redirects() {
        if ingress.read.https.without_tls {
            let message = "Another annotation redirects all requests before they are redirected to HTTPS.";
            draft.report.exact(&forced, message);
        }
        return false;
    }
    if !wants_https(ingress, host, tls_hosts) {
        return false;
    }
    let without_tls = ingress.read.https.without_tls || ingress.plugins.https_only;
    let at = match (without_tls, ingress.read.https.without_tls) {
        (true, true) => forced,
        (true, false) => ingress.at_own("plugin-config-name"),
        (false, _) => ingress.at_tls(),
    };
    if section != Section::Plaintext && !draft.output.gateway.serves_https(&hosts(host)) {
        let message = format!(
            "The input has no certificate for {}, so there is no HTTPS to redirect to. Requests in plaintext are served. Name \
             a certificate for hosts without one by --default-certificate NAMESPACE/NAME.",
            shown(host)
        );
        draft.report.impossible(&at, Reason::TlsWithoutSecret, message);
        return false;
    }
    if !draft.output.gateway.is_known() {
        let message = format!(
            "An HTTPRoute redirects plaintext to HTTPS with status {HTTPS_REDIRECT_STATUS}. Gateway {} is not among the input, so see that it \
             has a listener for HTTPS of {}.",
            context.owners.gateway,
            shown(host)
        );
        draft.report.limited(&at, Reason::MissingReferent, message);
    } else if without_tls {
        let message = "An HTTPRoute redirects plaintext to HTTPS with status 308.";
        match ingress.dialect.annotations {
            AnnotationDialect::IngressNginx => draft.report.exact(&at, message),
            AnnotationDialect::Apisix => {
                let message = format!("{message} APISIX has status 301 for GET and HEAD.");
                draft.report.limited(&at, Reason::DifferentAnswer, message);
            }
        }
    } else if !tls_hosts.has_of_rules(host) {
        let message = format!(
            "An HTTPRoute redirects plaintext for {host} to HTTPS with status 308. ingress-nginx serves plaintext, because no \
             Ingress with rules for the host has spec.tls."
        );
        draft.report.limited(&at, Reason::DifferentScope, message);
    } else if by_default(ingress) {
        let message = "ingress-nginx redirects hosts with a certificate by default, so an HTTPRoute redirects plaintext to \
                       HTTPS with status 308.";
        draft.report.exact(&at, message);
    }
    true
}

/// Writes the policies of an Ingress for its routes.
fn write_policies(ingress: &Annotated, routes: &[String], draft: &mut Draft<'_>) {
    let Effects { security, traffic, .. } = effects(ingress);
    let specs = [(Kind::SecurityPolicy, security), (Kind::TrafficPolicy, traffic)];
    for (kind, fields) in specs {
        if fields.is_empty() {
            continue;
        }
        if fields.contains_key("rateLimit") && routes.len() > MAX_TARGETS {
            let message =
                format!("A policy has at most {MAX_TARGETS} targets, so the Ingress has several counts.");
            draft.report.limited(&ingress.place, Reason::TooMany, message);
        }
        for routes in routes.chunks(MAX_TARGETS) {
            let target = |route: &String| json!({ "group": GATEWAY_GROUP, "kind": Kind::HttpRoute.as_str(), "name": route });
            let mut spec = fields.clone();
            spec.insert("targetRefs".to_owned(), routes.iter().map(target).collect());
            let name = &ingress.key.name;
            draft.output.objects.add(kind, &name.namespace, &name.name, Value::Object(spec));
        }
    }
}
