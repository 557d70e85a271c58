//! Users, and their permissions.

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use pingsix_test_cluster::{Error, TestCluster};

use crate::support::{code, eventually, make, names};

const READER: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: reader
  namespace: default
rules:
  - apiGroups: ['']
    resources: [configmaps]
    verbs: [get, list]
";

const LISTER: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: lister
rules:
  - apiGroups: ['']
    resources: [configmaps]
    verbs: [list]
";

#[tokio::test]
async fn a_user_may_do_what_is_bound_to_it_and_nothing_else() {
    let Some(cluster) = TestCluster::builder().crds(None).user("reader", &[]).start_or_skip().await else {
        return;
    };
    let user = cluster.user("reader").unwrap();
    let client = cluster.client(user).unwrap();
    assert_eq!(code(&names(&client).await), Some(403));

    cluster.apply(READER).await.unwrap();
    let binding = cluster.bind_role("default", user, "reader").await.unwrap();
    names(&client).await.unwrap();
    assert_eq!(code(&make(&client, "mine").await), Some(403));
    let elsewhere = Api::<k8s_openapi::api::core::v1::ConfigMap>::namespaced(client.clone(), "kube-system");
    assert_eq!(code(&elsewhere.list(&ListParams::default()).await), Some(403));

    let bindings = Api::<RoleBinding>::namespaced(cluster.admin(), "default");
    bindings.delete(&binding.metadata.name.unwrap(), &DeleteParams::default()).await.unwrap();
    eventually("the permission is taken back", || async { code(&names(&client).await) == Some(403) }).await;
}

#[tokio::test]
async fn cluster_roles_are_bound_everywhere_or_in_one_namespace() {
    let Some(cluster) =
        TestCluster::builder().crds(None).user("one", &[]).user("two", &[]).start_or_skip().await
    else {
        return;
    };
    cluster.apply(LISTER).await.unwrap();
    let (one, two) = (cluster.user("one").unwrap(), cluster.user("two").unwrap());
    cluster.bind_cluster_role(one, "lister").await.unwrap();
    cluster.bind_cluster_role_in("kube-system", two, "lister").await.unwrap();
    assert!(names(&cluster.client(one).unwrap()).await.is_ok());
    let client = cluster.client(two).unwrap();
    assert_eq!(code(&names(&client).await), Some(403));
    let there = Api::<k8s_openapi::api::core::v1::ConfigMap>::namespaced(client, "kube-system");
    there.list(&ListParams::default()).await.unwrap();

    // The role is empty in a cluster without controllers.
    let error = cluster.bind_cluster_role(one, "view").await.unwrap_err();
    assert!(error.to_string().starts_with("the cluster role view allows nothing"), "{error}");
}

#[tokio::test]
async fn a_service_account_is_known_by_its_token() {
    let Some(cluster) = TestCluster::builder().crds(None).start_or_skip().await else { return };
    cluster.apply(LISTER).await.unwrap();
    let account = cluster.service_account("infra", "gateway").await.unwrap();
    let again = cluster.service_account("infra", "gateway").await.unwrap();
    assert_eq!(account.name(), again.name());
    let client = cluster.client(&account).unwrap();
    let (name, groups) = user_and_groups(&client).await;
    assert_eq!(name, "system:serviceaccount:infra:gateway");
    assert!(groups.contains(&"system:serviceaccounts:infra".to_owned()), "{groups:?}");
    assert_eq!(code(&names(&client).await), Some(403));
    cluster.bind_cluster_role(&account, "lister").await.unwrap();
    names(&client).await.unwrap();
}

#[tokio::test]
async fn a_kubeconfig_is_for_its_user() {
    let Some(cluster) =
        TestCluster::builder().crds(None).user("team: lead", &["a", "b"]).start_or_skip().await
    else {
        return;
    };
    let path = cluster.kubeconfig(cluster.user("team: lead").unwrap()).unwrap();
    let kubeconfig = Kubeconfig::read_from(&path).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let (name, groups) = user_and_groups(&Client::try_from(config).unwrap()).await;
    assert_eq!(name, "team: lead");
    assert_eq!(groups, ["a", "b", "system:authenticated"]);

    let unknown = cluster.user("nobody").unwrap_err();
    assert!(matches!(unknown, Error::UnknownUser { .. }), "{unknown}");
}

async fn user_and_groups(client: &Client) -> (String, Vec<String>) {
    let reviews = Api::<SelfSubjectReview>::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await.unwrap();
    let user = answer.status.unwrap().user_info.unwrap();
    (user.username.unwrap(), user.groups.unwrap())
}
