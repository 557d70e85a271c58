//! Secrets are read where they are referred to, and take effect at once.

use std::time::Duration;

use kube::api::{Api, DeleteParams};
use pingsix_gateway_api::watch::SecretWatch;
use pingsix_test_cluster::TestCluster;
use pingsix_translate::Kind;
use pingsix_translate::snapshot::{ReferenceGrant, Secret};
use tokio::time::{Instant, sleep, timeout};

use crate::test_env::shop::{self, CLASS, PLANE, ROUTE, SERVICE};
use crate::test_env::{Running, TestEnv, fast_retries, roles};

/// The time limit of a change in a Secret.
const SECRET_CHANGE_TIMEOUT: Duration = Duration::from_secs(2);

async fn promptly(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    let waiting = async {
        while !holds() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(timeout(SECRET_CHANGE_TIMEOUT, waiting).await.is_ok(), "{what} does not come about in time");
    println!("{what}: {:?}", started.elapsed());
}

/// The number of certificates in a data plane, and whether this one is among them.
fn certificates(test_env: &TestEnv, certificate: &str) -> (usize, bool) {
    let documents = test_env.documents(PLANE);
    let held: Vec<_> = documents.iter().filter(|(key, _)| key.starts_with("ssls/")).collect();
    (held.len(), held.iter().any(|(_, document)| document["cert"] == *certificate))
}

const ONE_SECRET: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: one-secret, namespace: default}
rules:
- {apiGroups: [''], resources: [secrets], resourceNames: [tls], verbs: [get, list, watch]}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permission_for_the_one_secret_that_is_referred_to_is_enough() {
    let Some(cluster) = TestCluster::builder().user("controller", &[]).start_or_skip().await else { return };
    let test_env = TestEnv::of(cluster).await;
    for manifests in [CLASS, SERVICE, ROUTE, ONE_SECRET, &roles::split_roles("secrets", &fast_retries())] {
        test_env.apply(manifests).await;
    }
    let user = test_env.cluster.user("controller").unwrap();
    test_env.cluster.bind_cluster_role(user, roles::OTHER_RESOURCES_ROLE).await.unwrap();
    test_env.cluster.bind_role("default", user, "one-secret").await.unwrap();
    // A Secret without references and without permission to read it.
    let (first, first_key) = shop::pair("cart.example");
    test_env.apply(&shop::secret("other", &first, &first_key)).await;
    test_env.apply(&shop::secure_gateway("{name: tls}")).await;

    let mut running = Running::start(test_env.cluster.client(user).unwrap(), &test_env.etcd, fast_retries());
    running.wait_until_ready().await;
    test_env
        .wait_for_condition(
            Kind::Gateway,
            "default",
            "web",
            "/listeners/0",
            "ResolvedRefs=False/InvalidCertificateRef",
        )
        .await;
    assert_eq!(certificates(&test_env, &first), (0, false));

    test_env.apply(&shop::secret("tls", &first, &first_key)).await;
    promptly("a Secret that appears", || certificates(&test_env, &first) == (1, true)).await;
    test_env
        .wait_for_condition(Kind::Gateway, "default", "web", "/listeners/0", "ResolvedRefs=True/ResolvedRefs")
        .await;
    let (second, second_key) = shop::pair("cart.example");
    test_env.apply(&shop::secret("tls", &second, &second_key)).await;
    promptly("a rotation", || certificates(&test_env, &second) == (1, true)).await;
    // A key that is not that of the certificate.
    test_env.apply(&shop::secret("tls", &second, &first_key)).await;
    promptly("a broken pair", || certificates(&test_env, &second) == (0, false)).await;
    test_env.apply(&shop::secret("tls", &second, &second_key)).await;
    promptly("a mended pair", || certificates(&test_env, &second) == (1, true)).await;

    // A forbidden object counts as absent, and delays no other.
    test_env.apply(&shop::secure_gateway("{name: other}")).await;
    promptly("a Secret that is out of reach", || certificates(&test_env, &second).0 == 0).await;
    test_env
        .wait_for_condition(
            Kind::Gateway,
            "default",
            "web",
            "/listeners/0",
            "ResolvedRefs=False/InvalidCertificateRef",
        )
        .await;
    test_env.apply(&shop::secure_gateway("{name: tls}")).await;
    promptly("the first Secret again", || certificates(&test_env, &second) == (1, true)).await;
    let secrets: Api<Secret> = Api::namespaced(test_env.cluster.admin(), "default");
    secrets.delete("tls", &DeleteParams::default()).await.unwrap();
    promptly("a Secret that goes", || certificates(&test_env, &second).0 == 0).await;
    running.stop().await;
}

const OTHER_NAMESPACE: &str = "
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: abroad}
spec: {ports: [{name: web, port: 80, targetPort: 8080}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: cart-1, namespace: abroad, labels: {kubernetes.io/service-name: cart}}
addressType: IPv4
ports: [{name: web, port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.9.9.9], conditions: {ready: true}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: routes, namespace: abroad}
spec:
  from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: default}]
  to: [{group: '', kind: Service}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: gateways, namespace: abroad}
spec:
  from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: default}]
  to: [{group: '', kind: Secret}]
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_goes_takes_traffic_and_certificate_with_it() {
    let Some(test_env) = TestEnv::start().await else { return };
    test_env.cluster.namespace("abroad").await.unwrap();
    let (certificate, key) = shop::pair("cart.example");
    let secret = shop::secret("tls", &certificate, &key).replace("namespace: default", "namespace: abroad");
    let route = ROUTE.replace("{name: cart, port: 80}", "{name: cart, port: 80, namespace: abroad}");
    let gateway = shop::secure_gateway("{name: tls, namespace: abroad}");
    for manifests in [OTHER_NAMESPACE, &secret, &gateway, &route] {
        test_env.apply(manifests).await;
    }
    let running = test_env.ready(fast_retries()).await;
    assert!(test_env.mentions(PLANE, "10.9.9.9:8080"));
    assert_eq!(certificates(&test_env, &certificate), (1, true));
    let grants: Api<ReferenceGrant> = Api::namespaced(test_env.cluster.admin(), "abroad");
    grants.delete("routes", &DeleteParams::default()).await.unwrap();
    promptly("the end of the traffic", || !test_env.mentions(PLANE, "10.9.9.9")).await;
    test_env.wait_for_route("ResolvedRefs=False/RefNotPermitted").await;
    assert_eq!(certificates(&test_env, &certificate), (1, true));
    grants.delete("gateways", &DeleteParams::default()).await.unwrap();
    promptly("the end of the certificate", || certificates(&test_env, &certificate).0 == 0).await;
    test_env
        .wait_for_condition(
            Kind::Gateway,
            "default",
            "web",
            "/listeners/0",
            "ResolvedRefs=False/RefNotPermitted",
        )
        .await;

    test_env.apply(OTHER_NAMESPACE).await;
    promptly("both again", || {
        test_env.mentions(PLANE, "10.9.9.9") && certificates(&test_env, &certificate).1
    })
    .await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_secrets_may_be_watched_at_once() {
    let Some(cluster) = TestCluster::builder().user("controller", &[]).start_or_skip().await else { return };
    let test_env = TestEnv::of(cluster).await;
    let (first, first_key) = shop::pair("cart.example");
    let secret = shop::secret("tls", &first, &first_key);
    for manifests in [
        CLASS,
        SERVICE,
        ROUTE,
        &roles::split_roles("secrets", &fast_retries()),
        &shop::secure_gateway("{name: tls}"),
        &secret,
    ] {
        test_env.apply(manifests).await;
    }
    let mut options = fast_retries();
    options.watch.secrets =
        SecretWatch::All { labels: None, fields: Some("type=kubernetes.io/tls".to_owned()) };
    // A controller without permission to list names the missing kind.
    let user = test_env.cluster.user("controller").unwrap();
    test_env.cluster.bind_cluster_role(user, roles::OTHER_RESOURCES_ROLE).await.unwrap();
    let client = test_env.cluster.client(user).unwrap();
    let mut forbidden = Running::start(client, &test_env.etcd, options.clone());
    forbidden
        .wait_for(|progress| progress.unknown.get(&Kind::Secret).is_some_and(|why| why.contains("forbidden")))
        .await;
    forbidden.stop().await;

    let running = test_env.ready(options).await;
    assert_eq!(certificates(&test_env, &first), (1, true));
    let (second, second_key) = shop::pair("cart.example");
    test_env.apply(&shop::secret("tls", &second, &second_key)).await;
    promptly("a rotation", || certificates(&test_env, &second) == (1, true)).await;
    // Of one that is not there it is known that it is not.
    test_env.apply(&shop::secure_gateway("{name: missing}")).await;
    promptly("a Secret that is missing", || certificates(&test_env, &second).0 == 0).await;
    test_env
        .wait_for_condition(
            Kind::Gateway,
            "default",
            "web",
            "/listeners/0",
            "ResolvedRefs=False/InvalidCertificateRef",
        )
        .await;
    test_env.apply(&shop::secret("missing", &first, &first_key)).await;
    promptly("one that appears", || certificates(&test_env, &first) == (1, true)).await;
    running.stop().await;
}
