//! Secrets and ConfigMaps that something refers to, each watched by its name.
//!
//! No other is ever read, so permission can be given object by object, and there is no copy of all Secrets of the cluster.
//! All these watches run in one task, and one more per watch hands its requests on. Measured on a real API server over TLS,
//! a thousand of them are answered within three seconds and take 40 MB here and 20 MB there, most of it for connections:
//! the client speaks HTTP/1.1, so each open watch has one of its own. Who has many thousands of Secrets and may read all
//! of them is better off with [`SecretWatch::All`].

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::future;
use std::sync::Arc;

use futures::stream::{AbortHandle, Abortable, BoxStream, SelectAll, Stream, StreamExt as _, abortable};
use kube_runtime::watcher;
use pingsix_translate::snapshot::{ConfigMap, Secret};
use pingsix_translate::{Kind, ObjectKey};
use tokio::sync::{Semaphore, mpsc, watch};

use super::fault::Step;
use super::input::{Answer, Closed, Fed, Input, send};
use super::options::SecretWatch;
use super::stream::{Ground, Seen, Selection, list_watch};
use crate::fault::FaultCategory;

/// Watches the objects that are referred to.
pub(super) struct Referenced {
    ground: Ground,
    inputs: mpsc::Sender<Input>,
    wanted: watch::Receiver<BTreeSet<ObjectKey>>,
    watches: SelectAll<Abortable<BoxStream<'static, (ObjectKey, Sight)>>>,
    held: BTreeMap<ObjectKey, Held>,
    gate: Arc<Semaphore>,
}

/// One watch, and what was said about its object.
struct Held {
    stop: AbortHandle,
    answer: Option<Answer>,
    /// Whether the world may have the object.
    is_delivered: bool,
}

/// What a watch of one object finds out.
enum Sight {
    /// It is there, as this event says.
    There(Input),
    /// It is there, and as it was.
    Unchanged,
    /// It is not there.
    Absent,
    /// We may not know.
    Forbidden(String),
}

impl Referenced {
    pub(super) fn new(
        ground: Ground,
        inputs: mpsc::Sender<Input>,
        wanted: watch::Receiver<BTreeSet<ObjectKey>>,
    ) -> Self {
        let gate = Arc::new(Semaphore::new(ground.options.concurrent_lists.max(1)));
        Self { ground, inputs, wanted, watches: SelectAll::new(), held: BTreeMap::new(), gate }
    }

    /// Runs until nobody takes inputs any more, or nobody can say any more what is referred to.
    pub(super) async fn run(mut self) -> Result<Infallible, Closed> {
        loop {
            tokio::select! {
                biased;
                changed = self.wanted.changed() => {
                    changed.map_err(|_| Closed)?;
                    self.set().await?;
                }
                Some((key, sight)) = self.watches.next(), if !self.watches.is_empty() => {
                    self.tell(key, sight).await?;
                }
                () = self.inputs.closed() => return Err(Closed),
            }
        }
    }

    /// Watches what is wanted, and nothing else.
    async fn set(&mut self) -> Result<(), Closed> {
        let with_secrets = self.ground.options.secrets == SecretWatch::ByName;
        let is_by_name =
            |key: &&ObjectKey| key.kind == Kind::ConfigMap || key.kind == Kind::Secret && with_secrets;
        let wanted: BTreeSet<ObjectKey> =
            self.wanted.borrow_and_update().iter().filter(is_by_name).cloned().collect();
        let released: Vec<ObjectKey> =
            self.held.keys().filter(|key| !wanted.contains(*key)).cloned().collect();
        for key in released {
            // From here on its stream yields nothing, so this is the last that is said about it.
            if let Some(held) = self.held.remove(&key) {
                held.stop.abort();
            }
            send(&self.inputs, Input::Released(key)).await?;
        }
        for key in wanted {
            if !self.held.contains_key(&key) {
                self.watch(key);
            }
        }
        self.ground.stats.watching_by_name(self.held.len());
        Ok(())
    }

    fn watch(&mut self, key: ObjectKey) {
        let name = key.clone();
        let named = move |sight| (name.clone(), sight);
        let sights = if !can_exist(&key) {
            futures::stream::once(future::ready(Sight::Absent)).map(named).boxed()
        } else if key.kind == Kind::Secret {
            sights::<Secret>(&self.ground, &key, self.gate.clone()).map(named).boxed()
        } else {
            sights::<ConfigMap>(&self.ground, &key, self.gate.clone()).map(named).boxed()
        };
        let (sights, stop) = abortable(sights);
        self.watches.push(sights);
        self.held.insert(key, Held { stop, answer: None, is_delivered: false });
    }

    /// Says what is new: the object first, then what is known about it.
    async fn tell(&mut self, key: ObjectKey, sight: Sight) -> Result<(), Closed> {
        let Some(held) = self.held.get_mut(&key) else { return Ok(()) };
        let mut inputs = Vec::with_capacity(2);
        let answer = match sight {
            Sight::There(event) => {
                held.is_delivered = true;
                inputs.push(event);
                Answer::Present
            }
            Sight::Unchanged => Answer::Present,
            Sight::Absent => {
                if std::mem::take(&mut held.is_delivered) {
                    inputs.push(Input::Gone(key.clone()));
                }
                Answer::Absent
            }
            Sight::Forbidden(message) => Answer::Forbidden { message },
        };
        if held.answer.as_ref() != Some(&answer) {
            if let Answer::Forbidden { message } = &answer {
                let (kind, namespace, name) = (key.kind, &*key.name.namespace, &*key.name.name);
                tracing::warn!(%kind, namespace, name, error = message, "object that is referred to cannot be read");
            }
            held.answer = Some(answer.clone());
            inputs.push(Input::Answered { key, answer });
        }
        for input in inputs {
            send(&self.inputs, input).await?;
        }
        Ok(())
    }
}

/// What is found out about one object, in the order in which it happens. Other failures than a refusal say nothing.
fn sights<K: Fed>(
    ground: &Ground,
    key: &ObjectKey,
    gate: Arc<Semaphore>,
) -> impl Stream<Item = Sight> + Send + use<K> {
    let selection = Selection {
        namespace: Some(key.name.namespace.to_string()),
        labels: None,
        fields: Some(format!("metadata.name={}", key.name.name)),
    };
    let mut was_listed = false;
    let mut version = None;
    list_watch::<K>(ground, &selection, Some(gate)).filter_map(move |seen| {
        future::ready(match seen {
            Seen::Event(watcher::Event::Init) => {
                was_listed = false;
                None
            }
            Seen::Event(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) => {
                was_listed = true;
                let now = object.version();
                // A list that is read anew mostly says what is known, but it ends a refusal.
                let is_news = now.is_none() || version != now;
                version = now;
                Some(if is_news {
                    Sight::There(K::input(watcher::Event::Apply(object)))
                } else {
                    Sight::Unchanged
                })
            }
            Seen::Event(watcher::Event::InitDone) if was_listed => None,
            Seen::Event(watcher::Event::InitDone | watcher::Event::Delete(_)) => {
                version = None;
                Some(Sight::Absent)
            }
            Seen::Failed(fault)
                if fault.step == Step::List && fault.category() == FaultCategory::Forbidden =>
            {
                Some(Sight::Forbidden(fault.cause.message))
            }
            // One who may list and not watch is told at every list.
            Seen::Opened | Seen::Failed(_) => None,
        })
    })
}

/// Whether an object with this key can exist. References are written by people, and end up in a path and in a selector,
/// where other characters mean something else.
fn can_exist(key: &ObjectKey) -> bool {
    let is_name = |name: &str, longest: usize| {
        let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let bytes = name.as_bytes();
        name.len() <= longest
            && edge(bytes.first())
            && edge(bytes.last())
            && bytes.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'))
    };
    is_name(&key.name.namespace, 63) && !key.name.namespace.contains('.') && is_name(&key.name.name, 253)
}
