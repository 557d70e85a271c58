//! The objects that an author writes for a site.

use serde_json::{Value, json};

use super::site::{Demand, Dialect, Part, PathMatch, Site, Written};
use crate::expectations::{SIGNING, tokens};

const NGINX: &str = "nginx.ingress.kubernetes.io";
const APISIX: &str = "k8s.apisix.apache.org";

/// The Services of all sites, in the order of their endpoints.
pub(super) const SERVICES: [&str; 5] = ["shop", "admin", "other", "legacy", "stranger"];

/// The endpoint of a Service.
pub(super) fn endpoint(service: &str) -> String {
    let index = SERVICES.iter().position(|&held| held == service).unwrap();
    format!("10.0.0.{}", index + 1)
}

/// The namespace of a Service, and of the routes that lead to it.
fn namespace(service: &str) -> &'static str {
    if service == "stranger" { "other" } else { "infra" }
}

impl Part {
    /// The API key of the part.
    pub(super) fn key(&self) -> String {
        format!("key-of-{}", self.name)
    }

    /// The password of the part's user `alice`.
    pub(super) fn password(&self) -> String {
        format!("password-of-{}", self.name)
    }
}

impl Site {
    pub(super) fn manifests(&self) -> Vec<Value> {
        let mut objects = if self.dialect == Dialect::Gateway { gateway(self.cached) } else { class() };
        for service in SERVICES {
            if self.parts.iter().any(|part| part.service == service) {
                objects.extend(service_objects(service));
            }
        }
        objects.push(secret("tokens", "Opaque", &json!({ "key": SIGNING })));
        for (age, part) in self.parts.iter().enumerate() {
            objects.push(match self.dialect {
                Dialect::Gateway => http_route(part, age),
                Dialect::Nginx | Dialect::Apisix => ingress(part, age, self.dialect),
            });
            objects.extend(secrets(part));
            if !part.is_open() && part.written != Written::Annotations {
                objects.push(security_policy(part, self.dialect));
            }
            if self.cached {
                let mut policy = policy("TrafficPolicy", part, self.dialect);
                policy["spec"]["cache"] = json!({ "ttl": "60s" });
                objects.push(policy);
            }
        }
        objects
    }
}

/// The Gateway, which admits other namespaces unless responses are cached.
fn gateway(cached: bool) -> Vec<Value> {
    let from = if cached { "Same" } else { "All" };
    vec![json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
        "metadata": { "namespace": "infra", "name": "public" },
        "spec": {
            "gatewayClassName": "pingsix",
            "listeners": [{
                "name": "http", "port": 80, "protocol": "HTTP",
                "allowedRoutes": { "namespaces": { "from": from } },
            }],
        },
    })]
}

fn class() -> Vec<Value> {
    let parameters = json!({
        "apiGroup": "pingsix.io", "kind": "PingsixProxy", "name": "annotated", "scope": "Namespace",
        "namespace": "infra",
    });
    vec![
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": { "name": "pingsix" },
            "spec": { "controller": "pingsix.io/gateway-controller", "parameters": parameters },
        }),
        json!({
            "apiVersion": "pingsix.io/v1alpha1", "kind": "PingsixProxy",
            "metadata": { "namespace": "infra", "name": "annotated" },
            "spec": {
                "attached": {}, "ingress": { "annotations": [NGINX, APISIX] }, "sharedCache": "Allowed",
            },
        }),
    ]
}

fn service_objects(service: &str) -> [Value; 2] {
    let namespace = namespace(service);
    [
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "namespace": namespace, "name": service },
            "spec": { "ports": [{ "port": 80 }] },
        }),
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "namespace": namespace, "name": service, "labels": { "kubernetes.io/service-name": service },
            },
            "addressType": "IPv4", "endpoints": [{ "addresses": [endpoint(service)] }],
            "ports": [{ "port": 8080 }],
        }),
    ]
}

fn secret(name: &str, kind: &str, data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": kind,
        "metadata": { "namespace": "infra", "name": name }, "stringData": data,
    })
}

/// The Secrets with the credentials of a part.
fn secrets(part: &Part) -> Vec<Value> {
    let one = |demand: &Demand| match demand {
        Demand::Key { .. } => {
            Some(secret(&format!("keys-{}", part.name), "Opaque", &json!({ "alice": part.key() })))
        }
        Demand::User => Some(secret(
            &format!("user-{}", part.name),
            "kubernetes.io/basic-auth",
            &json!({ "username": "alice", "password": part.password() }),
        )),
        Demand::Token | Demand::Addresses { .. } | Demand::Methods(_) | Demand::Impossible => None,
    };
    part.demands.iter().filter_map(one).collect()
}

fn created(age: usize) -> String {
    format!("2026-01-{:02}T00:00:00Z", age + 1)
}

fn http_route(part: &Part, age: usize) -> Value {
    let path = match part.path {
        PathMatch::Exact(value) => json!({ "type": "Exact", "value": value }),
        PathMatch::Prefix(value) | PathMatch::Stripped { prefix: value } => {
            json!({ "type": "PathPrefix", "value": value })
        }
        PathMatch::Regex { pattern, .. } => json!({ "type": "RegularExpression", "value": pattern }),
    };
    let mut matched = json!({ "path": path });
    if let Some(method) = part.method {
        matched["method"] = json!(method);
    }
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {
            "namespace": namespace(part.service), "name": part.name, "creationTimestamp": created(age),
        },
        "spec": {
            "parentRefs": [{ "name": "public", "namespace": "infra" }],
            "hostnames": part.hosts,
            "rules": [{
                "name": "only", "matches": [matched],
                "backendRefs": [{ "name": part.service, "port": 80 }],
            }],
        },
    })
}

fn ingress(part: &Part, age: usize, dialect: Dialect) -> Value {
    let mut annotations = serde_json::Map::new();
    let mut annotate = |domain: &str, name: &str, value: &str| {
        annotations.insert(format!("{domain}/{name}"), json!(value));
    };
    let domain = if dialect == Dialect::Nginx { NGINX } else { APISIX };
    let (kind, path) = match part.path {
        PathMatch::Exact(path) => ("Exact", path.to_owned()),
        PathMatch::Prefix(path) => ("Prefix", path.to_owned()),
        PathMatch::Regex { pattern, .. } => {
            annotate(domain, "use-regex", "true");
            ("ImplementationSpecific", pattern.to_owned())
        }
        PathMatch::Stripped { prefix } if dialect == Dialect::Nginx => {
            annotate(domain, "rewrite-target", "/$2");
            ("ImplementationSpecific", format!("{prefix}(/|$)(.*)"))
        }
        PathMatch::Stripped { prefix } => {
            annotate(domain, "rewrite-target-regex", &format!("^{prefix}/(.*)"));
            annotate(domain, "rewrite-target-regex-template", "/$1");
            ("Prefix", prefix.to_owned())
        }
    };
    if part.written == Written::Annotations {
        for demand in &part.demands {
            match (demand, dialect) {
                (Demand::User, _) => {
                    annotate(NGINX, "auth-type", "basic");
                    annotate(NGINX, "auth-secret", &format!("user-{}", part.name));
                }
                (Demand::Methods(methods), _) => annotate(APISIX, "http-allow-methods", &methods.join(",")),
                (Demand::Addresses { allow, deny, .. }, _) => {
                    let [allowed, denied] = if dialect == Dialect::Nginx {
                        ["whitelist-source-range", "denylist-source-range"]
                    } else {
                        ["allowlist-source-range", "blocklist-source-range"]
                    };
                    for (name, networks) in [(allowed, allow), (denied, deny)] {
                        if !networks.is_empty() {
                            annotate(domain, name, &networks.join(","));
                        }
                    }
                }
                (Demand::Impossible, Dialect::Apisix) => annotate(APISIX, "auth-type", "keyAuth"),
                (Demand::Impossible, _) => annotate(NGINX, "auth-url", "http://auth.example/check"),
                (Demand::Key { .. } | Demand::Token, _) => {}
            }
        }
    }
    let backend = json!({ "service": { "name": part.service, "port": { "number": 80 } } });
    let http = json!({ "paths": [{ "path": path, "pathType": kind, "backend": backend }] });
    let mut rules: Vec<Value> =
        part.hosts.iter().map(|host| json!({ "host": host, "http": http.clone() })).collect();
    if rules.is_empty() {
        rules.push(json!({ "http": http }));
    }
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {
            "namespace": namespace(part.service), "name": part.name, "creationTimestamp": created(age),
            "annotations": annotations,
        },
        "spec": { "ingressClassName": "pingsix", "rules": rules },
    })
}

/// A policy for a part, without fields.
fn policy(kind: &str, part: &Part, dialect: Dialect) -> Value {
    let (group, target) = match dialect {
        Dialect::Gateway => ("gateway.networking.k8s.io", "HTTPRoute"),
        Dialect::Nginx | Dialect::Apisix => ("networking.k8s.io", "Ingress"),
    };
    json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": kind,
        "metadata": { "namespace": namespace(part.service), "name": part.name },
        "spec": { "targetRefs": [{ "group": group, "kind": target, "name": part.name }] },
    })
}

fn security_policy(part: &Part, dialect: Dialect) -> Value {
    let mut policy = policy("SecurityPolicy", part, dialect);
    if part.written == Written::RulePolicy {
        policy["spec"]["targetRefs"][0]["sectionName"] = json!("only");
    }
    for demand in &part.demands {
        match demand {
            Demand::Key { header, parameter } => {
                let mut auth = json!({ "credentialRefs": [{ "name": format!("keys-{}", part.name) }] });
                if let Some(header) = header {
                    auth["extractFrom"]["headers"] = json!([header]);
                }
                if let Some(parameter) = parameter {
                    auth["extractFrom"]["params"] = json!([parameter]);
                }
                policy["spec"]["apiKeyAuth"] = auth;
            }
            Demand::User => {
                policy["spec"]["basicAuth"] =
                    json!({ "secretRef": { "name": format!("user-{}", part.name) } });
            }
            Demand::Token => policy["spec"]["jwt"] = tokens()["jwt"].clone(),
            Demand::Impossible => {
                let mut jwt = tokens()["jwt"].clone();
                jwt["algorithm"] = json!("HS384");
                policy["spec"]["jwt"] = jwt;
            }
            Demand::Addresses { allow, deny, proxies } => {
                let lists = [("allow", allow), ("deny", deny)];
                for (name, networks) in lists.into_iter().filter(|(_, networks)| !networks.is_empty()) {
                    policy["spec"]["authorization"][name] = json!(networks);
                }
                if !proxies.is_empty() {
                    policy["spec"]["clientIP"] = json!({ "trustedProxies": proxies });
                }
            }
            Demand::Methods(_) => {}
        }
    }
    policy
}
