//! A controller on an API server in this process.

use std::sync::Arc;
use std::time::Duration;

use pingsix_sink::{MemorySink, Revision, Scope, Step};
use pingsix_translate::{Kind, Options};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::slow_feed::{Fate, SlowFeed};
use super::{Controller, ControllerError, ControllerOptions, Observers, Progress};
use crate::fixture::api_server::{ApiServer, Fate as Answer, Verb};
use crate::health::Health;
use crate::watch::{Presence, presence};

/// A controller that runs.
struct Running {
    feed: Arc<SlowFeed>,
    health: Health,
    progress: watch::Receiver<Progress>,
    stop: CancellationToken,
    run: JoinHandle<Result<(), ControllerError>>,
}

impl Running {
    /// Starts one that publishes to a sink, which may hold something already.
    fn start(server: &ApiServer, sink: MemorySink, options: ControllerOptions) -> Self {
        Self::publishing_to(server, SlowFeed { sink, ..SlowFeed::default() }, options)
    }

    fn publishing_to(server: &ApiServer, feed: SlowFeed, options: ControllerOptions) -> Self {
        let feed = Arc::new(feed);
        let health = Health::new(Duration::from_mins(1));
        let observers = Observers { health: Some(health.clone()), ..Observers::default() };
        let controller = Controller::new(server.client(), feed.clone(), options).observed_by(observers);
        let (progress, stop) = (controller.progress(), CancellationToken::new());
        let run = tokio::spawn(controller.run(stop.clone()));
        Self { feed, health, progress, stop, run }
    }

    fn history(&self) -> Vec<(Revision, Scope, Vec<Step>)> {
        self.feed.sink.history()
    }

    /// Whether the conditions of readiness are reported, by all sources alike.
    fn is_ready(&self) -> bool {
        let is_ready = self.progress.borrow().is_ready();
        assert!(self.feed.is_open() || !is_ready);
        assert_eq!(self.health.readiness().ok, is_ready);
        is_ready
    }

    fn unknown(&self) -> Vec<Kind> {
        self.progress.borrow().unknown.keys().copied().collect()
    }

    /// Ends it, and hands out what it has published.
    async fn stop(self) -> MemorySink {
        self.stop.cancel();
        self.run.await.unwrap().unwrap();
        Arc::into_inner(self.feed).unwrap().sink
    }
}

/// A server with a Gateway and two routes to a Service with an endpoint.
fn shop() -> ApiServer {
    let server = ApiServer::default();
    let object = |name: &str, rest: Value| {
        let mut object = rest;
        object["metadata"]["namespace"] = json!("shop");
        object["metadata"]["name"] = json!(name);
        object["metadata"]["uid"] = json!(name);
        object
    };
    server.apply(Kind::Namespace, json!({"metadata": {"name": "shop"}}));
    let class =
        json!({"metadata": {"name": "pingsix"}, "spec": {"controllerName": "pingsix.io/gateway-controller"}});
    server.apply(Kind::GatewayClass, class);
    let listener = json!({"name": "http", "port": 80, "protocol": "HTTP"});
    let gateway = json!({"spec": {"gatewayClassName": "pingsix", "listeners": [listener]}});
    server.apply(Kind::Gateway, object("web", gateway));
    server.apply(Kind::Service, object("cart", json!({"spec": {"ports": [{"port": 80}]}})));
    let slice = json!({
        "metadata": {"labels": {"kubernetes.io/service-name": "cart"}}, "addressType": "IPv4",
        "ports": [{"port": 8080}], "endpoints": [{"addresses": ["10.0.0.1"]}],
    });
    server.apply(Kind::EndpointSlice, object("cart", slice));
    for name in ["one", "two"] {
        let route = json!({"spec": {
            "parentRefs": [{"name": "web"}], "hostnames": [format!("{name}.example")],
            "rules": [{"backendRefs": [{"name": "cart", "port": 80}]}],
        }});
        server.apply(Kind::HttpRoute, object(name, route));
    }
    server
}

fn options() -> ControllerOptions {
    ControllerOptions::new(Options::default(), "test")
}

/// As long as an API server may take for a page and be waited for, nearly.
const SLOW: Answer = Answer::Slow { before: Duration::from_secs(50), after: Duration::ZERO };

#[tokio::test(start_paused = true)]
async fn publications_and_withdrawals_wait_for_a_kind_that_is_slow_to_list() {
    let listed = Kind::ALL.iter().copied().filter(|kind| presence(*kind) != Presence::Referenced);
    for kind in listed {
        let server = shop();
        server.fail(kind, Verb::List, SLOW);
        let first = Running::start(&server, MemorySink::new(), options());
        sleep(Duration::from_secs(49)).await;
        assert!(!first.is_ready(), "{kind}");
        assert_eq!(first.unknown(), [kind]);
        let report = first.health.readiness().text;
        assert!(report.contains(&format!("[-]watches failed: {kind}: It is being listed.")), "{report}");
        assert!(first.history().is_empty(), "{kind}: {:?}", first.history());
        sleep(Duration::from_secs(10)).await;
        assert!(first.is_ready(), "{kind}: {:?}", first.progress.borrow());
        assert_eq!(first.history().len(), 1, "all of it at once");
        let published = first.stop().await;

        // The next one finds what the first has published, and leaves it alone.
        let (scope, before) = (published.scopes()[0].clone(), published.history());
        let held = published.documents(&scope).unwrap();
        assert_eq!(held.iter().filter(|document| document.key.to_string().starts_with("routes/")).count(), 2);
        let next = Running::start(&server, published, options());
        sleep(Duration::from_secs(49)).await;
        assert!(!next.is_ready(), "{kind}");
        sleep(Duration::from_secs(10)).await;
        assert!(next.is_ready(), "{kind}: {:?}", next.progress.borrow());
        assert_eq!(next.history(), before, "{kind}");
        assert_eq!(next.stop().await.documents(&scope).unwrap(), held);
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_of_which_a_page_is_slow_is_no_list() {
    let server = shop();
    let mut options = options();
    options.watch.page_size = 1;
    // The second page is so slow that it is given up, and so is the one after the list was begun anew.
    let never = Answer::Slow { before: Duration::from_secs(70), after: Duration::ZERO };
    server.next(Kind::HttpRoute, Verb::List, [Answer::Served, never, Answer::Served, SLOW]);
    let running = Running::start(&server, MemorySink::new(), options);
    for _ in 0..100 {
        assert!(!running.is_ready());
        assert!(running.history().is_empty(), "half of the routes were published");
        sleep(Duration::from_secs(1)).await;
    }
    sleep(Duration::from_secs(20)).await;
    assert!(running.is_ready(), "{:?}", running.progress.borrow());
    assert_eq!(running.history().len(), 1, "all of it at once");
    assert_eq!(server.count(Kind::HttpRoute, Verb::List), 4);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_completes_running_publications_and_gives_up_stuck_ones() {
    for (fate, is_published) in [(Fate::Slow(Duration::from_secs(2)), true), (Fate::Stuck, false)] {
        let server = shop();
        let feed = SlowFeed::default();
        feed.fate("/pingsix/shop/web", fate);
        let running = Running::publishing_to(&server, feed, options());
        sleep(Duration::from_secs(1)).await;
        assert!(!running.is_ready() && running.history().is_empty(), "{fate:?}");
        let from = Instant::now();
        let published = running.stop().await;
        assert!(from.elapsed() < options().drain + Duration::from_secs(1), "{:?}", from.elapsed());
        assert_eq!(!published.history().is_empty(), is_published, "{fate:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_a_gateway_with_an_unanswered_secret_delays_no_other() {
    let server = shop();
    let https = json!({
        "name": "https", "port": 443, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "never"}]},
    });
    let http = json!({"name": "http", "port": 80, "protocol": "HTTP"});
    let hostile = json!({
        "metadata": {"namespace": "hostile", "name": "web", "uid": "hostile"},
        "spec": {"gatewayClassName": "pingsix", "listeners": [http, https]},
    });
    server.apply(Kind::Namespace, json!({"metadata": {"name": "hostile"}}));
    server.apply(Kind::Gateway, hostile);
    server.fail(Kind::Secret, Verb::List, Answer::Unanswered);
    let running = Running::start(&server, MemorySink::new(), options());
    sleep(Duration::from_secs(2)).await;
    assert!(running.feed.is_open(), "the neighbour has an answer");
    assert!(running.feed.held("/pingsix/shop/web").is_some_and(|documents| documents > 0));
    assert_eq!(running.feed.held("/pingsix/hostile/web"), None);
    assert!(!running.is_ready());
    sleep(Duration::from_secs(32)).await;
    assert!(running.is_ready(), "{}", running.health.readiness().text);
    assert_eq!(running.feed.held("/pingsix/hostile/web"), None);

    // A neighbour goes on.
    let before = running.history().len();
    server.remove(Kind::HttpRoute, "shop", "two");
    sleep(Duration::from_secs(2)).await;
    assert_eq!(running.history().len(), before + 1);
    sleep(Duration::from_mins(1)).await;
    assert!(running.feed.held("/pingsix/hostile/web").is_some(), "what is known of it is served");
    running.stop().await;
}
