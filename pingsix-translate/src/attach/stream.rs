//! Further checks of listeners whose routes become stream documents.

use super::protocol::Protocol;
use super::{Listener, ListenerState};
use crate::model::{FieldPath, Reason, Refusal};
use crate::pingsix::validate::check_chain_and_key;
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

/// Refuses a chain with a malformed certificate: clients of stream listeners get the whole chain.
pub(super) fn check_chain(certificate: Certificate) -> Result<Certificate, Refusal> {
    if check_chain_and_key(certificate.chain(), certificate.private_key()).is_ok() {
        return Ok(certificate);
    }
    let message =
        format!("Secret {} cannot be used: its chain holds a malformed certificate.", certificate.secret);
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
