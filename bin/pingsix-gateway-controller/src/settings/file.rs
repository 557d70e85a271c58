//! The file of a configuration.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value as Node;

/// The size limit of a file, in bytes.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The key that may be a mapping.
const SINK: &str = "sink";

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    One(String),
    List(Vec<String>),
}

/// Reads a file: each key by its path, such as `feed.tls.cert`.
pub(super) fn read(path: &Path) -> Result<BTreeMap<String, Value>, String> {
    let size = std::fs::metadata(path).map_err(|error| format!("cannot be read: {error}"))?.len();
    if size > MAX_FILE_BYTES {
        return Err(format!("has {size} bytes, more than the {MAX_FILE_BYTES} a configuration may have"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))?;
    parse(&text)
}

pub(super) fn parse(text: &str) -> Result<BTreeMap<String, Value>, String> {
    // `off` is a word here, not a truth value.
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    let root: Option<Node> = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| format!("is not YAML: {}", error.without_snippet()))?;
    let mut keys = BTreeMap::new();
    match root {
        None | Some(Node::Null) => {}
        Some(Node::Object(sections)) => {
            for (name, node) in sections {
                add(name, node, &mut keys)?;
            }
        }
        Some(_) => return Err("is not a mapping of keys to values".to_owned()),
    }
    Ok(keys)
}

fn add(path: String, node: Node, keys: &mut BTreeMap<String, Value>) -> Result<(), String> {
    let value = match node {
        // A key without a value is not given.
        Node::Null => return Ok(()),
        Node::Object(choices) if path == SINK => Value::List(sinks(choices)?),
        Node::Object(section) => {
            for (name, node) in section {
                add(format!("{path}.{name}"), node, keys)?;
            }
            return Ok(());
        }
        Node::Array(items) => {
            let text_of = if path == SINK { url_of } else { scalar };
            let texts = items.into_iter().map(|item| {
                text_of(item)
                    .ok_or_else(|| format!("the list {path} holds something that is no single value"))
            });
            Value::List(texts.collect::<Result<_, _>>()?)
        }
        single @ (Node::Bool(_) | Node::Number(_) | Node::String(_)) => {
            Value::One(scalar(single).unwrap_or_default())
        }
    };
    keys.insert(path, value);
    Ok(())
}

/// A mapping of data planes to URLs, as `--sink` has them. Those of `default` are for all others.
fn sinks(choices: serde_json::Map<String, Node>) -> Result<Vec<String>, String> {
    let mut texts = Vec::new();
    for (data_plane, urls) in choices {
        let urls = match urls {
            Node::Array(urls) => urls,
            one @ (Node::Null | Node::Bool(_) | Node::Number(_) | Node::String(_) | Node::Object(_)) => {
                vec![one]
            }
        };
        for url in urls {
            let url = url_of(url).ok_or_else(|| {
                format!("{SINK}.{data_plane} holds something that is neither a URL nor a list of URLs")
            })?;
            texts.push(if data_plane == "default" { url } else { format!("{data_plane}={url}") });
        }
    }
    Ok(texts)
}

/// A URL. One that ends with a colon and is not quoted is a mapping to YAML.
fn url_of(node: Node) -> Option<String> {
    match node {
        Node::Object(mapping) if mapping.len() == 1 => {
            mapping.into_iter().find_map(|(scheme, rest)| rest.is_null().then(|| format!("{scheme}:")))
        }
        Node::Null | Node::Bool(_) | Node::Number(_) | Node::String(_) | Node::Array(_) | Node::Object(_) => {
            scalar(node)
        }
    }
}

fn scalar(node: Node) -> Option<String> {
    match node {
        Node::String(text) => Some(text),
        Node::Bool(value) => Some(value.to_string()),
        Node::Number(number) => Some(number.to_string()),
        Node::Null | Node::Array(_) | Node::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Value {
        Value::One(text.to_owned())
    }

    #[test]
    fn sections_become_paths_and_values_stay_text() {
        let text = "root: /pingsix\nresponder: off\nfeed:\n  allow-plaintext: true\n  tls: {cert: a.crt}\nbudget: {bytes: 2048}\n\
                    watch:\n  namespaces: [shop, web]\n  selector:\nlog: {}\n";
        let keys = parse(text).unwrap();
        assert_eq!(
            keys,
            BTreeMap::from([
                ("root".to_owned(), one("/pingsix")),
                ("responder".to_owned(), one("off")),
                ("feed.allow-plaintext".to_owned(), one("true")),
                ("feed.tls.cert".to_owned(), one("a.crt")),
                ("budget.bytes".to_owned(), one("2048")),
                ("watch.namespaces".to_owned(), Value::List(vec!["shop".to_owned(), "web".to_owned()])),
            ])
        );
        assert!(parse("").unwrap().is_empty() && parse("# nothing\n").unwrap().is_empty());
    }

    #[test]
    fn sinks_are_a_list_or_a_mapping_of_data_planes() {
        let texts = |text| parse(text).unwrap().remove(SINK).unwrap();
        let list = |texts: &[&str]| Value::List(texts.iter().map(|text| (*text).to_owned()).collect());
        assert_eq!(
            texts("sink: [embedded:, 'infra/web=file:/a']"),
            list(&["embedded:", "infra/web=file:/a"])
        );
        assert_eq!(
            texts("sink:\n  default: [embedded:]\n  infra/web:8443: ['file:/a', 'etcd://127.0.0.1:1']\n"),
            list(&["embedded:", "infra/web:8443=file:/a", "infra/web:8443=etcd://127.0.0.1:1"])
        );
        let error = parse("sink: {infra/web: [{url: a}]}").unwrap_err();
        assert!(error.contains("sink.infra/web"), "{error}");
    }

    #[test]
    fn a_file_that_is_no_configuration_is_refused() {
        assert_eq!(parse("- a\n").unwrap_err(), "is not a mapping of keys to values");
        let error = parse("feed:\n  address: [\n").unwrap_err();
        assert!(error.starts_with("is not YAML: "), "{error}");
        let error = parse("root: /a\nroot: /b\n").unwrap_err();
        assert!(error.contains("root"), "a key that is given twice: {error}");
        let error = parse("watch: {namespaces: [{a: b}]}").unwrap_err();
        assert!(error.contains("watch.namespaces"), "{error}");
    }
}
