//! A controller that starts, with the statuses of an earlier one.

use super::*;

/// Another controller takes over; PingSIX keeps its content, and the statuses stay.
fn restart(simulation: &mut Simulation, refused: &[&str]) {
    simulation.recalled = refused.iter().map(|name| (*name).to_owned()).collect();
    let keys = |names: &mut dyn Iterator<Item = &str>| -> BTreeSet<ObjectKey> {
        names.map(|name| ObjectKey::new(Kind::HttpRoute, "infra", name)).collect()
    };
    simulation.acceptance = Acceptance::default();
    assert!(simulation.acceptance.is_new());
    simulation.acceptance.set_prior_statuses(PriorStatuses {
        refused: keys(&mut refused.iter().copied()),
        unjudged: keys(&mut simulation.unjudged.iter().map(String::as_str)),
    });
}

#[test]
fn an_object_refused_before_a_restart_costs_no_other_an_answer_after_it() {
    for kind in [Poison, Pattern] {
        for is_still_poison in [true, false] {
            let mut simulation = ready(30);
            simulation.route("good-11", &[Good, kind]);
            simulation.settle();
            if !is_still_poison {
                // As when our own mistake is mended in the next release.
                simulation.route("good-11", &[Good, Good]);
            }
            restart(&mut simulation, &["good-11"]);
            let publications = simulation.settle();
            assert!(
                publications <= if is_still_poison { 10 } else { 1 },
                "{publications}\n{}",
                simulation.log
            );
            let back = simulation.acceptance.held_back().count();
            assert_eq!(
                (simulation.quarantined(), back),
                (simulation.poisoned(), usize::from(kind == Pattern && is_still_poison))
            );
            assert!(simulation.acceptance.refusal().is_none());
        }
    }
}

#[test]
fn poison_added_without_a_controller_costs_earlier_objects_nothing() {
    for kind in [Poison, Pattern] {
        for was_refused in [false, true] {
            let mut simulation = ready(30);
            if was_refused {
                simulation.route("good-4", &[Poison]);
                simulation.settle();
            }
            for index in 0..6 {
                let name = format!("new-{index}");
                simulation.route(&name, &[if index == 3 { kind } else { Good }]);
                simulation.unjudged.insert(name);
            }
            restart(&mut simulation, if was_refused { &["good-4"] } else { &[] });
            simulation.settle();
            let back = simulation.acceptance.held_back().count();
            assert_eq!(
                (simulation.quarantined(), back),
                (simulation.poisoned(), usize::from(kind == Pattern)),
                "{}",
                simulation.log
            );
            assert!(simulation.acceptance.refusal().is_none());
        }
    }
}

#[test]
fn a_recollection_that_misleads_does_not_hide_the_culprit() {
    for kind in [Poison, Pattern] {
        let mut simulation = ready(12);
        simulation.route("good-7", &[kind]);
        simulation.unjudged.insert("good-2".to_owned());
        restart(&mut simulation, &["good-5"]);
        (simulation.in_force, simulation.refused) = (None, None);
        simulation.settle();
        let back = simulation.acceptance.held_back().count();
        assert_eq!(
            (simulation.quarantined(), back),
            (simulation.poisoned(), usize::from(kind == Pattern)),
            "{}",
            simulation.log
        );
    }
}

#[test]
fn objects_that_pingsix_names_one_by_one_cost_no_other_object_an_answer() {
    let mut simulation = ready(40);
    simulation.is_chatty = true;
    for index in [3, 17, 31] {
        simulation.route(&format!("good-{index}"), &[Poison]);
    }
    restart(&mut simulation, &[]);
    simulation.settle();
    assert_eq!(simulation.quarantined(), simulation.poisoned(), "{}", simulation.log);
}
