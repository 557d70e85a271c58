//! The reports of instances, and their silence.

use super::*;

fn reception_of(accepted: Option<Revision>, refused: Option<(Revision, Arc<str>)>) -> Reception {
    Reception { accepted, refused }
}

#[test]
fn instances_that_go_delay_no_search_and_new_instances_decide() {
    for comes_back in [true, false] {
        let mut simulation = ready(8);
        for index in 0..8 {
            simulation.route(&format!("new-{index}"), &[if index == 5 { Poison } else { Good }]);
        }
        assert_eq!(simulation.turn(), AcceptanceOutcome::Search);
        let draft = simulation.acceptance.draft(&simulation.newest());
        simulation.acceptance.published(draft.number, &plane(), Revision::new(100).unwrap());
        simulation.revision = 100;
        // A short absence of all instances has no consequence.
        assert_eq!(
            simulation.acceptance.record_reception(&plane(), None, &BTreeSet::new()),
            AcceptanceOutcome::Nothing
        );
        for second in 0..UNCONNECTED_TIMEOUT.as_secs() {
            assert_eq!(
                simulation.acceptance.tick(simulation.now + Duration::from_secs(second)),
                AcceptanceOutcome::Nothing
            );
        }
        assert_eq!(simulation.acceptance.draft(&simulation.newest()).number, draft.number);
        simulation.route("late", &[Good]);
        if comes_back {
            // Another is there, which has read what is published for the trial.
            simulation.content = Some(draft.snapshot);
            simulation.look();
            assert_ne!(simulation.say(), AcceptanceOutcome::Nothing);
        } else {
            // The instances read elsewhere: a new one gets the present documents.
            assert_eq!(
                simulation.acceptance.tick(simulation.now + UNCONNECTED_TIMEOUT),
                AcceptanceOutcome::Unanswered
            );
            let draft = simulation.acceptance.draft(&simulation.newest());
            assert_eq!(draft.trial, None);
            let OwnerSnapshot::Gateway(snapshot) = &draft.snapshot else { panic!() };
            assert_eq!(snapshot.routes.len(), 17);
            assert!(snapshot.referents.quarantine.is_empty() && simulation.acceptance.refusal().is_none());
            for second in 0..100 {
                assert_eq!(
                    simulation.acceptance.tick(simulation.now + Duration::from_secs(20 + second)),
                    AcceptanceOutcome::Nothing
                );
            }
        }
        simulation.settle();
        assert_eq!(simulation.quarantined(), simulation.poisoned(), "what is refused is searched for again");
    }
}

#[test]
fn an_instance_without_a_report_on_a_trial_does_not_stop_the_search() {
    let mut simulation = ready(8);
    simulation.route("good-3", &[Poison]);
    assert_eq!(simulation.turn(), AcceptanceOutcome::Search);
    simulation.is_paused = true;
    let draft = simulation.acceptance.draft(&simulation.newest());
    assert!(draft.trial.is_some());
    simulation.acceptance.tick(simulation.now);
    assert_eq!(
        simulation.acceptance.tick(simulation.now + CONFIRMATION_TIMEOUT / 2),
        AcceptanceOutcome::Nothing
    );
    assert_eq!(
        simulation.acceptance.tick(simulation.now + CONFIRMATION_TIMEOUT),
        AcceptanceOutcome::Unanswered
    );
    assert_eq!(simulation.acceptance.draft(&simulation.newest()).trial, None);
}

#[test]
fn a_refusal_of_accepted_content_convicts_no_object() {
    for rounds in 1..6 {
        for added in [1, 8] {
            for is_new in [false, true] {
                let mut simulation = if is_new { Simulation::new() } else { ready(8) };
                for index in 0..added {
                    simulation.route(&format!("new-{index}"), &[Good]);
                }
                // An instance reports refusals of all content for a while, though PingSIX takes it.
                for _ in 0..rounds {
                    let draft = simulation.acceptance.draft(&simulation.newest());
                    simulation.revision += 1;
                    let revision = Revision::new(simulation.revision).unwrap();
                    simulation.acceptance.published(draft.number, &plane(), revision);
                    let refused = Some(reception_of(None, Some((revision, "no".into()))));
                    simulation.acceptance.record_reception(&plane(), refused, &BTreeSet::new());
                }
                simulation.content = None;
                simulation.forgive();
                simulation.settle();
                simulation.pass(Duration::from_mins(30));
                assert_eq!(
                    simulation.quarantined(),
                    BTreeSet::new(),
                    "{rounds} {added} {is_new}\n{}",
                    simulation.log
                );
                assert_eq!(simulation.acceptance.held_back().count(), 0);
                assert!(simulation.acceptance.refusal().is_none());
            }
        }
    }
}

#[test]
fn mistaken_reports_hold_no_object_for_good_except_the_faulty_ones() {
    let mut mistakes = 0;
    for seed in 0..100 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut simulation = ready(6);
        for index in 0..random.random_range(1..12) {
            simulation
                .route(&format!("new-{index}"), &[if random.random_bool(0.15) { Poison } else { Good }]);
        }
        simulation.forgive();
        for _ in 0..12 {
            let draft = simulation.acceptance.draft(&simulation.newest());
            simulation.revision += 1;
            simulation.content = Some(draft.snapshot.clone());
            let revision = Revision::new(simulation.revision).unwrap();
            simulation.acceptance.published(draft.number, &plane(), revision);
            simulation.look();
            if random.random_bool(0.4) {
                // The content in force at PingSIX equals the report, or no report exists.
                let in_force =
                    simulation.in_force.as_ref().and_then(|(_, revision)| Revision::new(*revision));
                let accepted = in_force.filter(|accepted| *accepted < revision);
                let refused = Some((revision, "no".into()));
                simulation.acceptance.record_reception(
                    &plane(),
                    Some(reception_of(accepted, refused)),
                    &BTreeSet::new(),
                );
                mistakes += 1;
            } else {
                simulation.say();
            }
        }
        simulation.content = None;
        simulation.settle();
        simulation.pass(Duration::from_hours(4));
        // Of one that is at fault, more may be held than has to be.
        let objects = |sources: BTreeSet<Origin>| -> BTreeSet<ObjectKey> {
            sources.iter().map(|source| (*source.object).clone()).collect()
        };
        let mut quarantined = objects(simulation.quarantined());
        quarantined.extend(simulation.acceptance.held_back().map(|(part, _)| part.clone()));
        assert_eq!(quarantined, objects(simulation.poisoned()), "seed {seed}\n{}", simulation.log);
        assert!(simulation.acceptance.refusal().is_none());
    }
    assert!(mistakes > 300, "{mistakes}");
}

#[test]
fn a_paused_instance_delays_a_search_no_longer_than_its_pause() {
    for pauses_at in 1..6 {
        let mut simulation = ready(4);
        for index in 0..16 {
            simulation.route(&format!("new-{index:02}"), &[if index == 3 { Poison } else { Good }]);
        }
        simulation.forgive();
        for turn in 0..=pauses_at {
            simulation.is_paused = turn == pauses_at;
            simulation.turn();
        }
        simulation.is_paused = false;
        simulation.settle();
        assert_eq!(simulation.quarantined(), simulation.poisoned(), "{pauses_at}\n{}", simulation.log);
        assert!(simulation.acceptance.refusal().is_none());
    }
}

#[test]
fn an_accepted_object_that_a_later_pingsix_refuses_is_found_in_the_end() {
    let mut simulation = ready(8);
    simulation.outlawed.insert("good-5".to_owned());
    simulation.route("new", &[Good]);
    simulation.forgive();
    simulation.settle();
    assert!(
        simulation.acceptance.refusal().is_some() && simulation.quarantined().is_empty(),
        "it may be broken"
    );
    simulation.pass(Duration::from_mins(6));
    assert_eq!(simulation.quarantined(), [rule_of("good-5", 0)].into(), "{}", simulation.log);
    assert!(simulation.acceptance.refusal().is_none());
}

#[test]
fn one_data_plane_is_enough_to_refuse_and_all_are_needed_to_accept() {
    let mut acceptance = Acceptance::default();
    let simulation = ready(1);
    let other = DataPlaneKey::Gateway { gateway: ObjectName::new("infra", "web"), port: Some(443) };
    let number = acceptance.draft(&simulation.newest()).number;
    acceptance.published(number, &plane(), Revision::new(7).unwrap());
    acceptance.published(number, &other, Revision::new(8).unwrap());
    let at = |accepted| Some(reception_of(Revision::new(accepted), None));
    acceptance.record_reception(&plane(), at(9), &BTreeSet::new());
    assert!(acceptance.accepted.is_some(), "the other has nobody");
    let mut acceptance = Acceptance::default();
    acceptance.record_reception(&other, at(3), &BTreeSet::new());
    let number = acceptance.draft(&simulation.newest()).number;
    acceptance.published(number, &plane(), Revision::new(7).unwrap());
    acceptance.published(number, &other, Revision::new(8).unwrap());
    acceptance.record_reception(&plane(), at(9), &BTreeSet::new());
    assert!(acceptance.accepted.is_none());
    acceptance.record_reception(&other, at(8), &BTreeSet::new());
    assert!(acceptance.accepted.is_some());
}
