//! Pods made from the manifests are admitted where the strictest Pod Security level is enforced.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use pingsix_test_cluster::TestCluster;
use serde_json::{Value, json};

use super::manifests::Manifests;

/// Creates a Pod as a dry run.
async fn create(cluster: &TestCluster, namespace: &str, template: &Value) -> Result<(), String> {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "one", "labels": template["metadata"]["labels"]}, "spec": template["spec"],
    }))
    .unwrap();
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let created = Api::<Pod>::namespaced(cluster.admin(), namespace).create(&params, &pod).await;
    created.map(|_| ()).map_err(|error| error.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_are_admitted_at_the_restricted_level() {
    let Some(cluster) = TestCluster::builder().start_or_skip().await else { return };
    for manifests in [Manifests::cluster_wide(), Manifests::example()] {
        cluster.apply(&manifests.text()).await.unwrap();
        let deployments: Vec<&Value> = manifests.of_kind("Deployment").collect();
        assert_eq!(deployments.len(), 1);
        for deployment in deployments {
            let namespace = deployment["metadata"]["namespace"].as_str().unwrap();
            let level = &manifests.get("Namespace", namespace)["metadata"]["labels"];
            assert_eq!(level["pod-security.kubernetes.io/enforce"], "restricted");
            let template = &deployment["spec"]["template"];
            let account = template["spec"]["serviceAccountName"].as_str().unwrap_or("default");
            cluster.service_account(namespace, account).await.unwrap();
            create(&cluster, namespace, template).await.unwrap();

            // The level is enforced: each of these alone is refused.
            for at in ["/spec/securityContext", "/spec/containers/0/securityContext"] {
                let mut open = template.clone();
                open.pointer_mut(at).unwrap().take();
                let refused = create(&cluster, namespace, &open).await.unwrap_err();
                assert!(refused.contains("violates PodSecurity \"restricted"), "{at}: {refused}");
            }
        }
    }
}

/// The fields beyond the level.
#[test]
fn containers_write_to_no_file_system_of_their_own_and_say_what_they_need() {
    for manifests in [Manifests::cluster_wide(), Manifests::namespaced(), Manifests::example()] {
        for deployment in manifests.of_kind("Deployment") {
            let pod = &deployment["spec"]["template"]["spec"];
            let lists = ["initContainers", "containers"].into_iter().filter_map(|list| pod[list].as_array());
            for container in lists.flatten() {
                assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true, "{container}");
                assert_eq!(container["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
                for at in
                    ["/resources/requests/cpu", "/resources/requests/memory", "/resources/limits/memory"]
                {
                    assert!(container.pointer(at).is_some(), "{at}: {container}");
                }
            }
        }
    }
}
