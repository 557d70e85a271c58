//! A controller that starts, from what was said before it.

use super::*;

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
