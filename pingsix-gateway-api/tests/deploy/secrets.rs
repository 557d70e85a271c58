//! An installation that may read Secrets in some namespaces only.

use serde_json::Value;

use crate::life::{Deployed, is_judged};
use crate::manifests::Manifests;
use crate::rights::Right;

/// Instead of the binding for the whole cluster, as the README has it.
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
async fn a_secret_that_must_not_be_read_costs_what_refers_to_it_and_nothing_else() {
    let mut manifests = Manifests::cluster_wide();
    manifests.drop("ClusterRoleBinding", "pingsix-gateway-controller-secrets");
    let Some(deployed) = Deployed::start(&manifests).await else { return };
    deployed.cluster.apply(BINDING).await.unwrap();
    let right = |verb: &str| Right {
        namespace: Some("shop".to_owned()),
        group: String::new(),
        resource: "secrets".to_owned(),
        verb: verb.to_owned(),
        name: None,
    };
    deployed.until_allowed(&right("list")).await;
    deployed.until_allowed(&right("watch")).await;
    deployed.cluster.namespace("hidden").await.unwrap();
    let objects = include_str!("life.yaml");
    deployed.cluster.apply(objects).await.unwrap();
    // The same Gateway with the same Secret, in another namespace.
    deployed.cluster.apply(&objects.replace("namespace: shop", "namespace: hidden")).await.unwrap();

    let running = deployed.run().await;
    deployed.until("Gateway", "shop", "web", |gateway| resolves(gateway, "https", "True")).await;
    deployed.until("Gateway", "hidden", "web", |gateway| resolves(gateway, "https", "False")).await;
    deployed
        .until("Gateway", "hidden", "web", |gateway| is_judged(gateway) && resolves(gateway, "http", "True"))
        .await;
    running.stop().await;
    let forbidden = deployed.requests.forbidden();
    assert_eq!(forbidden, ["list secrets. hidden/shop-tls"]);
}
