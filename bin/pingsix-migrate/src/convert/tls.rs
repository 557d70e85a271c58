//! ApisixTls: listeners for HTTPS with certificates.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::{Hostname, ObjectName, is_dns_subdomain};

use super::{Context, Draft};
use crate::objects::NewSecret;
use crate::report::{Place, Reason, Report};
use crate::source::{Predecessors, Source, SourceKind};

/// The part of an ApisixTls that listeners need.
struct Tls {
    name: ObjectName,
    place: Place,
    hosts: Vec<(Place, String)>,
    secret: ObjectName,
    /// Whether the original asks clients for certificates, and the output would not.
    is_withheld: bool,
}

/// Hosts whose clients need certificates in the original.
#[derive(Default)]
pub(super) struct RefusedHosts {
    /// By the ApisixTls that has them.
    pub(super) of_objects: Vec<(ObjectName, Vec<String>)>,
    pub(super) all: BTreeSet<String>,
}

/// Converts all ApisixTls.
pub(super) fn convert(predecessors: &mut Predecessors, draft: &mut Draft<'_>) -> RefusedHosts {
    let context = draft.context;
    let mut refused = RefusedHosts::default();
    let mut all = Vec::new();
    for source in predecessors.take(SourceKind::ApisixTls) {
        all.extend(read(source, context, draft.report));
    }
    let mut certificates: BTreeMap<ObjectName, ObjectName> = BTreeMap::new();
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for tls in all {
        let Tls { name, place, hosts, secret, is_withheld } = tls;
        if is_withheld {
            let object = place.object.replacen(' ', "/", 1);
            let message = "No listener is written, because it would admit every client. Requests for the hosts get 503, over \
                           HTTP too.";
            let message = format!("{message} --allow-weaker {object} writes the listener and its routes.");
            draft.report.withhold(&place, message);
            let hosts: Vec<String> = hosts.into_iter().map(|(_, host)| host).collect();
            refused.all.extend(hosts.iter().cloned());
            refused.of_objects.push((name, hosts));
            continue;
        }
        let secret =
            certificates.entry(secret.clone()).or_insert_with(|| certificate(&secret, draft)).clone();
        for (host_place, host) in hosts {
            if !taken.insert(host.clone()) {
                let message = "Another object has a certificate for the host; the first one counts.";
                draft.report.limited(&host_place, Reason::Duplicate, message);
                continue;
            }
            draft.report.exact(&host_place, "The host has a listener for HTTPS on port 443.");
            let certificate = secret.clone();
            draft.output.gateway.listen_https(host_place, host, certificate);
        }
    }
    refused
}

fn read(source: Source, context: &Context<'_>, report: &mut Report) -> Option<Tls> {
    let Source { kind, name, place, mut spec } = source;
    let is_allowed = context.choices.may_be_weaker(kind.as_str(), &name);
    let before = report.losses();
    let _ = context.owners.of_class(&mut spec, report);
    let mut hosts = Vec::new();
    for (place, host) in spec.texts("hosts", report) {
        let host = host.to_ascii_lowercase();
        if Hostname::parse(&host).is_ok() {
            hosts.push((place, host));
        } else {
            report.blocking(&place, Reason::UnsupportedHost, "A listener cannot have the host.");
        }
    }
    let secret = spec.object("secret", report).and_then(|mut fields| {
        let at = fields.place.clone();
        let secret = fields.text("name", report).map(|(_, secret)| secret);
        let namespace = fields.text("namespace", report).map(|(_, namespace)| namespace);
        fields.finish(report);
        let namespace = namespace.filter(|namespace| !namespace.is_empty());
        let namespace = namespace.unwrap_or_else(|| name.namespace.to_string());
        let secret = secret.filter(|secret| is_dns_subdomain(secret) && is_dns_subdomain(&namespace))?;
        Some((at, ObjectName::new(namespace, secret)))
    });
    if let Some(client) = spec.take("client") {
        let message = "mTLS: PingSIX asks clients for no certificate, so every client would be admitted.";
        report.blocking(&client.place, Reason::ClientCertificate, message);
    }
    spec.finish(report);
    let Some((at, secret)) = secret else {
        let message = "The object names no Secret, so it has no certificate. Set spec.secret.";
        report.impossible(&place.at("spec.secret"), Reason::TlsWithoutSecret, message);
        return None;
    };
    report.exact(&at, "The Secret is a certificate of the listeners.");
    let is_withheld = report.losses() > before && !is_allowed;
    Some(Tls { name, place, hosts, secret, is_withheld })
}

/// The Secret with the certificate. A Secret in the form of APISIX gets a copy in that of Kubernetes.
fn certificate(secret: &ObjectName, draft: &mut Draft<'_>) -> ObjectName {
    let context = draft.context;
    let Some(entries) = context.sources.secret(secret) else { return secret.clone() };
    let (Some(cert), Some(key), false) =
        (entries.get("cert"), entries.get("key"), entries.contains_key("tls.crt"))
    else {
        return secret.clone();
    };
    let name = (&*secret.namespace, format!("{}-tls", secret.name));
    let copy = NewSecret::new("kubernetes.io/tls", name, [("tls.crt", cert), ("tls.key", key)]);
    let copy = draft.output.objects.add_secret(copy);
    let message = format!("A copy in the form of Kubernetes is Secret {copy}.");
    draft.report.exact(&Place::object(format!("Secret {secret}")), message);
    copy
}
