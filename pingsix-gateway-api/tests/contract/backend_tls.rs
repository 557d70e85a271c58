//! BackendTLSPolicies, translated and served: PingSIX speaks to a backend that proves the policy's name, and to no other.

use pingsix_translate::pingsix::{Config, Request};
use pingsix_translate::status::Problems;
use pingsix_translate::{Object, ObjectName, Options, translate};
use serde_json::json;

use crate::authority::Authority;
use crate::client::{Client, Protocol, Reply};
use crate::etcd::Etcd;
use crate::mirror::{Mirror, seen};
use crate::objects::{gateway_and_service, object, with_nodes};
use crate::process::{Listener, PingSix, Verdict, WAIT_TIMEOUT};
use crate::run::{binary, print_message};

const SCOPE: &str = "/contract/backend-tls";
const NAME: &str = "backend.shop.test";

/// A backend that proves this name with a certificate of this authority.
async fn backend(name: &str, authority: &Authority) -> Mirror {
    Mirror::start_tls(authority.acceptor(name)).await
}

/// The documents of Gateway `infra/public` for an HTTPRoute for [`NAME`] to a Service with a policy for that name.
fn config(app_protocol: &str) -> Config {
    let mut objects = gateway_and_service(&json!({ "port": 443, "appProtocol": app_protocol }), 8443);
    objects.insert(Object::HttpRoute(object(json!({
        "metadata": { "namespace": "infra", "name": "shop" },
        "spec": {
            "parentRefs": [{ "name": "public" }],
            "hostnames": [NAME],
            "rules": [{ "backendRefs": [{ "name": "shop", "port": 443 }] }],
        },
    }))));
    objects.insert(Object::BackendTlsPolicy(object(json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "BackendTLSPolicy",
        "metadata": { "namespace": "infra", "name": "shop" },
        "spec": {
            "targetRefs": [{ "group": "", "kind": "Service", "name": "shop" }],
            "validation": { "wellKnownCACertificates": "System", "hostname": NAME },
        },
    }))));
    let snapshot = objects.snapshot(&ObjectName::new("infra", "public")).unwrap();
    let translation = translate(&snapshot, &Options::default());
    assert_eq!(translation.verdicts.problems, Problems::new());
    translation.data_planes.into_values().next().unwrap().config
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_speaks_only_to_backends_that_prove_the_name_of_the_policy() {
    const TEST: &str = "backend TLS";
    let Some(binary) = binary(TEST) else { return };
    let (trusted, unknown) = (Authority::new("trusted"), Authority::new("unknown"));
    let etcd = Etcd::start(&[SCOPE.to_owned()]).await;
    let pingsix =
        PingSix::start_trusting(&trusted.pem(), Listener::Plaintext, &binary, etcd.address, SCOPE).await;
    let backends = [
        ("the name", backend(NAME, &trusted).await, true),
        ("a wildcard for it", backend("*.shop.test", &trusted).await, true),
        ("another name", backend("other.shop.test", &trusted).await, false),
        ("the name, by an authority that is not trusted", backend(NAME, &unknown).await, false),
        ("nothing, in plaintext", Mirror::start().await, false),
    ];
    let mut edition = 0;
    for (app_protocol, http2) in [("https", false), ("kubernetes.io/h2c", true)] {
        let config = config(app_protocol);
        for (proves, backend, expected) in &backends {
            edition += 1;
            let revision = etcd
                .publish(SCOPE, &with_nodes(&config, &[backend.address.to_string()]).await, edition)
                .await;
            assert_eq!(pingsix.verdict(revision, WAIT_TIMEOUT).await, Verdict::Accepted);
            let mut client = Client::new(Protocol::Http1, pingsix.address, None);
            let reply: Reply = client.ask(&Request::get(&format!("{NAME}:8080"), "/cart")).await.unwrap();
            assert_eq!(reply.status, if *expected { 200 } else { 502 }, "{app_protocol}: {proves}");
            if *expected {
                let seen = seen(&reply);
                // The port of the client's Host is not passed on.
                let host = if http2 { &seen["authority"] } else { &seen["headers"]["host"] };
                assert_eq!((host, &seen["http2"]), (&json!(NAME), &json!(http2)), "{app_protocol}: {proves}");
            }
        }
    }
    print_message(&format!("{TEST}: {edition} backends as the policy says"));
}
