//! The memory sink: the promises in their plainest form.

use bytes::Bytes;
use pingsix_sink::contract::documents::desired;
use pingsix_sink::contract::{Ability, Contents, TestTarget};
use pingsix_sink::memory::HISTORY_LIMIT;
use pingsix_sink::{Key, MemorySink, Revision, Scope, Sink as _, Step};

pub(crate) struct Memory(MemorySink);

impl TestTarget for Memory {
    type Sink = MemorySink;

    const MISSING: &'static [(Ability, &'static str)] = &[
        (Ability::CanStall, "memory always answers"),
        (Ability::LosesResponses, "nothing lies between memory and its sink"),
    ];

    async fn start() -> Option<Self> {
        Some(Self(MemorySink::new()))
    }

    async fn open(&self) -> MemorySink {
        self.0.clone()
    }

    async fn read(&self, scope: &Scope) -> Contents {
        let text = |value: &Bytes| String::from_utf8(value.to_vec()).unwrap();
        self.0.contents(scope).iter().map(|(key, value)| (key.to_string(), text(value))).collect()
    }

    async fn states(&self, scope: &Scope) -> Vec<Contents> {
        let mut states = vec![Contents::new()];
        for (_, _, steps) in self.0.history().iter().filter(|(_, of, _)| of == scope) {
            for step in steps {
                let mut state = states.last().unwrap().clone();
                let key = step.key().to_string();
                match step {
                    Step::Create(document) | Step::Update(document) => {
                        state.insert(key, String::from_utf8(document.value.to_vec()).unwrap());
                    }
                    Step::Delete { .. } => {
                        state.remove(&key);
                    }
                }
                states.push(state);
            }
        }
        states
    }

    async fn write_foreign(&self, scope: &Scope, key: &str, value: Option<&str>) {
        self.0.write_foreign(
            scope,
            &Key::new(key).unwrap(),
            value.map(|value| Bytes::from(value.to_owned())),
        );
    }

    fn fail_after(&self, writes: Option<usize>) {
        self.0.fail_after(writes);
    }
}

#[tokio::test]
async fn the_history_keeps_the_newest_publications() {
    let sink = MemorySink::new();
    let mut revisions = Vec::new();
    for number in 0..HISTORY_LIMIT + 7 {
        let web = desired("/p/web", &[("routes/r", &number.to_string())]);
        revisions.push(sink.publish(&web).await.unwrap().revision);
    }
    let kept: Vec<Revision> = sink.history().into_iter().map(|(revision, _, _)| revision).collect();
    assert_eq!(kept, revisions[7..]);
}
