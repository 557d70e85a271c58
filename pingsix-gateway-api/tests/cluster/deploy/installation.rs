//! A cluster with the manifests, and controllers with their account.

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::PostParams;
use kube::{Api, Client};
use pingsix_gateway_api::controller::{ControllerOptions, PublishedAddresses};
use pingsix_gateway_api::replicas::Replicas;
use pingsix_sink::EmbeddedEtcd;
use pingsix_sink::embedded::ServerTls;
use pingsix_test_cluster::{TestCluster, User};
use pingsix_translate::ObjectName;
use serde_json::Value;

use super::manifests::Manifests;
use super::requests::Requests;
use super::rights::{Right, granted};
use crate::provision::definitions;
use crate::test_env::{Running, TestEnv, eventually_async};

/// A cluster to which the manifests were applied.
pub(super) struct Installation {
    pub(super) test_env: TestEnv,
    account: User,
    pub(super) options: ControllerOptions,
    /// The requests of this cluster's controllers.
    pub(super) requests: Requests,
}

impl Installation {
    /// `None` if the test cannot run.
    pub(super) async fn of(manifests: &Manifests) -> Option<Self> {
        let cluster = TestCluster::builder().start_or_skip().await?;
        cluster.namespace("shop").await.unwrap();
        cluster.apply(&definitions()).await.unwrap();
        cluster.apply(&manifests.text()).await.unwrap();
        let account = &manifests.get("ServiceAccount", "pingsix-gateway-controller")["metadata"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (namespace, name) = (text(&account["namespace"]), text(&account["name"]));
        let account = cluster.service_account(&namespace, &name).await.unwrap();
        let (test_env, options) = (TestEnv::of(cluster).await, manifests.options());
        let installation = Self { test_env, account, options, requests: Requests::default() };
        for right in granted(manifests) {
            installation.until_allowed(&right).await;
        }
        Some(installation)
    }

    /// Waits until the API server has taken in the bindings.
    pub(super) async fn until_allowed(&self, right: &Right) {
        let (resource, part) = match right.resource.split_once('/') {
            Some((resource, part)) => (resource, Some(part.to_owned())),
            None => (right.resource.as_str(), None),
        };
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(self.account.name().to_owned()),
                resource_attributes: Some(ResourceAttributes {
                    group: Some(right.group.clone()),
                    resource: Some(resource.to_owned()),
                    subresource: part,
                    namespace: right.namespace.clone(),
                    name: right.name.clone(),
                    verb: Some(right.verb.clone()),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews = Api::<SubjectAccessReview>::all(self.test_env.cluster.admin());
        eventually_async(&format!("the right to {right}"), async || {
            let answer = reviews.create(&PostParams::default(), &review).await.unwrap();
            answer.status.unwrap().allowed
        })
        .await;
    }

    /// Runs a controller with the account of the manifests and a feed of its own, until all owners are published
    /// once.
    pub(super) async fn run(&self) -> Running {
        let (client, options, replicas) = self.replica();
        let builder =
            EmbeddedEtcd::builder().reservations(replicas.reservations()).tls(ServerTls::deferred());
        let etcd = builder.start().await.unwrap();
        Self::until_ready(Running::replica(client, &etcd, replicas, options)).await
    }

    /// The same, with another feed.
    pub(super) async fn run_with(&self, etcd: &EmbeddedEtcd) -> Running {
        let (client, options, replicas) = self.replica();
        Self::until_ready(Running::replica(client, etcd, replicas, options)).await
    }

    fn replica(&self) -> (Client, ControllerOptions, Replicas) {
        let client = self.requests.client(self.test_env.cluster.client(&self.account).unwrap());
        let mut options = self.options.clone();
        options.addresses = PublishedAddresses::Service(ObjectName::new("shop", "pingsix"));
        let replicas = Replicas::new(client.clone(), options.lease.as_ref().unwrap());
        (client, options, replicas)
    }

    async fn until_ready(mut running: Running) -> Running {
        running.wait_until_ready().await;
        running
    }
}

/// Whether a status has a decided condition `Accepted`.
pub(super) fn is_judged(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| one["type"] == "Accepted" && one["status"] != "Unknown")
}
