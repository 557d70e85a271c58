//! Held objects are retried.

use super::*;

#[test]
fn a_held_object_is_retried_ever_later_and_released_when_it_is_accepted() {
    let mut simulation = ready(8);
    simulation.outlawed.insert("new".to_owned());
    simulation.route("new", &[Good]);
    simulation.route("good-2", &[Poison]);
    simulation.forgive();
    simulation.settle();
    let quarantined = BTreeSet::from([rule_of("good-2", 0), rule_of("new", 0)]);
    assert_eq!(simulation.quarantined(), quarantined);
    let tries = |simulation: &mut Simulation, time: Duration| {
        let before = simulation.revision;
        simulation.pass(time);
        // The retry of each of the two is published and withdrawn.
        (simulation.revision - before) / 4
    };
    assert_eq!(tries(&mut simulation, Duration::from_mins(4)), 0);
    assert_eq!(tries(&mut simulation, Duration::from_mins(2)), 1);
    assert_eq!(tries(&mut simulation, Duration::from_mins(24)), 1);
    assert_eq!(tries(&mut simulation, Duration::from_hours(12)), 13);
    assert_eq!(simulation.quarantined(), quarantined);
    assert!(!simulation.acceptance.is_retrying() && simulation.acceptance.refusal().is_none());
    // The cause is repaired elsewhere.
    simulation.outlawed.clear();
    simulation.pass(Duration::from_mins(61));
    assert_eq!(simulation.quarantined(), [rule_of("good-2", 0)].into());
    let OwnerSnapshot::Gateway(in_force) = &simulation.in_force.as_ref().unwrap().0 else { panic!() };
    assert_eq!(in_force.routes.len(), 9);
}

#[test]
fn an_object_that_is_held_back_is_tried_again_too() {
    let mut simulation = ready(4);
    simulation.route("good-1", &[Pattern]);
    simulation.settle();
    assert_eq!(simulation.acceptance.held_back().count(), 1);
    let before = simulation.revision;
    simulation.pass(Duration::from_mins(6));
    assert_eq!((simulation.revision - before, simulation.acceptance.held_back().count()), (2, 1));
}

#[test]
fn a_retry_ends_with_any_change_and_without_instances() {
    for leaves in [false, true] {
        let mut simulation = ready(8);
        simulation.route("good-2", &[Poison]);
        simulation.settle();
        let is_due = simulation.now + Duration::from_mins(6);
        assert_eq!(simulation.acceptance.tick(simulation.now), AcceptanceOutcome::Nothing);
        assert_eq!(simulation.acceptance.tick(is_due), AcceptanceOutcome::Search);
        let draft = simulation.acceptance.draft(&simulation.newest());
        assert!(draft.trial.is_some() && quarantine(&draft.snapshot).is_empty());
        assert!(simulation.acceptance.is_retrying());
        simulation.acceptance.published(draft.number, &plane(), Revision::new(100).unwrap());
        simulation.revision = 100;
        if leaves {
            simulation.acceptance.record_reception(&plane(), None, &BTreeSet::new());
            assert_eq!(simulation.acceptance.tick(is_due), AcceptanceOutcome::Unanswered);
        } else {
            simulation.route("late", &[Good]);
        }
        let draft = simulation.acceptance.draft(&simulation.newest());
        assert_eq!((draft.trial, simulation.acceptance.is_retrying()), (None, leaves));
        assert_eq!(quarantine(&draft.snapshot).len(), 1);
        simulation.settle();
        assert_eq!(simulation.quarantined(), simulation.poisoned());
        assert!(simulation.acceptance.refusal().is_none());
    }
}

#[test]
fn a_held_object_is_not_retried_while_no_status_page_could_refuse_it() {
    let mut simulation = ready(8);
    simulation.route("good-2", &[Poison]);
    simulation.settle();
    // There are no status pages any more.
    simulation.acceptance.record_reception(&plane(), None, &BTreeSet::new());
    let before = simulation.revision;
    simulation.pass(Duration::from_hours(3));
    assert_eq!(simulation.revision, before);
    simulation.say();
    simulation.pass(Duration::from_mins(6));
    assert_eq!(simulation.revision, before + 2);
}
