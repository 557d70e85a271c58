//! Searches find the culprit.

use super::*;

#[test]
fn a_configuration_without_a_complaint_is_published_as_it_is() {
    let mut simulation = ready(3);
    simulation.route("good-1", &[Good, Good]);
    assert_eq!(simulation.settle(), 1);
    assert_eq!(simulation.quarantined(), BTreeSet::new());
}

#[test]
fn one_poisoned_rule_is_found_in_as_many_trials_as_there_are_halves() {
    for changed in [1, 2, 3, 7, 8, 64, 100] {
        for at in [0, changed / 2, changed - 1] {
            let mut simulation = ready(5);
            for index in 0..changed {
                simulation.route(&format!("new-{index:03}"), &[if index == at { Poison } else { Good }]);
            }
            // One that is refused, the trials, and one that heals. Of a single one it is tried whether it goes without it, and
            // whether it still does not with it.
            let trials = (halves(changed) + 1).max(2);
            assert!(simulation.settle() <= 2 + trials, "{changed} {at}\n{}", simulation.log);
            assert_eq!(simulation.quarantined(), simulation.poisoned());
            assert!(Simulation::poison(simulation.content.as_ref().unwrap()).is_empty());
            let OwnerSnapshot::Gateway(in_force) = &simulation.in_force.as_ref().unwrap().0 else { panic!() };
            assert_eq!(in_force.routes.len(), 5 + changed);
        }
    }
}

#[test]
fn one_rule_that_is_alone_is_left_out_and_tried_once_more() {
    let mut simulation = ready(5);
    simulation.route("good-3", &[Poison]);
    assert_eq!(simulation.settle(), 4, "{}", simulation.log);
    assert_eq!(simulation.quarantined(), [rule_of("good-3", 0)].into());
}

#[test]
fn the_object_that_pingsix_names_is_tried_first() {
    let mut simulation = ready(5);
    simulation.is_chatty = true;
    for index in 0..200 {
        simulation.route(&format!("new-{index:03}"), &[if index == 77 { Poison } else { Good }]);
    }
    // The refusal, all but what is named, everything once more, and the healing.
    assert_eq!(simulation.settle(), 4, "{}", simulation.log);
    assert_eq!(simulation.quarantined(), simulation.poisoned());
}

#[test]
fn a_poisoned_service_is_found_and_its_routes_are_not() {
    let mut simulation = ready(5);
    for index in 0..10 {
        simulation.route(&format!("new-{index}"), &[Good]);
        simulation.service(&format!("new-{index}"), Good);
    }
    assert_eq!(simulation.settle(), 1);
    for index in 0..10 {
        simulation.service(&format!("new-{index}"), if index == 4 { Poison } else { Good });
    }
    simulation.settle();
    let service = Arc::new(ObjectKey::new(Kind::Service, "infra", "new-4"));
    assert_eq!(simulation.quarantined(), [Origin { object: service, section: Section::Whole }].into());
    // The object changes.
    simulation.service("new-4", Good);
    assert_eq!(simulation.settle(), 1);
    assert_eq!(simulation.quarantined(), BTreeSet::new());
}

#[test]
fn a_service_that_comes_with_a_poisoned_rule_is_not_blamed_for_it() {
    let mut simulation = ready(5);
    simulation.service("new", Good);
    simulation.route("new", &[Good, Good, Poison, Good]);
    simulation.settle();
    assert_eq!(simulation.quarantined(), [rule_of("new", 2)].into(), "{}", simulation.log);
    simulation.acceptance = Acceptance::default();
    (simulation.refused, simulation.in_force) = (None, None);
    simulation.settle();
    assert_eq!(simulation.quarantined(), [rule_of("new", 2)].into(), "{}", simulation.log);
}

#[test]
fn a_problem_in_what_is_matched_holds_the_route_back_as_it_was() {
    for is_new in [false, true] {
        let mut simulation = ready(5);
        let name = if is_new { "new" } else { "good-2" };
        simulation.route("good-1", &[Good]);
        simulation.route(name, &[Good, Pattern]);
        simulation.settle();
        assert_eq!(simulation.quarantined(), BTreeSet::new());
        let quarantined: Vec<&ObjectKey> = simulation.acceptance.held_back().map(|(part, _)| part).collect();
        assert_eq!(quarantined, [&ObjectKey::new(Kind::HttpRoute, "infra", name)], "{}", simulation.log);
        let OwnerSnapshot::Gateway(in_force) = &simulation.in_force.as_ref().unwrap().0 else { panic!() };
        assert_eq!(in_force.routes.contains_key(&ObjectKey::new(Kind::HttpRoute, "infra", name)), !is_new);
        assert_eq!(simulation.acceptance.problems()[0].reason, Reason::Quarantined);
        // A change causes a retry.
        simulation.route(name, &[Good, Good]);
        assert_eq!(simulation.settle(), 1);
        assert_eq!(simulation.acceptance.held_back().count(), 0);
    }
}

#[test]
fn a_quarantined_route_is_tried_again_only_by_a_change_of_its_own() {
    let mut simulation = ready(20);
    simulation.route("good-3", &[Good, Poison]);
    simulation.settle();
    assert_eq!(simulation.quarantined(), [rule_of("good-3", 1)].into());
    // Changes of other objects cause no retry.
    simulation.route("good-4", &[Good]);
    assert_eq!(simulation.settle(), 1);
    assert_eq!(simulation.quarantined(), [rule_of("good-3", 1)].into());
    // Still poisoned: nothing else is suspected.
    simulation.route("good-3", &[Poison, Good]);
    assert!(simulation.settle() <= 5, "{}", simulation.log);
    assert_eq!(simulation.quarantined(), [rule_of("good-3", 0)].into());
    simulation.route("good-3", &[Good]);
    assert_eq!(simulation.settle(), 1);
    assert_eq!(simulation.quarantined(), BTreeSet::new());
    simulation.route("good-5", &[Poison]);
    simulation.settle();
    simulation.remove("good-5");
    assert_eq!(simulation.settle(), 1);
    assert_eq!(simulation.quarantined(), BTreeSet::new());
}

#[test]
fn a_pingsix_that_refuses_everything_puts_nothing_into_quarantine() {
    for is_new in [true, false] {
        let mut simulation = if is_new { Simulation::new() } else { ready(8) };
        for index in 0..8 {
            simulation.route(&format!("good-{index}"), &[Good]);
        }
        simulation.is_broken = true;
        simulation.settle();
        assert_eq!(simulation.quarantined(), BTreeSet::new(), "{}", simulation.log);
        assert_eq!(simulation.acceptance.held_back().count(), 0);
        assert!(simulation.acceptance.refusal().is_some());
        // The search continues as soon as possible.
        simulation.is_broken = false;
        simulation.settle();
        assert!(simulation.acceptance.refusal().is_none());
        let OwnerSnapshot::Gateway(in_force) = &simulation.in_force.as_ref().unwrap().0 else { panic!() };
        assert_eq!(in_force.routes.len(), 8);
    }
}

#[test]
fn a_controller_that_starts_beside_poison_finds_it_too() {
    for kind in [Poison, Pattern] {
        let mut simulation = ready(30);
        simulation.route("good-11", &[Good, kind]);
        simulation.settle();
        simulation.acceptance = Acceptance::default();
        simulation.refused = None;
        simulation.in_force = None;
        simulation.settle();
        let found: Vec<_> = simulation.acceptance.held_back().map(|(part, _)| part.clone()).collect();
        if kind == Poison {
            assert_eq!(
                (simulation.quarantined(), found.len()),
                (simulation.poisoned(), 0),
                "{}",
                simulation.log
            );
        } else {
            assert_eq!((simulation.quarantined().len(), found.len()), (0, 1), "{}", simulation.log);
        }
        assert!(simulation.acceptance.refusal().is_none());
    }
}
