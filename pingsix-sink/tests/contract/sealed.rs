//! The sink for an external etcd with a keyring: the contract holds with encrypted secrets.

use pingsix_sink::contract::{Ability, Contents, TestTarget};
use pingsix_sink::resource::Keyring;
use pingsix_sink::{Desired, Document, DocumentSet, Effect, EtcdSink, Published, Scope, Sink, SinkError};
use serde_json::{Value, json};

use crate::etcd::Etcd;

pub(crate) struct Sealed(Etcd);

/// A sink that receives the texts of the suite as upstreams with a private key.
#[derive(Debug)]
pub(crate) struct WithSecrets(EtcdSink);

impl Sink for WithSecrets {
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        let documents = desired.documents().iter().map(|document| Document {
            value: value(std::str::from_utf8(&document.value).unwrap()).into(),
            ..document.clone()
        });
        let documents = DocumentSet::new(documents).unwrap();
        self.0.publish(&Desired::new(desired.scope().clone(), documents)).await
    }

    fn effect(&self) -> Effect {
        self.0.effect()
    }

    fn drifted(&self) -> Option<tokio::sync::watch::Receiver<std::collections::BTreeSet<Scope>>> {
        Sink::drifted(&self.0)
    }
}

fn value(text: &str) -> String {
    json!({ "text": text, "tls": { "client_key": format!("the secret of {text}") } }).to_string()
}

impl TestTarget for Sealed {
    type Sink = WithSecrets;

    const MISSING: &'static [(Ability, &'static str)] = &[];

    async fn start() -> Option<Self> {
        Etcd::start().await.map(Self)
    }

    async fn open(&self) -> WithSecrets {
        let keyring = Keyring::new(["0123456789abcdef"]).unwrap();
        WithSecrets(self.0.builder().keyring(keyring).build().unwrap())
    }

    async fn read(&self, scope: &Scope) -> Contents {
        texts(self.0.read(scope).await)
    }

    async fn states(&self, scope: &Scope) -> Vec<Contents> {
        self.0.states(scope).await.into_iter().map(texts).collect()
    }

    async fn write_foreign(&self, scope: &Scope, key: &str, written: Option<&str>) {
        self.0.write_foreign(scope, key, written.map(value).as_deref()).await;
    }

    fn fail_after(&self, writes: Option<usize>) {
        self.0.fail_after(writes);
    }

    fn lose_responses_after(&self, writes: Option<usize>) {
        self.0.lose_responses_after(writes);
    }

    fn stall(&self, is_stalled: bool) {
        self.0.stall(is_stalled);
    }
}

fn texts(contents: Contents) -> Contents {
    let read = |(key, value): (String, String)| {
        let decoded: Value = serde_json::from_str(&value).unwrap();
        let text = decoded["text"].as_str().unwrap().to_owned();
        let is_secret = key.starts_with("upstreams/");
        // Foreign values are unchanged.
        assert!(!is_secret || !value.contains("the secret of") || value == self::value(&text));
        (key, text)
    };
    contents.into_iter().map(read).collect()
}
