//! `tls` of a listener: its mode and certificates, and the validation of clients by the Gateway.

use gateway_api::gateways as api;

use super::front::ClientValidation;
use super::listener_source::{ListenerSource, Origins};
use super::protocol::{Protocol, TlsMode};
use super::stream;
use crate::bounds;
use crate::model::{Capability, FieldPath, Reason, Refusal};
use crate::references::Certificate;
use crate::snapshot::FrontendValidation;
use crate::stream::ClientAuthMode;

/// The TLS mode of a listener; `None` without TLS.
pub(super) fn tls_mode(listener: &api::GatewayListeners, protocol: Option<Protocol>) -> Option<TlsMode> {
    match protocol? {
        Protocol::Http | Protocol::Tcp | Protocol::Udp => None,
        Protocol::Tls if listener.tls.as_ref().is_some_and(is_passthrough) => Some(TlsMode::Passthrough),
        Protocol::Https | Protocol::Tls => Some(TlsMode::Terminate),
    }
}

/// Refuses `tls`, apart from its certificates.
pub(super) fn refuse_tls(source: &ListenerSource<'_>, protocol: Protocol) -> Option<Refusal> {
    let at = source.at.child("tls");
    let refused =
        |field: FieldPath, message: &str| Some(Refusal::new(field, Reason::UnsupportedValue, message));
    match (protocol, &source.written.tls) {
        // A listener with `tls` must not be served in plaintext.
        (Protocol::Http, Some(_)) => refused(at, "A listener with protocol HTTP has no TLS; use HTTPS."),
        (Protocol::Tcp | Protocol::Udp, Some(_)) => {
            refused(at, "A listener with protocol TCP or UDP has no TLS; use TLS.")
        }
        (Protocol::Https, None) => refused(at, "A listener with protocol HTTPS needs a certificate."),
        (Protocol::Tls, None) => {
            refused(at, "A listener with protocol TLS needs mode Passthrough or a certificate.")
        }
        (Protocol::Https, Some(tls)) if is_passthrough(tls) => refused(
            at.child("mode"),
            "A listener with protocol HTTPS terminates TLS; mode Passthrough is for protocol TLS.",
        ),
        (Protocol::Http | Protocol::Tcp | Protocol::Udp, None)
        | (Protocol::Https | Protocol::Tls, Some(_)) => None,
    }
}

fn is_passthrough(tls: &api::GatewayListenersTls) -> bool {
    tls.mode == Some(api::GatewayListenersTlsMode::Passthrough)
}

/// The usable certificates of a listener that terminates TLS, and a refusal for each unusable one.
pub(super) fn resolve_certificates(
    source: &ListenerSource<'_>,
    protocol: Option<Protocol>,
    origins: &Origins<'_>,
) -> (Vec<Certificate>, Vec<Refusal>) {
    let Some(tls) = source.written.tls.as_ref().filter(|tls| !is_passthrough(tls)) else {
        return (Vec::new(), Vec::new());
    };
    let at = source.at.child("tls").child("certificateRefs");
    let refs = tls.certificate_refs.as_deref().unwrap_or_default();
    if refs.is_empty() {
        let refusal = Refusal::new(at, Reason::InvalidCertificateRef, "There is no certificate.");
        return (Vec::new(), vec![refusal]);
    }
    let mut certificates = Vec::new();
    let mut refused = Vec::new();
    let mut names = 0;
    for (index, certificate) in refs.iter().enumerate() {
        let certificate = origins.references.certificate(source.owner, certificate, &at.index(index));
        // Clients get the whole chain from the stream proxy.
        let is_stream = protocol == Some(Protocol::Tls) || origins.fronts(protocol);
        match if is_stream { certificate.and_then(stream::check_pair) } else { certificate } {
            Ok(certificate) if certificate.names().len() > bounds::NAMES - names => {
                refused.push(beyond_names(certificate, names));
            }
            Ok(certificate) => {
                names += certificate.names().len();
                certificates.push(certificate);
            }
            Err(refusal) => refused.push(refusal),
        }
    }
    (certificates, refused)
}

/// Refuses a certificate whose names are too many, together with those of the listener's other certificates.
fn beyond_names(certificate: Certificate, others: usize) -> Refusal {
    let message = format!(
        "The certificate of Secret {} is for {} names and those before it are for {others}; the certificates of a \
         listener may be for {} names.",
        certificate.secret,
        certificate.names().len(),
        bounds::NAMES
    );
    Refusal::new(certificate.at, Reason::InvalidCertificateRef, message)
}

/// The judgement of the validation that a Gateway asks for.
#[derive(Debug, Default)]
pub(super) struct JudgedValidation {
    /// The reason why the listener is not served.
    pub(super) refusal: Option<Refusal>,
    /// A refusal for each reference to an unusable authority.
    pub(super) unusable: Vec<Refusal>,
    /// The validation of a fronted listener.
    pub(super) honoured: Option<ClientValidation>,
}

/// Judges the validation of client certificates for an HTTPS listener. Only the sidecar asks clients for certificates.
pub(super) fn judge_validation(source: &ListenerSource<'_>, origins: &Origins<'_>) -> JudgedValidation {
    let Some(validation) = FrontendValidation::of(origins.gateway, source.written.port) else {
        return JudgedValidation::default();
    };
    let is_fronted = Capability::ClientCertificates.is_served(origins.support.executors);
    let (mut authorities, mut unusable) = (Vec::new(), Vec::new());
    for (at, authority) in validation.authorities() {
        let found = origins.references.frontend_authorities(origins.gateway_key, authority, &at);
        let found =
            found.and_then(|authority| if is_fronted { authority.within_bounds() } else { Ok(authority) });
        match found {
            Ok(authority) => authorities.push(authority),
            Err(refusal) => unusable.push(refusal),
        }
    }
    // The field belongs to the Gateway. For the author of a ListenerSet, the refusal is at the port.
    let is_own = source.owner == origins.gateway_key;
    let for_author = |refusal: Refusal| {
        if is_own {
            return refusal;
        }
        let message = format!("{} says at {}: {}", origins.gateway_key, refusal.at, refusal.message);
        Refusal { at: source.at.child("port"), message, ..refusal }
    };
    let refusal = if authorities.is_empty() {
        Some(Refusal::new(
            validation.at.clone(),
            Reason::NoValidCaCertificate,
            "There is no usable authority to verify client certificates with.",
        ))
    } else if is_fronted {
        None
    } else {
        Some(Capability::ClientCertificates.refuse(validation.at.clone()))
    };
    let mode = match validation.insecure_field() {
        Some(_) => ClientAuthMode::Request,
        None => ClientAuthMode::RequireAndVerify,
    };
    JudgedValidation {
        honoured: refusal.is_none().then_some(ClientValidation { mode, authorities }),
        refusal: refusal.map(for_author),
        unusable: unusable.into_iter().map(for_author).collect(),
    }
}
