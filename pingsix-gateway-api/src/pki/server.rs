//! The server certificate of a replica.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use pingsix_sink::EmbeddedEtcd;
use pingsix_sink::embedded::ServerTls;
use rcgen::SanType;
use tokio::time::sleep;

use super::authority::Purpose;
use super::certificate::Certificate;
use super::options::AuthorityOptions;
use super::reconciler::FeedAuthority;
use super::rotation::{Authorities, Edition, Lifetimes};
use super::{IssueError, LoggedError};
use crate::health::Gate;

/// The number of checks per lifetime. The longest pause bounds the interval.
const CHECKS_PER_LIFETIME: u32 = 20;
const MAX_CHECK_INTERVAL: Duration = Duration::from_mins(1);

/// The delay after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// A server's certificate and key, and the authorities that its clients need. The key is never shown.
#[derive(Clone)]
pub struct ServerIdentity {
    pub(super) certificate: Certificate,
    key: String,
    client_ca: String,
    edition: Edition,
}

impl fmt::Debug for ServerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerIdentity").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl ServerIdentity {
    /// As the embedded server takes it.
    pub fn tls(&self) -> ServerTls {
        ServerTls::from_pem(self.certificate.pem(), self.key.as_str()).client_ca_pem(self.client_ca.as_str())
    }

    pub(super) fn is_good(&self, authorities: &Authorities, now: Timestamp) -> bool {
        self.edition == authorities.edition() && !self.certificate.needs_renewal(now)
    }
}

impl Authorities {
    /// A certificate for a server with these DNS names and IP addresses, which trusts clients of all authorities.
    ///
    /// # Errors
    /// [`IssueError`] when a certificate cannot be made, for instance for a name that is none.
    pub fn server_identity(
        &self,
        names: &[String],
        now: Timestamp,
        lifetimes: &Lifetimes,
    ) -> Result<ServerIdentity, IssueError> {
        let alternatives = names.iter().map(|name| match name.parse() {
            Ok(address) => Ok(SanType::IpAddress(address)),
            Err(_) => name.as_str().try_into().map(SanType::DnsName),
        });
        let alternatives = alternatives.collect::<Result<Vec<_>, _>>()?;
        let issued = self.signing().issue(
            &Purpose::Server,
            "PingSIX feed",
            alternatives,
            now,
            lifetimes.certificate(),
        )?;
        let certificate =
            Certificate::read(&issued.certificate).ok_or(rcgen::Error::CouldNotParseCertificate)?;
        let (client_ca, edition) = (self.bundle(), self.edition());
        Ok(ServerIdentity { certificate, key: issued.key, client_ca, edition })
    }
}

/// Keeps a server in certificates of the authority until it is dropped, whether or not the API server is there. `ready` is
/// opened when it has the first one.
pub(crate) async fn serve(authority: FeedAuthority, etcd: EmbeddedEtcd, ready: Option<Gate>) {
    let options = authority.options().clone();
    let look = (options.lifetimes.certificate() / CHECKS_PER_LIFETIME).min(MAX_CHECK_INTERVAL);
    let mut changes = authority.changes();
    let mut identity: Option<ServerIdentity> = None;
    let mut reported: Option<String> = None;
    loop {
        let known = changes.borrow_and_update().clone();
        let mut pause = look;
        if let Some(authorities) = known {
            let now = options.clock.now();
            let is_good = identity.as_ref().is_some_and(|identity| identity.is_good(&authorities, now));
            if !is_good {
                match made(&authorities, &etcd, &options, now) {
                    Ok(made) => {
                        tracing::info!(
                            until = %made.certificate.not_after(),
                            "the feed has a new server certificate"
                        );
                        if let Some(gate) = &ready {
                            gate.open();
                        }
                        identity = Some(made);
                        reported = None;
                    }
                    // Logged once, and not at each retry.
                    Err(error) => {
                        let error = error.to_string();
                        if reported.as_ref() != Some(&error) {
                            tracing::error!(
                                error,
                                "cannot issue the feed's server certificate; the previous certificate stays"
                            );
                        }
                        reported = Some(error);
                        pause = RETRY_DELAY;
                    }
                }
            }
        }
        tokio::select! {
            news = changes.changed() => if news.is_err() {
                // The keeper has ended; the known authority issues further certificates.
                sleep(pause).await;
            },
            () = sleep(pause) => {}
        }
    }
}

/// Makes a certificate, and hands it to the server.
fn made(
    authorities: &Authorities,
    etcd: &EmbeddedEtcd,
    options: &AuthorityOptions,
    now: Timestamp,
) -> Result<ServerIdentity, LoggedError> {
    let made = authorities.server_identity(&options.server_names, now, &options.lifetimes)?;
    etcd.replace_tls(made.tls())?;
    Ok(made)
}
