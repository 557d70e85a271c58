//! The embedded server as a program with `etcd-client` reads it.

use std::time::Duration;

use bytes::Bytes;
use etcd_client::{
    Client, Compare, CompareOp, ConnectOptions, EventType, GetOptions, SortOrder, SortTarget, Txn, TxnOp,
    TxnOpResponse, WatchOptions, WatchResponse, WatchStream,
};
use pingsix_sink::{Desired, Document, DocumentSet, EmbeddedEtcd, Key, OrderHint, Owner, Scope, Sink};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

fn desired(documents: &[(&str, &str)]) -> Desired {
    let documents = documents.iter().map(|(key, value)| Document {
        key: Key::new(*key).unwrap(),
        value: Bytes::from(value.to_string()),
        order: OrderHint(u32::from(key.starts_with("routes/"))),
        owner: Owner::new("interop"),
    });
    Desired::new(Scope::new("/p/web").unwrap(), DocumentSet::new(documents).unwrap())
}

/// The code of gRPC for a function that the server does not have.
const UNIMPLEMENTED: i32 = 12;

fn code(error: &etcd_client::Error) -> Option<i32> {
    match error {
        etcd_client::Error::GRpcStatus(status) => Some(status.code() as i32),
        _ => None,
    }
}

/// A server with two documents, its address, and what stops it.
async fn served() -> (EmbeddedEtcd, String, DropGuard) {
    let etcd = EmbeddedEtcd::builder().start().await.unwrap();
    etcd.publish(&desired(&[("routes/a", "A"), ("upstreams/u", "U")])).await.unwrap();
    etcd.open();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let token = CancellationToken::new();
    let (server, shutdown) = (etcd.clone(), token.clone());
    tokio::spawn(async move { server.serve(listener, shutdown).await.unwrap() });
    (etcd, address, token.drop_guard())
}

async fn connect(address: &str) -> Client {
    let options = ConnectOptions::new()
        .with_timeout(Duration::from_secs(5))
        .with_connect_timeout(Duration::from_secs(3))
        .with_keep_alive(Duration::from_secs(5), Duration::from_secs(5));
    Client::connect([address], Some(options)).await.unwrap()
}

async fn next(stream: &mut WatchStream) -> WatchResponse {
    tokio::time::timeout(Duration::from_secs(10), stream.message()).await.expect("in time").unwrap().unwrap()
}

fn events(response: &WatchResponse) -> Vec<String> {
    let describe = |event: &etcd_client::Event| {
        let kv = event.kv().unwrap();
        match event.event_type() {
            EventType::Put => format!("{}={}", kv.key_str().unwrap(), kv.value_str().unwrap()),
            EventType::Delete => format!("{} gone", kv.key_str().unwrap()),
        }
    };
    response.events().iter().map(describe).collect()
}

#[tokio::test]
async fn lists_then_watches_from_the_next_revision_as_pingsix_does() {
    let (etcd, address, _stop) = served().await;
    let mut client = connect(&address).await;
    let list = client.get("/p/web/", Some(GetOptions::new().with_prefix())).await.unwrap();
    assert_eq!(list.kvs().len(), 2);
    let listed = list.header().unwrap().revision();

    let options = WatchOptions::new().with_start_revision(listed + 1).with_prefix().with_progress_notify();
    let mut stream = client.watch("/p/web/", Some(options)).await.unwrap();
    let published = etcd.publish(&desired(&[("routes/a", "2"), ("upstreams/w", "W")])).await.unwrap();
    let mut response = next(&mut stream).await;
    if response.created() && response.events().is_empty() {
        response = next(&mut stream).await;
    }
    assert_eq!(events(&response), ["/p/web/upstreams/w=W", "/p/web/routes/a=2", "/p/web/upstreams/u gone"]);
    assert_eq!(response.header().unwrap().revision(), published.revision.get());
    assert!(published.revision.get() > listed);

    stream.request_progress().await.unwrap();
    let progress = next(&mut stream).await;
    assert_eq!((progress.watch_id(), progress.events().len()), (-1, 0));
    assert_eq!(progress.header().unwrap().revision(), published.revision.get());
    stream.cancel(response.watch_id()).await.unwrap();
    assert!(next(&mut stream).await.canceled());
}

#[tokio::test]
async fn options_of_a_get_are_honoured() {
    let (_etcd, address, _stop) = served().await;
    let mut client = connect(&address).await;
    let options =
        GetOptions::new().with_prefix().with_limit(1).with_sort(SortTarget::Key, SortOrder::Ascend);
    let first = client.get("/p/web/", Some(options)).await.unwrap();
    assert_eq!(
        (first.kvs()[0].key_str().unwrap(), first.more(), first.count()),
        ("/p/web/routes/a", true, 2)
    );
    let listed = first.header().unwrap().revision();
    let next = GetOptions::new().with_range("/p/web0").with_revision(listed);
    let next = client.get("/p/web/routes/a\0", Some(next)).await.unwrap();
    assert_eq!((next.kvs()[0].key_str().unwrap(), next.more()), ("/p/web/upstreams/u", false));
    let last = GetOptions::new().with_prefix().with_sort(SortTarget::Key, SortOrder::Descend);
    let refused = client.get("/p/web/", Some(last)).await.unwrap_err();
    assert_eq!(code(&refused), Some(UNIMPLEMENTED), "{refused}");
    let count = client.get("/p/web/", Some(GetOptions::new().with_prefix().with_count_only())).await.unwrap();
    assert_eq!((count.count(), count.kvs().len()), (2, 0));
    let all = client.get("", Some(GetOptions::new().with_all_keys().with_keys_only())).await.unwrap();
    assert!(all.kvs().iter().all(|kv| kv.value().is_empty()) && all.count() == 2);
    let past =
        client.get("/p/web/", Some(GetOptions::new().with_prefix().with_revision(1))).await.unwrap_err();
    assert!(past.to_string().contains("required revision has been compacted"), "{past}");
    let unknown = client.get("/q/", Some(GetOptions::new().with_prefix())).await.unwrap_err();
    assert!(unknown.to_string().contains("no published scope"), "{unknown}");
}

#[tokio::test]
async fn transactions_read_and_writes_are_refused() {
    let (_etcd, address, _stop) = served().await;
    let mut client = connect(&address).await;
    let read = Txn::new()
        .when([Compare::value("/p/web/routes/a", CompareOp::Equal, "A")])
        .and_then([TxnOp::get("/p/web/routes/a", None)]);
    let response = client.txn(read).await.unwrap();
    assert!(response.succeeded());
    match &response.op_responses()[0] {
        TxnOpResponse::Get(get) => assert_eq!(get.kvs()[0].value(), b"A"),
        other => panic!("{other:?}"),
    }
    let write = Txn::new().and_then([TxnOp::put("/p/web/routes/a", "x", None)]);
    assert!(client.txn(write).await.unwrap_err().to_string().contains("read-only"));
    assert!(client.put("/p/web/routes/a", "x", None).await.unwrap_err().to_string().contains("read-only"));
    assert!(client.delete("/p/web/routes/a", None).await.unwrap_err().to_string().contains("read-only"));
}

#[tokio::test]
async fn the_status_is_answered_and_passwords_are_refused() {
    let (etcd, address, _stop) = served().await;
    let mut client = connect(&address).await;
    assert_eq!(client.status().await.unwrap().header().unwrap().revision(), etcd.revision().get());

    let options = ConnectOptions::new().with_user("root", "secret");
    let refused = match Client::connect([address.as_str()], Some(options)).await {
        Ok(mut client) => {
            client.get("/p/web/", Some(GetOptions::new().with_prefix())).await.map(|_| ()).unwrap_err()
        }
        Err(error) => error,
    };
    assert_eq!(code(&refused), Some(UNIMPLEMENTED), "{refused}");
}

#[tokio::test]
async fn a_watch_from_a_lost_past_is_cancelled_with_its_reason() {
    let (_etcd, address, _stop) = served().await;
    let mut client = connect(&address).await;
    let options = WatchOptions::new().with_prefix().with_start_revision(1);
    match client.watch("/p/web/", Some(options)).await {
        Ok(mut stream) => {
            let mut response = next(&mut stream).await;
            while !response.canceled() {
                response = next(&mut stream).await;
            }
            assert!(response.compact_revision() > 1);
        }
        Err(error) => assert!(error.to_string().contains("compacted"), "{error}"),
    }
}
