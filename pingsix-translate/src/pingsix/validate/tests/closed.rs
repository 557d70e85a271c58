//! Whether order decides, checked against the router model itself.

use super::*;
use crate::pingsix::{Route, RouteTable};

fn table(routes: &[Value]) -> Config {
    let mut config = Config::new();
    for (index, fields) in routes.iter().enumerate() {
        let route: Route = serde_json::from_value(overlay(json!({"upstream_id": index.to_string()}), fields))
            .expect("the test's route decodes");
        config.insert(format!("r{index}"), route);
    }
    config
}

#[track_caller]
fn depends(routes: &[Value], rule: Rule) {
    let found = order_dependence(&table(routes));
    assert!(found.iter().all(|violation| violation.severity == Severity::Misbehaves));
    assert!(found.iter().any(|violation| violation.rule == rule), "{routes:?}: {found:#?}");
}

#[track_caller]
fn independent(routes: &[Value]) {
    assert_eq!(order_dependence(&table(routes)), [], "{routes:?}");
}

#[test]
fn a_broad_path_must_list_the_narrower_ones_first() {
    depends(&[json!({"uri": "/{*p}"}), json!({"uri": "/a/{*p}", "priority": 1})], Rule::Closure);
    depends(
        &[json!({"uris": ["/{*p}", "/a/{*p}"]}), json!({"uri": "/a/{*p}", "priority": 1})],
        Rule::Closure,
    );
    depends(&[json!({"uris": ["/{*p}", "/a"]})], Rule::Closure);
    independent(&[json!({"uris": ["/a/{*p}", "/{*p}"]}), json!({"uri": "/a/{*p}", "priority": 1})]);
    independent(&[json!({"uris": ["/a", "/a/", "/a/{*p}"]}), json!({"uris": ["/ab", "/"], "priority": 1})]);
    // A catch-all takes at least one byte.
    independent(&[json!({"uri": "/a/{*p}"}), json!({"uri": "/a/", "priority": 1})]);
    independent(&[json!({"uri": "/{*a}"}), json!({"uri": "/{*b}", "priority": 1})]);
    independent(&[json!({"uri": "/{*a}", "host": "a"}), json!({"uri": "/b", "host": "b"})]);
}

#[test]
fn a_wildcard_host_must_list_the_hosts_it_covers_first() {
    let wild = |hosts: Value| json!({"hosts": hosts, "uri": "/"});
    depends(&[wild(json!(["*.t"])), json!({"host": "a.t", "uri": "/", "priority": 1})], Rule::Closure);
    depends(&[wild(json!(["*.t", "A.t"])), json!({"host": "a.t", "uri": "/", "priority": 1})], Rule::Closure);
    depends(&[wild(json!(["*.t"])), json!({"host": "*.a.t", "uri": "/", "priority": 1})], Rule::Closure);
    independent(&[wild(json!(["A.t", "*.t"])), json!({"host": "a.t", "uri": "/", "priority": 1})]);
    independent(&[wild(json!(["*.t"])), json!({"uri": "/", "priority": 1})]);
    // The cross product of hosts and paths counts.
    depends(
        &[
            json!({"hosts": ["a.t", "*.t"], "uri": "/{*p}"}),
            json!({"host": "a.t", "uri": "/x", "priority": 1}),
        ],
        Rule::Closure,
    );
}

#[test]
fn routes_that_share_an_entry_must_differ_in_priority() {
    depends(&[json!({"uri": "/"}), json!({"uri": "/"})], Rule::PriorityTie);
    depends(&[json!({"uri": "/", "methods": ["GET"]}), json!({"uri": "/"})], Rule::PriorityTie);
    independent(&[json!({"uri": "/", "methods": ["GET"]}), json!({"uri": "/", "methods": ["PUT"]})]);
    independent(&[json!({"uri": "/"}), json!({"uri": "/", "priority": 1})]);
    independent(&[json!({"uri": "/", "upstream_id": "x"}), json!({"uri": "/", "upstream_id": "x"})]);
    independent(&[json!({"uri": "/"}), json!({"uri": "/", "host": "a"})]);
}

#[test]
fn parameters_beside_a_catch_all_and_escapes_are_never_safe() {
    depends(&[json!({"uris": ["/a", "/{x}", "/{*p}"]})], Rule::Closure);
    depends(&[json!({"uri": "/{{x}}"})], Rule::Closure);
    depends(&[json!({"uri": "/a/{x}"}), json!({"uri": "/a/b", "priority": 1})], Rule::Closure);
    independent(&[json!({"uris": ["/a/b", "/a/{x}"]}), json!({"uri": "/a/b", "priority": 1})]);
}

/// A table the rules call independent answers alike in every order; most tables are not.
#[test]
fn independent_tables_answer_alike_in_every_order_of_the_model() {
    use proptest::prelude::*;
    let path =
        prop::sample::select(vec!["/", "/{*p}", "/a", "/a/", "/a/{*p}", "/a/b", "/a/b/{*p}", "/b", "/a/{x}"]);
    let host = prop::sample::select(vec!["*.t", "a.t", "*.a.t", "b.a.t", "u"]);
    let route = (
        prop::collection::vec(path, 1..4),
        prop::collection::vec(host, 0..3),
        0_u32..4,
        prop::sample::select(vec![json!([]), json!(["GET"]), json!(["PUT"])]),
    )
        .prop_map(|(uris, hosts, priority, methods)| {
            json!({"uris": uris, "hosts": hosts, "priority": priority, "methods": methods})
        });
    let seen = std::cell::Cell::new(0);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(6000));
    runner
        .run(&(prop::collection::vec(route, 1..4), any::<u64>()), |(routes, _)| {
            let config = table(&routes);
            if !order_dependence(&config).is_empty() {
                return Ok(());
            }
            seen.set(seen.get() + 1);
            let rows = RouteTable::new(&config);
            let orders: Vec<Vec<usize>> = orders_of(rows.len());
            for host in [None, Some("a.t"), Some("b.t"), Some("b.a.t"), Some("c.a.t"), Some("u")] {
                for path in ["/", "/a", "/a/", "/a/b", "/a/c", "/a/b/c", "/b", "/c/d"] {
                    for method in ["GET", "PUT"] {
                        let answers: BTreeSet<_> = orders
                            .iter()
                            .map(|order| {
                                let router = rows.insert_in(order.iter().copied());
                                router.map(|router| router.lookup(host, path, method).cloned()).ok()
                            })
                            .collect();
                        prop_assert_eq!(answers.len(), 1, "{:?} {:?} {} {}", routes, host, path, method);
                    }
                }
            }
            Ok(())
        })
        .expect("no counterexample");
    assert!(seen.get() > 200, "only {} tables were independent", seen.get());
}

fn orders_of(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![vec![]];
    }
    let insert = |order: Vec<usize>| {
        (0..n).map(move |at| {
            let mut order = order.clone();
            order.insert(at, n - 1);
            order
        })
    };
    orders_of(n - 1).into_iter().flat_map(insert).collect()
}
