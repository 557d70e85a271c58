//! The mark on resources of this program.

use serde_json::{Map, Value};

use crate::desired::Scope;
use crate::resource::{Resource, ResourceError};

/// The label whose value is the scope of a resource.
pub const SCOPE_LABEL: &str = "pingsix.io/scope";

/// The label whose value is the publisher of a resource.
pub const PUBLISHER_LABEL: &str = "pingsix.io/publisher";

const LABELS: &str = "labels";

/// The resource as it is sent: with its mark and with the id that PingSIX would otherwise add.
pub(super) fn marked(
    resource: &Resource<'_>,
    scope: &Scope,
    publisher: Option<&str>,
) -> Result<Value, ResourceError> {
    let Resource { id, fields, document, .. } = resource;
    let refused =
        |problem| ResourceError { key: document.key.clone(), owner: document.owner.clone(), problem };
    // PingSIX matches the raw path, so an id with an encoded character would become another id.
    if !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte)) {
        return Err(refused("its id cannot stand in the path of a URL"));
    }
    let mut fields = fields.clone();
    fields.insert("id".to_owned(), (*id).into());
    let labels = fields.entry(LABELS).or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(labels) = labels else {
        return Err(refused("its field labels is no JSON object"));
    };
    labels.insert(SCOPE_LABEL.to_owned(), scope.as_str().into());
    if let Some(publisher) = publisher {
        labels.insert(PUBLISHER_LABEL.to_owned(), publisher.into());
    }
    Ok(Value::Object(fields))
}

/// The scope of a resource.
pub(super) fn scope_of(resource: &Map<String, Value>) -> Option<&str> {
    resource.get(LABELS)?.get(SCOPE_LABEL)?.as_str()
}

/// The publisher of a resource.
pub(super) fn publisher_of(resource: &Map<String, Value>) -> Option<&str> {
    resource.get(LABELS)?.get(PUBLISHER_LABEL)?.as_str()
}

/// A resource without its id and its mark.
pub(super) fn unmarked(mut resource: Map<String, Value>) -> Map<String, Value> {
    resource.remove("id");
    if let Some(Value::Object(labels)) = resource.get_mut(LABELS) {
        labels.remove(SCOPE_LABEL);
        labels.remove(PUBLISHER_LABEL);
        if labels.is_empty() {
            resource.remove(LABELS);
        }
    }
    resource
}
