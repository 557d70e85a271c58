//! `spec.tls` of Ingresses: listeners for HTTPS.

use std::collections::BTreeSet;

use pingsix_translate::crd::AnnotationDialect;
use pingsix_translate::{Kind, ObjectName};
use serde_json::json;

use super::annotated::Annotated;
use super::hosts::AddedHosts;
use crate::migrate::convert::Conversion;
use crate::migrate::convert::gateway::HttpsListener;
use crate::migrate::report::{Place, Reason};
use crate::migrate::source::is_name;

/// Adds listeners for the certificates of all Ingresses.
pub(super) fn convert(ingresses: &[Annotated], added: &AddedHosts, conversion: &mut Conversion) {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for ingress in ingresses {
        for tls in &ingress.tls {
            let Some(secret) = &tls.secret else {
                match ingress.dialect.annotations {
                    AnnotationDialect::IngressNginx => {
                        let message = "The entry names no Secret, and the default certificate of ingress-nginx is not in \
                                       the input. Give the hosts a Secret.";
                        conversion.report.impossible(&tls.place, Reason::TlsWithoutSecret, message);
                    }
                    AnnotationDialect::Apisix => {
                        let message = "The entry names no Secret, and APISIX ignores it, too.";
                        conversion.report.exact(&tls.place, message);
                    }
                }
                continue;
            };
            let secret = ObjectName::new(ingress.namespace(), secret.as_str());
            let hosts = if tls.hosts.is_empty() {
                let message = "The certificate is shown for the hosts of the rules.";
                conversion.report.limited(&tls.place, Reason::DifferentScope, message);
                let hosts = ingress.entries.iter().map(|entry| entry.host.clone());
                hosts.filter(|host| !host.is_empty()).map(|host| (tls.place.clone(), host)).collect()
            } else {
                tls.hosts.clone()
            };
            // An alias has the certificate of its host, unless an entry lists the alias itself.
            let listed: BTreeSet<&String> =
                ingress.tls.iter().flat_map(|tls| &tls.hosts).map(|(_, host)| host).collect();
            let with_aliases: Vec<(Place, String)> = hosts
                .into_iter()
                .flat_map(|(place, host): (Place, String)| {
                    let aliases =
                        added.aliases(ingress, &host).iter().filter(|alias| !listed.contains(alias));
                    let aliases = aliases.map(|alias| (place.clone(), alias.clone())).collect::<Vec<_>>();
                    std::iter::once((place, host)).chain(aliases)
                })
                .collect();
            for (place, host) in with_aliases {
                if !is_name(host.strip_prefix("*.").unwrap_or(&host)) {
                    conversion.report.impossible(
                        &place,
                        Reason::UnsupportedHost,
                        "A listener cannot have the host.",
                    );
                } else if conversion.parent.has_listener(&host) && taken.contains(&host) {
                    conversion.report.exact(&place, "The host has a listener for HTTPS already.");
                } else if conversion.parent.has_listener(&host) {
                    let message = "Another object has a certificate for the host; the first one counts.";
                    conversion.report.limited(&place, Reason::Duplicate, message);
                } else {
                    conversion.report.exact(&place, "The host has a listener for HTTPS.");
                    let gateway = conversion.parent.name.clone();
                    conversion.output.grant((Kind::Gateway, &gateway.namespace), Kind::Secret, &secret);
                    let mut certificate = json!({ "name": &*secret.name });
                    if secret.namespace != gateway.namespace {
                        certificate["namespace"] = json!(&*secret.namespace);
                    }
                    taken.insert(host.clone());
                    conversion.parent.listen_https(HttpsListener { place, host, certificate });
                }
            }
        }
    }
}

/// The hosts for which ingress-nginx has a certificate, whatever Ingress has it.
pub(super) struct TlsHosts<'a>(BTreeSet<&'a str>);

impl<'a> TlsHosts<'a> {
    /// Those of an Ingress with `spec.tls` are the hosts of its rules and the hosts that it lists.
    pub(super) fn of(ingresses: &'a [Annotated]) -> Self {
        let mut hosts = BTreeSet::new();
        for ingress in ingresses.iter().filter(|ingress| !ingress.tls.is_empty()) {
            let listed = ingress.tls.iter().flat_map(|tls| &tls.hosts);
            hosts.extend(listed.map(|(_, host)| host.as_str()));
            if ingress.read.canary.is_none() {
                hosts.extend(ingress.entries.iter().map(|entry| entry.host.as_str()));
            }
        }
        hosts.remove("");
        Self(hosts)
    }

    /// Whether a host has a certificate: its own, or the one of the wildcard with one label in its place.
    pub(super) fn has(&self, host: &str) -> bool {
        let around = host.split_once('.').map(|(_, domain)| format!("*.{domain}"));
        self.0.contains(host) || around.is_some_and(|around| self.0.contains(around.as_str()))
    }
}
