//! A broken network with real connections: packets are lost, and both ends stay unaware.

use std::net::SocketAddr;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use kube::{Client, Config};
use pingsix_translate::Kind;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use super::consumer::{Consumer, route};
use crate::fixture::api_server::ApiServer;
use crate::watch::{BackoffBounds, WatchOptions};

const ROUTE: Kind = Kind::HttpRoute;

/// Serves on a socket, until the test is over.
async fn listen(server: ApiServer) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let server = server.clone();
            let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                // The test has no other writer.
                server.clone().call(request.map(|_| Body::empty()))
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

/// The fate of data in a network. A connection keeps the number of its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Network {
    /// Connections with smaller numbers are cut.
    cut_below: usize,
    /// All connections are cut.
    is_cut: bool,
}

/// A proxy that may be cut: connections stay open, and no byte is forwarded.
async fn proxy_to(
    address: SocketAddr,
    network: watch::Receiver<Network>,
) -> (SocketAddr, watch::Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap();
    let (made, count) = watch::channel(0);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let number = *made.borrow();
            made.send_replace(number + 1);
            let server = TcpStream::connect(address).await.unwrap();
            let ((from_client, to_client), (from_server, to_server)) =
                (client.into_split(), server.into_split());
            tokio::spawn(forward(from_client, to_server, number, network.clone()));
            tokio::spawn(forward(from_server, to_client, number, network.clone()));
        }
    });
    (own, count)
}

async fn forward(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    number: usize,
    mut network: watch::Receiver<Network>,
) {
    let mut buffer = [0; 4096];
    loop {
        let read = from.read(&mut buffer).await.unwrap_or(0);
        // A cut connection is not even closed.
        let goes_through =
            network.wait_for(|network| !network.is_cut && number >= network.cut_below).await.is_ok();
        if !goes_through || read == 0 || to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn a_silent_cut_of_the_network_is_noticed_in_time_and_misses_no_event() {
    let server = ApiServer::default();
    server.apply(ROUTE, route("shop", "old"));
    let (network, is) = watch::channel(Network::default());
    let (address, made) = proxy_to(listen(server.clone()).await, is).await;
    let client = Client::try_from(Config::new(format!("http://{address}").parse().unwrap())).unwrap();
    let options = WatchOptions {
        silence: Duration::from_millis(300),
        request_timeout: Duration::from_millis(300),
        backoff: BackoffBounds {
            min: Duration::from_millis(20),
            max: Duration::from_millis(100),
            ..BackoffBounds::default()
        },
        ..WatchOptions::default()
    };
    let stop = CancellationToken::new();
    let _ends = stop.clone().drop_guard();
    let mut consumer = Consumer::with_client(client, options, stop);
    let all = async {
        consumer.complete().await;
        consumer.until("routes are watched", |consumer| consumer.is_watching(ROUTE)).await;

        // Every connection that is there is dead, and others are made.
        network.send_replace(Network { cut_below: *made.borrow(), is_cut: false });
        server.apply(ROUTE, route("shop", "new"));
        server.remove(ROUTE, "shop", "old");
        consumer
            .until("what happened is seen", |consumer| {
                consumer.has(ROUTE, "shop", "new") && !consumer.has(ROUTE, "shop", "old")
            })
            .await;

        // The network is cut: the controller reports that, and does not take the silence for quiet.
        network.send_replace(Network { cut_below: 0, is_cut: true });
        consumer
            .until("it is told", |consumer| {
                consumer.count_logged("Unreachable") > 0 && !consumer.is_watching(ROUTE)
            })
            .await;
        server.apply(ROUTE, route("shop", "later"));
        network.send_replace(Network { cut_below: *made.borrow(), is_cut: false });
        consumer
            .until("it goes on", |consumer| {
                consumer.is_watching(ROUTE) && consumer.has(ROUTE, "shop", "later")
            })
            .await;
    };
    // Far more than it takes; without a bound it would take minutes for each.
    tokio::time::timeout(Duration::from_mins(1), all).await.unwrap();
}
