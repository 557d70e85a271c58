//! Two targets at once: the first one's promises are those of both.

use std::sync::atomic::{AtomicBool, Ordering};

use pingsix_sink::several::Several;
use pingsix_sink::{MemorySink, Scope};

use crate::memory::Memory;
use crate::target::{Ability, Contents, Target};

pub(crate) struct Both {
    first: Memory,
    second: Memory,
    /// The first was told to fail, which keeps nothing from the second.
    differ: AtomicBool,
}

impl Target for Both {
    type Sink = Several;

    const LACKS: &'static [(Ability, &'static str)] = <Memory as Target>::LACKS;

    async fn start() -> Option<Self> {
        let memory = || Memory::of(MemorySink::new());
        Some(Self { first: memory(), second: memory(), differ: AtomicBool::new(false) })
    }

    async fn open(&self) -> Several {
        Several::new("first", self.first.open().await).and("second", self.second.open().await)
    }

    async fn read(&self, scope: &Scope) -> Contents {
        let first = self.first.read(scope).await;
        if !self.differ.load(Ordering::Relaxed) {
            assert_eq!(self.second.read(scope).await, first);
        }
        first
    }

    async fn states(&self, scope: &Scope) -> Vec<Contents> {
        self.first.states(scope).await
    }

    async fn interfere(&self, scope: &Scope, key: &str, value: Option<&str>) {
        self.first.interfere(scope, key, value).await;
        self.second.interfere(scope, key, value).await;
    }

    fn fail_after(&self, writes: Option<usize>) {
        self.differ.fetch_or(writes.is_some(), Ordering::Relaxed);
        self.first.fail_after(writes);
    }
}
