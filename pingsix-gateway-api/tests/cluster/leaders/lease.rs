//! Two replicas and a Lease.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::{Api, Client};
use pingsix_gateway_api::leader::{Elector, Leadership, LeaseOptions};
use pingsix_test_cluster::TestCluster;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

fn candidate(client: &Client, pod: &str) -> (Leadership, CancellationToken, JoinHandle<()>) {
    let options = LeaseOptions {
        duration: Duration::from_secs(3),
        renew_deadline: Duration::from_secs(2),
        retry: Duration::from_millis(500),
        ..defaults(pod)
    };
    stands(client, options)
}

fn defaults(pod: &str) -> LeaseOptions {
    LeaseOptions::new("default", "pingsix.io/gateway-controller", pod)
}

fn stands(client: &Client, options: LeaseOptions) -> (Leadership, CancellationToken, JoinHandle<()>) {
    let (elector, leadership) = Elector::new(client.clone(), options).unwrap();
    let stop = CancellationToken::new();
    let task = tokio::spawn(elector.run(stop.clone()));
    (leadership, stop, task)
}

async fn spec(client: &Client) -> LeaseSpec {
    let leases = Api::<Lease>::namespaced(client.clone(), "default");
    leases.get("pingsix-io-gateway-controller").await.unwrap().spec.unwrap()
}

#[tokio::test]
async fn replicas_lead_one_after_the_other() {
    let Some(cluster) = TestCluster::builder().crds(None).start_or_skip().await else { return };
    let client = cluster.admin();
    let (mut one, stop_one, _) = candidate(&client, "one");
    one.gained().await;
    let (mut two, _stop_two, task_two) = candidate(&client, "two");
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(one.is_held() && !two.is_held());

    // One lets go: the other need not wait until the lease expires.
    stop_one.cancel();
    let start = Instant::now();
    two.gained().await;
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert!(!one.is_held());
    assert_eq!(spec(&client).await.lease_transitions, Some(1));

    // The other is killed: the next one waits.
    let (mut three, stop_three, task_three) = candidate(&client, "three");
    tokio::time::sleep(Duration::from_secs(1)).await;
    task_two.abort();
    let start = Instant::now();
    three.gained().await;
    assert!(start.elapsed() > Duration::from_secs(2), "{:?}", start.elapsed());
    assert!(!two.is_held());
    assert_eq!(spec(&client).await.lease_transitions, Some(2));

    stop_three.cancel();
    task_three.await.unwrap();
    assert_eq!(spec(&client).await.holder_identity, None);
}

#[tokio::test]
async fn by_default_a_killed_leader_is_followed_within_fifteen_seconds() {
    let Some(cluster) = TestCluster::builder().crds(None).start_or_skip().await else { return };
    let client = cluster.admin();
    let (mut one, _stop, task) = stands(&client, defaults("one"));
    one.gained().await;
    let (mut two, stop, other) = stands(&client, defaults("two"));
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(!two.is_held());
    // No renewal comes after this one.
    task.abort();
    let start = Instant::now();
    two.gained().await;
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    assert!(!one.is_held());
    stop.cancel();
    other.await.unwrap();
}
