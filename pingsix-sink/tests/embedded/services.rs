//! The services beside KV and Watch, and the listener.

use crate::wire;
use std::time::Duration;

use crate::wire::Served;
use pingsix_sink::contract::documents::desired;
use pingsix_sink::embedded::EmbeddedError;
use pingsix_sink::proto::etcdserverpb::auth_client::AuthClient;
use pingsix_sink::proto::etcdserverpb::cluster_client::ClusterClient;
use pingsix_sink::proto::etcdserverpb::lease_client::LeaseClient;
use pingsix_sink::proto::etcdserverpb::maintenance_client::MaintenanceClient;
use pingsix_sink::proto::etcdserverpb::{
    AlarmRequest, AuthStatusRequest, AuthenticateRequest, LeaseGrantRequest, LeaseKeepAliveRequest,
    LeaseLeasesRequest, LeaseRevokeRequest, LeaseTimeToLiveRequest, MemberListRequest, StatusRequest,
};
use pingsix_sink::{EmbeddedEtcd, Sink};
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
async fn leases_are_granted_kept_and_revoked() {
    let served = served().await;
    let mut client = LeaseClient::new(served.channel().await);
    let granted = client.lease_grant(LeaseGrantRequest { ttl: 60, id: 0 }).await.unwrap().into_inner();
    assert!(granted.id != 0 && granted.ttl == 60 && granted.error.is_empty());
    assert_eq!(granted.header.unwrap().revision, served.etcd.revision().get());
    let named = client.lease_grant(LeaseGrantRequest { ttl: 0, id: 77 }).await.unwrap().into_inner();
    assert_eq!((named.id, named.ttl), (77, 1));
    let again = client.lease_grant(LeaseGrantRequest { ttl: 9, id: 77 }).await.unwrap_err();
    assert_eq!(
        (again.code(), again.message()),
        (Code::FailedPrecondition, "etcdserver: lease already exists")
    );
    let long = client.lease_grant(LeaseGrantRequest { ttl: i64::MAX, id: 0 }).await.unwrap_err();
    assert_eq!(long.message(), "etcdserver: too large lease TTL");

    let asked = [granted.id, 12_345].map(|id| LeaseKeepAliveRequest { id });
    let mut kept = client.lease_keep_alive(tokio_stream::iter(asked)).await.unwrap().into_inner();
    assert_eq!(kept.message().await.unwrap().unwrap().ttl, 60);
    assert_eq!(kept.message().await.unwrap().unwrap().ttl, 0, "an unknown lease has no time left");
    assert!(kept.message().await.unwrap().is_none());

    let all = client.lease_leases(LeaseLeasesRequest {}).await.unwrap().into_inner().leases;
    assert!(all.iter().any(|lease| lease.id == granted.id));
    let id = granted.id;
    let left =
        client.lease_time_to_live(LeaseTimeToLiveRequest { id, keys: true }).await.unwrap().into_inner();
    assert!((58..=60).contains(&left.ttl) && left.granted_ttl == 60 && left.keys.is_empty());
    client.lease_revoke(LeaseRevokeRequest { id }).await.unwrap();
    let gone =
        client.lease_time_to_live(LeaseTimeToLiveRequest { id, keys: false }).await.unwrap().into_inner();
    assert_eq!((gone.ttl, gone.granted_ttl), (-1, 0));
    let twice = client.lease_revoke(LeaseRevokeRequest { id }).await.unwrap_err();
    assert_eq!((twice.code(), twice.message()), (Code::NotFound, "etcdserver: requested lease not found"));
}

#[tokio::test]
async fn cluster_maintenance_and_auth_answer_what_clients_ask() {
    let served = served().await;
    let members = ClusterClient::new(served.channel().await)
        .member_list(MemberListRequest { linearizable: true })
        .await
        .unwrap()
        .into_inner()
        .members;
    assert_eq!(members.len(), 1);
    assert_eq!(members[0].client_ur_ls, [format!("http://{}", served.address)]);

    let mut maintenance = MaintenanceClient::new(served.channel().await);
    let status = maintenance.status(StatusRequest {}).await.unwrap().into_inner();
    assert_eq!(status.leader, members[0].id);
    assert!(status.version.starts_with("3.") && status.db_size > 0 && status.errors.is_empty());
    assert_eq!(status.header.unwrap().revision, served.etcd.revision().get());
    let alarms = maintenance.alarm(AlarmRequest::default()).await.unwrap().into_inner();
    assert!(alarms.alarms.is_empty());
    let set = AlarmRequest { action: 1, ..AlarmRequest::default() };
    assert_eq!(maintenance.alarm(set).await.unwrap_err().code(), Code::FailedPrecondition);

    let mut auth = AuthClient::new(served.channel().await);
    assert!(!auth.auth_status(AuthStatusRequest {}).await.unwrap().into_inner().enabled);
    let login = AuthenticateRequest { name: "root".into(), password: "secret".into() };
    let refused = auth.authenticate(login).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert_eq!(refused.message(), "etcdserver: authentication is not enabled");
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
