//! The output of `pingsix-gatewayctl translate` for a dump.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Stdio;

use pingsix_sink::Scope;
use pingsix_test_programs::program;
use pingsix_translate::{Kind, ObjectKey, Options};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::timeout;

use crate::test_env::WAIT_TIMEOUT;
use crate::test_env::expected_state::Dump;

/// The output of the program.
pub(super) struct Offline {
    /// Documents by key.
    documents: BTreeMap<String, Value>,
    /// Conditions by object.
    output: BTreeMap<ObjectKey, BTreeSet<String>>,
    options: Options,
}

impl Offline {
    /// Has the program read the dump.
    pub(super) async fn of(dump: &Dump, options: &Options) -> Self {
        // The file contains private keys, as the dump does, and only its owner may read it.
        let folder = tempfile::tempdir().unwrap();
        let items: Vec<Value> = dump.raw.iter().map(|(key, raw)| with_type(key.kind, raw)).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        fs::write(folder.path().join("dump.json"), list.to_string()).unwrap();

        let documents = translate(folder.path(), "etcd-json", options).await;
        let statuses = translate(folder.path(), "status", options).await;
        let statuses: Vec<Value> = serde_saphyr::from_multiple(&statuses).unwrap();
        let output = |object: &Value| {
            let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
            let kind = Kind::ALL.iter().find(|kind| kind.as_str() == text("/kind")).unwrap();
            let key = ObjectKey::new(*kind, text("/metadata/namespace"), text("/metadata/name"));
            (key, conditions(&object["status"], options))
        };
        Self {
            documents: serde_json::from_str(&documents).unwrap(),
            output: statuses.iter().map(output).collect(),
            options: options.clone(),
        }
    }

    /// The differences between a server's documents and the program's output.
    pub(super) fn assert_served(&self, held: BTreeMap<Scope, BTreeMap<String, Vec<u8>>>) {
        let mut served = BTreeMap::new();
        for (scope, documents) in held {
            for (key, value) in documents {
                let value: Value = serde_json::from_slice(&value).unwrap();
                served.insert(format!("{}/{key}", scope.as_str()), value);
            }
        }
        let keys = |documents: &BTreeMap<String, Value>| documents.keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&served), keys(&self.documents));
        for (key, document) in &self.documents {
            // The values hold keys of certificates, which no log is to have.
            let is_same = served[key] == *document;
            assert!(is_same, "{key} is served with another value than the program prints");
        }
        assert!(!self.documents.is_empty());
    }

    /// Asserts that the statuses of a cluster equal the program's output, and other objects have none.
    pub(super) fn assert_statuses(&self, dump: &Dump) {
        for (key, raw) in &dump.raw {
            let expected = self.output.get(key).cloned().unwrap_or_default();
            assert_eq!(conditions(&raw["status"], &self.options), expected, "{key}");
        }
        assert!(!self.output.is_empty());
    }
}

async fn translate(folder: &Path, format: &str, options: &Options) -> String {
    let responder = options.responder.map_or_else(|| "off".to_owned(), |address| address.to_string());
    let mut command = Command::new(program("pingsix-gatewayctl").await);
    command.arg("translate").arg(folder).args(["--output", format, "--responder", &responder]);
    command.args(["--controller-name", &options.controller_name]);
    if options.stream {
        command.arg("--stream");
    }
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = timeout(WAIT_TIMEOUT, output).await.unwrap().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    // Exit code 1 reports objects that cannot be served, which is the case.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}: {errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// A list of the API server says the kind of its items once.
fn with_type(kind: Kind, raw: &Value) -> Value {
    let mut object = raw.clone();
    object["apiVersion"] = json!(kind.api_version());
    object["kind"] = json!(kind.as_str());
    object
}

/// Our conditions in a status with their subjects. Conditions about the PingSIX instances and the release of
/// definitions do not follow from manifests.
fn conditions(status: &Value, options: &Options) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut add = |about: &Value, holder: &Value| {
        for condition in holder["conditions"].as_array().into_iter().flatten() {
            let kind = condition["type"].as_str().unwrap_or_default();
            // The defaults of the API server, and the fields of other writers.
            let is_ours = condition["status"] != "Unknown" && !kind.contains('/');
            if is_ours && !matches!(kind, "Programmed" | "SupportedVersion") {
                let mut condition = condition.clone();
                condition.as_object_mut().unwrap().remove("lastTransitionTime");
                found.insert(format!("{about}: {condition}"));
            }
        }
    };
    add(&Value::Null, status);
    for (list, name) in [("listeners", "name"), ("parents", "parentRef"), ("ancestors", "ancestorRef")] {
        for entry in status[list].as_array().into_iter().flatten() {
            let controller = &entry["controllerName"];
            if controller.is_null() || *controller == *options.controller_name {
                add(&entry[name], entry);
            }
        }
    }
    found
}
