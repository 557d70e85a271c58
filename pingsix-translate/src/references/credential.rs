//! References of policies to Secrets.

use super::References;
use super::cache::not_read_yet;
use crate::crd::SecretObjectReference;
use crate::model::{FieldPath, Kind, ObjectKey, ObjectName, Reason, Refusal, Section};
use crate::quarantine::message_of;
use crate::snapshot::Secret;

impl References<'_> {
    /// Resolves the reference of a policy to a Secret.
    pub(crate) fn secret(
        &self,
        referrer: &ObjectKey,
        reference: &SecretObjectReference,
        at: &FieldPath,
    ) -> Result<&Secret, Refusal> {
        let SecretObjectReference { group, kind, name, namespace } = reference;
        let group = group.as_deref().unwrap_or_default();
        let kind = kind.as_deref().filter(|kind| !kind.is_empty()).unwrap_or(Kind::Secret.as_str());
        if !group.is_empty() || kind != Kind::Secret.as_str() {
            let message = format!("A credential is a Secret, not {kind} of group \"{group}\".");
            return Err(Refusal::new(at.child("kind"), Reason::InvalidKind, message));
        }
        let namespace = namespace.as_deref().filter(|namespace| !namespace.is_empty());
        let namespace = namespace.unwrap_or(&referrer.name.namespace);
        let name = ObjectName::new(namespace, name.as_str());
        // Permission comes before existence, so authors cannot find out the objects of another namespace.
        if !self.permit(referrer, Kind::Secret, &name) {
            return Err(Refusal::new(
                at.child("namespace"),
                Reason::RefNotPermitted,
                format!("No ReferenceGrant in namespace {namespace} lets {referrer} use Secret {name}."),
            ));
        }
        let key = ObjectKey { kind: Kind::Secret, name };
        if let Some(said) = message_of(&self.referents.quarantine, &key, Section::Whole) {
            let message = format!("PingSIX refuses what becomes of {key}, until the Secret changes: {said}");
            return Err(Refusal::new(at.clone(), Reason::Quarantined, message));
        }
        if let Some(secret) = self.referents.secrets.get(&key.name) {
            return Ok(secret);
        }
        let (reason, message) = match not_read_yet(&self.referents.pending, &key) {
            Some(message) => (Reason::Pending, message),
            None => (Reason::RefNotFound, format!("{key} does not exist.")),
        };
        Err(Refusal::new(at.child("name"), reason, message))
    }
}

/// An entry of a Secret as a text. The message names the entry and quotes nothing of its value.
pub(crate) fn entry<'s>(secret: &'s Secret, entry: &str) -> Result<&'s str, String> {
    let name = secret.metadata.name.as_deref().unwrap_or_default();
    let namespace = secret.metadata.namespace.as_deref().unwrap_or_default();
    let data = secret.data.as_ref().and_then(|data| data.get(entry));
    let text = secret.string_data.as_ref().and_then(|data| data.get(entry)).map(String::as_bytes);
    match text.or(data.map(|data| data.0.as_slice())).map(std::str::from_utf8) {
        None => Err(format!("Secret {namespace}/{name} has no entry {entry}.")),
        Some(Err(_)) => Err(format!("Entry {entry} of Secret {namespace}/{name} is no text in UTF-8.")),
        Some(Ok("")) => Err(format!("Entry {entry} of Secret {namespace}/{name} is empty.")),
        Some(Ok(text)) => Ok(text),
    }
}
