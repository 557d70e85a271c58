//! Reference pages that are made from the definitions and from the program. `UPDATE_REFERENCE=1` writes them anew.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use serde_json::Value;

use super::root;

/// The definitions in the order of the page.
const DEFINITIONS: [&str; 5] =
    ["pingsixproxies", "securitypolicies", "trafficpolicies", "backendtrafficpolicies", "httproutefilters"];

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// The type of a field, in the words of Kubernetes' own reference.
fn kind(schema: &Value) -> String {
    if schema["x-kubernetes-int-or-string"] == true {
        return "integer or string".to_owned();
    }
    match schema["type"].as_str() {
        Some("array") => format!("list of {}", kind(&schema["items"])),
        Some("object") => match schema.get("additionalProperties") {
            Some(values) if values.is_object() => format!("map of {}", kind(values)),
            _ => "object".to_owned(),
        },
        Some(other) => other.to_owned(),
        None => "any".to_owned(),
    }
}

/// The rules of a field, besides those of its fields.
fn rules(schema: &Value, is_required: bool) -> String {
    let mut rules = Vec::new();
    if is_required {
        rules.push("required".to_owned());
    }
    if let Some(value) = schema.get("default") {
        rules.push(format!("default `{value}`"));
    }
    if let Some(values) = schema["enum"].as_array() {
        let values = values.iter().filter(|value| !value.is_null());
        let values: Vec<String> = values.map(|value| format!("`{}`", value.as_str().unwrap())).collect();
        rules.push(format!("one of {}", values.join(", ")));
    }
    for (name, words) in [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("minLength", "characters: at least"),
        ("maxLength", "characters: at most"),
        ("minItems", "elements: at least"),
        ("maxItems", "elements: at most"),
        ("minProperties", "entries: at least"),
        ("maxProperties", "entries: at most"),
        ("pattern", "pattern"),
        ("format", "format"),
    ] {
        match schema.get(name) {
            None => {}
            Some(Value::String(text)) => rules.push(format!("{words} `{text}`")),
            // A whole number is written as a float where it bounds one.
            Some(number) => rules.push(format!("{words} {}", number.to_string().trim_end_matches(".0"))),
        }
    }
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        rules.push(rule["message"].as_str().or_else(|| rule["rule"].as_str()).unwrap().to_owned());
    }
    rules.join("; ")
}

/// A row for each field below a path. The fields of what Kubernetes defines itself are in its own reference.
fn rows(schema: &Value, path: &str, page: &mut String) {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let description = cell(field["description"].as_str().unwrap_or_default());
        let (kind, rules) = (kind(field), cell(&rules(field, required.contains(&name.as_str()))));
        writeln!(page, "| `{path}` | {kind} | {description} | {rules} |").unwrap();
        if name == "resources" {
            continue;
        }
        rows(field, &path, page);
        rows(&field["items"], &format!("{path}[]"), page);
        rows(&field["additionalProperties"], &format!("{path}.KEY"), page);
    }
}

fn api() -> String {
    let mut page = "# API reference\n\n\
        This page has each field of our own kinds, with its type and its rules. \
        A test makes it from the definitions in [`crds`](https://github.com/pingsix/pingsix-gateway-api/tree/main/crds).\n\
        [Mapping of fields](mapping.md) says what each field becomes, and [conditions](conditions.md) what a status says.\n"
        .to_owned();
    for plural in DEFINITIONS {
        let text = fs::read_to_string(root().join(format!("crds/pingsix.io_{plural}.yaml"))).unwrap();
        let definition: Value = serde_saphyr::from_str(&text).unwrap();
        let spec = &definition["spec"];
        let names = &spec["names"];
        for version in spec["versions"].as_array().unwrap() {
            let schema = &version["schema"]["openAPIV3Schema"];
            let kind = names["kind"].as_str().unwrap();
            writeln!(page, "\n## {kind}\n\n{}\n", schema["description"].as_str().unwrap()).unwrap();
            let short = names["shortNames"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let short: Vec<String> = short.map(|name| format!(", `kubectl get {name}`")).collect();
            writeln!(
                page,
                "`apiVersion: {}/{}`, `kind: {kind}`, {}. `kubectl get {plural}.{}`{}.\n",
                spec["group"].as_str().unwrap(),
                version["name"].as_str().unwrap(),
                spec["scope"].as_str().unwrap().to_lowercase(),
                // Other gateways have kinds of the same names.
                spec["group"].as_str().unwrap(),
                short.concat()
            )
            .unwrap();
            page.push_str("| field | type | meaning | rules |\n|---|---|---|---|\n");
            rows(schema, "", &mut page);
        }
    }
    page
}

fn help(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_pingsix-gatewayctl"))
        .args(arguments)
        .arg("--help")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

fn command_line() -> String {
    let overview = help(&[]);
    let (_, commands) = overview.split_once("Commands:\n").unwrap();
    // The name of a command is indented by two spaces, and its text by more.
    let commands = commands.lines().take_while(|line| !line.is_empty());
    let commands = commands.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    let mut page = format!(
        "# Commands of pingsix-gatewayctl\n\n\
         This page has the help of the program and of each command. A test makes it from the program.\n\
         The [README of the program](https://github.com/pingsix/pingsix-gateway-api/blob/main/bin/pingsix-gatewayctl/README.md) introduces them.\n\n\
         ```text\n{overview}```\n"
    );
    for command in commands.filter_map(|line| line.split(' ').next()).filter(|command| *command != "help") {
        write!(page, "\n## {command}\n\n```text\n{}```\n", help(&[command])).unwrap();
    }
    page
}

/// Compares a page with what it is made from, or writes it.
fn check(name: &str, expected: &str) {
    let path = root().join("docs/reference").join(name);
    if std::env::var_os("UPDATE_REFERENCE").is_some_and(|value| !value.is_empty()) {
        fs::write(&path, expected).unwrap();
    }
    let page = fs::read_to_string(&path).unwrap_or_default();
    assert!(page == expected, "docs/reference/{name} is out of date: UPDATE_REFERENCE=1 writes it anew");
}

#[test]
fn the_api_reference_is_that_of_the_definitions() {
    let page = api();
    assert!(page.contains("| `spec.managed.replicas` | integer |"));
    check("api.md", &page);
}

#[test]
fn the_commands_are_those_of_the_program() {
    let page = command_line();
    assert!(page.contains("\n## explain\n"));
    check("commands.md", &page);
}
