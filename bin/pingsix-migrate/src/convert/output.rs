//! The output of the conversion, before the Gateway of its routes is written.

use std::collections::BTreeSet;

use pingsix_translate::{Kind, ObjectName};
use serde_json::{Map, Value, json};

use super::parent::Parent;
use crate::objects::Objects;
use crate::plugin::Effects;
use crate::source::SourceKind;

/// The objects that are written, and what later objects depend on. They hold secrets, so the type has no `Debug`.
pub(super) struct Output {
    pub(super) objects: Objects,
    /// The Gateway of the routes, with the listeners that they need.
    pub(super) gateway: Parent,
    /// Fields of the telemetry of the Gateway.
    pub(super) telemetry: Map<String, Value>,
    /// The ApisixPluginConfigs and PluginConfigs that rules use.
    pub(super) used_configs: BTreeSet<(SourceKind, ObjectName)>,
    /// Labels and annotations of other tools that copies do not have.
    pub(super) disowned: BTreeSet<String>,
}

impl Output {
    pub(super) fn new(gateway: Parent) -> Self {
        Self {
            objects: Objects::default(),
            gateway,
            telemetry: Map::new(),
            used_configs: BTreeSet::new(),
            disowned: BTreeSet::new(),
        }
    }

    /// A name for a route that neither the output nor another document has.
    pub(super) fn route_name(&mut self, namespace: &str, wanted: &str) -> String {
        self.objects.reserve(Kind::HttpRoute, namespace, wanted)
    }

    /// Keeps the settings of plugins for the telemetry of the data plane.
    pub(super) fn keep_telemetry(&mut self, effects: &mut Effects) {
        for (name, value) in std::mem::take(&mut effects.telemetry) {
            self.telemetry.entry(name).or_insert(value);
        }
    }

    /// Writes the Secrets of plugins, and permits the references of their SecurityPolicy, which is in a namespace.
    pub(super) fn write_secrets(&mut self, effects: &mut Effects, namespace: &str) {
        for secret in std::mem::take(&mut effects.referents) {
            self.objects.grant((Kind::SecurityPolicy, namespace), Kind::Secret, &secret);
        }
        for (field, secret) in std::mem::take(&mut effects.secrets) {
            let secret = self.objects.add_secret(secret);
            // Of two plugins with one field, the first one counts.
            if let Some(Value::Object(value)) = effects.security.get_mut(field) {
                value.entry("secretRef").or_insert_with(|| json!({ "name": &*secret.name }));
            }
        }
    }
}
