//! A client of the feed that notes when bytes arrive.

use std::time::{Duration, Instant};

use bytes::Bytes;
use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use pingsix_test_programs::proto::etcdserverpb::watch_client::WatchClient;
use pingsix_test_programs::proto::etcdserverpb::watch_request::RequestUnion;
use pingsix_test_programs::proto::etcdserverpb::{
    RangeRequest, WatchCreateRequest, WatchRequest, WatchResponse,
};
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

/// The time limit of a change.
const WAIT_TIMEOUT: Duration = Duration::from_mins(1);

/// Reads one prefix.
pub(crate) struct Reader {
    arrivals: mpsc::UnboundedReceiver<(Instant, WatchResponse)>,
    _requests: mpsc::Sender<WatchRequest>,
}

impl Reader {
    /// Lists until everything is there, then watches.
    pub(crate) async fn open(address: &str, prefix: &str, routes: usize) -> Self {
        let channel = loop {
            match Channel::from_shared(format!("http://{address}")).unwrap().connect().await {
                Ok(channel) => break channel,
                Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
            }
        };
        let (key, end) = (Bytes::from(format!("{prefix}/")), Bytes::from(format!("{prefix}0")));
        let mut kv = KvClient::new(channel.clone()).max_decoding_message_size(64 << 20);
        let revision = loop {
            let request =
                RangeRequest { key: key.clone(), range_end: end.clone(), ..RangeRequest::default() };
            match kv.range(request).await {
                Ok(answer) => {
                    let answer = answer.into_inner();
                    assert!(answer.kvs.len() >= routes, "{} documents of {routes} Routes", answer.kvs.len());
                    break answer.header.unwrap().revision;
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
            }
        };
        let (requests, receiver) = mpsc::channel(1);
        let create =
            WatchCreateRequest { key, range_end: end, start_revision: revision + 1, ..Default::default() };
        requests
            .send(WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) })
            .await
            .unwrap();
        let mut client = WatchClient::new(channel).max_decoding_message_size(64 << 20);
        let mut responses = client.watch(ReceiverStream::new(receiver)).await.unwrap().into_inner();
        let (arrived, arrivals) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(response)) = responses.next().await {
                if arrived.send((Instant::now(), response)).is_err() {
                    break;
                }
            }
        });
        Self { arrivals, _requests: requests }
    }

    /// When a document arrived that holds a text, and the revision of that response.
    pub(crate) async fn arrival(&mut self, text: &str) -> (Instant, i64) {
        let wait = async {
            while let Some((at, response)) = self.arrivals.recv().await {
                let holds = |value: &[u8]| String::from_utf8_lossy(value).contains(text);
                if response.events.iter().filter_map(|event| event.kv.as_ref()).any(|kv| holds(&kv.value)) {
                    return (at, response.header.map_or(0, |header| header.revision));
                }
            }
            panic!("the watch has ended");
        };
        tokio::time::timeout(WAIT_TIMEOUT, wait).await.unwrap_or_else(|_| panic!("{text} does not arrive"))
    }

    /// The number of unread responses with events.
    pub(crate) fn drain(&mut self) -> usize {
        let mut count = 0;
        while let Ok((_, response)) = self.arrivals.try_recv() {
            count += usize::from(!response.events.is_empty());
        }
        count
    }
}
