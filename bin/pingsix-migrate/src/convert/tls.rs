//! ApisixTls: listeners for HTTPS with certificates.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::ObjectName;

use super::Conversion;
use crate::report::{Place, Reason};
use crate::source::{Source, SourceKind, Sources, is_name};

/// The part of an ApisixTls that listeners need.
struct Tls {
    name: ObjectName,
    place: Place,
    hosts: Vec<(Place, String)>,
    secret: ObjectName,
    /// Whether the original asks clients for certificates, and the output would not.
    is_withheld: bool,
}

/// Converts all ApisixTls.
pub(super) fn convert(sources: &mut Sources, conversion: &mut Conversion) {
    let mut all = Vec::new();
    for source in sources.take(SourceKind::ApisixTls) {
        all.extend(read(source, conversion));
    }
    let mut certificates: BTreeMap<ObjectName, ObjectName> = BTreeMap::new();
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for tls in all {
        let Tls { name, place, hosts, secret, is_withheld } = tls;
        if is_withheld {
            let object = place.object.replacen(' ', "/", 1);
            let message = "No listener is written, because it would admit every client. Requests for the hosts get 503, over \
                           HTTP too.";
            conversion.withhold(
                &place,
                format!("{message} --allow-weaker {object} writes the listener and its routes."),
            );
            let hosts: Vec<String> = hosts.into_iter().map(|(_, host)| host).collect();
            conversion.all_refused_hosts.extend(hosts.iter().cloned());
            conversion.refused_hosts.push((name, hosts));
            continue;
        }
        let secret = certificates
            .entry(secret.clone())
            .or_insert_with(|| certificate(&secret, sources, conversion))
            .clone();
        for (host_place, host) in hosts {
            if !taken.insert(host.clone()) {
                conversion.report.limited(
                    &host_place,
                    Reason::Duplicate,
                    "Another object has a certificate for the host; the first one counts.",
                );
                continue;
            }
            conversion.report.exact(&host_place, "The host has a listener for HTTPS on port 443.");
            let certificate = secret.clone();
            conversion.parent.listen_https(host_place, host, certificate);
        }
    }
}

fn read(source: Source, conversion: &mut Conversion) -> Option<Tls> {
    let Source { kind, name, place, mut spec } = source;
    let is_allowed = conversion.may_be_weaker(kind, &name);
    let before = conversion.report.losses();
    let _ = conversion.class(&mut spec);
    let report = &mut conversion.report;
    let mut hosts = Vec::new();
    for (place, host) in spec.texts("hosts", report) {
        let host = host.to_ascii_lowercase();
        if is_name(host.strip_prefix("*.").unwrap_or(&host)) {
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
        let secret = secret.filter(|secret| is_name(secret) && is_name(&namespace))?;
        Some((at, ObjectName::new(namespace, secret)))
    });
    if let Some(client) = spec.take("client") {
        let message = "mTLS: PingSIX asks clients for no certificate, so every client would be admitted.";
        conversion.report.blocking(&client.place, Reason::ClientCertificate, message);
    }
    spec.finish(&mut conversion.report);
    let Some((at, secret)) = secret else {
        conversion.report.impossible(
            &place.at("spec.secret"),
            Reason::TlsWithoutSecret,
            "The object names no Secret, so it has no certificate. Set spec.secret.",
        );
        return None;
    };
    conversion.report.exact(&at, "The Secret is a certificate of the listeners.");
    let is_withheld = conversion.report.losses() > before && !is_allowed;
    Some(Tls { name, place, hosts, secret, is_withheld })
}

/// The Secret with the certificate. A Secret in the form of APISIX gets a copy in that of Kubernetes.
fn certificate(secret: &ObjectName, sources: &Sources, conversion: &mut Conversion) -> ObjectName {
    let Some(entries) = sources.secret(secret) else { return secret.clone() };
    let (Some(cert), Some(key), false) =
        (entries.get("cert"), entries.get("key"), entries.contains_key("tls.crt"))
    else {
        return secret.clone();
    };
    let copy = BTreeMap::from([("tls.crt".to_owned(), cert.clone()), ("tls.key".to_owned(), key.clone())]);
    let wanted = format!("{}-tls", secret.name);
    let name = conversion.output.add_secret(&secret.namespace, &wanted, "kubernetes.io/tls", &copy);
    conversion.report.exact(
        &Place::object(format!("Secret {secret}")),
        format!("A copy in the form of Kubernetes is Secret {}/{name}.", secret.namespace),
    );
    ObjectName::new(&*secret.namespace, name)
}
