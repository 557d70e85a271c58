//! The room that a share leaves to other namespaces.

use pingsix_translate::status::Severity;

use super::*;

fn within(objects: &Objects, options: &Options) -> Translation {
    translate(&objects.snapshot(&ObjectName::new("infra", "gateway")).unwrap(), options)
}

#[test]
fn rules_within_a_share_are_served_beside_older_objects_of_others() {
    let (own, others) =
        (["one.a.test", "two.a.test", "three.test"], ["one.b.test", "*.b.test", "x.one.b.test"]);
    let (mut served, mut exhausted) = (0, 0);
    for seed in 0..150 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut alone = world();
        add_random(&mut rng, &mut alone, "a", 2010..2020, &own);
        let mut objects = alone.clone();
        add_random(&mut rng, &mut objects, "b", 2000..2010, &others);
        for number in 0..rng.random_range(1..40) {
            let name = format!("more-{number}");
            add_route(&mut objects, ("b", &name, 2000), &[format!("{name}.test")], &any_path());
        }
        let requests = random_requests(&mut rng, &alone);
        let budget = scarce(&mut rng, &run(&objects, Budget::default()));
        let options = Options { namespace_share: rng.random_range(20..=50), ..options(budget) };
        let (before, after) = (within(&alone, &options), within(&objects, &options));
        let size = plane(&after).size;
        assert!(size.bytes <= budget.bytes && size.matcher_entries <= budget.matcher_entries, "seed {seed}");
        exhausted += usize::from(refused(&after).iter().any(|object| object.contains(" b/")));
        for (request, (before, after)) in
            requests.iter().zip(answers(&before, &requests).into_iter().zip(answers(&after, &requests)))
        {
            if before == "a" {
                assert_eq!(after, "a", "seed {seed}, {options:?}: {request:?}");
                served += 1;
            }
        }
    }
    assert!(served > 500 && exhausted > 75, "{served} {exhausted}");
}

#[test]
fn certificates_count_for_a_share_and_leave_those_of_others() {
    let mut objects = world();
    add_secret(&mut objects, "b", "large.example.com", 0);
    for number in 0..40 {
        let hosts: Vec<String> = (0..30).map(|host| format!("h{host}-{number}.b.test")).collect();
        add_tls(&mut objects, ("b", &format!("r{number}"), 2000), "large.example.com", &hosts);
    }
    add_secret(&mut objects, "a", "shop.example.com", 0);
    add_tls(&mut objects, ("a", "shop", 2020), "shop.example.com", &["shop.example.com".to_owned()]);
    let budget = Budget { bytes: 24_000, ..Budget::default() };
    let without = run_ingress(&objects, budget);
    assert!(!server_names(&without).contains("shop.example.com"), "the older ones use up the budget");
    let options = Options { namespace_share: 50, ..options(budget) };
    let translation = translate_ingress(&objects.ingress_snapshot("pingsix").unwrap(), &options);
    assert!(server_names(&translation).contains("shop.example.com"));
    assert_eq!(get(plane(&translation), "shop.example.com", "/"), "a");
    assert!(refused(&translation).iter().all(|object| object.starts_with("Ingress b/")));
    let certificates =
        server_names(&translation).into_iter().filter(|name| name.ends_with(".b.test")).count();
    assert!((30..1_000).contains(&certificates), "{certificates}");
}

#[test]
fn a_namespace_is_told_how_much_of_its_share_it_uses_from_four_fifths_on() {
    let budget = Budget { bytes: 100_000, ..Budget::default() };
    let options = Options { namespace_share: 10, ..options(budget) };
    let (mut warned, mut refused_one) = (Vec::new(), false);
    let mut objects = world();
    let mut translator = Translator::new(options.clone());
    for number in 0..60_u16 {
        let name = format!("r{number:02}");
        add_route(&mut objects, ("a", &name, 2000 + number), &[format!("{name}.test")], &any_path());
        let translation = within(&objects, &options);
        let snapshot = objects.snapshot(&ObjectName::new("infra", "gateway")).unwrap();
        assert!(translator.translate(&snapshot).verdicts == translation.verdicts, "{number}");
        let problems = &translation.verdicts.problems;
        let warnings: Vec<_> =
            problems.iter().filter(|problem| problem.reason == Reason::ShareNearlyUsed).collect();
        assert!(warnings.len() <= 1 && warnings.iter().all(|warning| warning.severity == Severity::Warning));
        refused_one |= !refused(&translation).is_empty();
        if let Some(warning) = warnings.first() {
            assert!(refused_one || warning.object.name.name.as_ref() == name, "{warning}");
            let percent = warning.message.split_once(" % of").unwrap().0.rsplit_once(' ').unwrap().1;
            warned.push(percent.parse::<usize>().unwrap());
        } else {
            assert!(!refused_one, "{number}");
        }
    }
    assert!(refused_one && warned.is_sorted() && (80..85).contains(&warned[0]), "{warned:?}");
    assert!(*warned.last().unwrap() <= 100);
}
