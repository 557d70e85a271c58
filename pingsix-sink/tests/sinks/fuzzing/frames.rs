//! Messages of any bytes to a server that continues to serve.

use std::time::Duration;

use bytes::{Buf as _, BufMut as _, Bytes};
use pingsix_sink::{Desired, Document, DocumentSet, EmbeddedEtcd, Key, OrderHint, Owner, Scope, Sink as _};
use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use pingsix_test_programs::proto::etcdserverpb::{
    RangeRequest, RangeResponse, TxnResponse, WatchRequest, WatchResponse,
};
use prost::Message as _;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use super::input::Input;

const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

/// A server with one scope, and a connection to it.
pub(crate) struct Target {
    runtime: Runtime,
    etcd: EmbeddedEtcd,
    channel: Channel,
    published: u64,
}

impl Target {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (etcd, channel) = runtime.block_on(async {
            let etcd = EmbeddedEtcd::builder().start().await.expect("a server");
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
            let address = listener.local_addr().expect("an address");
            etcd.publish(&state(0)).await.expect("a publication");
            etcd.open();
            let server = etcd.clone();
            tokio::spawn(async move { server.serve(listener, CancellationToken::new()).await });
            let endpoint = Channel::from_shared(format!("http://{address}")).expect("an address");
            (etcd, endpoint.connect().await.expect("a connection"))
        });
        Self { runtime, etcd, channel, published: 0 }
    }

    /// Sends the messages that these bytes describe. Returns errors of the responses.
    pub(crate) fn run(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut input = Input(bytes);
        let mut errors = Vec::new();
        let Self { runtime, etcd, channel, published } = self;
        runtime.block_on(async {
            let doing = async {
                while !input.is_empty() {
                    match input.below(4) {
                        0 => range(channel, input.bytes(), etcd, &mut errors).await,
                        1 => txn(channel, input.bytes(), &mut errors).await,
                        2 => watch(channel, &mut input, &mut errors).await,
                        _ => {
                            *published += 1;
                            etcd.publish(&state(*published)).await.expect("a publication");
                        }
                    }
                }
            };
            let ended = tokio::time::timeout(WAIT_TIMEOUT, doing).await.is_ok();
            let ended = ended
                && tokio::time::timeout(WAIT_TIMEOUT, health(channel, *published, &mut errors)).await.is_ok();
            let quiet = async {
                while etcd.stats().streams > 0 {
                    tokio::task::yield_now().await;
                }
            };
            if !ended || tokio::time::timeout(WAIT_TIMEOUT, quiet).await.is_err() {
                errors.push(format!("something is left undone: {:?}", etcd.stats()));
            }
        });
        errors
    }
}

/// Two documents that change, and one that exists in some states.
fn state(number: u64) -> Desired {
    let document = |id: &str| Document {
        key: Key::new(format!("routes/{id}")).expect("a valid key"),
        value: number.to_string().into(),
        order: OrderHint(0),
        owner: Owner::new("test"),
    };
    let ids: &[&str] = if number.is_multiple_of(2) { &["a", "b", "c"] } else { &["a", "b"] };
    let scope = Scope::new("/p/web").expect("a valid scope");
    Desired::new(scope, DocumentSet::new(ids.iter().map(|id| document(id))).expect("unique keys"))
}

/// Checks the responses to a well-behaved client.
async fn health(channel: &Channel, published: u64, errors: &mut Vec<String>) {
    let request =
        RangeRequest { key: "/p/web/".into(), range_end: "/p/web0".into(), ..RangeRequest::default() };
    match KvClient::new(channel.clone()).range(request).await {
        Ok(answer) => {
            let expected = state(published);
            let values: Vec<_> = answer.get_ref().kvs.iter().map(|kv| &kv.value).collect();
            let wanted: Vec<_> = expected.documents().iter().map(|document| &document.value).collect();
            if values != wanted {
                errors.push(format!("the list is {values:?} instead of {wanted:?}"));
            }
        }
        Err(status) => errors.push(format!("an honest list was answered {status}")),
    }
}

async fn range(channel: &Channel, frame: &[u8], etcd: &EmbeddedEtcd, errors: &mut Vec<String>) {
    let answer = match unary(channel, "/etcdserverpb.KV/Range", frame).await {
        Ok(answer) => answer,
        Err(status) => return expect_refusal(&status, errors),
    };
    let (Ok(request), Ok(answer)) = (RangeRequest::decode(frame), RangeResponse::decode(answer)) else {
        return errors.push("a message that is no range request was answered".to_owned());
    };
    let kept = usize::try_from(answer.count).unwrap_or_default();
    let limited =
        request.limit > 0 && answer.kvs.len() > usize::try_from(request.limit).unwrap_or(usize::MAX);
    let outside = answer.kvs.iter().any(|kv| {
        let end = &request.range_end;
        let one = end.is_empty() && kv.key != request.key;
        let beyond = !end.is_empty() && **end != [0] && kv.key >= *end;
        one || beyond || (!end.is_empty() && kv.key < request.key)
    });
    let header = answer.header.map_or(0, |header| header.revision);
    if answer.kvs.len() > kept || limited || outside || header > etcd.revision().get() {
        errors.push(format!("{request:?} was answered {answer:?}"));
    }
}

async fn txn(channel: &Channel, frame: &[u8], errors: &mut Vec<String>) {
    match unary(channel, "/etcdserverpb.KV/Txn", frame).await {
        Ok(answer) if TxnResponse::decode(answer.clone()).is_ok() => {}
        Ok(answer) => errors.push(format!("{answer:?} is no answer to a transaction")),
        Err(status) => expect_refusal(&status, errors),
    }
}

/// Sends several frames on one watch stream, and reads until all are answered.
async fn watch(channel: &Channel, input: &mut Input<'_>, errors: &mut Vec<String>) {
    let frames: Vec<Bytes> = (0..=input.below(4)).map(|_| Bytes::copy_from_slice(input.bytes())).collect();
    let mut started: Vec<i64> = Vec::new();
    // A valid progress request, which is answered after all frames before it.
    let end = WatchRequest {
        request_union: Some(
            pingsix_test_programs::proto::etcdserverpb::watch_request::RequestUnion::ProgressRequest(
                pingsix_test_programs::proto::etcdserverpb::WatchProgressRequest {},
            ),
        ),
    };
    let frames = frames.into_iter().chain([Bytes::from(end.encode_to_vec())]);
    // The stream of requests ends with this function: HTTP/2 resets a stream whose both directions were dropped.
    let (sender, requests) = mpsc::channel(8);
    for frame in frames {
        sender.send(frame).await.expect("there is room for all");
    }
    let requests = ReceiverStream::new(requests);
    let mut grpc = Grpc::new(channel.clone());
    if grpc.ready().await.is_err() {
        return errors.push("the connection is gone".to_owned());
    }
    let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
    let mut answers = match grpc.streaming(Request::new(requests), path, Raw).await {
        Ok(answers) => answers.into_inner(),
        Err(status) => return expect_refusal(&status, errors),
    };
    // A frame may ask for events that never occur, so the wait is bounded.
    loop {
        let answer = match tokio::time::timeout(Duration::from_millis(200), answers.message()).await {
            Ok(Ok(Some(answer))) => answer,
            Ok(Ok(None)) | Err(_) => return,
            Ok(Err(status)) => return expect_refusal(&status, errors),
        };
        let Ok(answer) = WatchResponse::decode(answer) else {
            return errors.push("an answer on a watch stream is none".to_owned());
        };
        if answer.created && !answer.canceled {
            started.push(answer.watch_id);
        }
        let known = answer.watch_id == -1 || started.contains(&answer.watch_id);
        let revision = answer.header.as_ref().map_or(0, |header| header.revision);
        let sorted = answer.events.is_sorted_by_key(|event| event.kv.as_ref().map(|kv| kv.mod_revision));
        let late =
            answer.events.iter().any(|event| event.kv.as_ref().is_none_or(|kv| kv.mod_revision > revision));
        if !answer.events.is_empty() && (!known || !sorted || late) {
            errors.push(format!("{answer:?} reports an impossible value"));
        }
        if answer.watch_id == -1 && !answer.created {
            return;
        }
    }
}

async fn unary(channel: &Channel, path: &'static str, frame: &[u8]) -> Result<Bytes, Status> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.map_err(|error| Status::unknown(error.to_string()))?;
    let request = Request::new(Bytes::copy_from_slice(frame));
    Ok(grpc.unary(request, PathAndQuery::from_static(path), Raw).await?.into_inner())
}

/// A refusal has a status of etcd; a panic of the server would have another.
fn expect_refusal(status: &Status, errors: &mut Vec<String>) {
    let expected = [
        Code::InvalidArgument,
        Code::FailedPrecondition,
        Code::OutOfRange,
        Code::Unavailable,
        // An order or a filter that the server does not have.
        Code::Unimplemented,
        // An undecodable frame.
        Code::Internal,
    ];
    let decoding = status.code() != Code::Internal || status.message().contains("decode");
    if !expected.contains(&status.code()) || !decoding {
        errors.push(format!("refused with {status:?}"));
    }
}

/// Messages as raw bytes.
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}
