//! What listeners whose routes become stream documents must be besides valid.

use super::protocol::Protocol;
use super::{Listener, ListenerState};
use crate::model::{FieldPath, Reason, Refusal};
use crate::pingsix::validate::check_chain_and_key;
use crate::references::Certificate;

impl Listener {
    /// The certificates with which a served listener terminates TLS; none when it leaves that to the backends.
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

/// Clients get every certificate of a chain, so all of them must be some.
pub(super) fn whole(certificate: Certificate) -> Result<Certificate, Refusal> {
    if check_chain_and_key(certificate.chain(), certificate.private_key()).is_ok() {
        return Ok(certificate);
    }
    let message =
        format!("Secret {} cannot be used: its chain holds a malformed certificate.", certificate.secret);
    Err(Refusal::new(certificate.at, Reason::InvalidCertificateRef, message))
}

/// A port of bytes has nothing to tell hosts apart by; whoever names some would be served more than was asked for.
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
