use std::net::SocketAddr;
use std::time::Duration;

/// The bounds of a responder.
///
/// Every default suits a responder that only PingSIX talks to.
#[derive(Clone, Debug)]
pub struct Options {
    /// Connections served at a time; at least 1.
    ///
    /// One more is accepted and waits, and the next connection that is idle gives way to it.
    pub max_connections: usize,
    /// Bytes of a request's head; at least 8192. Larger ones are answered with 431.
    ///
    /// PingSIX lets pass far larger heads than most backends, hence a generous default: 64 KiB.
    pub max_header_bytes: usize,
    /// The time limit of the head of a request, and of a new connection until the end of its first one.
    pub header_timeout: Duration,
    /// Bytes of a request body that are read before an HTTP/1 request is answered; 64 KiB.
    ///
    /// A larger body does not change the answer, but costs its connection. So that the answer is not lost with it,
    /// up to 16 times as many bytes are read after the answer; in HTTP/2, where nothing is read before it, too.
    pub max_body_bytes: usize,
    /// The time limit of reading a body before the answer, and of reading it after the answer.
    pub body_timeout: Duration,
    /// The time limit of a connection without a request.
    pub idle_timeout: Duration,
    /// The time limit of connections at a shutdown; then they are cut.
    pub shutdown_grace: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_connections: 1024,
            max_header_bytes: 64 * 1024,
            header_timeout: Duration::from_secs(10),
            max_body_bytes: 64 * 1024,
            body_timeout: Duration::from_secs(5),
            // PingSIX keeps idle connections without a limit of its own, so a short one would only cost reconnects.
            idle_timeout: Duration::from_mins(2),
            shutdown_grace: Duration::from_secs(10),
        }
    }
}

/// The clients that may reach a responder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Processes of this machine, or of this Pod: any other address is refused.
    #[default]
    Loopback,
    /// All clients that reach the address.
    Anywhere,
}

impl Reach {
    /// Whether the responder may listen on this address.
    pub fn allows(self, address: SocketAddr) -> bool {
        self == Self::Anywhere || address.ip().to_canonical().is_loopback()
    }
}
