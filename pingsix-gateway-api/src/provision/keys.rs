//! The keys of processes, and the key that encrypts secrets: one that all processes have.
//!
//! PingSIX reads its keyring at its start (`src/utils/encryption.rs`), and refuses a configuration with a secret that
//! none of its keys decrypts. PingSIX accepts plaintext with any keyring. So the rollout of a key precedes its use:
//! Pods with the new keyring replace those with the old one, while both can read the secrets.
//!
//! The keys that all running processes have are [recorded](KeyRecord) where they outlive the controller: in the Secret
//! that processes read at their start, so both change in one write. The record loses keys together with the keyring,
//! because a restarted Pod reads the present Secret, whichever template it has. The record gains keys after the last
//! Pod from before the keyring is gone, terminating Pods included: each keyring has a number, and each Pod has the
//! number of the keyring at its creation. So a crash of the controller or of a Pod is safe at any time.
//!
//! This is safe at every moment and before any next request, because [encrypted](plan) secrets use a key of the former
//! and of the next keyring.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::ByteString;
use pingsix_translate::ObjectName;
use serde_json::{Value, json};
use thiserror::Error;

use super::Keyring;

/// The annotation of Pods with the number of the keyring that was there before them.
pub(super) const EDITION: &str = "pingsix.io/keyring";

/// The entry of the Secret with the record.
pub(super) const RECORD: &str = "keys";

/// The termination grace period without one in the template: the default of Kubernetes, in seconds.
const DEFAULT_GRACE_PERIOD_SECONDS: u64 = 30;

/// The keys that all processes of an owner have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum DeployedKeys {
    /// No process exists.
    #[default]
    NoProcess,
    /// Each process has these keys; empty if a process may have none.
    All(Keyring),
}

/// The keys of parameters are not available.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub(crate) enum MissingKeysError {
    /// The Secret does not exist.
    #[error("Secret \"{0}\" with the keyring does not exist.")]
    NoSecret(ObjectName),
    /// The Secret lacks the entry.
    #[error("Secret \"{secret}\" holds no keyring in its entry \"{entry}\".")]
    NoKeys {
        /// The Secret.
        secret: ObjectName,
        /// The entry for the keys.
        entry: String,
    },
    /// The keys of the processes are unknown, and the next keys depend on them.
    #[error("The keys of its processes are still unknown.")]
    Unknown,
}

/// The plan for requested keys and the keys of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyPlan {
    /// The encrypting key, or `None` for plaintext; an error if the documents must not be published.
    pub(crate) seal: Result<Option<String>, MissingKeysError>,
    /// The keys for processes that start from now on, or the reason for which they stay.
    pub(crate) processes: Result<Keyring, MissingKeysError>,
}

impl KeyPlan {
    /// Whether the keys of processes are being replaced, so that a process may be unable to read the documents for a
    /// moment.
    pub(crate) fn is_under_way(&self, deployed: &DeployedKeys) -> bool {
        let set = |keyring: &Keyring| keyring.0.iter().cloned().collect::<BTreeSet<String>>();
        match (&self.processes, deployed) {
            (Ok(next), DeployedKeys::All(deployed)) => set(next) != set(deployed),
            (Ok(_), DeployedKeys::NoProcess) | (Err(_), _) => false,
        }
    }
}

/// Decides on the encrypting key and on the keys of processes. `asked` are the keys of parameters; `None` without
/// encryption.
///
/// - The first requested key that all processes have encrypts. Without a process, that is the first requested key.
/// - If processes have none of the requested keys, one of theirs continues to encrypt, and they get it after the
///   requested ones. When all have a requested key, that one encrypts, and the former one is removed.
/// - If processes have no key at all, they read plaintext until all of them have one.
/// - Without encryption, documents are plaintext at once, before the processes lose their keys.
/// - While the requested keys are not available, processes keep their keys, and documents their encryption.
pub(crate) fn plan(asked: Option<&Result<Keyring, MissingKeysError>>, deployed: &DeployedKeys) -> KeyPlan {
    let none = Keyring::default();
    let (has_processes, deployed) = match deployed {
        DeployedKeys::NoProcess => (false, &none),
        DeployedKeys::All(deployed) => (true, deployed),
    };
    match asked {
        None => KeyPlan { seal: Ok(None), processes: Ok(Keyring::default()) },
        Some(Err(why)) if has_processes => {
            KeyPlan { seal: Ok(deployed.0.first().cloned()), processes: Err(why.clone()) }
        }
        Some(Err(why)) => KeyPlan { seal: Err(why.clone()), processes: Err(why.clone()) },
        Some(Ok(asked)) if has_processes => {
            if let Some(key) = asked.0.iter().find(|key| deployed.0.contains(*key)) {
                return KeyPlan { seal: Ok(Some(key.clone())), processes: Ok(asked.clone()) };
            }
            let before = deployed.0.first();
            let next = asked.0.iter().chain(before).cloned().collect();
            KeyPlan { seal: Ok(before.cloned()), processes: Ok(Keyring(next)) }
        }
        Some(Ok(asked)) => KeyPlan { seal: Ok(asked.0.first().cloned()), processes: Ok(asked.clone()) },
    }
}

/// The record of keys in the Secret that processes read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyRecord {
    /// The number of the keyring, counted from its first key; 0 before.
    pub(crate) edition: u64,
    /// The keyring at the start of processes.
    pub(crate) keyring: Keyring,
    /// The keys of it that all running processes have.
    pub(crate) deployed: Keyring,
}

impl KeyRecord {
    /// The next record for processes that start with these keys.
    pub(super) fn next(&self, rollout: Option<&Rollout>, keyring: Keyring, deployed: &DeployedKeys) -> Self {
        let last = rollout.map_or(0, |rollout| rollout.edition).max(self.edition);
        let edition = if keyring == self.keyring { self.edition } else { last + 1 };
        let deployed = match deployed {
            DeployedKeys::NoProcess => keyring.clone(),
            DeployedKeys::All(deployed) => {
                Keyring(keyring.0.iter().filter(|key| deployed.0.contains(key)).cloned().collect())
            }
        };
        Self { edition, keyring, deployed }
    }

    /// The keys that all processes have; `is_over`: all Pods are of the template of the Deployment.
    pub(super) fn deployed(&self, rollout: &Rollout, is_over: bool) -> &Keyring {
        if is_over && rollout.edition == self.edition { &self.keyring } else { &self.deployed }
    }

    /// The text in the Secret; `None` if nothing was ever encrypted.
    pub(super) fn to_text(&self) -> Option<String> {
        let Self { edition, keyring, deployed } = self;
        let text = json!({ "edition": edition, "keyring": keyring.0, "held": deployed.0 });
        (*edition > 0).then(|| text.to_string())
    }

    /// Reads the text of a Secret.
    pub(super) fn of(secret: &Value) -> Self {
        let record = secret.get("data").and_then(|data| data.get(RECORD)).cloned().unwrap_or_default();
        let record: ByteString = serde_json::from_value(record).unwrap_or_default();
        let record: Value = serde_json::from_slice(&record.0).unwrap_or_default();
        let keys = |name: &str| {
            let keys = record.get(name).and_then(Value::as_array).into_iter().flatten();
            Keyring(keys.filter_map(|key| Some(key.as_str()?.to_owned())).collect())
        };
        let edition = record.get("edition").and_then(Value::as_u64).unwrap_or_default();
        Self { edition, keyring: keys("keyring"), deployed: keys("held") }
    }
}

/// The progress of a Deployment's rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rollout {
    /// The generation of the Deployment.
    pub(super) generation: i64,
    /// Whether all Pods are of the template, except terminating ones.
    pub(super) is_complete: bool,
    /// The termination grace period of the former Pods.
    pub(super) grace: Duration,
    /// The number of the keyring before the template.
    edition: u64,
}

impl Rollout {
    pub(super) fn of(deployment: &Value) -> Self {
        let number = |path: &str| deployment.pointer(path).and_then(Value::as_i64);
        let generation = number("/metadata/generation").unwrap_or_default();
        let template = &deployment["spec"]["template"];
        let grace = template["spec"]["terminationGracePeriodSeconds"].as_u64();
        let edition = template["metadata"]["annotations"][EDITION].as_str();
        Self {
            generation,
            is_complete: number("/status/observedGeneration") == Some(generation)
                && number("/status/replicas").unwrap_or_default()
                    == number("/status/updatedReplicas").unwrap_or_default(),
            grace: Duration::from_secs(grace.unwrap_or(DEFAULT_GRACE_PERIOD_SECONDS)),
            edition: edition.and_then(|edition| edition.parse().ok()).unwrap_or_default(),
        }
    }

    /// Whether Pods of the template may have unrecorded keys.
    pub(super) fn may_add_to(&self, record: &KeyRecord) -> bool {
        self.edition == record.edition && record.deployed != record.keyring
    }
}

#[cfg(test)]
mod tests;
