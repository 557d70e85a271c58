//! Further checks of listeners whose routes become stream documents.

use super::protocol::Protocol;
use super::{Listener, ListenerState};
use crate::model::{FieldPath, Reason, Refusal};
use crate::pingsix::validate::{CertificateError, check_for_sidecar};
use crate::references::Certificate;

impl Listener {
    /// The certificates with which a served listener terminates TLS; none if the backends terminate it.
    pub(crate) fn terminates_with(&self) -> &[Certificate] {
        match &self.state {
            ListenerState::Served { certificates } => certificates,
            ListenerState::Unresolved
            | ListenerState::Refused { .. }
            | ListenerState::Conflicted { .. }
            | ListenerState::Excluded { .. } => &[],
        }
    }
}

/// Refuses what the sidecar cannot terminate TLS with: a chain with a malformed certificate, which clients get as a whole,
/// and a key of a kind or size that PingSIX alone serves.
pub(super) fn check_pair(certificate: Certificate) -> Result<Certificate, Refusal> {
    let message = match check_for_sidecar(certificate.chain(), certificate.private_key()) {
        Ok(()) => return Ok(certificate),
        Err(error @ CertificateError::Sidecar) => {
            format!("Secret {} cannot be used here: {error}.", certificate.secret)
        }
        // The leaf and the key are good for PingSIX, so the error is in the certificates behind the leaf.
        Err(_) => {
            format!("Secret {} cannot be used: its chain holds a malformed certificate.", certificate.secret)
        }
    };
    Err(Refusal::new(certificate.at, Reason::InvalidCertificateRef, message))
}

/// Refuses a hostname for TCP and UDP. Such a listener would also serve other hosts.
pub(super) fn refuse_hostname(protocol: Protocol, at: &FieldPath) -> Option<Refusal> {
    let written = match protocol {
        Protocol::Http | Protocol::Https | Protocol::Tls => return None,
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
    };
    let message = format!("A listener with protocol {written} cannot tell hosts apart.");
    Some(Refusal::new(at.child("hostname"), Reason::UnsupportedValue, message))
}

#[cfg(test)]
mod tests;
