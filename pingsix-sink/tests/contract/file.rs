//! Files, one for each scope.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use pingsix_sink::contract::{Ability, Contents, TestTarget};
use pingsix_sink::file::FileLocation;
use pingsix_sink::{Desired, FileSink, Published, Scope, Sink, SinkError};
use serde_json::Value;
use tempfile::TempDir;

use crate::resources::{Resources, from_resource, text};

pub(crate) struct File {
    directory: TempDir,
    history: Arc<History>,
}

/// The replaced files with their contents.
#[derive(Default)]
struct History(Mutex<BTreeMap<Scope, Vec<Version>>>);

/// A version of a file: its time and its content.
type Version = (Option<SystemTime>, Contents);

/// Records the content that readers see after each publication; a file is replaced atomically, so there are no states
/// between.
pub(crate) struct RecordingSink {
    sink: Resources<FileSink>,
    directory: PathBuf,
    history: Arc<History>,
}

/// The fields of the sink.
impl fmt::Debug for RecordingSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sink.fmt(f)
    }
}

impl Sink for RecordingSink {
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        let published = self.sink.publish(desired).await;
        let (scope, path) = (desired.scope(), file(&self.directory, desired.scope()));
        // A rewritten file has a new time even with the same content.
        let written = std::fs::metadata(&path).ok().map(|metadata| metadata.modified().unwrap());
        let mut history = self.history.0.lock();
        let states = history.entry(scope.clone()).or_default();
        if states.last().map(|(last, _)| *last) != Some(written) {
            states.push((written, read(&path)));
        }
        published
    }
}

impl TestTarget for File {
    type Sink = RecordingSink;

    const MISSING: &'static [(Ability, &'static str)] = &[
        (Ability::HasOtherWriters, "a file is the sink's own but for its base"),
        (Ability::CanFail, "a file is replaced in one step"),
        (Ability::LosesResponses, "a file system answers, or fails with the process"),
        (Ability::CanStall, "a file system that hangs blocks every writer"),
    ];

    async fn start() -> Option<Self> {
        Some(Self { directory: tempfile::tempdir().unwrap(), history: Arc::default() })
    }

    async fn open(&self) -> RecordingSink {
        let directory = self.directory.path().to_owned();
        let sink = FileSink::open(FileLocation::Directory(directory.clone()), None).await.unwrap();
        RecordingSink { sink: Resources(sink), directory, history: Arc::clone(&self.history) }
    }

    async fn read(&self, scope: &Scope) -> Contents {
        read(&file(self.directory.path(), scope))
    }

    async fn states(&self, scope: &Scope) -> Vec<Contents> {
        let history = self.history.0.lock();
        let written = history.get(scope).into_iter().flatten().map(|(_, contents)| contents.clone());
        [Contents::new()].into_iter().chain(written).collect()
    }
}

fn file(directory: &Path, scope: &Scope) -> PathBuf {
    directory.join(format!("{}.yaml", &scope.as_str()[1..]))
}

/// The documents as PingSIX would find them, read independently of the sink.
fn read(path: &Path) -> Contents {
    let Ok(written) = std::fs::read_to_string(path) else { return Contents::new() };
    let lists: BTreeMap<String, Vec<Value>> = serde_saphyr::from_str(&written).unwrap_or_default();
    let resources = lists.iter().flat_map(|(kind, list)| list.iter().map(move |resource| (kind, resource)));
    resources
        .map(|(kind, resource)| {
            let id = resource["id"].as_str().unwrap();
            (from_resource(&format!("{kind}/{id}")), text(resource))
        })
        .collect()
}
