//! The material in force, and its replacement.

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

/// What handshakes are made with now.
pub(in crate::embedded) struct LiveTls {
    options: ServerTls,
    clock: Arc<dyn Clock>,
    current: RwLock<Option<Current>>,
    seen: Mutex<SourceState>,
    certified: Certified,
}

/// What is in force; each has another edition than those before.
struct Current {
    material: Material,
    edition: u64,
}

/// Where material comes from, and what was last looked at, and said.
struct SourceState {
    /// `None` as long as the server has nothing to prove itself with.
    sources: Option<Sources>,
    fingerprint: Option<Fingerprint>,
    time: CertificateTime,
}

/// How the certificates in force stand to the clock.
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
    /// Reads everything once; all of it must be usable.
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

    /// What the next handshake is made with, and its edition; `None` as long as there is nothing.
    pub(super) fn config(&self) -> Option<(Arc<ServerConfig>, u64)> {
        let current = self.current.read();
        current.as_ref().map(|current| (Arc::clone(&current.material.config), current.edition))
    }

    pub(super) fn options(&self) -> &ServerTls {
        &self.options
    }

    /// The connections that end when the certificates of their clients do.
    pub(in crate::embedded) fn certified(&self) -> &Certified {
        &self.certified
    }

    /// Looks at the files again and again, and at the time. Never ends.
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

    /// Puts other material in the place of what is in force; what cannot be used changes nothing.
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

    /// Takes material from these sources, and says whether it is other than what is in force.
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
        // Held throughout: several listeners look, and each change is to be judged and told once.
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

    /// Ends the connections whose certificates prove nothing any more.
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

    /// Says so when the certificates in force begin to be out of their time. They are served all the same: clients
    /// judge them by their own clocks, and no certificate at all would be worse.
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
