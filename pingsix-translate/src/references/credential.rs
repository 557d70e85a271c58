//! References of policies to Secrets and public keys.

use std::sync::Arc;

use super::References;
use super::cache::not_read_yet;
use crate::crd::SecretObjectReference;
use crate::model::{FieldPath, Kind, ObjectKey, ObjectName, Reason, Refusal, Section};
use crate::pingsix::validate::read_public_key;
use crate::quarantine::message_of;
use crate::shared_map::SharedMap;
use crate::snapshot::{Secret, named_referent};

impl<'a> References<'a> {
    /// Resolves the reference of a policy to a Secret.
    pub(crate) fn secret(
        &self,
        referrer: &ObjectKey,
        reference: &SecretObjectReference,
        at: &FieldPath,
    ) -> Result<&'a Secret, Refusal> {
        let key = self.permitted_referent(referrer, reference, &[Kind::Secret], at)?;
        self.existing(&self.referents.secrets, &key, at)
    }

    /// Resolves the reference of a policy to the public key in an entry of a ConfigMap or Secret, as canonical PEM. The inner
    /// error describes the object in one sentence, without a quotation of its content.
    pub(crate) fn public_key(
        &self,
        referrer: &ObjectKey,
        reference: &SecretObjectReference,
        name: &str,
        at: &FieldPath,
    ) -> Result<Result<String, String>, Refusal> {
        let key = self.permitted_referent(referrer, reference, &[Kind::Secret, Kind::ConfigMap], at)?;
        let text = if key.kind == Kind::Secret {
            entry(self.existing(&self.referents.secrets, &key, at)?, name)
        } else {
            let config_map = self.existing(&self.referents.config_maps, &key, at)?;
            let text = config_map.data.as_ref().and_then(|data| data.get(name));
            let text = text.map(String::as_str).filter(|text| !text.is_empty());
            text.ok_or_else(|| format!("{key} has no entry {name}."))
        };
        Ok(text.and_then(|text| {
            read_public_key(text).map_err(|error| format!("Entry {name} of {key} {error}."))
        }))
    }

    /// The object of a reference that the referrer may use. The object may be missing.
    fn permitted_referent(
        &self,
        referrer: &ObjectKey,
        reference: &SecretObjectReference,
        kinds: &[Kind],
        at: &FieldPath,
    ) -> Result<ObjectKey, Refusal> {
        let key = named_referent(reference, &referrer.name.namespace);
        let Some(key) = key.filter(|key| kinds.contains(&key.kind)) else {
            let SecretObjectReference { group, kind, .. } = reference;
            let [group, kind] = [group, kind].map(|field| field.as_deref().unwrap_or_default());
            let kinds: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
            let message = format!(
                "The reference has to name a {}, but names {kind} of group \"{group}\".",
                kinds.join(" or a ")
            );
            return Err(Refusal::new(at.child("kind"), Reason::InvalidKind, message));
        };
        self.check_permission(referrer, &key, at)?;
        if let Some(said) = message_of(&self.referents.quarantine, &key, Section::Whole) {
            let kind = key.kind;
            let message = format!("PingSIX refuses {key}. It is not used until the {kind} changes: {said}");
            return Err(Refusal::new(at.clone(), Reason::Quarantined, message));
        }
        Ok(key)
    }

    fn existing<T>(
        &self,
        objects: &'a SharedMap<ObjectName, Arc<T>>,
        key: &ObjectKey,
        at: &FieldPath,
    ) -> Result<&'a T, Refusal> {
        if let Some(object) = objects.get(&key.name) {
            return Ok(object);
        }
        let (reason, message) = match not_read_yet(&self.referents.pending, key) {
            Some(message) => (Reason::Pending, message),
            None => (Reason::RefNotFound, format!("{key} does not exist.")),
        };
        Err(Refusal::new(at.child("name"), reason, message))
    }
}

/// An entry of a Secret as text. The message names the entry without a quotation of its value.
pub(crate) fn entry<'s>(secret: &'s Secret, entry: &str) -> Result<&'s str, String> {
    let name = secret.metadata.name.as_deref().unwrap_or_default();
    let namespace = secret.metadata.namespace.as_deref().unwrap_or_default();
    let data = secret.data.as_ref().and_then(|data| data.get(entry));
    let text = secret.string_data.as_ref().and_then(|data| data.get(entry)).map(String::as_bytes);
    match text.or(data.map(|data| data.0.as_slice())).map(std::str::from_utf8) {
        None => Err(format!("Secret {namespace}/{name} has no entry {entry}.")),
        Some(Err(_)) => Err(format!("Entry {entry} of Secret {namespace}/{name} is not UTF-8 text.")),
        Some(Ok("")) => Err(format!("Entry {entry} of Secret {namespace}/{name} is empty.")),
        Some(Ok(text)) => Ok(text),
    }
}
