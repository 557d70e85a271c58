//! Inputs of any size.

use std::fmt::Write as _;

/// An Ingress for a host, with three paths.
fn ingress(
    (namespace, name): (&str, &str),
    host: &str,
    annotations: &str,
    spec: &str,
    paths: [&str; 3],
) -> String {
    let mut text = format!(
        "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{ name: {name}, namespace: {namespace}, annotations: {{ \
         {annotations} }} }}\nspec:\n  ingressClassName: nginx\n  {spec}\n  rules:\n  - host: {host}\n    http:\n      paths:\n"
    );
    for (number, path) in paths.iter().enumerate() {
        let _ = writeln!(
            text,
            "      - {{ path: {path}, pathType: Prefix, backend: {{ service: {{ name: s{number}, port: {{ number: 80 }} }} }} }}"
        );
    }
    text
}

const PATHS: [&str; 3] = ["/", "/api", "/static"];

fn tls(host: &str) -> String {
    format!("tls: [{{ hosts: [{host}], secretName: tls }}]")
}

/// A host, a certificate and a namespace for each Ingress.
pub(crate) fn tenants(count: usize) -> String {
    let all = (0..count).map(|number| {
        let (namespace, host) = (format!("t{number}"), format!("t{number}.example"));
        let annotations = match number % 4 {
            0 => "nginx.ingress.kubernetes.io/whitelist-source-range: 10.0.0.0/8",
            1 => "nginx.ingress.kubernetes.io/proxy-body-size: 8m",
            2 => "nginx.ingress.kubernetes.io/ssl-redirect: \"false\"",
            _ => "",
        };
        ingress((&namespace, "site"), &host, annotations, &tls(&host), PATHS)
    });
    all.collect()
}

/// One host for all Ingresses, which are protected in several ways.
pub(crate) fn shared_host(count: usize) -> String {
    let all = (0..count).map(|number| {
        let paths = [format!("/a{number}"), format!("/a{number}/api"), format!("/b{number}")];
        let annotations =
            format!("nginx.ingress.kubernetes.io/whitelist-source-range: 10.0.0.{}/32", number % 250);
        let name = format!("site{number}");
        let paths = [paths[0].as_str(), paths[1].as_str(), paths[2].as_str()];
        ingress((&format!("t{number}"), &name), "shop.example", &annotations, "", paths)
    });
    all.collect()
}

/// One Ingress with many paths and many hosts of `spec.tls`.
pub(crate) fn long_ingress(count: usize) -> String {
    let hosts: Vec<String> = (0..count).map(|number| format!("h{number}.example")).collect();
    let mut text = ingress(("shop", "site"), "shop.example", "", &tls(&hosts.join(", ")), PATHS);
    for number in 0..count {
        let _ = writeln!(
            text,
            "      - {{ path: /p{number}, pathType: Exact, backend: {{ service: {{ name: s, port: {{ number: 80 }} }} }} }}"
        );
    }
    text
}

/// Names that take each other's place: of routes that differ late in their hosts, of paths, of canaries and of passed TLS.
pub(crate) fn rivals(count: usize) -> String {
    let long = format!("{}.{}.{}", "a".repeat(60), "b".repeat(60), "c".repeat(60));
    let all = (0..count).map(|number| {
        let annotations = match number % 3 {
            0 => "nginx.ingress.kubernetes.io/canary: \"true\", nginx.ingress.kubernetes.io/canary-weight: \"10\"",
            1 => "nginx.ingress.kubernetes.io/ssl-passthrough: \"true\"",
            _ => "nginx.ingress.kubernetes.io/app-root: /home",
        };
        let host = if number % 3 == 1 { format!("p{number}.example") } else { "shop.example".to_owned() };
        ingress(("shop", &format!("site{number}")), &host, annotations, "", PATHS)
    });
    let mut text: String = all.collect();
    text.push_str(&ingress(
        ("shop", &"n".repeat(120)),
        "shop.example",
        "nginx.ingress.kubernetes.io/app-root: /a",
        "",
        PATHS,
    ));
    for number in 0..count {
        let _ = writeln!(
            text,
            "  - {{ host: {long}.h{number}.example, http: {{ paths: [{{ path: /, pathType: Prefix, backend: {{ service: {{ name: s, \
             port: {{ number: 80 }} }} }} }}] }} }}"
        );
    }
    text
}

/// Rules of APISIX.
pub(crate) fn apisix(count: usize) -> String {
    let mut text = String::new();
    for number in 0..count {
        let _ = writeln!(
            text,
            "---\napiVersion: apisix.apache.org/v2\nkind: ApisixRoute\nmetadata: {{ name: r{number}, namespace: t{} }}\nspec:\n  \
             ingressClassName: apisix\n  http:\n  - {{ name: a, match: {{ hosts: [h{number}.example], paths: [/*] }}, backends: [{{ \
             serviceName: s, servicePort: 80 }}] }}\n  stream:\n  - {{ name: s, protocol: TCP, match: {{ ingressPort: {} }}, \
             backend: {{ serviceName: s, servicePort: 80 }} }}",
            number % 50,
            10_000 + number,
        );
    }
    text
}

/// Routes whose Services are absent, beside others.
pub(crate) fn routes(count: usize) -> String {
    let mut text = "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: { name: pingsix }\nspec: { controllerName: \
                    pingsix.io/gateway-controller }\n---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: { name: g, \
                    namespace: edge }\nspec: { gatewayClassName: pingsix, listeners: [{ name: http, port: 80, protocol: HTTP, \
                    allowedRoutes: { namespaces: { from: All } } }] }\n"
        .to_owned();
    for number in 0..count {
        let _ = writeln!(
            text,
            "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{ name: r{number}, namespace: t{} }}\nspec:\n  \
             parentRefs: [{{ name: g, namespace: edge }}]\n  hostnames: [h{number}.example]\n  rules: [{{ backendRefs: [{{ name: \
             absent{number}, port: 80 }}] }}]\n---\napiVersion: v1\nkind: Service\nmetadata: {{ name: s{number}, namespace: t{} }}\n\
             spec: {{ ports: [{{ port: 80 }}] }}",
            number % 3,
            number % 5,
        );
    }
    text
}
