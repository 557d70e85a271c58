//! Clusters start, each on its own.

use std::time::Duration;

use pingsix_test_cluster::{CONTROLLERS, TestCluster};

use crate::support::{code, eventually, make, names};

#[tokio::test]
async fn a_cluster_is_ready_in_bounded_time() {
    let Some(cluster) = TestCluster::builder().crds(None).start_or_skip().await else { return };
    let took = cluster.start_time();
    eprintln!("ready after {took:?}");
    // A few seconds on an idle machine; this bound is for one that is anything but.
    assert!(took < Duration::from_mins(1), "{took:?}");
    let version = cluster.admin().apiserver_version().await.unwrap();
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"));
    assert!(cluster.controller_manager().is_none());
}

#[tokio::test]
async fn two_clusters_do_not_meet() {
    let Some(one) = TestCluster::builder().crds(None).start_or_skip().await else { return };
    let other = TestCluster::builder().crds(None).beside(&one).start().await.unwrap();
    assert_ne!(one.url(), other.url());
    assert_ne!(one.folder(), other.folder());
    make(&one.admin(), "of-one").await.unwrap();
    make(&other.admin(), "of-other").await.unwrap();
    assert!(!names(&one.admin()).await.unwrap().contains(&"of-other".to_owned()));
    assert!(!names(&other.admin()).await.unwrap().contains(&"of-one".to_owned()));

    // A user of one cluster is unknown to the other.
    let stranger = other.client(one.administrator()).unwrap();
    assert_eq!(code(&names(&stranger).await), Some(401));
}

#[tokio::test]
async fn controllers_work_where_they_are_asked_for() {
    let Some(cluster) = TestCluster::builder().crds(None).controllers(CONTROLLERS).start_or_skip().await
    else {
        return;
    };
    cluster.namespace("team").await.unwrap();
    let accounts =
        kube::Api::<k8s_openapi::api::core::v1::ServiceAccount>::namespaced(cluster.admin(), "team");
    eventually("the namespace has its default service account", || async {
        accounts.get_opt("default").await.unwrap().is_some()
    })
    .await;

    let controllers = cluster.controller_manager().unwrap();
    let before = controllers.pid().await.unwrap();
    controllers.kill().await.unwrap();
    assert_eq!(controllers.pid().await, None);
    accounts.delete("default", &kube::api::DeleteParams::default()).await.unwrap();
    controllers.start().await.unwrap();
    assert_ne!(controllers.pid().await, Some(before));
    eventually("the account comes back", || async { accounts.get_opt("default").await.unwrap().is_some() })
        .await;
}

#[tokio::test]
async fn a_cluster_that_cannot_start_says_why() {
    let builder = TestCluster::builder().api_server_argument("--no-such-argument");
    match builder.start().await {
        // `start_or_skip` says so in the other tests.
        Err(pingsix_test_cluster::Error::NotBuilt(_)) => {}
        Err(pingsix_test_cluster::Error::Ended { process, log }) => {
            assert_eq!(process, "kube-apiserver");
            assert!(log.contains("--no-such-argument"), "{log}");
        }
        other => panic!("{other:?}"),
    }
}
