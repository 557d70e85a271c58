//! The contents of the status pages, in the form of PingSIX's status page.

use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use tokio::time::Instant;

use crate::stream::{Applied, ServeError, Subject};

/// The bytes of all errors on a page. The controller reads pages of up to 64 KiB.
const MAX_ERROR_BYTES: usize = 48 * 1024;

/// The bytes of one message. Servers and documents choose parts of messages.
const MAX_MESSAGE_BYTES: usize = 1024;

/// The state of the process, for its status pages.
#[derive(Debug)]
pub(crate) struct Status(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The kind of the source of stream documents; `None` without that role.
    source: Option<&'static str>,
    /// Whether all roles have started.
    is_started: bool,
    is_draining: bool,
    observed: i64,
    published: i64,
    /// Whether documents have been put in force.
    has_documents: bool,
    errors: Vec<ServeError>,
    error: Option<Error>,
    last_success: Option<Instant>,
}

#[derive(Clone, Debug)]
struct Error {
    kind: &'static str,
    message: String,
}

/// The page `/status/config`.
#[derive(Debug, Serialize)]
pub(crate) struct Page {
    initialized: bool,
    ready: bool,
    config_source: Option<&'static str>,
    /// The revision that was read last.
    observed_revision: Option<i64>,
    /// The revision in force with all of its listeners open.
    published_revision: Option<i64>,
    connected: bool,
    last_success_age_secs: Option<u64>,
    error_kind: Option<&'static str>,
    last_error: Option<String>,
    faults: Vec<PageError>,
    /// The number of further errors, for which the page has no room.
    more_faults: usize,
}

#[derive(Debug, Serialize)]
struct PageError {
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    message: String,
}

impl Status {
    /// The state at the start, with the source of stream documents, if there is that role.
    pub(crate) fn new(source: Option<&'static str>) -> Self {
        Self(Mutex::new(State { source, ..State::default() }))
    }

    /// All roles have started.
    pub(crate) fn started(&self) {
        self.lock().is_started = true;
    }

    /// The process ends, so it takes no new connections.
    pub(crate) fn draining(&self) {
        self.lock().is_draining = true;
    }

    /// Documents were read.
    pub(crate) fn observed(&self, revision: i64) {
        let mut state = self.lock();
        state.observed = revision;
        state.error = None;
        state.last_success = Some(Instant::now());
    }

    /// Documents were applied.
    pub(crate) fn applied(&self, applied: Applied) {
        let mut state = self.lock();
        state.has_documents = true;
        // A port that is taken belongs to a revision that is not in force everywhere.
        if !applied.errors.iter().any(|error| matches!(error.subject, Subject::Port(_))) {
            state.published = applied.revision;
        }
        state.errors = applied.errors;
    }

    /// Whether a port of the documents is not bound.
    pub(crate) fn has_port_errors(&self) -> bool {
        self.lock().errors.iter().any(|error| matches!(error.subject, Subject::Port(_)))
    }

    /// Documents cannot be read.
    pub(crate) fn failed(&self, kind: &'static str, message: &str) {
        self.lock().error = Some(Error { kind, message: shortened(message) });
    }

    /// Whether the process serves all of its roles, and goes on to.
    pub(crate) fn is_ready(&self) -> bool {
        self.lock().is_ready()
    }

    /// The page `/status/config`.
    pub(crate) fn page(&self) -> Page {
        let state = self.lock();
        let known = |revision| (revision != 0).then_some(revision);
        let (mut errors, mut bytes) = (Vec::new(), 0);
        for error in &state.errors {
            let error = PageError::of(error);
            bytes += serde_json::to_vec(&error).map_or(MAX_ERROR_BYTES, |text| text.len() + 1);
            if bytes > MAX_ERROR_BYTES {
                break;
            }
            errors.push(error);
        }
        Page {
            initialized: state.has_documents || state.source.is_none(),
            ready: state.is_ready(),
            config_source: state.source,
            observed_revision: known(state.observed),
            published_revision: known(state.published),
            connected: state.observed != 0 && state.error.is_none(),
            last_success_age_secs: state.last_success.map(|at| at.elapsed().as_secs()),
            error_kind: state.error.as_ref().map(|error| error.kind),
            last_error: state.error.as_ref().map(|error| error.message.clone()),
            more_faults: state.errors.len() - errors.len(),
            faults: errors,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl State {
    fn is_ready(&self) -> bool {
        self.is_started && !self.is_draining && (self.has_documents || self.source.is_none())
    }
}

impl PageError {
    fn of(error: &ServeError) -> Self {
        let (document, port) = match &error.subject {
            Subject::Document(key) => (Some(shortened(key)), None),
            Subject::Port(port) => (None, Some(*port)),
        };
        Self { document, port, message: shortened(&error.message) }
    }
}

/// The beginning of a text.
fn shortened(text: &str) -> String {
    let end =
        (0..=MAX_MESSAGE_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn page(status: &Status) -> Value {
        serde_json::to_value(status.page()).unwrap()
    }

    fn applied(revision: i64, errors: Vec<ServeError>) -> Applied {
        Applied { revision, bound: Vec::new(), errors }
    }

    fn failure(subject: Subject, message: &str) -> ServeError {
        ServeError { subject, message: message.to_owned() }
    }

    #[test]
    fn a_process_is_ready_with_its_first_documents_until_it_ends() {
        let status = Status::new(Some("etcd"));
        assert_eq!(page(&status)["published_revision"], Value::Null);
        status.started();
        status.failed("etcd_unavailable", "etcd cannot be reached");
        assert!(!status.is_ready());
        status.observed(7);
        assert_eq!((&page(&status)["observed_revision"], status.is_ready()), (&json!(7), false));
        status.applied(applied(7, vec![]));
        let ready = page(&status);
        assert_eq!(
            (&ready["ready"], &ready["connected"], &ready["error_kind"]),
            (&json!(true), &json!(true), &Value::Null)
        );
        // The last documents stay in force.
        status.failed("etcd_unavailable", "the watch ended");
        let cut = page(&status);
        assert_eq!((&cut["ready"], &cut["connected"]), (&json!(true), &json!(false)));
        assert_eq!((&cut["published_revision"], &cut["last_error"]), (&json!(7), &json!("the watch ended")));
        status.draining();
        assert!(!status.is_ready());
    }

    #[test]
    fn without_streams_a_process_is_ready_when_it_has_started() {
        let status = Status::new(None);
        assert!(!status.is_ready());
        status.started();
        assert!(status.is_ready());
    }

    #[test]
    fn a_revision_counts_when_all_of_its_listeners_are_open() {
        let status = Status::new(Some("etcd"));
        status.observed(3);
        status.applied(applied(3, vec![failure(Subject::Document("stream_routes/r".to_owned()), "invalid")]));
        assert_eq!(page(&status)["published_revision"], 3);
        status.observed(4);
        status.applied(applied(4, vec![failure(Subject::Port(80), "taken")]));
        let taken = page(&status);
        assert_eq!((&taken["observed_revision"], &taken["published_revision"]), (&json!(4), &json!(3)));
        assert_eq!(taken["faults"], json!([{"port": 80, "message": "taken"}]));
        // A list may have a lower revision, and counts nevertheless.
        status.observed(2);
        status.applied(applied(2, vec![]));
        assert_eq!((&page(&status)["published_revision"], &page(&status)["faults"]), (&json!(2), &json!([])));
    }

    #[test]
    fn a_page_stays_below_64_kib() {
        let status = Status::new(Some("etcd"));
        status.failed("etcd_unavailable", &"\u{1}é".repeat(10_000));
        let key = "\"".repeat(5_000);
        let errors =
            (0..10_000).map(|number| failure(Subject::Document(key.clone()), &format!("{number}{key}")));
        status.applied(applied(1, errors.collect()));
        let page = serde_json::to_string(&status.page()).unwrap();
        assert!(page.len() < 64 * 1024, "{}", page.len());
        let page: Value = serde_json::from_str(&page).unwrap();
        let shown = page["faults"].as_array().unwrap().len();
        assert!(shown > 0);
        assert_eq!(page["more_faults"], 10_000 - shown);
    }
}
