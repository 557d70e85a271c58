//! Of several replicas one writes, and all serve the same.

mod lease;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use pingsix_gateway_api::controller::ControllerOptions;
use pingsix_gateway_api::leader::{LeaseOptions, lease_name};
use pingsix_sink::EmbeddedEtcd;
use pingsix_test_cluster::TestCluster;
use pingsix_translate::{DEFAULT_CONTROLLER_NAME, Kind};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::test_env::expected_state::held;
use crate::test_env::shop::{self, GATEWAY, PLANE, ROUTE, SERVICE};
use crate::test_env::{Running, TestEnv, eventually, fast_retries};

const LEASE_DURATION: Duration = Duration::from_secs(4);

/// The field manager identifies the writes of a leader.
pub(crate) fn options(replica: &str) -> ControllerOptions {
    let mut lease = LeaseOptions::new("default", DEFAULT_CONTROLLER_NAME, replica);
    lease.duration = LEASE_DURATION;
    lease.renew_deadline = Duration::from_secs(3);
    lease.retry = Duration::from_millis(500);
    let mut options = fast_retries();
    options.lease = Some(lease);
    options.writer.field_manager = replica.into();
    options.writer.timeout = Duration::from_secs(2);
    options
}

/// Stands between a client and the API server, and may let nothing through, without a word to either.
pub(crate) struct Proxy {
    address: SocketAddr,
    pub(crate) is_closed: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn to(cluster: &TestCluster) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let is_closed = watch::Sender::new(false);
        let server = cluster.url().authority().unwrap().as_str().to_owned();
        let closed = is_closed.clone();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(&server).await else { continue };
                let ((from_client, to_client), (from_server, to_server)) =
                    (client.into_split(), server.into_split());
                tokio::spawn(forward(from_client, to_server, closed.subscribe()));
                tokio::spawn(forward(from_server, to_client, closed.subscribe()));
            }
        });
        Self { address, is_closed, task }
    }

    /// The administrator, by this way.
    pub(crate) async fn client(&self, cluster: &TestCluster) -> Client {
        let path = cluster.kubeconfig(cluster.administrator()).unwrap();
        let kubeconfig = Kubeconfig::read_from(path).unwrap();
        let mut config =
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        config.cluster_url = format!("https://{}", self.address).parse().unwrap();
        Client::try_from(config).unwrap()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut is_closed: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = from.read(&mut buffer).await?;
        if is_closed.wait_for(|is_closed| !is_closed).await.is_err() || read == 0 {
            return to.shutdown().await;
        }
        to.write_all(buffer.get(..read).unwrap_or_default()).await?;
    }
}

/// The writers of the status of a route.
async fn writer(test_env: &TestEnv, route: &str) -> Vec<String> {
    let object = test_env.object(Kind::HttpRoute, "default", route).await;
    let managers = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let of_status = managers.iter().filter(|managed| managed["subresource"] == "status");
    of_status.map(|managed| managed["manager"].as_str().unwrap_or_default().to_owned()).collect()
}

async fn holder(test_env: &TestEnv) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(test_env.cluster.admin(), "default");
    let lease = leases.get_opt(&lease_name(DEFAULT_CONTROLLER_NAME)).await.unwrap()?;
    let holder = lease.spec?.holder_identity?;
    Some(holder.split('_').next().unwrap_or_default().to_owned())
}

/// Makes a route, and waits until this replica and no other has judged it. Returns how long that took.
async fn judged_by(test_env: &TestEnv, route: &str, replica: &str) -> Duration {
    let started = Instant::now();
    test_env.apply(&shop::route(route)).await;
    test_env
        .wait_for_condition(Kind::HttpRoute, "default", route, "/parents/0", "Accepted=True/Accepted")
        .await;
    let took = started.elapsed();
    assert_eq!(writer(test_env, route).await, [replica], "{route}");
    took
}

async fn both_serve(one: &EmbeddedEtcd, other: &EmbeddedEtcd, host: &str) {
    let scope = pingsix_sink::Scope::new(PLANE).unwrap();
    let has_it = |etcd: &EmbeddedEtcd| {
        let documents = etcd.documents(&scope);
        documents
            .iter()
            .flat_map(|documents| documents.iter())
            .any(|document| String::from_utf8_lossy(&document.value).contains(host))
    };
    eventually(host, || has_it(one) && has_it(other) && held(one) == held(other)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_writes_and_all_serve() {
    let Some(test_env) = TestEnv::start().await else { return };
    for manifests in [GATEWAY, SERVICE, ROUTE] {
        test_env.apply(manifests).await;
    }
    let proxy = Proxy::to(&test_env.cluster).await;
    let (first, second) = (EmbeddedEtcd::builder().start().await.unwrap(), test_env.etcd.clone());
    let mut one = Running::start(proxy.client(&test_env.cluster).await, &first, options("one"));
    one.wait_until_ready().await;
    judged_by(&test_env, "r1", "one").await;
    assert_eq!(holder(&test_env).await.as_deref(), Some("one"));
    let mut two = Running::start(test_env.cluster.admin(), &second, options("two"));
    two.wait_until_ready().await;
    judged_by(&test_env, "r2", "one").await;
    both_serve(&first, &second, "r2.example").await;

    // One that does not reach the API server any more is replaced, and does not write when it does again.
    proxy.is_closed.send_replace(true);
    let took = judged_by(&test_env, "r3", "two").await;
    assert!(took < LEASE_DURATION + Duration::from_secs(4), "{took:?}");
    assert_eq!(holder(&test_env).await.as_deref(), Some("two"));
    assert_eq!(
        first.documents(&pingsix_sink::Scope::new(PLANE).unwrap()).map(|held| held.is_empty()),
        Some(false)
    );
    proxy.is_closed.send_replace(false);
    both_serve(&first, &second, "r3.example").await;
    judged_by(&test_env, "r4", "two").await;
    both_serve(&first, &second, "r4.example").await;
    sleep(Duration::from_secs(1)).await;
    for (route, replica) in [("r1", "one"), ("r2", "one"), ("r3", "two"), ("r4", "two")] {
        assert_eq!(writer(&test_env, route).await, [replica], "{route}");
    }

    // One that stops lets go.
    let stopped = Instant::now();
    two.stop().await;
    judged_by(&test_env, "r5", "one").await;
    let took = stopped.elapsed();
    assert!(took < Duration::from_secs(3), "{took:?}");

    // One that is killed cannot.
    let mut three = Running::start(test_env.cluster.admin(), &second, options("three"));
    three.wait_until_ready().await;
    let killed = Instant::now();
    one.kill().await;
    judged_by(&test_env, "r6", "three").await;
    let took = killed.elapsed();
    assert!(took < LEASE_DURATION + Duration::from_secs(3), "{took:?}");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(writer(&test_env, "r5").await, ["one"], "what was said is not said again");
    three.stop().await;
}
