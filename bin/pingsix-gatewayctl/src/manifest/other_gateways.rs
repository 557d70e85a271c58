//! Kinds of other gateways. Their authors expect to be served, so an object of such a kind is not ignored in silence.

use pingsix_migrate::version_to_convert;
use pingsix_translate::{Kind, PINGSIX_GROUP};

use crate::finding::Level;

/// The gateway that reads a kind.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OtherGateway {
    pub(super) gateway: &'static str,
    pub(super) level: Level,
    /// Sentences for the author of an object.
    pub(super) advice: String,
}

/// The kinds of a gateway.
enum Kinds {
    All,
    These(&'static [&'static str]),
}

use Kinds::{All, These};

impl Kinds {
    fn contain(&self, kind: &str) -> bool {
        match self {
            All => true,
            These(kinds) => kinds.contains(&kind),
        }
    }
}

/// The API groups of gateways, with the groups below them. A group that a network shares has the kinds of its gateway alone.
const GATEWAYS: &[(&str, Kinds, &str)] = &[
    ("agentgateway.dev", All, "agentgateway"),
    ("alb.networking.azure.io", All, "Application Gateway for Containers"),
    ("apisix.apache.org", All, "APISIX"),
    (
        "cilium.io",
        These(&["CiliumClusterwideEnvoyConfig", "CiliumEnvoyConfig", "CiliumGatewayClassConfig"]),
        "Cilium",
    ),
    ("elbv2.k8s.aws", All, "the AWS Load Balancer Controller"),
    ("envoyproxy.io", All, "Envoy Gateway"),
    ("gateway.k8s.aws", All, "the AWS Load Balancer Controller"),
    ("gateway.nginx.org", All, "NGINX Gateway Fabric"),
    ("gateway.solo.io", All, "Gloo Gateway"),
    ("getambassador.io", All, "Emissary-ingress"),
    ("gloo.solo.io", All, "Gloo Gateway"),
    ("haproxy.org", All, "HAProxy"),
    ("k8s.nginx.org", All, "NGINX Ingress Controller"),
    ("kgateway.dev", All, "kgateway"),
    ("konghq.com", All, "Kong"),
    ("kuadrant.io", All, "Kuadrant"),
    (
        "kuma.io",
        These(&["MeshGateway", "MeshGatewayConfig", "MeshGatewayInstance", "MeshGatewayRoute"]),
        "Kuma",
    ),
    ("networking.gke.io", These(GKE), "GKE"),
    ("networking.istio.io", These(&["Gateway", "VirtualService"]), "Istio"),
    ("projectcontour.io", All, "Contour"),
    ("ratelimit.solo.io", All, "Gloo Gateway"),
    ("route.openshift.io", All, "OpenShift"),
    ("traefik.containo.us", All, "Traefik"),
    ("traefik.io", All, "Traefik"),
];

/// The kinds of `networking.gke.io` that concern load balancers.
const GKE: &[&str] = &[
    "FrontendConfig",
    "GCPBackendPolicy",
    "GCPGatewayPolicy",
    "GCPHTTPFilter",
    "GCPRoutingExtension",
    "GCPSessionAffinityFilter",
    "GCPSessionAffinityPolicy",
    "GCPTrafficDistributionPolicy",
    "GCPTrafficExtension",
    "HealthCheckPolicy",
    "ManagedCertificate",
];

/// The API groups of meshes. A mesh may run beside PingSIX, so its kinds are no problem.
const MESHES: &[(&str, &str)] = &[("istio.io", "Istio"), ("kuma.io", "Kuma"), ("linkerd.io", "Linkerd")];

/// Kinds that keep requests away. Their authors may take the traffic of PingSIX for protected.
const PROTECTIONS: &[(&str, &[&str])] = &[
    ("envoyproxy.io", &["SecurityPolicy"]),
    ("gateway.nginx.org", &["AuthenticationFilter", "RateLimitPolicy"]),
    ("getambassador.io", &["AuthService", "Filter", "FilterPolicy", "RateLimit", "RateLimitService"]),
    ("k8s.nginx.org", &["Policy"]),
    ("kuadrant.io", &["AuthPolicy", "RateLimitPolicy", "TokenRateLimitPolicy"]),
    ("linkerd.io", &["AuthorizationPolicy", "HTTPLocalRateLimitPolicy", "ServerAuthorization"]),
    ("kuma.io", &["MeshRateLimit", "MeshTrafficPermission"]),
    ("networking.gke.io", &["GCPBackendPolicy"]),
    ("security.istio.io", &["AuthorizationPolicy", "RequestAuthentication"]),
    ("solo.io", &["AuthConfig", "RateLimitConfig"]),
];

/// The group of experiments of Gateway API. A kind moves to the group of Gateway API when it is stable.
const EXPERIMENTS: &str = "gateway.networking.x-k8s.io";

/// The gateway that reads a kind, if that is another one than PingSIX.
pub(super) fn find(group: &str, version: &str, kind: &str) -> Option<OtherGateway> {
    if group == EXPERIMENTS {
        let stable = kind.strip_prefix('X').and_then(|stable| named(stable, |_| true));
        let advice = stable.map_or_else(
            || "Gateway API has no stable kind in their place yet.".to_owned(),
            |stable| format!("Use {stable} of {}.", stable.api_version()),
        );
        return Some(OtherGateway { gateway: "experiments of Gateway API", level: Level::Warning, advice });
    }
    let protects = PROTECTIONS.iter().any(|(known, kinds)| is_below(group, known) && kinds.contains(&kind));
    let protection = if protects { "Their protection is not applied. " } else { "" };
    let of_gateway = GATEWAYS.iter().find(|(known, kinds, _)| is_below(group, known) && kinds.contain(kind));
    if let Some((.., gateway)) = of_gateway {
        let advice = format!("{protection}{}", replacement(group, version, kind));
        return Some(OtherGateway { gateway, level: Level::Warning, advice });
    }
    let (_, gateway) = MESHES.iter().find(|(known, _)| is_below(group, known))?;
    let (level, advice) = if protects {
        (
            Level::Warning,
            format!("{protection}Use SecurityPolicy or TrafficPolicy of {PINGSIX_GROUP} as well."),
        )
    } else {
        (Level::Info, "They have no effect on the requests of PingSIX.".to_owned())
    };
    Some(OtherGateway { gateway, level, advice })
}

/// Whether an API group is another one, or below that one.
fn is_below(group: &str, known: &str) -> bool {
    group.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// A sentence on the kind to use in the place of another gateway's.
fn replacement(group: &str, version: &str, kind: &str) -> String {
    if let Some(convertible) = version_to_convert(group, kind) {
        return if version == convertible {
            "pingsix-gatewayctl migrate converts them.".to_owned()
        } else {
            format!("pingsix-gatewayctl migrate converts those of {group}/{convertible} only.")
        };
    }
    match named(kind, |known| known.group() == PINGSIX_GROUP) {
        Some(namesake) => format!("{namesake} of {} has other fields.", namesake.api_version()),
        None => "Use Gateway API or Ingress instead.".to_owned(),
    }
}

/// The kind with a name.
fn named(name: &str, is_one: impl Fn(Kind) -> bool) -> Option<Kind> {
    Kind::ALL.iter().copied().find(|known| known.as_str() == name && is_one(*known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(group: &str, kind: &str) -> Option<String> {
        find(group, "v1", kind).map(|other| other.advice)
    }

    #[test]
    fn kinds_of_gateways_have_advice_and_kinds_of_a_mesh_have_none() {
        let of_apisix = |version, kind| find("apisix.apache.org", version, kind).map(|other| other.advice);
        let migrate = Some("pingsix-gatewayctl migrate converts them.".to_owned());
        assert_eq!(of_apisix("v2", "ApisixRoute"), migrate);
        assert_ne!(of_apisix("v2", "ApisixClusterConfig"), migrate);
        let old = of_apisix("v2beta3", "ApisixRoute").unwrap_or_default();
        assert_eq!(old, "pingsix-gatewayctl migrate converts those of apisix.apache.org/v2 only.");
        let namesake = advice("gateway.envoyproxy.io", "SecurityPolicy").unwrap_or_default();
        assert_eq!(
            namesake,
            "Their protection is not applied. SecurityPolicy of pingsix.io/v1alpha1 has other fields."
        );
        assert_eq!(
            advice("projectcontour.io", "HTTPProxy").as_deref(),
            Some("Use Gateway API or Ingress instead.")
        );
        assert_eq!(find("apps", "v1", "Deployment"), None);
        let listener_set = advice(EXPERIMENTS, "XListenerSet").unwrap_or_default();
        assert_eq!(listener_set, "Use ListenerSet of gateway.networking.k8s.io/v1.");
        assert!(advice(EXPERIMENTS, "XMesh").is_some_and(|advice| advice.contains("no stable kind")));
    }

    #[test]
    fn a_mesh_has_warnings_for_its_gateway_and_its_protection_alone() {
        let level = |group, kind| find(group, "v1", kind).map(|other| (other.gateway, other.level));
        assert_eq!(level("networking.istio.io", "VirtualService"), Some(("Istio", Level::Warning)));
        assert_eq!(level("networking.istio.io", "DestinationRule"), Some(("Istio", Level::Info)));
        assert_eq!(level("security.istio.io", "PeerAuthentication"), Some(("Istio", Level::Info)));
        assert_eq!(level("security.istio.io", "RequestAuthentication"), Some(("Istio", Level::Warning)));
        assert_eq!(level("policy.linkerd.io", "Server"), Some(("Linkerd", Level::Info)));
        assert_eq!(level("kuma.io", "MeshGateway"), Some(("Kuma", Level::Warning)));
        let protection = advice("security.istio.io", "AuthorizationPolicy").unwrap_or_default();
        assert!(protection.starts_with("Their protection is not applied."), "{protection}");
    }

    #[test]
    fn a_group_has_the_groups_below_it_and_no_namesakes() {
        assert!(advice("ingress.v3.haproxy.org", "Backend").is_some());
        assert!(
            advice("enterprise.gloo.solo.io", "AuthConfig")
                .is_some_and(|advice| advice.contains("protection"))
        );
        assert_eq!(advice("notistio.io", "Gateway"), None);
        // The network applies its policies whatever gateway there is.
        assert_eq!(advice("cilium.io", "CiliumNetworkPolicy"), None);
        assert_eq!(advice("networking.gke.io", "Network"), None);
        assert_eq!(advice("karpenter.k8s.aws", "EC2NodeClass"), None);
    }
}
