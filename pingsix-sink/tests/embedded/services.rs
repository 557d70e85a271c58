//! The services beside KV and Watch, and the listener.

use crate::wire;
use std::time::Duration;

use crate::wire::Served;
use pingsix_sink::contract::documents::desired;
use pingsix_sink::embedded::EmbeddedError;
use pingsix_sink::{EmbeddedEtcd, Sink};
use pingsix_test_programs::proto::etcdserverpb::maintenance_client::MaintenanceClient;
use pingsix_test_programs::proto::etcdserverpb::{AlarmRequest, StatusRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tonic::Code;

async fn served() -> Served {
    let served = Served::start(EmbeddedEtcd::builder()).await;
    served.etcd.publish(&desired("/p/web", &[("routes/a", "A")])).await.unwrap();
    served.etcd.open();
    served
}

#[tokio::test]
async fn health_checks_are_answered() {
    let served = served().await;
    let mut maintenance = MaintenanceClient::new(served.channel().await);
    let status = maintenance.status(StatusRequest {}).await.unwrap().into_inner();
    assert!(status.version.starts_with("3.") && status.db_size > 0 && status.errors.is_empty());
    assert_eq!(status.header.unwrap().revision, served.etcd.revision().get());
    let alarms = maintenance.alarm(AlarmRequest::default()).await.unwrap().into_inner();
    assert!(alarms.alarms.is_empty());
    let set = AlarmRequest { action: 1, ..AlarmRequest::default() };
    assert_eq!(maintenance.alarm(set).await.unwrap_err().code(), Code::FailedPrecondition);
}

#[tokio::test]
async fn plaintext_beyond_loopback_needs_the_option_that_the_error_names() {
    let bind = async || TcpListener::bind("0.0.0.0:0").await.unwrap();
    let token = CancellationToken::new();
    token.cancel();
    let etcd = EmbeddedEtcd::builder().start().await.unwrap();
    let error = etcd.serve(bind().await, token.clone()).await.unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(EmbeddedError::PlaintextBeyondLoopback { .. })));
    assert!(!error.is_retryable());
    assert!(error.to_string().contains("allow_plaintext_beyond_loopback"), "{error}");
    let allowed = EmbeddedEtcd::builder().allow_plaintext_beyond_loopback().start().await.unwrap();
    allowed.serve(bind().await, token).await.unwrap();
}

#[tokio::test]
async fn one_server_serves_two_listeners_and_can_serve_again() {
    let served = served().await;
    let second = Served::serve(served.etcd.clone()).await;
    assert_eq!(second.list("/p/web/").await.unwrap().count, 1);
    let etcd = served.stop().await;
    assert_eq!(second.list("/p/web/").await.unwrap().count, 1);
    assert_eq!(Served::serve(etcd).await.list("/p/web/").await.unwrap().count, 1);
}

#[tokio::test]
async fn a_connection_whose_client_answers_no_ping_is_closed() {
    let keepalive = Duration::from_millis(100);
    let served = Served::start(EmbeddedEtcd::builder().keepalive(keepalive, keepalive)).await;
    let mut connection = TcpStream::connect(served.address).await.unwrap();
    // The preface of HTTP/2 and an empty SETTINGS frame; afterwards the client is silent.
    connection.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let mut received = Vec::new();
    let closed = tokio::time::timeout(wire::WAIT_TIMEOUT, connection.read_to_end(&mut received)).await;
    assert!(closed.is_ok(), "the server gives up on the connection");
}
