//! Hosts that annotations add: aliases of a host, and hosts that are redirected to one.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::Hostname;
use pingsix_translate::annotations::MoreHosts;
use serde_json::json;

use super::annotated::Annotated;
use super::tls_hosts::TlsHosts;
use crate::convert::covering::covering;
use crate::convert::output::Output;
use crate::convert::parent::Section;
use crate::convert::rules::{Document, Rule, every_path};
use crate::report::{Place, Reason, Report};

/// The annotation with aliases.
pub(super) const ALIAS: &str = "server-alias";

/// The annotation that redirects hosts.
pub(super) const WWW: &str = "from-to-www-redirect";

/// The status of the redirect in ingress-nginx.
const REDIRECT_STATUS: u16 = 308;

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
    pub(super) fn documents(&self, ingresses: &[Annotated], output: &mut Output) -> Vec<(usize, Document)> {
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
                _ => ingress.route_name(from),
            };
            let name = output.route_name(&namespace, &wanted);
            let redirect = json!({ "hostname": to, "statusCode": REDIRECT_STATUS });
            let hosts = vec![from.clone()];
            let mut rule = Rule::of_path(place.clone(), "www", hosts.clone(), &every_path());
            rule.effects.redirect = Some(redirect);
            rule.may_be_weaker = ingress.may_be_weaker;
            let rules = vec![rule];
            redirects.push((*index, Document { namespace, name, hosts, section: Section::All, rules }));
        }
        redirects
    }
}

/// Reads the annotations. A host of rules is neither an alias nor redirected, and a host that is redirected is no alias. Of
/// several redirects of a host, the one of the oldest Ingress counts.
pub(super) fn added(ingresses: &[Annotated], report: &mut Report) -> AddedHosts {
    let mut added = AddedHosts::default();
    let tls_hosts = TlsHosts::of(ingresses);
    let mut with_rules: BTreeMap<&str, &Annotated> = BTreeMap::new();
    for ingress in ingresses.iter().filter(|ingress| ingress.read.canary.is_none()) {
        for entry in &ingress.entries {
            with_rules.entry(&entry.host).or_insert(ingress);
        }
    }
    let mut redirected: BTreeSet<String> = BTreeSet::new();
    let more: Vec<MoreHosts> = ingresses.iter().map(Annotated::more_hosts).collect();
    for (index, (ingress, more)) in ingresses.iter().zip(&more).enumerate() {
        for redirect in &more.redirects {
            let place = ingress.at_own(WWW);
            let (from, to) = (redirect.from.to_string(), redirect.to.to_string());
            if let Some(other) = with_rules.get(from.as_str()) {
                let message =
                    format!("{} has the host {from}, which is not redirected, as before.", other.key);
                report.exact(&place, message);
            } else if !redirected.insert(from.clone()) {
                report.exact(&place, format!("An HTTPRoute redirects {from} already."));
            } else {
                report_redirect(&tls_hosts, (&from, &to), &place, report);
                added.redirects.push(Redirect { ingress: index, place, from, to });
            }
        }
    }
    let owners = owners_of_aliases(ingresses);
    for ingress in ingresses.iter().zip(&more) {
        aliases(ingress, &with_rules, &redirected, &owners, (&mut added, report));
    }
    added
}

/// The Ingress and the host of its rules, empty for all hosts, that an alias stands for.
type Owner<'a> = (&'a Annotated, &'a str);

/// The owner of each alias. In ingress-nginx, a server has the aliases of the oldest Ingress with any, and of several servers
/// with an alias, the first by name has its requests.
fn owners_of_aliases(ingresses: &[Annotated]) -> BTreeMap<&str, Owner<'_>> {
    let mut servers: BTreeMap<&str, Owner<'_>> = BTreeMap::new();
    for ingress in ingresses.iter().filter(|one| one.read.canary.is_none() && !one.read.aliases.is_empty()) {
        for host in ingress.hosts() {
            // The name of the server for all hosts.
            let name = if host.is_empty() { "_" } else { host };
            servers.entry(name).or_insert((ingress, host));
        }
    }
    let mut owners = BTreeMap::new();
    for (ingress, host) in servers.into_values() {
        for alias in &ingress.read.aliases {
            owners.entry(alias.as_str()).or_insert((ingress, host));
        }
    }
    owners
}

fn report_redirect(tls_hosts: &TlsHosts<'_>, (from, to): (&str, &str), place: &Place, report: &mut Report) {
    if tls_hosts.has(to) && !tls_hosts.has(from) {
        let message = format!(
            "An HTTPRoute redirects {from} to {to} with status {REDIRECT_STATUS}, in plaintext alone: spec.tls lists no certificate for \
             {from}."
        );
        report.limited(place, Reason::TlsWithoutSecret, message);
    } else {
        report.exact(place, format!("An HTTPRoute redirects {from} to {to} with status {REDIRECT_STATUS}."));
    }
}

fn aliases(
    (ingress, more): (&Annotated, &MoreHosts),
    with_rules: &BTreeMap<&str, &Annotated>,
    redirected: &BTreeSet<String>,
    owners: &BTreeMap<&str, Owner<'_>>,
    (added, report): (&mut AddedHosts, &mut Report),
) {
    if ingress.read.aliases.is_empty() || ingress.read.canary.is_some() {
        return;
    }
    let place = ingress.at_own(ALIAS);
    if more.aliases.is_empty() && more.beyond == 0 {
        return report.exact(&place, "The Ingress has rules for the aliases, or redirects them.");
    }
    if more.beyond > 0 {
        let message = format!("{} aliases would be too many for the paths of the Ingress.", more.beyond);
        report.impossible(&place, Reason::UnsupportedHost, message);
    }
    let mut mains: BTreeSet<&str> = BTreeSet::new();
    for (_, alias) in &more.aliases {
        let message = if let Some(other) = with_rules.get(alias.as_str()) {
            format!("{} has the host {alias}, which counts before the alias, as before.", other.key)
        } else {
            match owners.get(alias.as_str()) {
                None => {
                    format!(
                        "Older Ingresses with the hosts have aliases, which count before {alias}, as before."
                    )
                }
                Some((owner, _)) if owner.key != ingress.key || redirected.contains(alias.as_str()) => {
                    format!("Host {alias} is an alias of another host, or redirected, which counts.")
                }
                Some((_, "")) => {
                    report_of_all_hosts(alias, with_rules, &place, report);
                    continue;
                }
                Some((_, main)) => {
                    let key = (ingress.namespace().to_owned(), (*main).to_owned());
                    added.aliases.entry(key).or_default().push(alias.to_string());
                    mains.insert(main);
                    format!("{alias} is a hostname of the HTTPRoutes for {main}.")
                }
            }
        };
        report.exact(&place, message);
    }
    for main in mains {
        let other = with_rules.get(main).filter(|other| other.namespace() != ingress.namespace());
        if let Some(other) = other {
            let message =
                format!("Paths of {} and other namespaces for {main} do not get the aliases.", other.key);
            report.limited(&place, Reason::UnsupportedHost, message);
        }
    }
}

/// Reports an alias of rules for all hosts, which need no further hostname.
fn report_of_all_hosts(
    alias: &Hostname,
    with_rules: &BTreeMap<&str, &Annotated>,
    place: &Place,
    report: &mut Report,
) {
    let wider = covering(alias.as_str()).find_map(|wide| Some((with_rules.get(&*wide)?, wide)));
    match wider.filter(|(_, wide)| !wide.is_empty()) {
        Some((other, wide)) => {
            let message = format!(
                "Requests for {alias} that a path of {wide} takes reach {}. ingress-nginx has the rules for all hosts for them.",
                other.key
            );
            report.limited(place, Reason::DifferentScope, message);
        }
        None => report.exact(place, "The rules are for all hosts, and so for the aliases."),
    }
}
