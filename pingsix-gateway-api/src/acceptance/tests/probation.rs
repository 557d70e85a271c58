//! An author who changes faulty objects faster than a search ends.

use super::*;

/// The time of PingSIX for the verdict on a publication.
const VERDICT_TIME: Duration = Duration::from_millis(500);

/// A namespace that publishes poison in all the ways there are, and one that goes on with its work.
struct Siege {
    simulation: Simulation,
    /// The last change of the other namespace, if it is not in force yet: its generation, and how long ago it was.
    pending: Option<(i64, usize)>,
    /// The number of turns of the slowest change.
    slowest: usize,
    turns: usize,
    searching: usize,
}

impl Siege {
    fn new() -> Self {
        let mut simulation = ready(3);
        simulation.remembers = true;
        Self { simulation, pending: None, slowest: 0, turns: 0, searching: 0 }
    }

    fn change(&mut self) {
        self.simulation.route("good-0", &[Good]);
        self.pending.get_or_insert((self.simulation.generation, 0));
    }

    fn turn(&mut self) {
        self.simulation.turn();
        self.simulation.now += VERDICT_TIME;
        self.turns += 1;
        self.searching += usize::from(self.simulation.acceptance.search.is_some());
        if self.turns.is_multiple_of(10) {
            self.simulation.acceptance.tick(self.simulation.now);
        }
        if let Some((generation, turns)) = &mut self.pending {
            *turns += 1;
            let is_there = in_force(&self.simulation, "infra", "good-0").is_some_and(|it| it >= *generation);
            self.slowest = self.slowest.max(*turns);
            if is_there {
                self.pending = None;
            }
        }
    }
}

/// The generation of a route that is in force.
fn in_force(simulation: &Simulation, namespace: &str, name: &str) -> Option<i64> {
    let OwnerSnapshot::Gateway(snapshot) = &simulation.in_force.as_ref()?.0 else {
        panic!("it is a Gateway's")
    };
    let route = http_route(snapshot, &ObjectKey::new(Kind::HttpRoute, namespace, name))?;
    let rule = route.spec().rules?.first()?.clone();
    let path = rule.matches?.first()?.path.as_ref()?.value.clone()?;
    path.rsplit('/').next()?.parse().ok()
}

#[test]
fn a_namespace_that_changes_objects_faster_than_a_search_delays_no_other() {
    for seed in 0..8 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut siege = Siege::new();
        siege.simulation.is_chatty = seed % 3 == 0;
        for turn in 0..1_200 {
            let fresh = format!("evil-{turn}");
            let name = match seed % 4 {
                // The same object, one of a few, or another one each time.
                0 => "evil",
                1 => *["evil", "bad", "worse"].choose(&mut random).unwrap(),
                2 => &fresh,
                _ => *["evil", fresh.as_str()].choose(&mut random).unwrap(),
            };
            let rules: Vec<Rule> =
                (0..3).map(|_| if random.random_bool(0.6) { Poison } else { Good }).collect();
            if random.random_bool(0.8) {
                siege.simulation.route_in("mallory", name, &rules);
            }
            if turn % 20 == 0 {
                siege.change();
            }
            siege.turn();
        }
        assert!(siege.slowest <= 40, "seed {seed}: {} turns\n{}", siege.slowest, siege.simulation.log);
        assert!(siege.searching * 4 < siege.turns, "seed {seed}: {} of {}", siege.searching, siege.turns);
        let problems = siege.simulation.acceptance.problems();
        let waiting = problems.iter().filter(|problem| &*problem.object.name.namespace == "mallory");
        assert!(waiting.count() > 0, "seed {seed}: nobody is told");
    }
}

#[test]
fn a_mended_object_is_tried_at_once_and_probation_leaves_no_record() {
    let mut siege = Siege::new();
    for _ in 0..3 {
        siege.simulation.route_in("mallory", "evil", &[Poison]);
        siege.simulation.settle();
        siege.simulation.route_in("mallory", "evil", &[Good]);
        siege.simulation.settle();
        assert_eq!(in_force(&siege.simulation, "mallory", "evil"), Some(siege.simulation.generation));
    }
    siege.simulation.route_in("mallory", "evil", &[Poison]);
    siege.simulation.settle();
    siege.simulation.route_in("mallory", "evil", &[Good]);
    siege.simulation.route_in("mallory", "new", &[Good]);
    siege.simulation.route("good-0", &[Good]);
    let generation = siege.simulation.generation;
    siege.simulation.settle();
    assert_eq!(in_force(&siege.simulation, "infra", "good-0"), Some(generation), "others do not wait");
    assert_eq!(in_force(&siege.simulation, "mallory", "new"), None, "it waits");
    siege.simulation.pass(Duration::from_secs(20));
    assert_eq!(in_force(&siege.simulation, "mallory", "new"), Some(generation - 1), "no longer");
    assert_eq!(siege.simulation.acceptance.problems(), []);
    siege.simulation.pass(Duration::from_mins(11));
    assert!(siege.simulation.acceptance.records.is_empty());
}

#[test]
fn an_author_of_refused_policies_delays_no_other_and_opens_no_route() {
    for seed in 0..4 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut siege = Siege::new();
        siege.simulation.route_in("mallory", "mine", &[Good]);
        siege.simulation.settle();
        for turn in 0..1_200 {
            let name = if seed % 2 == 0 { "poison".to_owned() } else { format!("poison-{turn}") };
            if random.random_bool(0.8) {
                siege.simulation.policy_in("mallory", &name, "mine");
            }
            if turn % 20 == 0 {
                siege.change();
            }
            siege.turn();
        }
        assert!(siege.slowest <= 40, "seed {seed}: {} turns\n{}", siege.slowest, siege.simulation.log);
        assert!(siege.searching * 4 < siege.turns, "seed {seed}: {} of {}", siege.searching, siege.turns);

        let newest = siege.simulation.newest();
        let draft = siege.simulation.acceptance.draft(&newest).snapshot;
        for key in newest.policies().keys() {
            let object = Arc::new(key.clone());
            let source = Origin { object, section: Section::Whole };
            let is_closed = quarantine(&draft).contains_key(&source);
            assert!(draft.policies().contains_key(key) && is_closed, "seed {seed}: {key}");
        }
    }
}
