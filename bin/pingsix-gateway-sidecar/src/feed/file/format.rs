//! The format of the file: the output of `translate --stream` in YAML, or with `-o json`.
//!
//! YAML has one document for each data plane, after a comment with its prefix, and JSON has one list of all. The
//! documents of a Gateway are lists of upstreams, certificates, authorities and routes, each item with its `id`.

use std::collections::BTreeMap;

use bytes::Bytes;
use pingsix_sink::Scope;
use pingsix_translate::stream::StreamKind;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The list that distinguishes stream documents from documents of PingSIX.
const ROUTES: &str = StreamKind::StreamRoute.segment();

/// The documents of one data plane.
struct Plane {
    prefix: Option<String>,
    lists: Map<String, Value>,
}

/// Reads the documents of one Gateway, with this prefix if one is named. Errors quote no content.
pub(super) fn documents(text: &str, prefix: Option<&Scope>) -> Result<BTreeMap<String, Bytes>, String> {
    let planes = if text.trim_start().starts_with('{') { json(text)? } else { yaml(text)? };
    if planes.is_empty() {
        return Err("it has no data plane".to_owned());
    }
    let Some(plane) = choose(planes, prefix)? else { return Ok(BTreeMap::new()) };
    let mut documents = BTreeMap::new();
    for (list, items) in plane.lists {
        if StreamKind::from_segment(&list).is_none() {
            return Err("its data plane has documents that are not for streams".to_owned());
        }
        let Value::Array(items) = items else { return Err(format!("{list} is no list")) };
        for (index, item) in items.into_iter().enumerate() {
            let Value::Object(mut fields) = item else {
                return Err(format!("{list}[{index}] is no object"));
            };
            let Some(Value::String(id)) = fields.remove("id") else {
                return Err(format!("{list}[{index}] has no id"));
            };
            let value = Bytes::from(Value::Object(fields).to_string());
            if documents.insert(format!("{list}/{id}"), value).is_some() {
                return Err(format!("{list}[{index}] has the id of another item"));
            }
        }
    }
    Ok(documents)
}

/// The data plane with this prefix, or the only one with routes of streams; `None` if no data plane has any.
fn choose(planes: Vec<Plane>, prefix: Option<&Scope>) -> Result<Option<Plane>, String> {
    let mut chosen = planes.into_iter().filter(|plane| match prefix {
        Some(prefix) => plane.prefix.as_deref() == Some(prefix.as_str()),
        None => plane.lists.contains_key(ROUTES),
    });
    let plane = chosen.next();
    match (plane, prefix) {
        (None, Some(prefix)) => Err(format!("it has no data plane with the prefix {prefix}")),
        (Some(_), None) if chosen.next().is_some() => {
            Err("it has stream documents of several Gateways: --streams-prefix names one".to_owned())
        }
        (plane, _) => Ok(plane),
    }
}

fn yaml(text: &str) -> Result<Vec<Plane>, String> {
    let mut planes = Vec::new();
    let mut first_line = 1;
    for part in parts(text) {
        // The comments of an output without data planes, and the text before the first mark.
        let is_blank = |line: &str| line.trim().is_empty() || line.starts_with('#');
        if !part.lines().all(is_blank) {
            let prefix = part.lines().find_map(|line| {
                let (_, prefix) = line.strip_prefix("# data plane ")?.split_once(", etcd prefix ")?;
                Some(prefix.trim().to_owned())
            });
            let lists = decode(part).map_err(|line| match line {
                Some(line) => format!("its line {} is no YAML of lists", first_line + line - 1),
                None => "it is no YAML of lists".to_owned(),
            })?;
            planes.push(Plane { prefix, lists });
        }
        // The mark has a line, too.
        first_line += u64::try_from(part.lines().count()).unwrap_or(u64::MAX) + 1;
    }
    Ok(planes)
}

/// The texts between lines of three dashes.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        if line.trim_end() == "---" {
            parts.push(&text[start..at]);
            start = at + line.len();
        }
        at += line.len();
    }
    parts.push(&text[start..]);
    parts
}

/// Decodes YAML; the error is the line at fault, if known.
fn decode(text: &str) -> Result<Map<String, Value>, Option<u64>> {
    let options = serde_saphyr::options! {
        // The text at fault may be a secret.
        with_snippet: false,
        strict_booleans: true,
        budget: serde_saphyr::budget! { max_events: 10_000_000, max_nodes: 5_000_000 },
    };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| error.location().map(|location| location.line()).filter(|line| *line > 0))
}

fn json(text: &str) -> Result<Vec<Plane>, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Output {
        data_planes: Vec<JsonPlane>,
    }
    #[derive(Deserialize)]
    struct JsonPlane {
        prefix: String,
        config: Map<String, Value>,
    }
    let output: Output = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        format!("it is no JSON with dataPlanes (line {line}, column {column})")
    })?;
    let plane = |plane: JsonPlane| Plane { prefix: Some(plane.prefix), lists: plane.config };
    Ok(output.data_planes.into_iter().map(plane).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "---
# data plane shop/web, etcd prefix /pingsix/shop/web
routes:
- id: r
  uri: /
---
# data plane shop/web, etcd prefix /pingsix-stream/shop/web
# for a stream proxy, not for PingSIX
upstreams:
- id: u1
  nodes: {10.0.0.1:5432: 1}
stream_routes:
- id: r1
  server_port: 5432
  protocol: tcp
  targets: [{upstream_id: u1, weight: 1}]
";

    fn scope(prefix: &str) -> Scope {
        Scope::new(prefix).unwrap()
    }

    #[test]
    fn the_documents_of_one_gateway_are_read_with_their_keys() {
        let expected = [
            (
                "stream_routes/r1",
                r#"{"protocol":"tcp","server_port":5432,"targets":[{"upstream_id":"u1","weight":1}]}"#,
            ),
            ("upstreams/u1", r#"{"nodes":{"10.0.0.1:5432":1}}"#),
        ];
        let json = r#"{"dataPlanes": [
            {"dataPlane": "shop/web", "prefix": "/pingsix/shop/web", "config": {"routes": [{"id": "r"}]}},
            {"dataPlane": "shop/web", "prefix": "/pingsix-stream/shop/web", "config": {
                "upstreams": [{"id": "u1", "nodes": {"10.0.0.1:5432": 1}}],
                "stream_routes": [{"id": "r1", "server_port": 5432, "protocol": "tcp",
                    "targets": [{"upstream_id": "u1", "weight": 1}]}]}}]}"#;
        for text in [YAML, json] {
            for prefix in [None, Some(scope("/pingsix-stream/shop/web"))] {
                let documents = documents(text, prefix.as_ref()).unwrap();
                let documents: Vec<_> =
                    documents.iter().map(|(key, value)| (&**key, str::from_utf8(value).unwrap())).collect();
                assert_eq!(documents, expected);
            }
        }
    }

    #[test]
    fn a_gateway_without_stream_routes_has_no_documents() {
        let text = "---\n# data plane shop/web, etcd prefix /pingsix-stream/shop/web\n{}\n";
        assert_eq!(documents(text, None).unwrap(), BTreeMap::new());
        assert_eq!(documents(text, Some(&scope("/pingsix-stream/shop/web"))).unwrap(), BTreeMap::new());
    }

    #[test]
    fn a_file_that_cannot_be_used_is_refused_without_its_content() {
        let two = format!("{YAML}{}", YAML.replace("shop/web", "shop/api"));
        for (text, prefix, problem) in [
            ("", None, "it has no data plane"),
            ("# nothing\n", None, "it has no data plane"),
            (&*two, None, "of several Gateways: --streams-prefix names one"),
            (
                YAML,
                Some("/pingsix-stream/shop/other"),
                "no data plane with the prefix /pingsix-stream/shop/other",
            ),
            (YAML, Some("/pingsix/shop/web"), "documents that are not for streams"),
            ("stream_routes: hunter2\n", None, "stream_routes is no list"),
            ("stream_routes: [hunter2]\n", None, "stream_routes[0] is no object"),
            ("stream_routes: [{hunter2: 1}]\n", None, "stream_routes[0] has no id"),
            ("stream_routes: [{id: a}, {id: a}]\n", None, "stream_routes[1] has the id of another item"),
            ("---\nstream_routes: []\n---\nhunter2: [\n", None, "is no YAML of lists"),
            ("{\"hunter2\": 1}", None, "it is no JSON with dataPlanes"),
            ("{\"dataPlanes\": [\"hunter2\"]}", None, "it is no JSON with dataPlanes"),
        ] {
            let error = documents(text, prefix.map(scope).as_ref()).unwrap_err();
            assert!(error.contains(problem) && !error.contains("hunter2"), "{error}");
        }
        assert!(documents(&two, Some(&scope("/pingsix-stream/shop/api"))).is_ok());
    }
}
