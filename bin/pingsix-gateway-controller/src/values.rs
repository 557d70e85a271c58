//! Types of single values, with the format of each, which all sources share.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use http::Uri;
use jiff::SignedDuration;
use pingsix_gateway_api::delivery::status_page::StatusUrl;
use pingsix_sink::Target;
use pingsix_translate::{DataPlaneKey, Layout, ObjectName, ParseObjectNameError};
use serde::{Serialize, Serializer};

/// Values are printed as they can be written.
macro_rules! serialized_as_text {
    ($($type:ty)+) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )+};
}

serialized_as_text! {
    Span Endpoint FeedEndpoint FeedClient LayoutName SecretChoice LogFormat ServiceName StatusTarget SinkChoice CollectorUrl
}

/// A length of time, such as `1m 30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span(Duration);

impl Span {
    pub(crate) const fn duration(self) -> Duration {
        self.0
    }
}

impl FromStr for Span {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected a time with units, such as 500ms, 15s or 1m 30s";
        let span: SignedDuration = text.parse().map_err(|_| EXPECTED)?;
        Duration::try_from(span).map(Self).map_err(|_| EXPECTED)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match SignedDuration::try_from(self.0) {
            Ok(span) => write!(f, "{span:#}"),
            Err(_) => write!(f, "{}s", self.0.as_secs()),
        }
    }
}

/// An optional address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Off,
    At(SocketAddr),
}

impl Endpoint {
    pub(crate) const fn address(self) -> Option<SocketAddr> {
        match self {
            Self::Off => None,
            Self::At(address) => Some(address),
        }
    }
}

impl FromStr for Endpoint {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "off" {
            return Ok(Self::Off);
        }
        text.parse().map(Self::At).map_err(|_| "expected an IP address with a port, or off")
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::At(address) => address.fmt(f),
        }
    }
}

/// The endpoints of the feed for data planes, in PingSIX's format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FeedEndpoint(String);

impl FeedEndpoint {
    pub(crate) fn has_tls(&self) -> bool {
        self.0.starts_with("https://")
    }
}

impl FromStr for FeedEndpoint {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected http://HOST:PORT or https://HOST:PORT, without a path or a user";
        let uri: http::Uri = text.parse().map_err(|_| EXPECTED)?;
        let authority = uri.authority().ok_or(EXPECTED)?;
        let is_plain = matches!(uri.scheme_str(), Some("http" | "https"))
            && !authority.host().is_empty()
            && authority.port_u16().is_some()
            && !authority.as_str().contains('@')
            && matches!(uri.path_and_query().map(http::uri::PathAndQuery::as_str), None | Some("/" | ""));
        is_plain.then(|| Self(text.trim_end_matches('/').to_owned())).ok_or(EXPECTED)
    }
}

impl fmt::Display for FeedEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An enum with a word for each value.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal $(| $alias:literal)*,)+ }
        expected $expected:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl FromStr for $name {
            type Err = &'static str;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($word $(| $alias)* => Ok(Self::$variant),)+
                    _ => Err(concat!("expected ", $expected)),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $word,)+ })
            }
        }
    };
}

words! {
    /// The distribution of listeners over PingSIX fleets.
    LayoutName {
        Shared = "shared",
        PerPort = "perPort" | "per-port",
    }
    expected "shared or perPort"
}

impl From<LayoutName> for Layout {
    fn from(name: LayoutName) -> Self {
        match name {
            LayoutName::Shared => Self::Shared,
            LayoutName::PerPort => Self::PerPort,
        }
    }
}

words! {
    /// Which Secrets are read.
    SecretChoice {
        /// Those that are referred to, each by its name.
        ByName = "by-name",
        /// All of them.
        All = "all",
    }
    expected "by-name or all"
}

words! {
    /// The format of the log.
    LogFormat {
        Text = "text",
        Json = "json",
    }
    expected "text or json"
}

/// A Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServiceName(pub(crate) ObjectName);

impl FromStr for ServiceName {
    type Err = ParseObjectNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The address of the status page of a data plane's instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatusTarget {
    pub(crate) data_plane: DataPlaneKey,
    pub(crate) url: StatusUrl,
}

impl FromStr for StatusTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected DATAPLANE=URL, with NAMESPACE/GATEWAY or IngressClass/NAME, and :PORT with the \
                                layout perPort";
        let (data_plane, url) = text.split_once('=').ok_or(EXPECTED)?;
        let data_plane = data_plane.parse().map_err(|_| EXPECTED)?;
        if url.contains('@') {
            return Err(
                "the URL must not have a user; status.api-key-file names the file of the key".to_owned()
            );
        }
        let url = url.parse().map_err(|error| format!("the URL cannot be used: {error}"))?;
        Ok(Self { data_plane, url })
    }
}

impl fmt::Display for StatusTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.data_plane, self.url)
    }
}

/// A data plane, and the Secret with the certificate with which it reads the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FeedClient {
    pub(crate) data_plane: DataPlaneKey,
    /// The namespace of the Secret, if that is not the controller's.
    pub(crate) namespace: Option<String>,
    pub(crate) secret: String,
}

impl FromStr for FeedClient {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected DATAPLANE=SECRET or DATAPLANE=NAMESPACE/SECRET, with NAMESPACE/GATEWAY, \
                                stream/NAMESPACE/GATEWAY or IngressClass/NAME, and :PORT with the layout perPort";
        let (data_plane, secret) = text.split_once('=').ok_or(EXPECTED)?;
        let data_plane = data_plane.parse().map_err(|_| EXPECTED)?;
        let (namespace, secret) = match secret.split_once('/') {
            Some((namespace, secret)) => (Some(namespace.to_owned()), secret),
            None => (None, secret),
        };
        Ok(Self { data_plane, namespace, secret: secret.to_owned() })
    }
}

impl fmt::Display for FeedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=", self.data_plane)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.secret)
    }
}

/// The sink of a data plane, or of all data planes without a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SinkChoice {
    pub(crate) data_plane: Option<DataPlaneKey>,
    pub(crate) target: Target,
}

impl FromStr for SinkChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A URL may have an equals sign in a parameter, and what is before it is no data plane then.
        let named = text.split_once('=').and_then(|(name, url)| Some((name.parse().ok()?, url)));
        let (data_plane, url) = match named {
            Some((data_plane, url)) => (Some(data_plane), url),
            None => (None, text),
        };
        let target: Target = url.parse().map_err(|error| format!("the URL cannot be used: {error}"))?;
        if target.listen().is_some() {
            return Err("feed.address says where the server listens, not the URL".to_owned());
        }
        Ok(Self { data_plane, target })
    }
}

impl fmt::Display for SinkChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(data_plane) = &self.data_plane {
            write!(f, "{data_plane}=")?;
        }
        self.target.fmt(f)
    }
}

/// The address of a collector of traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CollectorUrl(Uri);

impl FromStr for CollectorUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains('@') {
            return Err(
                "the URL must not have a user; OTEL_EXPORTER_OTLP_HEADERS holds what a collector asks for",
            );
        }
        let url: Uri = text.parse().map_err(|_| "expected http://HOST:PORT or https://HOST:PORT")?;
        let is_known = matches!(url.scheme_str(), Some("http" | "https"));
        let has_host = url.host().is_some_and(|host| !host.is_empty());
        // gRPC has its own.
        let has_path = !matches!(url.path(), "" | "/") || url.query().is_some();
        if is_known && has_host && !has_path {
            Ok(Self(url))
        } else {
            Err("expected http://HOST:PORT or https://HOST:PORT")
        }
    }
}

impl fmt::Display for CollectorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Reads a value. The error is the expected form.
pub(crate) fn value<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected an IP address with a port".to_owned())
}

pub(crate) fn count<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "expected a whole number".to_owned())
}

pub(crate) fn switch(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| "expected true or false".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_printed_as_they_can_be_written() {
        fn check<T: FromStr<Err: fmt::Debug> + fmt::Display>(texts: &[&str]) {
            for text in texts {
                assert_eq!(text.parse::<T>().unwrap().to_string(), **text);
            }
        }
        check::<Span>(&["0s", "500ms", "15s", "1m 30s", "24h"]);
        check::<Endpoint>(&["off", "127.0.0.1:8089", "[::1]:80"]);
        check::<FeedEndpoint>(&["https://feed.system.svc:2379", "http://[::1]:2379"]);
        check::<LayoutName>(&["shared", "perPort"]);
        check::<SecretChoice>(&["by-name", "all"]);
        check::<LogFormat>(&["text", "json"]);
        check::<ServiceName>(&["infra/pingsix"]);
        check::<SinkChoice>(&[
            "embedded:",
            "etcd://127.0.0.1:2379,127.0.0.1:2380",
            "infra/web:8443=etcds://web@etcd.infra:2379?password-file=/password&ca=/ca.crt",
            "stream/infra/web=file:/etc/stream/",
            "IngressClass/public=admin+http://127.0.0.1:9181?key-file=/key",
        ]);
        check::<FeedClient>(&[
            "infra/web=edge",
            "stream/infra/web=infra/edge",
            "IngressClass/public:443=edge",
        ]);
        check::<StatusTarget>(&[
            "infra/web=http://127.0.0.1:7085/status/config",
            "infra/web:8443=http://pingsix.infra:7085/status/config",
            "IngressClass/public=http://[::1]:7085/inner",
            "IngressClass/public:443=http://[::1]:7085/inner",
        ]);
    }

    #[test]
    fn a_value_that_cannot_be_read_is_refused() {
        for text in ["", "15", "-1s", "soon", "1 month"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
        for text in ["web", "infra/", "/web", "a/b/c"] {
            assert!(text.parse::<ServiceName>().is_err(), "{text}");
        }
        for text in ["infra/web", "web=edge", "infra/web:http=edge", "=edge"] {
            let refused = text.parse::<FeedClient>().unwrap_err();
            assert!(refused.starts_with("expected DATAPLANE=SECRET"), "{text}");
        }
        for text in ["infra/web", "web=http://a:1", "infra/web:http=http://a:1", "IngressClass/=http://a:1"] {
            assert!(
                text.parse::<StatusTarget>().unwrap_err().starts_with("expected DATAPLANE=URL"),
                "{text}"
            );
        }
        let error = "infra/web=https://a:1".parse::<StatusTarget>().unwrap_err();
        assert_eq!(error, "the URL cannot be used: its scheme is not http");
    }

    #[test]
    fn a_sink_is_a_url_with_or_without_a_data_plane() {
        let data_plane = |text: &str| {
            let choice: SinkChoice = text.parse().unwrap();
            choice.data_plane.map(|data_plane| data_plane.to_string())
        };
        assert_eq!(data_plane("file:/a?base=/infra/web=file:/b"), None);
        assert_eq!(data_plane("infra/web=file:/a?base=/b").as_deref(), Some("infra/web"));
        assert_eq!(
            data_plane("stream/web=file:/a").as_deref(),
            Some("stream/web"),
            "a namespace may be called so"
        );
        for (text, message) in [
            ("web=file:/a", "a target begins with one of"),
            ("infra/web=", "a target begins with one of"),
            ("stdout:", "begins with one of embedded:"),
            ("infra/web=embedded:?listen=127.0.0.1:1", "feed.address says where"),
            ("etcd://127.0.0.1:1?passwort=a", "passwort"),
        ] {
            let error = text.parse::<SinkChoice>().unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
        let error = "etcd://me:canary@a:1".parse::<SinkChoice>().unwrap_err();
        assert!(error.contains("password-file") && !error.contains("canary"), "{error}");
    }

    #[test]
    fn an_endpoint_of_the_feed_has_a_host_a_port_and_nothing_else() {
        for text in
            ["", "feed:2379", "etcd://a:1", "https://a", "https://:1", "https://a:1/v3", "https://me@a:1"]
        {
            let error = text.parse::<FeedEndpoint>().unwrap_err();
            assert!(error.starts_with("expected http://"), "{text}: {error}");
        }
        assert!("https://a:1".parse::<FeedEndpoint>().unwrap().has_tls());
        assert_eq!("http://a:1/".parse::<FeedEndpoint>().unwrap().to_string(), "http://a:1");
    }

    #[test]
    fn a_collector_has_a_host_and_no_path() {
        for text in ["http://127.0.0.1:4317", "https://otel.example:4317/", "http://collector"] {
            assert!(text.parse::<CollectorUrl>().is_ok(), "{text}");
        }
        for text in
            ["", "collector:4317", "grpc://a:1", "http://:4317", "http://a:1/v1/traces", "http://a:1/?b"]
        {
            let error = text.parse::<CollectorUrl>().unwrap_err();
            assert!(error.starts_with("expected http://"), "{text}: {error}");
        }
        let error = "http://me:canary@a:1".parse::<CollectorUrl>().unwrap_err();
        assert!(error.contains("must not have a user") && !error.contains("canary"), "{error}");
    }

    #[test]
    fn a_password_in_a_url_is_refused_and_not_repeated() {
        let error = "infra/web=http://me:canary@a:1".parse::<StatusTarget>().unwrap_err();
        assert!(error.contains("must not have a user") && !error.contains("canary"), "{error}");
    }
}
