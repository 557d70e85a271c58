//! What PingSIX pays for each Route when it applies a change, by the shape of the Routes: the cost model that lowering
//! follows (`pingsix-translate/src/lower/service.rs`) and that the feed paces data planes by (`pingsix-sink/src/embedded/pace.rs`).
//!
//! `just bench-apply [ROUTES]` puts so many Routes of one shape (3,000) into a real etcd, changes one of them ten times, and
//! divides PingSIX's processor time of a change by the number of Routes. Needs etcd and `PINGSIX_BIN`, and says so when one
//! is missing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a measurement that cannot go on fails"
)]

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use pingsix_test_programs::proto::etcdserverpb::PutRequest;
use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use pingsix_test_programs::{Etcd, free_address, pingsix_config};
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::time::sleep;
use tonic::transport::Channel;

const PREFIX: &str = "/pingsix/bench";

/// The number of changes.
const CHANGES: usize = 10;

/// The interval between two requests for the status page, which cost PingSIX little.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

const WAIT_TIMEOUT: Duration = Duration::from_mins(2);

/// A shape of Routes: the documents that they share, and a Route by its number and the number of its changes.
struct Shape {
    name: &'static str,
    shared: fn() -> Vec<(String, Value)>,
    route: fn(usize, usize) -> Vec<(String, Value)>,
}

const SHAPES: [Shape; 12] = [
    Shape {
        name: "one uri, `upstream_id`",
        shared: upstream,
        route: |n, c| one(n, json!({"uri": path(n, c)})),
    },
    Shape { name: "three uris, as of a prefix", shared: upstream, route: |n, c| one(n, prefix(n, c)) },
    Shape {
        name: "three hosts, three uris each",
        shared: upstream,
        route: |n, c| {
            let hosts = ["a", "b", "c"].map(|name| format!("{name}.h{n}.example"));
            one(n, with(prefix(n, c), json!({"host": null, "hosts": hosts})))
        },
    },
    Shape {
        name: "+ `response-rewrite` on the Route",
        shared: upstream,
        route: |n, c| one(n, with(prefix(n, c), json!({"plugins": header("response-rewrite")}))),
    },
    Shape {
        name: "+ `proxy-rewrite` and `response-rewrite` on the Route",
        shared: upstream,
        route: |n, c| {
            let plugins = with(header("response-rewrite"), header("proxy-rewrite"));
            one(n, with(prefix(n, c), json!({"plugins": plugins})))
        },
    },
    Shape {
        name: "+ `fault-injection` on the Route",
        shared: upstream,
        route: |n, c| one(n, with(prefix(n, c), json!({"plugins": abort()}))),
    },
    Shape {
        name: "+ `traffic-split` of two upstreams",
        shared: upstream,
        route: |n, c| {
            let split = json!({"traffic-split": {"rules": [{"weighted_upstreams": [
                {"upstream_id": "u", "weight": 1}, {"upstream_id": "v", "weight": 1},
            ]}]}});
            one(n, with(prefix(n, c), json!({"plugins": split})))
        },
    },
    Shape {
        name: "an inline upstream",
        shared: Vec::new,
        route: |n, c| one(n, with(prefix(n, c), json!({"upstream_id": null, "upstream": nodes()}))),
    },
    Shape {
        name: "an upstream of its own for each Route",
        shared: Vec::new,
        route: |n, c| {
            let mut documents = vec![(format!("upstreams/u{n}"), nodes())];
            documents.extend(one(n, with(prefix(n, c), json!({"upstream_id": format!("u{n}")}))));
            documents
        },
    },
    Shape {
        name: "a service of its own for each Route, with `response-rewrite`",
        shared: upstream,
        route: |n, c| {
            let service = json!({"upstream_id": "u", "plugins": header("response-rewrite")});
            let mut documents = vec![(format!("services/s{n}"), service)];
            let of = json!({"upstream_id": null, "service_id": format!("s{n}")});
            documents.extend(one(n, with(prefix(n, c), of)));
            documents
        },
    },
    Shape {
        name: "one service with `response-rewrite` for all, `upstream_id` on the Route",
        shared: || {
            let mut documents = upstream();
            let service = json!({"upstream_id": "u", "plugins": header("response-rewrite")});
            documents.push(("services/s".to_owned(), service));
            documents
        },
        route: |n, c| one(n, with(prefix(n, c), json!({"service_id": "s"}))),
    },
    Shape {
        name: "one service with `fault-injection` for all",
        shared: || vec![("services/s".to_owned(), json!({"upstream": nodes(), "plugins": abort()}))],
        route: |n, c| one(n, with(prefix(n, c), json!({"upstream_id": null, "service_id": "s"}))),
    },
];

fn path(number: usize, change: usize) -> String {
    format!("/{number}/{change}")
}

/// The patterns of a prefix, as lowering writes them.
fn prefix(number: usize, change: usize) -> Value {
    let path = path(number, change);
    json!({"uris": [format!("{path}/"), path, format!("{path}/{{*p}}")]})
}

fn one(number: usize, fields: Value) -> Vec<(String, Value)> {
    let route = json!({"host": format!("h{number}.example"), "priority": 10, "upstream_id": "u"});
    let mut route = with(route, fields);
    route.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    vec![(format!("routes/r{number}"), route)]
}

/// An object with more fields. A null stands for no field.
fn with(mut object: Value, fields: Value) -> Value {
    let (Value::Object(into), Value::Object(fields)) = (&mut object, fields) else { panic!("objects") };
    into.extend(fields);
    object
}

fn nodes() -> Value {
    json!({"nodes": {"127.0.0.1:9": 1}, "retries": 1})
}

fn upstream() -> Vec<(String, Value)> {
    ["u", "v"].map(|name| (format!("upstreams/{name}"), nodes())).into()
}

fn header(plugin: &str) -> Value {
    let header = match plugin {
        "proxy-rewrite" => json!([{"name": "x-name", "value": "value"}]),
        _ => json!({"x-name": "value"}),
    };
    json!({plugin: {"headers": {"set": header}}})
}

fn abort() -> Value {
    json!({"fault-injection": {"abort": {"http_status": 500}}})
}

#[tokio::main]
async fn main() {
    let routes = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(3_000);
    println!("| {routes} Routes | processor time of PingSIX for each Route and change | bytes of each |");
    println!("|---|---|---|");
    for shape in &SHAPES {
        let (Some(etcd), Some(program)) = (Etcd::start().await, pingsix_test_programs::pingsix()) else {
            return;
        };
        measure(shape, routes, &etcd, &program).await;
    }
}

async fn measure(shape: &Shape, routes: usize, etcd: &Etcd, program: &Path) {
    let channel = Channel::from_shared(etcd.url()).unwrap().connect().await.unwrap();
    let mut store = KvClient::new(channel);
    let (mut bytes, mut last) = (0, 0);
    let documents =
        (shape.shared)().into_iter().chain((0..routes).flat_map(|number| (shape.route)(number, 0)));
    for (key, document) in documents {
        bytes += key.len() + document.to_string().len();
        last = put(&mut store, &key, &document).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let (pingsix, status) = start(program, folder.path(), etcd);
    let pid = pingsix.id().expect("PingSIX runs");
    published(status, last).await;
    let mut used = Duration::ZERO;
    for change in 1..=CHANGES {
        let before = cpu(pid);
        for (key, document) in (shape.route)(change * 7 % routes, change) {
            // A Route changes, and the documents that belong to it stay.
            if key.starts_with("routes/") {
                last = put(&mut store, &key, &document).await;
            }
        }
        published(status, last).await;
        used += cpu(pid).checked_sub(before).unwrap();
    }
    let of_each = used / u32::try_from(CHANGES * routes).unwrap();
    println!("| {} | {:.1} us | {} |", shape.name, of_each.as_secs_f64() * 1e6, bytes / routes);
}

async fn put(store: &mut KvClient<Channel>, key: &str, document: &Value) -> i64 {
    let put = PutRequest {
        key: Bytes::from(format!("{PREFIX}/{key}")),
        value: Bytes::from(document.to_string()),
        ..PutRequest::default()
    };
    store.put(put).await.unwrap().into_inner().header.unwrap().revision
}

/// Starts PingSIX, which ends with the value. Returns the address of its status page, too.
fn start(program: &Path, folder: &Path, etcd: &Etcd) -> (Child, SocketAddr) {
    let [address, status] = [free_address(), free_address()];
    let config = pingsix_config(folder, address, (&etcd.url(), PREFIX), status);
    let log = fs::File::create(folder.join("log")).unwrap();
    let child = Command::new(program)
        .arg("-c")
        .arg(&config)
        // PingSIX would write a line for each document each time.
        .env("RUST_LOG", "warn")
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    (child, status)
}

/// Waits until a revision is published.
async fn published(status: SocketAddr, revision: i64) {
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let (page, started) = (format!("http://{status}/status/config"), Instant::now());
    loop {
        if let Ok(answer) = client.get(page.parse().unwrap()).await {
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            let view: Value = serde_json::from_slice(&body).unwrap();
            if view["published_revision"].as_i64() >= Some(revision) {
                return;
            }
            assert!(view["error_kind"].is_null(), "{view}");
        }
        assert!(started.elapsed() < WAIT_TIMEOUT, "{revision} is not published");
        sleep(POLL_INTERVAL).await;
    }
}

/// Processor time of all threads.
fn cpu(pid: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let times = threads.map(|thread| {
        let text = fs::read_to_string(thread.unwrap().path().join("schedstat")).unwrap_or_default();
        text.split(' ').next().and_then(|time| time.parse().ok()).unwrap_or(0)
    });
    Duration::from_nanos(times.sum())
}
