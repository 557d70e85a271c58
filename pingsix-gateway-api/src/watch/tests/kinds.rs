//! Kinds that are not there, or may not be read.

use std::time::Duration;

use pingsix_translate::Kind;
use pingsix_translate::snapshot::TcpRoute;
use serde_json::json;

use super::feed::{Feed, named};
use crate::fixture::api_server::{ApiServer, Fate, Verb};
use crate::watch::{Availability, FaultCategory, WatchOptions};

const TCP: Kind = Kind::TcpRoute;

fn tcp_route(name: &str) -> serde_json::Value {
    let mut route = named("shop", name);
    route["spec"] = json!({"rules": [{"backendRefs": [{"name": "db", "port": 1}]}]});
    route
}

fn absence(feed: &Feed, kind: Kind) -> Option<&str> {
    match feed.availability.get(&kind) {
        Some(Availability::Absent { message }) => Some(message),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_installed_has_no_objects_until_it_is() {
    let server = ApiServer::default();
    server.serve(TCP, &[]);
    let mut feed = Feed::of(&server, WatchOptions::default());
    feed.complete().await;
    feed.until("its absence is told", |feed| absence(feed, TCP).is_some()).await;
    assert_eq!(
        absence(&feed, TCP),
        Some("The API server does not serve TCPRoute of gateway.networking.k8s.io.")
    );
    feed.during(Duration::from_mins(5)).await;
    assert_eq!((feed.told("TcpRoute(InitDone)"), feed.told("TcpRoute, availability")), (1, 1));
    assert!(server.looked() <= 3 * 14, "{}", server.looked());

    server.serve(TCP, &["v1"]);
    server.apply(TCP, tcp_route("db"));
    let installed = tokio::time::Instant::now();
    feed.until("it is there", |feed| feed.has(TCP, "shop", "db") && feed.is_watching(TCP)).await;
    assert!(installed.elapsed() <= Duration::from_secs(37), "{:?}", installed.elapsed());

    // Deleted, it takes its objects with it; and it may come back.
    server.serve(TCP, &[]);
    feed.until("it is gone", |feed| !feed.has(TCP, "shop", "db")).await;
    assert!(absence(&feed, TCP).is_some() && feed.world.is_complete(TCP));
    server.serve(TCP, &["v1"]);
    server.apply(TCP, tcp_route("other"));
    feed.until("it is back", |feed| feed.has(TCP, "shop", "other") && feed.is_watching(TCP)).await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_was_installed_is_found_when_told_to_look() {
    let server = ApiServer::default();
    server.serve(TCP, &[]);
    let mut feed = Feed::of(&server, WatchOptions::default());
    feed.until("its absence is told", |feed| absence(feed, TCP).is_some()).await;
    server.serve(TCP, &["v1"]);
    feed.watches.look_again();
    let told = tokio::time::Instant::now();
    feed.until("it is watched", |feed| feed.is_watching(TCP)).await;
    assert!(told.elapsed() < Duration::from_secs(1), "{:?}", told.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_kind_in_another_version_is_absent_and_it_says_which() {
    let server = ApiServer::default();
    server.serve(TCP, &["v1alpha2"]);
    let mut feed = Feed::of(&server, WatchOptions::default());
    feed.until("its absence is told", |feed| absence(feed, TCP).is_some()).await;
    assert_eq!(
        absence(&feed, TCP),
        Some("The API server serves TCPRoute only as v1alpha2, and v1 is needed: install newer CRDs.")
    );
    feed.until("it is known to be empty", |feed| feed.world.is_complete(TCP)).await;
}

#[tokio::test(start_paused = true)]
async fn a_404_alone_removes_nothing() {
    let server = ApiServer::default();
    server.apply(TCP, tcp_route("db"));
    let mut feed = Feed::of(&server, WatchOptions::default());
    feed.complete().await;
    feed.until("it is watched", |feed| feed.is_watching(TCP)).await;
    // Discovery failed, or lists the kind: in either case the kind is not known to be gone.
    for discovery in [Fate::Failed(503), Fate::Failed(404), Fate::Unanswered, Fate::Served] {
        server.fail_discovery(discovery);
        server.fail(TCP, Verb::List, Fate::Page(404));
        server.fail(TCP, Verb::Watch, Fate::Failed(404));
        server.end_watches(TCP);
        feed.until("it does not answer", |feed| {
            matches!(feed.availability[&TCP], Availability::Unreachable { .. })
        })
        .await;
        feed.during(Duration::from_secs(200)).await;
        assert!(feed.has(TCP, "shop", "db"), "{discovery:?}");
        server.heal(TCP);
        feed.until("it is watched", |feed| feed.is_watching(TCP)).await;
    }
    assert_eq!(feed.told("Absent"), 0);
    assert!(feed.has(TCP, "shop", "db"));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_may_not_be_read_is_not_empty() {
    let server = ApiServer::default();
    server.apply(TCP, tcp_route("db"));
    server.fail(TCP, Verb::List, Fate::Failed(403));
    let mut feed = Feed::of(&server, WatchOptions::default());
    let forbidden = |feed: &Feed| matches!(feed.availability.get(&TCP), Some(Availability::Forbidden { .. }));
    feed.until("it is forbidden", forbidden).await;
    feed.during(Duration::from_secs(100)).await;
    assert!(!feed.world.is_complete(TCP));
    server.heal(TCP);
    feed.until("it is watched", |feed| feed.is_watching(TCP) && feed.has(TCP, "shop", "db")).await;

    // Permission that is taken away takes nothing else away.
    server.fail(TCP, Verb::List, Fate::Failed(403));
    server.fail(TCP, Verb::Watch, Fate::Failed(403));
    server.end_watches(TCP);
    feed.until("it is forbidden again", forbidden).await;
    feed.during(Duration::from_secs(100)).await;
    assert!(feed.has(TCP, "shop", "db") && feed.world.is_complete(TCP));
    assert!(feed.watches.stats().faults(TCP, FaultCategory::Forbidden) > 5);
}

#[tokio::test(start_paused = true)]
async fn who_may_list_and_not_watch_is_told_so_and_sees_what_is_listed() {
    let server = ApiServer::default();
    server.fail(TCP, Verb::Watch, Fate::Failed(403));
    let mut feed = Feed::of(&server, WatchOptions::default());
    feed.until("it is forbidden", |feed| {
        matches!(feed.availability.get(&TCP), Some(Availability::Forbidden { .. }))
    })
    .await;
    server.apply(TCP, tcp_route("db"));
    feed.until("a list has it", |feed| {
        feed.world.get::<TcpRoute>(&pingsix_translate::ObjectName::new("shop", "db")).is_some()
    })
    .await;
    feed.during(Duration::from_secs(100)).await;
    assert_eq!(feed.told("TcpRoute, availability"), 1, "it does not go to and fro");
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_needed_and_absent_is_not_known() {
    let server = ApiServer::default();
    server.serve(Kind::Gateway, &["v1beta1"]);
    let mut feed = Feed::of(&server, WatchOptions::default());
    feed.until("its absence is told", |feed| absence(feed, Kind::Gateway).is_some()).await;
    feed.during(Duration::from_secs(100)).await;
    assert!(!feed.world.is_complete(Kind::Gateway));
    server.serve(Kind::Gateway, &["v1"]);
    feed.complete().await;

    // Once it had been read, its end is the end of its objects.
    let mut gateway = named("infra", "one");
    gateway["spec"] = json!({"gatewayClassName": "pingsix", "listeners": []});
    server.apply(Kind::Gateway, gateway);
    feed.until("it is seen", |feed| feed.has(Kind::Gateway, "infra", "one")).await;
    server.serve(Kind::Gateway, &[]);
    feed.until("it is gone", |feed| !feed.has(Kind::Gateway, "infra", "one")).await;
    assert!(absence(&feed, Kind::Gateway).is_some());
}
