//! `spec.tls` of Ingresses: listeners for HTTPS.

use std::collections::BTreeSet;

use pingsix_translate::{Hostname, ObjectName};

use super::annotated::{Annotated, Tls};
use super::hosts::AddedHosts;
use super::passthrough::Passthrough;
use crate::convert::Draft;
use crate::report::{Place, Reason};

/// Adds listeners for the certificates of all Ingresses.
pub(super) fn convert(
    ingresses: &[Annotated],
    added: &AddedHosts,
    passthrough: &Passthrough,
    draft: &mut Draft<'_>,
) {
    // A certificate of the input for a host counts, whatever its Ingress is.
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for ingress in ingresses {
        listeners(ingress, added, passthrough, &mut taken, draft);
    }
    for ingress in ingresses {
        for tls in ingress.tls.iter().filter(|tls| tls.secret.is_none()) {
            without_secret(ingress, tls, passthrough, draft);
        }
    }
}

/// A host in a sentence.
pub(super) fn shown(host: &str) -> &str {
    if host.is_empty() { "all hosts" } else { host }
}

/// Reports an item of `spec.tls` without a Secret.
fn without_secret(ingress: &Annotated, tls: &Tls, passthrough: &Passthrough, draft: &mut Draft<'_>) {
    let context = draft.context;
    if !ingress.is_of_nginx() {
        return draft.report.exact(&tls.place, "The entry names no Secret, and APISIX ignores it, too.");
    }
    let hosts: Vec<String> = if tls.hosts.is_empty() {
        ingress.hosts().map(str::to_owned).collect()
    } else {
        tls.hosts.iter().map(|(_, host)| host.clone()).collect()
    };
    let is_served = |host: &String| {
        passthrough.has(host) || draft.output.gateway.serves_https(&super::rules::hosts(host))
    };
    let missing: Vec<&str> = hosts.iter().filter(|host| !is_served(host)).map(|host| shown(host)).collect();
    if let Some(secret) = &context.choices.default_certificate {
        let message = format!("A listener for all hosts shows the default certificate, Secret {secret}.");
        draft.report.exact(&tls.place, message);
    } else if missing.is_empty() {
        let message = "The entry names no Secret. Another listener for HTTPS has the hosts, and shows its certificate in place \
                       of the default one of ingress-nginx.";
        draft.report.limited(&tls.place, Reason::DifferentAnswer, message);
    } else {
        let message = format!(
            "The entry names no Secret, and the input does not say which certificate is the default one of ingress-nginx. So \
             HTTPS is not served for {}. Name the Secret of --default-ssl-certificate by --default-certificate \
             NAMESPACE/NAME.",
            missing.join(", ")
        );
        draft.report.impossible(&tls.place, Reason::TlsWithoutSecret, message);
    }
}

/// Adds a listener for each host of an Ingress with a certificate. `taken` are the hosts of such listeners.
fn listeners(
    ingress: &Annotated,
    added: &AddedHosts,
    passthrough: &Passthrough,
    taken: &mut BTreeSet<String>,
    draft: &mut Draft<'_>,
) {
    // An alias has the certificate of its host, unless an entry lists the alias itself.
    let listed: BTreeSet<&String> =
        ingress.tls.iter().flat_map(|tls| &tls.hosts).map(|(_, host)| host).collect();
    for tls in &ingress.tls {
        let Some(secret) = &tls.secret else { continue };
        let secret = ObjectName::new(ingress.namespace(), secret.as_str());
        let hosts = if tls.hosts.is_empty() {
            let message = "The certificate is shown for the hosts of the rules.";
            draft.report.limited(&tls.place, Reason::DifferentScope, message);
            let hosts = ingress.hosts().filter(|host| !host.is_empty());
            hosts.map(|host| (tls.place.clone(), host.to_owned())).collect()
        } else {
            tls.hosts.clone()
        };
        let with_aliases: Vec<(Place, String)> = hosts
            .into_iter()
            .flat_map(|(place, host): (Place, String)| {
                let aliases: &[String] =
                    if passthrough.has(&host) { &[] } else { added.aliases(ingress, &host) };
                let aliases = aliases.iter().filter(|alias| !listed.contains(alias));
                let aliases = aliases.map(|alias| (place.clone(), alias.clone())).collect::<Vec<_>>();
                std::iter::once((place, host)).chain(aliases)
            })
            .collect();
        for (place, host) in with_aliases {
            if passthrough.has(&host) {
                let message =
                    "TLS connections for the host pass through, so no listener shows the certificate.";
                draft.report.exact(&place, message);
            } else if Hostname::parse(&host).is_err() {
                draft.report.impossible(&place, Reason::UnsupportedHost, "A listener cannot have the host.");
            } else if draft.output.gateway.has_listener(&host) && taken.contains(&host) {
                draft.report.exact(&place, "The host has a listener for HTTPS already.");
            } else if draft.output.gateway.has_listener(&host) {
                let message = "Another object has a certificate for the host; the first one counts.";
                draft.report.limited(&place, Reason::Duplicate, message);
            } else {
                draft.report.exact(&place, "The host has a listener for HTTPS.");
                let certificate = secret.clone();
                taken.insert(host.clone());
                draft.output.gateway.listen_https(place, host, certificate);
            }
        }
    }
}
