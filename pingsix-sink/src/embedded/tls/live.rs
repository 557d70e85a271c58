//! The current TLS configuration and its replacement.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tokio::time::MissedTickBehavior;
use tokio_rustls::rustls::ServerConfig;

use super::ServerTls;
use super::fault::{TlsError, TlsPart};
use super::material::{Fingerprint, Material, Sources};
use crate::embedded::access::{Certificate, Certified, Lapse};
use crate::embedded::replica::Replica;
use crate::embedded::revisions::Clock;

/// The current TLS configuration of handshakes.
pub(in crate::embedded) struct LiveTls {
    options: ServerTls,
    clock: Arc<dyn Clock>,
    current: RwLock<Option<Current>>,
    seen: Mutex<SourceState>,
    certified: Certified,
}

/// The current configuration with an edition number of its own.
struct Current {
    material: Material,
    edition: u64,
}

/// The sources with the state of the last check.
struct SourceState {
    /// `None` until the server has a certificate.
    sources: Option<Sources>,
    fingerprint: Option<Fingerprint>,
    time: CertificateTime,
}

/// Validity of the current certificates at the current time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CertificateTime {
    Valid,
    NotYetValid,
    Expired,
}

impl fmt::Debug for LiveTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveTls").field("options", &self.options).finish_non_exhaustive()
    }
}

impl LiveTls {
    /// Reads all sources once; each must be usable.
    pub(in crate::embedded) fn load(options: ServerTls, clock: Arc<dyn Clock>) -> Result<Self, TlsError> {
        let seen = SourceState { sources: None, fingerprint: None, time: CertificateTime::Valid };
        let live = Self {
            clock,
            current: RwLock::new(None),
            seen: Mutex::new(seen),
            certified: Certified::default(),
            options,
        };
        if let Some(sources) = live.options.sources.clone() {
            let seen = &mut *live.seen.lock();
            live.take(sources, seen)?;
            live.judge_time(seen);
        }
        Ok(live)
    }

    /// The configuration of the next handshake, and its edition; `None` without a certificate.
    pub(super) fn config(&self) -> Option<(Arc<ServerConfig>, u64)> {
        let current = self.current.read();
        current.as_ref().map(|current| (Arc::clone(&current.material.config), current.edition))
    }

    pub(super) fn options(&self) -> &ServerTls {
        &self.options
    }

    /// The connections that end with the certificates of their clients.
    pub(in crate::embedded) fn certified(&self) -> &Certified {
        &self.certified
    }

    /// Checks the files and the validity periodically. Never ends.
    pub(in crate::embedded) async fn keep_current(self: Arc<Self>, replica: Arc<Replica>) -> Infallible {
        let mut looks = tokio::time::interval(self.options.reread_interval);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            let (live, replica) = (Arc::clone(&self), Arc::clone(&replica));
            let looked = tokio::task::spawn_blocking(move || live.refresh(&replica)).await;
            if let Err(error) = looked {
                tracing::error!(%error, "the TLS files could not be looked at");
            }
        }
    }

    /// Replaces the configuration; on an error, the current one stays.
    pub(in crate::embedded) fn replace(&self, tls: ServerTls, replica: &Replica) -> Result<(), TlsError> {
        let Some(sources) = tls.sources else { return Ok(()) };
        let mut seen = self.seen.lock();
        match self.take(sources, &mut seen) {
            Ok(true) => {
                replica.counters.tls_rotations.add(1);
                tracing::info!("new connections get the new TLS material");
            }
            Ok(false) => {}
            Err(error) => {
                replica.counters.tls_rotations_refused.add(1);
                return Err(error);
            }
        }
        self.judge_time(&mut seen);
        self.review(replica);
        Ok(())
    }

    /// Loads these sources and returns whether they differ from the current ones.
    fn take(&self, sources: Sources, seen: &mut SourceState) -> Result<bool, TlsError> {
        let (fingerprint, contents) = sources.read(None);
        if self.current.read().is_some() && seen.fingerprint == Some(fingerprint) {
            seen.sources = Some(sources);
            return Ok(false);
        }
        let material = sources.material(contents)?;
        *seen = SourceState {
            sources: Some(sources),
            fingerprint: Some(fingerprint),
            time: CertificateTime::Valid,
        };
        self.put(material);
        Ok(true)
    }

    fn put(&self, material: Material) {
        let mut current = self.current.write();
        let edition = current.as_ref().map_or(1, |current| current.edition + 1);
        *current = Some(Current { material, edition });
    }

    fn refresh(&self, replica: &Replica) {
        // The lock is held throughout, because several listeners refresh, and each change must be applied and logged
        // once.
        let mut seen = self.seen.lock();
        if let Some(sources) = seen.sources.clone() {
            let (fingerprint, contents) = sources.read(seen.fingerprint);
            if Some(fingerprint) != seen.fingerprint {
                seen.fingerprint = Some(fingerprint);
                match sources.material(contents) {
                    Ok(material) => {
                        self.put(material);
                        seen.time = CertificateTime::Valid;
                        replica.counters.tls_rotations.add(1);
                        tracing::info!(?sources, "new connections get the new TLS files");
                    }
                    Err(error) => {
                        replica.counters.tls_rotations_refused.add(1);
                        tracing::warn!(%error, "the TLS files changed and cannot be used; what was in force before stays");
                    }
                }
            }
        }
        self.judge_time(&mut seen);
        self.review(replica);
    }

    /// Closes the connections whose certificates are no longer valid.
    fn review(&self, replica: &Replica) {
        let authorities = {
            let current = self.current.read();
            let Some(current) = &*current else { return };
            current.material.authorities.clone().map(|authorities| (authorities, current.edition))
        };
        let authorities = authorities.as_ref().map(|(authorities, edition)| (&**authorities, *edition));
        let (mut expired, mut disowned) = (0_usize, 0_usize);
        self.certified.review(authorities, self.clock.now(), |peer, lapse| {
            match lapse {
                Lapse::Expired => expired += 1,
                Lapse::Disowned => disowned += 1,
            }
            let client = peer.certificate().and_then(Certificate::common_name).map(|name| &**name);
            tracing::debug!(client, ?lapse, "the certificate of a client is no longer good");
        });
        if expired + disowned > 0 {
            replica.counters.connections_lapsed.add(expired + disowned);
            tracing::info!(
                expired,
                disowned,
                "connections were closed: the certificate of the client has expired, or its authority is none any more"
            );
        }
    }

    /// Logs when the current certificates leave their validity period. The server keeps them, because clients check
    /// them by their own clocks, and no certificate would be worse.
    fn judge_time(&self, seen: &mut SourceState) {
        let now = self.clock.now();
        let time = match self.current.read().as_ref().and_then(|current| current.material.validity.clone()) {
            Some(validity) if now > validity.end => CertificateTime::Expired,
            Some(validity) if now < validity.start => CertificateTime::NotYetValid,
            Some(_) | None => CertificateTime::Valid,
        };
        if time == seen.time {
            return;
        }
        seen.time = time;
        let source = seen.sources.as_ref().map(|sources| &sources.certificate);
        let part = TlsPart::Certificate;
        match time {
            CertificateTime::Valid => {}
            CertificateTime::Expired => {
                tracing::warn!(%part, ?source, "a certificate has expired; clients will refuse it");
            }
            CertificateTime::NotYetValid => {
                tracing::warn!(%part, ?source, "a certificate is not valid yet; clients will refuse it");
            }
        }
    }
}
