//! Decoding of documents so that an error rejects connections and never widens a route.
//!
//! A route that is left out lets a wildcard of another route take its server names. So the *identity* of a route, its
//! port, protocol and server names, is decoded without regard to other fields, and its *behaviour* strictly: a
//! document with an identity alone rejects the connections that are its own.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use garde::Validate as _;
use pingsix_translate::stream::{
    ANY_NAME, Destination, StreamProtocol, StreamRoute, StreamUpstream, TlsMode,
};
use pingsix_translate::{Hostname, is_backend_address};
use serde::Deserialize;

use super::tls;

/// The longest text of an error; texts of decoders quote documents.
const MAX_ERROR_CHARS: usize = 300;

/// The connections that a route takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) port: u16,
    pub(super) protocol: StreamProtocol,
    /// For TLS, the server names in lower case, at least one. A wildcard begins with `*.`, and [`ANY_NAME`] stands for
    /// all names.
    pub(super) names: Vec<String>,
}

/// A decoded route.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) identity: Identity,
    /// The behaviour, or the error of the document.
    pub(super) behaviour: Result<Behaviour, String>,
}

/// The targets of a route, and its TLS server.
#[derive(Debug)]
pub(super) struct Behaviour {
    /// The targets with their weights.
    pub(super) targets: Vec<(Destination, u32)>,
    /// The settings of the TLS server if it is the proxy.
    pub(super) tls: Option<tls::Settings>,
}

/// The fields of an identity; all others are ignored.
#[derive(Deserialize)]
struct WrittenIdentity {
    server_port: u16,
    protocol: StreamProtocol,
    #[serde(default)]
    snis: Vec<String>,
}

/// Decodes a document of `stream_routes`; the error is the reason why it has no identity.
pub(super) fn route(id: &str, value: &[u8]) -> Result<Decoded, String> {
    let identity = identity(value).map_err(|error| short(&error))?;
    Ok(Decoded { identity, behaviour: behaviour(id, value).map_err(|error| short(&error)) })
}

fn identity(value: &[u8]) -> Result<Identity, String> {
    let written: WrittenIdentity = serde_json::from_slice(value).map_err(|error| error.to_string())?;
    if written.server_port == 0 {
        return Err("server_port: Ports start at 1.".to_owned());
    }
    let names = match written.protocol {
        StreamProtocol::Tls if written.snis.is_empty() => {
            return Err("snis: A route for TLS needs a server name.".to_owned());
        }
        StreamProtocol::Tls => {
            let parse = |name: &String| match Hostname::parse(name) {
                _ if name == ANY_NAME => Ok(name.clone()),
                Ok(parsed) => Ok(parsed.as_str().to_owned()),
                Err(error) => Err(format!("snis: \"{name}\" is not a server name: {error}.")),
            };
            written.snis.iter().map(parse).collect::<Result<_, _>>()?
        }
        StreamProtocol::Tcp | StreamProtocol::Udp => Vec::new(),
    };
    Ok(Identity { port: written.server_port, protocol: written.protocol, names })
}

fn behaviour(id: &str, value: &[u8]) -> Result<Behaviour, String> {
    let route: StreamRoute = serde_json::from_slice(value).map_err(|error| error.to_string())?;
    route.validate().map_err(|report| report.to_string().trim_end().to_owned())?;
    if id.is_empty() || id.contains('/') {
        return Err("An id cannot be empty or contain a slash.".to_owned());
    }
    let targets = route.targets.into_iter().map(|target| (target.to, target.weight)).collect();
    let tls = (route.tls == Some(TlsMode::Terminate)).then_some(tls::Settings {
        certificates: route.ssl_ids,
        protocols: route.alpn,
        clients: route.client_auth,
    });
    Ok(Behaviour { targets, tls })
}

/// The nodes of a document of `upstreams`, and the error of those that are left out.
pub(super) fn upstream(
    id: &str,
    value: &[u8],
    local_nodes: bool,
) -> Result<(BTreeMap<SocketAddr, u32>, Option<String>), String> {
    let upstream: StreamUpstream =
        serde_json::from_slice(value).map_err(|error| short(&error.to_string()))?;
    upstream.validate().map_err(|report| short(report.to_string().trim_end()))?;
    if id.is_empty() || id.contains('/') {
        return Err("An id cannot be empty or contain a slash.".to_owned());
    }
    let (mut nodes, mut refused) = (BTreeMap::new(), None);
    for (text, weight) in &upstream.nodes {
        match text.parse::<SocketAddr>() {
            Ok(address)
                if local_nodes
                    || is_backend_address(address.ip())
                    || upstream.local && address.ip().to_canonical().is_loopback() =>
            {
                nodes.insert(address, *weight);
            }
            Ok(address) => {
                let failure = || format!("nodes: {address} is no address of a backend.");
                refused.get_or_insert_with(failure);
            }
            // The rules of documents have refused it.
            Err(_) => {}
        }
    }
    Ok((nodes, refused))
}

fn short(text: &str) -> String {
    text.chars().take(MAX_ERROR_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use pingsix_translate::stream::{ClientAuth, ClientAuthMode};
    use serde_json::{Value, json};

    use super::*;

    fn decode(value: &Value) -> Result<Decoded, String> {
        route("r", value.to_string().as_bytes())
    }

    fn passthrough() -> Value {
        json!({"server_port": 443, "protocol": "tls", "snis": ["a.test"], "tls": "passthrough",
            "targets": [{"upstream_id": "u", "weight": 3}, {"reject": "invalid", "weight": 1}]})
    }

    #[test]
    fn a_route_has_an_identity_and_a_behaviour() {
        let decoded = decode(&passthrough()).unwrap();
        assert_eq!(
            decoded.identity,
            Identity { port: 443, protocol: StreamProtocol::Tls, names: vec!["a.test".to_owned()] }
        );
        let behaviour = decoded.behaviour.unwrap();
        assert_eq!((behaviour.targets.len(), behaviour.tls), (2, None));
        let mut route = passthrough();
        route["tls"] = json!("terminate");
        route["ssl_ids"] = json!(["a", "b"]);
        route["snis"] = json!(["a.test", "*"]);
        let mut settings = tls::Settings {
            certificates: vec!["a".to_owned(), "b".to_owned()],
            protocols: Vec::new(),
            clients: None,
        };
        let decoded = decode(&route).unwrap();
        assert_eq!(decoded.identity.names, ["a.test", "*"]);
        assert_eq!(decoded.behaviour.unwrap().tls.unwrap(), settings);
        route["alpn"] = json!(["h2"]);
        route["client_auth"] = json!({"mode": "request", "ca_ids": ["c"]});
        settings.protocols = vec!["h2".to_owned()];
        let ca_ids = vec!["c".to_owned()];
        settings.clients = Some(ClientAuth { mode: ClientAuthMode::Request, ca_ids });
        assert_eq!(decode(&route).unwrap().behaviour.unwrap().tls.unwrap(), settings);
    }

    #[test]
    fn an_error_of_the_behaviour_leaves_the_identity() {
        for (field, value) in [
            ("targets", json!([])),
            ("targets", json!([{"upstream_id": "u", "weight": 0}])),
            ("targets", json!([{"upstream_id": "u", "reject": "invalid", "weight": 1}])),
            ("targets", json!(7)),
            ("tls", json!("terminate")),
            ("tls", json!("mutual")),
            ("tls", Value::Null),
            ("client_auth", json!({})),
            ("client_auth", json!({"mode": "request"})),
            ("alpn", json!(["h2"])),
            ("more", json!(1)),
            ("snis", json!(["a.test", "*"])),
            ("snis", json!(["A.test"])),
            ("snis", json!(["a.test", "a.test"])),
        ] {
            let mut route = passthrough();
            route[field] = value;
            let decoded = decode(&route).unwrap();
            assert_eq!(decoded.identity.names[0], "a.test");
            assert!(decoded.behaviour.is_err(), "{route}");
        }
        for (field, value) in [
            ("client_auth", json!({})),
            ("client_auth", json!({"mode": "require", "ca_ids": ["c"]})),
            ("client_auth", json!({"mode": "require_and_verify"})),
            ("client_auth", json!({"mode": "request", "more": 1})),
            ("alpn", json!(["h3"])),
            ("alpn", json!("h2")),
            ("ssl_ids", json!([])),
        ] {
            let mut route = passthrough();
            route["tls"] = json!("terminate");
            route["ssl_ids"] = json!(["s"]);
            assert!(decode(&route).unwrap().behaviour.is_ok());
            route[field] = value;
            assert!(decode(&route).unwrap().behaviour.is_err(), "{route}");
        }
        assert!(route("a/b", passthrough().to_string().as_bytes()).unwrap().behaviour.is_err());
    }

    #[test]
    fn an_error_of_the_identity_leaves_nothing() {
        for (field, value) in [
            ("server_port", json!(0)),
            ("server_port", json!(65_536)),
            ("server_port", json!("443")),
            ("protocol", json!("quic")),
            ("snis", json!([])),
            ("snis", json!(["*x"])),
            ("snis", json!(["a.test", "10.0.0.1"])),
            ("snis", json!("a.test")),
        ] {
            let mut route = passthrough();
            route[field] = value;
            assert!(decode(&route).is_err(), "{route}");
        }
        let twice = br#"{"server_port":1,"server_port":2,"protocol":"tcp","targets":[]}"#;
        assert!(route("r", twice).is_err(), "another reader could take the other port");
        assert!(route("r", b"{").is_err() && route("r", &[0xff]).is_err());
    }

    #[test]
    fn nodes_are_addresses_of_backends() {
        let read = |value: Value, local| upstream("u", value.to_string().as_bytes(), local);
        let (nodes, error) = read(json!({"nodes": {"10.0.0.1:1": 2, "127.0.0.1:1": 1}}), false).unwrap();
        assert_eq!(nodes, BTreeMap::from([("10.0.0.1:1".parse().unwrap(), 2)]));
        assert!(error.unwrap().contains("127.0.0.1:1"));
        assert_eq!(read(json!({"nodes": {"127.0.0.1:1": 1}}), true).unwrap().0.len(), 1);
        let local = json!({"nodes": {"127.1.2.3:1": 1, "[::1]:2": 1, "169.254.0.1:3": 1}, "local": true});
        let (nodes, error) = read(local, false).unwrap();
        assert_eq!(nodes.len(), 2);
        assert!(error.unwrap().contains("169.254.0.1:3"));
        assert!(read(json!({"nodes": {"a.test:1": 1}}), true).is_err());
        assert!(read(json!({"nodes": {"10.0.0.1:1": 1}, "send_proxy": "v2"}), true).is_err());
    }

    #[test]
    fn an_error_is_short() {
        let long = json!({"server_port": "x".repeat(100_000), "protocol": "tcp"});
        assert!(decode(&long).unwrap_err().len() <= MAX_ERROR_CHARS);
    }
}
