//! A model of PingSIX that refuses every document with poison.

mod instances;
mod probation;
mod quarantines;
mod restarts;
mod retries;
mod searches;

use std::fmt::Write as _;
use std::time::Duration;

use pingsix_translate::snapshot::{AnyRoute, HttpRoute};
use pingsix_translate::{Kind, Object, ObjectName, Objects, Section, Snapshot};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::json;
use tokio::time::Instant;

use super::timeouts::{CONFIRMATION_TIMEOUT, UNCONNECTED_TIMEOUT};
use super::*;

/// The content of a rule or a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Good,
    /// Refused, unless it is in quarantine.
    Poison,
    /// Refused, also in quarantine: what is matched is at fault.
    Pattern,
}

use Rule::{Good, Pattern, Poison};

/// An HTTPRoute of a snapshot.
fn http_route<'s>(snapshot: &'s Snapshot, key: &ObjectKey) -> Option<&'s HttpRoute> {
    let AnyRoute::HttpRoute(route) = snapshot.routes.get(key)? else { return None };
    Some(route)
}

/// The objects of Gateway `infra/web`, and PingSIX.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a way in which PingSIX differs, and all go together"
)]
struct Simulation {
    objects: Objects,
    routes: BTreeMap<String, Vec<Rule>>,
    acceptance: Acceptance,
    revision: i64,
    /// The last publication.
    content: Option<OwnerSnapshot>,
    /// The content in force at PingSIX, and its revision.
    in_force: Option<(OwnerSnapshot, i64)>,
    refused: Option<(i64, String)>,
    /// Refuses everything.
    is_broken: bool,
    /// Reads nothing, and says nothing either.
    is_paused: bool,
    /// Routes that it took once and does not take any more, though they are the same.
    outlawed: BTreeSet<String>,
    now: Instant,
    /// Says which rule it refuses.
    is_chatty: bool,
    /// Whether it matters who was found to be at fault before. Most histories are about searches, with more of them than
    /// anybody has free.
    remembers: bool,
    /// Publications since the last change.
    publications: usize,
    turns: usize,
    generation: i64,
    /// Routes whose present form no earlier process has published.
    unjudged: BTreeSet<String>,
    /// Routes that it refused.
    recalled: BTreeSet<String>,
    log: String,
}

fn plane() -> DataPlaneKey {
    DataPlaneKey::Gateway { gateway: ObjectName::new("infra", "web"), port: None }
}

fn object<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> Arc<T> {
    Arc::new(serde_json::from_value(value).unwrap())
}

fn rule_of(route: &str, rule: usize) -> Origin {
    let object = Arc::new(ObjectKey::new(Kind::HttpRoute, "infra", route));
    Origin { object, section: Section::Rule(rule) }
}

impl Simulation {
    fn new() -> Self {
        let mut objects = Objects::default();
        objects.insert(Object::Gateway(object(json!({
            "metadata": {"namespace": "infra", "name": "web", "generation": 1},
            "spec": {
                "gatewayClassName": "pingsix",
                "listeners": [{
                    "name": "a", "port": 80, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "All"}},
                }],
            },
        }))));
        Self {
            objects,
            routes: BTreeMap::new(),
            acceptance: Acceptance::default(),
            revision: 0,
            content: None,
            in_force: None,
            refused: None,
            is_broken: false,
            is_paused: false,
            outlawed: BTreeSet::new(),
            now: Instant::now(),
            is_chatty: false,
            remembers: false,
            publications: 0,
            turns: 0,
            generation: 1,
            unjudged: BTreeSet::new(),
            recalled: BTreeSet::new(),
            log: String::new(),
        }
    }

    /// Puts a route there with these rules.
    fn route(&mut self, name: &str, rules: &[Rule]) {
        self.route_in("infra", name, rules);
        self.routes.insert(name.to_owned(), rules.to_vec());
    }

    /// Puts a route into a namespace.
    fn route_in(&mut self, namespace: &str, name: &str, rules: &[Rule]) {
        self.generation += 1;
        let generation = self.generation;
        let written: Vec<_> = rules
            .iter()
            .map(|rule| {
                json!({
                    "matches": [{"path": {"value": format!("/{rule:?}/{generation}")}}],
                    "backendRefs": [{"name": name, "port": 80}],
                })
            })
            .collect();
        self.objects.insert(Object::HttpRoute(object(json!({
            "metadata": {"namespace": namespace, "name": name, "generation": generation},
            "spec": {"parentRefs": [{"namespace": "infra", "name": "web"}], "rules": written},
        }))));
    }

    /// Adds or changes a SecurityPolicy with this target. PingSIX refuses the ones named `poison`.
    fn policy_in(&mut self, namespace: &str, name: &str, route: &str) {
        self.generation += 1;
        self.objects.insert(Object::SecurityPolicy(object(json!({
            "metadata": {"namespace": namespace, "name": name, "generation": self.generation},
            "spec": {
                "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": route}],
                "authorization": {"allow": [format!("10.0.{}.0/24", self.generation % 256)]},
            },
        }))));
    }

    /// Takes routes away: the collection has no way to.
    fn remove(&mut self, gone: &str) {
        self.routes.remove(gone);
        let mut left = Objects::default();
        for (_, gateway) in self.objects.gateways() {
            left.insert(Object::Gateway(gateway.clone()));
        }
        for (name, route) in self.objects.http_routes().filter(|(name, _)| *name.name != *gone) {
            let _ = name;
            left.insert(Object::HttpRoute(route.clone()));
        }
        for (_, service) in self.objects.services() {
            left.insert(Object::Service(service.clone()));
        }
        self.objects = left;
    }

    fn service(&mut self, name: &str, what: Rule) {
        self.generation += 1;
        self.objects.insert(Object::Service(object(json!({
            "metadata": {"namespace": "infra", "name": name},
            "spec": {"ports": [
                {"name": format!("{what:?}"), "port": 80},
                {"name": self.generation.to_string(), "port": 81},
            ]},
        }))));
    }

    fn newest(&self) -> OwnerSnapshot {
        let snapshot = self.objects.snapshot(&ObjectName::new("infra", "web")).unwrap();
        OwnerSnapshot::Gateway(Box::new(snapshot))
    }

    /// The poisonous parts that PingSIX finds in a snapshot.
    fn poison(snapshot: &OwnerSnapshot) -> Vec<String> {
        let OwnerSnapshot::Gateway(snapshot) = snapshot else { panic!("it is a Gateway's") };
        let quarantine = &snapshot.referents.quarantine;
        let mut found = Vec::new();
        for (key, route) in &snapshot.routes {
            let (AnyRoute::HttpRoute(route), name) = (route, &key.name) else { continue };
            for (index, rule) in route.spec().rules.iter().flatten().enumerate() {
                let path = rule.matches.as_ref().unwrap()[0].path.as_ref().unwrap().value.clone().unwrap();
                let object = Arc::new(key.clone());
                let is_held = quarantine.contains_key(&Origin { object, section: Section::Rule(index) });
                if path.starts_with("/Pattern") || path.starts_with("/Poison") && !is_held {
                    found.push(format!("{} {index}", name.name));
                }
            }
        }
        for key in snapshot.policies.keys().filter(|key| key.name.name.starts_with("poison")) {
            let object = Arc::new(key.clone());
            if !quarantine.contains_key(&Origin { object, section: Section::Whole }) {
                found.push(key.name.to_string());
            }
        }
        for (name, service) in &snapshot.referents.services {
            let object = Arc::new(ObjectKey { kind: Kind::Service, name: name.clone() });
            let is_held = quarantine.contains_key(&Origin { object, section: Section::Whole });
            // A Service without a rule has no effect.
            let key = ObjectKey { kind: Kind::HttpRoute, name: name.clone() };
            let rules = http_route(snapshot, &key).and_then(|route| route.spec().rules);
            let rules = rules.map_or(0, |rules| rules.len());
            let is_used = (0..rules).any(|rule| !quarantine.contains_key(&rule_of(&name.name, rule)));
            if service.ports[0].name.as_deref() == Some("Poison") && !is_held && is_used {
                found.push(name.to_string());
            }
        }
        found
    }

    /// Publishes the next draft, and has PingSIX take or refuse it.
    fn turn(&mut self) -> AcceptanceOutcome {
        if !self.remembers {
            self.acceptance.records.clear();
        }
        let draft = self.acceptance.draft(&self.newest());
        let is_same = self.content.as_ref().is_some_and(|content| {
            content.differences(&draft.snapshot).is_empty()
                && quarantine(content) == quarantine(&draft.snapshot)
        });
        if !is_same {
            self.revision += 1;
            self.content = Some(draft.snapshot.clone());
            self.publications += 1;
        }
        self.turns += 1;
        let _ = writeln!(self.log, "{}: {:?}", self.revision, draft.trial);
        let revision = Revision::new(self.revision).unwrap();
        let early = self.acceptance.published(draft.number, &plane(), revision);
        if early != AcceptanceOutcome::Nothing {
            return early;
        }
        self.look();
        self.say()
    }

    /// PingSIX judges the publication.
    fn look(&mut self) {
        let Some(content) = self.content.clone() else { return };
        if self.is_paused {
            return;
        }
        let mut poison = Self::poison(&content);
        poison.extend(self.outlawed_in(&content));
        if poison.is_empty() && !self.is_broken {
            self.check(&content);
            self.in_force = Some((content, self.revision));
            self.refused = None;
        } else {
            let message = if self.is_chatty { poison.first().cloned() } else { None };
            self.refused = Some((self.revision, message.unwrap_or_else(|| "it is poison".to_owned())));
        }
    }

    /// The outlawed objects in a snapshot.
    fn outlawed_in(&self, snapshot: &OwnerSnapshot) -> Vec<String> {
        let OwnerSnapshot::Gateway(gateway) = snapshot else { panic!("it is a Gateway's") };
        let outlawed = self.outlawed.iter().filter(|name| {
            let is_there = gateway.routes.contains_key(&ObjectKey::new(Kind::HttpRoute, "infra", &***name));
            is_there && !quarantine(snapshot).contains_key(&rule_of(name, 0))
        });
        outlawed.map(|name| format!("{name} 0")).collect()
    }

    fn say(&mut self) -> AcceptanceOutcome {
        let accepted = self.in_force.as_ref().and_then(|(_, revision)| Revision::new(*revision));
        let refused = self.refused.clone().filter(|_| !self.is_paused);
        let refused = refused.map(|(at, message)| (Revision::new(at).unwrap(), message.into()));
        let mut named = BTreeSet::new();
        if let (true, Some((_, message))) = (self.is_chatty, &self.refused)
            && let Some((route, rule)) = message.split_once(' ')
            && let Ok(rule) = rule.parse()
        {
            named.insert(rule_of(route, rule));
        }
        self.acceptance.record_reception(&plane(), Some(Reception { accepted, refused }), &named)
    }

    /// Content in force harms only objects with poison.
    fn check(&self, content: &OwnerSnapshot) {
        let Some((before, _)) = &self.in_force else { return };
        for source in quarantine(content).keys() {
            let is_held_already = quarantine(before).contains_key(source);
            let rules = self.routes.get(&*source.object.name.name);
            let is_guilty = source.object.kind == Kind::Service
                || rules.is_none_or(|rules| rules.iter().any(|rule| *rule != Good))
                || self.unjudged.contains(&*source.object.name.name);
            assert!(is_held_already || is_guilty, "{source:?} is in quarantine\n{}", self.log);
        }
        let (OwnerSnapshot::Gateway(before), OwnerSnapshot::Gateway(now)) = (before, content) else { return };
        for key in before.routes.keys().filter(|key| self.routes.contains_key(&*key.name.name)) {
            // After a restart, the form of a route before its poison is unknown.
            let is_forgotten = self.recalled.contains(&*key.name.name);
            assert!(is_forgotten || now.routes.contains_key(key), "{key} is gone\n{}", self.log);
        }
    }

    /// Goes on until nothing more is to be published. Returns how many publications it took.
    fn settle(&mut self) -> usize {
        (self.publications, self.turns) = (0, 0);
        while self.turn() != AcceptanceOutcome::Nothing || self.acceptance.search.is_some() {
            assert!(self.turns < 1_000, "{}", self.log);
        }
        self.publications
    }

    /// An object in quarantine, or an absent one, may be innocent.
    fn forgive(&mut self) {
        self.unjudged.extend(self.routes.keys().cloned());
        self.recalled.extend(self.routes.keys().cloned());
    }

    /// Lets time pass, and runs the due steps.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += Duration::from_secs(5);
            if self.acceptance.tick(self.now) != AcceptanceOutcome::Nothing {
                self.settle();
            }
        }
    }

    fn quarantined(&self) -> BTreeSet<Origin> {
        self.acceptance.quarantined().map(|(source, _)| source.clone()).collect()
    }

    fn poisoned(&self) -> BTreeSet<Origin> {
        let rules = self.routes.iter().flat_map(|(name, rules)| {
            rules
                .iter()
                .enumerate()
                .filter(|(_, rule)| **rule == Poison)
                .map(|(index, _)| rule_of(name, index))
        });
        rules.collect()
    }
}

fn quarantine(snapshot: &OwnerSnapshot) -> &pingsix_translate::Quarantine {
    match snapshot {
        OwnerSnapshot::Gateway(snapshot) => &snapshot.referents.quarantine,
        OwnerSnapshot::Ingress(snapshot) => &snapshot.referents.quarantine,
    }
}

/// As many halves as it takes to single one out.
const fn halves(count: usize) -> usize {
    count.next_power_of_two().trailing_zeros() as usize
}

/// A Gateway with good routes that PingSIX has taken.
fn ready(routes: usize) -> Simulation {
    let mut simulation = Simulation::new();
    for index in 0..routes {
        simulation.route(&format!("good-{index}"), &[Good]);
    }
    assert_eq!(simulation.settle(), 1);
    assert!(simulation.acceptance.refusal().is_none());
    simulation
}

#[test]
fn in_any_history_what_is_found_is_what_is_poisoned() {
    let mut searches = 0;
    for seed in 0..300 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut simulation = Simulation::new();
        simulation.is_chatty = seed % 4 == 0;
        if seed % 3 > 0 {
            for index in 0..random.random_range(1..40) {
                simulation.route(&format!("r{index}"), &vec![Good; random.random_range(1..4)]);
            }
            simulation.settle();
        }
        for step in 0..6 {
            let mut changed = BTreeMap::new();
            let mut removed = 0;
            let mut kept: Vec<String> = simulation.routes.keys().cloned().collect();
            for _ in 0..random.random_range(1..20) {
                if random.random_bool(0.1)
                    && let Some(name) = kept.choose(&mut random).cloned()
                {
                    simulation.remove(&name);
                    removed += 1;
                    kept.retain(|other| *other != name);
                    changed.remove(&name);
                    continue;
                }
                let name = format!("r{}", random.random_range(0..60));
                let rules: Vec<Rule> = (0..random.random_range(1..5))
                    .map(|_| if random.random_bool(0.06) { Poison } else { Good })
                    .collect();
                simulation.route(&name, &rules);
                changed.insert(name, rules);
            }
            let had_accepted = simulation.acceptance.accepted.is_some();
            let rules: usize = if had_accepted {
                changed.values().map(Vec::len).sum()
            } else {
                simulation.routes.values().map(Vec::len).sum()
            };
            let guilty = changed.values().flatten().filter(|rule| **rule == Poison).count();
            // Some changes come while the search is on.
            let is_disturbed = random.random_bool(0.3);
            if is_disturbed {
                simulation.publications = 0;
                for late in 0..3 {
                    simulation.turn();
                    simulation.route(&format!("late-{step}-{late}"), &[Good]);
                }
            }
            let publications = simulation.settle();
            assert_eq!(simulation.quarantined(), simulation.poisoned(), "seed {seed}\n{}", simulation.log);
            assert_eq!(simulation.acceptance.held_back().count(), 0);
            assert!(simulation.acceptance.refusal().is_none());
            if !is_disturbed && had_accepted {
                // Of each that is found after the first, the same is said, so that the one before is suspected once more.
                // Then it is tried as well whether PingSIX still takes what it took.
                let most = 1 + guilty * (halves(rules + removed) + 5);
                assert!(
                    publications <= most,
                    "seed {seed}: {publications} for {guilty} of {rules}\n{}",
                    simulation.log
                );
            }
            searches += usize::from(guilty > 0);
            let OwnerSnapshot::Gateway(in_force) = &simulation.in_force.as_ref().unwrap().0 else { panic!() };
            assert_eq!(in_force.routes.len(), simulation.routes.len());
        }
    }
    assert!(searches > 300, "{searches}");
}
