//! Patterns, conflicts, budgets.

use super::*;

fn routes(routes: &[(&str, Value)]) -> Value {
    routes
        .iter()
        .map(|(id, fields)| {
            let fields = overlay(json!({"upstream_id": "u"}), fields);
            (format!("routes/{id}"), fields)
        })
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[test]
fn malformed_patterns_are_refused_late() {
    for uri in ["/x/{a", "/x/a}", "/{}", "/{*}", "/{*a}/b", "/{a}.json", "/{a}{b}", "{", "/{a*}"] {
        refused_late(&route(&json!({"uri": uri})), Rule::Pattern);
    }
    for host in ["{a.t", "a}.t", "{}.t", "{{a}}.t"] {
        refused_late(&route(&json!({"host": host})), Rule::Pattern);
    }
    let mut documents = json!({"services/s": {"upstream_id": "u", "hosts": ["{a.t"]}});
    accepted(&documents);
    documents["routes/r"] = json!({"uri": "/", "service_id": "s"});
    refused_late(&documents, Rule::Pattern);
}

#[test]
fn more_than_25_parameters_kill_the_worker() {
    refused_late(&route(&json!({"uri": "/{a}".repeat(26)})), Rule::Pattern);
    accepted(&route(&json!({"uri": "/{a}".repeat(25)})));
}

#[test]
fn patterns_in_each_others_way_are_refused_late() {
    for table in [
        routes(&[("a", json!({"uri": "/{{x}}"})), ("b", json!({"uri": "/{{x}}"}))]),
        routes(&[("a", json!({"uris": ["/{{x}}", "/{{x}}"]}))]),
        routes(&[("a", json!({"uri": "/{x}/b"})), ("b", json!({"uri": "/{*p}"}))]),
        routes(&[("a", json!({"uris": ["/{x}/b", "/{*p}"]}))]),
    ] {
        refused_late(&table, Rule::PatternConflict);
    }
}

#[test]
fn a_pattern_with_closing_braces_alone_conflicts_with_itself() {
    refused_late(
        &routes(&[("a", json!({"uri": "/}}"})), ("b", json!({"uri": "/}}"}))]),
        Rule::PatternConflict,
    );
    refused_late(&routes(&[("a", json!({"uris": ["/}}", "/}}"]}))]), Rule::PatternConflict);
    accepted(&routes(&[("a", json!({"uri": "/}}"}))]));
}

#[test]
fn a_malformed_pattern_that_an_earlier_one_of_its_route_covers_is_ignored() {
    for fields in [
        json!({"uris": ["/x/{*p}", "/x/a}"]}),
        json!({"uris": ["/{*p}", "/{}"]}),
        json!({"uri": "/", "hosts": ["*.t", "{a.t"]}),
        json!({"uri": "/", "hosts": ["*.t", "{{a}}.t"]}),
    ] {
        misbehaves(&routes(&[("a", fields)]), Rule::PatternMeaning);
    }
    for fields in [
        json!({"uris": ["/x/a}", "/x/{*p}"]}),
        json!({"uris": ["/y/{*p}", "/x/a}"]}),
        json!({"uri": "/", "hosts": ["{a.t", "*.t"]}),
    ] {
        refused_late(&routes(&[("a", fields)]), Rule::Pattern);
    }
    // Another route may be inserted later.
    refused_late(&routes(&[("a", json!({"uri": "/{*p}"})), ("b", json!({"uri": "/x}"}))]), Rule::Pattern);
    // And this one may make the catch-all join its entry, which does not reach as far.
    let narrow = ("b", json!({"uri": "/x/{p}"}));
    refused_late(&routes(&[("a", json!({"uris": ["/x/{*p}", "/x/y/a}"]})), narrow.clone()]), Rule::Pattern);
    // Unless that entry reaches far enough.
    misbehaves(&routes(&[("a", json!({"uris": ["/x/{*p}", "/x/a}"]})), narrow]), Rule::PatternMeaning);
}

#[test]
fn patterns_that_only_look_alike_are_accepted() {
    for table in [
        routes(&[("a", json!({"uri": "/"})), ("b", json!({"uri": "/"}))]),
        routes(&[("a", json!({"uri": "/x/{a}"})), ("b", json!({"uri": "/x/{b}"}))]),
        routes(&[("a", json!({"uri": "/{*a}"})), ("b", json!({"uri": "/{*b}"}))]),
        routes(&[("a", json!({"uri": "/{{x}}"})), ("b", json!({"uri": "/{{x}}", "host": "a.t"}))]),
        routes(&[
            ("a", json!({"uri": "/{x}/b", "host": "a.t"})),
            ("b", json!({"uri": "/{*p}", "host": "b.t"})),
        ]),
        routes(&[("a", json!({"uri": "/", "hosts": ["*.t", "a.t", "*.b.t"]}))]),
        routes(&[("a", json!({"uris": ["/foo", "/foo/", "/foo/{*p}"]}))]),
    ] {
        accepted(&table);
    }
}

#[test]
fn patterns_that_never_match_are_flagged() {
    for uri in ["foo", "", "*"] {
        misbehaves(&route(&json!({"uri": uri})), Rule::PatternMeaning);
    }
    for uri in ["/x/*", "/x/:id"] {
        misbehaves(&route(&json!({"uri": uri})), Rule::LiteralWildcard);
    }
    for host in ["a.b:80", "a.*.c", "", "*.a.*"] {
        misbehaves(&route(&json!({"host": host})), Rule::PatternMeaning);
    }
    misbehaves(&json!({"services/s": {"upstream_id": "u", "hosts": ["a:1"]}}), Rule::PatternMeaning);
    misbehaves(&route(&json!({"methods": ["get"]})), Rule::MethodCase);
}

#[test]
fn a_configuration_must_fit_its_budgets() {
    let name = "x".repeat(5_000_000);
    assert_worst(&route(&json!({"name": name})), Some((Severity::Fatal, Rule::Bytes)));
    // Ignored fields take space, too.
    assert_worst(&route(&json!({"desc": name})), Some((Severity::Fatal, Rule::Bytes)));
    misbehaves(&route(&json!({"name": "x".repeat(3_700_000)})), Rule::Bytes);

    let few = ValidateOptions { entries_budget: 5, ..ValidateOptions::default() };
    let table = routes(&[("a", json!({"uris": ["/a", "/b", "/c"], "hosts": ["a", "b"]}))]);
    assert_eq!(worst(&violations_with(&table, &few)), Some((Severity::Misbehaves, Rule::MatcherEntries)));
    let table = routes(&[("a", json!({"uris": ["/a", "/b", "/c"]}))]);
    assert_eq!(violations_with(&table, &few), []);
}

#[test]
fn entries_count_the_hosts_of_services() {
    let config = Config::from_static(&json!({
        "services": [{"id": "s", "upstream_id": "u", "hosts": ["a", "b", "c"]}],
        "routes": [{"id": "r", "uris": ["/", "/x"], "service_id": "s"}, {"id": "q", "uri": "/"}],
    }))
    .expect("decodes");
    assert_eq!(matcher_entries(&config), 7);
}

#[test]
fn no_input_makes_the_rules_panic() {
    use proptest::prelude::*;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[/{}*a-c:.\\[\\]é%$]{0,8}".prop_map(Value::from),
    ];
    let field = prop_oneof![
        Just("uri"),
        Just("uris"),
        Just("hosts"),
        Just("host"),
        Just("plugins"),
        Just("upstream"),
        Just("nodes"),
        Just("rules"),
        Just("weighted_upstreams"),
        Just("weight"),
        Just("vars"),
        Just("traffic-split"),
        Just("redirect"),
        Just("regex_uri"),
        Just("headers"),
        Just("cert"),
        Just("key"),
        Just("snis"),
        Just("tls"),
        Just("client_cert"),
        Just("checks"),
        Just("active"),
        Just("fault-injection"),
        Just("abort"),
        Just("delay"),
        Just("upstream_id"),
        Just("service_id"),
        Just("methods"),
        Just("jwt-auth"),
        Just("public_key"),
    ];
    let value = leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(field.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    });
    let kind =
        prop_oneof![Just("routes/r"), Just("upstreams/u"), Just("services/s"), Just("ssls/s"), Just("x")];
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(600));
    runner
        .run(&prop::collection::vec((kind, value), 1..5), |documents| {
            let found = validate_raw(documents, &ValidateOptions::default());
            for violation in found {
                prop_assert!(violation.message.ends_with('.'), "{violation}");
            }
            Ok(())
        })
        .expect("no panic");
}
