//! The handshake of one connection, and its session.

use std::io::{self, IoSlice};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rustls::server::{Accepted, Acceptor};
use rustls::{Error, HandshakeKind, IoState, ServerConfig, ServerConnection};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::admission::Admission;

/// Reason why a handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum HandshakeError {
    /// It took too long.
    Slow,
    /// It was the oldest of too many.
    Evicted,
    /// The client left.
    Left,
    /// The client refused, with an alert. Most often it does not trust the certificate.
    Refused,
    /// Client and proxy have no version, suite, signature scheme or protocol in common.
    Incompatible,
    /// The client has no certificate, or one that is not accepted.
    ClientCertificate,
    /// The client broke the protocol.
    Invalid,
    /// rustls finds another server name in the `ClientHello` than the one that has chosen the route.
    ServerName,
}

/// The bytes of the preface of HTTP/2. A server of both versions waits for as many, without a limit of time, before it
/// can tell the version of a client.
const PREFACE_BYTES: usize = 24;

/// The kind of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Kind {
    /// The proxy showed a certificate.
    Full,
    /// The client resumed a session.
    Resumed,
}

/// A TLS connection after its handshake, for both directions of its relay.
pub(in super::super) struct Session {
    state: Mutex<State>,
    /// Reading has queued something to write, such as an update of keys.
    pub(super) replies: Notify,
}

pub(super) struct State {
    pub(super) tls: ServerConnection,
    /// The direction to the client has ended.
    pub(super) has_ended: bool,
}

impl Session {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The kind of its handshake.
    pub(in super::super) fn kind(&self) -> Kind {
        match self.lock().tls.handshake_kind() {
            Some(HandshakeKind::Resumed) => Kind::Resumed,
            Some(HandshakeKind::Full | HandshakeKind::FullWithHelloRetryRequest) | None => Kind::Full,
        }
    }

    /// Waits until the client has sent the beginning of a request. It stays in the session for the relay.
    ///
    /// # Errors
    /// [`HandshakeError::Left`] if the client has ended its direction or has left. Another error is one of the
    /// protocol.
    pub(in super::super) async fn request(&self, client: &TcpStream) -> Result<(), HandshakeError> {
        loop {
            let state = process(&mut self.lock().tls, client).map_err(|error| failure(&error))?;
            if state.plaintext_bytes_to_read() >= PREFACE_BYTES {
                return Ok(());
            }
            if state.peer_has_closed() {
                return Err(HandshakeError::Left);
            }
            self.flush(client).await.map_err(|_| HandshakeError::Left)?;
            client.readable().await.map_err(|_| HandshakeError::Left)?;
            read(&mut self.lock().tls, &mut Socket(client))?;
        }
    }

    /// Ends the session in an orderly way, without waiting.
    pub(in super::super) fn close(&self, client: &TcpStream) {
        let tls = &mut self.lock().tls;
        tls.send_close_notify();
        // The client may be gone.
        let _ = tls.write_tls(&mut Socket(client));
    }

    /// Writes everything that is encrypted.
    pub(super) async fn flush(&self, client: &TcpStream) -> io::Result<()> {
        loop {
            {
                let mut state = self.lock();
                if state.has_ended || !state.tls.wants_write() {
                    return Ok(());
                }
                match state.tls.write_tls(&mut Socket(client)) {
                    Ok(_) => continue,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
            client.writable().await?;
        }
    }
}

/// The socket of a client without waiting.
pub(super) struct Socket<'a>(pub(super) &'a TcpStream);

impl io::Read for Socket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buffer)
    }
}

impl io::Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes the handshake of a client whose `ClientHello` is complete: `read` begins with it, and `name` is its server
/// name in lower case.
pub(in super::super) async fn handshake(
    client: &TcpStream,
    name: Option<&str>,
    read: Vec<u8>,
    config: Arc<ServerConfig>,
    admission: &Arc<Admission>,
) -> Result<Session, HandshakeError> {
    let admitted = admission.enter().await;
    let tls = tokio::select! {
        biased;
        () = admitted.evicted() => return Err(HandshakeError::Evicted),
        tls = negotiate(client, name, read, config, admission) => tls?,
    };
    let state = Mutex::new(State { tls, has_ended: false });
    let session = Session { state, replies: Notify::new() };
    // The last messages, such as tickets.
    session.flush(client).await.map_err(|_| HandshakeError::Left)?;
    Ok(session)
}

async fn negotiate(
    client: &TcpStream,
    name: Option<&str>,
    read: Vec<u8>,
    config: Arc<ServerConfig>,
    admission: &Admission,
) -> Result<ServerConnection, HandshakeError> {
    let mut rest = read.as_slice();
    let mut tls = {
        let _turn = admission.turn().await;
        let accepted = accept(&mut rest)?;
        if accepted.client_hello().server_name() != name {
            return Err(HandshakeError::ServerName);
        }
        let refused = |(error, mut alert): (Error, rustls::server::AcceptedAlert)| {
            // The client may be gone.
            let _ = alert.write_all(&mut Socket(client));
            failure(&error)
        };
        accepted.into_connection(config).map_err(refused)?
    };
    while !rest.is_empty() {
        let _turn = admission.turn().await;
        advance(&mut tls, &mut rest, client)?;
    }
    drop(read);
    while tls.is_handshaking() {
        while tls.wants_write() {
            match tls.write_tls(&mut Socket(client)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    client.writable().await.map_err(|_| HandshakeError::Left)?;
                }
                Err(_) => return Err(HandshakeError::Left),
            }
        }
        client.readable().await.map_err(|_| HandshakeError::Left)?;
        let _turn = admission.turn().await;
        advance(&mut tls, &mut Socket(client), client)?;
    }
    Ok(tls)
}

/// Reads the `ClientHello` that stands at the beginning of `bytes`, and takes it and perhaps more from them.
fn accept(bytes: &mut &[u8]) -> Result<Accepted, HandshakeError> {
    let mut acceptor = Acceptor::default();
    loop {
        match acceptor.read_tls(bytes) {
            Ok(0) | Err(_) => return Err(HandshakeError::Invalid),
            Ok(_) => {}
        }
        // No alert: these are bytes for which the proxy has found a route, but no TLS client yet.
        if let Some(accepted) = acceptor.accept().map_err(|_| HandshakeError::Invalid)? {
            return Ok(accepted);
        }
    }
}

/// Takes bytes from `from`, and what follows from them.
fn advance(
    tls: &mut ServerConnection,
    from: &mut dyn io::Read,
    client: &TcpStream,
) -> Result<(), HandshakeError> {
    read(tls, from)?;
    process(tls, client).map(|_| ()).map_err(|error| failure(&error))
}

/// Takes bytes from `from`, if there are any at the moment.
fn read(tls: &mut ServerConnection, from: &mut dyn io::Read) -> Result<(), HandshakeError> {
    match tls.read_tls(from) {
        Ok(0) => Err(HandshakeError::Left),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) if error.raw_os_error().is_some() => Err(HandshakeError::Left),
        Err(_) => Err(HandshakeError::Invalid),
    }
}

/// Processes the bytes that were read. After an error, the alert is on its way.
pub(super) fn process(tls: &mut ServerConnection, client: &TcpStream) -> Result<IoState, Error> {
    let processed = tls.process_new_packets();
    if processed.is_err() {
        // Without waiting, because the connection is reset next.
        let _ = tls.write_tls(&mut Socket(client));
    }
    processed
}

fn failure(error: &Error) -> HandshakeError {
    if matches!(error, Error::AlertReceived(_)) {
        HandshakeError::Refused
    } else if matches!(error, Error::PeerIncompatible(_) | Error::NoApplicationProtocol) {
        HandshakeError::Incompatible
    } else if matches!(error, Error::NoCertificatesPresented | Error::InvalidCertificate(_)) {
        HandshakeError::ClientCertificate
    } else {
        HandshakeError::Invalid
    }
}
