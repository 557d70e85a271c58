//! The HTTP servers: one for health and metrics, one for debugging.
//!
//! | path | answer |
//! |---|---|
//! | `/livez`, `/readyz` | 200 or 503, with a line per check |
//! | `/metrics` | the metrics, in the text format of `OpenMetrics` |
//! | `/debug/{world,index,queue,translation,sink}` | a dump as JSON; `?about=KIND/NAMESPACE/NAME` for one object |
//! | `/view` | pages for people ([`crate::view`]) |
//!
//! Each answers only under names that no stranger can have, and what `/livez` and `/readyz` say
//! names no object.
//!
//! Every wait has an end ([`http_server`]).

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Json, Router};
use hyper_util::service::TowerToHyperService;
use pingsix_sink::hosts::{ASK_LOCALLY, is_local};
use pingsix_sink::http_server::{self, Versions};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::debug::{About, DebugClient, DebugError, Dump};
use crate::health::{Health, Report};
use crate::metrics::{CONTENT_TYPE, Metrics};
use crate::view::question;

/// The time limit of a dump; the task that answers has other work, too.
const DUMP_TIMEOUT: Duration = Duration::from_secs(15);

/// The pages that are made at a time. Each takes a processor for a moment.
const MAX_CONCURRENT_VIEWS: usize = 2;

/// `/livez`, `/readyz` and `/metrics`.
pub fn health_and_metrics(health: Health, metrics: Arc<Metrics>) -> Router {
    let healthy = Router::new()
        .route("/livez", get(|State(health): State<Health>| async move { page(health.liveness()) }))
        .route("/readyz", get(|State(health): State<Health>| async move { page(health.readiness()) }))
        .with_state(health);
    let counted = Router::new()
        .route(
            "/metrics",
            get(|State(metrics): State<Arc<Metrics>>| async move {
                ([(header::CONTENT_TYPE, CONTENT_TYPE)], metrics.encode())
            }),
        )
        .with_state(metrics);
    healthy.merge(counted).layer(from_fn(local_only))
}

/// `/debug` with the dumps below it, and `/view` with the pages below it.
pub fn debug(client: DebugClient) -> Router {
    let dumps = Router::new().route("/debug", get(list)).route("/debug/{dump}", get(dump));
    let pages = ["/", "/view", "/view/", "/view/{*page}"];
    let pages = pages.into_iter().fold(Router::new(), |router, path| router.route(path, any(view)));
    let views = Views { client: client.clone(), places: Arc::new(Semaphore::new(MAX_CONCURRENT_VIEWS)) };
    dumps.with_state(client).merge(pages.with_state(views)).layer(from_fn(local_only))
}

/// The source of pages.
#[derive(Clone)]
struct Views {
    client: DebugClient,
    /// The pages that may be made at a time.
    places: Arc<Semaphore>,
}

async fn view(State(Views { client, places }): State<Views>, request: Request) -> Response {
    let question = match question(&request) {
        Ok(question) => question,
        Err(answer) => return (*answer).map(Body::from),
    };
    let page = async {
        // The semaphore is never closed.
        let place = places.acquire_owned().await.ok();
        let model = client.view().await?;
        // An explanation builds a router of all documents. The thread keeps its place if the browser has gone.
        let page = spawn_blocking(move || (question.answer(&model), place)).await;
        Ok::<_, DebugError>(page.map_err(|_| DebugError::Gone)?.0)
    };
    match timeout(DUMP_TIMEOUT, page).await {
        Ok(Ok(page)) => page.map(Body::from),
        Ok(Err(error)) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response(),
        Err(_) => (StatusCode::GATEWAY_TIMEOUT, "the controller does not answer in time\n").into_response(),
    }
}

/// Answers a request whose host a stranger cannot have, and no other.
async fn local_only(request: Request, next: Next) -> Response {
    if is_local(&request) {
        return next.run(request).await;
    }
    (StatusCode::MISDIRECTED_REQUEST, ASK_LOCALLY).into_response()
}

fn page(report: Report) -> Response {
    let status = if report.ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    // Proxies must not cache the answer.
    (status, [(header::CACHE_CONTROL, "no-store")], report.text).into_response()
}

async fn list() -> Json<Vec<String>> {
    Json(Dump::ALL.iter().map(|dump| format!("/debug/{}", dump.as_str())).collect())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    about: Option<String>,
}

async fn dump(
    State(client): State<DebugClient>,
    Path(name): Path<String>,
    question: Result<Query<Question>, QueryRejection>,
) -> Response {
    let Some(dump) = Dump::ALL.iter().copied().find(|known| known.as_str() == name) else {
        return (StatusCode::NOT_FOUND, "there is no such dump; /debug lists them\n").into_response();
    };
    let Ok(Query(question)) = question else {
        return (StatusCode::BAD_REQUEST, "the only parameter is about=KIND/NAMESPACE/NAME\n")
            .into_response();
    };
    let about = match question.about.map(|about| about.parse::<About>()).transpose() {
        Ok(about) => about.map(|About(key)| key),
        Err(expected) => return (StatusCode::BAD_REQUEST, format!("about: {expected}\n")).into_response(),
    };
    match timeout(DUMP_TIMEOUT, client.ask(dump, about)).await {
        Ok(Ok(value)) => ([(header::CACHE_CONTROL, "no-store")], Json(value)).into_response(),
        Ok(Err(error @ (DebugError::Busy | DebugError::Gone))) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response()
        }
        Err(_) => (StatusCode::GATEWAY_TIMEOUT, "the controller does not answer in time\n").into_response(),
    }
}

/// Answers requests that arrive at a listener until it is stopped; then lets those in progress end for a short while.
pub async fn serve(name: &'static str, listener: TcpListener, router: Router, stop: CancellationToken) {
    let address = listener.local_addr().ok();
    info!(server = name, address = address.map(tracing::field::display), "serving HTTP");
    http_server::serve(listener, TowerToHyperService::new(router), Versions::Http1, stop).await;
    info!(server = name, "stopped serving HTTP");
}

#[cfg(test)]
mod tests {
    use pingsix_translate::{Kind, ObjectKey, Options};
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::task::JoinHandle;

    use super::super::debug::{self, DebugRequest};
    use super::*;
    use crate::view::Model;

    struct Served {
        address: std::net::SocketAddr,
        stop: CancellationToken,
        task: JoinHandle<()>,
    }

    impl Served {
        async fn new(router: Router) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let stop = CancellationToken::new();
            let task = tokio::spawn(serve("test", listener, router, stop.clone()));
            Self { address, stop, task }
        }

        /// Status line, head and body of an answer.
        async fn ask(&self, method: &str, path: &str) -> (u16, String, String) {
            self.ask_as("test", method, path).await
        }

        /// The same, of a server that goes by this name.
        async fn ask_as(&self, host: &str, method: &str, path: &str) -> (u16, String, String) {
            let mut stream = TcpStream::connect(self.address).await.unwrap();
            let request = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            let status = head.split(' ').nth(1).unwrap().parse().unwrap();
            (status, head.to_lowercase(), body.to_owned())
        }

        async fn end(self) {
            self.stop.cancel();
            self.task.await.unwrap();
        }
    }

    #[tokio::test]
    async fn under_the_name_of_a_stranger_nothing_is_answered() {
        let health = Health::new(Duration::from_mins(1));
        let (client, _requests) = debug::channel();
        let router = health_and_metrics(health, Arc::new(Metrics::new(""))).merge(debug(client));
        let served = Served::new(router).await;
        for path in
            ["/livez", "/readyz", "/metrics", "/debug", "/debug/world", "/", "/view", "/view/style.css"]
        {
            let (status, _, body) = served.ask_as("evil.example.com", "GET", path).await;
            assert_eq!(status, 421, "{path}");
            assert!(body.starts_with("ask by IP address"), "{path}: {body}");
        }
        let address = served.address.to_string();
        for host in [address.as_str(), "controller.pingsix-system.svc:8080"] {
            assert_eq!(served.ask_as(host, "GET", "/livez").await.0, 200, "{host}");
            assert_eq!(served.ask_as(host, "GET", "/debug").await.0, 200, "{host}");
        }
        served.end().await;
    }

    #[tokio::test]
    async fn health_and_metrics_are_pages() {
        let health = Health::new(Duration::from_mins(1));
        let gate = health.gate("published", "nothing is published yet");
        let metrics = Arc::new(Metrics::new("1.2.3"));
        let served = Served::new(health_and_metrics(health, Arc::clone(&metrics))).await;

        let (status, _, body) = served.ask("GET", "/livez").await;
        assert_eq!((status, body.as_str()), (200, "[+]reconcile ok\nlivez check passed\n"));
        let (status, _, body) = served.ask("GET", "/readyz?verbose").await;
        assert_eq!(status, 503);
        assert!(body.contains("[-]published failed: nothing is published yet"), "{body}");
        gate.open();
        assert_eq!(served.ask("GET", "/readyz").await.0, 200);
        metrics.leader(true);
        let (status, head, body) = served.ask("GET", "/metrics").await;
        assert_eq!(status, 200);
        assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
        assert!(body.contains("pingsix_gateway_leader 1\n") && body.ends_with("# EOF\n"), "{body}");
        assert!(body.contains("pingsix_gateway_build_info{version=\"1.2.3\"} 1"), "{body}");
        assert_eq!(served.ask("POST", "/livez").await.0, 405);
        assert_eq!(served.ask("GET", "/debug/world").await.0, 404, "dumps are for the other server");
        served.end().await;
    }

    #[tokio::test]
    async fn dumps_are_answered_by_whoever_holds_what_they_show() {
        let (client, mut requests) = debug::channel();
        let served = Served::new(debug(client)).await;
        let holder = tokio::spawn(async move {
            let mut asked = Vec::new();
            for _ in 0..2 {
                let request = requests.recv().await.unwrap();
                let DebugRequest::Dump { dump, about, reply } = request else { panic!("{request:?}") };
                reply.send(json!({ "dump": dump.as_str() })).unwrap();
                asked.push((dump, about));
            }
            asked
        });
        let (status, head, body) = served.ask("GET", "/debug/queue").await;
        assert_eq!((status, body.as_str()), (200, r#"{"dump":"queue"}"#));
        assert!(head.contains("content-type: application/json"), "{head}");
        let (status, _, body) = served.ask("GET", "/debug/world?about=HTTPRoute%2Fshop%2Fcart").await;
        assert_eq!((status, body.as_str()), (200, r#"{"dump":"world"}"#));
        let cart = ObjectKey::new(Kind::HttpRoute, "shop", "cart");
        assert_eq!(holder.await.unwrap(), [(Dump::Queue, None), (Dump::World, Some(cart))]);

        let (status, _, body) = served.ask("GET", "/debug/sink").await;
        assert_eq!((status, body.as_str()), (503, "the controller does not answer\n"));
        let (_, _, body) = served.ask("GET", "/debug").await;
        let listed: Vec<String> = serde_json::from_str::<Value>(&body)
            .unwrap()
            .as_array()
            .unwrap()
            .iter()
            .map(|path| path.as_str().unwrap().to_owned())
            .collect();
        assert_eq!(listed.len(), Dump::ALL.len());
        for (path, expected) in [
            ("/debug/secrets", 404),
            ("/debug/world?about=Secret", 400),
            ("/debug/world?about=Gateway/web", 400),
            ("/debug/world?about=GatewayClass/a/b", 400),
            ("/debug/world?of=Gateway/infra/web", 400),
        ] {
            assert_eq!(served.ask("GET", path).await.0, expected, "{path}");
        }
        served.end().await;
    }

    #[tokio::test]
    async fn pages_are_made_from_the_model_of_the_holder() {
        let (client, mut requests) = debug::channel();
        let served = Served::new(debug(client)).await;
        let holder = tokio::spawn(async move {
            let mut answers = 0;
            while let Some(request) = requests.recv().await {
                let DebugRequest::View { reply } = request else { panic!("{request:?}") };
                reply.send(Model::new(Options::default(), vec!["--cluster".to_owned()], [])).unwrap();
                answers += 1;
                if answers == 2 {
                    break;
                }
            }
        });
        let (status, head, body) = served.ask("GET", "/view").await;
        assert_eq!(status, 200, "{body}");
        assert!(head.contains("content-type: text/html") && head.contains("default-src 'none'"), "{head}");
        assert!(body.contains("No Gateway or IngressClass is served."), "{body}");
        assert_eq!(served.ask("GET", "/view/routes?search=cart").await.0, 200);
        holder.await.unwrap();
        // Without the holder, files and refusals are answered all the same.
        let (status, _, body) = served.ask("GET", "/view").await;
        assert_eq!((status, body.as_str()), (503, "the controller does not answer\n"));
        for (method, path, expected) in [
            ("GET", "/", 303),
            ("GET", "/view/", 303),
            ("GET", "/view/style.css", 200),
            ("GET", "/view/none", 404),
            ("GET", "/view?page=0", 400),
            ("POST", "/view", 405),
            ("DELETE", "/view/object?about=HTTPRoute/shop/cart", 405),
        ] {
            assert_eq!(served.ask(method, path).await.0, expected, "{method} {path}");
        }
        served.end().await;
    }

    #[tokio::test]
    async fn no_more_questions_wait_than_there_is_room_for() {
        let (client, requests) = debug::channel();
        let waiting: Vec<_> = (0..8)
            .map(|_| {
                let client = client.clone();
                tokio::spawn(async move { client.ask(Dump::World, None).await })
            })
            .collect();
        while requests.len() < 8 {
            tokio::task::yield_now().await;
        }
        assert_eq!(client.ask(Dump::World, None).await, Err(DebugError::Busy));
        drop(requests);
        for question in waiting {
            assert_eq!(question.await.unwrap(), Err(DebugError::Gone));
        }
    }

    #[tokio::test]
    async fn a_stop_ends_idle_connections_at_once() {
        let health = Health::new(Duration::from_mins(1));
        let served = Served::new(health_and_metrics(health, Arc::new(Metrics::new("")))).await;
        let mut idle = TcpStream::connect(served.address).await.unwrap();
        idle.write_all(b"GET /livez HTTP/1.1\r\nhost: test\r\n\r\n").await.unwrap();
        let mut some = [0; 16];
        assert!(idle.read(&mut some).await.unwrap() > 0);
        let address = served.address;
        timeout(Duration::from_secs(2), served.end()).await.unwrap();
        assert!(TcpStream::connect(address).await.is_err());
    }
}
