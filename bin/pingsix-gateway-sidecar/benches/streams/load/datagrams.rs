//! Clients that wait for the answers of some datagrams at a time.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{MESSAGE_BYTES, end};

const CLIENTS: usize = 25;
/// The datagrams of a client without an answer. All together fit into the buffer of any socket, so none is lost.
const DATAGRAMS_IN_FLIGHT: u32 = 8;
/// The time after which datagrams are lost.
const LOSS_TIMEOUT: Duration = Duration::from_millis(200);

/// The number of answers, their seconds, and the number of lost datagrams.
pub(super) async fn run(address: SocketAddr) -> Vec<f64> {
    let (started, end) = (Instant::now(), end());
    let clients: JoinSet<(u32, u32)> = (0..CLIENTS).map(|_| exchange_until(address, end)).collect();
    let (mut answers, mut lost) = (0, 0);
    for (of_one, lost_of_one) in clients.join_all().await {
        answers += of_one;
        lost += lost_of_one;
    }
    vec![f64::from(answers), started.elapsed().as_secs_f64(), f64::from(lost)]
}

async fn exchange_until(address: SocketAddr, end: Instant) -> (u32, u32) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(address).await.unwrap();
    let (mut answers, mut lost, mut open) = (0, 0, 0);
    while Instant::now() < end {
        while open < DATAGRAMS_IN_FLIGHT {
            socket.send(&[7; MESSAGE_BYTES]).await.unwrap();
            open += 1;
        }
        if let Ok(received) = timeout(LOSS_TIMEOUT, socket.recv(&mut [0; MESSAGE_BYTES])).await {
            assert_eq!(received.unwrap(), MESSAGE_BYTES);
            answers += 1;
            open -= 1;
        } else {
            lost += open;
            open = 0;
        }
    }
    (answers, lost)
}
