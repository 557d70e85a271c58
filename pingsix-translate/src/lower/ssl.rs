//! Certificates to Ssl documents.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::id::Ids;
use crate::attach::{Listener, ListenerState};
use crate::object::ObjectKey;
use crate::pingsix::{Config, DocumentKey, ResourceKind, Ssl};
use crate::provenance::Provenance;
use crate::resolve::Certificate;

/// SNI for every name, for listeners without a hostname (`src/proxy/ssl.rs`).
pub(crate) const ANY_NAME: &str = "*";

/// A certificate and the names a client may ask for to get it.
#[derive(Clone, Debug)]
pub(crate) struct ServedCertificate {
    pub(crate) sni: String,
    pub(crate) certificate: Certificate,
    pub(crate) provenance: Provenance,
}

/// The certificates of a data plane's listeners. PingSIX refuses a name that has two, so the first listener
/// with a hostname provides it; of a listener's certificates, the first is served.
pub(crate) fn certificates<'a>(
    gateway: &Arc<ObjectKey>,
    listeners: impl Iterator<Item = &'a Listener>,
) -> Vec<ServedCertificate> {
    let mut by_sni: BTreeMap<String, ServedCertificate> = BTreeMap::new();
    for listener in listeners {
        let ListenerState::Served { certificates, .. } = &listener.state else { continue };
        let Some(certificate) = certificates.first() else { continue };
        let sni = listener.hostname.as_ref().map_or(ANY_NAME, |hostname| hostname.as_str());
        by_sni.entry(sni.to_owned()).or_insert_with(|| ServedCertificate {
            sni: sni.to_owned(),
            certificate: certificate.clone(),
            provenance: Provenance::Certificate { gateway: gateway.clone(), listener: listener.name.clone() },
        });
    }
    by_sni.into_values().collect()
}

/// Writes one Ssl document per name.
pub(crate) fn write_certificates(
    certificates: &[ServedCertificate],
    ids: &mut Ids,
    config: &mut Config,
    provenance: &mut BTreeMap<DocumentKey, Provenance>,
) {
    for ServedCertificate { sni, certificate, provenance: origin } in certificates {
        let id = ids.assign('s', &[sni]);
        let ssl = Ssl {
            cert: certificate.chain.to_string(),
            key: certificate.key.to_string(),
            snis: vec![sni.clone()],
            ..Ssl::default()
        };
        config.insert(id.clone(), ssl);
        provenance.insert(DocumentKey { kind: ResourceKind::Ssl, id }, origin.clone());
    }
}
