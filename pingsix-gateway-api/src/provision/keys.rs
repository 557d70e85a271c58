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
//! This is safe at every moment, because [encrypted](plan) secrets use a key of the former and of the next keyring,
//! whatever the next request is.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::ByteString;
use pingsix_translate::ObjectName;
use serde_json::{Value, json};
use thiserror::Error;

use super::Keyring;

/// The annotation of Pods with the number of the keyring that was there before them.
pub(super) const EDITION: &str = "pingsix.io/keyring";

/// The entry of the Secret with what is written down.
pub(super) const RECORD: &str = "keys";

/// The termination grace period without one in the template: the default of Kubernetes, in seconds.
const USUAL_GRACE: u64 = 30;

/// The keys that all processes of an owner have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HeldKeys {
    /// There are no processes yet.
    #[default]
    Nobody,
    /// Each of them has these; none when one of them may have none.
    All(Keyring),
}

/// The keys that parameters name cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyringFault {
    /// There is no such Secret.
    #[error("Secret \"{0}\" with the keyring does not exist.")]
    NoSecret(ObjectName),
    /// The Secret has no key where it should.
    #[error("Secret \"{secret}\" holds no keyring in its entry \"{entry}\".")]
    NoKeys {
        /// The Secret.
        secret: ObjectName,
        /// The entry for the keys.
        entry: String,
    },
    /// Which keys follow depends on those that processes have, and these are not known yet.
    #[error("It is not known yet which keys its processes have.")]
    Unknown,
}

/// The plan for requested keys and the keys of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyPlan {
    /// The key that encrypts what is handed out, `None` for plaintext; or why nothing is to be handed out.
    pub(crate) seal: Result<Option<String>, KeyringFault>,
    /// The keys that processes are started with from now on, or why they stay as they are.
    pub(crate) processes: Result<Keyring, KeyringFault>,
}

impl KeyPlan {
    /// Whether processes have other keys than they are to have, so that not all of them may be able to read what is handed
    /// out, however short that is.
    pub(crate) fn is_under_way(&self, held: &HeldKeys) -> bool {
        let set = |keyring: &Keyring| keyring.0.iter().cloned().collect::<BTreeSet<String>>();
        match (&self.processes, held) {
            (Ok(next), HeldKeys::All(held)) => set(next) != set(held),
            (Ok(_), HeldKeys::Nobody) | (Err(_), _) => false,
        }
    }
}

/// Says which key encrypts, and which keys processes get. `asked` is what parameters name; `None` when they ask for no
/// encryption.
///
/// - The first key encrypts that is asked for and that all processes have. Who has no process yet gets the first at once.
/// - If they have none of those that are asked for, one that they have goes on, and processes get it as well, behind the
///   others: when all have one of the others, that one encrypts, and the one before is taken from them.
/// - If they have no key at all, they read plaintext alone, until all of them have one.
/// - What is not to be encrypted any more is handed out in plaintext at once, before the processes lose their keys.
/// - While the keys cannot be had, processes keep what they have, and what they read.
pub(crate) fn plan(asked: Option<&Result<Keyring, KeyringFault>>, held: &HeldKeys) -> KeyPlan {
    let nobodys = Keyring::default();
    let (has_processes, held) = match held {
        HeldKeys::Nobody => (false, &nobodys),
        HeldKeys::All(held) => (true, held),
    };
    match asked {
        None => KeyPlan { seal: Ok(None), processes: Ok(Keyring::default()) },
        Some(Err(why)) if has_processes => {
            KeyPlan { seal: Ok(held.0.first().cloned()), processes: Err(why.clone()) }
        }
        Some(Err(why)) => KeyPlan { seal: Err(why.clone()), processes: Err(why.clone()) },
        Some(Ok(asked)) if has_processes => {
            if let Some(key) = asked.0.iter().find(|key| held.0.contains(*key)) {
                return KeyPlan { seal: Ok(Some(key.clone())), processes: Ok(asked.clone()) };
            }
            let before = held.0.first();
            let next = asked.0.iter().chain(before).cloned().collect();
            KeyPlan { seal: Ok(before.cloned()), processes: Ok(Keyring(next)) }
        }
        Some(Ok(asked)) => KeyPlan { seal: Ok(asked.0.first().cloned()), processes: Ok(asked.clone()) },
    }
}

/// The record of keys in the Secret that processes read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRecord {
    /// Which keyring this is, of all that there were; 0 before the first that has a key.
    pub edition: u64,
    /// The keyring at the start of processes.
    pub keyring: Keyring,
    /// Which of these keys all of them have that may run.
    pub held: Keyring,
}

impl KeyRecord {
    /// The next record for processes that start with these keys.
    pub(super) fn next(&self, rollout: Option<&Rollout>, keyring: Keyring, held: &HeldKeys) -> Self {
        let last = rollout.map_or(0, |rollout| rollout.edition).max(self.edition);
        let edition = if keyring == self.keyring { self.edition } else { last + 1 };
        let held = match held {
            HeldKeys::Nobody => keyring.clone(),
            HeldKeys::All(held) => {
                Keyring(keyring.0.iter().filter(|key| held.0.contains(key)).cloned().collect())
            }
        };
        Self { edition, keyring, held }
    }

    /// The keys that all processes have; `is_over`: all Pods are of the template of the Deployment.
    pub(super) fn held(&self, rollout: &Rollout, is_over: bool) -> &Keyring {
        if is_over && rollout.edition == self.edition { &self.keyring } else { &self.held }
    }

    /// As the Secret has it; `None` when nothing was ever encrypted.
    pub(super) fn to_text(&self) -> Option<String> {
        let Self { edition, keyring, held } = self;
        let text = json!({ "edition": edition, "keyring": keyring.0, "held": held.0 });
        (*edition > 0).then(|| text.to_string())
    }

    /// Of a Secret.
    pub(super) fn of(secret: &Value) -> Self {
        let record = secret.get("data").and_then(|data| data.get(RECORD)).cloned().unwrap_or_default();
        let record: ByteString = serde_json::from_value(record).unwrap_or_default();
        let record: Value = serde_json::from_slice(&record.0).unwrap_or_default();
        let keys = |name: &str| {
            let keys = record.get(name).and_then(Value::as_array).into_iter().flatten();
            Keyring(keys.filter_map(|key| Some(key.as_str()?.to_owned())).collect())
        };
        let edition = record.get("edition").and_then(Value::as_u64).unwrap_or_default();
        Self { edition, keyring: keys("keyring"), held: keys("held") }
    }
}

/// The progress of a Deployment's rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rollout {
    /// Which edition of what is asked of the Deployment this is about.
    pub(super) generation: i64,
    /// Whether all Pods are of the template, except terminating ones.
    pub(super) is_complete: bool,
    /// The termination grace period of the former Pods.
    pub(super) grace: Duration,
    /// Which keyring was there before the template was.
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
            grace: Duration::from_secs(grace.unwrap_or(USUAL_GRACE)),
            edition: edition.and_then(|edition| edition.parse().ok()).unwrap_or_default(),
        }
    }

    /// Whether Pods of the template may have unrecorded keys.
    pub(super) fn may_add_to(&self, record: &KeyRecord) -> bool {
        self.edition == record.edition && record.held != record.keyring
    }
}

#[cfg(test)]
mod tests;
