//! A sink that data planes read from.

use pingsix_sink::{EmbeddedEtcd, MemorySink, Scope, Sink};
use tokio::sync::watch;

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

    /// Everything there is has been published once: from now on reads may be answered. Until then a reader must not be
    /// told that there is nothing, or less than there is.
    fn open(&self);

    /// How many publications may be under way at the same time, each of another data plane.
    fn concurrency(&self) -> usize {
        16
    }

    /// How many read a scope; `None`, unless told otherwise, when that cannot be known: then what is published counts as
    /// delivered.
    fn readers_of(&self, _scope: &Scope) -> Option<usize> {
        None
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

    fn readers_changed(&self) -> Option<watch::Receiver<u64>> {
        Some(Self::readers_changed(self))
    }
}

impl Feed for MemorySink {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn open(&self) {}
}
