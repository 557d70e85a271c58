//! The store alone, for objects of this program.

use std::error::Error;

use k8s_openapi::api::core::v1::ServiceAccount;
use kube_runtime::watcher::Event;
use pingsix_store::{Change, Edge, ObjectName, ReflectorStore};
use serde_json::json;

fn edges() -> [Edge<ServiceAccount, String>; 2] {
    let pull_secret = Edge::depends_on("pull secret", |account: &ServiceAccount, targets: &mut Vec<String>| {
        let secrets = account.image_pull_secrets.iter().flatten();
        targets.extend(secrets.map(|secret| secret.name.clone()));
    });
    [
        pull_secret,
        Edge::concerns("namespace", |account: &ServiceAccount, targets: &mut Vec<_>| targets.extend(account.metadata.namespace.clone())),
    ]
}

/// The objects that read a Secret.
pub fn readers(secret: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let mut store = ReflectorStore::new(edges()).comparing(|one, other| one.metadata == other.metadata);
    let account = serde_json::from_value(json!({
        "metadata": {"name": "builder", "namespace": "shop"},
        "imagePullSecrets": [{"name": secret}],
    }))?;
    for change in store.apply(Event::Apply(account)) {
        match change {
            Change::Applied { name, concerned, .. } => println!("{name} {concerned:?}"),
            Change::Touched { name, .. } | Change::Removed { name, .. } => println!("{name}"),
        }
    }
    let is_there = store.get(&ObjectName::new("shop", "builder")).is_some();
    println!("{is_there} {} {}", store.is_complete(), store.work().entries);
    Ok(store.dependents(&secret.to_owned()).map(ToString::to_string).collect())
}
