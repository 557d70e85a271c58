//! Held objects are retried.

use super::*;

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
        // The retry of each of the two is published and withdrawn.
        (lab.revision - before) / 4
    };
    assert_eq!(tries(&mut lab, Duration::from_mins(4)), 0);
    assert_eq!(tries(&mut lab, Duration::from_mins(2)), 1);
    assert_eq!(tries(&mut lab, Duration::from_mins(24)), 1);
    assert_eq!(tries(&mut lab, Duration::from_hours(12)), 13);
    assert_eq!(lab.held(), held);
    assert!(!lab.acceptance.is_retrying() && lab.acceptance.fault().is_none());
    // The cause is repaired elsewhere.
    lab.outlawed.clear();
    lab.pass(Duration::from_mins(61));
    assert_eq!(lab.held(), [rule_of("good-2", 0)].into());
    let OwnerSnapshot::Gateway(in_force) = &lab.in_force.as_ref().unwrap().0 else { panic!() };
    assert_eq!(in_force.routes.len(), 9);
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
        assert_eq!(lab.acceptance.beat(lab.now), AcceptanceOutcome::Nothing);
        assert_eq!(lab.acceptance.beat(is_due), AcceptanceOutcome::Search);
        let draft = lab.acceptance.draft(&lab.newest());
        assert!(draft.trial.is_some() && quarantine(&draft.snapshot).is_empty());
        assert!(lab.acceptance.is_retrying());
        lab.acceptance.published(draft.number, &plane(), Revision::new(100).unwrap());
        lab.revision = 100;
        if leaves {
            lab.acceptance.hears(&plane(), None, &BTreeSet::new());
            assert_eq!(lab.acceptance.beat(is_due), AcceptanceOutcome::Unanswered);
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
fn nothing_is_tried_again_when_no_page_would_say_that_it_is_still_refused() {
    let mut lab = ready(8);
    lab.route("good-2", &[Poison]);
    lab.settle();
    // There are no status pages any more.
    lab.acceptance.hears(&plane(), None, &BTreeSet::new());
    let before = lab.revision;
    lab.pass(Duration::from_hours(3));
    assert_eq!(lab.revision, before);
    lab.say();
    lab.pass(Duration::from_mins(6));
    assert_eq!(lab.revision, before + 2);
}
