//! Options of sockets, and listeners.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::sleep;

/// A peer that vanished is noticed after 60 s + 4 x 15 s.
const KEEPALIVE_IDLE: Duration = Duration::from_mins(1);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_PROBES: u32 = 4;
/// The time between two attempts to listen on a port.
const LISTEN_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The connections that the system keeps until they are accepted; it may allow fewer.
const BACKLOG: u32 = 4_096;

/// Sends small segments at once, and notices peers that vanished. Accepted sockets inherit this from the listener.
pub(super) fn set_options(socket: impl AsFd) -> rustix::io::Result<()> {
    let socket = socket.as_fd();
    sockopt::set_tcp_nodelay(socket, true)?;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(socket, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(socket, KEEPALIVE_PROBES)
}

/// Listens on a port. The unspecified IPv6 address takes IPv4 too.
pub(super) fn listen(address: IpAddr, port: u16) -> io::Result<TcpListener> {
    on_address(address, port, listen_on)
}

/// Opens a socket on an address; the unspecified IPv6 address falls back to that of IPv4 where IPv6 is missing.
pub(super) fn on_address<S>(
    address: IpAddr,
    port: u16,
    open: impl Fn(SocketAddr) -> io::Result<S>,
) -> io::Result<S> {
    match open(SocketAddr::new(address, port)) {
        Err(error) if address.is_ipv6() && address.is_unspecified() && lacks_ipv6(&error) => {
            open(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port))
        }
        result => result,
    }
}

/// Listens at the next attempt that succeeds, one in each interval.
pub(super) async fn retry<S>(listen: impl Fn() -> Result<S, String>) -> S {
    loop {
        sleep(LISTEN_RETRY_INTERVAL).await;
        if let Ok(socket) = listen() {
            return socket;
        }
    }
}

fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv6() { TcpSocket::new_v6()? } else { TcpSocket::new_v4()? };
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, !address.ip().is_unspecified())?;
    }
    // The connections of a former listener must not keep the port. Two listeners still cannot have it.
    socket.set_reuseaddr(true)?;
    set_options(&socket)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn lacks_ipv6(error: &io::Error) -> bool {
    is_any(error, &[Errno::AFNOSUPPORT, Errno::ADDRNOTAVAIL])
}

/// Whether a failure is a shortage of descriptors or memory.
pub(super) fn is_shortage(error: &io::Error) -> bool {
    is_any(error, &[Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM])
}

/// Whether a failure is one of this process or its machine.
pub(super) fn is_ours(error: &io::Error) -> bool {
    is_shortage(error) || is_any(error, &[Errno::ADDRNOTAVAIL, Errno::ADDRINUSE, Errno::AGAIN])
}

/// Whether a failure is one of these.
fn is_any(error: &io::Error, errnos: &[Errno]) -> bool {
    errnos.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use tokio::net::TcpStream;

    use super::*;

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
    }

    #[test]
    fn accepted_connections_have_the_options_of_the_listener() {
        run(async {
            let listener = listen(Ipv4Addr::LOCALHOST.into(), 0).unwrap();
            let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (accepted, _) = listener.accept().await.unwrap();
            assert!(
                sockopt::tcp_nodelay(&accepted).unwrap() && sockopt::socket_keepalive(&accepted).unwrap()
            );
            assert_eq!(sockopt::tcp_keepidle(&accepted).unwrap(), KEEPALIVE_IDLE);
            assert_eq!(sockopt::tcp_keepintvl(&accepted).unwrap(), KEEPALIVE_INTERVAL);
            assert_eq!(sockopt::tcp_keepcnt(&accepted).unwrap(), KEEPALIVE_PROBES);
        });
    }

    #[test]
    fn the_unspecified_address_takes_ipv4() {
        run(async {
            let listener = listen(Ipv6Addr::UNSPECIFIED.into(), 0).unwrap();
            let port = listener.local_addr().unwrap().port();
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        });
    }

    #[test]
    fn a_port_has_one_listener() {
        run(async {
            let first = listen(Ipv4Addr::LOCALHOST.into(), 0).unwrap();
            let port = first.local_addr().unwrap().port();
            assert_eq!(
                listen(Ipv4Addr::LOCALHOST.into(), port).unwrap_err().kind(),
                io::ErrorKind::AddrInUse
            );
        });
    }
}
