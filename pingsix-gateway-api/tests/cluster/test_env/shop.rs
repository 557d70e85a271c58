//! One Gateway with a route to a Service, the subject of most tests.

/// The class of the Gateway.
pub(crate) const CLASS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: pingsix}
spec: {controllerName: pingsix.io/gateway-controller}
";

/// The prefix of the Gateway's documents.
pub(crate) const PLANE: &str = "/pingsix/default/web";

/// A Gateway with a listener for plain HTTP.
pub(crate) const GATEWAY: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: default}
spec:
  gatewayClassName: pingsix
  listeners: [{name: plain, port: 80, protocol: HTTP}]
";

/// A Service with one endpoint.
pub(crate) const SERVICE: &str = "
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

/// A route from the Gateway to the Service.
pub(crate) const ROUTE: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: cart, namespace: default}
spec:
  parentRefs: [{name: web}]
  hostnames: [cart.example]
  rules: [{backendRefs: [{name: cart, port: 80}]}]
";

/// Another route of that kind, for another host.
pub(crate) fn route(name: &str) -> String {
    ROUTE
        .replace("name: cart, namespace: default", &format!("name: {name}, namespace: default"))
        .replace("cart.example", &format!("{name}.example"))
}

/// The same route with a redirect, whose effect is visible without an endpoint. An API server accepts no endpoint on
/// this machine.
pub(crate) fn redirect(to: &str) -> String {
    format!(
        "
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: cart, namespace: default}}
spec:
  parentRefs: [{{name: web}}]
  hostnames: [cart.example]
  rules: [{{filters: [{{type: RequestRedirect, requestRedirect: {{hostname: {to}, statusCode: 302}}}}]}}]
"
    )
}

/// More endpoints of the Service, in this order.
pub(crate) fn slice(name: &str, addresses: &[&str]) -> String {
    let endpoints: Vec<String> = addresses
        .iter()
        .map(|address| format!("{{addresses: [{address}], conditions: {{ready: true}}}}"))
        .collect();
    format!(
        "
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}, namespace: default, labels: {{kubernetes.io/service-name: cart}}}}
addressType: IPv4
ports: [{{name: web, port: 8080, protocol: TCP}}]
endpoints: [{}]
",
        endpoints.join(", ")
    )
}

/// A Gateway that takes its certificate from a Secret.
pub(crate) fn secure_gateway(reference: &str) -> String {
    format!(
        "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: web, namespace: default}}
spec:
  gatewayClassName: pingsix
  listeners:
  - {{name: secure, port: 443, protocol: HTTPS, hostname: cart.example, tls: {{certificateRefs: [{reference}]}}}}
"
    )
}

/// A certificate for a host, and its key.
pub(crate) fn pair(host: &str) -> (String, String) {
    let pair = rcgen::generate_simple_self_signed([host.to_owned()]).unwrap();
    (pair.cert.pem(), pair.signing_key.serialize_pem())
}

/// A Secret with a certificate.
pub(crate) fn secret(name: &str, certificate: &str, key: &str) -> String {
    let text = |text: &str| serde_json::to_string(text).unwrap();
    format!(
        "
apiVersion: v1
kind: Secret
metadata: {{name: {name}, namespace: default}}
type: kubernetes.io/tls
stringData: {{tls.crt: {}, tls.key: {}}}
",
        text(certificate),
        text(key)
    )
}
