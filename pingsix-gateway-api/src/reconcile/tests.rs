//! The reconciler through random histories, against one that is made anew.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kube_runtime::watcher;
use pingsix_translate::status::{Delivery, Reason};
use pingsix_translate::{DataPlaneKey, Kind, ObjectKey, Options, for_each_kind};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::json;
use tokio::time::Instant;

use super::waits::ANSWER_TIMEOUT;
use super::{Job, NextStep, ReconcileOutcome, Reconciled, Reconciler};
use crate::fixture::generate::{event_of, object};

mod backend_policies;
mod security;
mod waiting;

/// The documents of each data plane that is not empty.
type DocumentTexts<'f> = BTreeMap<String, &'f BTreeMap<String, String>>;

/// By owner, a translation that has not ended, and whether there has to be one more.
type Jobs = BTreeMap<ObjectKey, (Box<Job>, bool)>;

/// A reconciler with what its publications and verdicts amount to.
struct Follower {
    reconciler: Reconciler,
    /// The documents of each data plane, as text.
    held: BTreeMap<DataPlaneKey, BTreeMap<String, String>>,
    /// The last status of each object; absent without a verdict.
    told: BTreeMap<ObjectKey, String>,
    /// The unanswered references, by owner.
    waiting: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// `None` if no translation takes its time.
    jobs: Option<Jobs>,
}

impl Follower {
    fn new() -> Self {
        let options =
            Options { stream: true, responder: Some(([127, 0, 0, 1], 1).into()), ..Options::default() };
        Self {
            reconciler: Reconciler::new(options),
            held: BTreeMap::new(),
            told: BTreeMap::new(),
            waiting: BTreeMap::new(),
            jobs: None,
        }
    }

    fn reconcile(&mut self, owners: BTreeSet<ObjectKey>) {
        for owner in owners {
            if self.jobs.is_some() {
                self.begin(owner);
                continue;
            }
            match self.reconciler.reconcile(&owner, Timestamp::UNIX_EPOCH) {
                ReconcileOutcome::Current(reconciled) | ReconcileOutcome::Withdrawn(reconciled) => {
                    self.note_awaited(&owner, &reconciled.awaited);
                    self.take(reconciled);
                }
                ReconcileOutcome::Waiting(missing) => {
                    assert!(!missing.is_empty());
                    self.note_awaited(&owner, &missing);
                }
            }
        }
    }

    fn begin(&mut self, owner: ObjectKey) {
        let jobs = self.jobs.get_or_insert_default();
        if let Some((_, is_stale)) = jobs.get_mut(&owner) {
            *is_stale = true;
            return;
        }
        match self.reconciler.prepare(&owner, Timestamp::UNIX_EPOCH) {
            NextStep::Job(job) => {
                jobs.insert(owner, (job, false));
            }
            NextStep::Waiting(missing) => self.note_awaited(&owner, &missing),
            NextStep::Withdrawn(reconciled) => {
                self.note_awaited(&owner, &reconciled.awaited);
                self.take(reconciled);
            }
        }
    }

    /// A translation comes to its end.
    fn end(&mut self, owner: &ObjectKey) {
        let Some((job, is_stale)) = self.jobs.as_mut().and_then(|jobs| jobs.remove(owner)) else { return };
        let reconciled = self.reconciler.finish(job.run());
        let is_useless = reconciled.is_none();
        if let Some(reconciled) = reconciled {
            self.note_awaited(owner, &reconciled.awaited);
            self.take(reconciled);
        }
        assert!(is_stale || !is_useless, "who makes it useless has the owner reconsidered");
        if is_stale {
            self.begin(owner.clone());
        }
    }

    /// Some translations come to their ends, or all.
    fn end_jobs(&mut self, mut ends: impl FnMut() -> bool) {
        while let Some(jobs) = &self.jobs {
            let ending: Vec<ObjectKey> = jobs.keys().filter(|_| ends()).cloned().collect();
            if ending.is_empty() {
                return;
            }
            for owner in ending {
                self.end(&owner);
            }
        }
    }

    fn note_awaited(&mut self, owner: &ObjectKey, awaited: &BTreeSet<ObjectKey>) {
        if awaited.is_empty() {
            self.waiting.remove(owner);
        } else {
            self.waiting.insert(owner.clone(), awaited.clone());
        }
    }

    /// Lets the time pass after which owners stop waiting for an answer.
    fn lose_patience(&mut self) {
        let now = Instant::now();
        let owners = self.reconciler.end_waits(now, true);
        assert!(owners.is_empty(), "{owners:?}");
        let owners = self.reconciler.end_waits(now + ANSWER_TIMEOUT, true);
        self.reconcile(owners);
    }

    fn take(&mut self, reconciled: Reconciled) {
        assert!(reconciled.unpublished.is_empty(), "{:?}", reconciled.unpublished);
        for publication in reconciled.publications {
            let documents = publication.desired.documents().iter();
            let texts = documents.map(|document| {
                (document.key.to_string(), String::from_utf8_lossy(&document.value).into_owned())
            });
            self.held.insert(publication.data_plane, texts.collect());
        }
        for object in reconciled.changed_verdicts {
            let said = self.said(&object);
            self.told.insert((*object).clone(), said);
        }
    }

    /// The status of an object.
    fn said(&self, object: &ObjectKey) -> String {
        #[allow(clippy::wildcard_enum_match_arm, reason = "of all others an owner speaks")]
        match object.kind {
            kind if kind.is_route() => {
                self.reconciler.route(object).map(|verdict| format!("{verdict:?}")).unwrap_or_default()
            }
            Kind::BackendTlsPolicy
            | Kind::BackendTrafficPolicy
            | Kind::SecurityPolicy
            | Kind::TrafficPolicy => {
                let verdicts = self.reconciler.policy(object);
                if verdicts.is_empty() { String::new() } else { format!("{verdicts:?}") }
            }
            // Whether a class serves the Ingress.
            Kind::Ingress => {
                let owners: Vec<_> = self.reconciler.judging_owners(object).collect();
                if owners.is_empty() { String::new() } else { format!("{owners:?}") }
            }
            _ => {
                let owner = self.reconciler.judging_owners(object).next();
                let verdicts = owner.and_then(|owner| self.reconciler.verdicts(owner, &BTreeMap::from([])));
                let said = verdicts.and_then(|verdicts| match verdicts.listener_sets.get(object) {
                    Some(set) => Some(format!("{set:?}")),
                    None => verdicts.gateway.map(|gateway| format!("{gateway:?}")),
                });
                said.unwrap_or_default()
            }
        }
    }

    fn answer_everything(&mut self) {
        self.end_jobs(|| true);
        while let Some((owner, missing)) = self.waiting.pop_first() {
            for key in missing {
                let owners = self.reconciler.answered(key);
                assert!(owners.contains(&owner), "an answer leads back to who waits for it");
                self.reconcile(owners);
            }
            self.end_jobs(|| true);
        }
    }

    /// Data planes that hold something, and what is told, without what says nothing. Of owners whose parameters cannot be
    /// used, what they hold is what they held, and so is whose Ingresses they serve.
    fn result(&self) -> (DocumentTexts<'_>, BTreeMap<String, &str>) {
        let is_kept = |key: &DataPlaneKey| self.reconciler.is_kept(&key.owner());
        let held = self.held.iter().filter(|(key, documents)| !documents.is_empty() && !is_kept(key));
        let is_of_kept = |object: &ObjectKey| {
            let mut owners = self.reconciler.judging_owners(object);
            object.kind == Kind::Ingress && owners.any(|owner| self.reconciler.is_kept(owner))
        };
        let told = self.told.iter().filter(|(object, said)| !said.is_empty() && !is_of_kept(object));
        (
            held.map(|(key, documents)| (key.to_string(), documents)).collect(),
            told.map(|(key, said)| (key.to_string(), said.as_str())).collect(),
        )
    }
}

/// A follower that sees the present objects for the first time.
fn rebuilt(from: &Follower) -> Follower {
    let mut fresh = Follower::new();
    let objects = from.reconciler.world().to_objects();
    macro_rules! feed {
        ($($kind:ident in $field:ident $facts:tt)+) => {$(
            for (_, object) in objects.$field() {
                let value = serde_json::to_value(&**object).unwrap();
                fresh.reconciler.apply(event_of(Kind::$kind, watcher::Event::Apply(value)));
            }
        )+};
    }
    for_each_kind! { feed }
    fresh.reconcile(fresh.reconciler.ours());
    fresh.answer_everything();
    fresh
}

#[test]
fn the_result_is_that_of_the_objects_after_any_history() {
    follow_histories(|| None, 1000);
}

#[test]
fn however_long_translations_take_the_result_is_that_of_the_objects() {
    follow_histories(|| Some(Jobs::new()), 2000);
}

fn follow_histories(jobs: fn() -> Option<Jobs>, first_seed: u64) {
    let histories: u64 =
        std::env::var("PROPERTY_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(6);
    let (mut documents, mut told) = (0, 0);
    for seed in 0..histories {
        let mut random = StdRng::seed_from_u64(first_seed + seed);
        let mut follower = Follower { jobs: jobs(), ..Follower::new() };
        for version in 1..=120 {
            let kind = *Kind::ALL.choose(&mut random).unwrap();
            let value = object(kind, version, &mut random);
            let event = if random.random_bool(0.8) { watcher::Event::Apply } else { watcher::Event::Delete };
            let effects = follower.reconciler.apply(event_of(kind, event(value)));
            follower.reconcile(effects.owners);
            follower.end_jobs(|| random.random_bool(0.3));
            match random.random_range(0..10) {
                0..6 => follower.answer_everything(),
                6 => follower.lose_patience(),
                _ => {}
            }
            if version % 4 == 0 {
                follower.answer_everything();
                let fresh = rebuilt(&follower);
                assert_eq!(follower.result(), fresh.result(), "seed {seed}, event {version} of kind {kind}");
                assert_eq!(follower.reconciler.ours(), fresh.reconciler.ours());
                assert_eq!(follower.reconciler.referenced(), fresh.reconciler.referenced());
                documents += fresh.result().0.values().map(|held| held.len()).sum::<usize>();
                told += fresh.result().1.len();
            }
        }
    }
    assert!(
        documents > 50 && told > 50,
        "the histories come to next to nothing: {documents} documents, {told} told"
    );
}

fn apply(follower: &mut Follower, kind: Kind, value: serde_json::Value) {
    let effects = follower.reconciler.apply(event_of(kind, watcher::Event::Apply(value)));
    // A change of a class is a change for its Gateways.
    follower.reconcile(effects.owners);
}

fn class() -> serde_json::Value {
    json!({"metadata": {"name": "pingsix", "resourceVersion": "1"}, "spec": {"controllerName": "pingsix.io/gateway-controller"}})
}

fn gateway(version: u32, secret: Option<&str>) -> serde_json::Value {
    let mut listener = json!({"name": "a", "port": 80, "protocol": "HTTP"});
    if let Some(secret) = secret {
        listener["tls"] = json!({"certificateRefs": [{"name": secret}]});
        listener["protocol"] = json!("HTTPS");
    }
    json!({
        "metadata": {"name": "web", "namespace": "infra", "resourceVersion": version.to_string(), "generation": version},
        "spec": {"gatewayClassName": "pingsix", "listeners": [listener]},
    })
}

#[test]
fn a_gateway_whose_class_goes_is_withdrawn() {
    let mut follower = Follower::new();
    apply(&mut follower, Kind::GatewayClass, class());
    apply(&mut follower, Kind::Gateway, gateway(1, None));
    let key = ObjectKey::new(Kind::Gateway, "infra", "web");
    let effects = follower.reconciler.apply(event_of(Kind::GatewayClass, watcher::Event::Delete(class())));
    assert_eq!(effects.owners, BTreeSet::from([key.clone()]));
    let ReconcileOutcome::Withdrawn(reconciled) = follower.reconciler.reconcile(&key, Timestamp::UNIX_EPOCH)
    else {
        panic!("it is served without a class");
    };
    let planes: Vec<String> =
        reconciled.publications.iter().map(|publication| publication.data_plane.to_string()).collect();
    assert_eq!(planes, ["infra/web", "stream/infra/web"]);
    assert!(reconciled.publications.iter().all(|publication| publication.desired.documents().is_empty()));
    assert!(reconciled.changed_verdicts.iter().any(|told| **told == key));
    assert_eq!(follower.reconciler.verdicts(&key, &BTreeMap::<DataPlaneKey, Delivery>::new()), None);
}

#[test]
fn an_ingress_class_keeps_its_documents_while_its_parameters_are_invalid() {
    let mut follower = Follower::new();
    let proxy = |version: u32, spec: serde_json::Value| {
        json!({
            "metadata": {"name": "edge", "namespace": "infra", "resourceVersion": version.to_string(), "generation": version},
            "spec": spec,
        })
    };
    apply(&mut follower, Kind::PingsixProxy, proxy(1, json!({"attached": {}})));
    apply(
        &mut follower,
        Kind::IngressClass,
        json!({
            "metadata": {"name": "web", "resourceVersion": "1"},
            "spec": {
                "controller": "pingsix.io/gateway-controller",
                "parameters": {
                    "apiGroup": "pingsix.io", "kind": "PingsixProxy", "scope": "Namespace", "namespace": "infra",
                    "name": "edge",
                },
            },
        }),
    );
    let backend = json!({"service": {"name": "cart", "port": {"number": 80}}});
    apply(
        &mut follower,
        Kind::Ingress,
        json!({
            "metadata": {"name": "cart", "namespace": "infra", "resourceVersion": "1"},
            "spec": {"ingressClassName": "web", "defaultBackend": backend},
        }),
    );
    let (ingress, plane) = (
        ObjectKey::new(Kind::Ingress, "infra", "cart"),
        DataPlaneKey::Ingress { class: "web".into(), port: None },
    );
    let before = (follower.held[&plane].clone(), follower.said(&ingress));
    assert!(!before.0.is_empty() && !before.1.is_empty());
    apply(&mut follower, Kind::PingsixProxy, proxy(2, json!({})));
    let owner = plane.owner();
    assert!(follower.reconciler.is_kept(&owner));
    assert_eq!((follower.held[&plane].clone(), follower.said(&ingress)), before);
    let problems = follower.reconciler.problems(&owner);
    assert!(problems.iter().any(|problem| problem.reason == Reason::InvalidParameters), "{problems:?}");
    apply(&mut follower, Kind::PingsixProxy, proxy(3, json!({"attached": {}})));
    assert!(!follower.reconciler.is_kept(&owner));
    assert_eq!((follower.held[&plane].clone(), follower.said(&ingress)), before);
}
