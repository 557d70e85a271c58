//! Absent and forbidden kinds.

use std::time::Duration;

use pingsix_translate::Kind;
use pingsix_translate::selection::ObjectSource as _;
use pingsix_translate::snapshot::TcpRoute;
use serde_json::json;

use super::consumer::{Consumer, named};
use crate::api_error::ApiErrorCategory;
use crate::fixture::api_server::{ApiServer, Fate, Verb};
use crate::watch::{Availability, WatchOptions};

const TCP: Kind = Kind::TcpRoute;

fn tcp_route(name: &str) -> serde_json::Value {
    let mut route = named("shop", name);
    route["spec"] = json!({"rules": [{"backendRefs": [{"name": "db", "port": 1}]}]});
    route
}

fn absence(consumer: &Consumer, kind: Kind) -> Option<&str> {
    match consumer.availability.get(&kind) {
        Some(Availability::Absent { message }) => Some(message),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_installed_has_no_objects_until_it_is() {
    let server = ApiServer::default();
    server.serve(TCP, &[]);
    let mut consumer = Consumer::of(&server, WatchOptions::default());
    consumer.complete().await;
    consumer.until("its absence is told", |consumer| absence(consumer, TCP).is_some()).await;
    assert_eq!(
        absence(&consumer, TCP),
        Some("The API server does not serve TCPRoute of gateway.networking.k8s.io.")
    );
    consumer.during(Duration::from_mins(5)).await;
    assert_eq!(
        (consumer.count_logged("TcpRoute(InitDone)"), consumer.count_logged("TcpRoute, availability")),
        (1, 1)
    );
    assert!(server.looked() <= 3 * 14, "{}", server.looked());

    server.serve(TCP, &["v1"]);
    server.apply(TCP, tcp_route("db"));
    let installed = tokio::time::Instant::now();
    consumer
        .until("it is there", |consumer| consumer.has(TCP, "shop", "db") && consumer.is_watching(TCP))
        .await;
    assert!(installed.elapsed() <= Duration::from_secs(37), "{:?}", installed.elapsed());

    // A deleted kind loses its objects, and may return.
    server.serve(TCP, &[]);
    consumer.until("it is gone", |consumer| !consumer.has(TCP, "shop", "db")).await;
    assert!(absence(&consumer, TCP).is_some() && consumer.world.is_complete(TCP));
    server.serve(TCP, &["v1"]);
    server.apply(TCP, tcp_route("other"));
    consumer
        .until("it is back", |consumer| consumer.has(TCP, "shop", "other") && consumer.is_watching(TCP))
        .await;
}

#[tokio::test(start_paused = true)]
async fn rediscovery_finds_an_installed_kind() {
    let server = ApiServer::default();
    server.serve(TCP, &[]);
    let mut consumer = Consumer::of(&server, WatchOptions::default());
    consumer.until("its absence is told", |consumer| absence(consumer, TCP).is_some()).await;
    server.serve(TCP, &["v1"]);
    consumer.watches.rediscover();
    let told = tokio::time::Instant::now();
    consumer.until("it is watched", |consumer| consumer.is_watching(TCP)).await;
    assert!(told.elapsed() < Duration::from_secs(1), "{:?}", told.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_kind_in_another_version_is_absent_with_the_served_versions() {
    let server = ApiServer::default();
    server.serve(TCP, &["v1alpha2"]);
    let mut consumer = Consumer::of(&server, WatchOptions::default());
    consumer.until("its absence is told", |consumer| absence(consumer, TCP).is_some()).await;
    assert_eq!(
        absence(&consumer, TCP),
        Some("The API server serves TCPRoute only as v1alpha2, and v1 is needed: install newer CRDs.")
    );
    consumer.until("it is known to be empty", |consumer| consumer.world.is_complete(TCP)).await;
}

#[tokio::test(start_paused = true)]
async fn a_404_alone_removes_nothing() {
    let server = ApiServer::default();
    server.apply(TCP, tcp_route("db"));
    let mut consumer = Consumer::of(&server, WatchOptions::default());
    consumer.complete().await;
    consumer.until("it is watched", |consumer| consumer.is_watching(TCP)).await;
    // Discovery failed, or lists the kind: in either case the kind is not known to be gone.
    for discovery in [Fate::Failed(503), Fate::Failed(404), Fate::Unanswered, Fate::Served] {
        server.fail_discovery(discovery);
        server.fail(TCP, Verb::List, Fate::Page(404));
        server.fail(TCP, Verb::Watch, Fate::Failed(404));
        server.end_watches(TCP);
        consumer
            .until("it does not answer", |consumer| {
                matches!(consumer.availability[&TCP], Availability::Unreachable { .. })
            })
            .await;
        consumer.during(Duration::from_secs(200)).await;
        assert!(consumer.has(TCP, "shop", "db"), "{discovery:?}");
        server.heal(TCP);
        consumer.until("it is watched", |consumer| consumer.is_watching(TCP)).await;
    }
    assert_eq!(consumer.count_logged("Absent"), 0);
    assert!(consumer.has(TCP, "shop", "db"));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_may_not_be_read_is_not_empty() {
    let server = ApiServer::default();
    server.apply(TCP, tcp_route("db"));
    server.fail(TCP, Verb::List, Fate::Failed(403));
    let mut consumer = Consumer::of(&server, WatchOptions::default());
    let forbidden =
        |consumer: &Consumer| matches!(consumer.availability.get(&TCP), Some(Availability::Forbidden { .. }));
    consumer.until("it is forbidden", forbidden).await;
    consumer.during(Duration::from_secs(100)).await;
    assert!(!consumer.world.is_complete(TCP));
    server.heal(TCP);
    consumer
        .until("it is watched", |consumer| consumer.is_watching(TCP) && consumer.has(TCP, "shop", "db"))
        .await;

    // The loss of a permission removes no object.
    server.fail(TCP, Verb::List, Fate::Failed(403));
    server.fail(TCP, Verb::Watch, Fate::Failed(403));
    server.end_watches(TCP);
    consumer.until("it is forbidden again", forbidden).await;
    consumer.during(Duration::from_secs(100)).await;
    assert!(consumer.has(TCP, "shop", "db") && consumer.world.is_complete(TCP));
    assert!(consumer.watches.stats().errors(TCP, ApiErrorCategory::Forbidden) > 5);
}

#[tokio::test(start_paused = true)]
async fn without_permission_to_watch_lists_still_show_objects() {
    let server = ApiServer::default();
    server.fail(TCP, Verb::Watch, Fate::Failed(403));
    let mut consumer = Consumer::of(&server, WatchOptions::default());
    consumer
        .until("it is forbidden", |consumer| {
            matches!(consumer.availability.get(&TCP), Some(Availability::Forbidden { .. }))
        })
        .await;
    server.apply(TCP, tcp_route("db"));
    consumer
        .until("a list has it", |consumer| {
            consumer.world.get::<TcpRoute>(&pingsix_translate::ObjectName::new("shop", "db")).is_some()
        })
        .await;
    consumer.during(Duration::from_secs(100)).await;
    assert_eq!(consumer.count_logged("TcpRoute, availability"), 1, "it does not go to and fro");
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_needed_and_absent_is_not_known() {
    let server = ApiServer::default();
    server.serve(Kind::Gateway, &["v1beta1"]);
    let mut consumer = Consumer::of(&server, WatchOptions::default());
    consumer.until("its absence is told", |consumer| absence(consumer, Kind::Gateway).is_some()).await;
    consumer.during(Duration::from_secs(100)).await;
    assert!(!consumer.world.is_complete(Kind::Gateway));
    server.serve(Kind::Gateway, &["v1"]);
    consumer.complete().await;

    // Once it had been read, its end is the end of its objects.
    let mut gateway = named("infra", "one");
    gateway["spec"] = json!({"gatewayClassName": "pingsix", "listeners": []});
    server.apply(Kind::Gateway, gateway);
    consumer.until("it is seen", |consumer| consumer.has(Kind::Gateway, "infra", "one")).await;
    server.serve(Kind::Gateway, &[]);
    consumer.until("it is gone", |consumer| !consumer.has(Kind::Gateway, "infra", "one")).await;
    assert!(absence(&consumer, Kind::Gateway).is_some());
}
