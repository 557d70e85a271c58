//! An installation that may read Secrets in some namespaces only.

use pingsix_translate::Kind;
use serde_json::Value;

use super::installation::{Installation, is_judged};
use super::manifests::Manifests;
use super::rights::Right;

/// Instead of the bindings for the whole cluster, as the README has it; no data planes are run.
const BINDING: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: pingsix-gateway-controller-secrets, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: pingsix-gateway-controller-secrets}
subjects: [{kind: ServiceAccount, name: pingsix-gateway-controller, namespace: pingsix-system}]
";

fn conditions<'a>(object: &'a Value, listener: &str) -> impl Iterator<Item = &'a Value> {
    let listeners = object["status"]["listeners"].as_array().into_iter().flatten();
    let ours = listeners.filter(move |one| one["name"] == listener);
    ours.filter_map(|one| one["conditions"].as_array()).flatten()
}

fn resolves(object: &Value, listener: &str, status: &str) -> bool {
    conditions(object, listener).any(|one| one["type"] == "ResolvedRefs" && one["status"] == status)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forbidden_secret_costs_its_referrers_and_nothing_else() {
    let mut manifests = Manifests::without_data_planes();
    manifests.drop("ClusterRoleBinding", "pingsix-gateway-controller-secrets");
    let Some(installation) = Installation::of(&manifests).await else { return };
    installation.test_env.apply(BINDING).await;
    let right = |verb: &str| Right {
        namespace: Some("shop".to_owned()),
        group: String::new(),
        resource: "secrets".to_owned(),
        verb: verb.to_owned(),
        name: None,
    };
    installation.until_allowed(&right("list")).await;
    installation.until_allowed(&right("watch")).await;
    installation.test_env.cluster.namespace("hidden").await.unwrap();
    let objects = include_str!("one_of_each.yaml");
    installation.test_env.apply(objects).await;
    // The same Gateway with the same Secret, in another namespace.
    installation.test_env.apply(&objects.replace("namespace: shop", "namespace: hidden")).await;

    let running = installation.run().await;
    let read = |gateway: &Value| resolves(gateway, "https", "True");
    installation.test_env.until(Kind::Gateway, "shop", "web", "its certificate", read).await;
    let unread = |gateway: &Value| {
        is_judged(gateway) && resolves(gateway, "https", "False") && resolves(gateway, "http", "True")
    };
    installation.test_env.until(Kind::Gateway, "hidden", "web", "a listener without", unread).await;
    running.stop().await;
    let forbidden = installation.requests.forbidden();
    assert_eq!(forbidden, ["list secrets. hidden/shop-tls"]);
}
