//! The expected state of a cluster without a controller: a list of all objects, one translation, and a comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use pingsix_gateway_api::{bridge, bridge_stream};
use pingsix_sink::{Desired, DocumentSet, EmbeddedEtcd, Scope};
use pingsix_translate::snapshot::{self, Identified, Proxies};
use pingsix_translate::status::{
    Address, Condition, ConditionType, Delivery, GatewayClassVerdict, PolicyVerdict, RouteVerdict,
    StatusMerge, Verdicts, judge_gateway_class, judge_ingress_class, judge_pingsix_proxy, judge_targets,
    with_delivery,
};
use pingsix_translate::{
    Kind, Object, ObjectKey, Objects, Options, PINGSIX_GROUP, Translation, for_each_kind, translate,
    translate_ingress,
};
use serde_json::Value;

/// All objects of the watched kinds at an API server.
#[derive(Debug, Default)]
pub(crate) struct Dump {
    objects: Objects,
    /// The release of each CRD of Gateway API.
    bundles: BTreeMap<String, Option<String>>,
    /// The same as they came.
    pub(crate) raw: BTreeMap<ObjectKey, Value>,
}

macro_rules! list_kinds {
    ($($kind:ident in $field:ident $facts:tt)+) => {
        /// Adds every object of every kind.
        async fn list_kinds(dump: &mut Dump, client: &Client) {$(
            let resource = ApiResource::erase::<<snapshot::$kind as Identified>::Wire>(&());
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
            for object in api.list(&ListParams::default()).await.unwrap() {
                let raw = serde_json::to_value(object).unwrap();
                let object = Object::$kind(Arc::new(serde_json::from_value(raw.clone()).unwrap()));
                dump.raw.insert(object.key(), raw);
                dump.objects.insert(object);
            }
        )+}
    };
}

for_each_kind! { list_kinds }

impl Dump {
    /// Lists everything.
    pub(crate) async fn of(client: &Client) -> Self {
        let mut dump = Self::default();
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        for definition in definitions.list_metadata(&ListParams::default()).await.unwrap() {
            let metadata = definition.metadata;
            let name = metadata.name.unwrap_or_default();
            if name.ends_with(".gateway.networking.k8s.io") {
                let annotations = metadata.annotations.unwrap_or_default();
                let version = annotations.get("gateway.networking.k8s.io/bundle-version").cloned();
                dump.bundles.insert(name, version);
            }
        }
        list_kinds(&mut dump, client).await;
        dump
    }

    /// The resource version of every object, which reveals writes.
    pub(crate) fn versions(&self) -> BTreeMap<String, String> {
        let version = |raw: &Value| raw["metadata"]["resourceVersion"].to_string();
        self.raw.iter().map(|(key, raw)| (key.to_string(), version(raw))).collect()
    }
}

/// The addresses of an owner's data planes.
#[derive(Clone, Debug)]
enum PlaneAddresses {
    /// The addresses of the options.
    FromOptions,
    /// The addresses of its parameters.
    At(Vec<Address>),
    /// The addresses are unknown: the controller runs the data planes.
    Nowhere,
}

/// The message of a Gateway whose parameters cannot be used.
const KEPT_MESSAGE: &str = "The Gateway is not accepted. Its last publication stays until its \
 parameters are valid.";

/// The expected documents and statuses.
#[derive(Debug)]
pub(crate) struct ExpectedState {
    options: Options,
    addresses: Vec<Address>,
    planes: Vec<Desired>,
    /// Prefixes of owners with unusable parameters, which keep their former documents. No dump has these.
    kept: BTreeSet<String>,
    proxies: Proxies,
    classes: BTreeMap<ObjectKey, GatewayClassVerdict>,
    owners: Vec<(Verdicts, PlaneAddresses)>,
    routes: BTreeMap<Arc<ObjectKey>, RouteVerdict>,
    policies: BTreeMap<Arc<ObjectKey>, Vec<PolicyVerdict>>,
}

impl ExpectedState {
    /// The expected state of a cluster whose controller runs no data planes, and has no reader.
    pub(crate) fn of(dump: &Dump, options: &Options, addresses: &[Address]) -> Self {
        let proxies: Proxies =
            dump.objects.proxies().map(|(name, proxy)| (name.clone(), proxy.clone())).collect();
        let mut expected_state = Self {
            proxies: proxies.clone(),
            options: options.clone(),
            addresses: addresses.to_vec(),
            planes: Vec::new(),
            kept: BTreeSet::new(),
            classes: BTreeMap::new(),
            owners: Vec::new(),
            routes: BTreeMap::new(),
            policies: BTreeMap::new(),
        };
        for (name, class) in dump.objects.gateway_classes() {
            if let Some(verdict) = judge_gateway_class(class, &proxies, options) {
                let verdict = verdict.without_data_planes().with_bundles(Some(&dump.bundles));
                expected_state
                    .classes
                    .insert(ObjectKey { kind: Kind::GatewayClass, name: name.clone() }, verdict);
            }
        }
        for (name, gateway) in dump.objects.gateways() {
            let class = ObjectKey::new(Kind::GatewayClass, "", gateway.spec.gateway_class_name.as_str());
            if expected_state.classes.contains_key(&class) {
                let snapshot = dump.objects.snapshot(name).unwrap();
                expected_state.add(translate(&snapshot, options));
            }
        }
        for (name, class) in dump.objects.ingress_classes() {
            if judge_ingress_class(class, &proxies, options).is_some() {
                let snapshot = dump.objects.ingress_snapshot(&name.name).unwrap();
                expected_state.add(translate_ingress(&snapshot, options));
            }
        }
        for policy in dump.objects.policies().filter(|policy| policy.key().kind.group() == PINGSIX_GROUP) {
            // Objects that cannot be decoded exist, too.
            let judged = judge_targets(&policy, |target| Some(dump.raw.contains_key(target)));
            if !judged.verdicts.is_empty() {
                let verdicts = expected_state.policies.entry(Arc::new(policy.key())).or_default();
                verdicts.extend(judged.verdicts);
            }
        }
        expected_state
    }

    fn add(&mut self, translation: Translation) {
        let is_kept = translation.has_unusable_parameters;
        let reached = match (&translation.infrastructure, &translation.attached) {
            _ if is_kept => PlaneAddresses::Nowhere,
            (Some(_), _) => PlaneAddresses::At(Vec::new()),
            (None, Some(attached)) if !attached.addresses.is_empty() => {
                PlaneAddresses::At(attached.addresses.clone())
            }
            (None, _) => PlaneAddresses::FromOptions,
        };
        let mut delivery = BTreeMap::new();
        for key in translation.data_planes.keys().chain(translation.stream_planes.keys()) {
            delivery.insert(key.clone(), Delivery::Pending("No PingSIX instance is connected.".to_owned()));
        }
        if is_kept {
            let keys = translation.data_planes.keys().chain(translation.stream_planes.keys());
            self.kept.extend(keys.map(|key| key.prefix(&self.options.root)));
        }
        for (key, plane) in translation.data_planes.iter().filter(|_| !is_kept) {
            self.planes.push(bridge(key, plane, &self.options).unwrap().desired);
        }
        for (key, plane) in translation.stream_planes.iter().filter(|_| !is_kept) {
            self.planes.push(bridge_stream(key, plane, &self.options).unwrap().desired);
        }
        let mut verdicts = with_delivery(translation.verdicts, &delivery);
        if let Some(gateway) = verdicts.gateway.as_mut().filter(|_| is_kept)
            && let Some(programmed) = gateway.conditions.get(ConditionType::Programmed).cloned()
        {
            gateway.conditions.set(Condition { message: KEPT_MESSAGE.to_owned(), ..programmed });
        }
        for (key, verdict) in &verdicts.routes {
            let merged = match self.routes.remove(key) {
                Some(mut held) => {
                    held.merge(verdict);
                    held
                }
                None => verdict.clone(),
            };
            self.routes.insert(key.clone(), merged);
        }
        for (key, verdict) in &verdicts.policies {
            self.policies.entry(key.clone()).or_default().push(verdict.clone());
        }
        self.owners.push((verdicts, reached));
    }

    /// The number of documents, and of objects with a verdict.
    pub(crate) fn weight(&self) -> (usize, usize) {
        let documents = self.planes.iter().map(|plane| plane.documents().len()).sum();
        (documents, self.classes.len() + self.owners.len() + self.routes.len() + self.policies.len())
    }

    /// The expected documents of each data plane.
    pub(crate) fn expected_documents(&self) -> BTreeMap<Scope, BTreeMap<String, Vec<u8>>> {
        let pairs = |plane: &Desired| (plane.scope().clone(), pairs(Some(plane.documents())));
        self.planes.iter().map(pairs).collect()
    }

    /// The differences between the documents of a server and the expected ones.
    pub(crate) fn wrong_documents(&self, etcd: &EmbeddedEtcd) -> Vec<String> {
        let mut wrong = Vec::new();
        for plane in &self.planes {
            let held = etcd.documents(plane.scope());
            if pairs(held.as_ref()) != pairs(Some(plane.documents())) {
                wrong.push(format!(
                    "{} holds {:?} instead of {:?}",
                    plane.scope().as_str(),
                    readable(held.as_ref()),
                    readable(Some(plane.documents()))
                ));
            }
        }
        for (scope, _) in etcd.scopes() {
            let is_gone =
                !self.planes.iter().any(|plane| *plane.scope() == scope) && !self.is_kept(scope.as_str());
            if is_gone && etcd.documents(&scope).is_some_and(|held| !held.is_empty()) {
                wrong.push(format!("{} is gone and holds something", scope.as_str()));
            }
        }
        wrong
    }

    /// Whether a key or a prefix belongs to an owner with unusable parameters.
    pub(crate) fn is_kept(&self, key: &str) -> bool {
        // A Gateway may have had another layout.
        let is_of = |prefix: &String| {
            key.strip_prefix(prefix.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ':']))
        };
        self.kept.iter().any(is_of)
    }

    /// The statuses that differ from the expectation.
    pub(crate) fn wrong_statuses(&self, dump: &Dump) -> Vec<String> {
        // The time of no transition: it may only stand where a condition is missing.
        let merge = StatusMerge::new(&self.options.controller_name, &Time(jiff::Timestamp::UNIX_EPOCH));
        let mut wrong = Vec::new();
        for (key, raw) in &dump.raw {
            let status = &raw["status"];
            let expected = self.status(&merge, key, status);
            if expected != *status {
                wrong.push(format!("{key} says {status:#} instead of {expected:#}"));
            }
        }
        wrong
    }

    fn status(&self, merge: &StatusMerge, key: &ObjectKey, status: &Value) -> Value {
        let owner_and_place =
            |found: &dyn Fn(&Verdicts) -> bool| self.owners.iter().find(|(owner, _)| found(owner));
        let owner = |found: &dyn Fn(&Verdicts) -> bool| owner_and_place(found).map(|(owner, _)| owner);
        let addresses = |reached: &PlaneAddresses| match reached {
            PlaneAddresses::FromOptions => Some(self.addresses.clone()),
            PlaneAddresses::At(addresses) => Some(addresses.clone()),
            PlaneAddresses::Nowhere => None,
        };
        #[allow(clippy::wildcard_enum_match_arm, reason = "nobody writes statuses of other kinds")]
        match key.kind {
            Kind::GatewayClass => match self.classes.get(key) {
                Some(verdict) => merge.gateway_class(status, verdict),
                None => without_verdict(status),
            },
            Kind::Gateway => {
                let found = owner_and_place(&|owner| {
                    owner.gateway.as_ref().is_some_and(|gateway| *gateway.key == *key)
                });
                let found = found.and_then(|(verdicts, place)| Some((verdicts.gateway.as_ref()?, place)));
                match found.map(|(verdict, place)| (merge.gateway(status, verdict), addresses(place))) {
                    Some((status, Some(addresses))) => merge.gateway_addresses(&status, &addresses),
                    Some((status, None)) => status,
                    None => without_verdict(status),
                }
            }
            Kind::ListenerSet => {
                let verdicts = owner(&|owner| owner.listener_sets.contains_key(key));
                match verdicts.and_then(|verdicts| verdicts.listener_sets.get(key)) {
                    Some(verdict) => merge.listener_set(status, verdict),
                    None => without_verdict(status),
                }
            }
            Kind::Ingress => match owner_and_place(&|owner| owner.ingresses.contains_key(key)) {
                Some((_, place)) => match addresses(place) {
                    Some(addresses) => merge.ingress(status, &addresses),
                    None => status.clone(),
                },
                None => without_verdict(status),
            },
            kind if kind.is_route() => match self.routes.get(key) {
                Some(verdict) => merge.route(status, verdict),
                None => merge.release_entries(status),
            },
            Kind::BackendTlsPolicy
            | Kind::BackendTrafficPolicy
            | Kind::SecurityPolicy
            | Kind::TrafficPolicy => match self.policies.get(key) {
                Some(verdicts) => merge.policy(status, verdicts),
                None => merge.release_entries(status),
            },
            Kind::PingsixProxy => match self.proxies.get(&key.name) {
                Some(proxy) => merge.pingsix_proxy(status, &judge_pingsix_proxy(proxy)),
                None => status.clone(),
            },
            _ => status.clone(),
        }
    }
}

/// A status without our entries: defaults of the API server and foreign conditions stay. Foreign condition types have
/// a domain in these tests.
fn without_verdict(status: &Value) -> Value {
    let mut status = status.clone();
    let is_foreign = |condition: &Value| {
        condition["status"] == "Unknown" || condition["type"].as_str().is_some_and(|kind| kind.contains('/'))
    };
    let conditions = |holder: &mut Value| {
        if let Some(conditions) = holder.get_mut("conditions").and_then(Value::as_array_mut) {
            conditions.retain(|condition| is_foreign(condition));
        }
    };
    conditions(&mut status);
    if let Some(listeners) = status.get_mut("listeners").and_then(Value::as_array_mut) {
        listeners.iter_mut().for_each(conditions);
        listeners.retain(|listener| listener["conditions"].as_array().is_some_and(|held| !held.is_empty()));
    }
    // Another author of the status may have counted, too.
    let is_alone = status["conditions"].as_array().is_none_or(Vec::is_empty);
    if let Some(fields) = status.as_object_mut() {
        fields.remove("addresses");
        if is_alone {
            fields.remove("attachedListenerSets");
        }
        if fields.contains_key("loadBalancer") {
            fields.insert("loadBalancer".to_owned(), Value::Object(serde_json::Map::default()));
        }
    }
    status
}

fn pairs(documents: Option<&DocumentSet>) -> BTreeMap<String, Vec<u8>> {
    let documents = documents.into_iter().flat_map(DocumentSet::iter);
    documents.map(|document| (document.key.to_string(), document.value.to_vec())).collect()
}

fn readable(documents: Option<&DocumentSet>) -> BTreeMap<String, String> {
    let pairs = pairs(documents).into_iter();
    // A certificate comes with its key, which no log is to have, not even of a test.
    pairs
        .map(|(key, value)| {
            let text = String::from_utf8_lossy(&value).into_owned();
            let text = if key.starts_with("ssls/") { format!("{} bytes", text.len()) } else { text };
            (key, text)
        })
        .collect()
}

/// The documents of two servers, by scope; empty scopes do not count.
pub(crate) fn held(etcd: &EmbeddedEtcd) -> BTreeMap<Scope, BTreeMap<String, Vec<u8>>> {
    let held = etcd.scopes().into_iter().map(|(scope, _)| {
        let documents = pairs(etcd.documents(&scope).as_ref());
        (scope, documents)
    });
    held.filter(|(_, documents)| !documents.is_empty()).collect()
}
