//! Routes beyond the budget.

use super::*;

/// [`world`] with a TLSRoute per year for a name each, the older ones with later names, and one for all of them.
fn crowd() -> Objects {
    let mut objects = world();
    for year in 2010..2020 {
        let on = json!({
            "parentRefs": [{"name": "public", "sectionName": "any"}],
            "hostnames": [format!("h{}.test", 2020 - year)],
        });
        add(&mut objects, Kind::TlsRoute, (&format!("r{year}"), year), backend("web", 80), on);
    }
    let on = json!({"parentRefs": [{"name": "public", "sectionName": "any"}], "hostnames": ["*.test"]});
    add(&mut objects, Kind::TlsRoute, ("everything", 2000), backend("dns", 53), on);
    objects
}

#[test]
fn over_budget_the_youngest_routes_are_refused_and_named() {
    let objects = crowd();
    let whole = translate(&objects).1.size;
    assert_eq!(whole.matcher_entries, 12, "ten names, all the others, and a guard");
    for budget in [
        Budget { matcher_entries: 7, ..Budget::default() },
        // Each route with a name of its own takes as many bytes, and the five youngest have nothing else.
        Budget {
            bytes: whole.bytes - 4 * (whole.bytes - size_without(&objects, "r2019").bytes) - 1,
            ..Budget::default()
        },
    ] {
        let (translation, plane) = translate_within(&objects, budget);
        assert_eq!(plane.size.matcher_entries, 7, "{budget:?}");
        assert!(plane.size.bytes <= budget.bytes);
        for (name, expected) in [
            ("everything", "True Accepted"),
            ("r2010", "True Accepted"),
            ("r2014", "True Accepted"),
            ("r2015", "False UnsupportedValue"),
            ("r2019", "False UnsupportedValue"),
        ] {
            let accepted = condition(&translation, Kind::TlsRoute, name, ConditionType::Accepted);
            assert_eq!(accepted, expected, "{name}");
        }
        let named: Vec<String> = translation
            .verdicts
            .problems
            .iter()
            .filter(|problem| problem.reason == Reason::BudgetExceeded)
            .map(|problem| format!("{} {}", problem.object, problem.field))
            .collect();
        let expected: Vec<String> =
            (2015..2020).map(|year| format!("TLSRoute infra/r{year} spec.rules[0]")).collect();
        assert_eq!(named, expected);
        // Refused routes are absent; guards stay.
        assert_eq!(targets_of(&plane.config, 443, Arrival::Tls("h6.test")), one("10.0.0.1:8080"));
        assert_eq!(targets_of(&plane.config, 443, Arrival::Tls("h5.test")), one("[fd00::1]:5353"));
        assert_eq!(targets_of(&plane.config, 443, Arrival::Tls("x.a.test")), one("no_route"));
        let any = &translation.verdicts.gateway.as_ref().unwrap().listeners[2];
        assert_eq!(any.attached_routes, 6);
    }
}

/// The size of the stream documents without a TLSRoute.
fn size_without(objects: &Objects, name: &str) -> Size {
    let mut others = objects.clone();
    let on = json!({"parentRefs": [{"name": "elsewhere"}], "hostnames": ["a.test"]});
    add(&mut others, Kind::TlsRoute, (name, 2019), backend("web", 80), on);
    translate(&others).1.size
}

#[test]
fn a_budget_for_nothing_leaves_the_guards() {
    let (translation, plane) = translate_within(&crowd(), Budget { bytes: 0, matcher_entries: 0 });
    assert_eq!(plane.config.len(), 1);
    assert_eq!(targets_of(&plane.config, 443, Arrival::Tls("x.a.test")), one("no_route"));
    let everything = condition(&translation, Kind::TlsRoute, "everything", ConditionType::Accepted);
    assert_eq!(everything, "False UnsupportedValue");
}

#[test]
fn rules_within_a_share_are_admitted_beside_older_ones() {
    // The crowd is of namespace infra; a younger route of another namespace asks for a name of its own.
    let mut objects = crowd();
    let mut open = serde_json::to_value(&**objects.gateways().next().unwrap().1).unwrap();
    for listener in open["spec"]["listeners"].as_array_mut().unwrap() {
        listener["allowedRoutes"] = json!({"namespaces": {"from": "All"}});
    }
    objects.insert(Object::Gateway(object(open)));
    objects.insert(Object::TlsRoute(object(json!({
        "metadata": {"namespace": "shop", "name": "young", "creationTimestamp": "2024-01-01T00:00:00Z"},
        "spec": {
            "parentRefs": [{"name": "public", "namespace": "infra", "sectionName": "any"}],
            "hostnames": ["young.other"], "rules": [{"backendRefs": backend("web", 80)}],
        },
    }))));
    let told = |namespace_share: u8| -> Vec<String> {
        // A guard leaves eleven.
        let budget = Budget { matcher_entries: 12, ..Budget::default() };
        let options = Options { budget, namespace_share, stream: true, ..Options::default() };
        let problems = run(&objects, &options).verdicts.problems;
        let reasons = [Reason::BudgetExceeded, Reason::ShareExceeded, Reason::ShareNearlyUsed];
        let of_budget = problems.to_vec().into_iter().filter(|problem| reasons.contains(&problem.reason));
        of_budget.map(|problem| format!("{} {}", problem.object.name.name, problem.reason)).collect()
    };
    assert_eq!(told(100), ["young BudgetExceeded"]);
    assert_eq!(
        told(70),
        [
            "r2015 ShareNearlyUsed",
            "r2016 ShareExceeded",
            "r2017 ShareExceeded",
            "r2018 ShareExceeded",
            "r2019 ShareExceeded"
        ]
    );
}

/// Two HTTPS listeners of which the wider one is that of an older ListenerSet, behind sidecars that terminate TLS.
fn fronted() -> Objects {
    let mut objects = gateway(&json!([https("web", 443, Some("a.b.test"), &["one"])]));
    allow_listener_sets(&mut objects);
    let mut of_gateway = serde_json::to_value(&**objects.gateways().next().unwrap().1).unwrap();
    of_gateway["metadata"]["creationTimestamp"] = json!("2026-02-01T00:00:00Z");
    objects.insert(Object::Gateway(object(of_gateway)));
    let wider = json!([https("wide", 443, Some("*.b.test"), &["two"])]);
    add_listener_set(&mut objects, ("infra", "set"), 1, &wider);
    for name in ["one", "two"] {
        add_certificate(&mut objects, name, &crate::fixture::pem::pair(&["a.b.test"]));
    }
    let reference =
        json!({"group": "pingsix.io", "kind": "PingsixProxy", "namespace": "infra", "name": "all"});
    objects.insert(Object::GatewayClass(object(json!({
        "metadata": {"name": "pingsix"},
        "spec": {"controllerName": "pingsix.io/gateway-controller", "parametersRef": reference},
    }))));
    objects.insert(Object::PingsixProxy(object(json!({
        "metadata": {"namespace": "infra", "name": "all"}, "spec": {"managed": {"sidecar": {"https": true}}},
    }))));
    objects
}

#[test]
fn over_budget_the_youngest_fronted_listener_keeps_its_names_and_is_named() {
    let objects = fronted();
    let (whole, all) = translate(&objects);
    // There is no responder.
    let problems = &whole.verdicts.problems;
    assert!(problems.iter().all(|problem| problem.reason == Reason::Limited), "{problems:?}");
    let is_served = |config: &StreamConfig, name: &str| {
        matches!(
            &config.route_for(443, Arrival::Tls(name)).unwrap().1.targets[0].to,
            Destination::Upstream(_)
        )
    };
    assert!(is_served(&all.config, "a.b.test") && is_served(&all.config, "c.b.test"));
    let (translation, less) =
        translate_within(&objects, Budget { bytes: all.size.bytes - 1, ..Budget::default() });
    assert!(less.size.bytes < all.size.bytes);
    assert!(
        !is_served(&less.config, "a.b.test"),
        "the names of the younger listener are not the wider one's"
    );
    assert!(is_served(&less.config, "c.b.test"));
    let named: Vec<_> = translation
        .verdicts
        .problems
        .iter()
        .filter(|problem| problem.reason == Reason::BudgetExceeded)
        .map(|problem| format!("{} {}", problem.object, problem.field))
        .collect();
    assert_eq!(named, ["Gateway infra/public spec.listeners[0]"]);
}
