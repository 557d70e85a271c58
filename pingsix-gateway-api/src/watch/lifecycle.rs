//! The watch of one kind, and discovery while the kind is absent.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use futures::stream::{SelectAll, StreamExt as _};
use pingsix_sink::backoff::jittered;
use pingsix_translate::Kind;
use tokio::sync::{mpsc, watch};

use super::backoff::Backoff;
use super::discovery::{Availability, Discovery, discover};
use super::error::{Step, WatchError};
use super::input::{Closed, Input, WorldKind, send};
use super::kinds::{Presence, presence};
use super::merge::EventMerger;
use super::options::{SecretWatch, WatchOptions};
use super::stream::{Selection, StreamItem, WatchContext, list_watch};
use crate::api_error::ApiErrorCategory;
use crate::wait::changed;

/// Watches one kind, and sends its objects and its availability.
pub(super) struct Lifecycle<K> {
    context: WatchContext,
    inputs: mpsc::Sender<Input>,
    /// Requests for an immediate discovery of absent kinds.
    rediscover: watch::Receiver<()>,
    selections: Vec<Selection>,
    merger: EventMerger<K>,
    reported: Option<Availability>,
    backoff: Backoff,
}

impl<K: WorldKind> Lifecycle<K> {
    pub(super) fn new(
        context: WatchContext,
        inputs: mpsc::Sender<Input>,
        rediscover: watch::Receiver<()>,
    ) -> Self {
        let selections = selections(K::KIND, &context.options);
        let backoff = Backoff::new(context.options.backoff);
        Self {
            merger: EventMerger::of(&selections),
            context,
            inputs,
            rediscover,
            selections,
            reported: None,
            backoff,
        }
    }

    /// Runs until the receiver of inputs is dropped.
    pub(super) async fn run(mut self) -> Result<Infallible, Closed> {
        if self.selections.is_empty() {
            // Without namespaces, the kind is known to have no objects.
            self.clear().await?;
            self.report(Availability::Watching).await?;
            self.inputs.closed().await;
            return Err(Closed);
        }
        loop {
            let error = self.watch().await?;
            self.handle_not_found(error).await?;
        }
    }

    /// Watches until the API server answers a list with 404.
    async fn watch(&mut self) -> Result<WatchError, Closed> {
        let mut parts: SelectAll<_> = self
            .selections
            .iter()
            .enumerate()
            .map(|(part, selection)| {
                list_watch::<K>(&self.context, selection, None).map(move |seen| (part, seen)).boxed()
            })
            .collect();
        let mut availabilities = BTreeMap::new();
        while let Some((part, seen)) = parts.next().await {
            match seen {
                StreamItem::Event(event) => {
                    for input in self.merger.apply(part, event) {
                        send(&self.inputs, input).await?;
                    }
                    continue;
                }
                StreamItem::Opened => {
                    availabilities.insert(part, Availability::Watching);
                }
                StreamItem::Failed(error)
                    if error.step == Step::List && error.category() == ApiErrorCategory::NotFound =>
                {
                    return Ok(error);
                }
                StreamItem::Failed(error) => {
                    if let Some(availability) = Availability::after(&error) {
                        availabilities.insert(part, self.in_namespace(part, availability));
                    }
                }
            }
            if let Some(availability) = overall(&availabilities, self.selections.len()) {
                self.report(availability.clone()).await?;
            }
        }
        // There is at least one stream, and streams never end.
        Ok(WatchError::ended(Step::List))
    }

    /// Finds the cause of a 404 for a list, and returns when a new list may succeed.
    async fn handle_not_found(&mut self, error: WatchError) -> Result<(), Closed> {
        let mut was_absent = false;
        loop {
            let limit = self.context.options.request_timeout;
            match discover::<K>(&self.context.client, limit).await {
                Ok(Discovery::Served) if was_absent => return Ok(()),
                Ok(Discovery::Served) => {
                    // The definition was created or deleted between the two answers.
                    let message = format!("{error}, although discovery shows the kind");
                    self.report(Availability::Unreachable { message }).await?;
                    let pause = self.backoff.failed(None);
                    self.pause(pause).await;
                    return Ok(());
                }
                Ok(Discovery::Missing { message }) => {
                    was_absent = true;
                    self.report(Availability::Absent { message }).await?;
                    // A required kind may be installed soon, so its absence does not complete the first list. After the
                    // first list, its objects are gone with the kind.
                    if presence(K::KIND) != Presence::Required || self.merger.is_complete() {
                        self.clear().await?;
                    }
                    self.pause(jittered(self.context.options.discovery_interval)).await;
                }
                Err(error) => {
                    self.context.stats.failed(K::KIND, error.category());
                    if let Some(availability) = Availability::after(&error) {
                        self.report(availability).await?;
                    }
                    let pause = self.backoff.failed(error.cause.retry_after);
                    self.pause(pause).await;
                    // The permission to list does not include the permission to discover.
                    return Ok(());
                }
            }
        }
    }

    /// Waits for the pause or for a request of discovery.
    async fn pause(&mut self, pause: Duration) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = changed(Some(&mut self.rediscover)) => {}
        }
    }

    async fn clear(&mut self) -> Result<(), Closed> {
        for input in self.merger.clear() {
            send(&self.inputs, input).await?;
        }
        Ok(())
    }

    async fn report(&mut self, availability: Availability) -> Result<(), Closed> {
        if self.reported.as_ref() == Some(&availability) {
            return Ok(());
        }
        match &availability {
            Availability::Watching if self.reported.is_some() => {
                tracing::info!(kind = %K::KIND, "kind is watched now");
            }
            Availability::Watching => tracing::debug!(kind = %K::KIND, "kind is watched"),
            Availability::Absent { message } if presence(K::KIND) == Presence::Optional => {
                tracing::info!(kind = %K::KIND, reason = message, "kind is not installed");
            }
            Availability::Absent { message }
            | Availability::Forbidden { message }
            | Availability::Unreachable { message } => {
                tracing::warn!(kind = %K::KIND, error = message, "kind cannot be watched");
            }
        }
        self.reported = Some(availability.clone());
        send(&self.inputs, Input::Availability { kind: K::KIND, availability }).await
    }

    /// Adds the namespace of a watch to messages, with selected namespaces.
    fn in_namespace(&self, part: usize, mut availability: Availability) -> Availability {
        let namespace = self.selections.get(part).and_then(|selection| selection.namespace.as_deref());
        let Some(namespace) = namespace else { return availability };
        if let Availability::Absent { message }
        | Availability::Forbidden { message }
        | Availability::Unreachable { message } = &mut availability
        {
            *message = format!("namespace {namespace}: {message}");
        }
        availability
    }
}

/// The worst availability among the watches of a kind; `None` before each watch has a result.
fn overall(availabilities: &BTreeMap<usize, Availability>, parts: usize) -> Option<&Availability> {
    let rank = |availability: &Availability| match availability {
        Availability::Watching => 0,
        Availability::Absent { .. } => 1,
        Availability::Unreachable { .. } => 2,
        Availability::Forbidden { .. } => 3,
    };
    let worst = availabilities.values().rev().max_by_key(|availability| rank(availability))?;
    (*worst != Availability::Watching || availabilities.len() == parts).then_some(worst)
}

/// The selections whose watches cover a kind.
fn selections(kind: Kind, options: &WatchOptions) -> Vec<Selection> {
    let (labels, fields) = match (kind, &options.secrets) {
        (Kind::Secret, SecretWatch::All { labels, fields }) => (labels.clone(), fields.clone()),
        _ if kind.is_selected_by_label() => (options.labels.clone(), None),
        _ => (None, None),
    };
    let scopes = if kind.is_namespaced() { options.namespaces.scopes() } else { vec![None] };
    let selection = |namespace| Selection { namespace, labels: labels.clone(), fields: fields.clone() };
    scopes.into_iter().map(selection).collect()
}
