//! Connections that wait for an answer to each message.

use std::net::SocketAddr;
use std::time::Instant;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::{MESSAGE_BYTES, end};
use crate::report::percentile;

const CONNECTIONS: usize = 100;

/// The number of exchanges, their seconds, and the percentiles 50 and 99 of the time of one in microseconds.
pub(super) async fn run(address: SocketAddr) -> Vec<f64> {
    let mut streams = Vec::new();
    for _ in 0..CONNECTIONS {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        streams.push(stream);
    }
    let (started, end) = (Instant::now(), end());
    let mut tasks: JoinSet<Vec<f64>> =
        streams.into_iter().map(|stream| exchange_until(stream, end)).collect();
    let mut times = Vec::new();
    while let Some(of_one) = tasks.join_next().await {
        times.extend(of_one.unwrap());
    }
    let seconds = started.elapsed().as_secs_f64();
    vec![times.len() as f64, seconds, percentile(&times, 50), percentile(&times, 99)]
}

async fn exchange_until(mut stream: TcpStream, end: Instant) -> Vec<f64> {
    let (mut times, mut message) = (Vec::new(), [7; MESSAGE_BYTES]);
    let mut begin = Instant::now();
    while begin < end {
        stream.write_all(&message).await.unwrap();
        stream.read_exact(&mut message).await.unwrap();
        let now = Instant::now();
        times.push((now - begin).as_secs_f64() * 1e6);
        begin = now;
    }
    times
}
