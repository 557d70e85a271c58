//! The limits of Gateway API 1.6 and of Kubernetes, which the types of their crates lack.

use super::format::Format;

/// A limit of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Limit {
    /// The least and the greatest number of entries of a list.
    Items(u64, u64),
    /// The greatest number of entries of a map.
    Entries(u64),
    /// The least and the greatest number of characters.
    Length(u64, u64),
    /// The least and the greatest number.
    Range(i64, i64),
    /// The texts that are allowed.
    OneOf(&'static [&'static str]),
    /// The numbers that are allowed.
    Numbers(&'static [i64]),
    Format(Format),
    /// No entry of the list is there twice.
    Set,
    /// No two entries of the list have the same value of this field.
    Key(&'static str),
}

use Format::{
    ControllerName, Duration, GroupName, HeaderValue, Hostname, KindName, Label, LabelValue, Origin,
    Protocol, Subdomain, Token, UriPath, WellKnownAuthorities,
};
use Limit::{Entries, Items, Key, Length, Numbers, OneOf, Range, Set};

/// A limit without an upper bound.
const UNLIMITED: u64 = u64::MAX;

const OBJECT_NAME: &[Limit] = &[Length(1, 253)];
const SECTION: &[Limit] = &[Length(1, 253), Limit::Format(Subdomain)];
const HOST: &[Limit] = &[Length(1, 253), Limit::Format(Hostname)];
const FIXED_HOST: &[Limit] = &[Length(1, 253), Limit::Format(Subdomain)];
const HEADER_NAME: &[Limit] = &[Length(1, 256), Limit::Format(Token)];
const HEADER_VALUE: &[Limit] = &[Length(1, 4096), Limit::Format(HeaderValue)];
const NAMED: &[Limit] = &[Items(0, 16), Key("name")];
const NAMES_OF_CORS: &[Limit] = &[Items(0, 64), Set];
const DURATION: &[Limit] = &[Limit::Format(Duration)];
const PORT: &[Limit] = &[Range(1, 65_535)];

/// The ends of paths with their limits. A path begins with the kind; of several rows for a path, the longest one counts.
pub(super) const OF_GATEWAY_API: &[(&str, &[Limit])] = &[
    // References.
    ("group", &[Length(0, 253), Limit::Format(GroupName)]),
    ("kind", &[Length(1, 63), Limit::Format(KindName)]),
    ("namespace", &[Length(1, 63), Limit::Format(Label)]),
    ("name", OBJECT_NAME),
    ("sectionName", SECTION),
    ("port", PORT),
    ("weight", &[Range(0, 1_000_000)]),
    ("parentRefs", &[Items(0, 32)]),
    ("BackendTLSPolicy.spec.targetRefs", &[Items(1, 16)]),
    // Routes.
    ("hostnames[]", HOST),
    ("spec.hostnames", &[Items(0, 16)]),
    ("TLSRoute.spec.hostnames", &[Items(1, 1024)]),
    ("rules", &[Items(1, 1)]),
    ("HTTPRoute.spec.rules", &[Items(1, 16)]),
    ("GRPCRoute.spec.rules", &[Items(0, 16)]),
    ("rules[].name", SECTION),
    ("rules[].backendRefs", &[Items(1, 16)]),
    ("HTTPRoute.spec.rules[].backendRefs", &[Items(0, 16)]),
    ("GRPCRoute.spec.rules[].backendRefs", &[Items(0, 16)]),
    ("filters", &[Items(0, 16)]),
    ("matches", &[Items(0, 64)]),
    ("path.value", &[Length(0, 1024)]),
    ("headers", NAMED),
    ("headers[].name", HEADER_NAME),
    ("headers[].value", HEADER_VALUE),
    ("GRPCRoute.spec.rules[].matches[].headers[].value", &[Length(1, 4096)]),
    ("queryParams", NAMED),
    ("queryParams[].name", HEADER_NAME),
    ("queryParams[].value", &[Length(1, 1024)]),
    ("method.service", &[Length(0, 1024)]),
    ("method.method", &[Length(0, 1024)]),
    ("request", DURATION),
    ("backendRequest", DURATION),
    ("attempts", &[Range(1, i64::MAX)]),
    ("backoff", DURATION),
    ("codes", &[Set]),
    ("codes[]", &[Range(400, 599)]),
    ("absoluteTimeout", DURATION),
    ("sessionName", &[Length(0, 128)]),
    // Filters.
    ("set", NAMED),
    ("set[].name", HEADER_NAME),
    ("set[].value", HEADER_VALUE),
    ("add", NAMED),
    ("add[].name", HEADER_NAME),
    ("add[].value", HEADER_VALUE),
    ("remove", &[Items(0, 16), Set]),
    ("percent", &[Range(0, 100)]),
    ("numerator", &[Range(0, i64::MAX)]),
    ("denominator", &[Range(1, i64::MAX)]),
    ("requestRedirect.hostname", FIXED_HOST),
    ("urlRewrite.hostname", FIXED_HOST),
    ("replaceFullPath", &[Length(0, 1024)]),
    ("replacePrefixMatch", &[Length(0, 1024)]),
    ("statusCode", &[Numbers(&[301, 302, 303, 307, 308])]),
    ("allowHeaders", NAMES_OF_CORS),
    ("allowHeaders[]", HEADER_NAME),
    ("exposeHeaders", NAMES_OF_CORS),
    ("exposeHeaders[]", HEADER_NAME),
    ("allowMethods", &[Items(0, 9), Set]),
    (
        "allowMethods[]",
        &[OneOf(&["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "*"])],
    ),
    ("allowOrigins", NAMES_OF_CORS),
    ("allowOrigins[]", &[Length(1, 253), Limit::Format(Origin)]),
    ("maxAge", &[Range(1, i64::MAX)]),
    ("allowedHeaders", NAMES_OF_CORS),
    ("allowedResponseHeaders", NAMES_OF_CORS),
    ("http.path", &[Length(0, 1024), Limit::Format(UriPath)]),
    // Gateways, ListenerSets and classes.
    ("controllerName", &[Length(1, 253), Limit::Format(ControllerName)]),
    ("description", &[Length(0, 64)]),
    ("gatewayClassName", OBJECT_NAME),
    ("listeners", &[Items(1, 64), Key("name")]),
    ("listeners[].name", SECTION),
    ("listeners[].hostname", HOST),
    ("listeners[].protocol", &[Length(1, 255), Limit::Format(Protocol)]),
    ("kinds", &[Items(0, 8)]),
    ("certificateRefs", &[Items(0, 64)]),
    ("options", &[Entries(16)]),
    ("options{}", &[Length(0, 4096)]),
    ("addresses", &[Items(0, 16)]),
    ("addresses[].type", &[Length(1, 253)]),
    ("addresses[].value", &[Length(0, 253)]),
    ("infrastructure.annotations", &[Entries(16)]),
    ("infrastructure.annotations{}", &[Length(0, 4096)]),
    ("infrastructure.labels", &[Entries(8)]),
    ("infrastructure.labels{}", &[Length(0, 63), Limit::Format(LabelValue)]),
    ("perPort", &[Items(0, 64), Key("port")]),
    ("caCertificateRefs", &[Items(1, 16)]),
    // Policies and grants.
    ("BackendTLSPolicy.spec.validation.caCertificateRefs", &[Items(0, 8)]),
    ("BackendTLSPolicy.spec.validation.hostname", FIXED_HOST),
    ("subjectAltNames", &[Items(0, 5)]),
    ("subjectAltNames[].hostname", HOST),
    ("subjectAltNames[].uri", &[Length(1, 253), Limit::Format(Format::Uri)]),
    ("wellKnownCACertificates", &[Length(1, 253), Limit::Format(WellKnownAuthorities)]),
    ("spec.from", &[Items(1, 16)]),
    ("spec.to", &[Items(1, 16)]),
];

/// The same for the kinds of Kubernetes.
pub(super) const OF_KUBERNETES: &[(&str, &[Limit])] = &[
    ("Ingress.spec.rules[].host", &[Length(0, 253), Limit::Format(Hostname)]),
    ("Ingress.spec.rules[].http.paths", &[Items(1, UNLIMITED)]),
    ("Ingress.spec.tls[].hosts[]", &[Length(0, 253), Limit::Format(Hostname)]),
    ("pathType", &[OneOf(&["Exact", "Prefix", "ImplementationSpecific"])]),
    ("port.number", PORT),
    ("Service.spec.type", &[OneOf(&["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"])]),
    ("ports[].port", PORT),
    ("ports[].protocol", &[OneOf(&["TCP", "UDP", "SCTP"])]),
    ("addressType", &[OneOf(&["IPv4", "IPv6", "FQDN"])]),
];

/// The limits of the metadata of all objects.
pub(super) const OF_METADATA: &[(&str, &[Limit])] = &[
    ("metadata.name", &[Length(1, 253), Limit::Format(Subdomain)]),
    ("Namespace.metadata.name", &[Length(1, 63), Limit::Format(Label)]),
    ("Service.metadata.name", &[Length(1, 63), Limit::Format(Label)]),
    ("metadata.namespace", &[Length(0, 63), Limit::Format(Label)]),
];

/// Names of fields whose numbers have a unit.
pub(super) fn unit(field: &str) -> Option<&'static str> {
    match field {
        "maxAge" | "clockSkew" => Some("seconds"),
        "percent" | "percentage" => Some("per cent"),
        _ if field.ends_with("Seconds") => Some("seconds"),
        _ => None,
    }
}

/// Whether a path ends with the fields of a row.
pub(super) fn is_end(end: &str, path: &str) -> bool {
    path.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// The limits of a path in a table: those of the longest row that the path ends with.
pub(super) fn find(table: &'static [(&str, &[Limit])], path: &str) -> Option<&'static [Limit]> {
    let rows = table.iter().filter(|(end, _)| is_end(end, path));
    rows.max_by_key(|(end, _)| end.len()).map(|(_, limits)| *limits)
}
