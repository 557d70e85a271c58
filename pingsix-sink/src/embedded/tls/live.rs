//! The current TLS configuration and its replacement.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tokio_rustls::rustls::ServerConfig;

use super::ServerTls;
use super::error::{CERTIFICATE, TlsError};
use super::sources::{Fingerprint, LoadedTls, Sources};
use crate::embedded::access::Certificate;
use crate::embedded::peer::{CertificateConnections, Lapse};
use crate::embedded::revisions::Clock;
use crate::embedded::stats::Counters;
use crate::embedded::watched_files::refresh_every;

/// The current TLS configuration of handshakes.
pub(in crate::embedded) struct LiveTls {
    options: ServerTls,
    clock: Arc<dyn Clock>,
    current: RwLock<Option<Current>>,
    state: Mutex<SourceState>,
    certificate_connections: CertificateConnections,
}

/// The current configuration with an edition number of its own.
struct Current {
    loaded: LoadedTls,
    edition: u64,
}

/// The sources with the state of the last check.
struct SourceState {
    /// `None` until the server has a certificate.
    sources: Option<Sources>,
    fingerprint: Option<Fingerprint>,
    time: Validity,
}

/// Validity of the current certificates at the current time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Validity {
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
        let state = SourceState { sources: None, fingerprint: None, time: Validity::Valid };
        let live = Self {
            clock,
            current: RwLock::new(None),
            state: Mutex::new(state),
            certificate_connections: CertificateConnections::default(),
            options,
        };
        if let Some(sources) = live.options.sources.clone() {
            let state = &mut *live.state.lock();
            live.apply_sources(sources, state)?;
            live.log_validity(state);
        }
        Ok(live)
    }

    /// The configuration of the next handshake, and its edition; `None` without a certificate.
    pub(in crate::embedded) fn config(&self) -> Option<(Arc<ServerConfig>, u64)> {
        let current = self.current.read();
        current.as_ref().map(|current| (Arc::clone(&current.loaded.config), current.edition))
    }

    pub(in crate::embedded) fn options(&self) -> &ServerTls {
        &self.options
    }

    /// The connections that end with the certificates of their clients.
    pub(in crate::embedded) fn certificate_connections(&self) -> &CertificateConnections {
        &self.certificate_connections
    }

    /// Checks the files and the validity periodically. Never ends.
    pub(in crate::embedded) async fn keep_current(self: Arc<Self>, counters: Arc<Counters>) -> Infallible {
        refresh_every(self.options.reread_interval, move || self.refresh(&counters)).await
    }

    /// Replaces the configuration; on an error, the current one stays.
    pub(in crate::embedded) fn replace(&self, tls: ServerTls, counters: &Counters) -> Result<(), TlsError> {
        let Some(sources) = tls.sources else { return Ok(()) };
        let mut state = self.state.lock();
        match self.apply_sources(sources, &mut state) {
            Ok(true) => {
                counters.update(|stats| stats.tls_rotations += 1);
                tracing::info!("new connections use the new TLS certificate");
            }
            Ok(false) => {}
            Err(error) => {
                counters.update(|stats| stats.tls_rotations_refused += 1);
                return Err(error);
            }
        }
        self.log_validity(&mut state);
        self.close_invalid(counters);
        Ok(())
    }

    /// Loads these sources and returns whether they differ from the current ones.
    fn apply_sources(&self, sources: Sources, state: &mut SourceState) -> Result<bool, TlsError> {
        let (fingerprint, contents) = sources.read(None);
        if self.current.read().is_some() && state.fingerprint == Some(fingerprint) {
            state.sources = Some(sources);
            return Ok(false);
        }
        let loaded = sources.load(contents)?;
        *state =
            SourceState { sources: Some(sources), fingerprint: Some(fingerprint), time: Validity::Valid };
        self.install(loaded);
        Ok(true)
    }

    fn install(&self, loaded: LoadedTls) {
        let mut current = self.current.write();
        let edition = current.as_ref().map_or(1, |current| current.edition + 1);
        *current = Some(Current { loaded, edition });
    }

    fn refresh(&self, counters: &Counters) {
        // The lock is held throughout, because several listeners refresh, and each change must be applied and logged
        // once.
        let mut state = self.state.lock();
        if let Some(sources) = state.sources.clone() {
            let (fingerprint, contents) = sources.read(state.fingerprint);
            if Some(fingerprint) != state.fingerprint {
                state.fingerprint = Some(fingerprint);
                match sources.load(contents) {
                    Ok(loaded) => {
                        self.install(loaded);
                        state.time = Validity::Valid;
                        counters.update(|stats| stats.tls_rotations += 1);
                        tracing::info!(?sources, "new connections use the new TLS files");
                    }
                    Err(error) => {
                        counters.update(|stats| stats.tls_rotations_refused += 1);
                        tracing::warn!(%error, "the TLS files are invalid; the previous certificate stays");
                    }
                }
            }
        }
        self.log_validity(&mut state);
        self.close_invalid(counters);
    }

    /// Closes the connections whose certificates are no longer valid.
    fn close_invalid(&self, counters: &Counters) {
        let authorities = {
            let current = self.current.read();
            let Some(current) = &*current else { return };
            current.loaded.authorities.clone().map(|authorities| (authorities, current.edition))
        };
        let authorities = authorities.as_ref().map(|(authorities, edition)| (&**authorities, *edition));
        let (mut expired, mut disowned) = (0_u64, 0_u64);
        self.certificate_connections.close_invalid(authorities, self.clock.now(), |peer, lapse| {
            match lapse {
                Lapse::Expired => expired += 1,
                Lapse::Disowned => disowned += 1,
            }
            let client = peer.certificate().and_then(Certificate::common_name).map(|name| &**name);
            tracing::debug!(client, ?lapse, "a client certificate is no longer valid");
        });
        if expired + disowned > 0 {
            counters.update(|stats| stats.connections_lapsed += expired + disowned);
            tracing::info!(
                expired,
                disowned,
                "connections closed: the client certificate has expired, or its CA was removed"
            );
        }
    }

    /// Logs when the current certificates leave their validity period. The server keeps them, because clients check
    /// them by their own clocks, and no certificate would be worse.
    fn log_validity(&self, state: &mut SourceState) {
        let now = self.clock.now();
        let time = match self.current.read().as_ref().and_then(|current| current.loaded.validity.clone()) {
            Some(validity) if now > validity.end => Validity::Expired,
            Some(validity) if now < validity.start => Validity::NotYetValid,
            Some(_) | None => Validity::Valid,
        };
        if time == state.time {
            return;
        }
        state.time = time;
        let source = state.sources.as_ref().map(|sources| &sources.certificate);
        let part = CERTIFICATE;
        match time {
            Validity::Valid => {}
            Validity::Expired => {
                tracing::warn!(part, ?source, "a certificate has expired; clients will refuse it");
            }
            Validity::NotYetValid => {
                tracing::warn!(part, ?source, "a certificate is not valid yet; clients will refuse it");
            }
        }
    }
}
