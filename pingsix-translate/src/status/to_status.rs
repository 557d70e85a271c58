//! Conditions and references in the format of a `status`.

use serde_json::{Map, Value, json};

use super::{Ancestor, Conditions, UnresolvedTarget};
use crate::model::{ObjectKey, ParentRef};

impl Conditions {
    /// The conditions without transition times.
    pub(super) fn to_values(&self) -> Vec<Value> {
        self.iter()
            .map(|condition| {
                json!({
                    "type": condition.kind.as_str(),
                    "status": condition.status.as_str(),
                    "reason": condition.reason.as_str(),
                    "message": condition.message,
                    "observedGeneration": condition.observed_generation,
                })
            })
            .collect()
    }
}

impl Ancestor {
    /// `ancestorRef` of a policy's status. An ancestor in no namespace has no such field.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Owner(owner) => {
                let ObjectKey { kind, name } = &**owner;
                let mut reference =
                    json!({ "group": kind.group(), "kind": kind.as_str(), "name": &*name.name });
                if kind.is_namespaced() {
                    reference["namespace"] = json!(&*name.namespace);
                }
                reference
            }
            Self::Target(target) => {
                let UnresolvedTarget { group, kind, name, section_name } = &**target;
                let mut reference = json!({
                    "group": group, "kind": kind, "namespace": &*name.namespace, "name": &*name.name,
                });
                if let Some(section) = section_name {
                    reference["sectionName"] = json!(section);
                }
                reference
            }
        }
    }
}

impl ParentRef {
    /// The reference as written, without absent fields.
    pub fn to_value(&self) -> Value {
        let mut value = Map::new();
        let texts = [
            ("group", self.group.as_ref()),
            ("kind", self.kind.as_ref()),
            ("namespace", self.namespace.as_ref()),
            ("name", Some(&self.name)),
            ("sectionName", self.section_name.as_ref()),
        ];
        for (field, text) in texts {
            if let Some(text) = text {
                value.insert(field.to_owned(), json!(text));
            }
        }
        if let Some(port) = self.port {
            value.insert("port".to_owned(), json!(port));
        }
        Value::Object(value)
    }
}
