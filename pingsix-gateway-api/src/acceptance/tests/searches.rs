//! Searches find the culprit.

use super::*;

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
            assert_eq!(in_force.routes.len(), 5 + changed);
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
    // The object changes.
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
        assert_eq!(in_force.routes.contains_key(&ObjectKey::new(Kind::HttpRoute, "infra", name)), !is_new);
        assert_eq!(lab.acceptance.problems()[0].reason, Reason::Quarantined);
        // A change causes a retry.
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
    // Changes of other objects cause no retry.
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
        // The search continues as soon as possible.
        lab.is_broken = false;
        lab.settle();
        assert!(lab.acceptance.fault().is_none());
        let OwnerSnapshot::Gateway(in_force) = &lab.in_force.as_ref().unwrap().0 else { panic!() };
        assert_eq!(in_force.routes.len(), 8);
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
