//! Unknown kinds do not count as empty: kinds without permission to read, and kinds whose definitions come and go.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams};
use pingsix_gateway_api::controller::Progress;
use pingsix_test_cluster::{Channel, TestCluster};
use pingsix_translate::Kind;
use tokio::time::sleep;

use crate::test_env::readers::{Served, list};
use crate::test_env::shop::{self, GATEWAY, PLANE, ROUTE, SERVICE};
use crate::test_env::{Running, TestEnv, eventually, eventually_async, fast_retries, roles};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_feed_opens_after_every_kind_is_known() {
    let Some(cluster) = TestCluster::builder().user("controller", &[]).start_or_skip().await else { return };
    let test_env = TestEnv::of(cluster).await;
    for manifests in [shop::CLASS, GATEWAY, SERVICE, ROUTE, &roles::split_roles("services", &fast_retries())]
    {
        test_env.apply(manifests).await;
    }
    let user = test_env.cluster.user("controller").unwrap();
    test_env.cluster.bind_cluster_role(user, roles::OTHER_RESOURCES_ROLE).await.unwrap();
    let client = test_env.cluster.client(user).unwrap();
    let served = Served::start(&test_env.etcd, None).await;
    let mut running = Running::start(client, &test_env.etcd, fast_retries());
    let names_it = |progress: &Progress| {
        let why = progress.unknown.get(&Kind::Service).cloned().unwrap_or_default();
        progress.unknown.len() == 1 && why.contains("services is forbidden")
    };
    running.wait_for(names_it).await;
    sleep(Duration::from_secs(2)).await;
    assert!(!running.progress.borrow().is_ready());
    assert_eq!(list(served.address, PLANE).await.unwrap_err().code(), tonic::Code::Unavailable);
    let route = test_env.object(Kind::HttpRoute, "default", "cart").await;
    assert!(route["status"].is_null(), "a verdict on half of a cluster: {:#}", route["status"]);

    let binding = test_env.cluster.bind_cluster_role(user, roles::SINGLE_RESOURCE_ROLE).await.unwrap();
    running.wait_until_ready().await;
    assert!(test_env.mentions(PLANE, "10.1.2.3:8080"));
    assert!(!list(served.address, PLANE).await.unwrap().kvs.is_empty());
    test_env.wait_for_route("Accepted=True/Accepted").await;

    // Known objects stay known without the permission.
    let bindings: Api<k8s_openapi::api::rbac::v1::ClusterRoleBinding> = Api::all(test_env.cluster.admin());
    bindings.delete(&binding.metadata.name.unwrap(), &DeleteParams::default()).await.unwrap();
    test_env.cluster.api_server().kill().await.unwrap();
    test_env.cluster.api_server().start().await.unwrap();
    sleep(Duration::from_secs(3)).await;
    assert!(test_env.mentions(PLANE, "10.1.2.3:8080"));
    running.stop().await;
    served.stop().await;
}

const GRPC_ROUTE: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: calls, namespace: default}
spec:
  parentRefs: [{name: web}]
  hostnames: [calls.example]
  rules: [{backendRefs: [{name: cart, port: 80}]}]
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn definitions_may_come_later_and_go() {
    let Some(cluster) = TestCluster::builder().crds(None).start_or_skip().await else { return };
    let test_env = TestEnv::of(cluster).await;
    let mut running = test_env.run(fast_retries());
    // Without classes and Gateways no document is expected, and that is not certain yet.
    let names_it = |progress: &Progress| progress.unknown.contains_key(&Kind::GatewayClass);
    running.wait_for(names_it).await;
    sleep(Duration::from_secs(1)).await;
    let progress = running.progress.borrow().clone();
    assert!(!progress.is_ready() && !progress.unknown.contains_key(&Kind::GrpcRoute), "{progress:?}");

    test_env.cluster.install(Channel::Standard).await.unwrap();
    running.wait_until_ready().await;
    for manifests in [shop::CLASS, GATEWAY, SERVICE, ROUTE, GRPC_ROUTE] {
        test_env.apply(manifests).await;
    }
    eventually("the HTTPRoute", || test_env.mentions(PLANE, "cart.example")).await;
    eventually("the GRPCRoute", || test_env.mentions(PLANE, "calls.example")).await;

    let definitions: Api<CustomResourceDefinition> = Api::all(test_env.cluster.admin());
    let grpc = "grpcroutes.gateway.networking.k8s.io";
    definitions.delete(grpc, &DeleteParams::default()).await.unwrap();
    eventually("the end of the GRPCRoute", || !test_env.mentions(PLANE, "calls.example")).await;
    assert!(test_env.mentions(PLANE, "cart.example"));
    eventually_async("the end of the definition", async || {
        definitions.get_opt(grpc).await.unwrap().is_none()
    })
    .await;
    test_env.cluster.install(Channel::Standard).await.unwrap();
    test_env.apply(GRPC_ROUTE).await;
    eventually("the GRPCRoute again", || test_env.mentions(PLANE, "calls.example")).await;
    test_env
        .wait_for_condition(Kind::GrpcRoute, "default", "calls", "/parents/0", "Accepted=True/Accepted")
        .await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forbidden_optional_kind_is_not_taken_for_an_absent_one() {
    let Some(cluster) = TestCluster::builder().user("controller", &[]).start_or_skip().await else { return };
    let test_env = TestEnv::of(cluster).await;
    for manifests in
        [shop::CLASS, GATEWAY, SERVICE, ROUTE, GRPC_ROUTE, &roles::split_roles("grpcroutes", &fast_retries())]
    {
        test_env.apply(manifests).await;
    }
    let user = test_env.cluster.user("controller").unwrap();
    test_env.cluster.bind_cluster_role(user, roles::OTHER_RESOURCES_ROLE).await.unwrap();
    let client = test_env.cluster.client(user).unwrap();
    let mut running = Running::start(client, &test_env.etcd, fast_retries());
    let names_it = |progress: &Progress| {
        let why = progress.unknown.get(&Kind::GrpcRoute).cloned().unwrap_or_default();
        progress.unknown.len() == 1 && why.contains("grpcroutes.gateway.networking.k8s.io is forbidden")
    };
    running.wait_for(names_it).await;
    sleep(Duration::from_secs(1)).await;
    assert!(!running.progress.borrow().is_ready());
    assert!(test_env.documents(PLANE).is_empty(), "a picture of half of the routes is served");

    test_env.cluster.bind_cluster_role(user, roles::SINGLE_RESOURCE_ROLE).await.unwrap();
    running.wait_until_ready().await;
    assert!(test_env.mentions(PLANE, "cart.example") && test_env.mentions(PLANE, "calls.example"));
    test_env
        .wait_for_condition(Kind::GrpcRoute, "default", "calls", "/parents/0", "Accepted=True/Accepted")
        .await;
    running.stop().await;
}
