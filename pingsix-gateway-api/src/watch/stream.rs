//! An endless list and watch of one kind.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{BoxStream, Stream, StreamExt as _};
use kube::{Api, Client};
use kube_runtime::watcher;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

use super::backoff::Backoff;
use super::connector::WatchConnector;
use super::error::{Step, WatchError};
use super::object::{DecodedObject, Watched, WatchedKind};
use super::options::WatchOptions;
use super::stats::WatchStats;
use crate::api_error::ApiError;

/// The watched objects of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selection {
    /// The namespace; `None` for all namespaces.
    pub(super) namespace: Option<String>,
    pub(super) labels: Option<String>,
    pub(super) fields: Option<String>,
}

/// An item of the stream of a watch.
pub(super) enum StreamItem<K> {
    /// An event. `Init` and `InitDone` enclose a complete list. A second `Init` discards an interrupted list.
    Event(watcher::Event<Watched<K>>),
    /// The watch after a list is open.
    Opened,
    /// The watch failed, and restarts after a delay.
    Failed(WatchError),
}

/// The shared context of watches.
#[derive(Clone)]
pub(super) struct WatchContext {
    pub(super) client: Client,
    pub(super) options: Arc<WatchOptions>,
    pub(super) stats: Arc<WatchStats>,
}

/// A list and watch as an endless stream. The stream reads from the API server at the pace of its consumer.
pub(super) fn list_watch<K: WatchedKind>(
    context: &WatchContext,
    selection: &Selection,
    list_permits: Option<Arc<Semaphore>>,
) -> impl Stream<Item = StreamItem<K>> + Send + use<K> {
    let watch = ListWatch::<K>::new(context, selection, list_permits);
    futures::stream::unfold(watch, |mut watch| async {
        let item = watch.next().await;
        Some((item, watch))
    })
}

struct ListWatch<K> {
    api: Api<DecodedObject<K>>,
    config: watcher::Config,
    timeout: Duration,
    stats: Arc<WatchStats>,
    opened: watch::Receiver<Option<Instant>>,
    /// The limit of concurrent lists.
    list_permits: Option<Arc<Semaphore>>,
    list_permit: Option<OwnedSemaphorePermit>,
    backoff: Backoff,
    pause: Option<Duration>,
    /// The running watch; `None` before the next list.
    events: Option<BoxStream<'static, watcher::Result<watcher::Event<DecodedObject<K>>>>>,
    is_listing: bool,
}

impl<K: WatchedKind> ListWatch<K> {
    fn new(context: &WatchContext, selection: &Selection, list_permits: Option<Arc<Semaphore>>) -> Self {
        let options = &context.options;
        let (client, opened) = WatchConnector::client(&context.client, options);
        let api = match &selection.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &()),
            None => Api::all(client),
        };
        let config = watcher::Config {
            label_selector: selection.labels.clone(),
            field_selector: selection.fields.clone(),
            page_size: Some(options.page_size),
            ..watcher::Config::default()
        };
        Self {
            api,
            config,
            timeout: options.request_timeout,
            stats: context.stats.clone(),
            opened,
            list_permits,
            list_permit: None,
            backoff: Backoff::new(options.backoff),
            pause: None,
            events: None,
            is_listing: false,
        }
    }

    async fn next(&mut self) -> StreamItem<K> {
        if let Some(pause) = self.pause.take() {
            tokio::time::sleep(pause).await;
        }
        if self.events.is_none() {
            if let Some(list_permits) = &self.list_permits {
                // The semaphore is never closed.
                self.list_permit = list_permits.clone().acquire_owned().await.ok();
            }
            self.events = Some(watcher(self.api.clone(), self.config.clone()).boxed());
            self.is_listing = true;
        }
        let Some(events) = &mut self.events else { return self.failed(WatchError::ended(Step::List)) };
        let event = tokio::select! {
            biased;
            Ok(()) = self.opened.changed() => {
                self.stats.opened(K::KIND);
                return StreamItem::Opened;
            }
            event = next_within(events, self.is_listing.then_some(self.timeout)) => event,
        };
        match event {
            Ok(event) => {
                match event {
                    watcher::Event::Init => {
                        self.is_listing = true;
                        self.stats.listing(K::KIND);
                    }
                    watcher::Event::InitDone => {
                        self.is_listing = false;
                        self.list_permit = None;
                    }
                    watcher::Event::InitApply(_) | watcher::Event::Apply(_) | watcher::Event::Delete(_) => {}
                }
                StreamItem::Event(kept(event))
            }
            Err(error) => self.failed(error),
        }
    }

    fn failed(&mut self, error: WatchError) -> StreamItem<K> {
        self.stats.failed(K::KIND, error.category());
        self.list_permit = None;
        if self.is_listing || !error.is_resumable() {
            // The watcher itself would continue in more cases: with a version that the API server refuses forever, and
            // after an undecodable event, which leaves the old version of its object in place.
            self.events = None;
        }
        let pause = self.backoff.failed(error.cause.retry_after);
        tracing::debug!(
            kind = %K::KIND,
            namespace = self.api.namespace(),
            selector = self.config.field_selector.as_deref(),
            category = error.category().as_str(),
            error = %error,
            ?pause,
            "watch failed"
        );
        self.pause = Some(pause);
        StreamItem::Failed(error)
    }
}

/// The event with the stored part of its object.
fn kept<K>(event: watcher::Event<DecodedObject<K>>) -> watcher::Event<Watched<K>> {
    match event {
        watcher::Event::Apply(object) => watcher::Event::Apply(object.into_watched()),
        watcher::Event::Delete(object) => watcher::Event::Delete(object.into_watched()),
        watcher::Event::Init => watcher::Event::Init,
        watcher::Event::InitApply(object) => watcher::Event::InitApply(object.into_watched()),
        watcher::Event::InitDone => watcher::Event::InitDone,
    }
}

/// The next event, with a limit for each page of a list.
async fn next_within<T>(
    events: &mut BoxStream<'static, watcher::Result<T>>,
    limit: Option<Duration>,
) -> Result<T, WatchError> {
    let event = match limit {
        Some(limit) => match tokio::time::timeout(limit, events.next()).await {
            Ok(event) => event,
            Err(_) => return Err(WatchError::at(Step::List, ApiError::timeout())),
        },
        None => events.next().await,
    };
    match event {
        Some(Ok(event)) => Ok(event),
        Some(Err(error)) => Err(WatchError::from(&error)),
        None => Err(WatchError::ended(Step::Read)),
    }
}
