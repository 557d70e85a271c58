//! `ssl-passthrough`: TLSRoutes.
//!
//! ingress-nginx compares the server name of a connection with the hosts of such Ingresses, byte by byte, and passes the
//! connection on to the backend of the path `/`. Everything else of an Ingress is for requests in plaintext.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::{Kind, ObjectKey};
use serde_json::json;

use super::annotated::{Annotated, PathEntry};
use super::dialect::PASSTHROUGH;
use super::services;
use super::tls_hosts::{TlsHosts, wants_https};
use crate::convert::Draft;
use crate::convert::parent::Section;
use crate::report::{Place, Reason};

/// The hosts whose TLS passes through. The annotation of one Ingress counts for all Ingresses of a host.
#[derive(Default)]
pub(super) struct Passthrough(BTreeSet<String>);

impl Passthrough {
    pub(super) fn of(ingresses: &[Annotated]) -> Self {
        let ingresses = ingresses.iter().filter(|ingress| ingress.passes_tls());
        Self(ingresses.flat_map(Annotated::exact_hosts).map(str::to_owned).collect())
    }

    pub(super) fn has(&self, host: &str) -> bool {
        self.0.contains(host)
    }

    /// Whether no request reaches a path of the Ingress: TLS passes through, and plaintext is redirected.
    pub(super) fn takes_all(&self, ingress: &Annotated, tls_hosts: &TlsHosts<'_>) -> bool {
        !ingress.entries.is_empty()
            && ingress.default_backend.is_none()
            && ingress.hosts().all(|host| self.has(host) && wants_https(ingress, host, tls_hosts))
    }
}

/// Writes the TLSRoutes.
pub(super) fn convert(ingresses: &[Annotated], passthrough: &Passthrough, draft: &mut Draft<'_>) {
    for ingress in ingresses.iter().filter(|ingress| ingress.passes_tls()) {
        let hosts: BTreeSet<&str> = ingress.exact_hosts().collect();
        if hosts.len() < ingress.hosts().collect::<BTreeSet<_>>().len() {
            let message = "ingress-nginx passes TLS through for whole host names alone, and ends TLS for wildcards and for all \
                           hosts. Their paths are converted as without the annotation.";
            draft.report.limited(&ingress.at_own(PASSTHROUGH), Reason::DifferentScope, message);
        }
    }
    let mut of_hosts: BTreeMap<&str, OfHost<'_>> = BTreeMap::new();
    for ingress in ingresses {
        let hosts: BTreeSet<&str> = ingress.exact_hosts().filter(|host| passthrough.has(host)).collect();
        for host in hosts {
            let of_host = of_hosts.entry(host).or_default();
            of_host.places.extend(ingress.passes_tls().then(|| ingress.at_own(PASSTHROUGH)));
            of_host.root = of_host.root.or_else(|| Some((ingress, root(ingress, host)?)));
        }
    }
    for (host, of_host) in of_hosts {
        one(host, &of_host, draft);
    }
}

/// A host whose TLS passes through.
#[derive(Default)]
struct OfHost<'a> {
    /// The places of the annotation.
    places: Vec<Place>,
    /// The oldest Ingress with the path `/`, and the path.
    root: Option<(&'a Annotated, &'a PathEntry)>,
}

/// Writes the TLSRoute of a host.
fn one(host: &str, OfHost { places, root }: &OfHost<'_>, draft: &mut Draft<'_>) {
    let context = draft.context;
    let Some(at) = places.first() else { return };
    let Some((ingress, path)) = root else {
        let message = format!(
            "No Ingress has the path / for {host}, so ingress-nginx closes TLS connections. So does the Gateway."
        );
        return draft.report.exact(at, message);
    };
    if ingress.is_unclear && !ingress.may_be_weaker {
        draft.report.withhold(&ingress.place, format!("TLS connections for {host} are not passed through."));
        return;
    }
    let Some(target) = &path.target else { return };
    let number = match services::number(ingress, target, context.sources) {
        Ok(number) => number,
        Err(why) => {
            let message = format!("{why} TLS connections for {host} are closed.");
            return draft.report.impossible(&target.place, Reason::MissingReferent, message);
        }
    };
    let listener = draft.output.gateway.pass_through(at, host);
    let beside = draft.output.gateway.beside().map(|gateway| {
        format!(
            " Gateway {gateway} has an address of its own, because HTTPS and TLS that passes through need different programs \
             on port 443."
        )
    });
    let message = format!(
        "A TLSRoute passes connections for {host} on to Service {} port {number}, as ingress-nginx does with \
         --enable-ssl-passthrough. It needs the sidecar: managed data planes have it, and others need --stream.{}",
        target.service,
        beside.unwrap_or_default()
    );
    for at in places {
        draft.report.limited(at, Reason::DifferentConnection, message.as_str());
    }
    let mut parent = draft.output.gateway.reference(ingress.namespace(), Section::Plaintext);
    if let Some(parent) = parent.as_object_mut() {
        parent.remove("port");
    }
    parent["sectionName"] = json!(listener);
    let spec = json!({
        "parentRefs": [parent], "hostnames": [host],
        "rules": [{ "backendRefs": [{ "name": target.service, "port": number }] }],
    });
    let hosts: BTreeSet<&str> = ingress.hosts().collect();
    let name = if hosts.len() > 1 { ingress.route_name(host) } else { ingress.key.name.name.to_string() };
    let name = draft.output.objects.add(Kind::TlsRoute, ingress.namespace(), &name, spec);
    let key = ObjectKey::new(Kind::TlsRoute, ingress.namespace(), name.as_str());
    draft.output.objects.origins.note_rules(key, vec![path.place.clone()]);
    draft.output.gateway.note_route(Kind::TlsRoute, ingress.namespace(), &name);
}

/// The path `/` of an Ingress for a host.
fn root<'a>(ingress: &'a Annotated, host: &str) -> Option<&'a PathEntry> {
    let is_served = ingress.is_of_nginx() && ingress.read.canary.is_none();
    let entries = ingress.entries.iter().filter(|entry| is_served && entry.host == host);
    entries.flat_map(|entry| &entry.paths).find(|path| path.path == "/" && path.target.is_some())
}
