//! Parts of objects of Kubernetes, which are checked when they are read rather than by their schema.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An object of which the schema says nothing.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(transparent)]
pub(crate) struct FreeObject(pub Map<String, Value>);

impl JsonSchema for FreeObject {
    fn schema_name() -> Cow<'static, str> {
        "FreeObject".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
    }
}
