//! Datagrams of one size between the same addresses, which the system receives and sends in one call.
//!
//! The boundaries of datagrams are kept: each has the size of the run, and the last one can be shorter.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use super::super::socket::is_shortage;
use super::metrics::{Passed, Unsent};

/// The most bytes of a run that is sent in one call: those of the largest datagram.
const MAX_RUN_BYTES: usize = 65_507;

/// At least one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run<'a> {
    bytes: &'a [u8],
    size: usize,
}

impl<'a> Run<'a> {
    /// Datagrams of a size; without bytes, one empty datagram.
    pub(super) fn new(bytes: &'a [u8], size: usize) -> Self {
        Self { bytes, size: size.clamp(1, bytes.len().max(1)) }
    }

    /// The number of datagrams.
    pub(super) fn count(self) -> usize {
        self.bytes.len().div_ceil(self.size).max(1)
    }

    /// The first datagrams, at most this many, and the rest.
    fn split(self, most: usize) -> (Self, Option<Self>) {
        let (first, rest) = self.bytes.split_at(self.size.saturating_mul(most).min(self.bytes.len()));
        let of = |bytes| Self { bytes, size: self.size };
        (of(first), (!rest.is_empty()).then(|| of(rest)))
    }
}

/// Whether datagrams can be sent in one call (GSO). Some devices and networks do not take them.
#[derive(Debug, Default)]
pub(super) struct Segments {
    refused: AtomicBool,
}

/// Sends datagrams in their order. `send` sends bytes as one datagram, or as several of a size, at most `most`.
///
/// # Errors
/// The datagrams that are not sent, because the address takes none. Each other failure concerns one call alone:
/// `dropped` has the reason and the number of its datagrams.
pub(super) fn send_all<'a>(
    run: Run<'a>,
    segments: &Segments,
    most: usize,
    passed: &Passed,
    send: impl Fn(&[u8], Option<usize>) -> io::Result<()>,
    mut dropped: impl FnMut(Unsent, usize),
) -> Result<(), Run<'a>> {
    let mut rest = Some(run);
    while let Some(run) = rest {
        let together = !segments.refused.load(Ordering::Relaxed) && run.count() > 1;
        let most = if together { most.min(MAX_RUN_BYTES / run.size).max(1) } else { 1 };
        let (first, after) = run.split(most);
        match send(first.bytes, (first.count() > 1).then_some(first.size)) {
            Ok(()) => {
                passed.datagrams.inc_by(u64::try_from(first.count()).unwrap_or_default());
                passed.bytes.inc_by(u64::try_from(first.bytes.len()).unwrap_or_default());
            }
            Err(error) => match reason(&error) {
                // Each of them may go alone, in fragments or without the help of the device.
                Unsent::TooLarge | Unsent::Address if first.count() > 1 && is_of_segments(&error) => {
                    segments.refused.store(true, Ordering::Relaxed);
                    continue;
                }
                Unsent::Address => return Err(run),
                reason @ (Unsent::Congested | Unsent::TooLarge | Unsent::Resources) => {
                    dropped(reason, first.count());
                }
            },
        }
        rest = after;
    }
    Ok(())
}

fn reason(error: &io::Error) -> Unsent {
    if error.kind() == io::ErrorKind::WouldBlock {
        Unsent::Congested
    } else if is(error, Errno::MSGSIZE) {
        Unsent::TooLarge
    } else if is_shortage(error) {
        Unsent::Resources
    } else {
        Unsent::Address
    }
}

/// Whether datagrams together fail in this way if the device or the network takes them only one by one.
fn is_of_segments(error: &io::Error) -> bool {
    is(error, Errno::MSGSIZE) || is(error, Errno::INVAL) || is(error, Errno::IO)
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// The sizes of the datagrams of each call, the calls that are dropped, and the number of datagrams that are left.
    type Sent = (Vec<Vec<usize>>, Vec<(Unsent, usize)>, Option<usize>);

    /// Sends a run over a network that takes some calls.
    fn sent(run: Run<'_>, network: impl Fn(&[u8], Option<usize>) -> Result<(), Errno>) -> Sent {
        let (calls, mut dropped) = (RefCell::new(Vec::new()), Vec::new());
        let passed = Passed { datagrams: <_>::default(), bytes: <_>::default() };
        let send = |bytes: &[u8], size: Option<usize>| {
            network(bytes, size)?;
            let sizes = Run::new(bytes, size.unwrap_or(bytes.len()));
            calls.borrow_mut().push(
                (0..sizes.count())
                    .map(|index| sizes.size.min(bytes.len() - index * sizes.size))
                    .collect::<Vec<_>>(),
            );
            Ok(())
        };
        let left = send_all(run, &Segments::default(), 64, &passed, send, |reason, count| {
            dropped.push((reason, count));
        });
        let calls = calls.into_inner();
        let total: usize = calls.iter().flatten().sum();
        assert_eq!(passed.bytes.get(), u64::try_from(total).unwrap());
        assert_eq!(passed.datagrams.get(), u64::try_from(calls.iter().flatten().count()).unwrap());
        (calls, dropped, left.err().map(Run::count))
    }

    #[test]
    fn boundaries_are_those_of_the_run() {
        let bytes = [7; 2_500];
        let all = |_: &[u8], _: Option<usize>| Ok(());
        assert_eq!(sent(Run::new(&bytes, 1_000), all).0, [[1_000, 1_000, 500]]);
        assert_eq!(sent(Run::new(&bytes, 2_500), all).0, [[2_500]]);
        assert_eq!(sent(Run::new(&bytes, 1_250), all).0, [[1_250, 1_250]]);
        assert_eq!(sent(Run::new(&[], 0), all).0, [[0]]);
        assert_eq!(sent(Run::new(&[7; 100], 1), all).0, [vec![1; 64], vec![1; 36]]);
        assert_eq!(sent(Run::new(&vec![7; 65_527], 65_527), all).0, [[65_527]]);
        assert_eq!(sent(Run::new(&vec![7; 65_530], 30_000), all).0, [vec![30_000, 30_000], vec![5_530]]);
    }

    #[test]
    fn datagrams_go_alone_where_they_do_not_go_together() {
        for errno in [Errno::MSGSIZE, Errno::INVAL, Errno::IO] {
            let alone = |_: &[u8], size: Option<usize>| if size.is_some() { Err(errno) } else { Ok(()) };
            assert_eq!(sent(Run::new(&[7; 10], 4), alone), (vec![vec![4], vec![4], vec![2]], vec![], None));
        }
    }

    #[test]
    fn a_datagram_that_fails_for_itself_does_not_hold_up_others() {
        for (errno, reason) in [
            (Errno::MSGSIZE, Unsent::TooLarge),
            (Errno::AGAIN, Unsent::Congested),
            (Errno::NOBUFS, Unsent::Resources),
        ] {
            let network = |bytes: &[u8], size: Option<usize>| {
                if size.is_some() {
                    Err(Errno::INVAL)
                } else if bytes.len() == 4 {
                    Err(errno)
                } else {
                    Ok(())
                }
            };
            assert_eq!(sent(Run::new(&[7; 9], 4), network), (vec![vec![1]], vec![(reason, 1); 2], None));
        }
    }

    #[test]
    fn a_refusal_leaves_the_rest() {
        let refused = |_: &[u8], _: Option<usize>| Err(Errno::CONNREFUSED);
        assert_eq!(sent(Run::new(&[7; 10], 4), refused), (vec![], vec![], Some(3)));
        assert_eq!(sent(Run::new(&[], 0), refused), (vec![], vec![], Some(1)));
    }
}
