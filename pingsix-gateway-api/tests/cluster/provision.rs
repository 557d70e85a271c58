//! Data planes that the controller runs, as far as that goes without nodes: Pods stay pending.

use std::net::SocketAddr;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Pod, Secret, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use pingsix_gateway_api::controller::{ControllerOptions, ProvisioningOptions};
use pingsix_gateway_api::provision::Installation;
use pingsix_test_cluster::TestCluster;
use pingsix_translate::{Kind, ObjectName, Options};
use serde_json::{Value, json};

use crate::test_env::shop::{GATEWAY, ROUTE, SERVICE, pair, secret, secure_gateway};
use crate::test_env::{TestEnv, conditions, eventually_async, options};

/// The stand-in for the controllers that create Pods of Deployments, and delete objects without an owner.
const CONTROLLERS: [&str; 3] =
    ["deployment-controller", "replicaset-controller", "garbage-collector-controller"];

/// A class whose data planes the controller runs.
const CLASS: &str = "
apiVersion: pingsix.io/v1alpha1
kind: PingsixProxy
metadata: {name: edge, namespace: default}
spec: {managed: {replicas: 2}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: pingsix}
spec:
  controllerName: pingsix.io/gateway-controller
  parametersRef: {group: pingsix.io, kind: PingsixProxy, namespace: default, name: edge}
";

pub(crate) fn managing() -> ControllerOptions {
    let mut options = options();
    let Options { controller_name, root, .. } = options.translation.clone();
    options.provisioning = Some(ProvisioningOptions {
        installation: Installation {
            controller_name,
            root,
            feed: vec!["http://10.0.0.1:2379".to_owned()],
            image: "pingsix:test".to_owned(),
            sidecar_image: "sidecar:test".to_owned(),
            responder: SocketAddr::from(([127, 0, 0, 1], 8089)),
        },
        key: ObjectName::new("default", "pingsix-gateway-status"),
    });
    options
}

/// The definitions of our own kinds.
pub(crate) fn definitions() -> String {
    let definitions = pingsix_translate::crd::definitions();
    let texts: Vec<String> =
        definitions.iter().map(|definition| serde_json::to_string(definition).unwrap()).collect();
    texts.join("\n---\n")
}

/// `None` if the test cannot run.
async fn start() -> Option<TestEnv> {
    let test_env = TestEnv::of(TestCluster::builder().controllers(CONTROLLERS).start_or_skip().await?).await;
    test_env.apply(&definitions()).await;
    eventually_async("the kind PingsixProxy", async || test_env.cluster.apply(CLASS).await.is_ok()).await;
    Some(test_env)
}

struct Apis {
    deployments: Api<Deployment>,
    services: Api<Service>,
    secrets: Api<Secret>,
    accounts: Api<ServiceAccount>,
    budgets: Api<PodDisruptionBudget>,
}

impl Apis {
    fn of(test_env: &TestEnv) -> Self {
        let client = || test_env.cluster.admin();
        Self {
            deployments: Api::namespaced(client(), "default"),
            services: Api::namespaced(client(), "default"),
            secrets: Api::namespaced(client(), "default"),
            accounts: Api::namespaced(client(), "default"),
            budgets: Api::namespaced(client(), "default"),
        }
    }

    /// The present objects of a Gateway.
    async fn names(&self) -> Vec<String> {
        let managed = ListParams::default()
            .labels("app.kubernetes.io/instance=web-pingsix,app.kubernetes.io/managed-by");
        let mut names = Vec::new();
        macro_rules! add {
            ($api:expr, $kind:literal) => {
                let list = $api.list(&managed).await.unwrap();
                names.extend(list.items.iter().map(|object| format!("{} {}", $kind, object.name_any())));
            };
        }
        add!(self.accounts, "ServiceAccount");
        add!(self.secrets, "Secret");
        add!(self.services, "Service");
        add!(self.deployments, "Deployment");
        add!(self.budgets, "PodDisruptionBudget");
        names
    }

    async fn wait_for_objects(&self, expected: &[&str]) {
        eventually_async(&format!("{expected:?}"), async || self.names().await == expected).await;
    }
}

const ALL: &[&str] = &[
    "ServiceAccount web-pingsix",
    "Secret web-pingsix-config",
    "Service web-pingsix",
    "Deployment web-pingsix",
    "PodDisruptionBudget web-pingsix",
];

fn programmed(gateway: &Value) -> String {
    let all = conditions(&gateway["status"], "");
    all.into_iter().find(|one| one.starts_with("Programmed=")).unwrap_or_default()
}

fn message(gateway: &Value) -> String {
    let conditions = gateway["status"]["conditions"].as_array().into_iter().flatten();
    let mut programmed = conditions.filter(|one| one["type"] == "Programmed");
    programmed.next().map(|one| one["message"].to_string()).unwrap_or_default()
}

async fn admitted(test_env: &TestEnv, namespace: &str, template: &Value) -> Result<(), String> {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "one", "labels": template["metadata"]["labels"]}, "spec": template["spec"],
    }))
    .unwrap();
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let created = Api::<Pod>::namespaced(test_env.cluster.admin(), namespace).create(&params, &pod).await;
    created.map(|_| ()).map_err(|error| error.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_managed_gateway_brings_up_what_serves_it_and_takes_it_along() {
    let Some(test_env) = start().await else { return };
    let running = test_env.ready(managing()).await;
    test_env.apply(GATEWAY).await;
    let apis = Apis::of(&test_env);
    apis.wait_for_objects(ALL).await;
    let gateway = test_env.object(Kind::Gateway, "default", "web").await;
    let deployment = apis.deployments.get("web-pingsix").await.unwrap();
    let owner = &deployment.owner_references()[0];
    assert_eq!(Some(owner.uid.as_str()), gateway["metadata"]["uid"].as_str());

    // Kubernetes makes Pods of it, also where it enforces the strictest level.
    let replica_sets: Api<ReplicaSet> = Api::namespaced(test_env.cluster.admin(), "default");
    eventually_async("a ReplicaSet with its Pods", async || {
        let sets = replica_sets.list(&ListParams::default()).await.unwrap();
        sets.items.iter().any(|set| set.spec.as_ref().is_some_and(|spec| spec.replicas == Some(2)))
    })
    .await;
    test_env.apply(
        "{apiVersion: v1, kind: Namespace, metadata: {name: strict, labels: {pod-security.kubernetes.io/enforce: restricted}}}",
    )
    .await;
    test_env.cluster.service_account("strict", "web-pingsix").await.unwrap();
    let template = serde_json::to_value(deployment.spec.unwrap().template).unwrap();
    admitted(&test_env, "strict", &template).await.unwrap();
    let mut open = template.clone();
    open["spec"]["containers"][0]["securityContext"].take();
    let refused = admitted(&test_env, "strict", &open).await.unwrap_err();
    assert!(refused.contains("violates PodSecurity \"restricted"), "{refused}");

    // There is neither an address nor a Pod that serves.
    let waits = |gateway: &Value| {
        programmed(gateway).starts_with("Programmed=False/")
            && message(gateway).contains("has no address yet")
    };
    test_env.until(Kind::Gateway, "default", "web", "no address yet", waits).await;
    let address = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}});
    apis.services
        .patch_status("web-pingsix", &PatchParams::default(), &Patch::Merge(&address))
        .await
        .unwrap();
    let names_the_service = |gateway: &Value| {
        gateway["status"]["addresses"] == json!([{"type": "IPAddress", "value": "192.0.2.7"}])
            && programmed(gateway) == "Programmed=False/Pending"
    };
    test_env.until(Kind::Gateway, "default", "web", "its address", names_the_service).await;

    test_env.objects(Kind::Gateway, "default").delete("web", &DeleteParams::default()).await.unwrap();
    apis.wait_for_objects(&[]).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_changes_are_reverted_and_routes_change_nothing() {
    let Some(test_env) = start().await else { return };
    let running = test_env.ready(managing()).await;
    test_env.apply(GATEWAY).await;
    let apis = Apis::of(&test_env);
    apis.wait_for_objects(ALL).await;
    let image = |deployment: &Deployment| {
        deployment.spec.as_ref().unwrap().template.spec.as_ref().unwrap().containers[0].image.clone().unwrap()
    };
    let change =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "pingsix-80", "image": "other"}]}}}});
    let (params, name) = (PatchParams::default(), "web-pingsix");
    apis.deployments.patch(name, &params, &Patch::Strategic(&change)).await.unwrap();
    eventually_async("the image", async || {
        image(&apis.deployments.get(name).await.unwrap()) == "pingsix:test"
    })
    .await;
    let unlabelled = json!({"metadata": {"labels": null}});
    apis.accounts.patch(name, &params, &Patch::Merge(&unlabelled)).await.unwrap();
    apis.services.delete(name, &DeleteParams::default()).await.unwrap();
    apis.wait_for_objects(ALL).await;

    // Fields of other writers stay.
    let note = json!({"metadata": {"annotations": {"note": "mine"}}});
    apis.deployments.patch(name, &params, &Patch::Merge(&note)).await.unwrap();
    let before = apis.deployments.get(name).await.unwrap();
    for manifests in [SERVICE, ROUTE] {
        test_env.apply(manifests).await;
    }
    test_env.wait_for_route("Accepted=True/Accepted").await;
    let after = apis.deployments.get(name).await.unwrap();
    assert_eq!(after.annotations()["note"], "mine");
    assert_eq!((after.metadata.generation, after.spec), (before.metadata.generation, before.spec));

    // Unwanted objects are deleted, and foreign objects stay.
    test_env.cluster.service_account("default", "edge").await.unwrap();
    test_env.apply(&CLASS.replace("replicas: 2", "replicas: 2, serviceAccountName: edge")).await;
    apis.wait_for_objects(&ALL[1..]).await;
    assert!(apis.accounts.get_opt("edge").await.unwrap().is_some());

    // A Gateway with attached data planes has none of these.
    test_env.apply(&CLASS.replace("managed: {replicas: 2}", "attached: {}")).await;
    apis.wait_for_objects(&[]).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_object_is_kept_and_named() {
    let Some(test_env) = start().await else { return };
    test_env.apply(
        "{apiVersion: v1, kind: Service, metadata: {name: web-pingsix, namespace: default}, spec: {ports: [{port: 7}]}}",
    )
    .await;
    let running = test_env.ready(managing()).await;
    test_env.apply(GATEWAY).await;
    let names_the_service = |gateway: &Value| {
        programmed(gateway) == "Programmed=False/NoResources"
            && message(gateway)
                .contains("Service \\\"default/web-pingsix\\\" exists and belongs to another owner")
    };
    test_env.until(Kind::Gateway, "default", "web", "the name of the Service", names_the_service).await;
    let apis = Apis::of(&test_env);
    let service = apis.services.get("web-pingsix").await.unwrap();
    assert_eq!(service.spec.unwrap().ports.unwrap()[0].port, 7);
    assert!(service.metadata.labels.is_none() && service.metadata.owner_references.is_none());

    apis.services.delete("web-pingsix", &DeleteParams::default()).await.unwrap();
    apis.wait_for_objects(ALL).await;
    test_env
        .until(Kind::Gateway, "default", "web", "no fault", |gateway| {
            programmed(gateway) == "Programmed=False/Pending"
        })
        .await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tls_certificate_and_the_key_of_status_pages_are_made_once() {
    let Some(test_env) = start().await else { return };
    let (certificate, key) = pair("cart.example");
    test_env.apply(&secret("own", &certificate, &key)).await;
    let running = test_env.ready(managing()).await;
    test_env.apply(&secure_gateway("{name: own}")).await;
    let apis = Apis::of(&test_env);
    let mut all = ALL.to_vec();
    all.insert(1, "Secret web-pingsix-certificate");
    apis.wait_for_objects(&all).await;
    let made = apis.secrets.get("web-pingsix-certificate").await.unwrap();
    let pem = String::from_utf8(made.data.as_ref().unwrap()["tls.crt"].0.clone()).unwrap();
    assert!(pem.starts_with("-----BEGIN CERTIFICATE-----"), "{pem}");
    let config = apis.secrets.get("web-pingsix-config").await.unwrap();
    running.stop().await;

    // The next process changes neither.
    let running = test_env.ready(managing()).await;
    let unlabelled = json!({"metadata": {"labels": {"gateway.networking.k8s.io/gateway-name": null}}});
    for name in ["web-pingsix-certificate", "web-pingsix-config"] {
        apis.secrets.patch(name, &PatchParams::default(), &Patch::Merge(&unlabelled)).await.unwrap();
    }
    apis.wait_for_objects(&all).await;
    assert_eq!(apis.secrets.get("web-pingsix-certificate").await.unwrap().data, made.data);
    assert_eq!(apis.secrets.get("web-pingsix-config").await.unwrap().data, config.data);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_as_long_as_names_can_be_is_served_like_any_other() {
    let Some(test_env) = start().await else { return };
    let running = test_env.ready(managing()).await;
    let name = "g".repeat(253);
    test_env.apply(&GATEWAY.replace("name: web", &format!("name: {name}"))).await;
    let deployments: Api<Deployment> = Api::namespaced(test_env.cluster.admin(), "default");
    eventually_async("a Deployment", async || {
        let list = deployments.list(&ListParams::default()).await.unwrap();
        list.items.iter().any(|deployment| deployment.owner_references()[0].name == name)
    })
    .await;
    let owned = |gateway: &Value| message(gateway).contains("has no address yet");
    test_env.until(Kind::Gateway, "default", &name, "a Service", owned).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_is_asked_for_is_asked_of_the_load_balancer() {
    let Some(test_env) = start().await else { return };
    let running = test_env.ready(managing()).await;
    test_env.apply(&GATEWAY.replace("  listeners:", "  addresses: [{value: 192.0.2.9}]\n  listeners:")).await;
    let apis = Apis::of(&test_env);
    apis.wait_for_objects(ALL).await;
    let service = apis.services.get("web-pingsix").await.unwrap();
    assert_eq!(service.spec.unwrap().load_balancer_ip.as_deref(), Some("192.0.2.9"));
    for (given, expected) in
        [("192.0.2.7", "Programmed=False/AddressNotUsable"), ("192.0.2.9", "Programmed=False/Pending")]
    {
        let address = json!({"status": {"loadBalancer": {"ingress": [{"ip": given}]}}});
        apis.services
            .patch_status("web-pingsix", &PatchParams::default(), &Patch::Merge(&address))
            .await
            .unwrap();
        test_env
            .until(Kind::Gateway, "default", "web", expected, |gateway| programmed(gateway) == expected)
            .await;
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_number_of_pods_stays_when_parameters_do_not_say_it_any_more() {
    let Some(test_env) = start().await else { return };
    let running = test_env.ready(managing()).await;
    test_env.apply(GATEWAY).await;
    let apis = Apis::of(&test_env);
    apis.wait_for_objects(ALL).await;
    let (params, name) = (PatchParams::default(), "web-pingsix");
    let of = |managed: &str| CLASS.replace("managed: {replicas: 2}", &format!("managed: {managed}"));
    let scale = async || apis.deployments.get(name).await.unwrap().spec.unwrap().replicas;
    let apply_managed = async |managed: &str, count: u32| {
        test_env.apply(&of(managed)).await;
        let note = format!("  infrastructure: {{annotations: {{note: \"{count}\"}}}}\n  listeners:");
        test_env.apply(&GATEWAY.replace("  listeners:", &note)).await;
        // The Deployment is applied after the Secret, and its annotation may be news before the parameters are.
        let note = count.to_string();
        eventually_async(&format!("{count} threads"), async || {
            let deployment = apis.deployments.get(name).await.unwrap();
            let config = apis.secrets.get("web-pingsix-config").await.unwrap().data.unwrap();
            let config: Value = serde_json::from_slice(&config["80.yaml"].0).unwrap();
            let is_applied = config["pingora"]["threads"] == count;
            let owners = deployment.managed_fields().iter().filter(|entry| {
                entry.manager.as_deref() == Some("pingsix.io-gateway-controller")
                    && entry.operation.as_deref() == Some("Apply")
            });
            let owns_replicas = owners.clone().any(|entry| {
                let fields = &entry.fields_v1.as_ref().unwrap().0;
                fields.pointer("/f:spec/f:replicas").is_some()
            });
            is_applied
                && owns_replicas == managed.contains("replicas")
                && deployment.annotations().get("note") == Some(&note)
        })
        .await;
    };
    apply_managed("{replicas: 3, process: {threads: 3}}", 3).await;
    assert_eq!(scale().await, Some(3));
    apply_managed("{process: {threads: 4}}", 4).await;
    assert_eq!(scale().await, Some(3), "nobody has said anything else");
    // As `kubectl scale` and a HorizontalPodAutoscaler do.
    let two = json!({"spec": {"replicas": 2}});
    apis.deployments.patch_scale(name, &params, &Patch::Merge(&two)).await.unwrap();
    apply_managed("{process: {threads: 5}}", 5).await;
    assert_eq!(scale().await, Some(2));
    // The field can be set again and removed again.
    apply_managed("{replicas: 4, process: {threads: 6}}", 6).await;
    assert_eq!(scale().await, Some(4));
    apply_managed("{process: {threads: 7}}", 7).await;
    assert_eq!(scale().await, Some(4));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_key_of_status_pages_is_followed_whoever_makes_it() {
    let Some(test_env) = start().await else { return };
    let running = test_env.ready(managing()).await;
    test_env.apply(GATEWAY).await;
    let apis = Apis::of(&test_env);
    apis.wait_for_objects(ALL).await;
    let name = "pingsix-gateway-status";
    let key = async || apis.secrets.get_opt(name).await.unwrap()?.data?.remove("diagnostics");
    let page = async || {
        let config = apis.secrets.get("web-pingsix-config").await.unwrap().data.unwrap();
        let config: Value = serde_json::from_slice(&config["80.yaml"].0).unwrap();
        config["pingsix"]["status"]["diagnostics_api_key"].as_str().unwrap().to_owned()
    };
    let (first, of_first) = (key().await.unwrap(), page().await);
    apis.secrets.delete(name, &DeleteParams::default()).await.unwrap();
    eventually_async("another key", async || key().await.is_some_and(|key| key != first)).await;
    eventually_async("what follows from it", async || page().await != of_first).await;
    // One that is too short is none.
    let of = |bytes: &[u8]| json!({"data": {"diagnostics": k8s_openapi::ByteString(bytes.to_vec())}});
    let params = PatchParams::default();
    apis.secrets.patch(name, &params, &Patch::Merge(&of(b"short"))).await.unwrap();
    apis.secrets.patch(name, &params, &Patch::Merge(&of(&first.0))).await.unwrap();
    eventually_async("the first key", async || page().await == of_first).await;
    running.stop().await;
}
