//! The features of Gateway API that are claimed: one table that the status of GatewayClasses and the documentation read.
//!
//! A name in `GatewayClass.status.supportedFeatures` is a promise to pass the conformance tests behind it, so what rests on
//! a limit is not in the table, however close it comes. The table of capabilities ([`Capability`](crate::Capability)) has
//! the features that are not claimed, each with the capability that is missing.

use crate::crd::ServiceType;
use crate::infrastructure::{ManagedParameters, executors};
use crate::model::{Layout, Options};

/// A feature that is claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// The name in `status.supportedFeatures`.
    pub name: &'static str,
    /// The meaning in a few words.
    pub summary: &'static str,
    /// The prerequisites of a class.
    pub needs: &'static [Need],
}

/// A property that a class has by the options of the installation or by its own parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// [`Options::responder`]: some answers PingSIX cannot give itself, among them the 404 behind conditions that nothing
    /// meets.
    Responder,
    /// [`Layout::PerPort`], which distinguishes ports. Managed data planes have it.
    PerPort,
    /// Managed data planes: the controller has their addresses and creates labelled objects.
    Managed,
    /// Managed data planes, whose sidecars proxy TCP, UDP and TLS, or [`Options::stream`].
    Streams,
    /// Managed data planes whose sidecars terminate TLS in front of PingSIX.
    Front,
    /// Managed data planes behind a load balancer, whose address can be requested.
    LoadBalancer,
}

impl Need {
    /// The option, or the field of a [`PingsixProxy`](crate::crd::PingsixProxy), that gives it.
    pub const fn option(self) -> &'static str {
        match self {
            Self::Responder => "--responder",
            Self::PerPort => "--layout perPort",
            Self::Managed => "spec.managed",
            Self::Streams => "--stream",
            Self::Front => "spec.managed.sidecar.https: true",
            Self::LoadBalancer => "spec.managed.service.type: LoadBalancer",
        }
    }

    fn is_met(self, options: &Options, managed: Option<&ManagedParameters>) -> bool {
        let executors = executors(options, managed);
        match self {
            Self::Responder => executors.responder,
            Self::PerPort => managed.is_some() || options.layout == Layout::PerPort,
            Self::Managed => managed.is_some(),
            Self::Streams => executors.stream_proxy,
            Self::Front => executors.tls_front,
            Self::LoadBalancer => {
                managed.is_some_and(|managed| managed.service.kind == ServiceType::LoadBalancer)
            }
        }
    }
}

const fn feature(name: &'static str, needs: &'static [Need], summary: &'static str) -> Feature {
    Feature { name, summary, needs }
}

const NOTHING: &[Need] = &[];
const RESPONDER: &[Need] = &[Need::Responder];
const PER_PORT: &[Need] = &[Need::PerPort];
const BOTH: &[Need] = &[Need::Responder, Need::PerPort];
const MANAGED: &[Need] = &[Need::Managed];
const STREAMS: &[Need] = &[Need::Streams];
const FRONT: &[Need] = &[Need::Front];
const FRONT_AND_RESPONDER: &[Need] = &[Need::Responder, Need::Front];
const LOAD_BALANCER: &[Need] = &[Need::LoadBalancer];

/// Every feature that some class supports, sorted by name. At most 64, which is the limit of the status.
pub const FEATURES: &[Feature] = &[
    feature("GRPCRoute", RESPONDER, "routes of gRPC calls"),
    feature("GRPCRouteNamedRouteRule", RESPONDER, "rules of a GRPCRoute may have names"),
    feature("Gateway", NOTHING, "Gateways and their listeners"),
    feature("GatewayAddressEmpty", MANAGED, "a Gateway may request an address by its type alone"),
    feature(
        "GatewayFrontendClientCertificateValidation",
        FRONT,
        "clients of HTTPS listeners may be asked for certificates",
    ),
    feature(
        "GatewayFrontendClientCertificateValidationInsecureFallback",
        FRONT,
        "clients without a valid certificate may be let in",
    ),
    feature("GatewayHTTPListenerIsolation", NOTHING, "a request is for the most specific listener alone"),
    feature(
        "GatewayHTTPSListenerDetectMisdirectedRequests",
        FRONT_AND_RESPONDER,
        "requests by the connection of another listener get 421",
    ),
    feature(
        "GatewayInfrastructure",
        MANAGED,
        "labels, annotations and parameters for the objects of a Gateway",
    ),
    feature("GatewayInfrastructurePropagation", MANAGED, "the name of `GatewayInfrastructure` before v1.6.3"),
    feature("GatewayPort8080", PER_PORT, "listeners on a second port for HTTP"),
    feature(
        "GatewayRouteHostnameIntersectionPrecedence",
        RESPONDER,
        "of equal intersections, the hostname as written decides",
    ),
    feature("GatewayStaticAddresses", LOAD_BALANCER, "a Gateway may request an address"),
    feature("HTTPRoute", RESPONDER, "routes of HTTP requests"),
    feature("HTTPRoute303RedirectStatusCode", RESPONDER, "redirects with status 303"),
    feature("HTTPRoute307RedirectStatusCode", RESPONDER, "redirects with status 307"),
    feature("HTTPRoute308RedirectStatusCode", RESPONDER, "redirects with status 308"),
    feature("HTTPRouteBackendProtocolH2C", RESPONDER, "backends that speak HTTP/2 without TLS"),
    feature("HTTPRouteBackendProtocolWebSocket", RESPONDER, "backends that speak WebSocket"),
    feature("HTTPRouteDestinationPortMatching", BOTH, "a parentRef may select listeners by port"),
    feature("HTTPRouteHostRewrite", RESPONDER, "the host that backends see"),
    feature("HTTPRouteMethodMatching", RESPONDER, "matches of methods"),
    feature("HTTPRouteNamedRouteRule", RESPONDER, "rules of an HTTPRoute may have names"),
    feature("HTTPRouteParentRefPort", BOTH, "a parentRef may name a port"),
    feature("HTTPRoutePathRedirect", RESPONDER, "redirects to another path"),
    feature("HTTPRoutePathRewrite", RESPONDER, "the path that backends see"),
    feature("HTTPRoutePortRedirect", BOTH, "redirects to another port"),
    feature("HTTPRouteQueryParamMatching", RESPONDER, "matches of query parameters"),
    feature("HTTPRouteResponseHeaderModification", RESPONDER, "headers of responses"),
    feature("HTTPRouteSchemeRedirect", RESPONDER, "redirects to another scheme"),
    feature("ListenerSet", NOTHING, "listeners that are added to a Gateway"),
    feature("ReferenceGrant", NOTHING, "references into other namespaces"),
    feature("TCPRoute", STREAMS, "routes of TCP connections"),
    feature("TLSRoute", STREAMS, "routes of TLS connections by their server name"),
    feature("TLSRouteModeMixed", STREAMS, "listeners of one port may differ in their mode of TLS"),
    feature("TLSRouteModeTerminate", STREAMS, "listeners for TLSRoutes may terminate TLS"),
    feature("UDPRoute", STREAMS, "routes of UDP datagrams"),
];

/// The supported features of a class: sorted, without repetitions. The options have the layout of the class;
/// `managed` has the parameters of managed data planes.
pub fn supported_features(
    options: &Options,
    managed: Option<&ManagedParameters>,
) -> impl Iterator<Item = &'static Feature> {
    FEATURES.iter().filter(move |feature| feature.needs.iter().all(|need| need.is_met(options, managed)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::Capability;

    const DOCUMENT: &str = include_str!("../../docs/reference/features.md");

    fn names(options: &Options, managed: Option<&ManagedParameters>) -> Vec<&'static str> {
        supported_features(options, managed).map(|feature| feature.name).collect()
    }

    #[test]
    fn the_table_fits_a_status() {
        assert!(FEATURES.len() <= 64);
        assert!(FEATURES.windows(2).all(|pair| pair[0].name < pair[1].name), "sorted, each once");
        assert!(FEATURES.iter().all(|feature| feature.name.chars().all(char::is_alphanumeric)));
    }

    #[test]
    fn an_installation_claims_what_it_has() {
        let bare = Options::default();
        assert_eq!(
            names(&bare, None),
            ["Gateway", "GatewayHTTPListenerIsolation", "ListenerSet", "ReferenceGrant"]
        );
        let responder = Options { responder: Some(([127, 0, 0, 1], 8089).into()), ..bare };
        assert!(names(&responder, None).contains(&"HTTPRoute"));
        assert!(!names(&responder, None).contains(&"HTTPRoutePortRedirect"), "ports are not told apart");
        let per_port = Options { layout: Layout::PerPort, ..responder.clone() };
        assert!(names(&per_port, None).contains(&"HTTPRoutePortRedirect"));
        assert!(!names(&per_port, None).contains(&"GatewayInfrastructure"), "somebody else runs it");
        assert!(!names(&per_port, None).contains(&"TCPRoute"), "nobody proxies streams");
        assert!(names(&Options { stream: true, ..per_port }, None).contains(&"TCPRoute"));
        let managed = ManagedParameters::default();
        let without_front = names(&responder, Some(&managed));
        assert!(!without_front.contains(&"GatewayHTTPSListenerDetectMisdirectedRequests"), "PingSIX has TLS");
        let fronted = ManagedParameters { sidecar_https: true, ..managed };
        assert_eq!(names(&responder, Some(&fronted)).len(), FEATURES.len());
    }

    #[test]
    fn only_a_load_balancer_is_asked_for_addresses() {
        for (kind, asked) in [
            (ServiceType::LoadBalancer, true),
            (ServiceType::NodePort, false),
            (ServiceType::ClusterIp, false),
        ] {
            let mut managed = ManagedParameters::default();
            managed.service.kind = kind;
            let names = names(&Options::default(), Some(&managed));
            assert_eq!(names.contains(&"GatewayStaticAddresses"), asked, "{kind:?}");
            assert!(names.contains(&"GatewayAddressEmpty"));
        }
    }

    /// The rows of the table in a section of the document.
    fn rows_of(heading: &str) -> impl Iterator<Item = &'static str> {
        let section = DOCUMENT.lines().skip_while(move |line| *line != heading).skip(1);
        let table =
            section.skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
        table.skip(2)
    }

    #[test]
    fn the_document_has_the_table() {
        let mut rows = rows_of("# Supported features");
        for feature in FEATURES {
            let needs: Vec<String> =
                feature.needs.iter().map(|need| format!("`{}`", need.option())).collect();
            let row = format!("| `{}` | {} | {} |", feature.name, feature.summary, needs.join(", "));
            assert_eq!(rows.next(), Some(row.replace("|  |", "| |").as_str()));
        }
        assert_eq!(rows.next(), None);
    }

    #[test]
    fn a_feature_without_its_capability_is_documented_and_not_claimed() {
        let of_capability = |capability: &Capability| {
            let summary = capability.summary();
            capability.row().unclaimed.iter().map(move |feature| (*feature, summary))
        };
        let unclaimed: BTreeMap<&str, &str> = Capability::ALL.iter().flat_map(of_capability).collect();
        let mut rows = rows_of("## Features that are not claimed");
        for (feature, summary) in unclaimed {
            assert!(FEATURES.iter().all(|claimed| claimed.name != feature), "{feature}");
            assert_eq!(rows.next(), Some(format!("| `{feature}` | {summary} |").as_str()));
        }
        assert_eq!(rows.next(), None);
    }
}
