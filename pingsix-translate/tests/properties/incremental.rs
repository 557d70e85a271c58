//! Histories of changing objects, translated by one translator and by fresh ones.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use pingsix_translate::selection::{Extract, IndexedObjects};
use pingsix_translate::snapshot::{OwnerSnapshot, Pending};
use pingsix_translate::{
    Budget, Change, Kind, Layout, Object, ObjectKey, ObjectName, Objects, Options, Origin, Quarantine,
    Section, Snapshot, Translation, TranslationMode, Translator, translate,
};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::Tables;
use crate::answer::RESPONDER;
use crate::case::decode;
use crate::generate::gateway::{certificates, namespaces};
use crate::generate::{CERTIFICATES, NAMESPACES, Taste, backend_traffic, security, traffic};

/// Changes in a history.
const STEPS: usize = 12;

/// Kinds of objects that all routes may depend on, and that change alone now and then.
const ALONE: [&str; 10] = [
    "Secret",
    "Namespace",
    "ReferenceGrant",
    "BackendTLSPolicy",
    "HTTPRouteFilter",
    "BackendTrafficPolicy",
    "Gateway",
    "PingsixProxy",
    "SecurityPolicy",
    "TrafficPolicy",
];

/// Counts of the effects of changes of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct OfKind {
    steps: usize,
    /// Steps that took no full translation.
    partial: usize,
    /// Of these, those that came out different.
    different: usize,
}

/// Counts of the events in histories.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    alone: BTreeMap<&'static str, OfKind>,
    steps: usize,
    /// Steps after which documents of the step before were still in use.
    shared: usize,
    /// Of these, those that changed some documents.
    changed: usize,
    /// Steps at which the budget did not suffice.
    over_budget: usize,
    /// Steps with stream documents.
    streams: usize,
    policies: usize,
    /// Steps at which the snapshot of the step before was refreshed.
    refreshed: usize,
}

impl Seen {
    pub(crate) fn add(&mut self, other: Self) {
        for (kind, OfKind { steps, partial, different }) in other.alone {
            let sum = self.alone.entry(kind).or_default();
            sum.steps += steps;
            sum.partial += partial;
            sum.different += different;
        }
        self.steps += other.steps;
        self.shared += other.shared;
        self.changed += other.changed;
        self.over_budget += other.over_budget;
        self.streams += other.streams;
        self.policies += other.policies;
        self.refreshed += other.refreshed;
    }

    /// Histories so far.
    pub(crate) const fn histories(&self) -> u64 {
        (self.steps / STEPS) as u64
    }

    /// Whether there was enough of everything.
    pub(crate) fn is_everything(&self) -> bool {
        let is_partial = |kind| {
            let OfKind { steps, partial, different } = self.alone.get(kind).copied().unwrap_or_default();
            partial * 2 > steps && different * 40 > steps
        };
        ALONE.into_iter().all(is_partial)
            && self.shared * 3 > self.steps
            && self.changed * 8 > self.steps
            && self.over_budget * 100 > self.steps
            && self.over_budget * 4 < self.steps
            && self.streams * 10 > self.steps
            && self.policies * 100 > self.steps
            && self.refreshed * 10 > self.steps
    }
}

/// Takes a table through random changes, each from an object of its own to one of another table.
pub(crate) fn history(tables: Tables, seed: u64) -> Result<Seen, String> {
    let mut rng = SmallRng::seed_from_u64(seed ^ 0x0049_4e43);
    let taste = Taste { https: seed % 2 == 1 };
    let is_spread = rng.random_bool(0.7);
    let mut objects = Present::new();
    for mut object in extended(tables, &mut rng, taste, is_spread) {
        if object["kind"] == "Gateway" && rng.random() {
            let reference = json!({"group": "pingsix.io", "kind": "PingsixProxy", "name": "own"});
            object["spec"]["infrastructure"]["parametersRef"] = reference;
        }
        put(&mut objects, object);
    }
    for object in parameters(&mut rng) {
        put(&mut objects, object);
    }
    // Objects on which all routes depend, referenced objects, and routes.
    let mut others: [Vec<Value>; 3] = Default::default();
    for object in (0..3).flat_map(|_| extended(tables, &mut rng, taste, is_spread)).collect::<Vec<_>>() {
        let kind = object["kind"].as_str().unwrap_or_default();
        let position = match kind {
            "Service" | "EndpointSlice" => 1,
            _ if kind.ends_with("Route") => 2,
            _ => 0,
        };
        others[position].push(object);
    }
    let mut options = Options {
        layout: if rng.random() { Layout::Shared } else { Layout::PerPort },
        responder: rng.random_bool(0.7).then_some(RESPONDER),
        route_names: rng.random_bool(0.2),
        stream: rng.random(),
        ..Options::default()
    };
    if rng.random_bool(0.25) {
        let sizes = translated(&objects, &options).data_planes.into_values().map(|plane| plane.size);
        let largest = sizes.map(|size| (size.bytes, size.matcher_entries)).max().unwrap_or_default();
        let near = |size: usize| size * rng.random_range(80..140) / 100;
        let [bytes, matcher_entries] = [largest.0, largest.1].map(near);
        options.budget = if rng.random() {
            Budget { bytes, ..Budget::default() }
        } else {
            Budget { matcher_entries, ..Budget::default() }
        };
    }
    let mut translator = Translator::new(options.clone());
    let mut witnessed = Seen::default();
    let mut last: Option<Translation> = None;
    let mut alone = None;
    let (mut quarantine, mut pending) = (Quarantine::new(), Pending::new());
    let mut held = Held::default();
    for _ in 0..STEPS {
        if rng.random_bool(0.3) {
            change_quarantine(&mut rng, &objects, &mut quarantine);
        }
        if rng.random_bool(0.2) {
            change_pending(&mut rng, &mut objects, &mut pending);
        }
        let mut present = snapshot(&objects);
        witnessed.refreshed +=
            usize::from(held.update(collect(&objects), &ObjectKey::new(Kind::Gateway, "infra", "public")));
        let Some(OwnerSnapshot::Gateway(refreshed)) = held.snapshot() else { panic!("a Gateway's") };
        let mut refreshed = *refreshed;
        for snapshot in [&mut present, &mut refreshed] {
            snapshot.referents.quarantine = quarantine.clone();
            snapshot.referents.pending = pending.clone();
        }
        let fresh = translate(&present, &options);
        let got = translator.translate(&refreshed);
        compare(&got, &fresh).map_err(|difference| format!("after a change of {alone:?}: {difference}"))?;
        compare_charges(&got, &fresh)?;
        if let Some(kind) = alone.take() {
            let of_kind = witnessed.alone.entry(kind).or_default();
            let is_partial = translator.last_mode() != TranslationMode::Full;
            of_kind.steps += 1;
            of_kind.partial += usize::from(is_partial);
            of_kind.different +=
                usize::from(is_partial && last.as_ref().is_some_and(|last| compare(&got, last).is_err()));
        }
        witnessed.count(&got, last.as_ref());
        last = Some(got);
        if rng.random_bool(0.4) {
            let kind = *ALONE.choose(&mut rng).expect("there are some");
            alone = change_alone(&mut rng, kind, &others[0], &mut objects).then_some(kind);
            continue;
        }
        for _ in 0..rng.random_range(1..4) {
            let chosen = match rng.random_range(0..20) {
                0 => &others[0],
                1..6 => &others[1],
                _ => &others[2],
            };
            let Some(object) = chosen.choose(&mut rng) else { continue };
            let identity = identity(object);
            if rng.random_bool(0.3) && object["kind"] != "Gateway" {
                objects.remove(&identity);
            } else {
                put(&mut objects, object.clone());
            }
        }
    }
    Ok(witnessed)
}

/// The extract of an owner that is kept and refreshed.
#[derive(Default)]
pub(crate) struct Held {
    objects: IndexedObjects,
    extract: Option<Extract>,
}

impl Held {
    /// Takes other objects. Returns whether the extract was refreshed.
    pub(crate) fn update(&mut self, objects: Objects, owner: &ObjectKey) -> bool {
        let changed = self.objects.update(objects);
        let refreshed = self.extract.as_mut().is_some_and(|extract| extract.refresh(&self.objects, &changed));
        if !refreshed {
            self.extract = Extract::new(&self.objects, owner);
        }
        refreshed
    }

    pub(crate) fn snapshot(&self) -> Option<OwnerSnapshot> {
        self.extract.as_ref().map(|extract| extract.snapshot.clone())
    }
}

/// The charge after changes is about that of a new table.
pub(crate) fn compare_charges(got: &Translation, fresh: &Translation) -> Result<(), String> {
    for (key, plane) in &got.data_planes {
        let (got, fresh) = (plane.charged_ratio, fresh.data_planes[key].charged_ratio);
        if (got - fresh).abs() > 0.05 {
            return Err(format!("the charged part of {key} is {got}, and {fresh} when new"));
        }
    }
    Ok(())
}

/// Puts something into quarantine, or lets something out.
fn change_quarantine(rng: &mut SmallRng, objects: &Present, quarantine: &mut Quarantine) {
    let held: Vec<Origin> = quarantine.keys().cloned().collect();
    if let Some(origin) = held.choose(rng)
        && rng.random()
    {
        quarantine.remove(origin);
        return;
    }
    let kinds = [
        Kind::HttpRoute,
        Kind::GrpcRoute,
        Kind::Service,
        Kind::Secret,
        Kind::SecurityPolicy,
        Kind::TrafficPolicy,
    ];
    let keys: Vec<ObjectKey> = objects.values().map(|(_, object)| object.key()).collect();
    let keys: Vec<&ObjectKey> = keys.iter().filter(|key| kinds.contains(&key.kind)).collect();
    let Some(key) = keys.choose(rng) else { return };
    let is_route = [Kind::HttpRoute, Kind::GrpcRoute].contains(&key.kind);
    let section = if is_route { Section::Rule(rng.random_range(0..3)) } else { Section::Whole };
    let origin = Origin { object: Arc::new((*key).clone()), section };
    quarantine.insert(origin, format!("refused {}", rng.random_range(0..2)).into());
}

/// Makes a Secret or a ConfigMap unanswered, and perhaps removes it; or answers one again.
pub(crate) fn change_pending(rng: &mut SmallRng, objects: &mut Present, pending: &mut Pending) {
    let held: Vec<ObjectKey> = pending.keys().cloned().collect();
    if let Some(key) = held.choose(rng)
        && rng.random()
    {
        pending.remove(key);
        return;
    }
    let keys = objects.iter().map(|(identity, (_, object))| (identity.clone(), object.key()));
    let keys: Vec<(String, ObjectKey)> =
        keys.filter(|(_, key)| [Kind::Secret, Kind::ConfigMap].contains(&key.kind)).collect();
    let Some((identity, key)) = keys.choose(rng) else { return };
    pending.insert(key.clone(), ());
    if rng.random() {
        objects.remove(identity);
    }
}

/// The class of the Gateway, and what it and the Gateway may name.
fn parameters(rng: &mut SmallRng) -> Vec<Value> {
    let mode = *["attached", "managed"].choose(rng).expect("there are some");
    let settings =
        if mode == "managed" { json!({"sidecar": {"https": rng.random::<bool>()}}) } else { json!({}) };
    let mut class = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": "pingsix"},
        "spec": {"controllerName": "pingsix.io/gateway-controller"},
    });
    if rng.random() {
        class["spec"]["parametersRef"] =
            json!({"group": "pingsix.io", "kind": "PingsixProxy", "namespace": "infra", "name": "all"});
    }
    let proxy = |name: &str| {
        json!({
            "apiVersion": "pingsix.io/v1alpha1", "kind": "PingsixProxy",
            "metadata": {"namespace": "infra", "name": name}, "spec": {mode: settings},
        })
    };
    vec![class, proxy("all"), proxy("own")]
}

/// The objects that are there, as written and as decoded.
pub(crate) type Present = BTreeMap<String, (Value, Object)>;

pub(crate) fn put(objects: &mut Present, object: Value) {
    let decoded = decode(&object);
    objects.insert(identity(&object), (object, decoded));
}

/// Changes an object of a kind, or lets one come or go. Returns whether it did.
fn change_alone(rng: &mut SmallRng, kind: &str, others: &[Value], objects: &mut Present) -> bool {
    let is_of_kind = |object: &&Value| object["kind"] == kind;
    let present: Vec<Value> =
        objects.values().map(|(object, _)| object).filter(is_of_kind).cloned().collect();
    let comes_often = [
        "ReferenceGrant",
        "BackendTLSPolicy",
        "HTTPRouteFilter",
        "BackendTrafficPolicy",
        "SecurityPolicy",
        "TrafficPolicy",
    ];
    let new = comes_often.contains(&kind) && rng.random_bool(0.3);
    if present.is_empty() || new {
        let of_kind: Vec<&Value> = others.iter().filter(is_of_kind).collect();
        return of_kind.choose(rng).map(|object| put(objects, (*object).clone())).is_some();
    }
    let mut object = present.choose(rng).expect("it is not empty").clone();
    if !["Gateway", "Namespace"].contains(&kind) && rng.random_bool(0.15) {
        objects.remove(&identity(&object));
        return true;
    }
    match kind {
        "Secret" if rng.random_bool(0.1) => object["data"]["tls.key"] = json!("AAAA"),
        "Secret" if security::SECRETS.contains(&object["metadata"]["name"].as_str().unwrap_or_default()) => {
            let [namespace, name] =
                ["namespace", "name"].map(|field| object["metadata"][field].as_str().unwrap_or_default());
            object = security::credential(rng, namespace, name);
        }
        "Secret" => object["data"] = present.choose(rng).expect("it is not empty")["data"].clone(),
        "Namespace" => {
            let team = ["platform", "shop", "other", ""].choose(rng).expect("there are some");
            match (rng.random_range(0..3), *team) {
                (0, team) => object["metadata"]["labels"]["unrelated"] = json!(team),
                (_, "") => object["metadata"]["labels"] = json!({}),
                (_, team) => object["metadata"]["labels"]["team"] = json!(team),
            }
        }
        "ReferenceGrant" if rng.random() => object["spec"]["to"][0]["name"] = Value::Null,
        "ReferenceGrant" => {
            object["spec"]["from"][0]["namespace"] = json!(NAMESPACES.choose(rng));
        }
        "BackendTLSPolicy" if rng.random() => {
            let hostname = ["a.example.com", "b.example.com", "*"].choose(rng);
            object["spec"]["validation"]["hostname"] = json!(hostname);
        }
        "BackendTLSPolicy" => {
            let service = ["one", "two", "idle", "missing"].choose(rng);
            object["spec"]["targetRefs"][0]["name"] = json!(service);
        }
        "HTTPRouteFilter" => object["spec"] = filter(rng),
        "SecurityPolicy" | "TrafficPolicy" => {
            let targets = object["spec"]["targetRefs"].take();
            let is_wide = targets[0]["kind"] == "Gateway" || targets[0]["kind"] == "ListenerSet";
            object["spec"] = if kind == "SecurityPolicy" {
                security::settings(rng, is_wide)
            } else {
                traffic::settings(rng, is_wide)
            };
            object["spec"]["targetRefs"] = targets;
        }
        "BackendTrafficPolicy" if rng.random() => {
            object["spec"]["targetRefs"][0]["name"] = json!(["one", "two", "idle", "missing"].choose(rng));
        }
        "BackendTrafficPolicy" => {
            let targets = object["spec"]["targetRefs"].take();
            object["spec"] = backend_traffic::settings(rng);
            object["spec"]["targetRefs"] = targets;
        }
        "PingsixProxy" => match rng.random_range(0..8) {
            0 if object["spec"]["attached"].is_object() => {
                object["spec"]["attached"]["layout"] = json!(["Shared", "PerPort"].choose(rng));
            }
            1 => object["spec"]["allowOverrides"] = json!(["Image"]),
            2 if object["spec"]["managed"].is_object() => {
                object["spec"]["managed"]["image"] = json!("pingsix:2");
            }
            3 if object["spec"]["managed"].is_object() => {
                object["spec"]["managed"]["sidecar"]["https"] = json!(rng.random::<bool>());
            }
            _ if object["spec"]["managed"].is_object() => {
                object["spec"]["managed"]["replicas"] = json!(rng.random_range(0..5));
            }
            _ => {
                let address = format!("192.0.2.{}", rng.random_range(1..5));
                object["spec"]["attached"]["addresses"] = json!([{"value": address}]);
            }
        },
        _ => object["metadata"]["generation"] = json!(rng.random_range(1..9)),
    }
    put(objects, object);
    true
}

impl Seen {
    fn count(&mut self, now: &Translation, before: Option<&Translation>) {
        self.steps += 1;
        let problems = &now.verdicts.problems;
        let over = problems.iter().any(|problem| format!("{:?}", problem.reason) == "BudgetExceeded");
        self.over_budget += usize::from(over);
        self.streams += usize::from(now.stream_planes.values().any(|plane| !plane.config.is_empty()));
        self.policies += usize::from(!now.verdicts.policies.is_empty());
        let Some(before) = before else { return };
        let (mut shared, mut changed) = (false, false);
        for (key, plane) in &now.data_planes {
            let Some(before) = before.data_planes.get(key) else { continue };
            let news = plane.config.documents().changes(before.config.documents());
            let gone = news.iter().filter(|change| matches!(change, Change::Removed(..))).count();
            shared |= news.len() - gone < plane.config.len();
            changed |= !news.is_empty();
        }
        self.shared += usize::from(shared);
        self.changed += usize::from(shared && changed);
    }
}

pub(crate) fn collect(objects: &Present) -> Objects {
    let mut all = Objects::default();
    for (_, object) in objects.values() {
        all.insert(object.clone());
    }
    all
}

pub(crate) fn snapshot(objects: &Present) -> Snapshot {
    collect(objects).snapshot(&ObjectName::new("infra", "public")).expect("every table has the Gateway")
}

fn translated(objects: &Present, options: &Options) -> Translation {
    translate(&snapshot(objects), options)
}

pub(crate) fn identity(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    format!("{} {}/{}", text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]))
}

/// The spec of an HTTPRouteFilter, which may be one that cannot be used.
fn filter(rng: &mut SmallRng) -> Value {
    let path =
        |pattern: &str| json!({"type": "ReplaceRegexMatch", "pattern": pattern, "substitution": "/n/$1"});
    match rng.random_range(0..6) {
        0 => json!({"urlRewrite": {"path": path("^/([^/]*)/.*$")}}),
        1 => json!({"urlRewrite": {"path": path("^/(.*)$")}}),
        2 => json!({"urlRewrite": {"path": path("/(.*)")}}),
        3 => json!({"directResponse": {"statusCode": 503}}),
        4 => json!({"directResponse": {"statusCode": 503, "body": "closed"}}),
        _ => json!({}),
    }
}

/// Has some rules of HTTPRoutes refer to HTTPRouteFilters, which may be missing.
fn refer_to_filters(rng: &mut SmallRng, objects: &mut Vec<Value>) {
    const NAMES: [&str; 2] = ["moved", "closed"];
    for object in objects.iter_mut().filter(|object| object["kind"] == "HTTPRoute") {
        for rule in object["spec"]["rules"].as_array_mut().into_iter().flatten() {
            if rng.random_bool(0.8) {
                continue;
            }
            let reference =
                json!({"group": "pingsix.io", "kind": "HTTPRouteFilter", "name": NAMES.choose(rng)});
            let filter = json!({"type": "ExtensionRef", "extensionRef": reference});
            match rule["filters"].as_array_mut() {
                Some(filters) => filters.push(filter),
                None => rule["filters"] = json!([filter]),
            }
            if rng.random() {
                rule.as_object_mut().expect("a rule is an object").remove("backendRefs");
            }
        }
    }
    for namespace in NAMESPACES {
        for name in NAMES {
            if rng.random_bool(0.8) {
                objects.push(json!({
                    "apiVersion": "pingsix.io/v1alpha1", "kind": "HTTPRouteFilter",
                    "metadata": {"namespace": namespace, "name": name, "generation": 1}, "spec": filter(rng),
                }));
            }
        }
    }
}

/// Gives paths different first segments, and lets fewer of them take all requests of another.
fn spread(rng: &mut SmallRng, objects: &mut [Value]) {
    for object in objects.iter_mut().filter(|object| object["kind"] == "HTTPRoute") {
        for rule in object["spec"]["rules"].as_array_mut().into_iter().flatten() {
            for matched in rule["matches"].as_array_mut().into_iter().flatten() {
                let Some(value) = matched["path"]["value"].as_str() else { continue };
                if rng.random_bool(0.8) {
                    let value = value.trim_end_matches('/');
                    matched["path"]["value"] = json!(format!("/s{}{value}", rng.random_range(0..5)));
                }
            }
        }
    }
}

/// A table with objects of kinds that tables have none of.
fn extended(tables: Tables, rng: &mut SmallRng, taste: Taste, is_spread: bool) -> Vec<Value> {
    let mut objects = tables(rng, taste);
    if is_spread {
        spread(rng, &mut objects);
    }
    refer_to_filters(rng, &mut objects);
    for object in objects.iter_mut().filter(|object| object["kind"] == "Gateway") {
        if let Some(listeners) = object["spec"]["listeners"].as_array_mut() {
            listeners.push(json!({"name": "tcp", "port": 9000, "protocol": "TCP"}));
            listeners.push(
                json!({"name": "tls", "port": 9443, "protocol": "TLS", "tls": {"mode": "Passthrough"}}),
            );
        }
    }
    let service =
        |rng: &mut SmallRng| *["one", "two", "idle", "missing"].choose(rng).expect("there are some");
    for kind in ["TCPRoute", "TLSRoute"] {
        for route in ["first", "second"] {
            let backend = json!({"name": service(rng), "port": rng.random_range(80..82)});
            let mut spec = json!({"parentRefs": [{"name": "public"}], "rules": [{"backendRefs": [backend]}]});
            if kind == "TLSRoute" {
                spec["hostnames"] = json!([format!("{}.example.com", service(rng))]);
            }
            objects.push(json!({
                "kind": kind, "metadata": {"namespace": "infra", "name": route, "generation": 1}, "spec": spec,
            }));
        }
    }
    if rng.random_bool(0.3) {
        objects.push(json!({
            "kind": "BackendTLSPolicy", "metadata": {"namespace": "infra", "name": "tls", "generation": 1},
            "spec": {
                "targetRefs": [{"group": "", "kind": "Service", "name": service(rng)}],
                "validation": {"wellKnownCACertificates": "System", "hostname": "a.example.com"},
            },
        }));
    }
    if rng.random_bool(0.3) {
        let mut spec = backend_traffic::settings(rng);
        spec["targetRefs"] = json!([{"group": "", "kind": "Service", "name": service(rng)}]);
        objects.push(json!({
            "kind": "BackendTrafficPolicy",
            "metadata": {"namespace": "infra", "name": "traffic", "generation": 1},
            "spec": spec,
        }));
    }
    if rng.random() {
        security::add(rng, &mut objects);
    }
    if rng.random() {
        traffic::add(rng, &mut objects);
    }
    objects
}

/// Compares two translations down to the bytes.
pub(crate) fn compare(got: &Translation, fresh: &Translation) -> Result<(), String> {
    fn same<T: PartialEq + Debug>(what: &str, got: &T, fresh: &T) -> Result<(), String> {
        if got == fresh { Ok(()) } else { Err(format!("{what}: {got:#?}\nfresh: {fresh:#?}")) }
    }
    let keys = |translation: &Translation| -> Vec<String> {
        let streams = translation.stream_planes.keys();
        translation.data_planes.keys().chain(streams).map(ToString::to_string).collect()
    };
    same("data planes", &keys(got), &keys(fresh))?;
    same("infrastructure", &got.infrastructure, &fresh.infrastructure)?;
    same("parameters", &got.attached, &fresh.attached)?;
    for (key, plane) in &got.data_planes {
        let fresh = &fresh.data_planes[key];
        let pairs = |plane: &pingsix_translate::DataPlane| -> Vec<(String, String)> {
            plane.config.to_pairs("").collect()
        };
        for (one, other) in pairs(plane).into_iter().zip(pairs(fresh)) {
            same(&format!("first other document of {key}"), &one, &other)?;
        }
        same("documents", &plane.config, &fresh.config)?;
        for (one, other) in plane.provenance.iter().zip(fresh.provenance.iter()) {
            same(&format!("first other provenance of {key}"), &one, &other)?;
        }
        same("provenance", &plane.provenance, &fresh.provenance)?;
        same("size", &plane.size, &fresh.size)?;
    }
    for (key, plane) in &got.stream_planes {
        let fresh = &fresh.stream_planes[key];
        same("streams", &format!("{plane:?}"), &format!("{fresh:?}"))?;
    }
    for (one, other) in got.verdicts.routes.iter().zip(fresh.verdicts.routes.iter()) {
        same("first other verdict", &one, &other)?;
    }
    same("problems", &got.verdicts.problems, &fresh.verdicts.problems)?;
    same("verdicts", &got.verdicts, &fresh.verdicts)
}

/// A table in which hardly anything is refused, so that most changes change documents: routes that continue in each
/// other, under names that cover each other.
pub(crate) fn lively(rng: &mut SmallRng, _: Taste) -> Vec<Value> {
    let listeners = [
        json!({"name": "all", "port": 80, "protocol": "HTTP"}),
        json!({"name": "wildcard", "port": 80, "protocol": "HTTP", "hostname": "*.example.com"}),
        json!({"name": "exact", "port": 80, "protocol": "HTTP", "hostname": "a.example.com"}),
    ];
    let chosen: Vec<&Value> = listeners
        .iter()
        .enumerate()
        .filter(|(index, _)| *index == 0 || rng.random_bool(0.3))
        .map(|(_, one)| one)
        .collect();
    let mut objects = vec![json!({
        "kind": "Gateway", "metadata": {"namespace": "infra", "name": "public", "generation": 1},
        "spec": {"gatewayClassName": "pingsix", "listeners": chosen},
    })];
    for service in ["one", "two", "three", "four"] {
        objects.push(json!({
            "kind": "Service", "metadata": {"namespace": "infra", "name": service},
            "spec": {"ports": [{"port": if rng.random_bool(0.9) { 80 } else { 81 }}]},
        }));
        let endpoints: Vec<Value> = (0..rng.random_range(0..3))
            .map(|_| json!({"addresses": [format!("10.0.0.{}", rng.random_range(1..9))]}))
            .collect();
        objects.push(json!({
            "kind": "EndpointSlice",
            "metadata": {"namespace": "infra", "name": service, "labels": {"kubernetes.io/service-name": service}},
            "addressType": "IPv4", "ports": [{"port": 8080}], "endpoints": endpoints,
        }));
    }
    for route in 0..12 {
        let names =
            ["a.example.com", "b.example.com", "c.test", "d.test", "*.example.com", "*.b.example.com"];
        let count = if rng.random_bool(0.85) { 1 } else { rng.random_range(0..3) };
        let hostnames: Vec<&str> = names.choose_multiple(rng, count).copied().collect();
        let rules: Vec<Value> = (0..rng.random_range(1..3)).map(|_| lively_rule(rng)).collect();
        objects.push(json!({
            "kind": "HTTPRoute",
            "metadata": {
                "namespace": "infra", "name": format!("route-{route}"), "generation": 1,
                "creationTimestamp": format!("2026-01-01T00:00:{:02}Z", rng.random_range(0..60)),
            },
            "spec": {"parentRefs": [{"name": "public"}], "hostnames": hostnames, "rules": rules},
        }));
    }
    objects
}

/// A lively table that depends on what routes do not hold: certificates, labels of namespaces, and grants.
pub(crate) fn dependent(rng: &mut SmallRng, taste: Taste) -> Vec<Value> {
    let mut objects = lively(rng, taste);
    let gateway = objects.iter_mut().find(|object| object["kind"] == "Gateway").expect("there is one");
    let listeners = gateway["spec"]["listeners"].as_array_mut().expect("there are some");
    for (index, hostname) in ["a.example.com", "*.example.com", "d.test"].iter().enumerate() {
        let refs: Vec<Value> = (0..rng.random_range(1..3))
            .map(|_| json!({"name": CERTIFICATES.choose(rng).expect("there are some").0}))
            .collect();
        listeners.push(json!({
            "name": format!("tls-{index}"), "port": 443, "protocol": "HTTPS", "hostname": hostname,
            "tls": {"certificateRefs": refs},
        }));
    }
    for listener in listeners {
        listener["allowedRoutes"] = if rng.random() {
            json!({"namespaces": {"from": "All"}})
        } else {
            json!({"namespaces": {"from": "Selector", "selector": {"matchLabels": {"team": "shop"}}}})
        };
    }
    for route in objects.iter_mut().filter(|object| object["kind"] == "HTTPRoute") {
        let namespace = NAMESPACES.choose(rng).expect("there are some");
        route["metadata"]["namespace"] = json!(namespace);
        route["spec"]["parentRefs"][0]["namespace"] = json!("infra");
        for rule in route["spec"]["rules"].as_array_mut().into_iter().flatten() {
            for backend in rule["backendRefs"].as_array_mut().into_iter().flatten() {
                backend["namespace"] = json!("infra");
            }
        }
    }
    for from in NAMESPACES {
        objects.push(json!({
            "kind": "ReferenceGrant", "metadata": {"namespace": "infra", "name": format!("from-{from}")},
            "spec": {
                "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": from}],
                "to": [{"group": "", "kind": "Service"}],
            },
        }));
    }
    objects.extend(namespaces());
    objects.extend(certificates("infra"));
    objects
}

fn lively_rule(rng: &mut SmallRng) -> Value {
    let paths = ["/", "/x", "/x/y", "/x/y/z", "/y", "/y/z", "/z", "/v", "/v/w", "/u"];
    let kind = if rng.random_bool(0.7) { "PathPrefix" } else { "Exact" };
    let mut matched = json!({"path": {"type": kind, "value": paths.choose(rng).expect("there are some")}});
    if rng.random_bool(0.15) {
        matched["method"] = json!("GET");
    }
    if rng.random_bool(0.25) {
        matched["headers"] = json!([{"name": "v", "value": rng.random_range(0..2).to_string()}]);
    }
    let services = ["one", "two", "three", "four", "missing"];
    let count = if rng.random_bool(0.8) { 1 } else { 2 };
    let backends: Vec<Value> =
        services.choose_multiple(rng, count).map(|service| json!({"name": service, "port": 80})).collect();
    let mut rule = json!({"matches": [matched], "backendRefs": backends});
    if rng.random_bool(0.2) {
        let headers = json!({"set": [{"name": "x", "value": rng.random_range(0..2).to_string()}]});
        rule["filters"] = json!([{"type": "RequestHeaderModifier", "requestHeaderModifier": headers}]);
    }
    rule
}
