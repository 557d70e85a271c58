//! Verdicts as the `status` of Kubernetes objects, without transition times.

use serde_json::{Map, Value, json};

use super::{
    Ancestor, Conditions, GatewayClassVerdict, GatewayVerdict, ListenerSetVerdict, ListenerVerdict,
    PingsixProxyVerdict, PolicyVerdict, RouteVerdict, UnresolvedTarget,
};
use crate::model::{ObjectKey, ParentRef};

impl Conditions {
    /// The list in the format of a status.
    pub fn to_value(&self) -> Value {
        Value::Array(self.to_values())
    }

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

impl GatewayClassVerdict {
    /// `GatewayClass.status`
    pub fn to_status(&self) -> Value {
        let mut status = json!({ "conditions": self.conditions.to_value() });
        if let Some(features) = self.features() {
            status["supportedFeatures"] = features;
        }
        status
    }

    /// `status.supportedFeatures`; `None` for a class without any.
    pub(super) fn features(&self) -> Option<Value> {
        let features = self.supported_features.iter().map(|name| json!({ "name": name }));
        (!self.supported_features.is_empty()).then(|| features.collect())
    }
}

impl PingsixProxyVerdict {
    /// `PingsixProxy.status`
    pub fn to_status(&self) -> Value {
        let mut status = json!({ "conditions": self.conditions.to_value() });
        if let Some(mode) = self.mode {
            status["mode"] = json!(mode);
        }
        status
    }
}

impl GatewayVerdict {
    /// `Gateway.status`, without addresses.
    pub fn to_status(&self) -> Value {
        json!({
            "conditions": self.conditions.to_value(),
            "listeners": self.listeners.iter().map(ListenerVerdict::to_status).collect::<Value>(),
            "attachedListenerSets": self.attached_listener_sets,
        })
    }
}

impl ListenerSetVerdict {
    /// `ListenerSet.status`
    pub fn to_status(&self) -> Value {
        json!({
            "conditions": self.conditions.to_value(),
            "listeners": self.listeners.iter().map(ListenerVerdict::to_status).collect::<Value>(),
        })
    }
}

impl ListenerVerdict {
    /// An entry of `status.listeners` of a Gateway or ListenerSet.
    pub fn to_status(&self) -> Value {
        let kinds: Value = self
            .supported_kinds
            .iter()
            .map(|kind| json!({ "group": kind.group, "kind": kind.kind }))
            .collect();
        json!({
            "name": self.name,
            "supportedKinds": kinds,
            "attachedRoutes": self.attached_routes,
            "conditions": self.conditions.to_value(),
        })
    }
}

impl RouteVerdict {
    /// Our entries of `status.parents`.
    pub fn to_status(&self, controller_name: &str) -> Value {
        let parents: Value = self
            .parents
            .iter()
            .map(|parent| {
                json!({
                    "parentRef": parent.parent_ref.to_value(),
                    "controllerName": controller_name,
                    "conditions": parent.conditions.to_value(),
                })
            })
            .collect();
        json!({ "parents": parents })
    }
}

impl PolicyVerdict {
    /// Our entries of `status.ancestors`: one for each Gateway or IngressClass whose translation judged the policy, and for
    /// each target that leads nowhere.
    pub fn to_status<'a>(verdicts: impl IntoIterator<Item = &'a Self>, controller_name: &str) -> Value {
        let ancestors: Value =
            verdicts.into_iter().map(|verdict| verdict.to_ancestor(controller_name)).collect();
        json!({ "ancestors": ancestors })
    }

    /// An entry of `status.ancestors`. The API allows 16 entries of all controllers together.
    pub fn to_ancestor(&self, controller_name: &str) -> Value {
        json!({
            "ancestorRef": self.ancestor.to_value(),
            "controllerName": controller_name,
            "conditions": self.conditions.to_value(),
        })
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
