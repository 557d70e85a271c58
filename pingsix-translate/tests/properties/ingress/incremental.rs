//! Histories of changing Ingresses, translated by one translator and by fresh ones.

use std::sync::Arc;

use pingsix_translate::snapshot::{OwnerSnapshot, Pending};
use pingsix_translate::{
    Budget, Change, IngressSnapshot, Kind, ObjectKey, Options, Origin, Quarantine, Section, Translation,
    TranslationMode, Translator, translate_ingress,
};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::{CLASS, LAYOUTS, annotated, generate, policies};
use crate::incremental::{Held, Present, change_pending, collect, compare, compare_charges, identity, put};

/// Changes in a history.
const STEPS: usize = 14;

/// Counts of the events in histories.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    steps: usize,
    /// Steps that took no full translation.
    partial: usize,
    /// Of these, those that changed some documents.
    changed: usize,
    /// Of these, those with another certificate, and those with another problem.
    certificates: usize,
    problems: usize,
    /// Of the partial ones, those in which a host belongs to another namespace.
    owned: usize,
    /// Of the partial ones, those at which the budget did not suffice.
    over_budget: usize,
    /// Of the partial ones, those of a class with a data plane for each port.
    per_port: usize,
    /// Of the partial ones, those with another service of a policy.
    services: usize,
    /// Steps at which the snapshot of the step before was refreshed.
    refreshed: usize,
}

impl Seen {
    pub(super) fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.partial += other.partial;
        self.changed += other.changed;
        self.certificates += other.certificates;
        self.problems += other.problems;
        self.owned += other.owned;
        self.over_budget += other.over_budget;
        self.per_port += other.per_port;
        self.services += other.services;
        self.refreshed += other.refreshed;
    }

    /// Whether there was enough of everything.
    pub(super) const fn is_everything(&self) -> bool {
        self.partial * 3 > self.steps
            && self.changed * 8 > self.steps
            && self.certificates * 100 > self.steps
            && self.problems * 10 > self.steps
            && self.owned * 20 > self.steps
            && self.over_budget * 200 > self.steps
            && self.per_port * 6 > self.steps
            && self.services * 60 > self.steps
            && self.refreshed * 20 > self.steps
    }

    fn count(&mut self, now: &Translation, before: &Translation) {
        let has = |reason: &str| {
            let mut problems = now.verdicts.problems.iter();
            problems.any(|problem| format!("{:?}", problem.reason) == reason)
        };
        self.partial += 1;
        self.owned += usize::from(has("HostNotOwned"));
        self.over_budget += usize::from(has("BudgetExceeded"));
        self.per_port += usize::from(now.data_planes.len() > 1);
        self.problems += usize::from(now.verdicts.problems != before.verdicts.problems);
        for (key, plane) in &now.data_planes {
            let Some(before) = before.data_planes.get(key) else { continue };
            let changes = plane.config.documents().changes(before.config.documents());
            self.changed += usize::from(!changes.is_empty());
            let concerns = |kind: &str| {
                changes.iter().any(|change| {
                    let (Change::Added(key, _) | Change::Replaced(key, ..) | Change::Removed(key, _)) =
                        change;
                    let key: &pingsix_translate::pingsix::DocumentKey = key;
                    key.to_string().contains(kind)
                })
            };
            self.certificates += usize::from(concerns("ssl"));
            self.services += usize::from(concerns("services"));
        }
    }
}

/// Takes a class through random changes, from the objects of some tables to others.
pub(super) fn history(seed: u64) -> Result<Seen, String> {
    let mut rng = SmallRng::seed_from_u64(seed ^ 0x494e_4752);
    let (is_spread, has_policies) = (rng.random_bool(0.7), rng.random_bool(0.5));
    let has_annotations = rng.random_bool(0.4);
    let table = |rng: &mut SmallRng| {
        let mut objects = generate::table(rng);
        if has_policies {
            policies::add(rng, &mut objects);
        }
        if has_annotations {
            annotated::add(rng, &mut objects);
        }
        if is_spread {
            spread(rng, &mut objects);
        }
        for proxy in objects.iter_mut().filter(|object| object["kind"] == "PingsixProxy") {
            match rng.random_range(0..8) {
                0 => proxy["spec"]["attached"]["layout"] = json!("Shared"),
                1 => proxy["spec"]["attached"]["layout"] = json!("PerPort"),
                _ => {}
            }
        }
        objects
    };
    let mut objects = Present::new();
    for object in table(&mut rng) {
        put(&mut objects, object);
    }
    let others: Vec<Value> = (0..4).flat_map(|_| table(&mut rng)).collect();
    let (layout, _) = *LAYOUTS.choose(&mut rng).expect("there are some");
    let mut options = Options { layout, route_names: rng.random_bool(0.2), ..Options::default() };
    if rng.random_bool(0.25) {
        let translation = translate_ingress(&snapshot(&objects), &options);
        let size = translation.data_planes.values().next_back().map(|plane| plane.size).unwrap_or_default();
        let near = |size: usize, rng: &mut SmallRng| size * rng.random_range(70..140) / 100;
        options.budget = if rng.random() {
            Budget { bytes: near(size.bytes, &mut rng), ..Budget::default() }
        } else {
            Budget { matcher_entries: near(size.matcher_entries, &mut rng), ..Budget::default() }
        };
    }
    let mut translator = Translator::new(options.clone());
    let mut witnessed = Seen::default();
    let mut last: Option<Translation> = None;
    let (mut quarantine, mut pending) = (Quarantine::new(), Pending::new());
    let mut what = Vec::new();
    let mut held = Held::default();
    for _ in 0..STEPS {
        if rng.random_bool(0.2) {
            change_quarantine(&mut rng, &objects, &mut quarantine);
        }
        if rng.random_bool(0.1) {
            change_pending(&mut rng, &mut objects, &mut pending);
        }
        let mut present = snapshot(&objects);
        let class = ObjectKey::new(Kind::IngressClass, "", CLASS);
        witnessed.refreshed += usize::from(held.update(collect(&objects), &class));
        let Some(OwnerSnapshot::Ingress(refreshed)) = held.snapshot() else { panic!("an IngressClass's") };
        let mut refreshed = *refreshed;
        for snapshot in [&mut present, &mut refreshed] {
            snapshot.referents.quarantine = quarantine.clone();
            snapshot.referents.pending = pending.clone();
        }
        let fresh = translate_ingress(&present, &options);
        let got = translator.translate_ingress(&refreshed);
        compare(&got, &fresh).map_err(|difference| format!("after {what:?}: {difference}"))?;
        compare_charges(&got, &fresh)?;
        witnessed.steps += 1;
        if let Some(last) = last.filter(|_| translator.last_mode() != TranslationMode::Full) {
            witnessed.count(&got, &last);
        }
        last = Some(got);
        what = (0..rng.random_range(1..4)).map(|_| change(&mut rng, &others, &mut objects)).collect();
    }
    Ok(witnessed)
}

/// Changes an object, or lets one come or go. Returns which.
fn change(rng: &mut SmallRng, others: &[Value], objects: &mut Present) -> String {
    let kinds: &[&str] = match rng.random_range(0..40) {
        0 => &["IngressClass", "PingsixProxy"],
        1..5 => &["Secret", "ConfigMap"],
        5..8 => &["SecurityPolicy", "TrafficPolicy", "BackendTrafficPolicy"],
        8 => &["ReferenceGrant"],
        9..14 => &["Service", "EndpointSlice"],
        _ => &["Ingress"],
    };
    let is_of_kinds = |object: &&Value| kinds.contains(&object["kind"].as_str().unwrap_or_default());
    let present: Vec<Value> = objects.values().map(|(object, _)| object.clone()).collect();
    let present: Vec<&Value> = present.iter().filter(is_of_kinds).collect();
    if let Some(object) = present.choose(rng).filter(|object| object["kind"] != "IngressClass")
        && rng.random_bool(0.5)
    {
        let mut object = (*object).clone();
        let identity = identity(&object);
        if rng.random_bool(0.4) {
            objects.remove(&identity);
            return format!("{identity} gone");
        }
        if object["kind"] == "Ingress" {
            edit(rng, &mut object);
            put(objects, object);
        }
        return format!("{identity} edited");
    }
    let of_kinds: Vec<&Value> = others.iter().filter(is_of_kinds).collect();
    let Some(object) = of_kinds.choose(rng) else { return String::new() };
    put(objects, (*object).clone());
    format!("{} replaced", identity(object))
}

/// Changes one thing of an Ingress.
fn edit(rng: &mut SmallRng, ingress: &mut Value) {
    match rng.random_range(0..9) {
        8 => ingress["spec"]["tls"] = json!([generate::tls(rng)]),
        6 => annotated::annotate(rng, ingress),
        7 => ingress["metadata"]["annotations"] = Value::Null,
        0 => ingress["metadata"]["annotations"]["nginx.org/rewrites"] = json!("x"),
        1 => ingress["metadata"]["generation"] = json!(rng.random_range(1..9)),
        2 => ingress["spec"]["tls"] = Value::Null,
        3 => ingress["spec"]["defaultBackend"] = Value::Null,
        _ => {
            let paths = ingress["spec"]["rules"].as_array_mut().into_iter().flatten();
            let paths = paths.filter_map(|rule| rule.pointer_mut("/http/paths")?.as_array_mut()).flatten();
            for path in paths.filter(|_| rng.random_bool(0.5)).take(1).collect::<Vec<_>>() {
                path["path"] = json!("/edited");
            }
        }
    }
}

/// Gives paths different first segments, so that fewer of them take all requests of another.
fn spread(rng: &mut SmallRng, objects: &mut [Value]) {
    for ingress in objects.iter_mut().filter(|object| object["kind"] == "Ingress") {
        for rule in ingress["spec"]["rules"].as_array_mut().into_iter().flatten() {
            let paths = rule.pointer_mut("/http/paths").and_then(Value::as_array_mut);
            for path in paths.into_iter().flatten() {
                if rng.random_bool(0.2) {
                    continue;
                }
                let text = path["path"].as_str().unwrap_or_default().trim_end_matches('/').to_owned();
                path["path"] = json!(format!("/s{}{text}", rng.random_range(0..6)));
            }
        }
    }
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
    let keys: Vec<ObjectKey> = objects.values().map(|(_, object)| object.key()).collect();
    let kinds = [
        Kind::Ingress,
        Kind::Ingress,
        Kind::Service,
        Kind::Secret,
        Kind::SecurityPolicy,
        Kind::TrafficPolicy,
    ];
    let kind = *kinds.choose(rng).expect("there are some");
    let keys: Vec<&ObjectKey> = keys.iter().filter(|key| key.kind == kind).collect();
    let Some(key) = keys.choose(rng) else { return };
    let section = match rng.random_range(0..4) {
        _ if kind != Kind::Ingress => Section::Whole,
        0 => Section::DefaultBackend,
        1 => Section::Tls(rng.random_range(0..2)),
        2 => Section::Rule(rng.random_range(0..3)),
        _ => Section::Match { rule: rng.random_range(0..2), index: rng.random_range(0..2) },
    };
    let origin = Origin { object: Arc::new((*key).clone()), section };
    quarantine.insert(origin, format!("refused {}", rng.random_range(0..2)).into());
}

fn snapshot(objects: &Present) -> IngressSnapshot {
    collect(objects).ingress_snapshot(CLASS).expect("every table has the class")
}
