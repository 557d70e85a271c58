//! The hosts for which Ingresses have `spec.tls`, and their redirects to HTTPS.

use std::collections::BTreeSet;

use super::annotated::Annotated;

/// The hosts for which an Ingress has `spec.tls`.
pub(super) struct TlsHosts<'a> {
    all: BTreeSet<&'a str>,
    /// Those of rules of such an Ingress. ingress-nginx redirects these alone.
    of_rules: BTreeSet<&'a str>,
}

impl<'a> TlsHosts<'a> {
    /// Those of an Ingress with `spec.tls` are the hosts of its rules and the hosts that it lists.
    pub(super) fn of(ingresses: &'a [Annotated]) -> Self {
        let (mut all, mut of_rules) = (BTreeSet::new(), BTreeSet::new());
        for ingress in ingresses.iter().filter(|ingress| !ingress.tls.is_empty()) {
            let listed = ingress.tls.iter().flat_map(|tls| &tls.hosts);
            all.extend(listed.map(|(_, host)| host.as_str()));
            if ingress.read.canary.is_none() {
                of_rules.extend(ingress.hosts());
            }
        }
        of_rules.remove("");
        all.extend(&of_rules);
        Self { all, of_rules }
    }

    /// Whether a host has a certificate: its own, or the one of the wildcard with one label in its place.
    pub(super) fn has(&self, host: &str) -> bool {
        is_covered(&self.all, host)
    }

    /// Whether ingress-nginx has the certificate of a host, too. It ignores hosts in `spec.tls` of Ingresses without rules
    /// for them.
    pub(super) fn has_of_rules(&self, host: &str) -> bool {
        is_covered(&self.of_rules, host)
    }
}

fn is_covered(hosts: &BTreeSet<&str>, host: &str) -> bool {
    let around = host.split_once('.').map(|(_, domain)| format!("*.{domain}"));
    hosts.contains(host) || around.is_some_and(|around| hosts.contains(around.as_str()))
}

/// Whether the original redirects requests in plaintext for a host. Some controllers do that by default for hosts with a
/// certificate.
pub(super) fn wants_https(ingress: &Annotated, host: &str, tls_hosts: &TlsHosts<'_>) -> bool {
    let without_tls = ingress.read.https.without_tls || ingress.plugins.https_only;
    without_tls || (tls_hosts.has(host) && (ingress.read.https.with_tls || by_default(ingress)))
}

/// Whether the Ingress says nothing about the redirect that hosts with a certificate have by default.
pub(super) fn by_default(ingress: &Annotated) -> bool {
    let name = ingress.dialect.to_https_by_default.map(|name| ingress.dialect.whole_name(name));
    name.is_some_and(|name| !ingress.annotations.contains_key(&name))
}
