//! Watches of selected namespaces.

use std::time::Duration;

use pingsix_translate::Kind;
use pingsix_translate::snapshot::HttpRoute;

use super::consumer::{Consumer, named, route};
use crate::fixture::api_server::{ApiServer, Fate, Verb};
use crate::watch::{Availability, Namespaces, WatchOptions};

const ROUTE: Kind = Kind::HttpRoute;

fn only(namespaces: &[&str]) -> WatchOptions {
    let namespaces = namespaces.iter().map(|namespace| (*namespace).to_owned()).collect();
    WatchOptions { namespaces: Namespaces::Only(namespaces), ..WatchOptions::default() }
}

#[tokio::test(start_paused = true)]
async fn only_these_namespaces_are_asked_for_and_cluster_scoped_kinds_as_ever() {
    let server = ApiServer::default();
    for namespace in ["blog", "shop", "other"] {
        server.apply(ROUTE, route(namespace, "r"));
        server.apply(Kind::Namespace, named("", namespace));
    }
    let mut consumer = Consumer::of(&server, only(&["blog", "shop"]));
    consumer.complete().await;
    assert!(
        consumer.has(ROUTE, "blog", "r")
            && consumer.has(ROUTE, "shop", "r")
            && !consumer.has(ROUTE, "other", "r")
    );
    assert!(consumer.has(Kind::Namespace, "", "other"));
    for kind in Kind::ALL.iter().filter(|kind| !matches!(kind, Kind::Secret | Kind::ConfigMap)) {
        let asked = server.asked(*kind, Verb::List);
        assert!(asked.iter().all(|asked| asked.namespace.is_some() == kind.is_namespaced()), "{kind}");
    }
    server.apply(ROUTE, route("other", "new"));
    server.apply(ROUTE, route("shop", "new"));
    server.remove(ROUTE, "blog", "r");
    consumer
        .until("both are seen", |consumer| {
            consumer.has(ROUTE, "shop", "new") && !consumer.has(ROUTE, "blog", "r")
        })
        .await;
    assert!(!consumer.has(ROUTE, "other", "new"));
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_known_when_every_namespace_has_been_listed() {
    let server = ApiServer::default();
    server.apply(ROUTE, route("blog", "gone"));
    server.apply(ROUTE, route("blog", "kept"));
    server.fail_at(ROUTE, Verb::List, "shop", Fate::Failed(403));
    let mut consumer = Consumer::of(&server, only(&["blog", "shop"]));
    consumer.until("one is forbidden", |consumer| {
        matches!(consumer.availability.get(&ROUTE), Some(Availability::Forbidden { message }) if message.contains("namespace shop"))
    })
    .await;
    // Changes between two lists of a namespace count, deletions included.
    server.apply(ROUTE, route("blog", "new"));
    consumer.during(Duration::from_mins(1)).await;
    server.end_watches(ROUTE);
    server.remove(ROUTE, "blog", "gone");
    server.compact();
    consumer.during(Duration::from_mins(1)).await;
    assert!(!consumer.world.is_complete(ROUTE));
    assert_eq!(consumer.world.reader::<HttpRoute>().len(), 0);
    server.heal(ROUTE);
    consumer
        .until("it is known", |consumer| consumer.world.is_complete(ROUTE) && consumer.is_watching(ROUTE))
        .await;
    assert!(consumer.has(ROUTE, "blog", "kept") && consumer.has(ROUTE, "blog", "new"));
    assert!(!consumer.has(ROUTE, "blog", "gone"));
    assert_eq!(consumer.count_logged("HttpRoute(InitDone)"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_new_list_of_one_namespace_leaves_the_others_alone() {
    let server = ApiServer::default();
    for name in ["a", "b", "c"] {
        server.apply(ROUTE, route("blog", name));
        server.apply(ROUTE, route("shop", name));
    }
    let mut consumer = Consumer::of(&server, only(&["blog", "shop"]));
    consumer.until("routes are watched", |consumer| consumer.is_watching(ROUTE)).await;
    consumer.log.clear();
    // Requests for shop fail for a while, and all routes of blog have to be listed again.
    server.fail_at(ROUTE, Verb::List, "shop", Fate::Failed(500));
    server.fail_at(ROUTE, Verb::Watch, "shop", Fate::Failed(500));
    server.end_watches(ROUTE);
    server.remove(ROUTE, "blog", "a");
    server.apply(ROUTE, route("blog", "b"));
    server.apply(ROUTE, route("blog", "d"));
    server.remove(ROUTE, "shop", "a");
    server.compact();
    consumer
        .until("blog is as it is", |consumer| {
            !consumer.has(ROUTE, "blog", "a") && consumer.has(ROUTE, "blog", "d")
        })
        .await;
    consumer.during(Duration::from_mins(1)).await;
    assert!(consumer.has(ROUTE, "shop", "a"));
    assert_eq!(consumer.count_logged("HttpRoute(Init"), 0, "the world's list is not begun anew");
    assert_eq!(consumer.count_logged("shop/"), 0);
    assert_eq!(consumer.count_logged("blog/c"), 0, "unchanged objects cause no event");
    assert_eq!((consumer.count_logged("blog/b"), consumer.count_logged("blog/d")), (1, 1));
    server.heal(ROUTE);
    consumer
        .until("shop is as it is", |consumer| {
            !consumer.has(ROUTE, "shop", "a") && consumer.is_watching(ROUTE)
        })
        .await;
    assert_eq!(consumer.count_logged("Gone"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_goes_and_comes_does_so_in_every_namespace() {
    let server = ApiServer::default();
    let tcp = Kind::TcpRoute;
    server.apply(tcp, named("blog", "x"));
    server.apply(tcp, named("shop", "x"));
    let mut consumer = Consumer::of(&server, only(&["blog", "shop"]));
    consumer.until("it is watched", |consumer| consumer.is_watching(tcp)).await;
    server.serve(tcp, &[]);
    consumer
        .until("it is gone", |consumer| !consumer.has(tcp, "blog", "x") && !consumer.has(tcp, "shop", "x"))
        .await;
    assert!(matches!(consumer.availability[&tcp], Availability::Absent { .. }));
    server.serve(tcp, &["v1"]);
    server.apply(tcp, named("shop", "y"));
    consumer.until("it is back", |consumer| consumer.is_watching(tcp)).await;
    assert!(consumer.has(tcp, "shop", "y") && !consumer.has(tcp, "blog", "x"));
    server.remove(tcp, "shop", "y");
    consumer.until("it is deleted", |consumer| !consumer.has(tcp, "shop", "y")).await;
}

#[tokio::test(start_paused = true)]
async fn without_any_namespace_namespaced_kinds_are_known_to_be_empty() {
    let server = ApiServer::default();
    server.apply(ROUTE, route("shop", "r"));
    let mut consumer = Consumer::of(&server, only(&[]));
    consumer.complete().await;
    assert!(!consumer.has(ROUTE, "shop", "r"));
    assert_eq!(server.count(ROUTE, Verb::List), 0);
}
