//! What listeners whose routes become stream documents must be besides valid.

use super::protocol::Protocol;
use super::{Listener, ListenerState};
use crate::pingsix::validate::check_chain_and_key;
use crate::resolve::Certificate;
use crate::route::Refusal;
use crate::verdict::{Problem, Reason};

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

/// Takes from judged listeners what a proxy for TCP, UDP and TLS cannot do.
pub(crate) fn refine_stream_listeners(listeners: &mut [Listener], problems: &mut Vec<Problem>) {
    for listener in listeners.iter_mut().filter(|listener| listener.is_served()) {
        let told = listener.unresolved.len();
        match listener.protocol {
            Some(Protocol::Tls) => refine_certificates(listener),
            Some(Protocol::Tcp | Protocol::Udp) => refuse_hostname(listener),
            Some(Protocol::Http | Protocol::Https) | None => {}
        }
        let refusals = listener.refusal().into_iter().chain(listener.unresolved.iter().skip(told));
        problems.extend(refusals.map(|refusal| refusal.of(&listener.owner)));
        if !listener.is_served() {
            listener.limits.clear();
        }
    }
}

/// Clients get every certificate of a chain, so all of them must be some.
fn refine_certificates(listener: &mut Listener) {
    let ListenerState::Served { certificates } = &mut listener.state else { return };
    if certificates.is_empty() {
        return;
    }
    let unresolved = &mut listener.unresolved;
    certificates.retain(|certificate| {
        let whole = check_chain_and_key(&certificate.chain, &certificate.key).is_ok();
        if !whole {
            let secret = &certificate.secret;
            unresolved.push(Refusal::new(
                certificate.at.clone(),
                Reason::InvalidCertificateRef,
                format!("Secret {secret} cannot be used: its chain holds a malformed certificate."),
            ));
        }
        whole
    });
    if certificates.is_empty() {
        listener.state = ListenerState::Unresolved;
    }
}

/// A port of bytes has nothing to tell hosts apart by; whoever names some would be served more than was asked for.
fn refuse_hostname(listener: &mut Listener) {
    if listener.hostname.is_some() {
        let message =
            format!("A listener with protocol {} cannot tell hosts apart.", listener.written_protocol);
        let refusal = Refusal::new(listener.at().child("hostname"), Reason::UnsupportedValue, message);
        listener.state = ListenerState::Refused { refusal };
    }
}

#[cfg(test)]
mod tests;
