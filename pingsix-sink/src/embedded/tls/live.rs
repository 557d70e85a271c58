//! The material in force, and its replacement.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tokio::time::MissedTickBehavior;
use tokio_rustls::rustls::ServerConfig;

use super::ServerTls;
use super::fault::{TlsError, TlsPart};
use super::material::{Fingerprint, Material};
use crate::embedded::replica::Replica;
use crate::embedded::revisions::Clock;
use crate::embedded::stats::Counters;

/// What handshakes are made with now.
pub(in crate::embedded) struct LiveTls {
    options: ServerTls,
    clock: Arc<dyn Clock>,
    current: RwLock<Material>,
    seen: Mutex<Seen>,
}

/// What was last looked at, and said.
struct Seen {
    fingerprint: Fingerprint,
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
        let (fingerprint, contents) = options.sources.read(None);
        let material = options.sources.material(contents)?;
        let live = Self {
            options,
            clock,
            current: RwLock::new(material),
            seen: Mutex::new(Seen { fingerprint, time: CertificateTime::Valid }),
        };
        live.judge_time(&mut live.seen.lock());
        Ok(live)
    }

    /// What the next handshake is made with.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.read().config)
    }

    pub(super) fn options(&self) -> &ServerTls {
        &self.options
    }

    /// Looks at the files again and again, and at the time. Never ends.
    pub(in crate::embedded) async fn keep_current(self: Arc<Self>, replica: Arc<Replica>) -> Infallible {
        let mut looks = tokio::time::interval(self.options.reread_interval);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            let (live, replica) = (Arc::clone(&self), Arc::clone(&replica));
            let looked = tokio::task::spawn_blocking(move || live.refresh(&replica.counters)).await;
            if let Err(error) = looked {
                tracing::error!(%error, "the TLS files could not be looked at");
            }
        }
    }

    fn refresh(&self, counters: &Counters) {
        // Held throughout: several listeners look, and each change is to be judged and told once.
        let mut seen = self.seen.lock();
        let (fingerprint, contents) = self.options.sources.read(Some(seen.fingerprint));
        if fingerprint != seen.fingerprint {
            seen.fingerprint = fingerprint;
            match self.options.sources.material(contents) {
                Ok(material) => {
                    *self.current.write() = material;
                    seen.time = CertificateTime::Valid;
                    counters.tls_rotations.add(1);
                    tracing::info!(sources = ?self.options.sources, "new connections get the new TLS files");
                }
                Err(error) => {
                    counters.tls_rotations_refused.add(1);
                    tracing::warn!(%error, "the TLS files changed and cannot be used; what was in force before stays");
                }
            }
        }
        self.judge_time(&mut seen);
    }

    /// Says so when the certificates in force begin to be out of their time. They are served all the same: clients
    /// judge them by their own clocks, and no certificate at all would be worse.
    fn judge_time(&self, seen: &mut Seen) {
        let now = self.clock.now();
        let time = match &self.current.read().validity {
            Some(validity) if now > validity.end => CertificateTime::Expired,
            Some(validity) if now < validity.start => CertificateTime::NotYetValid,
            Some(_) | None => CertificateTime::Valid,
        };
        if time == seen.time {
            return;
        }
        seen.time = time;
        let source = &self.options.sources.certificate;
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
