//! What listeners with protocol TLS, TCP and UDP ask for beyond what every listener does.

use std::sync::Arc;

use gateway_api::gateways as api;

use super::listener::{Listener, ListenerState, Protocol};
use crate::field::FieldPath;
use crate::object::ObjectKey;
use crate::pingsix::validate::check_chain_and_key;
use crate::resolve::{Certificate, References};
use crate::route::Refusal;
use crate::snapshot::Gateway;
use crate::verdict::{Problem, Reason};

impl Listener {
    /// The certificates with which a served listener terminates TLS; none when it leaves that to the backends.
    pub(crate) fn terminates_with(&self) -> &[Certificate] {
        match &self.state {
            ListenerState::Served { certificates } => certificates,
            ListenerState::Unresolved | ListenerState::Refused { .. } | ListenerState::Conflicted { .. } => {
                &[]
            }
        }
    }
}

/// Adds to judged listeners what concerns those whose routes become stream documents.
pub(crate) fn judge_stream_listeners(
    gateway: &Gateway,
    key: &Arc<ObjectKey>,
    references: &References<'_>,
    listeners: &mut [Listener],
    problems: &mut Vec<Problem>,
) {
    let at = FieldPath::new("spec").child("listeners");
    for (index, (listener, written)) in listeners.iter_mut().zip(&gateway.spec.listeners).enumerate() {
        let at = at.index(index);
        let (state, unresolved) = match listener.protocol {
            Some(Protocol::Tls) => judge_tls(key, written, &at, references),
            Some(Protocol::Tcp | Protocol::Udp) => (judge_plain(written, &at), Vec::new()),
            Some(Protocol::Http | Protocol::Https) | None => continue,
        };
        problems.extend(unresolved.iter().map(|refusal| refusal.of(key)));
        listener.unresolved.extend(unresolved);
        // What was found out before weighs more.
        if listener.is_served() {
            if let ListenerState::Refused { refusal } = &state {
                problems.push(refusal.of(key));
            }
            listener.state = state;
            if !listener.is_served() {
                listener.limits.clear();
            }
        }
    }
}

fn judge_tls(
    key: &Arc<ObjectKey>,
    listener: &api::GatewayListeners,
    at: &FieldPath,
    references: &References<'_>,
) -> (ListenerState, Vec<Refusal>) {
    let at = at.child("tls");
    let Some(tls) = &listener.tls else {
        let message = "A listener with protocol TLS must say who terminates it.";
        let refusal = Refusal::new(at.child("mode"), Reason::UnsupportedValue, message);
        return (ListenerState::Refused { refusal }, Vec::new());
    };
    // The API server writes Terminate where nothing is written.
    if tls.mode == Some(api::GatewayListenersTlsMode::Passthrough) {
        return (ListenerState::Served { certificates: Vec::new() }, Vec::new());
    }
    let at = at.child("certificateRefs");
    let references_of = tls.certificate_refs.as_deref().unwrap_or_default();
    if references_of.is_empty() {
        let refusal = Refusal::new(at, Reason::InvalidCertificateRef, "There is no certificate.");
        return (ListenerState::Unresolved, vec![refusal]);
    }
    let mut certificates = Vec::new();
    let mut unresolved = Vec::new();
    for (index, reference) in references_of.iter().enumerate() {
        let at = at.index(index);
        match references.certificate(key, reference, &at).and_then(|found| with_whole_chain(found, &at)) {
            Ok(certificate) => certificates.push(certificate),
            Err(refusal) => unresolved.push(refusal),
        }
    }
    if certificates.is_empty() {
        (ListenerState::Unresolved, unresolved)
    } else {
        (ListenerState::Served { certificates }, unresolved)
    }
}

/// Clients get every certificate of the chain, so all of them must be some.
fn with_whole_chain(certificate: Certificate, at: &FieldPath) -> Result<Certificate, Refusal> {
    match check_chain_and_key(&certificate.chain, &certificate.key) {
        Ok(()) => Ok(certificate),
        Err(_) => Err(Refusal::new(
            at.clone(),
            Reason::InvalidCertificateRef,
            format!("Secret {} cannot be used: its chain holds a malformed certificate.", certificate.secret),
        )),
    }
}

/// A port of bytes has nothing to tell hosts apart by, and no TLS.
fn judge_plain(listener: &api::GatewayListeners, at: &FieldPath) -> ListenerState {
    let protocol = &listener.protocol;
    let refused = |field: &str, message: String| ListenerState::Refused {
        refusal: Refusal::new(at.child(field), Reason::UnsupportedValue, message),
    };
    if listener.tls.is_some() {
        // What its author meant to be encrypted must not be served in plaintext.
        refused("tls", format!("A listener with protocol {protocol} has no TLS; use protocol TLS."))
    } else if listener.hostname.as_deref().is_some_and(|hostname| !hostname.is_empty()) {
        refused("hostname", format!("A listener with protocol {protocol} cannot tell hosts apart."))
    } else {
        ListenerState::Served { certificates: Vec::new() }
    }
}

#[cfg(test)]
mod tests;
