//! Kinds of other gateways. Their authors expect to be served, so an object of such a kind is not ignored in silence.

use pingsix_translate::{Kind, PINGSIX_GROUP};

use crate::migrate::converts;

/// The gateway that reads a kind.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OtherGateway {
    pub(super) gateway: &'static str,
    /// A sentence for the author of an object.
    pub(super) advice: String,
}

/// The kinds of a gateway.
enum Kinds {
    All,
    These(&'static [&'static str]),
}

/// The API groups of gateways. A group that a service mesh shares has the kinds of its gateway alone.
const GATEWAYS: &[(&str, Kinds, &str)] = &[
    ("apisix.apache.org", Kinds::All, "APISIX"),
    ("configuration.konghq.com", Kinds::All, "Kong"),
    ("core.haproxy.org", Kinds::All, "HAProxy"),
    ("gateway.envoyproxy.io", Kinds::All, "Envoy Gateway"),
    ("gateway.kgateway.dev", Kinds::All, "kgateway"),
    ("gateway.nginx.org", Kinds::All, "NGINX Gateway Fabric"),
    ("gateway.solo.io", Kinds::All, "Gloo Gateway"),
    ("getambassador.io", Kinds::All, "Emissary-ingress"),
    ("ingress.v1.haproxy.org", Kinds::All, "HAProxy"),
    ("ingress.v3.haproxy.org", Kinds::All, "HAProxy"),
    ("k8s.nginx.org", Kinds::All, "NGINX Ingress Controller"),
    ("networking.istio.io", Kinds::These(&["Gateway", "VirtualService"]), "Istio"),
    ("projectcontour.io", Kinds::All, "Contour"),
    ("traefik.containo.us", Kinds::All, "Traefik"),
    ("traefik.io", Kinds::All, "Traefik"),
];

/// The group of experiments of Gateway API. A kind moves to the group of Gateway API when it is stable.
const EXPERIMENTS: &str = "gateway.networking.x-k8s.io";

/// The gateway that reads a kind, if that is another one than PingSIX.
pub(super) fn find(group: &str, kind: &str) -> Option<OtherGateway> {
    if group == EXPERIMENTS {
        let stable = kind.strip_prefix('X').and_then(|stable| named(stable, |_| true));
        let advice = stable.map_or_else(
            || "Gateway API has no stable kind in their place yet.".to_owned(),
            |stable| format!("Use {stable} of {}.", stable.api_version()),
        );
        return Some(OtherGateway { gateway: "experiments of Gateway API", advice });
    }
    let (_, kinds, gateway) = GATEWAYS.iter().find(|(known, ..)| *known == group)?;
    let is_of_gateway = match kinds {
        Kinds::All => true,
        Kinds::These(kinds) => kinds.contains(&kind),
    };
    let advice = if converts(group, kind) {
        "pingsix-gatewayctl migrate converts them.".to_owned()
    } else if let Some(namesake) = named(kind, |known| known.group() == PINGSIX_GROUP) {
        format!("{namesake} of {} has other fields.", namesake.api_version())
    } else {
        "Kinds of Gateway API and Ingress have their place.".to_owned()
    };
    is_of_gateway.then_some(OtherGateway { gateway, advice })
}

/// The kind with a name.
fn named(name: &str, is_one: impl Fn(Kind) -> bool) -> Option<Kind> {
    Kind::ALL.iter().copied().find(|known| known.as_str() == name && is_one(*known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(group: &str, kind: &str) -> Option<String> {
        find(group, kind).map(|other| other.advice)
    }

    #[test]
    fn kinds_of_gateways_have_advice_and_kinds_of_a_mesh_have_none() {
        let migrate = Some("pingsix-gatewayctl migrate converts them.".to_owned());
        assert_eq!(advice("apisix.apache.org", "ApisixRoute"), migrate);
        assert_ne!(advice("apisix.apache.org", "ApisixClusterConfig"), migrate);
        let namesake = advice("gateway.envoyproxy.io", "SecurityPolicy").unwrap_or_default();
        assert_eq!(namesake, "SecurityPolicy of pingsix.io/v1alpha1 has other fields.");
        assert_eq!(find("networking.istio.io", "VirtualService").map(|other| other.gateway), Some("Istio"));
        assert_eq!(find("networking.istio.io", "DestinationRule"), None);
        assert_eq!(find("apps", "Deployment"), None);
        let listener_set = advice(EXPERIMENTS, "XListenerSet").unwrap_or_default();
        assert_eq!(listener_set, "Use ListenerSet of gateway.networking.k8s.io/v1.");
        assert!(advice(EXPERIMENTS, "XMesh").is_some_and(|advice| advice.contains("no stable kind")));
    }
}
