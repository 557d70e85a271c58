//! The review of manifests, for people to read and to keep under version control: every document with its rules, the
//! status of every object, and the problems. Private keys never appear.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use pingsix_translate::pingsix::ResourceKind;
use pingsix_translate::{Decision, ObjectKey, Options, Origin, Provenance, StreamProvenance};
use serde_json::{Map, Value};

use crate::finding::Finding;
use crate::plane::Translated;
use crate::readable::write_field;

/// Two YAML documents: the configuration, and the findings and statuses.
pub(crate) fn review(translated: &Translated, options: &Options) -> String {
    let mut out = configuration(translated, options);
    out.push_str("---\n");
    out.push_str(&verdicts(translated, options));
    out
}

/// By prefix and key, with a comment on the origin of each document.
fn configuration(translated: &Translated, options: &Options) -> String {
    let mut out = String::new();
    for (key, plane) in &translated.output.planes {
        let Some(bridged) = &plane.bridged else { continue };
        let documents = bridged.config.iter().map(|(key, document)| {
            let comments =
                plane.provenance(key).map(|provenance| origin(key.kind, provenance)).unwrap_or_default();
            (key.to_string(), comments, document.to_shown_value())
        });
        write_documents(&mut out, &key.prefix(&options.root), documents);
    }
    for (key, streams) in &translated.output.streams {
        let Some(bridged) = &streams.bridged else { continue };
        let documents = bridged.config.iter().map(|(key, document)| {
            let comments = streams.plane.provenance.get(key).map(stream_origin).unwrap_or_default();
            (key.to_string(), comments, document.to_shown_value())
        });
        write_documents(&mut out, &key.prefix(&options.root), documents);
    }
    if out.is_empty() { "{}\n".to_owned() } else { out }
}

/// The documents of a data plane: key, comments, value.
fn write_documents(
    out: &mut String,
    prefix: &str,
    documents: impl Iterator<Item = (String, Vec<String>, Value)>,
) {
    let mut documents = documents.peekable();
    if documents.peek().is_none() {
        write_field(out, 0, prefix, &Value::Object(Map::new()));
        return;
    }
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{prefix}:");
    for (key, comments, value) in documents {
        for line in comments {
            let _ = writeln!(out, "  # {line}");
        }
        write_field(out, 2, &key, &value);
    }
}

fn verdicts(translated: &Translated, options: &Options) -> String {
    let mut out = String::new();
    let told = translated.statuses(options);
    let status = |object: &Value| {
        let mut status = object["status"].clone();
        // A class with equal options has equal features, so they would only lengthen a review.
        status.as_object_mut().map(|status| status.remove("supportedFeatures"));
        status
    };
    let statuses: Map<String, Value> =
        told.into_iter().map(|object| (name_of(&object), status(&object))).collect();
    write_field(&mut out, 0, "status", &Value::Object(statuses));
    let problems = translated.findings.iter().map(problem).collect();
    write_field(&mut out, 0, "problems", &Value::Array(problems));
    out
}

/// Kind, namespace and name, as messages have them.
fn name_of(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, metadata) = (text(&object["kind"]), &object["metadata"]);
    let name = text(&metadata["name"]);
    match metadata["namespace"].as_str() {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

/// A finding. It has the place of the manifest only if it has no object.
fn problem(finding: &Finding) -> Value {
    let mut value = serde_json::to_value(finding).unwrap_or_default();
    if let Value::Object(fields) = &mut value
        && !finding.object.is_empty()
    {
        for field in ["file", "document", "line"] {
            fields.remove(field);
        }
    }
    value
}

/// The provenance of a document, in lines.
fn origin(kind: ResourceKind, provenance: &Provenance) -> Vec<String> {
    match provenance {
        Provenance::Rules { listener, host, decisions, redirect, shadowed } => {
            let mut lines = Vec::new();
            if let Some(host) = host {
                let of_listener = match listener {
                    Some(listener) if listener != host => format!(", listener hostname {listener}"),
                    Some(_) | None => String::new(),
                };
                lines.push(format!("host {host}{of_listener}"));
            }
            lines.extend(redirect.iter().map(|origin| format!("{}, without TLS", at(origin))));
            lines.extend(decisions.iter().map(decision));
            lines.extend(shadowed.iter().map(|origin| format!("never reached: {}", at(origin))));
            lines
        }
        Provenance::Guard { listener } if listener.is_empty() => {
            vec!["answers requests that no rule takes".to_owned()]
        }
        Provenance::Guard { listener } => {
            vec![format!("keeps {listener} from listeners with a wider hostname")]
        }
        Provenance::Backend { service, port } => vec![format!("{service} port {port}")],
        Provenance::Status { status: Some(status) } if kind == ResourceKind::Service => {
            vec![format!("PingSIX answers {status}")]
        }
        Provenance::Status { status: Some(status) } => vec![format!("the responder answers {status}")],
        Provenance::Status { status: None } => vec!["nothing is sent here".to_owned()],
        Provenance::Redirect => vec!["the responder redirects".to_owned()],
        Provenance::Filters => vec!["filters that several rules have in common".to_owned()],
        Provenance::Telemetry { proxies } => {
            proxies.iter().map(|proxy| format!("telemetry of {proxy}")).collect()
        }
        Provenance::Policies { policies } => {
            let of_policy = |(policy, plugins): &(Arc<ObjectKey>, Box<[&'static str]>)| {
                format!("{policy}: {}", plugins.join(", "))
            };
            policies.iter().map(of_policy).collect()
        }
        Provenance::Certificate { by, .. } => {
            by.iter().collect::<BTreeSet<_>>().iter().map(ToString::to_string).collect()
        }
    }
}

/// The provenance of a stream document, in lines.
fn stream_origin(provenance: &StreamProvenance) -> Vec<String> {
    match provenance {
        StreamProvenance::Route { owner, listener, origin, shadowed } => {
            let mut lines = vec![format!("{owner} listener {listener}"), at(origin)];
            lines.extend(shadowed.iter().map(|origin| format!("never reached: {}", at(origin))));
            lines
        }
        StreamProvenance::Guard { owner, listener } => {
            vec![format!("keeps {owner} listener {listener} from listeners with a wider hostname")]
        }
        StreamProvenance::Front { owner, listener } => {
            vec![format!("{owner} listener {listener}, whose requests PingSIX gets")]
        }
        StreamProvenance::Backend { service, port } => vec![format!("{service} port {port}")],
        StreamProvenance::PingSix { port } => vec![format!("PingSIX for port {port}")],
        StreamProvenance::Authority { config_map } => vec![config_map.to_string()],
        StreamProvenance::Certificate { secret, .. } => vec![secret.to_string()],
    }
}

fn decision(decision: &Decision) -> String {
    match &decision.origin {
        Some(origin) if decision.conditional => format!("{}, if its conditions hold", at(origin)),
        Some(origin) => at(origin),
        None if decision.conditional => "421, if the request came in by another listener".to_owned(),
        None => "otherwise 404".to_owned(),
    }
}

fn at(origin: &Origin) -> String {
    format!("{} {}", origin.object, origin.field())
}
