//! A Gateway whose secrets are encrypted, by keys that change.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Secret, Service};
use kube::Api;
use kube::api::{Patch, PatchParams};
use pingsix_gateway_api::pki::FeedIdentity;
use pingsix_sink::resource::Keyring;
use pingsix_sink::{Document, Key, OrderHint, Owner};
use serde_json::{Value, json};

use super::env::{ManagedEnv, SYSTEM};
use crate::pki::read;
use crate::test_env::shop;

/// The Service of the feed.
const FEED: &str = "pingsix-gateway-feed";

/// Every key that is ever asked for.
const KEYS: [&str; 3] = ["old", "new", "other"];

/// The Gateway.
pub(super) struct EncryptedGateway {
    name: String,
    feed: SocketAddr,
}

impl EncryptedGateway {
    /// A Gateway for HTTPS alone, with parameters of its own that ask for nothing yet.
    pub(super) async fn start(env: &ManagedEnv, name: &str) -> Self {
        let (certificate, key) = shop::pair(name);
        env.apply(&shop::secret(name, &certificate, &key)).await;
        let this = Self { name: name.to_owned(), feed: feed(env).await };
        this.switch_off(env).await;
        env.apply(&format!(
            "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: {name}, namespace: default}}
spec:
  gatewayClassName: pingsix
  infrastructure: {{parametersRef: {{group: pingsix.io, kind: PingsixProxy, name: {name}}}}}
  listeners: [{{name: secure, port: 443, protocol: HTTPS, tls: {{certificateRefs: [{{name: {name}}}]}}}}]
"
        ))
        .await;
        this
    }

    async fn apply(&self, env: &ManagedEnv, managed: &str) {
        let Self { name, .. } = self;
        env.apply(&format!(
            "
apiVersion: pingsix.io/v1alpha1
kind: PingsixProxy
metadata: {{name: {name}, namespace: default}}
spec: {{managed: {managed}}}
"
        ))
        .await;
    }

    /// Asks for no encryption.
    pub(super) async fn switch_off(&self, env: &ManagedEnv) {
        self.apply(env, "{}").await;
    }

    /// Asks for these keys, one a line.
    pub(super) async fn ask(&self, env: &ManagedEnv, keyring: &str) {
        let data = json!({"keyring": ByteString(keyring.as_bytes().to_vec())});
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "data": data});
        let secrets = Api::<Secret>::namespaced(env.cluster.admin(), "default");
        let params = PatchParams::apply("test").force();
        secrets.patch("keys", &params, &Patch::Apply(&secret)).await.unwrap();
        self.apply(env, "{process: {dataEncryption: {keyringSecretRef: {name: keys}}}}").await;
    }

    /// Asserts that this key encrypts in the end, and that all processes have these keys.
    pub(super) async fn wait_for_keys(&self, env: &ManagedEnv, seal: &str, keys: &[&str]) {
        let is_rolled_out = async || {
            let deployments = Api::<Deployment>::namespaced(env.cluster.admin(), "default");
            let deployment = deployments.get(&format!("{}-pingsix", self.name)).await.unwrap();
            let status = deployment.status.unwrap_or_default();
            status.observed_generation == deployment.metadata.generation
                && (status.replicas, status.updated_replicas) == (Some(1), Some(1))
        };
        let what = format!("that {seal} encrypts, and all processes have {keys:?}");
        env.until(&what, async || {
            self.seal(env).await == seal
                && self.config(env).await.1 == keys
                && self.held(env).await == keys
                && is_rolled_out().await
        })
        .await;
    }

    async fn secret(&self, env: &ManagedEnv, which: &str) -> BTreeMap<String, ByteString> {
        let secrets = Api::<Secret>::namespaced(env.cluster.admin(), "default");
        let secret = secrets.get(&format!("{}-pingsix-{which}", self.name)).await.unwrap();
        secret.data.unwrap_or_default()
    }

    /// The prefix that processes read, and their keys.
    async fn config(&self, env: &ManagedEnv) -> (String, Vec<String>) {
        let config = self.secret(env, "config").await;
        let config: Value = serde_json::from_slice(&config["443.yaml"].0).unwrap();
        let config = &config["pingsix"];
        let keys = config["data_encryption"]["keyring"].as_array().into_iter().flatten();
        let keys = keys.map(|key| key.as_str().unwrap().to_owned()).collect();
        (config["etcd"]["prefix"].as_str().unwrap().to_owned(), keys)
    }

    /// The keys that all processes have, as far as the controller knows.
    async fn held(&self, env: &ManagedEnv) -> Vec<String> {
        let config = self.secret(env, "config").await;
        let record: Value =
            config.get("keys").map_or(Value::Null, |keys| serde_json::from_slice(&keys.0).unwrap());
        let keys = record["held"].as_array().into_iter().flatten();
        keys.map(|key| key.as_str().unwrap().to_owned()).collect()
    }

    /// The encryption of the certificate in the feed: `plaintext` without any, and `None` while the feed does not
    /// answer.
    pub(super) async fn seal(&self, env: &ManagedEnv) -> String {
        let prefix = self.config(env).await.0;
        let identity = FeedIdentity::from_data(&self.secret(env, "feed").await).unwrap();
        let name = format!("{FEED}.{SYSTEM}.svc");
        let Ok(found) = read((self.feed, &name), &identity, &prefix).await else { return String::new() };
        let mut certificates = found.into_iter().filter_map(|found| {
            let key = String::from_utf8(found.key.to_vec()).unwrap();
            let key = key.strip_prefix(&format!("{prefix}/"))?.to_owned();
            key.starts_with("ssls/").then(|| Document {
                key: Key::new(key).unwrap(),
                value: found.value,
                order: OrderHint(0),
                owner: Owner::new("test"),
            })
        });
        let Some(certificate) = certificates.next() else { return String::new() };
        let value = String::from_utf8_lossy(&certificate.value).into_owned();
        if value.contains("PRIVATE KEY") {
            return "plaintext".to_owned();
        }
        assert!(value.contains("$pingsix-enc:v1$"), "neither in plaintext nor encrypted");
        let opens = |entry: &&&str| Keyring::new([**entry]).unwrap().open(&certificate).is_some();
        KEYS.iter().find(opens).expect("one of the keys opens it").to_string()
    }
}

/// The address of the feed.
async fn feed(env: &ManagedEnv) -> SocketAddr {
    let services = Api::<Service>::namespaced(env.cluster.admin(), SYSTEM);
    let spec = services.get(FEED).await.unwrap().spec.unwrap();
    let address = spec.cluster_ip.unwrap().parse().unwrap();
    SocketAddr::new(address, spec.ports.unwrap()[0].port.try_into().unwrap())
}
