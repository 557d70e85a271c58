//! Errors of the watch of one kind.

use std::time::Duration;

use pingsix_translate::Kind;
use pingsix_translate::snapshot::HttpRoute;
use serde_json::json;

use super::consumer::{Consumer, named, route};
use crate::api_error::ApiErrorCategory;
use crate::fixture::api_server::{ApiServer, Fate, RecordedRequest, Verb};
use crate::watch::{Availability, WatchOptions};

const ROUTE: Kind = Kind::HttpRoute;

/// A server with some routes.
fn with_routes(count: usize) -> ApiServer {
    let server = ApiServer::default();
    for index in 0..count {
        server.apply(ROUTE, route("shop", &format!("r{index:02}")));
    }
    server
}

async fn watching(server: &ApiServer, options: WatchOptions) -> Consumer {
    let mut consumer = Consumer::of(server, options);
    consumer.complete().await;
    consumer.until("routes are watched", |consumer| consumer.is_watching(ROUTE)).await;
    consumer
}

fn in_pages_of(page_size: u32) -> WatchOptions {
    WatchOptions { page_size, ..WatchOptions::default() }
}

#[tokio::test(start_paused = true)]
async fn a_list_is_read_page_by_page_and_then_watched() {
    let server = with_routes(7);
    let mut consumer = watching(&server, in_pages_of(3)).await;
    let pages = server.asked(ROUTE, Verb::List);
    assert_eq!(pages.len(), 3);
    assert!(pages.iter().all(|page| page.query["limit"] == "3"));
    // A consistent read: an answer from a cache may be older than the last known state.
    assert!(pages.iter().all(|page| !page.query.contains_key("resourceVersion")));
    assert_eq!(consumer.world.reader::<HttpRoute>().len(), 7);

    server.apply(ROUTE, route("shop", "new"));
    server.remove(ROUTE, "shop", "r00");
    consumer
        .until("both are seen", |consumer| {
            consumer.has(ROUTE, "shop", "new") && !consumer.has(ROUTE, "shop", "r00")
        })
        .await;
    assert_eq!((server.count(ROUTE, Verb::List), server.count(ROUTE, Verb::Watch)), (3, 1));
    assert_eq!((consumer.watches.stats().lists(ROUTE), consumer.watches.stats().watches(ROUTE)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_goes_on_where_it_was() {
    let server = with_routes(2);
    let mut consumer = watching(&server, WatchOptions::default()).await;
    server.bookmark(ROUTE);
    let bookmarked = server.asked(ROUTE, Verb::Watch)[0].query["resourceVersion"].parse::<u64>().unwrap() + 1;
    consumer.during(Duration::from_secs(5)).await;
    server.end_watches(ROUTE);
    server.remove(ROUTE, "shop", "r01");
    consumer.until("the deletion is seen", |consumer| !consumer.has(ROUTE, "shop", "r01")).await;
    let watches = server.asked(ROUTE, Verb::Watch);
    assert_eq!((watches.len(), server.count(ROUTE, Verb::List)), (2, 1));
    assert_eq!(watches[1].query["resourceVersion"], bookmarked.to_string());
    assert_eq!(consumer.count_logged("Unreachable"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_goes_on_where_it_was() {
    let server = with_routes(2);
    let mut consumer = watching(&server, WatchOptions::default()).await;
    server.break_watches(ROUTE);
    consumer.during(Duration::from_secs(1)).await;
    server.apply(ROUTE, route("shop", "new"));
    consumer.until("it is seen", |consumer| consumer.has(ROUTE, "shop", "new")).await;
    assert_eq!((server.count(ROUTE, Verb::Watch), server.count(ROUTE, Verb::List)), (2, 1));
    assert_eq!(consumer.watches.stats().errors(ROUTE, ApiErrorCategory::Transport), 1);
    // The error ended at once, without a report.
    assert_eq!(consumer.count_logged("Unreachable"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_watch_whose_version_expires_is_listed_again() {
    let server = with_routes(2);
    let mut consumer = watching(&server, WatchOptions::default()).await;
    server.compact();
    consumer.until("it is listed again", |consumer| consumer.count_logged("HttpRoute(InitDone)") == 2).await;
    server.apply(ROUTE, route("shop", "new"));
    consumer.until("it is seen", |consumer| consumer.has(ROUTE, "shop", "new")).await;
    assert_eq!(consumer.watches.stats().errors(ROUTE, ApiErrorCategory::Expired), 1);
    assert_eq!(consumer.count_logged("Unreachable"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_refused_as_expired_is_listed_again() {
    let server = with_routes(1);
    // Before the first event, and as the status of the answer.
    server.next(ROUTE, Verb::Watch, [Fate::Failed(410), Fate::Failed(400)]);
    let mut consumer = watching(&server, WatchOptions::default()).await;
    assert_eq!(server.count(ROUTE, Verb::List), 3);
    server.apply(ROUTE, route("shop", "new"));
    consumer.until("it is seen", |consumer| consumer.has(ROUTE, "shop", "new")).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_expires_half_way_begins_anew_and_takes_nothing_away() {
    let server = with_routes(5);
    let mut consumer = watching(&server, in_pages_of(2)).await;
    server.next(
        ROUTE,
        Verb::List,
        [Fate::Served, Fate::Failed(410), Fate::Served, Fate::Served, Fate::Failed(500)],
    );
    server.compact();
    consumer
        .until("the broken lists were seen", |consumer| consumer.count_logged("HttpRoute(Init)") == 3)
        .await;
    assert_eq!(consumer.world.reader::<HttpRoute>().len(), 5);
    consumer.until("one is whole", |consumer| consumer.count_logged("HttpRoute(InitDone)") == 2).await;
    assert_eq!(consumer.world.reader::<HttpRoute>().len(), 5);
    let stats = consumer.watches.stats();
    assert_eq!(
        (stats.errors(ROUTE, ApiErrorCategory::Expired), stats.errors(ROUTE, ApiErrorCategory::Server)),
        (2, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_deletion_during_an_outage_is_found() {
    let server = with_routes(3);
    let mut consumer = watching(&server, WatchOptions::default()).await;
    server.fail(ROUTE, Verb::Watch, Fate::Failed(503));
    server.fail(ROUTE, Verb::List, Fate::Failed(503));
    server.end_watches(ROUTE);
    server.remove(ROUTE, "shop", "r01");
    server.compact();
    consumer
        .until("it does not answer", |consumer| {
            matches!(consumer.availability[&ROUTE], Availability::Unreachable { .. })
        })
        .await;
    consumer.during(Duration::from_mins(2)).await;
    assert_eq!(consumer.world.reader::<HttpRoute>().len(), 3, "an error takes nothing away");
    server.heal(ROUTE);
    consumer.until("the deletion is found", |consumer| !consumer.has(ROUTE, "shop", "r01")).await;
    assert_eq!(consumer.world.reader::<HttpRoute>().len(), 2);
    consumer.until("it is watched again", |consumer| consumer.is_watching(ROUTE)).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_decoded_costs_no_other() {
    let server = with_routes(2);
    let mut broken = route("shop", "broken");
    broken["spec"] = json!({"rules": "none"});
    server.apply(ROUTE, broken.clone());
    let mut consumer = watching(&server, WatchOptions::default()).await;
    assert_eq!(consumer.world.reader::<HttpRoute>().len(), 3);
    assert_eq!(consumer.world.undecodable().len(), 1);
    // A valid object becomes undecodable, and an undecodable one becomes valid.
    broken["metadata"]["name"] = json!("r00");
    server.apply(ROUTE, broken);
    server.apply(ROUTE, route("shop", "broken"));
    consumer
        .until("both are seen", |consumer| {
            consumer.world.undecodable().iter().map(|(key, _)| key.to_string()).eq(["HTTPRoute shop/r00"])
        })
        .await;
    assert_eq!(server.count(ROUTE, Verb::List), 1);
}

#[tokio::test(start_paused = true)]
async fn an_event_without_any_sense_leads_to_a_new_list() {
    let server = with_routes(1);
    let mut consumer = watching(&server, WatchOptions::default()).await;
    let mut changed = route("shop", "r00");
    changed["spec"] = json!({"hostnames": ["changed.example"]});
    server.send_line(ROUTE, &json!({"type": "MODIFIED", "object": {"kind": "HTTPRoute", "metadata": {}}}));
    consumer.until("it is listed again", |consumer| consumer.count_logged("HttpRoute(InitDone)") == 2).await;
    assert_eq!(consumer.watches.stats().errors(ROUTE, ApiErrorCategory::Malformed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_errors_is_met_with_patience() {
    let server = with_routes(1);
    server.fail(ROUTE, Verb::List, Fate::Failed(500));
    let mut consumer = Consumer::of(&server, WatchOptions::default());
    consumer.during(Duration::from_mins(10)).await;
    // About every 22 seconds once the waits are longest.
    let lists = server.count(ROUTE, Verb::List);
    assert!((20..=50).contains(&lists), "{lists} lists in ten minutes");
    assert!(!consumer.world.is_complete(ROUTE));
    assert_eq!(consumer.count_logged("HttpRoute, availability: Unreachable"), 1, "{:#?}", consumer.log);
    // The others are not concerned.
    assert!(consumer.is_watching(Kind::Gateway));
    server.heal(ROUTE);
    let healed = tokio::time::Instant::now();
    consumer.until("it is watched", |consumer| consumer.is_watching(ROUTE)).await;
    assert!(healed.elapsed() <= Duration::from_secs(31));
}

#[tokio::test(start_paused = true)]
async fn a_response_of_a_proxy_is_understood() {
    let server = with_routes(1);
    server.next(ROUTE, Verb::List, [Fate::Page(502), Fate::Broken]);
    server.next(ROUTE, Verb::Watch, [Fate::Page(502), Fate::Page(404)]);
    let mut consumer = Consumer::of(&server, WatchOptions::default());
    consumer.until("routes are watched", |consumer| consumer.is_watching(ROUTE)).await;
    let stats = consumer.watches.stats();
    assert_eq!(stats.errors(ROUTE, ApiErrorCategory::Server), 2);
    assert_eq!(stats.errors(ROUTE, ApiErrorCategory::Transport), 1);
    assert_eq!(stats.errors(ROUTE, ApiErrorCategory::NotFound), 1);
    assert_eq!(consumer.count_logged("html"), 1, "only the message of the list repeats what was sent");
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_does_not_answer_is_not_waited_for_for_ever() {
    let server = with_routes(1);
    server.next(ROUTE, Verb::List, [Fate::Unanswered]);
    server.next(ROUTE, Verb::Watch, [Fate::Unanswered]);
    let mut consumer = Consumer::of(&server, WatchOptions::default());
    let start = tokio::time::Instant::now();
    consumer.until("routes are watched", |consumer| consumer.is_watching(ROUTE)).await;
    assert!(start.elapsed() < Duration::from_secs(125), "{:?}", start.elapsed());
    assert_eq!(consumer.watches.stats().errors(ROUTE, ApiErrorCategory::Timeout), 2);
    assert_eq!(server.count(ROUTE, Verb::List), 2);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_falls_silent_is_opened_again_and_misses_nothing() {
    let server = with_routes(2);
    let mut consumer = watching(&server, WatchOptions::default()).await;
    // As when the machine at the other end loses its power.
    server.deaden_watches(ROUTE);
    server.apply(ROUTE, route("shop", "new"));
    server.remove(ROUTE, "shop", "r00");
    let silent = tokio::time::Instant::now();
    consumer
        .until("both are seen", |consumer| {
            consumer.has(ROUTE, "shop", "new") && !consumer.has(ROUTE, "shop", "r00")
        })
        .await;
    assert!(silent.elapsed() <= WatchOptions::default().silence * 2, "{:?}", silent.elapsed());
    assert_eq!(consumer.count_logged("Unreachable"), 0, "the API server answers");
    assert_eq!(server.count(ROUTE, Verb::List), 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_which_bookmarks_come_is_not_silent() {
    let server = with_routes(2);
    let mut consumer = watching(&server, WatchOptions::default()).await;
    // An API server ends a watch by itself before five minutes are over.
    for _ in 0..4 {
        consumer.during(Duration::from_mins(1)).await;
        server.bookmark(ROUTE);
    }
    assert_eq!(server.count(ROUTE, Verb::Watch), 1);
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_asks_for_time_gets_it() {
    let server = with_routes(1);
    server.fail(ROUTE, Verb::List, Fate::Throttled(20));
    let mut consumer = Consumer::of(&server, WatchOptions::default());
    consumer.during(Duration::from_mins(2)).await;
    let lists = server.asked(ROUTE, Verb::List);
    assert!(lists.len() >= 3, "{}", lists.len());
    assert!(lists.windows(2).all(|pair| pair[1].at - pair[0].at >= Duration::from_secs(20)));
    server.heal(ROUTE);
    consumer.until("it is watched", |consumer| consumer.is_watching(ROUTE)).await;
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_do_not_spin() {
    let server = with_routes(1);
    let mut consumer = watching(&server, WatchOptions::default()).await;
    let before = server.count(ROUTE, Verb::Watch);
    for _ in 0..600 {
        server.end_watches(ROUTE);
        consumer.during(Duration::from_millis(100)).await;
    }
    let opened = server.count(ROUTE, Verb::Watch) - before;
    assert!((50..=80).contains(&opened), "{opened} in a minute");
    assert_eq!(server.count(ROUTE, Verb::List), 1);
}

#[tokio::test(start_paused = true)]
async fn a_slow_consumer_is_waited_for() {
    let server = with_routes(40);
    let mut consumer = Consumer::of(&server, WatchOptions { capacity: 1, ..in_pages_of(10) });
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(server.count(ROUTE, Verb::List) <= 2, "pages are fetched when there is room");
    consumer.until("routes are known", |consumer| consumer.world.is_complete(ROUTE)).await;
    for index in 0..40 {
        server.apply(ROUTE, route("shop", &format!("later{index}")));
    }
    tokio::time::sleep(Duration::from_secs(30)).await;
    consumer.until("nothing was dropped", |consumer| consumer.world.reader::<HttpRoute>().len() == 80).await;
}

#[tokio::test(start_paused = true)]
async fn labels_select_what_asks_for_something_and_nothing_else() {
    let server = ApiServer::default();
    let mut ours = route("shop", "ours");
    ours["metadata"]["labels"] = json!({"team": "shop"});
    server.apply(ROUTE, ours);
    server.apply(ROUTE, route("shop", "others"));
    server.apply(Kind::Namespace, named("", "shop"));
    let consumer =
        watching(&server, WatchOptions { labels: Some("team=shop".into()), ..WatchOptions::default() }).await;
    assert!(consumer.has(ROUTE, "shop", "ours") && !consumer.has(ROUTE, "shop", "others"));
    assert!(consumer.has(Kind::Namespace, "", "shop"));
    let selected = [Kind::Gateway, Kind::Ingress, ROUTE];
    for kind in
        [Kind::Gateway, Kind::Ingress, ROUTE, Kind::BackendTlsPolicy, Kind::ReferenceGrant, Kind::Service]
    {
        let lists = server.asked(kind, Verb::List);
        let is_selected = |list: &RecordedRequest| {
            list.query.get("labelSelector").is_some_and(|labels| labels == "team=shop")
        };
        assert!(lists.iter().all(|list| is_selected(list) == selected.contains(&kind)), "{kind}");
        assert_eq!(lists.len(), 1, "{kind}");
    }
}
