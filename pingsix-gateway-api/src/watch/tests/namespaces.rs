//! Some namespaces instead of all.

use std::time::Duration;

use pingsix_translate::Kind;
use pingsix_translate::snapshot::HttpRoute;

use super::feed::{Feed, named, route};
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
    let mut feed = Feed::of(&server, only(&["blog", "shop"]));
    feed.complete().await;
    assert!(feed.has(ROUTE, "blog", "r") && feed.has(ROUTE, "shop", "r") && !feed.has(ROUTE, "other", "r"));
    assert!(feed.has(Kind::Namespace, "", "other"));
    for kind in Kind::ALL.iter().filter(|kind| !matches!(kind, Kind::Secret | Kind::ConfigMap)) {
        let asked = server.asked(*kind, Verb::List);
        assert!(asked.iter().all(|asked| asked.namespace.is_some() == kind.is_namespaced()), "{kind}");
    }
    server.apply(ROUTE, route("other", "new"));
    server.apply(ROUTE, route("shop", "new"));
    server.remove(ROUTE, "blog", "r");
    feed.until("both are seen", |feed| feed.has(ROUTE, "shop", "new") && !feed.has(ROUTE, "blog", "r")).await;
    assert!(!feed.has(ROUTE, "other", "new"));
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_known_when_every_namespace_has_been_listed() {
    let server = ApiServer::default();
    server.apply(ROUTE, route("blog", "gone"));
    server.apply(ROUTE, route("blog", "kept"));
    server.fail_at(ROUTE, Verb::List, "shop", Fate::Failed(403));
    let mut feed = Feed::of(&server, only(&["blog", "shop"]));
    feed.until("one is forbidden", |feed| {
        matches!(feed.availability.get(&ROUTE), Some(Availability::Forbidden { message }) if message.contains("namespace shop"))
    })
    .await;
    // Changes between two lists of a namespace count, deletions included.
    server.apply(ROUTE, route("blog", "new"));
    feed.during(Duration::from_mins(1)).await;
    server.end_watches(ROUTE);
    server.remove(ROUTE, "blog", "gone");
    server.compact();
    feed.during(Duration::from_mins(1)).await;
    assert!(!feed.world.is_complete(ROUTE));
    assert_eq!(feed.world.reader::<HttpRoute>().len(), 0);
    server.heal(ROUTE);
    feed.until("it is known", |feed| feed.world.is_complete(ROUTE) && feed.is_watching(ROUTE)).await;
    assert!(feed.has(ROUTE, "blog", "kept") && feed.has(ROUTE, "blog", "new"));
    assert!(!feed.has(ROUTE, "blog", "gone"));
    assert_eq!(feed.told("HttpRoute(InitDone)"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_new_list_of_one_namespace_leaves_the_others_alone() {
    let server = ApiServer::default();
    for name in ["a", "b", "c"] {
        server.apply(ROUTE, route("blog", name));
        server.apply(ROUTE, route("shop", name));
    }
    let mut feed = Feed::of(&server, only(&["blog", "shop"]));
    feed.until("routes are watched", |feed| feed.is_watching(ROUTE)).await;
    feed.log.clear();
    // Of shop nothing is known for a while, and of blog everything has to be listed again.
    server.fail_at(ROUTE, Verb::List, "shop", Fate::Failed(500));
    server.fail_at(ROUTE, Verb::Watch, "shop", Fate::Failed(500));
    server.end_watches(ROUTE);
    server.remove(ROUTE, "blog", "a");
    server.apply(ROUTE, route("blog", "b"));
    server.apply(ROUTE, route("blog", "d"));
    server.remove(ROUTE, "shop", "a");
    server.compact();
    feed.until("blog is as it is", |feed| !feed.has(ROUTE, "blog", "a") && feed.has(ROUTE, "blog", "d"))
        .await;
    feed.during(Duration::from_mins(1)).await;
    assert!(feed.has(ROUTE, "shop", "a"));
    assert_eq!(feed.told("HttpRoute(Init"), 0, "the world's list is not begun anew");
    assert_eq!(feed.told("shop/"), 0);
    assert_eq!(feed.told("blog/c"), 0, "what is unchanged is not told");
    assert_eq!((feed.told("blog/b"), feed.told("blog/d")), (1, 1));
    server.heal(ROUTE);
    feed.until("shop is as it is", |feed| !feed.has(ROUTE, "shop", "a") && feed.is_watching(ROUTE)).await;
    assert_eq!(feed.told("Gone"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_goes_and_comes_does_so_in_every_namespace() {
    let server = ApiServer::default();
    let tcp = Kind::TcpRoute;
    server.apply(tcp, named("blog", "x"));
    server.apply(tcp, named("shop", "x"));
    let mut feed = Feed::of(&server, only(&["blog", "shop"]));
    feed.until("it is watched", |feed| feed.is_watching(tcp)).await;
    server.serve(tcp, &[]);
    feed.until("it is gone", |feed| !feed.has(tcp, "blog", "x") && !feed.has(tcp, "shop", "x")).await;
    assert!(matches!(feed.availability[&tcp], Availability::Absent { .. }));
    server.serve(tcp, &["v1"]);
    server.apply(tcp, named("shop", "y"));
    feed.until("it is back", |feed| feed.is_watching(tcp)).await;
    assert!(feed.has(tcp, "shop", "y") && !feed.has(tcp, "blog", "x"));
    server.remove(tcp, "shop", "y");
    feed.until("it is deleted", |feed| !feed.has(tcp, "shop", "y")).await;
}

#[tokio::test(start_paused = true)]
async fn without_any_namespace_namespaced_kinds_are_known_to_be_empty() {
    let server = ApiServer::default();
    server.apply(ROUTE, route("shop", "r"));
    let mut feed = Feed::of(&server, only(&[]));
    feed.complete().await;
    assert!(!feed.has(ROUTE, "shop", "r"));
    assert_eq!(server.count(ROUTE, Verb::List), 0);
}
