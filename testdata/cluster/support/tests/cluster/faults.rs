//! Faults that tests inject into the processes of a cluster.

use std::time::Duration;

use pingsix_test_cluster::{Error, TestCluster};
use tokio::time::timeout;

use crate::support::{eventually, exists, make, names};

/// Long for an API server that answers, short for one that does not.
const NO_ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

#[tokio::test]
async fn a_paused_api_server_answers_no_client_until_it_goes_on() {
    let Some(cluster) = TestCluster::builder().crds(None).start_or_skip().await else { return };
    let client = cluster.admin();
    make(&client, "before").await.unwrap();
    cluster.api_server().pause().await.unwrap();
    assert!(timeout(NO_ANSWER_TIMEOUT, names(&client)).await.is_err());
    assert!(cluster.api_server().pid().await.is_some());
    cluster.api_server().resume().await.unwrap();
    eventually("it answers again", || async { names(&client).await.is_ok() }).await;
}

#[tokio::test]
async fn a_killed_api_server_comes_back_at_its_address_with_its_objects() {
    let Some(cluster) = TestCluster::builder().crds(None).start_or_skip().await else { return };
    let client = cluster.admin();
    make(&client, "kept").await.unwrap();
    let pid = cluster.api_server().pid().await.unwrap();
    cluster.api_server().kill().await.unwrap();
    assert!(!exists(pid));
    assert_eq!(cluster.api_server().pid().await, None);
    assert!(names(&client).await.is_err());
    let error = cluster.api_server().pause().await.unwrap_err();
    assert!(matches!(error, Error::NotRunning { process: "kube-apiserver" }), "{error}");

    cluster.api_server().start().await.unwrap();
    assert!(names(&client).await.unwrap().contains(&"kept".to_owned()));
    let running = cluster.api_server().pid().await;
    assert_ne!(running, Some(pid));
    // Starting what runs changes nothing.
    cluster.api_server().start().await.unwrap();
    assert_eq!(cluster.api_server().pid().await, running);
}

#[tokio::test]
async fn a_stopped_api_server_ends_also_while_it_is_paused() {
    let Some(cluster) = TestCluster::builder().crds(None).start_or_skip().await else { return };
    let pid = cluster.api_server().pid().await.unwrap();
    cluster.api_server().pause().await.unwrap();
    cluster.api_server().stop().await.unwrap();
    assert!(!exists(pid));
    cluster.api_server().start().await.unwrap();
    names(&cluster.admin()).await.unwrap();
}

#[tokio::test]
async fn an_api_server_outlives_the_death_of_etcd() {
    let Some(cluster) = TestCluster::builder().crds(None).start_or_skip().await else { return };
    let client = cluster.admin();
    make(&client, "kept").await.unwrap();
    cluster.etcd().kill().await.unwrap();
    let unanswered = timeout(NO_ANSWER_TIMEOUT, make(&client, "lost")).await;
    assert!(!matches!(unanswered, Ok(Ok(_))));
    cluster.etcd().start().await.unwrap();
    eventually("objects can be made again", || async { make(&client, "after").await.is_ok() }).await;
    assert!(names(&client).await.unwrap().contains(&"kept".to_owned()));

    cluster.etcd().stop().await.unwrap();
    assert_eq!(cluster.etcd().pid().await, None);
    // Killing a dead process has no effect.
    cluster.etcd().kill().await.unwrap();
}
