//! Several replicas, of which PingSIX reads from one.

use pingsix_translate::SharedMap;
use pingsix_translate::status::{ConditionType, RouteVerdict};

use super::*;

fn web() -> ObjectKey {
    ObjectKey::new(Kind::Gateway, "infra", "web")
}

/// The report of replica `one`.
fn told(quarantines: Vec<Quarantine>) -> Quarantines {
    [("one".to_owned(), [(web(), quarantines)].into())].into()
}

fn no_quarantines() -> Quarantines {
    told(Vec::new())
}

/// The publications and quarantines of a replica without readers.
fn published(
    acceptance: &mut Acceptance,
    reported: &Quarantines,
    newest: &OwnerSnapshot,
) -> BTreeSet<Origin> {
    acceptance.apply_quarantines(&web(), reported, newest);
    let draft = acceptance.draft(newest);
    assert!(draft.trial.is_none() && draft.snapshot.differences(newest).is_empty());
    let quarantined: BTreeSet<Origin> = acceptance.quarantined().map(|(source, _)| source.clone()).collect();
    assert_eq!(quarantine(&draft.snapshot).keys().cloned().collect::<BTreeSet<_>>(), quarantined);
    quarantined
}

#[test]
fn a_quarantine_is_told_after_pingsix_has_taken_everything_else() {
    let mut simulation = ready(8);
    simulation.route("good-3", &[Good, Poison]);
    while simulation.acceptance.quarantined().next().is_none() {
        assert_eq!(simulation.acceptance.quarantines(), []);
        simulation.turn();
    }
    assert_eq!(simulation.acceptance.quarantines(), [], "PingSIX may refuse whatever it is given");
    simulation.settle();
    let quarantines = simulation.acceptance.quarantines();
    assert_eq!(quarantines.len(), 1);
    assert_eq!(quarantines[0].culprit, Culprit::Source(rule_of("good-3", 1)));
    assert_eq!(&*quarantines[0].message, "it is poison");
}

#[test]
fn a_quarantine_of_one_replica_quarantines_the_object_at_all_replicas() {
    let mut simulation = ready(8);
    let before = simulation.newest();
    simulation.route("good-3", &[Good, Poison]);
    simulation.settle();
    let (found, newest) = (told(simulation.acceptance.quarantines()), simulation.newest());
    let (mut other, guilty) = (Acceptance::default(), BTreeSet::from([rule_of("good-3", 1)]));
    assert_eq!(published(&mut other, &found, &before), BTreeSet::new(), "it has not seen that version yet");
    assert_eq!(published(&mut other, &found, &newest), guilty);
    assert_eq!(other.quarantines(), [], "it has not found it");
    assert_eq!(other.quarantined().next().unwrap().1, "it is poison");
    // The finder withdraws the quarantine.
    assert_eq!(published(&mut other, &no_quarantines(), &newest), BTreeSet::new());
    // The finder is gone, so the quarantine stays.
    assert_eq!(published(&mut other, &found, &newest), guilty);
    assert_eq!(published(&mut other, &Quarantines::new(), &newest), guilty);
    assert_eq!(told(other.quarantines()), found);
    // The object is repaired.
    simulation.route("good-3", &[Good]);
    assert_eq!(published(&mut other, &Quarantines::new(), &simulation.newest()), BTreeSet::new());
    assert_eq!(other.quarantines(), []);
}

#[test]
fn two_that_tell_each_other_keep_nothing_alive() {
    let mut simulation = ready(4);
    simulation.route("good-1", &[Poison]);
    simulation.settle();
    let (newest, mut other) = (simulation.newest(), Acceptance::default());
    assert_eq!(published(&mut other, &told(simulation.acceptance.quarantines()), &newest).len(), 1);
    // The report of the other replica has no consequence.
    let of_other: Quarantines = [("two".to_owned(), [(web(), other.quarantines())].into())].into();
    simulation.acceptance.apply_quarantines(&web(), &of_other, &newest);
    simulation.route("good-1", &[Good]);
    simulation.settle();
    assert_eq!(simulation.quarantined(), BTreeSet::new());
    assert_eq!(
        published(&mut other, &told(simulation.acceptance.quarantines()), &simulation.newest()),
        BTreeSet::new()
    );
}

#[test]
fn a_replica_searches_no_more_for_an_object_of_an_adopted_quarantine() {
    let mut simulation = ready(20);
    let mut finder = ready(20);
    for simulation in [&mut simulation, &mut finder] {
        simulation.generation = 100;
        simulation.route("good-7", &[Good, Poison]);
    }
    finder.settle();
    simulation.acceptance.apply_quarantines(
        &web(),
        &told(finder.acceptance.quarantines()),
        &simulation.newest(),
    );
    assert_eq!(simulation.settle(), 1);
    assert_eq!(simulation.quarantined(), [rule_of("good-7", 1)].into());
    assert!(simulation.acceptance.refusal().is_none() && simulation.acceptance.quarantines().is_empty());
}

#[test]
fn a_hold_of_one_replica_is_reported_by_all_and_applied_by_it_alone() {
    for is_new in [true, false] {
        let mut simulation = ready(4);
        let name = if is_new { "new" } else { "good-2" };
        simulation.route(name, &[Good, Pattern]);
        simulation.settle();
        let (found, newest) = (told(simulation.acceptance.quarantines()), simulation.newest());
        let mut other = Acceptance::default();
        assert_eq!(published(&mut other, &found, &newest), BTreeSet::new());
        assert_eq!(other.held_back().count(), 0);
        assert_eq!(other.problems(), simulation.acceptance.problems());
        let route = Arc::new(ObjectKey::new(Kind::HttpRoute, "infra", name));
        let message = |other: &Acceptance, newest: &OwnerSnapshot| {
            let OwnerSnapshot::Gateway(snapshot) = newest else { panic!() };
            let translated = pingsix_translate::translate(snapshot, &pingsix_translate::Options::default());
            let mut verdicts: SharedMap<Arc<ObjectKey>, RouteVerdict> = translated.verdicts.routes;
            other.amend(newest, &mut verdicts);
            let conditions = verdicts.get(&*route).unwrap().parents[0].conditions.clone();
            let reason = |kind| conditions.get(kind).map(|condition| condition.reason);
            (reason(ConditionType::Accepted), reason(ConditionType::PartiallyInvalid))
        };
        let expected = if is_new {
            (Some(Reason::Quarantined), None)
        } else {
            (Some(Reason::Accepted), Some(Reason::Quarantined))
        };
        assert_eq!(message(&other, &newest), expected);
        simulation.route(name, &[Good]);
        let newest = simulation.newest();
        published(&mut other, &found, &newest);
        assert_eq!((other.problems(), message(&other, &newest)), (vec![], (Some(Reason::Accepted), None)));
    }
}
