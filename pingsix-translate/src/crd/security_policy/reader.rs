//! Reads the spec of a SecurityPolicy field by field.
//!
//! An object of which a part cannot be read must not count as absent, because its targets would be open. That happens when
//! the definition in the cluster is newer than this program. So a fault stays in the spec, the targets count as far as they
//! can be read, and the policy is invalid.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::SecurityPolicySpec;

/// A field that cannot be read, or that this version does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadableField {
    /// The path below `spec`, such as `authorization.allow[0]`.
    pub field: String,
    /// The reason, a phrase. It quotes no value, because a credential may stand in the wrong field.
    pub message: &'static str,
}

impl<'de> Deserialize<'de> for SecurityPolicySpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut reader = Reader { fields: Map::deserialize(deserializer)?, unreadable: Vec::new() };
        let mut spec = Self {
            target_refs: reader.list("targetRefs"),
            strategy: reader.field("strategy").unwrap_or_default(),
            api_key_auth: reader.field("apiKeyAuth"),
            basic_auth: reader.field("basicAuth"),
            jwt: reader.field("jwt"),
            anonymous: reader.field("anonymous"),
            authorization: reader.field("authorization"),
            client_ip: reader.field("clientIP"),
            cors: reader.field("cors"),
            csrf: reader.field("csrf"),
            unreadable: Vec::new(),
        };
        spec.unreadable = reader.finish();
        Ok(spec)
    }
}

struct Reader {
    /// The fields that are not read yet.
    fields: Map<String, Value>,
    unreadable: Vec<UnreadableField>,
}

impl Reader {
    /// The value of a field; `None` if the field is absent, null or unreadable.
    fn field<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        let value = self.fields.remove(name).filter(|value| !value.is_null())?;
        self.read(value, name)
    }

    /// The entries of a list that can be read.
    fn list<T: DeserializeOwned>(&mut self, name: &str) -> Vec<T> {
        let entries: Vec<Value> = self.field(name).unwrap_or_default();
        let entries = entries.into_iter().enumerate();
        entries.filter_map(|(index, entry)| self.read(entry, &format!("{name}[{index}]"))).collect()
    }

    fn read<T: DeserializeOwned>(&mut self, value: Value, at: &str) -> Option<T> {
        let mut unknown = Vec::new();
        let mut note = |path: serde_ignored::Path<'_>| unknown.push(path.to_string());
        let read = serde_path_to_error::deserialize(serde_ignored::Deserializer::new(value, &mut note));
        self.unreadable.extend(unknown.into_iter().map(|path| unknown_field(format!("{at}.{path}"))));
        match read {
            Ok(value) => Some(value),
            Err(error) => {
                let path = error.path().to_string();
                let field = if path == "." { at.to_owned() } else { format!("{at}.{path}") };
                let message = "its value has a form that this version of the controller does not know";
                self.unreadable.push(UnreadableField { field, message });
                None
            }
        }
    }

    fn finish(mut self) -> Vec<UnreadableField> {
        self.unreadable.extend(self.fields.into_iter().map(|(name, _)| unknown_field(name)));
        self.unreadable
    }
}

fn unknown_field(field: String) -> UnreadableField {
    UnreadableField { field, message: "this version of the controller does not know the field" }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn unreadable(spec: Value) -> (SecurityPolicySpec, Vec<String>) {
        let spec: SecurityPolicySpec = serde_json::from_value(spec).unwrap();
        let fields = spec.unreadable.iter().map(|fault| fault.field.clone()).collect();
        (spec, fields)
    }

    fn targets() -> Value {
        json!([{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "web"}])
    }

    #[test]
    fn every_field_is_read_as_it_is_written() {
        let reference = json!({"name": "secret"});
        let written = json!({
            "targetRefs": targets(),
            "strategy": "Overrides",
            "apiKeyAuth": {"credentialRefs": [reference], "extractFrom": {"headers": ["a"]}, "sanitize": true},
            "basicAuth": {"secretRef": reference},
            "jwt": {"algorithm": "HS256", "issuer": "i", "secretRef": reference, "clockSkew": 3},
            "anonymous": {},
            "authorization": {"allow": ["10.0.0.0/8"]},
            "clientIP": {"trustedProxies": ["10.0.0.0/8"]},
            "cors": {"allowOrigins": ["*"]},
            "csrf": {"secretRef": reference},
        });
        let (spec, faults) = unreadable(written.clone());
        assert_eq!(faults, [""; 0]);
        assert_eq!(serde_json::to_value(&spec).unwrap(), written);
    }

    #[test]
    fn a_fault_in_one_field_leaves_the_targets_and_the_other_fields() {
        let (spec, faults) = unreadable(json!({
            "targetRefs": [{"kind": 7}, targets()[0]],
            "strategy": "Merge",
            "authorization": {"allow": ["10.0.0.0/8", 4]},
            "cors": {"allowOrigins": ["*"], "allowPrivateNetwork": true},
            "oidc": {"issuer": "i"},
            "csrf": null,
            "basicAuth": "hunter2",
        }));
        assert_eq!(spec.target_refs.len(), 1);
        assert!(spec.cors.is_some());
        assert_eq!(
            faults,
            [
                "targetRefs[0].kind",
                "strategy",
                "basicAuth",
                "authorization.allow[1]",
                "cors.allowPrivateNetwork",
                "oidc"
            ]
        );
        assert!(!format!("{:?}", spec.unreadable).contains("hunter2"));
    }
}
