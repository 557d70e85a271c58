//! Hosts that annotations add: aliases of a host, and hosts that are redirected to one.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::annotations::MoreHosts;
use serde_json::json;

use super::annotated::Annotated;
use super::routes::name_of;
use super::tls::TlsHosts;
use crate::migrate::convert::Conversion;
use crate::migrate::convert::rules::{Document, Rule, Section};
use crate::migrate::plugin::Effects;
use crate::migrate::report::{Place, Reason, Report};

/// The annotation with aliases.
pub(super) const ALIAS: &str = "server-alias";

/// The annotation that redirects hosts.
pub(super) const WWW: &str = "from-to-www-redirect";

/// The status of the redirect in ingress-nginx.
const STATUS: u16 = 308;

/// The hosts that the annotations of all Ingresses add.
#[derive(Default)]
pub(super) struct AddedHosts {
    /// By namespace and host.
    aliases: BTreeMap<(String, String), Vec<String>>,
    redirects: Vec<Redirect>,
}

/// A host whose requests are redirected.
struct Redirect {
    /// Index of the Ingress.
    ingress: usize,
    place: Place,
    from: String,
    to: String,
}

impl AddedHosts {
    /// The aliases of a host of an Ingress.
    pub(super) fn aliases(&self, ingress: &Annotated, host: &str) -> &[String] {
        let key = (ingress.namespace().to_owned(), host.to_owned());
        self.aliases.get(&key).map(Vec::as_slice).unwrap_or_default()
    }

    /// The HTTPRoutes that redirect hosts, each with the index of its Ingress.
    pub(super) fn documents(
        &self,
        ingresses: &[Annotated],
        conversion: &mut Conversion,
    ) -> Vec<(usize, Document)> {
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for Redirect { ingress, .. } in &self.redirects {
            *counts.entry(*ingress).or_default() += 1;
        }
        let mut redirects: Vec<(usize, Document)> = Vec::new();
        for Redirect { ingress: index, place, from, to } in &self.redirects {
            let Some(ingress) = ingresses.get(*index) else { continue };
            let namespace = ingress.namespace().to_owned();
            let wanted = match counts.get(index) {
                Some(1) => format!("{}-www", ingress.key.name.name),
                _ => name_of(ingress, from),
            };
            let name = conversion.route_name(&namespace, &wanted);
            let redirect = json!({ "hostname": to, "statusCode": STATUS });
            let rule = Rule {
                place: place.clone(),
                name: "www".to_owned(),
                priority: 0,
                hosts: vec![from.clone()],
                matches: vec![json!({ "path": { "type": "PathPrefix", "value": "/" } })],
                effects: Effects { redirect: Some(redirect), ..Effects::default() },
                backends: Vec::new(),
                timeout: None,
                may_be_weaker: ingress.may_be_weaker,
            };
            let (hosts, rules) = (vec![from.clone()], vec![rule]);
            redirects.push((*index, Document { namespace, name, hosts, section: Section::All, rules }));
        }
        redirects
    }
}

/// Reads the annotations. A host of rules is neither an alias nor redirected, and of several aliases and redirects of a host,
/// the one of the oldest Ingress counts.
pub(super) fn added(ingresses: &[Annotated], report: &mut Report) -> AddedHosts {
    let mut added = AddedHosts::default();
    let tls_hosts = TlsHosts::of(ingresses);
    let mut with_rules: BTreeMap<&str, &Annotated> = BTreeMap::new();
    for ingress in ingresses.iter().filter(|ingress| ingress.read.canary.is_none()) {
        for entry in &ingress.entries {
            with_rules.entry(&entry.host).or_insert(ingress);
        }
    }
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for (index, ingress) in ingresses.iter().enumerate() {
        let more = ingress.more_hosts();
        for redirect in &more.redirects {
            let place = ingress.at_own(WWW);
            let (from, to) = (redirect.from.to_string(), redirect.to.to_string());
            if let Some(other) = with_rules.get(from.as_str()) {
                let message =
                    format!("{} has the host {from}, which is not redirected, as before.", other.key);
                report.exact(&place, message);
            } else if !taken.insert(from.clone()) {
                report.exact(&place, format!("An HTTPRoute redirects {from} already."));
            } else {
                report_redirect(&tls_hosts, (&from, &to), &place, report);
                added.redirects.push(Redirect { ingress: index, place, from, to });
            }
        }
        aliases((ingress, &more), &with_rules, &mut taken, (&mut added, report));
    }
    added
}

fn report_redirect(tls_hosts: &TlsHosts<'_>, (from, to): (&str, &str), place: &Place, report: &mut Report) {
    if tls_hosts.has(to) && !tls_hosts.has(from) {
        let message = format!(
            "An HTTPRoute redirects {from} to {to} with status {STATUS}, in plaintext alone: spec.tls lists no certificate for \
             {from}."
        );
        report.limited(place, Reason::TlsWithoutSecret, message);
    } else {
        report.exact(place, format!("An HTTPRoute redirects {from} to {to} with status {STATUS}."));
    }
}

fn aliases(
    (ingress, more): (&Annotated, &MoreHosts),
    with_rules: &BTreeMap<&str, &Annotated>,
    taken: &mut BTreeSet<String>,
    (added, report): (&mut AddedHosts, &mut Report),
) {
    if ingress.read.aliases.is_empty() || ingress.read.canary.is_some() {
        return;
    }
    let place = ingress.at_own(ALIAS);
    if more.aliases.is_empty() && more.beyond == 0 {
        report.exact(&place, "The Ingress has rules for the aliases, or redirects them.");
        return;
    }
    if more.beyond > 0 {
        let message = format!("{} aliases would be too many for the paths of the Ingress.", more.beyond);
        report.impossible(&place, Reason::UnsupportedHost, message);
    }
    let Some(main) = &more.main else {
        report.exact(&place, "The rules are for all hosts, and so for the aliases.");
        return;
    };
    let key = (ingress.namespace().to_owned(), main.to_string());
    if added.aliases.contains_key(&key) {
        report.exact(&place, format!("The aliases of an older Ingress of host {main} count, as before."));
        return;
    }
    let mut of_host = Vec::new();
    for (_, alias) in &more.aliases {
        if let Some(other) = with_rules.get(alias.as_str()) {
            let message =
                format!("{} has the host {alias}, which counts before the alias, as before.", other.key);
            report.exact(&place, message);
        } else if !taken.insert(alias.to_string()) {
            report.exact(
                &place,
                format!("Host {alias} is an alias of another host, or redirected, which counts."),
            );
        } else {
            report.exact(&place, format!("{alias} is a hostname of the HTTPRoutes for {main}."));
            of_host.push(alias.to_string());
        }
    }
    if let Some(other) =
        with_rules.get(main.as_str()).filter(|other| other.namespace() != ingress.namespace())
    {
        let message =
            format!("Paths of {} and other namespaces for {main} do not get the aliases.", other.key);
        report.limited(&place, Reason::UnsupportedHost, message);
    }
    if !of_host.is_empty() {
        added.aliases.insert(key, of_host);
    }
}
