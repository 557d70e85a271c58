//! Passing bytes between a TLS session and a backend.
//!
//! The end of a direction is passed on: `close_notify` as a half-close, and a half-close as `close_notify` and a
//! half-close. A client that ends its connection without `close_notify` may have been cut off by a third party, so its
//! backend gets a reset in place of an end.

use std::io::{self, BufRead as _, Write as _};
use std::pin::pin;

use prometheus_client::metrics::counter::Counter;
use rustix::net::Shutdown;
use tokio::net::TcpStream;

use super::session::{Session, process};
use crate::stream::relay::{Pools, READS_PER_TURN, both, read};

/// Passes bytes on until both directions have ended. Counts plaintext when it is passed on.
///
/// # Errors
/// The first error of either side.
pub(in super::super) async fn relay(
    session: &Session,
    client: &TcpStream,
    backend: &TcpStream,
    pools: &Pools,
    (from_client, from_backend): (&Counter, &Counter),
) -> io::Result<()> {
    let there = pin!(to_backend(session, client, backend, pools, from_client));
    let back = pin!(to_client(session, client, backend, pools, from_backend));
    both(there, back, client, backend).await
}

async fn to_backend(
    session: &Session,
    client: &TcpStream,
    backend: &TcpStream,
    pools: &Pools,
    count: &Counter,
) -> io::Result<()> {
    // The handshake may have read some.
    let mut has_ended = pass_on(session, backend, count).await?;
    let mut turn = 0;
    while !has_ended {
        client.readable().await?;
        let mut buffer = pools.take_buffer();
        let mut read = match read(client, &mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => buffer.get(..bytes).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        };
        // rustls takes some kilobytes at a time, and none while it has plaintext left.
        while !read.is_empty() && !has_ended {
            {
                let tls = &mut session.lock().tls;
                tls.read_tls(&mut read)?;
                process(tls, client).map_err(io::Error::other)?;
                if tls.wants_write() {
                    session.replies.notify_one();
                }
            }
            has_ended = pass_on(session, backend, count).await?;
        }
        turn += 1;
        if turn == READS_PER_TURN {
            turn = 0;
            tokio::task::yield_now().await;
        }
    }
    Ok(rustix::net::shutdown(backend, Shutdown::Write)?)
}

/// Passes on decrypted bytes. The result is whether the client has ended the direction.
async fn pass_on(session: &Session, backend: &TcpStream, count: &Counter) -> io::Result<bool> {
    loop {
        {
            let tls = &mut session.lock().tls;
            let mut reader = tls.reader();
            match reader.fill_buf() {
                Ok([]) => return Ok(true),
                Ok(bytes) => match backend.try_write(bytes) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(written) => {
                        reader.consume(written);
                        count.inc_by(u64::try_from(written).unwrap_or_default());
                        continue;
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        backend.writable().await?;
    }
}

async fn to_client(
    session: &Session,
    client: &TcpStream,
    backend: &TcpStream,
    pools: &Pools,
    count: &Counter,
) -> io::Result<()> {
    let mut turn = 0;
    loop {
        tokio::select! {
            biased;
            readable = backend.readable() => readable?,
            () = session.replies.notified() => {
                session.flush(client).await?;
                continue;
            }
        }
        let bytes = {
            let mut buffer = pools.take_buffer();
            let bytes = match read(backend, &mut buffer) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error),
            };
            let tls = &mut session.lock().tls;
            if bytes == 0 {
                tls.send_close_notify();
            } else {
                tls.writer().write_all(buffer.get(..bytes).unwrap_or_default())?;
            }
            bytes
        };
        session.flush(client).await?;
        if bytes == 0 {
            session.lock().has_ended = true;
            return Ok(rustix::net::shutdown(client, Shutdown::Write)?);
        }
        count.inc_by(u64::try_from(bytes).unwrap_or_default());
        turn += 1;
        if turn == READS_PER_TURN {
            turn = 0;
            tokio::task::yield_now().await;
        }
    }
}
