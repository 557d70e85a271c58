//! HTTPS listeners, translated and served: the certificate follows the name the client asks for.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use pingsix_translate::pingsix::{Config, Request};
use pingsix_translate::{Layout, Options, translate};
use serde_json::{Value, json};

use crate::client::{Client, Protocol, Reply};
use crate::echo::BACKEND;
use crate::etcd::Etcd;
use crate::nodes::Nodes;
use crate::process::{Listener, PingSix, Verdict, WAIT_TIMEOUT};
use crate::properties::case::snapshot;
use crate::run::{binary, print_message};

const SCOPE: &str = "/contract/tls";

/// The certificate PingSIX was started with.
const DEFAULT: &str = "default";

/// Certificates with their keys, by the name of the Secret that holds them.
struct Secrets(BTreeMap<&'static str, (Vec<u8>, String, String)>);

impl Secrets {
    fn new(secrets: &[(&'static str, &str)]) -> Self {
        let certified = |&(secret, name): &(&'static str, &str)| {
            let pair = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
            (secret, (pair.cert.der().to_vec(), pair.cert.pem(), pair.signing_key.serialize_pem()))
        };
        Self(secrets.iter().map(certified).collect())
    }

    fn objects(&self) -> impl Iterator<Item = Value> {
        self.0.iter().map(|(secret, (_, chain, key))| {
            json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": { "namespace": "infra", "name": secret },
                "type": "kubernetes.io/tls",
                "data": { "tls.crt": BASE64_STANDARD.encode(chain), "tls.key": BASE64_STANDARD.encode(key) },
            })
        })
    }

    /// The Secret a certificate is from.
    fn name_of(&self, certificate: &[u8], pingsix: &PingSix) -> &'static str {
        let held = self.0.iter().find(|(_, (der, ..))| der == certificate).map(|(secret, _)| *secret);
        held.or((pingsix.default_certificate == certificate).then_some(DEFAULT))
            .unwrap_or_else(|| panic!("a certificate nobody has configured was shown"))
    }
}

/// A Gateway with a listener per hostname and Secret, one route for all of them, and a Service behind it.
fn objects(listeners: &[(Option<&str>, &str)], secrets: &Secrets) -> Vec<Value> {
    let listeners: Vec<Value> = listeners
        .iter()
        .enumerate()
        .map(|(index, (hostname, secret))| {
            let mut listener = json!({
                "name": format!("https-{index}"),
                "port": 443,
                "protocol": "HTTPS",
                "tls": { "certificateRefs": [{ "name": secret }] },
            });
            if let Some(hostname) = hostname {
                listener["hostname"] = json!(hostname);
            }
            listener
        })
        .collect();
    let mut objects = vec![
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "Gateway",
            "metadata": { "namespace": "infra", "name": "public" },
            "spec": { "gatewayClassName": "pingsix", "listeners": listeners },
        }),
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "HTTPRoute",
            "metadata": { "namespace": "infra", "name": "all" },
            "spec": {
                "parentRefs": [{ "name": "public" }],
                "rules": [{ "backendRefs": [{ "name": "shop", "port": 80 }] }],
            },
        }),
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": { "namespace": "infra", "name": "shop" },
            "spec": { "ports": [{ "name": "http", "port": 80, "targetPort": 8080 }] },
        }),
        json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "namespace": "infra",
                "name": "shop-1",
                "labels": { "kubernetes.io/service-name": "shop" },
            },
            "addressType": "IPv4",
            "endpoints": [{ "addresses": ["10.0.0.7"], "conditions": { "ready": true } }],
            "ports": [{ "name": "http", "port": 8080 }],
        }),
    ];
    objects.extend(secrets.objects());
    objects
}

/// A PingSIX with a TLS listener.
struct Harness {
    etcd: Etcd,
    pingsix: PingSix,
    nodes: Nodes,
    edition: usize,
    shown: usize,
}

impl Harness {
    async fn publish(&mut self, config: &Config) {
        self.edition += 1;
        let config = self.nodes.stand_in(config, None).await;
        let revision = self.etcd.publish(SCOPE, &config, self.edition).await;
        let verdict = self.pingsix.verdict(revision, WAIT_TIMEOUT).await;
        assert_eq!(verdict, Verdict::Accepted, "edition {}", self.edition);
    }

    /// The certificate for a new connection with a server name, and the answer to a request for that host.
    async fn meet(&mut self, protocol: Protocol, sni: Option<&str>, host: &str) -> (Vec<u8>, Reply) {
        let mut client = Client::new(protocol, self.pingsix.address, sni);
        let reply = client.ask(&Request::get(host, "/some/path?a=b")).await;
        let reply = reply.unwrap_or_else(|error| panic!("{protocol:?} {sni:?} {host}: {error}"));
        self.shown += 1;
        (client.certificate().unwrap().to_vec(), reply)
    }

    /// Compares the presented certificate for a name, and whether a backend responds, over both protocols.
    async fn expect(&mut self, secrets: &Secrets, sni: Option<&str>, secret: &str, served: bool) {
        let host = sni.unwrap_or("shop.tls.test");
        for protocol in [Protocol::HttpsHttp1, Protocol::HttpsHttp2] {
            let (certificate, reply) = self.meet(protocol, sni, host).await;
            assert_eq!(secrets.name_of(&certificate, &self.pingsix), secret, "{protocol:?} {sni:?}");
            let expected = if served { (200, Some("10.0.0.7:8080")) } else { (404, None) };
            assert_eq!((reply.status, reply.header(BACKEND)), expected, "{protocol:?} {host}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_shows_the_certificate_of_the_listener_a_name_belongs_to() {
    const TEST: &str = "certificates";
    /// The number of publications of each table; PingSIX draws another order each time.
    const PUBLICATIONS_PER_TABLE: usize = 6;
    let Some(binary) = binary(TEST) else { return };
    let etcd = Etcd::start(&[SCOPE.to_owned()]).await;
    let pingsix = PingSix::start_with(Listener::Tls, &binary, etcd.address, SCOPE).await;
    let mut harness = Harness { etcd, pingsix, nodes: Nodes::default(), edition: 0, shown: 0 };
    let secrets = Secrets::new(&[
        ("exact", "shop.tls.test"),
        ("wildcard", "*.tls.test"),
        ("narrow", "*.eu.tls.test"),
        ("any", "any.test"),
    ]);
    let named = [
        (Some("*.tls.test"), "wildcard"),
        (Some("shop.tls.test"), "exact"),
        (Some("*.eu.tls.test"), "narrow"),
    ];
    let all = [&[(None, "any")], &named[..]].concat();
    for layout in [Layout::Shared, Layout::PerPort] {
        for listeners in [&all[..], &named[..]] {
            let options = Options { layout, ..Options::default() };
            let translation = translate(&snapshot(&objects(listeners, &secrets)), &options);
            let plane = translation.data_planes.values().next().unwrap();
            // On a listener for all names, every request with a name is at least its own.
            let any = listeners.len() > named.len();
            let rest = if any { "any" } else { DEFAULT };
            for _ in 0..PUBLICATIONS_PER_TABLE {
                harness.publish(&plane.config).await;
                harness.expect(&secrets, Some("shop.tls.test"), "exact", true).await;
                harness.expect(&secrets, Some("other.tls.test"), "wildcard", true).await;
                harness.expect(&secrets, Some("a.b.tls.test"), "wildcard", true).await;
                harness.expect(&secrets, Some("shop.eu.tls.test"), "narrow", true).await;
                harness.expect(&secrets, Some("eu.tls.test"), "wildcard", true).await;
                harness.expect(&secrets, Some("tls.test"), rest, any).await;
                harness.expect(&secrets, Some("shop.test"), rest, any).await;
                // PingSIX treats a connection without a server name as one to `*`, whatever the later Host.
                harness.expect(&secrets, None, rest, true).await;
            }
        }
    }
    the_certificate_of_a_changed_secret_is_shown_at_once(&mut harness).await;
    a_connection_serves_hosts_it_was_not_opened_for(&mut harness, &secrets).await;
    names_of_one_document_move_to_another(&mut harness, &secrets).await;
    print_message(&format!("{TEST}: {} handshakes on {} publications", harness.shown, harness.edition));
}

async fn the_certificate_of_a_changed_secret_is_shown_at_once(harness: &mut Harness) {
    for _ in 0..3 {
        let secrets = Secrets::new(&[("exact", "shop.tls.test")]);
        let listeners = [(Some("shop.tls.test"), "exact")];
        let translation = translate(&snapshot(&objects(&listeners, &secrets)), &Options::default());
        harness.publish(&translation.data_planes.values().next().unwrap().config).await;
        harness.expect(&secrets, Some("shop.tls.test"), "exact", true).await;
    }
}

/// A document has all names of a certificate: exact ones, wildcards, and the one for every name.
async fn names_of_one_document_move_to_another(harness: &mut Harness, secrets: &Secrets) {
    for [one, other] in [["exact", "narrow"], ["narrow", "exact"], ["exact", "narrow"]] {
        let listeners = [
            (None, one),
            (Some("shop.tls.test"), one),
            (Some("*.eu.tls.test"), one),
            (Some("*.tls.test"), other),
            (Some("a.test"), other),
        ];
        let translation = translate(&snapshot(&objects(&listeners, secrets)), &Options::default());
        let config = &translation.data_planes.values().next().unwrap().config;
        assert_eq!(config.ssls().count(), 2);
        harness.publish(config).await;
        for name in ["shop.tls.test", "x.eu.tls.test", "z.test"] {
            harness.expect(secrets, Some(name), one, true).await;
        }
        for name in ["b.tls.test", "a.test"] {
            harness.expect(secrets, Some(name), other, true).await;
        }
    }
}

/// PingSIX answers by the Host alone: it neither compares it with the name of the connection nor answers 421.
async fn a_connection_serves_hosts_it_was_not_opened_for(harness: &mut Harness, secrets: &Secrets) {
    let listeners = [(Some("shop.tls.test"), "exact"), (Some("*.eu.tls.test"), "narrow")];
    let translation = translate(&snapshot(&objects(&listeners, secrets)), &Options::default());
    harness.publish(&translation.data_planes.values().next().unwrap().config).await;
    for protocol in [Protocol::HttpsHttp1, Protocol::HttpsHttp2] {
        let (certificate, reply) = harness.meet(protocol, Some("shop.tls.test"), "a.eu.tls.test").await;
        assert_eq!(secrets.name_of(&certificate, &harness.pingsix), "exact");
        assert_eq!(reply.status, 200, "{protocol:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_that_offers_h2c_serves_http2_alone_over_tls() {
    const TEST: &str = "TLS beside h2c";
    let Some(binary) = binary(TEST) else { return };
    let etcd = Etcd::start(&[SCOPE.to_owned()]).await;
    for (listener, http1_is_served) in [(Listener::Tls, true), (Listener::TlsBesideH2c, false)] {
        let pingsix = PingSix::start_with(listener, &binary, etcd.address, SCOPE).await;
        for protocol in [Protocol::HttpsHttp1, Protocol::HttpsHttp2] {
            let mut client = Client::new(protocol, pingsix.address, None);
            // The configuration is empty, so the answer is 404.
            let status = client.ask(&Request::get("any.test", "/some/path")).await.map(|reply| reply.status);
            let served = protocol.http2() || http1_is_served;
            assert_eq!(status.as_ref().ok() == Some(&404), served, "{listener:?} {protocol:?}: {status:?}");
        }
    }
    print_message(&format!("{TEST}: HTTP/1.1 over TLS breaks, HTTP/2 does not"));
}
