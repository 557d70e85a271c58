//! The types of objects: generated ones if they hold every field that matters, and our own otherwise.

use std::borrow::Cow;
use std::collections::BTreeMap;

pub use gateway_api::backendtlspolicies::BackendTlsPolicy;
pub use gateway_api::gatewayclasses::GatewayClass;
pub use gateway_api::referencegrants::ReferenceGrant;
pub use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
pub use k8s_openapi::api::networking::v1::{Ingress, IngressClass};

pub use crate::crd::{BackendTrafficPolicy, HttpRouteFilter, PingsixProxy, SecurityPolicy, TrafficPolicy};

use gateway_api::gateways::{GatewayListeners, GatewaySpec, GatewayStatus};
use gateway_api::listenersets::{ListenerSetParentRef, ListenerSetStatus};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// An object type of our own, of `gateway.networking.k8s.io/v1`.
macro_rules! resource {
    ($(#[$doc:meta])* $name:ident, $spec:ty, $status:ty, $kind:literal, $plural:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub struct $name {
            /// `apiVersion` and `kind`, when written.
            #[serde(flatten, default)]
            #[schemars(skip)]
            pub types: Option<kube::core::TypeMeta>,
            /// `metadata`
            pub metadata: kube::core::ObjectMeta,
            /// `spec`
            pub spec: $spec,
            /// `status`
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[schemars(skip)]
            pub status: Option<$status>,
        }

        impl kube::Resource for $name {
            type DynamicType = ();
            type Scope = kube::core::NamespaceResourceScope;

            fn kind((): &()) -> std::borrow::Cow<'_, str> {
                $kind.into()
            }

            fn group((): &()) -> std::borrow::Cow<'_, str> {
                $crate::model::GATEWAY_GROUP.into()
            }

            fn version((): &()) -> std::borrow::Cow<'_, str> {
                "v1".into()
            }

            fn plural((): &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &kube::core::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut kube::core::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

pub(super) use resource;

resource! {
    /// A Gateway, with the fields of the experimental channel that must not be ignored.
    Gateway, WithExtraFields<GatewaySpec, ExtraGatewayFields>, GatewayStatus, "Gateway", "gateways"
}

resource! {
    /// A ListenerSet, with the fields of the experimental channel that must not be ignored.
    ListenerSet, WithExtraFields<ListenerSetSpec, ExtraListenerSetFields>, ListenerSetStatus, "ListenerSet", "listenersets"
}

/// `ListenerSet.spec`. Its listeners have the JSON shape of a Gateway's, so they are decoded into the same type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListenerSetSpec {
    /// `spec.parentRef`: the Gateway.
    pub parent_ref: ListenerSetParentRef,
    /// `spec.listeners`
    pub listeners: Vec<GatewayListeners>,
}

/// A generated type together with fields of newer CRDs that the type lacks. Reads and writes as one object, and
/// dereferences to the generated type.
#[derive(Clone, Debug, Default)]
pub struct WithExtraFields<T, E> {
    /// The generated type.
    pub known: T,
    /// The fields that the generated type lacks.
    pub extra: E,
}

impl<T, E> std::ops::Deref for WithExtraFields<T, E> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.known
    }
}

impl<'de, T: Deserialize<'de>, E: for<'p> Deserialize<'p>> Deserialize<'de> for WithExtraFields<T, E> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        // The path of the outer object ends here, so the message has the rest of it.
        let extra = serde_path_to_error::deserialize(&value).map_err(serde::de::Error::custom)?;
        let known = serde_path_to_error::deserialize(value).map_err(serde::de::Error::custom)?;
        Ok(Self { known, extra })
    }
}

impl<T: Serialize, E: Serialize> Serialize for WithExtraFields<T, E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error as _;
        let mut whole = serde_json::to_value(&self.known).map_err(S::Error::custom)?;
        merge(&mut whole, serde_json::to_value(&self.extra).map_err(S::Error::custom)?);
        whole.serialize(serializer)
    }
}

impl<T: JsonSchema, E: JsonSchema> JsonSchema for WithExtraFields<T, E> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut whole = Value::from(T::json_schema(generator));
        merge(&mut whole, Value::from(E::json_schema(generator)));
        whole.try_into().unwrap_or_default()
    }
}

/// Adds the members that only `more` has, element by element.
fn merge(whole: &mut Value, more: Value) {
    match (whole, more) {
        (Value::Object(whole), Value::Object(more)) => {
            for (name, value) in more {
                match whole.get_mut(&name) {
                    Some(present) => merge(present, value),
                    None => {
                        whole.insert(name, value);
                    }
                }
            }
        }
        (Value::Array(whole), Value::Array(more)) => {
            whole.iter_mut().zip(more).for_each(|(present, value)| merge(present, value));
        }
        _ => {}
    }
}

/// Fields of a Gateway's spec beside the generated type (Gateway API v1.7.0, experimental channel).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtraGatewayFields {
    /// By index in `spec.listeners`.
    pub listeners: Vec<ExtraListenerFields>,
    /// By index in `spec.addresses`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<ExtraAddressFields>,
    /// `spec.defaultScope`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_scope: Option<Value>,
}

/// Fields of a ListenerSet's spec beside the generated type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtraListenerSetFields {
    /// By index in `spec.listeners`.
    pub listeners: Vec<ExtraListenerFields>,
}

/// Fields of a listener beside the generated type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtraListenerFields {
    /// `filters`. A listener whose authentication is ignored would let every client in.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub filters: BTreeMap<String, Value>,
}

/// Fields of an address beside the generated type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtraAddressFields {
    /// `routability`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routability: Option<Value>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_that_the_generated_type_lacks_are_kept() {
        let written = json!({
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "Gateway",
            "metadata": {"name": "public", "namespace": "infra"},
            "spec": {
                "gatewayClassName": "pingsix",
                "addresses": [{"type": "IPAddress", "value": "192.0.2.1", "routability": "Private"}],
                "listeners": [
                    {"name": "plain", "port": 80, "protocol": "HTTP"},
                    {"name": "guarded", "port": 81, "protocol": "HTTP",
                        "filters": {"requests": [{"type": "ExternalAuth"}]}},
                ],
            },
        });
        let gateway: Gateway = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(gateway.spec.listeners.len(), 2);
        assert!(gateway.spec.extra.listeners[0].filters.is_empty());
        assert!(gateway.spec.extra.listeners[1].filters.contains_key("requests"));
        assert_eq!(gateway.spec.extra.addresses[0].routability, Some(json!("Private")));
        assert_eq!(serde_json::to_value(&gateway).unwrap(), written);
    }

    #[test]
    fn a_message_has_the_path_of_the_field() {
        let spec = json!({"gatewayClassName": "pingsix", "listeners": [{"name": "a", "port": "80", "protocol": "HTTP"}]});
        let written = json!({"metadata": {"name": "public"}, "spec": spec});
        let error = serde_json::from_value::<Gateway>(written).unwrap_err().to_string();
        assert!(error.starts_with("listeners[0].port: invalid type: string \"80\""), "{error}");
    }
}
