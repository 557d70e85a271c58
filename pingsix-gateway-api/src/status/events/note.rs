//! The Event for a problem.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::ApiResource;
use kube::core::ObjectMeta;
use pingsix_translate::ObjectKey;
use pingsix_translate::status::{Problem, Reason, Severity};

use crate::digest::short_digest;

/// The longest note that the API server accepts, in bytes (`events.k8s.io/v1`).
const MAX_NOTE_BYTES: usize = 1024;

/// The longest name of an Event.
const MAX_NAME_BYTES: usize = 253;

/// The longest name of a reporter, behind the domain.
const MAX_REPORTER_CHARS: usize = 63;

/// The `action` of Events.
const ACTION: &str = "Translate";

/// The namespace of Events on objects without a namespace.
pub(crate) const NAMESPACE_OF_CLUSTER_EVENTS: &str = "default";

/// The reporter.
#[derive(Clone, Debug)]
pub(super) struct Reporter {
    controller: String,
    instance: String,
}

impl Reporter {
    /// The reporter of a controller. A controller name may be a path; a reporter has one name behind the domain.
    pub(super) fn new(controller_name: &str, instance: &str) -> Self {
        let (domain, path) = controller_name.split_once('/').unwrap_or(("", controller_name));
        let name: String = path
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() || "-_.".contains(letter) { letter } else { '-' })
            .take(MAX_REPORTER_CHARS)
            .collect();
        let name = name.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let controller = if domain.is_empty() { name.to_owned() } else { format!("{domain}/{name}") };
        let instance = instance.chars().take(128).collect();
        Self { controller, instance }
    }

    /// The Event for a problem. Its name depends on the object and the problem, so all replicas use the same name.
    pub(super) fn event(
        &self,
        problem: &Problem,
        resource: &ApiResource,
        uid: &str,
        now: Timestamp,
    ) -> Event {
        let ObjectKey { kind, name } = &*problem.object;
        let note = note(problem);
        let kind_of_event = kind_of(problem);
        let reason = problem.reason.as_str();
        let digest = short_digest(&[kind.as_str(), uid, kind_of_event, reason, &note].join("\n"));
        let readable = truncated(&name.name, MAX_NAME_BYTES - digest.len() - 1).trim_end_matches(['.', '-']);
        let namespace = Some(namespace(&problem.object).to_owned());
        Event {
            metadata: ObjectMeta {
                namespace: namespace.clone(),
                name: Some(format!("{readable}.{digest}")),
                ..ObjectMeta::default()
            },
            action: Some(ACTION.to_owned()),
            event_time: Some(MicroTime(now)),
            note: Some(note),
            reason: Some(reason.to_owned()),
            regarding: Some(ObjectReference {
                api_version: Some(resource.api_version.clone()),
                kind: Some(resource.kind.clone()),
                name: Some(name.name.to_string()),
                namespace: Some(name.namespace.to_string()).filter(|namespace| !namespace.is_empty()),
                uid: Some(uid.to_owned()).filter(|uid| !uid.is_empty()),
                ..ObjectReference::default()
            }),
            reporting_controller: Some(self.controller.clone()),
            reporting_instance: Some(self.instance.clone()),
            type_: Some(kind_of_event.to_owned()),
            ..Event::default()
        }
    }
}

/// The namespace of the Events on an object.
pub(super) fn namespace(object: &ObjectKey) -> &str {
    let namespace = &*object.name.namespace;
    if namespace.is_empty() { NAMESPACE_OF_CLUSTER_EVENTS } else { namespace }
}

/// A problem that stops or alters service is a warning; an equivalent replacement is normal.
const fn kind_of(problem: &Problem) -> &'static str {
    match (problem.severity, problem.reason) {
        (Severity::Warning, Reason::Limited) => "Normal",
        (Severity::Error | Severity::Warning, _) => "Warning",
    }
}

/// The field and the message, cut to the limit.
fn note(problem: &Problem) -> String {
    const ELLIPSIS: &str = " ...";
    let text = format!("{}: {}", problem.field, problem.message);
    if text.len() <= MAX_NOTE_BYTES {
        return text;
    }
    format!("{}{ELLIPSIS}", truncated(&text, MAX_NOTE_BYTES - ELLIPSIS.len()))
}

/// The longest prefix of whole characters within a number of bytes.
fn truncated(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}
