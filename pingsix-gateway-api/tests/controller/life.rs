//! From the first object to the last.

use crate::lab::{Lab, eventually};

const GATEWAY: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: default}
spec:
  gatewayClassName: pingsix
  listeners: [{name: plain, port: 80, protocol: HTTP}]
";

const SERVICE: &str = "
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: default}
spec: {ports: [{name: web, port: 80, targetPort: 8080}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: cart-1, namespace: default, labels: {kubernetes.io/service-name: cart}}
addressType: IPv4
ports: [{name: web, port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.1.2.3], conditions: {ready: true}}]
";

const ROUTE: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: cart, namespace: default}
spec:
  parentRefs: [{name: web}]
  hostnames: [cart.example]
  rules: [{backendRefs: [{name: cart, port: 80}]}]
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_become_documents_and_statuses_and_go_with_them() {
    let Some(lab) = Lab::start().await else { return };
    let running = lab.ready(Lab::options()).await;
    lab.says("GatewayClass", "", "pingsix", "", "Accepted=True/Accepted").await;
    lab.says("GatewayClass", "", "pingsix", "", "SupportedVersion=True/SupportedVersion").await;

    lab.apply(GATEWAY).await;
    lab.says("Gateway", "default", "web", "", "Accepted=True/Accepted").await;
    lab.says("Gateway", "default", "web", "", "Programmed=False/Pending").await;
    lab.apply(ROUTE).await;
    lab.says("HTTPRoute", "default", "cart", "/parents/0", "ResolvedRefs=False/BackendNotFound").await;
    lab.apply(SERVICE).await;
    lab.says("HTTPRoute", "default", "cart", "/parents/0", "ResolvedRefs=True/ResolvedRefs").await;
    lab.says("HTTPRoute", "default", "cart", "/parents/0", "Accepted=True/Accepted").await;
    let endpoint = || {
        let documents = lab.documents("/pingsix/default/web");
        documents.values().any(|document| document.to_string().contains("10.1.2.3:8080"))
    };
    eventually("the endpoint", endpoint).await;
    let gateway = lab.object("Gateway", "default", "web").await;
    assert_eq!(gateway["status"]["listeners"][0]["attachedRoutes"], 1);
    assert_eq!(gateway["status"]["conditions"][0]["observedGeneration"], gateway["metadata"]["generation"]);

    let routes = lab.cluster.admin();
    let api: kube::Api<pingsix_translate::snapshot::HttpRoute> = kube::Api::namespaced(routes, "default");
    api.delete("cart", &kube::api::DeleteParams::default()).await.unwrap();
    eventually("the end of the route", || lab.routes("/pingsix/default/web") == 0).await;
    running.stop().await;
}
