//! The definition of a kind: the fields of its objects, with their forms, limits and rules.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use pingsix_translate::snapshot::{self, Identified};
use pingsix_translate::{GATEWAY_GROUP, Kind, PINGSIX_GROUP, for_each_kind};
use regex::Regex;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

use super::limits::{self, Limit};
use super::rules::{self, Rule};

/// A value in the objects of a kind.
#[derive(Default)]
pub(super) struct Node {
    pub(super) form: Form,
    pub(super) limits: Vec<Limit>,
    pub(super) pattern: Option<Regex>,
    pub(super) rules: Vec<&'static Rule>,
}

/// The form of a value.
#[derive(Default)]
pub(super) enum Form {
    #[default]
    Any,
    Boolean,
    Integer,
    Number,
    IntegerOrText,
    /// A text, or one of these.
    Text(Vec<String>),
    List(Box<Node>),
    /// An object with fields of any name.
    Map(Box<Node>),
    Object {
        fields: BTreeMap<String, Node>,
        required: Vec<String>,
    },
}

/// The definition of a kind, which is made when it is first asked for.
pub(super) fn definition(kind: Kind) -> &'static Node {
    static DEFINITIONS: OnceLock<Vec<OnceLock<Node>>> = OnceLock::new();
    static ABSENT: Node = Node { form: Form::Any, limits: Vec::new(), pattern: None, rules: Vec::new() };
    let definitions = DEFINITIONS.get_or_init(|| Kind::ALL.iter().map(|_| OnceLock::new()).collect());
    let position = Kind::ALL.iter().position(|one| *one == kind).and_then(|index| definitions.get(index));
    position.map_or(&ABSENT, |definition| definition.get_or_init(|| Builder { kind }.object()))
}

macro_rules! schemas {
    ($($kind:ident in $field:ident $facts:tt)+) => {
        /// The schema of the type of a kind.
        fn schema_of(kind: Kind) -> Value {
            match kind { $(Kind::$kind => schema::<<snapshot::$kind as Identified>::Wire>(),)+ }
        }
    };
}

for_each_kind! { schemas }

fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| settings.inline_subschemas = true);
    SchemaGenerator::new(settings).into_root_schema_for::<T>().into()
}

struct Builder {
    kind: Kind,
}

impl Builder {
    fn object(&self) -> Node {
        let mut node = self.node(&schema_of(self.kind), self.kind.as_str());
        if let Form::Object { fields, .. } = &mut node.form {
            fields.insert("metadata".to_owned(), self.metadata());
            for text in ["apiVersion", "kind"] {
                fields.insert(text.to_owned(), Node { form: Form::Text(Vec::new()), ..Node::default() });
            }
            // The API server maintains it.
            fields.insert("status".to_owned(), Node::default());
            if self.kind == Kind::Secret {
                let text = Node { form: Form::Text(Vec::new()), ..Node::default() };
                fields.insert(
                    "stringData".to_owned(),
                    Node { form: Form::Map(Box::new(text)), ..Node::default() },
                );
            }
        }
        node
    }

    fn metadata(&self) -> Node {
        let mut node = self.node(&schema::<ObjectMeta>(), &format!("{}.metadata", self.kind));
        if let Form::Object { required, .. } = &mut node.form {
            required.push("name".to_owned());
        }
        node
    }

    /// The node of a schema at a path, which begins with the kind.
    fn node(&self, schema: &Value, path: &str) -> Node {
        let schema = without_null(schema);
        let mut limits = own_limits(schema);
        let tables: &[&'static [(&str, &[Limit])]] = if path.contains(".metadata") {
            &[limits::OF_METADATA]
        } else {
            match self.kind.group() {
                GATEWAY_GROUP => &[limits::OF_GATEWAY_API],
                PINGSIX_GROUP => &[],
                _ => &[limits::OF_KUBERNETES],
            }
        };
        limits.extend(tables.iter().filter_map(|table| limits::find(table, path)).flatten());
        let rules = match self.kind.group() {
            GATEWAY_GROUP => rules::OF_GATEWAY_API,
            PINGSIX_GROUP => rules::OF_PINGSIX,
            _ => rules::OF_KUBERNETES,
        };
        let rules = rules.iter().filter(|rule| limits::is_end(rule.at, path)).collect();
        let pattern = schema["pattern"].as_str().and_then(|pattern| Regex::new(pattern).ok());
        Node { form: self.form(schema, path), limits, pattern, rules }
    }

    fn form(&self, schema: &Value, path: &str) -> Form {
        if schema["x-kubernetes-int-or-string"] == true {
            return Form::IntegerOrText;
        }
        let choices = choices(schema);
        if !choices.is_empty() {
            return Form::Text(choices);
        }
        match schema["type"].as_str() {
            Some("boolean") => Form::Boolean,
            Some("integer") => Form::Integer,
            Some("number") => Form::Number,
            Some("string") => Form::Text(Vec::new()),
            Some("array") => Form::List(Box::new(self.node(&schema["items"], &format!("{path}[]")))),
            Some("object") => match (schema["properties"].as_object(), &schema["additionalProperties"]) {
                (Some(properties), _) if schema["x-kubernetes-preserve-unknown-fields"] != true => {
                    Form::Object {
                        fields: self.fields(properties, path),
                        required: texts(&schema["required"]),
                    }
                }
                (None, values @ Value::Object(_)) => {
                    Form::Map(Box::new(self.node(values, &format!("{path}{{}}"))))
                }
                _ => Form::Any,
            },
            _ => Form::Any,
        }
    }

    fn fields(&self, properties: &Map<String, Value>, path: &str) -> BTreeMap<String, Node> {
        let node =
            |(name, schema): (&String, &Value)| (name.clone(), self.node(schema, &format!("{path}.{name}")));
        properties.iter().map(node).collect()
    }
}

/// The schema of a value that may be absent, without the null.
fn without_null(schema: &Value) -> &Value {
    let of_alternatives =
        schema["anyOf"].as_array().and_then(|all| all.iter().find(|one| one["type"] != "null"));
    // A reference with a description of its own.
    let only = schema["allOf"].as_array().and_then(|all| all.first().filter(|_| all.len() == 1));
    let has_form = schema.get("type").is_some() || schema["x-kubernetes-int-or-string"] == true;
    of_alternatives.or(only).filter(|_| !has_form).map_or(schema, without_null)
}

/// The values of an enumeration: with descriptions each is a schema of its own.
fn choices(schema: &Value) -> Vec<String> {
    let described = schema["oneOf"].as_array().into_iter().flatten();
    let described = described.flat_map(|one| match one.get("const") {
        Some(only) => vec![only.clone()],
        None => one["enum"].as_array().cloned().unwrap_or_default(),
    });
    let all: Vec<Value> = described.chain(schema["enum"].as_array().cloned().unwrap_or_default()).collect();
    all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The limits of a schema itself.
fn own_limits(schema: &Value) -> Vec<Limit> {
    let bounds = |least: &str, greatest: &str| {
        let (least, greatest) = (schema[least].as_u64(), schema[greatest].as_u64());
        (least.is_some() || greatest.is_some())
            .then(|| (least.unwrap_or_default(), greatest.unwrap_or(u64::MAX)))
    };
    let items = bounds("minItems", "maxItems").map(|(least, greatest)| Limit::Items(least, greatest));
    let length = bounds("minLength", "maxLength").map(|(least, greatest)| Limit::Length(least, greatest));
    let entries = schema["maxProperties"].as_u64().map(Limit::Entries);
    // The definition has the bounds of integers as floating-point numbers.
    #[expect(clippy::cast_possible_truncation, reason = "the bounds of definitions are small whole numbers")]
    let bound =
        |name: &str| schema[name].as_i64().or_else(|| schema[name].as_f64().map(|bound| bound as i64));
    let range = match (bound("minimum"), bound("maximum")) {
        (None, None) => None,
        (least, greatest) => Some(Limit::Range(least.unwrap_or(i64::MIN), greatest.unwrap_or(i64::MAX))),
    };
    [items, length, entries, range].into_iter().flatten().collect()
}

fn texts(values: &Value) -> Vec<String> {
    let values = values.as_array().into_iter().flatten();
    values.filter_map(Value::as_str).map(str::to_owned).collect()
}
