//! A sink that data planes read from.

mod served;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_sink::{Desired, Effect, EmbeddedEtcd, MemorySink, Published, Revision, Scope, Sink, SinkError};
use tokio::sync::watch;

pub(crate) use served::Served;

use crate::leader::Leadership;
use crate::metrics::Metrics;
use crate::replicas::Replicas;

/// How much of a publication this replica makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All of it.
    All,
    /// What is not shared by all replicas; the rest is for the one that leads.
    Part,
    /// It is for the one that leads.
    Nothing,
}

/// A sink together with what it knows of its readers.
///
/// [`EmbeddedEtcd`] is the one that PingSIX reads. A sink of one's own becomes a feed by saying what [`open`](Self::open)
/// means to it; the example `embedded_controller` has one.
pub trait Feed: Sink {
    /// Its kind, in metrics.
    fn name(&self) -> &'static str {
        "custom"
    }

    /// The embedded server, if it is one: dumps show what it serves.
    fn embedded(&self) -> Option<&EmbeddedEtcd> {
        None
    }

    /// The other replicas that serve the same, if there may be any: dumps show them.
    fn replicas(&self) -> Option<&Replicas> {
        None
    }

    /// Everything is known that there is: from now on reads may be answered, of each scope from its first publication on,
    /// which has all of it. Until then a reader of a scope must not be told that there is nothing: it has to wait.
    fn open(&self);

    /// Whether a [target](Self::targets) answers its readers only after [`open`](Self::open) and a publication. Readiness
    /// waits for it then. One that is read whether the controller runs or not is waited for by nobody: it may be away, and
    /// fails for itself.
    fn opens(&self, _scope: &Scope, _target: usize) -> bool {
        true
    }

    /// Told once, before anything is published: who leads, and where to count.
    fn begin(&self, _leadership: &Leadership, _metrics: Option<&Arc<Metrics>>) {}

    /// Whether it counts its publications itself.
    fn counts_itself(&self) -> bool {
        false
    }

    /// How much of a publication this replica would make now. What is left to the leader is published as soon as this
    /// replica leads.
    fn reach(&self, _scope: &Scope) -> Reach {
        Reach::All
    }

    /// How what is published of a scope comes into force.
    fn effect_on(&self, _scope: &Scope) -> Effect {
        self.effect()
    }

    /// The targets that a publication of a scope would be made at now: indices, of which 0 is that of the one which the
    /// scope is read from. Each gets its publications in its own time.
    fn targets(&self, _scope: &Scope) -> Vec<usize> {
        vec![0]
    }

    /// Publishes to one of the [targets](Self::targets).
    fn publish_to(
        &self,
        _target: usize,
        desired: &Desired,
    ) -> impl Future<Output = Result<Published, SinkError>> + Send {
        self.publish(desired)
    }

    /// Of each target that tells it, the scopes which somebody else changed since they were published: they are published
    /// again.
    fn drifts(&self) -> Vec<watch::Receiver<BTreeSet<Scope>>> {
        self.drifted().into_iter().collect()
    }

    /// How many publications may be under way at the same time, each of another data plane or at another target.
    fn concurrency(&self) -> usize {
        16
    }

    /// How many read a scope; `None`, unless told otherwise, when that cannot be known: then what is published counts as
    /// delivered.
    fn readers_of(&self, _scope: &Scope) -> Option<usize> {
        None
    }

    /// How many read each scope that anybody reads; nothing, unless told otherwise, when that cannot be known. Other
    /// replicas are told.
    fn readers(&self) -> BTreeMap<Scope, usize> {
        BTreeMap::new()
    }

    /// Whether a revision can be one of a scope that this replica has handed out, and not another one that serves the same.
    fn gave(&self, _scope: &Scope, _revision: Revision) -> bool {
        true
    }

    /// Changes whenever [`readers_of`](Self::readers_of) may say something else; `None`, unless told otherwise, when that
    /// cannot be known.
    fn readers_changed(&self) -> Option<watch::Receiver<u64>> {
        None
    }
}

impl Feed for EmbeddedEtcd {
    fn name(&self) -> &'static str {
        "embedded"
    }

    fn embedded(&self) -> Option<&EmbeddedEtcd> {
        Some(self)
    }

    fn open(&self) {
        Self::open(self);
    }

    fn readers_of(&self, scope: &Scope) -> Option<usize> {
        Some(Self::readers_of(self, scope))
    }

    fn readers(&self) -> BTreeMap<Scope, usize> {
        Self::readers(self)
    }

    fn readers_changed(&self) -> Option<watch::Receiver<u64>> {
        Some(Self::readers_changed(self))
    }

    fn gave(&self, _scope: &Scope, revision: Revision) -> bool {
        self.has_given(revision)
    }
}

impl Feed for MemorySink {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn open(&self) {}
}
