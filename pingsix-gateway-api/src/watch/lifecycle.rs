//! A kind from its first list to its last: watched while it is there, looked for while it is not.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use futures::stream::{SelectAll, StreamExt as _};
use pingsix_translate::Kind;
use tokio::sync::{mpsc, watch};

use super::backoff::{Backoff, about};
use super::discovery::{Availability, Served, served};
use super::fault::{Step, WatchFault};
use super::input::{Closed, Input, WorldKind, send};
use super::kinds::{Presence, presence};
use super::options::{Namespaces, SecretWatch, WatchOptions};
use super::stream::{Selection, StreamItem, WatchContext, list_watch};
use super::view::View;
use crate::fault::FaultCategory;

/// Keeps the world told of one kind.
pub(super) struct Lifecycle<K> {
    ground: WatchContext,
    inputs: mpsc::Sender<Input>,
    /// Changes when absent kinds are to be looked for now.
    look: watch::Receiver<()>,
    selections: Vec<Selection>,
    view: View<K>,
    reported: Option<Availability>,
    backoff: Backoff,
}

impl<K: WorldKind> Lifecycle<K> {
    pub(super) fn new(ground: WatchContext, inputs: mpsc::Sender<Input>, look: watch::Receiver<()>) -> Self {
        let selections = selections(K::KIND, &ground.options);
        let backoff = Backoff::new(ground.options.backoff);
        Self { view: View::of(&selections), ground, inputs, look, selections, reported: None, backoff }
    }

    /// Runs until nobody takes inputs any more.
    pub(super) async fn run(mut self) -> Result<Infallible, Closed> {
        if self.selections.is_empty() {
            // No namespace: nothing to watch, and that is known.
            self.empty().await?;
            self.report(Availability::Watching).await?;
            self.inputs.closed().await;
            return Err(Closed);
        }
        loop {
            let fault = self.watch().await?;
            self.explain(fault).await?;
        }
    }

    /// Watches until a list is answered 404.
    async fn watch(&mut self) -> Result<WatchFault, Closed> {
        let mut parts: SelectAll<_> = self
            .selections
            .iter()
            .enumerate()
            .map(|(part, selection)| {
                list_watch::<K>(&self.ground, selection, None).map(move |seen| (part, seen)).boxed()
            })
            .collect();
        let mut standing = BTreeMap::new();
        while let Some((part, seen)) = parts.next().await {
            match seen {
                StreamItem::Event(event) => {
                    for input in self.view.take(part, event) {
                        send(&self.inputs, input).await?;
                    }
                    continue;
                }
                StreamItem::Opened => {
                    standing.insert(part, Availability::Watching);
                }
                StreamItem::Failed(fault)
                    if fault.step == Step::List && fault.category() == FaultCategory::NotFound =>
                {
                    return Ok(fault);
                }
                StreamItem::Failed(fault) => {
                    if let Some(availability) = Availability::after(&fault) {
                        standing.insert(part, self.in_namespace(part, availability));
                    }
                }
            }
            if let Some(availability) = overall(&standing, self.selections.len()) {
                self.report(availability.clone()).await?;
            }
        }
        // The streams never end, and there is one at least.
        Ok(WatchFault::ended(Step::List))
    }

    /// Finds out why a list was answered 404, and returns when it is worth while to list again.
    async fn explain(&mut self, fault: WatchFault) -> Result<(), Closed> {
        let mut was_absent = false;
        loop {
            let limit = self.ground.options.request_timeout;
            match served::<K>(&self.ground.client, limit).await {
                Ok(Served::Yes) if was_absent => return Ok(()),
                Ok(Served::Yes) => {
                    // Contradictory answers: it has just come, or is about to go.
                    let message = format!("{fault}, though the API server says that it serves the kind");
                    self.report(Availability::Unreachable { message }).await?;
                    let pause = self.backoff.failed(None);
                    self.pause(pause).await;
                    return Ok(());
                }
                Ok(Served::No { message }) => {
                    was_absent = true;
                    self.report(Availability::Absent { message }).await?;
                    // Of a kind that is needed, absence is no knowledge: it may be installed in a moment, and until then
                    // the picture is not complete. But what had been read is gone when the kind is.
                    if presence(K::KIND) != Presence::Required || self.view.is_complete() {
                        self.empty().await?;
                    }
                    self.pause(about(self.ground.options.discovery_interval)).await;
                }
                Err(fault) => {
                    self.ground.stats.failed(K::KIND, fault.category());
                    if let Some(availability) = Availability::after(&fault) {
                        self.report(availability).await?;
                    }
                    let pause = self.backoff.failed(fault.cause.retry_after);
                    self.pause(pause).await;
                    // Permission to list does not include permission to ask.
                    return Ok(());
                }
            }
        }
    }

    /// Waits, unless told to look.
    async fn pause(&mut self, pause: Duration) {
        let told = async {
            if self.look.changed().await.is_err() {
                // The API server cannot report a change here.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = told => {}
        }
    }

    async fn empty(&mut self) -> Result<(), Closed> {
        for input in self.view.empty() {
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

    /// Says in which namespace something is the matter, if only some are watched.
    fn in_namespace(&self, part: usize, availability: Availability) -> Availability {
        let namespace = self.selections.get(part).and_then(|selection| selection.namespace.as_deref());
        let Some(namespace) = namespace else { return availability };
        let placed = |message: String| format!("namespace {namespace}: {message}");
        match availability {
            Availability::Watching => Availability::Watching,
            Availability::Absent { message } => Availability::Absent { message: placed(message) },
            Availability::Forbidden { message } => Availability::Forbidden { message: placed(message) },
            Availability::Unreachable { message } => Availability::Unreachable { message: placed(message) },
        }
    }
}

/// The availability of a kind with several watches: the worst of them; `None` before each watch has a result.
fn overall(standing: &BTreeMap<usize, Availability>, parts: usize) -> Option<&Availability> {
    let rank = |availability: &Availability| match availability {
        Availability::Watching => 0,
        Availability::Absent { .. } => 1,
        Availability::Unreachable { .. } => 2,
        Availability::Forbidden { .. } => 3,
    };
    let worst = standing.values().rev().max_by_key(|availability| rank(availability))?;
    (*worst != Availability::Watching || standing.len() == parts).then_some(worst)
}

/// The selections whose watches cover a kind.
fn selections(kind: Kind, options: &WatchOptions) -> Vec<Selection> {
    let (labels, fields) = match (kind, &options.secrets) {
        (Kind::Secret, SecretWatch::All { labels, fields }) => (labels.clone(), fields.clone()),
        _ if is_selected_by_label(kind) => (options.labels.clone(), None),
        _ => (None, None),
    };
    let whole = Selection { namespace: None, labels, fields };
    match &options.namespaces {
        Namespaces::Only(namespaces) if kind.is_namespaced() => namespaces
            .iter()
            .map(|namespace| Selection { namespace: Some(namespace.clone()), ..whole.clone() })
            .collect(),
        Namespaces::Only(_) | Namespaces::All => vec![whole],
    }
}

/// Whether objects of a kind ask for configuration themselves, so that a missing object leaves no other one open.
const fn is_selected_by_label(kind: Kind) -> bool {
    kind.is_route() || matches!(kind, Kind::Gateway | Kind::ListenerSet | Kind::Ingress)
}
