//! Sockets of listeners and of sessions, and receiving in batches.
//!
//! `quinn-udp` has the calls: `recvmmsg`, the joining of datagrams by the system (GRO), their sending in one call (GSO),
//! and the local address of a datagram. It forbids fragments, for QUIC. Here, any size passes, so they are allowed
//! again.

use std::cell::RefCell;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{AddressFamily, SocketType, bind, socket, sockopt};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::super::socket::on_address;
use super::run::Run;

/// The most messages of one call, each with a buffer of its own.
const MAX_MESSAGES_PER_CALL: usize = 16;
/// The size of a buffer. Datagrams that the system has joined are not longer together.
const BUFFER_BYTES: usize = 64 * 1_024;
/// The size of the buffers in the kernel for the clients of a port; the system may allow less.
const KERNEL_BUFFER_BYTES: usize = 4 * 1_024 * 1_024;

thread_local! {
    /// Each thread needs buffers only while it receives and sends, not for each socket.
    static BUFFERS: RefCell<Box<[u8]>> = RefCell::new(vec![0; MAX_MESSAGES_PER_CALL * BUFFER_BYTES].into());
}

/// A socket that does not block.
#[derive(Debug)]
pub(super) struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl Socket {
    /// A socket for the datagrams of clients. The unspecified IPv6 address takes IPv4 too.
    pub(super) fn listen(address: IpAddr, port: u16) -> io::Result<Self> {
        let socket = on_address(address, port, |address| match address {
            SocketAddr::V4(_) => std::net::UdpSocket::bind(address),
            SocketAddr::V6(address) => udp_v6(address),
        })?;
        let socket = Self::new(socket)?;
        // With smaller buffers, fewer datagrams wait.
        let _ = socket.state.set_recv_buffer_size((&socket.socket).into(), KERNEL_BUFFER_BYTES);
        let _ = socket.state.set_send_buffer_size((&socket.socket).into(), KERNEL_BUFFER_BYTES);
        Ok(socket)
    }

    /// A socket that exchanges datagrams with one address.
    pub(super) fn connect(address: SocketAddr) -> io::Result<Self> {
        let any: IpAddr =
            if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = std::net::UdpSocket::bind((any, 0))?;
        socket.connect(address)?;
        Self::new(socket)
    }

    fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        allow_fragments(&socket)?;
        Ok(Self { socket: UdpSocket::from_std(socket)?, state })
    }

    /// Waits for datagrams, and calls `each` for those with a common source, of at most one batch.
    ///
    /// # Errors
    /// Errors of the system. One of them is a refusal by the address of [`connect`](Self::connect).
    pub(super) async fn receive(&self, mut each: impl FnMut(&RecvMeta, Run<'_>)) -> io::Result<()> {
        // A refusal makes a socket readable for the system, and has an interest of its own in tokio.
        let interest = Interest::READABLE | Interest::ERROR;
        self.socket.async_io(interest, || self.receive_batch(&mut each)).await
    }

    fn receive_batch(&self, mut each: impl FnMut(&RecvMeta, Run<'_>)) -> io::Result<()> {
        BUFFERS.with_borrow_mut(|buffers| {
            let mut metas = [RecvMeta::default(); MAX_MESSAGES_PER_CALL];
            let count = {
                let mut buffers = buffers.chunks_exact_mut(BUFFER_BYTES);
                let mut slices: [IoSliceMut<'_>; MAX_MESSAGES_PER_CALL] =
                    std::array::from_fn(|_| IoSliceMut::new(buffers.next().unwrap_or_default()));
                self.state.recv(UdpSockRef::from(&self.socket), &mut slices, &mut metas)?
            };
            let mut messages = metas.iter().take(count).enumerate().peekable();
            while let Some((index, first)) = messages.next() {
                let begin = index * BUFFER_BYTES;
                let mut end = begin + first.len;
                // Datagrams of one size from one source are sent in one call, as if the system had joined them.
                while let Some((index, meta)) = messages.next_if(|(_, meta)| {
                    (end - begin).checked_rem(first.stride) == Some(0)
                        && (meta.addr, meta.dst_ip, meta.stride) == (first.addr, first.dst_ip, first.stride)
                        && end + meta.len <= begin + BUFFER_BYTES
                }) {
                    buffers.copy_within(index * BUFFER_BYTES..index * BUFFER_BYTES + meta.len, end);
                    end += meta.len;
                }
                each(first, Run::new(buffers.get(begin..end).unwrap_or_default(), first.stride));
            }
            Ok(())
        })
    }

    /// Sends one datagram, or several of a size, at most [`most`](Self::most).
    pub(super) fn send(
        &self,
        to: Destination,
        contents: &[u8],
        segment_size: Option<usize>,
    ) -> io::Result<()> {
        self.send_on(self, to, contents, segment_size)
    }

    /// Sends on another socket, with what has been learnt of segments here: a failure is not that of the other socket.
    pub(super) fn send_on(
        &self,
        other: &Self,
        Destination { to, from }: Destination,
        contents: &[u8],
        segment_size: Option<usize>,
    ) -> io::Result<()> {
        let transmit = Transmit { destination: to, ecn: None, contents, segment_size, src_ip: from };
        // Without the readiness of tokio: a new socket has none, and a full buffer drops the datagram anyway.
        self.state.try_send(UdpSockRef::from(&other.socket), &transmit)
    }

    /// The most datagrams of one call.
    pub(super) fn most(&self) -> usize {
        self.state.max_gso_segments()
    }
}

/// The address that datagrams are sent to, and the one of this machine that they are sent from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Destination {
    pub(super) to: SocketAddr,
    /// The system chooses if there is none.
    pub(super) from: Option<IpAddr>,
}

/// Binds a socket whose unspecified address is also that of IPv4, whatever the default of the system is.
fn udp_v6(address: SocketAddrV6) -> io::Result<std::net::UdpSocket> {
    let socket = socket(AddressFamily::INET6, SocketType::DGRAM, None)?;
    fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    sockopt::set_ipv6_v6only(&socket, !address.ip().is_unspecified())?;
    bind(&socket, &address)?;
    Ok(socket.into())
}

/// Only nix can unset the option `IPV6_DONTFRAG` that quinn-udp sets.
#[cfg(target_os = "linux")]
fn allow_fragments(socket: &std::net::UdpSocket) -> io::Result<()> {
    use nix::sys::socket::{setsockopt, sockopt::Ipv6DontFrag};
    use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};

    // The defaults of the system: the size of packets follows the path, and larger datagrams become fragments.
    sockopt::set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::WANT)?;
    if socket.local_addr()?.is_ipv6() {
        sockopt::set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::WANT)?;
        setsockopt(socket, Ipv6DontFrag, &false)?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn allow_fragments(_: &std::net::UdpSocket) -> io::Result<()> {
    Ok(())
}
