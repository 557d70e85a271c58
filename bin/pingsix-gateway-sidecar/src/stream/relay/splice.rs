//! Moving data between two connections within the kernel.
//!
//! `splice` moves data from a socket into a pipe and from the pipe into another socket, without a copy through this
//! process. A pipe belongs to a direction only while it has data, so a few pipes serve many connections. Without a pipe
//! a direction copies.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::{Moved, attempt};

/// The most bytes of one call. A pipe has less, and can have more than its size with large segments.
const MAX_SPLICED_BYTES: usize = 1024 * 1024;

/// The empty pipes, and the number of all pipes.
#[derive(Debug)]
pub(super) struct Pipes {
    most: usize,
    made: AtomicUsize,
    empty: Mutex<Vec<Pipe>>,
    /// The system has no `splice` for these sockets.
    unsupported: AtomicBool,
}

/// The two ends of a pipe.
#[derive(Debug)]
pub(super) struct Pipe {
    output: OwnedFd,
    input: OwnedFd,
}

impl Pipes {
    /// At most so many pipes, which are made when they are needed.
    pub(super) fn new(most: usize) -> Self {
        Self { most, made: AtomicUsize::new(0), empty: Mutex::default(), unsupported: AtomicBool::new(false) }
    }

    /// An empty pipe, if there is one or one can be made.
    pub(super) fn take(&self) -> Option<Pipe> {
        if self.unsupported.load(Ordering::Relaxed) {
            return None;
        }
        if let Some(pipe) = self.empty.lock().pop() {
            return Some(pipe);
        }
        let below = |made: usize| (made < self.most).then_some(made + 1);
        self.made.fetch_update(Ordering::Relaxed, Ordering::Relaxed, below).ok()?;
        let pipe = system::pipe();
        if pipe.is_none() {
            self.made.fetch_sub(1, Ordering::Relaxed);
        }
        pipe
    }

    fn put(&self, pipe: Pipe) {
        self.empty.lock().push(pipe);
    }
}

#[cfg(test)]
impl Pipes {
    /// The number of pipes.
    pub(super) fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }

    /// Fails if a pipe is in use, or has data.
    pub(super) fn assert_all_empty(&self) {
        let empty = self.empty.lock();
        assert_eq!(empty.len(), self.made());
        for pipe in empty.iter() {
            assert_eq!(rustix::io::ioctl_fionread(&pipe.output).unwrap(), 0);
        }
    }
}

/// A pipe in use. It is closed when dropped, with all data in it, unless it is given back empty.
struct InUse<'a> {
    pipe: Option<Pipe>,
    pipes: &'a Pipes,
}

impl InUse<'_> {
    fn give_back(mut self) {
        if let Some(pipe) = self.pipe.take() {
            self.pipes.put(pipe);
        }
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        if self.pipe.take().is_some() {
            self.pipes.made.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Passes on what one call moves into the pipe.
pub(super) async fn pass(from: &TcpStream, to: &TcpStream, pipe: Pipe, pipes: &Pipes) -> io::Result<Moved> {
    let in_use = InUse { pipe: Some(pipe), pipes };
    let Some(pipe) = &in_use.pipe else { return Ok(Moved::Nothing) };
    // The pipe is empty, so only the socket can have the call wait.
    let moved =
        match attempt(from, Interest::READABLE, || system::splice(from, &pipe.input, MAX_SPLICED_BYTES)) {
            Ok(0) => Moved::End,
            Ok(bytes) => {
                let mut left = bytes;
                while left > 0 {
                    match attempt(to, Interest::WRITABLE, || system::splice(&pipe.output, to, left)) {
                        Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                        Ok(written) => left = left.saturating_sub(written),
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => to.writable().await?,
                        Err(error) => return Err(error),
                    }
                }
                Moved::Bytes(bytes)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Moved::Nothing,
            // The call moved no bytes, so all connections continue with copies.
            Err(error) if system::is_unsupported(&error) => {
                pipes.unsupported.store(true, Ordering::Relaxed);
                Moved::Nothing
            }
            Err(error) => return Err(error),
        };
    in_use.give_back();
    Ok(moved)
}

#[cfg(target_os = "linux")]
mod system {
    use std::io;
    use std::os::fd::AsFd;

    use rustix::io::Errno;
    use rustix::pipe::{PipeFlags, SpliceFlags};

    use super::Pipe;

    /// The size of a pipe. All pipes together have the 64 MiB that the system allows a user by default.
    const PIPE_BYTES: usize = 256 * 1024;

    pub(super) fn pipe() -> Option<Pipe> {
        let (output, input) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
        // A pipe of the default size takes more calls.
        let _ = rustix::pipe::fcntl_setpipe_size(&input, PIPE_BYTES);
        Some(Pipe { output, input })
    }

    pub(super) fn splice(from: impl AsFd, to: impl AsFd, most: usize) -> rustix::io::Result<usize> {
        rustix::pipe::splice(from, None, to, None, most, SpliceFlags::MOVE | SpliceFlags::NONBLOCK)
    }

    pub(super) fn is_unsupported(error: &io::Error) -> bool {
        [Errno::NOSYS, Errno::INVAL, Errno::PERM]
            .iter()
            .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
    }
}

/// Other systems copy.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;

    use super::Pipe;

    pub(super) fn pipe() -> Option<Pipe> {
        None
    }

    pub(super) fn splice<From, To>(_: From, _: To, _: usize) -> rustix::io::Result<usize> {
        Err(rustix::io::Errno::NOSYS)
    }

    pub(super) fn is_unsupported(_: &io::Error) -> bool {
        true
    }
}
