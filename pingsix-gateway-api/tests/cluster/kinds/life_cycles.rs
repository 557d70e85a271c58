//! Test cases for one object of each kind with its effects.

use pingsix_translate::Kind;

use crate::test_env::shop;

/// A visible effect. An object without an explicit namespace is in `default`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect {
    /// A document has this text.
    Served(&'static str),
    /// No object has the effect.
    NotServed(&'static str),
    /// An object's status has this condition under a path.
    HasCondition(Kind, &'static str, &'static str, &'static str),
    /// An object's status has the address of the controller's options.
    HasAddress(Kind, &'static str),
    /// An object has only conditions that wait for a controller.
    HasNoCondition(Kind, &'static str),
    /// An object's status has no entry of ours.
    HasNoEntry(Kind, &'static str),
}

use Effect::{HasAddress, HasCondition, HasNoCondition, HasNoEntry, NotServed, Served};

/// The life cycle of an object: manifests and their effects.
pub(super) struct LifeCycle {
    pub(super) name: &'static str,
    pub(super) created: (String, Vec<Effect>),
    pub(super) changed: (String, Vec<Effect>),
    pub(super) deleted: Vec<Effect>,
}

/// The objects that stay during all life cycles, and refer to the objects under test.
///
/// Each Service has an endpoint of its own, which identifies the Service in documents. `cart` (10.1.0.1) is served;
/// `pay` (10.1.0.2) is not, because no grant allows its only route.
pub(super) const BASE: &str = include_str!("base.yaml");

/// A route to `pay`, and the same to `cart`.
fn route(kind: Kind, section: &str, hostnames: &str) -> [String; 2] {
    let port = if kind == Kind::UdpRoute { 53 } else { 80 };
    ["pay", "cart"].map(|service| {
        format!(
            "
apiVersion: gateway.networking.k8s.io/v1
kind: {kind}
metadata: {{name: told, namespace: default}}
spec:
  parentRefs: [{{name: web, sectionName: {section}}}]
  {hostnames}
  rules: [{{backendRefs: [{{name: {service}, port: {port}}}]}}]
"
        )
    })
}

/// A policy with a plugin, which becomes invalid.
fn life_cycle_of_an_inherited_policy(
    kind: Kind,
    plugin: &'static str,
    [valid, invalid]: [String; 2],
) -> LifeCycle {
    let accepted = |condition| HasCondition(kind, "told", "/ancestors/0", condition);
    LifeCycle {
        name: "told",
        created: (valid, vec![Served(plugin), accepted("Accepted=True/Accepted")]),
        changed: (invalid, vec![NotServed(plugin), accepted("Accepted=False/Invalid")]),
        deleted: vec![NotServed(plugin)],
    }
}

fn life_cycle_of_a_route(kind: Kind, section: &str, hostnames: &str) -> LifeCycle {
    let [created, changed] = route(kind, section, hostnames);
    let accepted = HasCondition(kind, "told", "/parents/0", "Accepted=True/Accepted");
    let resolved = HasCondition(kind, "told", "/parents/0", "ResolvedRefs=True/ResolvedRefs");
    LifeCycle {
        name: "told",
        created: (created, vec![Served("10.1.0.2"), accepted, resolved]),
        changed: (changed, vec![NotServed("10.1.0.2"), accepted, resolved]),
        deleted: vec![NotServed("10.1.0.2")],
    }
}

fn gateway(hostname: &str) -> String {
    format!(
        "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: told, namespace: default}}
spec:
  gatewayClassName: pingsix
  listeners: [{{name: http, port: 80, protocol: HTTP, hostname: {hostname}}}]
"
    )
}

fn listener_set(hostname: &str) -> String {
    format!(
        "
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {{name: told, namespace: default}}
spec:
  parentRef: {{name: web}}
  listeners: [{{name: more, port: 80, protocol: HTTP, hostname: {hostname}}}]
"
    )
}

fn policy(validation: &str) -> String {
    format!(
        "
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {{name: told, namespace: default}}
spec:
  targetRefs: [{{group: '', kind: Service, name: cart}}]
  validation: {{hostname: cart.example, {validation}}}
"
    )
}

fn backend_traffic_policy(balancer: &str) -> String {
    format!(
        "
apiVersion: pingsix.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {{name: told, namespace: default}}
spec:
  targetRefs: [{{kind: Service, name: cart}}]
  loadBalancer: {{type: {balancer}}}
"
    )
}

fn security_policy(network: &str) -> String {
    format!(
        "
apiVersion: pingsix.io/v1alpha1
kind: SecurityPolicy
metadata: {{name: told, namespace: default}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, kind: Gateway, name: web}}]
  authorization: {{allow: [{network}]}}
"
    )
}

fn traffic_policy(header: &str) -> String {
    format!(
        "
apiVersion: pingsix.io/v1alpha1
kind: TrafficPolicy
metadata: {{name: told, namespace: default}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, kind: Gateway, name: web}}]
  requestID: {{headerName: {header}}}
"
    )
}

fn proxy(attached: &str) -> String {
    format!(
        "
apiVersion: pingsix.io/v1alpha1
kind: PingsixProxy
metadata: {{name: told, namespace: default}}
spec: {{attached: {{{attached}}}}}
"
    )
}

fn grant(kind: &str) -> String {
    format!(
        "
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {{name: told, namespace: default}}
spec:
  from: [{{group: gateway.networking.k8s.io, kind: {kind}, namespace: abroad}}]
  to: [{{group: '', kind: Service}}]
"
    )
}

fn class(more: &str) -> String {
    format!(
        "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {{name: told}}
spec: {{controllerName: pingsix.io/gateway-controller{more}}}
"
    )
}

fn ingress_class(is_default: bool) -> String {
    format!(
        "
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {{name: told, annotations: {{ingressclass.kubernetes.io/is-default-class: '{is_default}'}}}}
spec: {{controller: pingsix.io/gateway-controller}}
"
    )
}

fn ingress(host: &str) -> String {
    format!(
        "
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: told, namespace: default}}
spec:
  ingressClassName: ours
  rules:
  - host: {host}
    http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: cart, port: {{number: 80}}}}}}}}]}}
"
    )
}

fn service(port: u16) -> String {
    format!(
        "
apiVersion: v1
kind: Service
metadata: {{name: told, namespace: default}}
spec: {{ports: [{{name: web, port: {port}, targetPort: 8080}}]}}
"
    )
}

fn slice(address: &str) -> String {
    shop::slice("told", &[address])
}

fn config_map(text: &str) -> String {
    format!(
        "
apiVersion: v1
kind: ConfigMap
metadata: {{name: told, namespace: default}}
data: {{ca.crt: {}}}
",
        serde_json::to_string(text).unwrap()
    )
}

fn namespace(team: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Namespace
metadata: {{name: told, labels: {{team: {team}}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: guest, namespace: told}}
spec:
  parentRefs: [{{name: web, namespace: default, sectionName: chosen}}]
  hostnames: [guest.chosen.example]
  rules: [{{filters: [{{type: RequestRedirect, requestRedirect: {{hostname: guest.redirected.example}}}}]}}]
"
    )
}

/// The life of an object of a kind.
#[allow(clippy::too_many_lines, clippy::wildcard_enum_match_arm, reason = "one arm for each kind")]
pub(super) fn life_cycle(kind: Kind) -> LifeCycle {
    match kind {
        Kind::GatewayClass => {
            let odd = ", parametersRef: {group: example.test, kind: Parameters, name: none}";
            LifeCycle {
                name: "told",
                created: (
                    class(""),
                    vec![
                        HasCondition(kind, "told", "", "Accepted=True/Accepted"),
                        HasCondition(Kind::Gateway, "classless", "", "Accepted=True/Accepted"),
                    ],
                ),
                changed: (
                    class(odd),
                    vec![HasCondition(kind, "told", "", "Accepted=False/InvalidParameters")],
                ),
                deleted: vec![HasNoCondition(Kind::Gateway, "classless")],
            }
        }
        Kind::Gateway => LifeCycle {
            name: "told",
            created: (
                gateway("'*.waiting.example'"),
                vec![
                    Served("one.waiting.example"),
                    HasCondition(kind, "told", "", "Accepted=True/Accepted"),
                    HasCondition(Kind::HttpRoute, "waiting", "/parents/0", "Accepted=True/Accepted"),
                    HasAddress(kind, "told"),
                ],
            ),
            changed: (
                gateway("'*.other.example'"),
                vec![
                    NotServed("one.waiting.example"),
                    HasCondition(
                        Kind::HttpRoute,
                        "waiting",
                        "/parents/0",
                        "Accepted=False/NoMatchingListenerHostname",
                    ),
                ],
            ),
            deleted: vec![HasNoEntry(Kind::HttpRoute, "waiting")],
        },
        Kind::ListenerSet => LifeCycle {
            name: "told",
            created: (
                listener_set("'*.more.example'"),
                vec![
                    Served("one.more.example"),
                    HasCondition(kind, "told", "", "Accepted=True/Accepted"),
                    HasCondition(Kind::HttpRoute, "more", "/parents/0", "Accepted=True/Accepted"),
                ],
            ),
            changed: (
                listener_set("'*.other.example'"),
                vec![
                    NotServed("one.more.example"),
                    HasCondition(
                        Kind::HttpRoute,
                        "more",
                        "/parents/0",
                        "Accepted=False/NoMatchingListenerHostname",
                    ),
                ],
            ),
            deleted: vec![HasNoEntry(Kind::HttpRoute, "more")],
        },
        kind if kind.has_requests() => life_cycle_of_a_route(kind, "plain", "hostnames: [told.example]"),
        Kind::TlsRoute => life_cycle_of_a_route(kind, "tls", "hostnames: [told.example]"),
        kind if kind.is_route() => {
            let protocol = kind.as_str().trim_end_matches("Route").to_ascii_lowercase();
            life_cycle_of_a_route(kind, &protocol, "")
        }
        Kind::BackendTlsPolicy => LifeCycle {
            name: "told",
            created: (
                policy("wellKnownCACertificates: System"),
                vec![
                    Served("10.1.0.1"),
                    HasCondition(kind, "told", "/ancestors/0", "Accepted=True/Accepted"),
                ],
            ),
            changed: (
                policy("caCertificateRefs: [{group: '', kind: ConfigMap, name: none}]"),
                vec![
                    NotServed("10.1.0.1"),
                    HasCondition(kind, "told", "/ancestors/0", "ResolvedRefs=False/InvalidCACertificateRef"),
                ],
            ),
            deleted: vec![Served("10.1.0.1")],
        },
        Kind::BackendTrafficPolicy => LifeCycle {
            name: "told",
            created: (
                backend_traffic_policy("Random"),
                vec![
                    Served("\"type\":\"random\""),
                    HasCondition(kind, "told", "/ancestors/0", "Accepted=True/Accepted"),
                ],
            ),
            changed: (
                backend_traffic_policy("LeastRequest"),
                vec![
                    NotServed("\"type\":\"random\""),
                    Served("10.1.0.1"),
                    HasCondition(kind, "told", "/ancestors/0", "Accepted=False/UnsupportedValue"),
                ],
            ),
            deleted: vec![Served("10.1.0.1")],
        },
        Kind::SecurityPolicy => {
            let specs = ["127.0.0.0/8", "127.0.0.1/8"].map(security_policy);
            life_cycle_of_an_inherited_policy(kind, "ip-restriction", specs)
        }
        Kind::TrafficPolicy => {
            life_cycle_of_an_inherited_policy(kind, "request-id", ["X-Trace", "Host"].map(traffic_policy))
        }
        Kind::ReferenceGrant => {
            let with_condition =
                |condition| HasCondition(Kind::HttpRoute, "abroad/traveller", "/parents/0", condition);
            let refused = vec![NotServed("10.1.0.2"), with_condition("ResolvedRefs=False/RefNotPermitted")];
            LifeCycle {
                name: "told",
                created: (grant("GRPCRoute"), refused.clone()),
                changed: (
                    grant("HTTPRoute"),
                    vec![Served("10.1.0.2"), with_condition("ResolvedRefs=True/ResolvedRefs")],
                ),
                deleted: refused,
            }
        }
        Kind::IngressClass => LifeCycle {
            name: "told",
            created: (
                ingress_class(false),
                vec![
                    Served("of-told.example"),
                    NotServed("of-none.example"),
                    HasAddress(Kind::Ingress, "of-told"),
                ],
            ),
            changed: (
                ingress_class(true),
                vec![Served("of-none.example"), HasAddress(Kind::Ingress, "of-none")],
            ),
            deleted: vec![NotServed("of-told.example"), NotServed("of-none.example")],
        },
        Kind::Ingress => LifeCycle {
            name: "told",
            created: (
                ingress("one.told.example"),
                vec![Served("one.told.example"), HasAddress(kind, "told")],
            ),
            changed: (
                ingress("two.told.example"),
                vec![Served("two.told.example"), NotServed("one.told.example")],
            ),
            deleted: vec![NotServed("two.told.example")],
        },
        Kind::Service => {
            let missing =
                HasCondition(Kind::HttpRoute, "late", "/parents/0", "ResolvedRefs=False/BackendNotFound");
            LifeCycle {
                name: "told",
                created: (service(81), vec![NotServed("10.1.0.3"), missing]),
                changed: (
                    service(80),
                    vec![
                        Served("10.1.0.3"),
                        HasCondition(Kind::HttpRoute, "late", "/parents/0", "ResolvedRefs=True/ResolvedRefs"),
                    ],
                ),
                deleted: vec![NotServed("10.1.0.3"), missing],
            }
        }
        Kind::EndpointSlice => LifeCycle {
            name: "told",
            created: (slice("10.1.0.4"), vec![Served("10.1.0.1"), Served("10.1.0.4")]),
            changed: (slice("10.1.0.5"), vec![Served("10.1.0.5"), NotServed("10.1.0.4")]),
            deleted: vec![Served("10.1.0.1"), NotServed("10.1.0.5")],
        },
        Kind::Secret => {
            let (certificate, key) = shop::pair("secure.example");
            let resolved =
                HasCondition(Kind::Gateway, "web", "/listeners/1", "ResolvedRefs=True/ResolvedRefs");
            let unresolved = HasCondition(
                Kind::Gateway,
                "web",
                "/listeners/1",
                "ResolvedRefs=False/InvalidCertificateRef",
            );
            LifeCycle {
                name: "told",
                created: (
                    shop::secret("told", &certificate, "no key"),
                    vec![unresolved, NotServed("BEGIN CERTIFICATE")],
                ),
                changed: (
                    shop::secret("told", &certificate, &key),
                    vec![resolved, Served("BEGIN CERTIFICATE")],
                ),
                deleted: vec![unresolved, NotServed("BEGIN CERTIFICATE")],
            }
        }
        Kind::ConfigMap => {
            let (certificate, _) = shop::pair("authority.example");
            let with_condition =
                |condition| HasCondition(Kind::BackendTlsPolicy, "checked", "/ancestors/0", condition);
            let invalid = with_condition("ResolvedRefs=False/InvalidCACertificateRef");
            LifeCycle {
                name: "told",
                created: (config_map("no certificate"), vec![invalid]),
                // PingSIX has one set of CAs for all backends, so the bundle is found and not used.
                changed: (config_map(&certificate), vec![with_condition("ResolvedRefs=True/ResolvedRefs")]),
                deleted: vec![invalid],
            }
        }
        Kind::HttpRouteFilter => {
            let filter = |body: &str| {
                format!(
                    "
apiVersion: pingsix.io/v1alpha1
kind: HTTPRouteFilter
metadata: {{name: told, namespace: default}}
spec: {{directResponse: {{statusCode: 503, body: {body}}}}}
"
                )
            };
            let with_condition =
                |condition| HasCondition(Kind::HttpRoute, "filtered", "/parents/0", condition);
            let resolved = with_condition("ResolvedRefs=True/ResolvedRefs");
            LifeCycle {
                name: "told",
                created: (filter("closed-for-now"), vec![resolved, Served("closed-for-now")]),
                changed: (
                    filter("closed-for-good"),
                    vec![resolved, Served("closed-for-good"), NotServed("closed-for-now")],
                ),
                deleted: vec![
                    with_condition("ResolvedRefs=False/BackendNotFound"),
                    NotServed("closed-for-good"),
                ],
            }
        }
        Kind::PingsixProxy => {
            let parametrised = |condition| HasCondition(Kind::Gateway, "parametrised", "", condition);
            let refused = parametrised("Accepted=False/InvalidParameters");
            LifeCycle {
                name: "told",
                created: (
                    // Without status pages, because the progress of their poller does not follow from objects.
                    proxy("layout: Shared"),
                    vec![
                        HasCondition(kind, "told", "", "Accepted=True/Accepted"),
                        parametrised("Accepted=True/Accepted"),
                        HasAddress(Kind::Gateway, "parametrised"),
                    ],
                ),
                // The schema accepts these parameters, which are invalid with a layout of one process per port.
                changed: (proxy("layout: PerPort, statusUrls: [{url: 'http://127.0.0.1:1'}]"), vec![refused]),
                deleted: vec![refused],
            }
        }
        Kind::Namespace => LifeCycle {
            name: "told",
            created: (namespace("other"), vec![NotServed("guest.chosen.example")]),
            changed: (namespace("chosen"), vec![Served("guest.chosen.example")]),
            deleted: vec![NotServed("guest.chosen.example")],
        },
        _ => panic!("{kind} has no life cycle"),
    }
}
