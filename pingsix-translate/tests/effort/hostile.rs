//! The cost of changes of one tenant beside large routes of another tenant at overlapping hostnames.

use std::sync::Arc;

use pingsix_translate::snapshot::{AnyRoute, ListenerSet};
use pingsix_translate::{
    Object, ObjectName, Objects, Options, Snapshot, TranslationMode, Translator, translate,
};
use serde_json::{Value, json};

use super::{add_service, assert_same, object};

/// Routes of the large tenant.
const ROUTES: usize = 12;

fn route(name: &str, hostname: &str, paths: &[&str]) -> Object {
    let rules: Vec<Value> = paths
        .iter()
        .map(|path| {
            let headers: Vec<Value> = (0..8)
                .map(|number| json!({"name": format!("x-{number}"), "value": "v".repeat(100)}))
                .collect();
            json!({
                "matches": [{"path": {"value": path}}, {"path": {"value": path}, "headers": headers}],
                "backendRefs": [{"name": "own", "port": 80}],
            })
        })
        .collect();
    Object::HttpRoute(object(json!({
        "metadata": {"namespace": "infra", "name": name, "generation": 1},
        "spec": {"parentRefs": [{"name": "public"}], "hostnames": [hostname], "rules": rules},
    })))
}

/// A route for a wildcard, and routes for hosts below it.
fn world() -> Snapshot {
    let mut objects = Objects::default();
    add_service(&mut objects, "infra", "own");
    objects.insert(Object::Gateway(object(json!({
        "metadata": {"namespace": "infra", "name": "public", "generation": 1},
        "spec": {"gatewayClassName": "pingsix", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
    }))));
    objects.insert(route("wide", "*.shop.test", &["/x"]));
    for number in 0..ROUTES {
        objects.insert(route(&format!("large-{number}"), &format!("h{number}.shop.test"), &["/a", "/b"]));
    }
    objects.insert(route("small", "small.shop.test", &["/a"]));
    objects.snapshot(&ObjectName::new("infra", "public")).unwrap()
}

/// Hosts below a wildcard are closed together. A Route that lists the same as before is not written again.
#[test]
fn another_path_of_a_host_below_a_wildcard_writes_no_route_of_other_hosts() {
    let (mut world, options) = (world(), Options::default());
    let mut translator = Translator::new(options.clone());
    translator.translate(&world);
    for paths in [&["/a", "/c"][..], &["/a"], &["/d"]] {
        let Object::HttpRoute(changed) = route("small", "small.shop.test", paths) else {
            panic!("an HTTPRoute")
        };
        let changed = AnyRoute::HttpRoute(changed);
        world.routes.insert(changed.key(), changed);
        let got = translator.translate(&world);
        assert_same(&got, &translate(&world, &options));
        assert_eq!(translator.last_mode(), TranslationMode::Incremental { routes: 1 });
        let written = translator.routes_written();
        assert!((1..ROUTES).contains(&written), "{paths:?}: {written} documents");
    }
}

/// A ListenerSet of a namespace whose ListenerSets the Gateway does not allow; older than those that it allows.
fn forbidden(listeners: usize) -> Arc<ListenerSet> {
    let listeners: Vec<Value> = (0..listeners)
        .map(|number| json!({"name": format!("l{number}"), "port": 8000 + number, "protocol": "HTTP"}))
        .collect();
    object(json!({
        "metadata": {"namespace": "hostile", "name": "forbidden", "generation": 1},
        "spec": {"parentRef": {"namespace": "infra", "name": "public"}, "listeners": listeners},
    }))
}

/// A ListenerSet that is not allowed has no listeners for routes, so other routes are not attached again.
#[test]
fn listeners_of_a_forbidden_listener_set_attach_no_routes_again() {
    let (mut world, options) = (world(), Options::default());
    let mut translator = Translator::new(options.clone());
    translator.translate(&world);
    for listeners in [1, 3, 2] {
        let set = forbidden(listeners);
        world.listener_sets.insert(ObjectName::new("hostile", "forbidden"), set);
        let got = translator.translate(&world);
        assert_same(&got, &translate(&world, &options));
        assert_eq!(
            translator.last_mode(),
            TranslationMode::Incremental { routes: 0 },
            "{listeners} listeners"
        );
    }
    world.listener_sets.remove(&ObjectName::new("hostile", "forbidden"));
    let got = translator.translate(&world);
    assert_same(&got, &translate(&world, &options));
    assert_eq!(translator.last_mode(), TranslationMode::Incremental { routes: 0 });
}
