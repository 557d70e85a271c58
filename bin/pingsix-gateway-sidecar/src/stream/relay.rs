//! Passing bytes between two connections.
//!
//! The two directions are independent: the end of one is passed on as a half-close, and the other goes on. An error of
//! one side ends both, and the caller resets both sides, so that neither takes a cut stream for a whole one.
//!
//! A direction holds memory only while it has bytes that the receiver does not take: it waits for data first and then
//! takes a buffer from the pool. A bulk direction moves data through a pipe in the kernel instead, see [`splice`].

mod buffers;
mod splice;

use std::io;
use std::pin::{Pin, pin};

use prometheus_client::metrics::counter::Counter;
use rustix::net::Shutdown;
use tokio::io::Interest;
use tokio::net::TcpStream;

use buffers::{Buffer, Buffers};
use splice::Pipes;

/// The bytes after which a direction may be spliced, and the least that a read has moved before.
const MIN_BULK_TOTAL_BYTES: u64 = 64 * 1024;
const MIN_BULK_READ_BYTES: usize = 4 * 1024;
/// The reads after which a direction lets other tasks run.
pub(super) const READS_PER_TURN: u32 = 16;

/// The memory and the pipes of all connections.
#[derive(Debug)]
pub(super) struct Pools {
    buffers: Buffers,
    pipes: Pipes,
}

impl Pools {
    /// Pools with at most so many pipes.
    pub(super) fn new(pipes: usize) -> Self {
        Self { buffers: Buffers::default(), pipes: Pipes::new(pipes) }
    }

    /// A buffer of any content.
    pub(super) fn take_buffer(&self) -> Buffer {
        self.buffers.take()
    }
}

/// Passes bytes on until both directions have ended. Counts those of `one` in `from_one` when they are passed on.
///
/// # Errors
/// The first error of either side.
pub(super) async fn relay(
    one: &TcpStream,
    other: &TcpStream,
    pools: &Pools,
    (from_one, from_other): (&Counter, &Counter),
) -> io::Result<()> {
    let there = pin!(forward(one, other, pools, from_one));
    let back = pin!(forward(other, one, pools, from_other));
    both(there, back, one, other).await
}

/// Runs both directions to their ends: `there` from `one` to `other`, and `back`. They are pinned by the caller, because
/// a future that is moved into another one is in memory twice.
///
/// # Errors
/// The first error of either direction.
pub(super) async fn both(
    mut there: Pin<&mut impl Future<Output = io::Result<()>>>,
    mut back: Pin<&mut impl Future<Output = io::Result<()>>>,
    one: &TcpStream,
    other: &TcpStream,
) -> io::Result<()> {
    tokio::select! {
        ended = &mut there => {
            ended?;
            unless_broken(back, one).await
        }
        ended = &mut back => {
            ended?;
            unless_broken(there, other).await
        }
    }
}

/// Waits for the other direction. A reset by the side that has ended its own shows in no read any more.
async fn unless_broken(direction: impl Future<Output = io::Result<()>>, ended: &TcpStream) -> io::Result<()> {
    tokio::select! {
        biased;
        result = direction => result,
        error = failure(ended) => Err(error),
    }
}

/// Returns when a connection has failed.
async fn failure(stream: &TcpStream) -> io::Error {
    match stream.ready(Interest::ERROR).await.and_then(|_| stream.take_error()) {
        Ok(Some(error)) | Err(error) => error,
        Ok(None) => std::future::pending().await,
    }
}

/// The outcome of a read.
enum Moved {
    Bytes(usize),
    /// No data at the moment.
    Nothing,
    /// The sender has ended the direction.
    End,
}

async fn forward(from: &TcpStream, to: &TcpStream, pools: &Pools, count: &Counter) -> io::Result<()> {
    let mut total = 0_u64;
    let mut bulk = false;
    let mut turn = 0;
    loop {
        from.readable().await?;
        let pipe = if bulk { pools.pipes.take() } else { None };
        let moved = match pipe {
            Some(pipe) => splice::pass(from, to, pipe, &pools.pipes).await?,
            None => copy(from, to, pools).await?,
        };
        match moved {
            Moved::Bytes(bytes) => {
                let bytes64 = u64::try_from(bytes).unwrap_or(u64::MAX);
                total = total.saturating_add(bytes64);
                count.inc_by(bytes64);
                bulk = total >= MIN_BULK_TOTAL_BYTES && bytes >= MIN_BULK_READ_BYTES;
            }
            Moved::Nothing => {}
            Moved::End => {
                rustix::net::shutdown(to, Shutdown::Write)?;
                return Ok(());
            }
        }
        turn += 1;
        if turn == READS_PER_TURN {
            turn = 0;
            tokio::task::yield_now().await;
        }
    }
}

/// Passes on what one read gives.
async fn copy(from: &TcpStream, to: &TcpStream, pools: &Pools) -> io::Result<Moved> {
    let mut buffer = pools.take_buffer();
    let bytes = match read(from, &mut buffer) {
        Ok(0) => return Ok(Moved::End),
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Moved::Nothing),
        Err(error) => return Err(error),
    };
    write_all(to, buffer.get(..bytes).unwrap_or_default()).await?;
    Ok(Moved::Bytes(bytes))
}

/// Reads what there is, without waiting. A read that leaves room in the buffer has emptied the socket, so the connection
/// is not readable until more comes: a message costs no second read that finds nothing.
pub(super) fn read(from: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    let room = buffer.len();
    let mut result = Err(io::ErrorKind::WouldBlock.into());
    let _ = from.try_io(Interest::READABLE, || {
        result = rustix::io::read(from, buffer).map_err(io::Error::from);
        match &result {
            Ok(bytes) if (1..room).contains(bytes) => Err(io::ErrorKind::WouldBlock.into()),
            Err(error) => Err(error.kind().into()),
            Ok(_) => Ok(()),
        }
    });
    result
}

/// Writes all bytes.
pub(super) async fn write_all(to: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.try_write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => to.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A system call that may have to wait, with the readiness of the connection kept right.
fn attempt(
    stream: &TcpStream,
    interest: Interest,
    call: impl FnOnce() -> rustix::io::Result<usize>,
) -> io::Result<usize> {
    stream.try_io(interest, || call().map_err(io::Error::from))
}

#[cfg(test)]
mod tests;
