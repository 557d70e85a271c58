//! Connections that last no longer than the certificates of their clients.

use std::sync::{Arc, Weak};
use std::time::SystemTime;

use parking_lot::Mutex;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;

use super::Peer;
use crate::desired::Scope;
use crate::embedded::access::Certificate;

/// The open connections with client certificates. Ended connections are removed in passing.
#[derive(Debug, Default)]
pub(in crate::embedded) struct CertificateConnections {
    open: Mutex<Vec<Weak<Peer>>>,
}

/// Reason of a closed connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::embedded) enum Lapse {
    /// The certificate has expired.
    Expired,
    /// The CA is no longer trusted.
    Disowned,
}

impl CertificateConnections {
    pub(in crate::embedded) fn enter(&self, peer: &Arc<Peer>) {
        let mut open = self.open.lock();
        if open.len() == open.capacity() {
            open.retain(|peer| peer.strong_count() > 0);
        }
        open.push(Arc::downgrade(peer));
    }

    /// The connections that are still open. The lock is released while their certificates are verified, because
    /// handshakes complete meanwhile.
    fn open(&self) -> Vec<Arc<Peer>> {
        let open = self.open.lock();
        open.iter().filter_map(Weak::upgrade).filter(|peer| !peer.is_closed()).collect()
    }

    /// Closes the connections whose certificates name a prefix for another owner, and returns their number. Later
    /// publications do not reach them.
    pub(in crate::embedded) fn close_disowned(&self, scope: &Scope, owner: Option<&Arc<str>>) -> usize {
        let is_of_another = |peer: &Peer| {
            peer.certificate().is_some_and(|certificate| certificate.is_of_another(scope, owner))
        };
        self.open().iter().filter(|peer| is_of_another(peer)).map(|peer| peer.close()).count()
    }

    /// Closes and logs the connections whose certificates are no longer valid. `authorities` are the current CAs with
    /// their edition; without any, no certificate is valid.
    pub(in crate::embedded) fn close_invalid(
        &self,
        authorities: Option<(&dyn ClientCertVerifier, u64)>,
        now: SystemTime,
        mut log_closed: impl FnMut(&Peer, Lapse),
    ) {
        let lapse = |certificate: &Certificate| {
            if certificate.has_ended(now) {
                return Some(Lapse::Expired);
            }
            let is_valid =
                authorities.is_some_and(|(all, edition)| certificate.is_valid_under(all, edition, now));
            (!is_valid).then_some(Lapse::Disowned)
        };
        for peer in self.open() {
            if let Some(lapse) = peer.certificate().and_then(lapse) {
                peer.close();
                log_closed(&peer, lapse);
            }
        }
    }
}
