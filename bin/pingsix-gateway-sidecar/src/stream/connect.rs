//! Connecting to a node of an upstream.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::metrics::PortMetrics;
use super::outcome::Reason;
use super::socket;
use super::upstream::{Active, Nodes};

/// The most nodes that are tried for one connection, and the time for all of them.
const MAX_NODES: usize = 3;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects to a node, each attempt within `time`. If a node cannot be reached, it rests, and another one is tried.
///
/// # Errors
/// [`Reason::Unreachable`] if no node could be reached; [`Reason::Resources`] if this process lacks what a connection
/// needs, which is no failure of a node.
pub(super) async fn connect(
    nodes: &Nodes,
    time: Duration,
    metrics: &PortMetrics,
) -> Result<(TcpStream, Active), Reason> {
    let begin = Instant::now();
    let mut tried: Vec<SocketAddr> = Vec::new();
    while tried.len() < MAX_NODES
        && let left = CONNECT_TIMEOUT.saturating_sub(begin.elapsed())
        && !left.is_zero()
        && let Some(node) = nodes.pick(&tried, Instant::now())
    {
        let active = node.enter();
        let address = active.node().address;
        let failure = match timeout(time.min(left), TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                active.node().succeeded();
                // A socket without these options still serves.
                let _ = socket::set_options(&stream);
                return Ok((stream, active));
            }
            Ok(Err(error)) if socket::is_ours(&error) => return Err(Reason::Resources),
            Ok(Err(error)) => error,
            Err(elapsed) => elapsed.into(),
        };
        tracing::debug!(%address, error = %failure, "cannot connect to a node");
        metrics.connect_failures.inc();
        active.node().failed(Instant::now());
        tried.push(address);
    }
    Err(Reason::Unreachable)
}
