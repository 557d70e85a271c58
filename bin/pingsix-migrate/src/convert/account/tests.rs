//! Random and damaged objects: each value of the input is named in the report.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use pingsix_translate::manifest::documents;
use pingsix_translate::{ObjectKey, ObjectName};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::choices::Choices;
use crate::convert::{Converted, convert};
use crate::input::Input;
use crate::report::{Report, ReportFormat};

/// The objects of each migration in `testdata/migrations`.
fn corpus() -> Vec<Vec<Value>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/migrations");
    let directories = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let mut inputs: Vec<_> =
        directories.map(|path| path.join("input.yaml")).filter(|path| path.is_file()).collect();
    inputs.sort();
    let read = |path| -> Vec<Value> {
        let text = fs::read_to_string(path).unwrap();
        let values = documents(&text).into_iter().map(|document| document.decode().unwrap());
        values.flat_map(|value| value["items"].as_array().cloned().unwrap_or_else(|| vec![value])).collect()
    };
    inputs.into_iter().map(read).collect()
}

fn choices(keep_ingress: bool) -> Choices {
    let allow_weaker = [("Ingress".to_owned(), ObjectName::new("shop", "cart"))].into();
    Choices { keep_ingress, allow_weaker, ..Choices::default() }
}

/// One entry of the report, as programs read it.
struct Entry {
    field: String,
    verdict: String,
    message: String,
}

/// The entries by object.
fn entries(report: &Report) -> BTreeMap<String, Vec<Entry>> {
    let report: Value = serde_json::from_str(&report.render(ReportFormat::Json, true)).unwrap();
    let mut objects: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
    for entry in report["entries"].as_array().unwrap() {
        let text = |field: &str| entry[field].as_str().unwrap().to_owned();
        let of_object = objects.entry(text("object")).or_default();
        of_object.push(Entry { field: text("field"), verdict: text("verdict"), message: text("message") });
    }
    objects
}

/// The values of an object with their paths. Lists and maps are values if they are empty.
fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                let path = match path {
                    "" => name.clone(),
                    "metadata.annotations" => format!("{path}[{name}]"),
                    _ => format!("{path}.{name}"),
                };
                leaves(value, &path, found);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, value) in items.iter().enumerate() {
                leaves(value, &format!("{path}[{index}]"), found);
            }
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => found.push(path.to_owned()),
    }
}

/// Whether a field is another one, or a part of it.
fn is_in(path: &str, field: &str) -> bool {
    let rest = path.strip_prefix(field);
    !field.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Fields that name an object, or that the API server writes.
fn is_exempt(path: &str) -> bool {
    let of_server = [
        "apiVersion",
        "kind",
        "status",
        "metadata.name",
        "metadata.namespace",
        "metadata.creationTimestamp",
        "metadata.generation",
        "metadata.managedFields",
        "metadata.resourceVersion",
        "metadata.uid",
        "metadata.selfLink",
        "metadata.deletionTimestamp",
        "metadata.deletionGracePeriodSeconds",
        "metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]",
    ];
    of_server.iter().any(|field| is_in(path, field))
}

/// The values of an object that no entry names.
fn unnamed(value: &Value, entries: &[Entry], output: Option<&Value>) -> Vec<String> {
    let mut all = Vec::new();
    leaves(value, "", &mut all);
    let mut kept = Vec::new();
    if let Some(output) = output {
        leaves(output, "", &mut kept);
    }
    let is_whole = entries.iter().any(|entry| {
        entry.field.is_empty()
            && (matches!(entry.verdict.as_str(), "impossible" | "withheld")
                || entry.message.starts_with("The kind has no part in a migration"))
    });
    if entries.iter().any(|entry| entry.field == "apiVersion" && entry.verdict == "exact") {
        // The output has the form of a later version.
        for (new, old) in [
            ("spec.defaultBackend", "spec.backend"),
            ("backend.service.name", "backend.serviceName"),
            ("backend.service.port.number", "backend.servicePort"),
            ("backend.service.port.name", "backend.servicePort"),
        ] {
            let older: Vec<String> = kept.iter().map(|path| path.replace(new, old)).collect();
            kept.extend(older);
        }
    }
    let stays = entries.iter().any(|entry| entry.message.ends_with("object stays as it is."));
    let is_named = |path: &String| {
        is_whole
            || is_exempt(path)
            || entries.iter().any(|entry| is_in(path, &entry.field))
            || (stays && kept.contains(path))
    };
    all.into_iter().filter(|path| !is_named(path)).collect()
}

/// The name of an object in the report.
fn shown(value: &Value) -> Option<String> {
    let metadata = &value["metadata"];
    let (kind, name) = (value["kind"].as_str()?, metadata["name"].as_str()?);
    let namespaced = pingsix_translate::Kind::ALL.iter().find(|known| known.as_str() == kind);
    Some(if namespaced.is_some_and(|kind| !kind.is_namespaced()) {
        format!("{kind} {name}")
    } else {
        format!("{kind} {}/{name}", metadata["namespace"].as_str().unwrap_or("default"))
    })
}

/// The problems of the report about some objects.
fn problems(objects: &[Value], keep_ingress: bool) -> Vec<String> {
    let Input { sources, report, .. } = Input::of_values(objects.to_vec()).unwrap();
    let Converted { objects: output, mut report, account, .. } =
        convert(sources, &choices(keep_ingress), report);
    account.complete(&output, &mut report);
    let entries = entries(&report);
    let mut problems = Vec::new();
    for (object, entries) in &entries {
        // Objects of Gateway API are not read field by field.
        let is_judged = !["Gateway ", "HTTPRoute ", "GRPCRoute "].iter().any(|kind| object.starts_with(kind));
        let lost = entries
            .iter()
            .filter(|entry| is_judged && entry.message.starts_with("The conversion did not read"));
        problems.extend(lost.map(|entry| format!("{object}: {} was not read", entry.field)));
    }
    for value in objects {
        let Some(object) = shown(value) else { continue };
        let Some(entries) = entries.get(&object) else {
            problems.push(format!("{object} is not in the report"));
            continue;
        };
        let output = output.iter().find(|(key, _): &&(ObjectKey, Arc<Value>)| key.to_string() == object);
        let unnamed = unnamed(value, entries, output.map(|(_, value)| &**value));
        problems.extend(unnamed.into_iter().map(|path| format!("{object}: {path} is not named")));
    }
    problems
}

/// The paths of all values below the spec, the annotations and the labels of an object, as JSON pointers.
fn pointers(value: &Value, pointer: &str, found: &mut Vec<String>) {
    let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let pointer = format!("{pointer}/{}", escaped(name));
                if !matches!(pointer.as_str(), "/apiVersion" | "/kind" | "/metadata" | "/status") {
                    found.push(pointer.clone());
                }
                if pointer != "/status" {
                    pointers(value, &pointer, found);
                }
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                let pointer = format!("{pointer}/{index}");
                found.push(pointer.clone());
                pointers(value, &pointer, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn any_value(random: &mut StdRng) -> Value {
    match random.random_range(0..9) {
        0 => json!(null),
        1 => json!(true),
        2 => json!(7),
        3 => json!(-1.5),
        4 => json!("text"),
        5 => json!(""),
        6 => json!([]),
        7 => json!({}),
        _ => json!({ "inner": ["x", { "y": 1 }] }),
    }
}

/// Damages one value of an object.
fn damage(object: &mut Value, random: &mut StdRng) {
    let mut all = Vec::new();
    pointers(object, "", &mut all);
    all.retain(|pointer| !matches!(pointer.as_str(), "/metadata/name" | "/metadata/namespace"));
    if all.is_empty() {
        return;
    }
    let pointer = all.swap_remove(random.random_range(0..all.len()));
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    let name = last.replace("~1", "/").replace("~0", "~");
    let action = random.random_range(0..6);
    let Some(parent) = object.pointer_mut(parent) else { return };
    match parent {
        Value::Object(fields) => {
            let Some(value) = fields.remove(&name) else { return };
            match action {
                0 => {}
                1 => {
                    fields.insert(format!("{name}x"), value);
                }
                2 => {
                    fields.insert(name.to_uppercase(), value.clone());
                    fields.insert(name, value);
                }
                3 => {
                    fields.insert(name.clone(), json!({ name: value }));
                }
                4 => {
                    fields.insert(format!("{name}-2"), any_value(random));
                    fields.insert(name, value);
                }
                _ => {
                    fields.insert(name, any_value(random));
                }
            }
        }
        Value::Array(items) => {
            let Some(index) = name.parse::<usize>().ok().filter(|index| *index < items.len()) else { return };
            match action {
                0 => {
                    items.remove(index);
                }
                1 | 2 => items.push(items[index].clone()),
                3 => items[index] = json!([items[index]]),
                _ => items[index] = any_value(random),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Gives an Ingress the form of an older version.
fn make_older(object: &mut Value, random: &mut StdRng) {
    fn backend(backend: &mut Value) {
        let Some(service) = backend.get("service").cloned() else { return };
        let port = &service["port"];
        let port = if port["number"].is_null() { &port["name"] } else { &port["number"] };
        *backend = json!({ "serviceName": service["name"], "servicePort": port });
    }
    if object["kind"] != "Ingress" || object["apiVersion"] != "networking.k8s.io/v1" {
        return;
    }
    let versions = ["extensions/v1beta1", "networking.k8s.io/v1beta1"];
    object["apiVersion"] = json!(versions[random.random_range(0..2)]);
    if let Some(mut default) = object["spec"].as_object_mut().and_then(|spec| spec.remove("defaultBackend")) {
        backend(&mut default);
        object["spec"]["backend"] = default;
    }
    for rule in object["spec"]["rules"].as_array_mut().into_iter().flatten() {
        let paths = rule.pointer_mut("/http/paths").and_then(Value::as_array_mut);
        for path in paths.into_iter().flatten() {
            if let Some(fields) = path.as_object_mut().filter(|_| random.random_bool(0.3)) {
                fields.remove("pathType");
            }
            if let Some(one) = path.get_mut("backend") {
                backend(one);
            }
        }
    }
}

#[test]
fn each_value_of_the_migrations_is_named() {
    for objects in corpus() {
        for keep_ingress in [false, true] {
            assert_eq!(problems(&objects, keep_ingress), Vec::<String>::new());
        }
    }
}

#[test]
fn each_value_of_damaged_objects_is_named() {
    let corpus = corpus();
    let rounds = std::env::var("MIGRATE_ROUNDS").map_or(1500, |rounds| rounds.parse().unwrap());
    let mut all = BTreeMap::new();
    let seeds: Vec<u64> = match std::env::var("MIGRATE_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..rounds).collect(),
    };
    for seed in seeds {
        let mut random = StdRng::seed_from_u64(seed);
        let mut objects = corpus[random.random_range(0..corpus.len())].clone();
        for object in &mut objects {
            if random.random_bool(0.3) {
                make_older(object, &mut random);
            }
        }
        for _ in 0..random.random_range(1..4) {
            let index = random.random_range(0..objects.len());
            damage(&mut objects[index], &mut random);
        }
        let found = problems(&objects, random.random_bool(0.3));
        if std::env::var_os("MIGRATE_SEED").is_some() {
            println!("{}", serde_json::to_string_pretty(&objects).unwrap());
        }
        for problem in found {
            all.entry(problem).or_insert(seed);
        }
    }
    assert!(all.is_empty(), "{} faults:\n{all:#?}", all.len());
}
