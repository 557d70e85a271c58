//! A model of PingSIX that refuses whatever holds poison.

mod findings;

use std::fmt::Write as _;
use std::time::Duration;

use pingsix_translate::{Kind, Object, ObjectName, Objects, Section};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::json;
use tokio::time::Instant;

use super::waiting::{ALONE, UNANSWERED};
use super::*;

/// What a rule or a Service has in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Good,
    /// Refused, unless it is in quarantine.
    Poison,
    /// Refused, also in quarantine: what is matched is at fault.
    Pattern,
}

use Rule::{Good, Pattern, Poison};

/// The objects of Gateway `infra/web`, and PingSIX.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a way in which PingSIX differs, and all go together"
)]
struct Lab {
    objects: Objects,
    routes: BTreeMap<String, Vec<Rule>>,
    acceptance: Acceptance,
    revision: i64,
    /// What was published last.
    content: Option<OwnerSnapshot>,
    /// What PingSIX has in force, and the revision of it.
    in_force: Option<(OwnerSnapshot, i64)>,
    refused: Option<(i64, String)>,
    /// Refuses everything.
    is_broken: bool,
    /// Reads nothing, and says nothing either.
    is_paused: bool,
    /// Whether it says itself what it takes.
    is_thorough: bool,
    /// Routes that it took once and does not take any more, though they are the same.
    outlawed: BTreeSet<String>,
    now: Instant,
    /// Says which rule it refuses.
    is_chatty: bool,
    /// Publications since the last change.
    publications: usize,
    turns: usize,
    generation: i64,
    /// Routes that whoever published before has not seen as they are.
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

impl Lab {
    fn new() -> Self {
        let mut objects = Objects::default();
        objects.insert(Object::Gateway(object(json!({
            "metadata": {"namespace": "infra", "name": "web", "generation": 1},
            "spec": {
                "gatewayClassName": "pingsix", "listeners": [{"name": "a", "port": 80, "protocol": "HTTP"}],
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
            is_thorough: true,
            outlawed: BTreeSet::new(),
            now: Instant::now(),
            is_chatty: false,
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
            "metadata": {"namespace": "infra", "name": name, "generation": generation},
            "spec": {"parentRefs": [{"name": "web"}], "rules": written},
        }))));
        self.routes.insert(name.to_owned(), rules.to_vec());
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

    /// Everything poisonous that PingSIX finds in a snapshot.
    fn poison(snapshot: &OwnerSnapshot) -> Vec<String> {
        let OwnerSnapshot::Gateway(snapshot) = snapshot else { panic!("it is a Gateway's") };
        let quarantine = &snapshot.referents.quarantine;
        let mut found = Vec::new();
        for (name, route) in &snapshot.http_routes {
            for (index, rule) in route.spec().rules.iter().flatten().enumerate() {
                let path = rule.matches.as_ref().unwrap()[0].path.as_ref().unwrap().value.clone().unwrap();
                let is_held = quarantine.contains_key(&rule_of(&name.name, index));
                if path.starts_with("/Pattern") || path.starts_with("/Poison") && !is_held {
                    found.push(format!("{} {index}", name.name));
                }
            }
        }
        for (name, service) in &snapshot.referents.services {
            let object = Arc::new(ObjectKey { kind: Kind::Service, name: name.clone() });
            let is_held = quarantine.contains_key(&Origin { object, section: Section::Whole });
            // Nothing comes of one that no rule leads to.
            let rules = snapshot
                .http_routes
                .get(name)
                .and_then(|route| route.spec().rules)
                .map_or(0, |rules| rules.len());
            let is_used = (0..rules).any(|rule| !quarantine.contains_key(&rule_of(&name.name, rule)));
            if service.ports[0].name.as_deref() == Some("Poison") && !is_held && is_used {
                found.push(name.to_string());
            }
        }
        found
    }

    /// Publishes what is to be published, and has PingSIX take or refuse it.
    fn turn(&mut self) -> Heard {
        let draft = self.acceptance.draft(&self.newest());
        let is_same = self.content.as_ref().is_some_and(|content| {
            differences(content, &draft.snapshot).is_empty()
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
        if early != Heard::Nothing {
            return early;
        }
        self.look();
        self.say()
    }

    /// PingSIX looks at what is published.
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
            let said = if self.is_chatty { poison.first().cloned() } else { None };
            self.refused = Some((self.revision, said.unwrap_or_else(|| "it is poison".to_owned())));
        }
    }

    /// What is there of those that are outlawed.
    fn outlawed_in(&self, snapshot: &OwnerSnapshot) -> Vec<String> {
        let OwnerSnapshot::Gateway(gateway) = snapshot else { panic!("it is a Gateway's") };
        let outlawed = self.outlawed.iter().filter(|name| {
            let is_there = gateway.http_routes.contains_key(&ObjectName::new("infra", &***name));
            is_there && !quarantine(snapshot).contains_key(&rule_of(name, 0))
        });
        outlawed.map(|name| format!("{name} 0")).collect()
    }

    fn say(&mut self) -> Heard {
        let is_thorough = self.is_thorough;
        let proven = self.in_force.as_ref().and_then(|(_, revision)| Revision::new(*revision));
        // Who is silent seems to take everything.
        let accepted = if self.is_paused { Revision::new(self.revision) } else { proven };
        let refused = self.refused.clone().filter(|_| !self.is_paused);
        let refused = refused.map(|(at, said)| (Revision::new(at).unwrap(), said.into()));
        let mut named = BTreeSet::new();
        if let (true, Some((_, said))) = (self.is_chatty, &self.refused)
            && let Some((route, rule)) = said.split_once(' ')
            && let Ok(rule) = rule.parse()
        {
            named.insert(rule_of(route, rule));
        }
        self.acceptance.hears(&plane(), Some(Reception { accepted, proven, refused, is_thorough }), &named)
    }

    /// Whatever comes into force, nobody suffers but who has poison.
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
        for name in before.http_routes.keys().filter(|name| self.routes.contains_key(&*name.name)) {
            // Of what a route was before it was poisoned, nothing is left after a restart.
            let is_forgotten = self.recalled.contains(&*name.name);
            assert!(is_forgotten || now.http_routes.contains_key(name), "{name} is gone\n{}", self.log);
        }
    }

    /// Goes on until nothing more is to be published. Returns how many publications it took.
    fn settle(&mut self) -> usize {
        (self.publications, self.turns) = (0, 0);
        while self.turn() != Heard::Nothing || self.acceptance.search.is_some() {
            assert!(self.turns < 1_000, "{}", self.log);
        }
        self.publications
    }

    /// Whoever is in quarantine for a while, or absent, need not be at fault.
    fn forgive(&mut self) {
        self.unjudged.extend(self.routes.keys().cloned());
        self.recalled.extend(self.routes.keys().cloned());
    }

    /// Lets time pass, and does what it is time for.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += Duration::from_secs(5);
            if self.acceptance.beat(self.now) != Heard::Nothing {
                self.settle();
            }
        }
    }

    fn held(&self) -> BTreeSet<Origin> {
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
fn ready(routes: usize) -> Lab {
    let mut lab = Lab::new();
    for index in 0..routes {
        lab.route(&format!("good-{index}"), &[Good]);
    }
    assert_eq!(lab.settle(), 1);
    assert!(lab.acceptance.fault().is_none());
    lab
}

#[test]
fn what_nobody_complains_about_is_published_as_it_is() {
    let mut lab = ready(3);
    lab.route("good-1", &[Good, Good]);
    assert_eq!(lab.settle(), 1);
    assert_eq!(lab.held(), BTreeSet::new());
}

#[test]
fn one_poisoned_rule_is_found_in_as_many_trials_as_there_are_halves() {
    for changed in [1, 2, 3, 7, 8, 64, 100] {
        for at in [0, changed / 2, changed - 1] {
            let mut lab = ready(5);
            for index in 0..changed {
                lab.route(&format!("new-{index:03}"), &[if index == at { Poison } else { Good }]);
            }
            // One that is refused, the trials, and one that heals. Of a single one it is tried whether it goes without it, and
            // whether it still does not with it.
            let trials = (halves(changed) + 1).max(2);
            assert!(lab.settle() <= 2 + trials, "{changed} {at}\n{}", lab.log);
            assert_eq!(lab.held(), lab.poisoned());
            assert!(Lab::poison(lab.content.as_ref().unwrap()).is_empty());
            let OwnerSnapshot::Gateway(in_force) = &lab.in_force.as_ref().unwrap().0 else { panic!() };
            assert_eq!(in_force.http_routes.len(), 5 + changed);
        }
    }
}

#[test]
fn one_rule_that_is_alone_is_left_out_and_tried_once_more() {
    let mut lab = ready(5);
    lab.route("good-3", &[Poison]);
    assert_eq!(lab.settle(), 4, "{}", lab.log);
    assert_eq!(lab.held(), [rule_of("good-3", 0)].into());
}

#[test]
fn what_pingsix_names_is_tried_first() {
    let mut lab = ready(5);
    lab.is_chatty = true;
    for index in 0..200 {
        lab.route(&format!("new-{index:03}"), &[if index == 77 { Poison } else { Good }]);
    }
    // The refusal, all but what is named, everything once more, and the healing.
    assert_eq!(lab.settle(), 4, "{}", lab.log);
    assert_eq!(lab.held(), lab.poisoned());
}

#[test]
fn a_poisoned_service_is_found_and_its_routes_are_not() {
    let mut lab = ready(5);
    for index in 0..10 {
        lab.route(&format!("new-{index}"), &[Good]);
        lab.service(&format!("new-{index}"), Good);
    }
    assert_eq!(lab.settle(), 1);
    for index in 0..10 {
        lab.service(&format!("new-{index}"), if index == 4 { Poison } else { Good });
    }
    lab.settle();
    let service = Arc::new(ObjectKey::new(Kind::Service, "infra", "new-4"));
    assert_eq!(lab.held(), [Origin { object: service, section: Section::Whole }].into());
    // It changes.
    lab.service("new-4", Good);
    assert_eq!(lab.settle(), 1);
    assert_eq!(lab.held(), BTreeSet::new());
}

#[test]
fn a_service_that_comes_with_a_poisoned_rule_is_not_blamed_for_it() {
    let mut lab = ready(5);
    lab.service("new", Good);
    lab.route("new", &[Good, Good, Poison, Good]);
    lab.settle();
    assert_eq!(lab.held(), [rule_of("new", 2)].into(), "{}", lab.log);
    lab.acceptance = Acceptance::default();
    (lab.refused, lab.in_force) = (None, None);
    lab.settle();
    assert_eq!(lab.held(), [rule_of("new", 2)].into(), "{}", lab.log);
}

#[test]
fn a_fault_in_what_is_matched_holds_the_route_back_as_it_was() {
    for is_new in [false, true] {
        let mut lab = ready(5);
        let name = if is_new { "new" } else { "good-2" };
        lab.route("good-1", &[Good]);
        lab.route(name, &[Good, Pattern]);
        lab.settle();
        assert_eq!(lab.held(), BTreeSet::new());
        let held: Vec<&ObjectKey> = lab.acceptance.held_back().map(|(part, _)| part).collect();
        assert_eq!(held, [&ObjectKey::new(Kind::HttpRoute, "infra", name)], "{}", lab.log);
        let OwnerSnapshot::Gateway(in_force) = &lab.in_force.as_ref().unwrap().0 else { panic!() };
        assert_eq!(in_force.http_routes.contains_key(&ObjectName::new("infra", name)), !is_new);
        assert_eq!(lab.acceptance.problems()[0].reason, Reason::Quarantined);
        // It is tried again when it changes.
        lab.route(name, &[Good, Good]);
        assert_eq!(lab.settle(), 1);
        assert_eq!(lab.acceptance.held_back().count(), 0);
    }
}

#[test]
fn a_quarantined_route_is_tried_again_when_it_changes_and_with_nothing_else() {
    let mut lab = ready(20);
    lab.route("good-3", &[Good, Poison]);
    lab.settle();
    assert_eq!(lab.held(), [rule_of("good-3", 1)].into());
    // What changes besides is no reason.
    lab.route("good-4", &[Good]);
    assert_eq!(lab.settle(), 1);
    assert_eq!(lab.held(), [rule_of("good-3", 1)].into());
    // Still poisoned: nothing else is suspected.
    lab.route("good-3", &[Poison, Good]);
    assert!(lab.settle() <= 5, "{}", lab.log);
    assert_eq!(lab.held(), [rule_of("good-3", 0)].into());
    lab.route("good-3", &[Good]);
    assert_eq!(lab.settle(), 1);
    assert_eq!(lab.held(), BTreeSet::new());
    lab.route("good-5", &[Poison]);
    lab.settle();
    lab.remove("good-5");
    assert_eq!(lab.settle(), 1);
    assert_eq!(lab.held(), BTreeSet::new());
}

#[test]
fn a_pingsix_that_refuses_everything_puts_nothing_into_quarantine() {
    for is_new in [true, false] {
        let mut lab = if is_new { Lab::new() } else { ready(8) };
        for index in 0..8 {
            lab.route(&format!("good-{index}"), &[Good]);
        }
        lab.is_broken = true;
        lab.settle();
        assert_eq!(lab.held(), BTreeSet::new(), "{}", lab.log);
        assert_eq!(lab.acceptance.held_back().count(), 0);
        assert!(lab.acceptance.fault().is_some());
        // It goes on as soon as it can.
        lab.is_broken = false;
        lab.settle();
        assert!(lab.acceptance.fault().is_none());
        let OwnerSnapshot::Gateway(in_force) = &lab.in_force.as_ref().unwrap().0 else { panic!() };
        assert_eq!(in_force.http_routes.len(), 8);
    }
}

#[test]
fn a_controller_that_starts_beside_poison_finds_it_too() {
    for kind in [Poison, Pattern] {
        let mut lab = ready(30);
        lab.route("good-11", &[Good, kind]);
        lab.settle();
        lab.acceptance = Acceptance::default();
        lab.refused = None;
        lab.in_force = None;
        lab.settle();
        let found: Vec<_> = lab.acceptance.held_back().map(|(part, _)| part.clone()).collect();
        if kind == Poison {
            assert_eq!((lab.held(), found.len()), (lab.poisoned(), 0), "{}", lab.log);
        } else {
            assert_eq!((lab.held().len(), found.len()), (0, 1), "{}", lab.log);
        }
        assert!(lab.acceptance.fault().is_none());
    }
}

/// Another controller takes over, from whom PingSIX has what it has; statuses say what they said.
fn restart(lab: &mut Lab, refused: &[&str]) {
    lab.recalled = refused.iter().map(|name| (*name).to_owned()).collect();
    let keys = |names: &mut dyn Iterator<Item = &str>| -> BTreeSet<ObjectKey> {
        names.map(|name| ObjectKey::new(Kind::HttpRoute, "infra", name)).collect()
    };
    lab.acceptance = Acceptance::default();
    assert!(lab.acceptance.is_new());
    lab.acceptance.recall(Recollection {
        refused: keys(&mut refused.iter().copied()),
        unjudged: keys(&mut lab.unjudged.iter().map(String::as_str)),
    });
}

#[test]
fn what_was_refused_before_a_restart_costs_nobody_else_an_answer_after_it() {
    for kind in [Poison, Pattern] {
        for is_still_poison in [true, false] {
            let mut lab = ready(30);
            lab.route("good-11", &[Good, kind]);
            lab.settle();
            if !is_still_poison {
                // As when our own mistake is mended in the next release.
                lab.route("good-11", &[Good, Good]);
            }
            restart(&mut lab, &["good-11"]);
            let publications = lab.settle();
            assert!(publications <= if is_still_poison { 10 } else { 1 }, "{publications}\n{}", lab.log);
            let back = lab.acceptance.held_back().count();
            assert_eq!((lab.held(), back), (lab.poisoned(), usize::from(kind == Pattern && is_still_poison)));
            assert!(lab.acceptance.fault().is_none());
        }
    }
}

#[test]
fn what_is_poisoned_while_no_controller_runs_costs_those_nothing_who_were_there() {
    for kind in [Poison, Pattern] {
        for was_refused in [false, true] {
            let mut lab = ready(30);
            if was_refused {
                lab.route("good-4", &[Poison]);
                lab.settle();
            }
            for index in 0..6 {
                let name = format!("new-{index}");
                lab.route(&name, &[if index == 3 { kind } else { Good }]);
                lab.unjudged.insert(name);
            }
            restart(&mut lab, if was_refused { &["good-4"] } else { &[] });
            lab.settle();
            let back = lab.acceptance.held_back().count();
            assert_eq!((lab.held(), back), (lab.poisoned(), usize::from(kind == Pattern)), "{}", lab.log);
            assert!(lab.acceptance.fault().is_none());
        }
    }
}

#[test]
fn a_recollection_that_misleads_does_not_keep_the_fault_from_being_found() {
    for kind in [Poison, Pattern] {
        let mut lab = ready(12);
        lab.route("good-7", &[kind]);
        lab.unjudged.insert("good-2".to_owned());
        restart(&mut lab, &["good-5"]);
        (lab.in_force, lab.refused) = (None, None);
        lab.settle();
        let back = lab.acceptance.held_back().count();
        assert_eq!((lab.held(), back), (lab.poisoned(), usize::from(kind == Pattern)), "{}", lab.log);
    }
}

#[test]
fn of_several_that_pingsix_names_one_after_the_other_none_costs_the_others_an_answer() {
    let mut lab = ready(40);
    lab.is_chatty = true;
    for index in [3, 17, 31] {
        lab.route(&format!("good-{index}"), &[Poison]);
    }
    restart(&mut lab, &[]);
    lab.settle();
    assert_eq!(lab.held(), lab.poisoned(), "{}", lab.log);
}

fn heard(accepted: Option<Revision>, refused: Option<(Revision, Arc<str>)>) -> Reception {
    Reception { accepted, proven: accepted, refused, is_thorough: true }
}

#[test]
fn instances_that_go_keep_nobody_waiting_and_those_that_come_decide() {
    for comes_back in [true, false] {
        let mut lab = ready(8);
        for index in 0..8 {
            lab.route(&format!("new-{index}"), &[if index == 5 { Poison } else { Good }]);
        }
        assert_eq!(lab.turn(), Heard::Search);
        let draft = lab.acceptance.draft(&lab.newest());
        lab.acceptance.published(draft.number, &plane(), Revision::new(100).unwrap());
        lab.revision = 100;
        // Nobody is there, and for a moment that is nothing to worry about.
        assert_eq!(lab.acceptance.hears(&plane(), None, &BTreeSet::new()), Heard::Nothing);
        for second in 0..ALONE.as_secs() {
            assert_eq!(lab.acceptance.beat(lab.now + Duration::from_secs(second)), Heard::Nothing);
        }
        assert_eq!(lab.acceptance.draft(&lab.newest()).number, draft.number);
        lab.route("late", &[Good]);
        if comes_back {
            // Another is there, which has read what is published for the trial.
            lab.content = Some(draft.snapshot);
            lab.look();
            assert_ne!(lab.say(), Heard::Nothing);
        } else {
            // They read elsewhere: whoever comes is given what there is now.
            assert_eq!(lab.acceptance.beat(lab.now + ALONE), Heard::Unanswered);
            let draft = lab.acceptance.draft(&lab.newest());
            assert_eq!(draft.trial, None);
            let OwnerSnapshot::Gateway(snapshot) = &draft.snapshot else { panic!() };
            assert_eq!(snapshot.http_routes.len(), 17);
            assert!(snapshot.referents.quarantine.is_empty() && lab.acceptance.fault().is_none());
            for second in 0..100 {
                assert_eq!(lab.acceptance.beat(lab.now + Duration::from_secs(20 + second)), Heard::Nothing);
            }
        }
        lab.settle();
        assert_eq!(lab.held(), lab.poisoned(), "what is refused is searched for again");
    }
}

#[test]
fn one_that_is_there_and_says_nothing_of_a_trial_does_not_stop_everything() {
    let mut lab = ready(8);
    lab.route("good-3", &[Poison]);
    assert_eq!(lab.turn(), Heard::Search);
    lab.is_paused = true;
    let draft = lab.acceptance.draft(&lab.newest());
    assert!(draft.trial.is_some());
    lab.acceptance.beat(lab.now);
    assert_eq!(lab.acceptance.beat(lab.now + UNANSWERED / 2), Heard::Nothing);
    assert_eq!(lab.acceptance.beat(lab.now + UNANSWERED), Heard::Unanswered);
    assert_eq!(lab.acceptance.draft(&lab.newest()).trial, None);
}

#[test]
fn a_refusal_that_is_none_convicts_nobody() {
    for rounds in 1..6 {
        for added in [1, 8] {
            for is_new in [false, true] {
                let mut lab = if is_new { Lab::new() } else { ready(8) };
                for index in 0..added {
                    lab.route(&format!("new-{index}"), &[Good]);
                }
                // Somebody seems to refuse whatever there is for a while, and PingSIX takes it.
                for _ in 0..rounds {
                    let draft = lab.acceptance.draft(&lab.newest());
                    lab.revision += 1;
                    let revision = Revision::new(lab.revision).unwrap();
                    lab.acceptance.published(draft.number, &plane(), revision);
                    let refused = Some(heard(None, Some((revision, "no".into()))));
                    lab.acceptance.hears(&plane(), refused, &BTreeSet::new());
                }
                lab.content = None;
                lab.forgive();
                lab.settle();
                lab.pass(Duration::from_mins(30));
                assert_eq!(lab.held(), BTreeSet::new(), "{rounds} {added} {is_new}\n{}", lab.log);
                assert_eq!(lab.acceptance.held_back().count(), 0);
                assert!(lab.acceptance.fault().is_none());
            }
        }
    }
}

#[test]
fn whatever_is_said_by_mistake_nobody_is_held_for_good_but_who_is_at_fault() {
    let mut mistakes = 0;
    for seed in 0..100 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut lab = ready(6);
        for index in 0..random.random_range(1..12) {
            lab.route(&format!("new-{index}"), &[if random.random_bool(0.15) { Poison } else { Good }]);
        }
        lab.forgive();
        for _ in 0..12 {
            let draft = lab.acceptance.draft(&lab.newest());
            lab.revision += 1;
            lab.content = Some(draft.snapshot.clone());
            let revision = Revision::new(lab.revision).unwrap();
            lab.acceptance.published(draft.number, &plane(), revision);
            lab.look();
            if random.random_bool(0.4) {
                // What PingSIX has in force is as it says, or is not said to be.
                let in_force = lab.in_force.as_ref().and_then(|(_, revision)| Revision::new(*revision));
                let accepted = in_force.filter(|accepted| *accepted < revision);
                let refused = Some((revision, "no".into()));
                lab.acceptance.hears(&plane(), Some(heard(accepted, refused)), &BTreeSet::new());
                mistakes += 1;
            } else {
                lab.say();
            }
        }
        lab.content = None;
        lab.settle();
        lab.pass(Duration::from_hours(4));
        // Of one that is at fault, more may be held than has to be.
        let objects = |sources: BTreeSet<Origin>| -> BTreeSet<ObjectKey> {
            sources.iter().map(|source| (*source.object).clone()).collect()
        };
        let mut held = objects(lab.held());
        held.extend(lab.acceptance.held_back().map(|(part, _)| part.clone()));
        assert_eq!(held, objects(lab.poisoned()), "seed {seed}\n{}", lab.log);
        assert!(lab.acceptance.fault().is_none());
    }
    assert!(mistakes > 300, "{mistakes}");
}

#[test]
fn what_was_accepted_in_silence_is_doubted_when_it_is_refused() {
    for was_proven in [true, false] {
        let mut lab = Lab::new();
        lab.is_thorough = false;
        lab.is_paused = !was_proven;
        for index in 0..8 {
            lab.route(&format!("good-{index}"), &[Good]);
        }
        lab.settle();
        assert_eq!(lab.acceptance.proven.is_some(), was_proven);
        // PingSIX is paused while it is given what it will refuse.
        lab.is_paused = true;
        for index in 0..6 {
            lab.route(&format!("new-{index}"), &[if index == 2 { Poison } else { Good }]);
            lab.settle();
        }
        assert!(lab.acceptance.fault().is_none());
        lab.is_paused = false;
        lab.route("late", &[Good]);
        lab.forgive();
        lab.settle();
        assert_eq!(lab.held(), lab.poisoned(), "{was_proven}\n{}", lab.log);
        assert!(lab.acceptance.fault().is_none());
    }
}

#[test]
fn one_that_is_paused_during_a_search_misleads_it_for_no_longer_than_that() {
    for pauses_at in 1..6 {
        let mut lab = ready(4);
        lab.is_thorough = false;
        for index in 0..16 {
            lab.route(&format!("new-{index:02}"), &[if index == 3 { Poison } else { Good }]);
        }
        lab.forgive();
        for turn in 0..=pauses_at {
            lab.is_paused = turn == pauses_at;
            lab.turn();
        }
        lab.is_paused = false;
        lab.settle();
        lab.pass(Duration::from_hours(1));
        assert_eq!(lab.held(), lab.poisoned(), "{pauses_at}\n{}", lab.log);
        assert!(lab.acceptance.fault().is_none());
    }
}

#[test]
fn what_a_later_pingsix_refuses_of_what_was_taken_is_found_in_the_end() {
    let mut lab = ready(8);
    lab.outlawed.insert("good-5".to_owned());
    lab.route("new", &[Good]);
    lab.forgive();
    lab.settle();
    assert!(lab.acceptance.fault().is_some() && lab.held().is_empty(), "it may be broken");
    lab.pass(Duration::from_mins(6));
    assert_eq!(lab.held(), [rule_of("good-5", 0)].into(), "{}", lab.log);
    assert!(lab.acceptance.fault().is_none());
}

#[test]
fn what_is_held_is_tried_again_later_each_time_and_released_when_it_is_taken() {
    let mut lab = ready(8);
    lab.outlawed.insert("new".to_owned());
    lab.route("new", &[Good]);
    lab.route("good-2", &[Poison]);
    lab.forgive();
    lab.settle();
    let held = BTreeSet::from([rule_of("good-2", 0), rule_of("new", 0)]);
    assert_eq!(lab.held(), held);
    let tries = |lab: &mut Lab, time: Duration| {
        let before = lab.revision;
        lab.pass(time);
        // It is published and taken back, for each of the two.
        (lab.revision - before) / 4
    };
    assert_eq!(tries(&mut lab, Duration::from_mins(4)), 0);
    assert_eq!(tries(&mut lab, Duration::from_mins(2)), 1);
    assert_eq!(tries(&mut lab, Duration::from_mins(24)), 1);
    assert_eq!(tries(&mut lab, Duration::from_hours(12)), 13);
    assert_eq!(lab.held(), held);
    assert!(!lab.acceptance.is_retrying() && lab.acceptance.fault().is_none());
    // What was wrong with it is mended elsewhere.
    lab.outlawed.clear();
    lab.pass(Duration::from_mins(61));
    assert_eq!(lab.held(), [rule_of("good-2", 0)].into());
    let OwnerSnapshot::Gateway(in_force) = &lab.in_force.as_ref().unwrap().0 else { panic!() };
    assert_eq!(in_force.http_routes.len(), 9);
}

#[test]
fn what_is_held_back_is_tried_again_too() {
    let mut lab = ready(4);
    lab.route("good-1", &[Pattern]);
    lab.settle();
    assert_eq!(lab.acceptance.held_back().count(), 1);
    let before = lab.revision;
    lab.pass(Duration::from_mins(6));
    assert_eq!((lab.revision - before, lab.acceptance.held_back().count()), (2, 1));
}

#[test]
fn a_retry_ends_when_anything_changes_or_nobody_is_there() {
    for leaves in [false, true] {
        let mut lab = ready(8);
        lab.route("good-2", &[Poison]);
        lab.settle();
        let is_due = lab.now + Duration::from_mins(6);
        assert_eq!(lab.acceptance.beat(lab.now), Heard::Nothing);
        assert_eq!(lab.acceptance.beat(is_due), Heard::Search);
        let draft = lab.acceptance.draft(&lab.newest());
        assert!(draft.trial.is_some() && quarantine(&draft.snapshot).is_empty());
        assert!(lab.acceptance.is_retrying());
        lab.acceptance.published(draft.number, &plane(), Revision::new(100).unwrap());
        lab.revision = 100;
        if leaves {
            lab.acceptance.hears(&plane(), None, &BTreeSet::new());
            assert_eq!(lab.acceptance.beat(is_due), Heard::Unanswered);
        } else {
            lab.route("late", &[Good]);
        }
        let draft = lab.acceptance.draft(&lab.newest());
        assert_eq!((draft.trial, lab.acceptance.is_retrying()), (None, leaves));
        assert_eq!(quarantine(&draft.snapshot).len(), 1);
        lab.settle();
        assert_eq!(lab.held(), lab.poisoned());
        assert!(lab.acceptance.fault().is_none());
    }
}

#[test]
fn what_shows_only_late_is_not_tried_again_when_nobody_would_say_so() {
    let mut lab = ready(8);
    lab.route("good-2", &[Poison]);
    lab.settle();
    // There are no status pages any more.
    lab.is_thorough = false;
    lab.say();
    let before = lab.revision;
    lab.pass(Duration::from_hours(3));
    assert_eq!(lab.revision, before);
    lab.is_thorough = true;
    lab.say();
    lab.pass(Duration::from_mins(6));
    assert_eq!(lab.revision, before + 2);
}

#[test]
fn of_several_data_planes_one_that_refuses_is_enough_and_all_have_to_accept() {
    let mut acceptance = Acceptance::default();
    let lab = ready(1);
    let other = DataPlaneKey::Gateway { gateway: ObjectName::new("infra", "web"), port: Some(443) };
    let number = acceptance.draft(&lab.newest()).number;
    acceptance.published(number, &plane(), Revision::new(7).unwrap());
    acceptance.published(number, &other, Revision::new(8).unwrap());
    let at = |accepted| Some(heard(Revision::new(accepted), None));
    acceptance.hears(&plane(), at(9), &BTreeSet::new());
    assert!(acceptance.accepted.is_some(), "the other has nobody");
    let mut acceptance = Acceptance::default();
    acceptance.hears(&other, at(3), &BTreeSet::new());
    let number = acceptance.draft(&lab.newest()).number;
    acceptance.published(number, &plane(), Revision::new(7).unwrap());
    acceptance.published(number, &other, Revision::new(8).unwrap());
    acceptance.hears(&plane(), at(9), &BTreeSet::new());
    assert!(acceptance.accepted.is_none());
    acceptance.hears(&other, at(8), &BTreeSet::new());
    assert!(acceptance.accepted.is_some());
}

#[test]
fn in_any_history_what_is_found_is_what_is_poisoned() {
    let mut searches = 0;
    for seed in 0..300 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut lab = Lab::new();
        lab.is_chatty = seed % 4 == 0;
        if seed % 3 > 0 {
            for index in 0..random.random_range(1..40) {
                lab.route(&format!("r{index}"), &vec![Good; random.random_range(1..4)]);
            }
            lab.settle();
        }
        for step in 0..6 {
            let mut changed = BTreeMap::new();
            let mut removed = 0;
            let mut kept: Vec<String> = lab.routes.keys().cloned().collect();
            for _ in 0..random.random_range(1..20) {
                if random.random_bool(0.1)
                    && let Some(name) = kept.choose(&mut random).cloned()
                {
                    lab.remove(&name);
                    removed += 1;
                    kept.retain(|other| *other != name);
                    changed.remove(&name);
                    continue;
                }
                let name = format!("r{}", random.random_range(0..60));
                let rules: Vec<Rule> = (0..random.random_range(1..5))
                    .map(|_| if random.random_bool(0.06) { Poison } else { Good })
                    .collect();
                lab.route(&name, &rules);
                changed.insert(name, rules);
            }
            let had_accepted = lab.acceptance.accepted.is_some();
            let rules: usize = if had_accepted {
                changed.values().map(Vec::len).sum()
            } else {
                lab.routes.values().map(Vec::len).sum()
            };
            let guilty = changed.values().flatten().filter(|rule| **rule == Poison).count();
            // Some changes come while the search is on.
            let is_disturbed = random.random_bool(0.3);
            if is_disturbed {
                lab.publications = 0;
                for late in 0..3 {
                    lab.turn();
                    lab.route(&format!("late-{step}-{late}"), &[Good]);
                }
            }
            let publications = lab.settle();
            assert_eq!(lab.held(), lab.poisoned(), "seed {seed}\n{}", lab.log);
            assert_eq!(lab.acceptance.held_back().count(), 0);
            assert!(lab.acceptance.fault().is_none());
            if !is_disturbed && had_accepted {
                // Of each that is found after the first, the same is said, so that the one before is suspected once more.
                // Then it is tried as well whether PingSIX still takes what it took.
                let most = 1 + guilty * (halves(rules + removed) + 5);
                assert!(
                    publications <= most,
                    "seed {seed}: {publications} for {guilty} of {rules}\n{}",
                    lab.log
                );
            }
            searches += usize::from(guilty > 0);
            let OwnerSnapshot::Gateway(in_force) = &lab.in_force.as_ref().unwrap().0 else { panic!() };
            assert_eq!(in_force.http_routes.len(), lab.routes.len());
        }
    }
    assert!(searches > 300, "{searches}");
}
