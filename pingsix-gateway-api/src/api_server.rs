//! An API server in this process, for tests: what a client sees of one, and what can go wrong with it.
//!
//! It keeps the objects of every kind of the table, lists them in pages, and lets them be watched, with bookmarks and
//! versions that expire. [`ApiServer::client`] is a client of it, without a socket.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::channel::mpsc;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, future};
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use kube::Client;
use kube::client::Body;
use pingsix_translate::{Kind, ObjectName};
use serde_json::{Value, json};
use tower_service::Service;

/// What a client may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verb {
    List,
    Watch,
}

/// How a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// With a status, as the API server words it.
    Status(u16),
    /// With a page by something in between.
    Page(u16),
    /// It is never answered.
    Silence,
    /// The connection breaks.
    Broken,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) kind: Kind,
    pub(crate) verb: Verb,
    pub(crate) namespace: Option<String>,
    pub(crate) query: BTreeMap<String, String>,
}

/// An API server in this process. Clones are the same server.
#[derive(Clone)]
pub(crate) struct ApiServer {
    state: Arc<Mutex<State>>,
}

struct State {
    version: u64,
    /// Older versions are not known any more.
    oldest: u64,
    objects: BTreeMap<Kind, BTreeMap<ObjectName, Value>>,
    history: Vec<Change>,
    watches: Vec<OpenWatch>,
    /// The versions in which a kind is served.
    served: BTreeMap<Kind, Vec<String>>,
    discovery: Option<Failure>,
    /// How requests fail until that is cured; for all, or for one namespace or name.
    failures: Vec<(Kind, Verb, Option<String>, Failure)>,
    /// What becomes of the next requests; nothing special where there is none.
    script: BTreeMap<(Kind, Verb), VecDeque<Option<Failure>>>,
    asked: Vec<Asked>,
    looked: usize,
}

#[derive(Clone)]
struct Change {
    version: u64,
    kind: Kind,
    name: ObjectName,
    what: &'static str,
    object: Value,
}

struct OpenWatch {
    asked: Asked,
    lines: mpsc::UnboundedSender<Line>,
}

enum Line {
    Event(Value),
    Broken,
}

type AnswerBody = UnsyncBoxBody<Bytes, std::io::Error>;
type Answer = Response<AnswerBody>;
type Answering = BoxFuture<'static, Result<Answer, std::io::Error>>;

impl ApiServer {
    /// A server without objects, which serves every kind in `v1`.
    pub(crate) fn new() -> Self {
        Self {
            state: Arc::new(Mutex::new(State {
                version: 100,
                oldest: 0,
                objects: BTreeMap::new(),
                history: Vec::new(),
                watches: Vec::new(),
                served: Kind::ALL.iter().map(|kind| (*kind, vec!["v1".to_owned()])).collect(),
                discovery: None,
                failures: Vec::new(),
                script: BTreeMap::new(),
                asked: Vec::new(),
                looked: 0,
            })),
        }
    }

    /// A client of this server.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    /// Creates an object, or replaces it.
    pub(crate) fn apply(&self, kind: Kind, object: Value) {
        let mut state = self.state();
        let name = name_of(&object);
        let is_new = !state.objects.entry(kind).or_default().contains_key(&name);
        state.changed(kind, name, if is_new { "ADDED" } else { "MODIFIED" }, object);
    }

    /// Deletes an object.
    pub(crate) fn delete(&self, kind: Kind, namespace: &str, name: &str) {
        let mut state = self.state();
        let name = ObjectName::new(namespace, name);
        if let Some(object) = state.objects.entry(kind).or_default().remove(&name) {
            state.changed(kind, name, "DELETED", object);
        }
    }

    /// Serves a kind in these versions, or not at all. Objects of a kind that is not served are gone.
    pub(crate) fn serve(&self, kind: Kind, versions: &[&str]) {
        let mut state = self.state();
        state.served.insert(kind, versions.iter().map(|version| (*version).to_owned()).collect());
        if versions.is_empty() {
            state.objects.remove(&kind);
            state.watches.retain(|watch| watch.asked.kind != kind);
        }
    }

    /// Has requests fail, until [`Self::heal`].
    pub(crate) fn fail(&self, kind: Kind, verb: Verb, failure: Failure) {
        self.state().failures.push((kind, verb, None, failure));
    }

    /// Has requests for one namespace, or one name, fail until [`Self::heal`].
    pub(crate) fn fail_at(&self, kind: Kind, verb: Verb, place: &str, failure: Failure) {
        self.state().failures.push((kind, verb, Some(place.to_owned()), failure));
    }

    /// Has no request for a kind fail any more.
    pub(crate) fn heal(&self, kind: Kind) {
        self.state().failures.retain(|(failing, ..)| *failing != kind);
    }

    /// Says what becomes of the next requests, in turn.
    pub(crate) fn script(&self, kind: Kind, verb: Verb, outcomes: impl IntoIterator<Item = Option<Failure>>) {
        self.state().script.entry((kind, verb)).or_default().extend(outcomes);
    }

    /// Has questions what is served fail, or not any more.
    pub(crate) fn fail_discovery(&self, failure: Option<Failure>) {
        self.state().discovery = failure;
    }

    /// Forgets all versions but the current one, and tells that to those who watch.
    pub(crate) fn compact(&self) {
        let mut state = self.state();
        state.version += 1;
        state.oldest = state.version;
        state.history.clear();
        for watch in state.watches.drain(..) {
            let _ = watch.lines.unbounded_send(Line::Event(expired()));
        }
    }

    /// Ends the watches of a kind, as every watch ends after a while.
    pub(crate) fn end_watches(&self, kind: Kind) {
        self.state().watches.retain(|watch| watch.asked.kind != kind);
    }

    /// Breaks the connections of those who watch a kind.
    pub(crate) fn break_watches(&self, kind: Kind) {
        let mut state = self.state();
        let (broken, kept) = state.watches.drain(..).partition(|watch| watch.asked.kind == kind);
        state.watches = kept;
        let broken: Vec<OpenWatch> = broken;
        for watch in broken {
            let _ = watch.lines.unbounded_send(Line::Broken);
        }
    }

    /// Sends those who watch a kind a line of any content.
    pub(crate) fn send_line(&self, kind: Kind, line: &Value) {
        for watch in self.state().watches.iter().filter(|watch| watch.asked.kind == kind) {
            let _ = watch.lines.unbounded_send(Line::Event(line.clone()));
        }
    }

    /// Tells those who watch a kind how far they are.
    pub(crate) fn bookmark(&self, kind: Kind) {
        let version = {
            let mut state = self.state();
            state.version += 1;
            state.version.to_string()
        };
        let object = json!({
            "apiVersion": api_version(kind), "kind": kind.as_str(), "metadata": {"resourceVersion": version},
        });
        self.send_line(kind, &json!({"type": "BOOKMARK", "object": object}));
    }

    /// Every request for objects of a kind so far.
    pub(crate) fn asked(&self, kind: Kind, verb: Verb) -> Vec<Asked> {
        let state = self.state();
        state.asked.iter().filter(|asked| asked.kind == kind && asked.verb == verb).cloned().collect()
    }

    /// How many requests there were for objects of a kind.
    pub(crate) fn count(&self, kind: Kind, verb: Verb) -> usize {
        self.asked(kind, verb).len()
    }

    /// How often it was asked what is served.
    pub(crate) fn looked(&self) -> usize {
        self.state().looked
    }

    /// How many watches of a kind are open.
    pub(crate) fn open_watches(&self, kind: Kind) -> usize {
        let mut state = self.state();
        state.watches.retain(|watch| !watch.lines.is_closed());
        state.watches.iter().filter(|watch| watch.asked.kind == kind).count()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl Service<Request<Body>> for ApiServer {
    type Response = Response<AnswerBody>;
    type Error = std::io::Error;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let mut state = self.state();
        let uri = request.uri();
        let segments: Vec<&str> = uri.path().split('/').filter(|segment| !segment.is_empty()).collect();
        let query = query_of(uri.query().unwrap_or_default());
        match segments[..] {
            ["apis" | "api", ..] if is_discovery(&segments) => {
                state.looked += 1;
                let failure = state.discovery;
                settle(failure, || state.discover(&segments))
            }
            ["apis", group, version, ref rest @ ..] => state.answer(group, version, rest, query),
            ["api", version, ref rest @ ..] => state.answer("", version, rest, query),
            _ => at_once(status(404, "no such path")),
        }
    }
}

impl State {
    fn changed(&mut self, kind: Kind, name: ObjectName, what: &'static str, mut object: Value) {
        self.version += 1;
        object["apiVersion"] = json!(api_version(kind));
        object["kind"] = json!(kind.as_str());
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if what != "DELETED" {
            self.objects.entry(kind).or_default().insert(name.clone(), object.clone());
        }
        let change = Change { version: self.version, kind, name, what, object };
        for watch in &self.watches {
            if let Some(line) = seen_by(&watch.asked, &change) {
                let _ = watch.lines.unbounded_send(Line::Event(line));
            }
        }
        self.history.push(change);
    }

    fn discover(&self, segments: &[&str]) -> Answer {
        let served = |group: &str| -> BTreeMap<String, Vec<Kind>> {
            let mut versions: BTreeMap<String, Vec<Kind>> = BTreeMap::new();
            for (kind, served) in self.served.iter().filter(|(kind, _)| kind.group() == group) {
                for version in served {
                    versions.entry(version.clone()).or_default().push(*kind);
                }
            }
            versions
        };
        let resources = |group: &str, version: &str| {
            let group_version =
                if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
            let Some(kinds) = served(group).remove(version) else { return status(404, "no such version") };
            let resources = kinds.iter().map(|kind| {
                json!({"name": plural(*kind), "singularName": "", "kind": kind.as_str(),
                    "namespaced": kind.is_namespaced(), "verbs": ["list", "watch"]})
            });
            ok(&json!({"kind": "APIResourceList", "groupVersion": group_version,
                "resources": resources.collect::<Vec<_>>()}))
        };
        match *segments {
            ["apis"] => {
                let groups: BTreeSet<&str> =
                    self.served.keys().map(|kind| kind.group()).filter(|group| !group.is_empty()).collect();
                let groups = groups.into_iter().filter(|group| !served(group).is_empty()).map(|group| {
                    let versions = served(group).into_keys();
                    let versions = versions.map(
                        |version| json!({"groupVersion": format!("{group}/{version}"), "version": version}),
                    );
                    json!({"name": group, "versions": versions.collect::<Vec<_>>()})
                });
                ok(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups.collect::<Vec<_>>()}))
            }
            ["apis", group, version] => resources(group, version),
            ["api", version] => resources("", version),
            _ => status(404, "no such path"),
        }
    }

    fn answer(
        &mut self,
        group: &str,
        version: &str,
        rest: &[&str],
        query: BTreeMap<String, String>,
    ) -> Answering {
        let (namespace, resource) = match *rest {
            ["namespaces", namespace, resource] => (Some(namespace.to_owned()), resource),
            [resource] => (None, resource),
            _ => return at_once(status(404, "no such path")),
        };
        let mut kinds = Kind::ALL.iter().copied();
        let Some(kind) = kinds.find(|kind| kind.group() == group && plural(*kind) == resource) else {
            return at_once(status(404, "no such kind"));
        };
        let verb =
            if query.get("watch").is_some_and(|watch| watch == "true") { Verb::Watch } else { Verb::List };
        let asked = Asked { kind, verb, namespace, query };
        self.asked.push(asked.clone());
        if !self.served.get(&kind).is_some_and(|versions| versions.iter().any(|served| served == version)) {
            return at_once(status(404, "the server could not find the requested resource"));
        }
        let failure = self.failure(&asked);
        settle(failure, || match verb {
            Verb::List => self.list(&asked),
            Verb::Watch => self.watch(asked),
        })
    }

    fn failure(&mut self, asked: &Asked) -> Option<Failure> {
        let scripted = self.script.get_mut(&(asked.kind, asked.verb)).and_then(VecDeque::pop_front);
        if let Some(outcome) = scripted {
            return outcome;
        }
        let name = asked.field("metadata.name");
        let mut failures = self.failures.iter().rev();
        let failure = failures.find(|(kind, verb, place, _)| {
            *kind == asked.kind
                && *verb == asked.verb
                && place.as_ref().is_none_or(|place| {
                    asked.namespace.as_ref() == Some(place) || name.as_ref() == Some(place)
                })
        });
        failure.map(|(.., failure)| *failure)
    }

    fn list(&self, asked: &Asked) -> Answer {
        let none = BTreeMap::new();
        let objects = self.objects.get(&asked.kind).unwrap_or(&none);
        let limit: usize = asked.query.get("limit").map_or(usize::MAX, |limit| limit.parse().unwrap());
        let mut version = self.version;
        let mut start = Bound::Unbounded;
        if let Some(token) = asked.query.get("continue") {
            let parts: Vec<&str> = token.split('/').collect();
            version = parts[0].parse().unwrap();
            if version < self.oldest {
                return status(410, "the continue token is too old");
            }
            start = Bound::Excluded(ObjectName::new(parts[1], parts[2]));
        }
        let mut rest = objects.range((start, Bound::Unbounded)).filter(|(_, object)| asked.selects(object));
        let page: Vec<(&ObjectName, &Value)> = rest.by_ref().take(limit).collect();
        let token = match (rest.next(), page.last()) {
            (Some(_), Some((name, _))) => format!("{version}/{name}"),
            _ => String::new(),
        };
        let items: Vec<&Value> = page.into_iter().map(|(_, object)| object).collect();
        ok(&json!({
            "apiVersion": api_version(asked.kind), "kind": format!("{}List", asked.kind.as_str()),
            "metadata": {"resourceVersion": version.to_string(), "continue": token},
            "items": items,
        }))
    }

    fn watch(&mut self, asked: Asked) -> Answer {
        let from: u64 = asked.query.get("resourceVersion").map_or(0, |version| version.parse().unwrap());
        let (lines, receiver) = mpsc::unbounded();
        if from < self.oldest {
            let _ = lines.unbounded_send(Line::Event(expired()));
        } else {
            for line in self
                .history
                .iter()
                .filter(|change| change.version > from)
                .filter_map(|change| seen_by(&asked, change))
            {
                let _ = lines.unbounded_send(Line::Event(line));
            }
            self.watches.push(OpenWatch { asked, lines });
        }
        let frames = receiver.map(|line| match line {
            Line::Event(event) => Ok(Frame::data(Bytes::from(format!("{event}\n")))),
            Line::Broken => Err(std::io::ErrorKind::ConnectionReset.into()),
        });
        Response::new(StreamBody::new(frames).boxed_unsync())
    }
}

impl Asked {
    /// What a field selector asks of a field.
    pub(crate) fn field(&self, field: &str) -> Option<String> {
        let selector = self.query.get("fieldSelector")?;
        selector
            .split(',')
            .find_map(|part| part.strip_prefix(field)?.strip_prefix('='))
            .map(ToOwned::to_owned)
    }

    fn selects(&self, object: &Value) -> bool {
        let name = name_of(object);
        let labels = self.query.get("labelSelector").map(String::as_str).unwrap_or_default();
        let has_labels = labels.split(',').filter(|label| !label.is_empty()).all(|label| {
            let (label, value) = label.split_once('=').unwrap();
            object["metadata"]["labels"][label] == value
        });
        has_labels
            && self.namespace.as_deref().is_none_or(|namespace| *name.namespace == *namespace)
            && self.field("metadata.name").is_none_or(|wanted| *name.name == *wanted)
            && self.field("type").is_none_or(|wanted| object["type"] == wanted)
    }
}

/// The line that tells one who watches of a change, if it concerns him.
fn seen_by(asked: &Asked, change: &Change) -> Option<Value> {
    (asked.kind == change.kind && asked.selects(&change.object)).then(|| {
        debug_assert_eq!(name_of(&change.object), change.name);
        json!({"type": change.what, "object": change.object})
    })
}

fn expired() -> Value {
    let object = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410,
        "message": "too old resource version"});
    json!({"type": "ERROR", "object": object})
}

fn at_once(answer: Answer) -> Answering {
    future::ready(Ok(answer)).boxed()
}

fn settle(failure: Option<Failure>, answer: impl FnOnce() -> Answer) -> Answering {
    match failure {
        None => at_once(answer()),
        Some(Failure::Status(code)) => at_once(status(code, "as the test wants it")),
        Some(Failure::Page(code)) => at_once(reply(code, "<html>\nno\n</html>\n".to_owned())),
        Some(Failure::Silence) => future::pending().boxed(),
        Some(Failure::Broken) => future::ready(Err(std::io::ErrorKind::ConnectionReset.into())).boxed(),
    }
}

fn ok(body: &Value) -> Answer {
    reply(200, body.to_string())
}

fn status(code: u16, message: &str) -> Answer {
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code,
        "reason": ""});
    reply(code, body.to_string())
}

fn reply(code: u16, body: String) -> Answer {
    let body = Full::new(Bytes::from(body)).map_err(|never: Infallible| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}

fn is_discovery(segments: &[&str]) -> bool {
    matches!(segments, ["apis"] | ["apis", _, _] | ["api", _])
}

/// Namespace and name, as written.
fn name_of(object: &Value) -> ObjectName {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    ObjectName::new(text("namespace"), text("name"))
}

fn api_version(kind: Kind) -> String {
    if kind.group().is_empty() { "v1".to_owned() } else { format!("{}/v1", kind.group()) }
}

/// The name of a kind in paths.
pub(crate) fn plural(kind: Kind) -> String {
    let name = kind.as_str().to_lowercase();
    match name.strip_suffix("cy") {
        Some(stem) => format!("{stem}cies"),
        None if name.ends_with('s') => format!("{name}es"),
        None => format!("{name}s"),
    }
}

fn query_of(query: &str) -> BTreeMap<String, String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'%', [high, low, tail @ ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).unwrap();
                bytes.push(u8::from_str_radix(digits, 16).unwrap());
                rest = tail;
            }
            (b'+', _) => bytes.push(b' '),
            (byte, _) => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).unwrap()
}
