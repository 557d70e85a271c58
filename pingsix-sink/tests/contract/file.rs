//! Files, one for each scope.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use pingsix_sink::file::FileLocation;
use pingsix_sink::{Desired, FileSink, Published, Scope, Sink, SinkError};
use serde_json::Value;
use tempfile::TempDir;

use crate::resources::{Resources, from_resource, text};
use crate::target::{Ability, Contents, Target};

pub(crate) struct File {
    directory: TempDir,
    seen: Arc<Seen>,
}

/// The files that were put in the place of others, each with its content.
#[derive(Default)]
struct Seen(Mutex<BTreeMap<Scope, Vec<Version>>>);

/// A file that was there: when it was written, and what it held.
type Version = (Option<SystemTime>, Contents);

/// Notes what readers can see after each publication; a file is replaced in one step, so they see nothing between.
pub(crate) struct Watched {
    sink: Resources<FileSink>,
    directory: PathBuf,
    seen: Arc<Seen>,
}

/// What is said of the sink itself.
impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sink.fmt(f)
    }
}

impl Sink for Watched {
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        let published = self.sink.publish(desired).await;
        let (scope, path) = (desired.scope(), file(&self.directory, desired.scope()));
        // A file that was written again says so, also when its content is the same.
        let written = std::fs::metadata(&path).ok().map(|metadata| metadata.modified().unwrap());
        let mut seen = self.seen.0.lock();
        let states = seen.entry(scope.clone()).or_default();
        if states.last().map(|(last, _)| *last) != Some(written) {
            states.push((written, read(&path)));
        }
        published
    }
}

impl Target for File {
    type Sink = Watched;

    const LACKS: &'static [(Ability, &'static str)] = &[
        (Ability::HasOtherWriters, "a file is the sink's own but for its base"),
        (Ability::Fails, "a file is replaced in one step"),
        (Ability::LosesAnswers, "a file system answers, or fails with the process"),
        (Ability::Stalls, "a file system that hangs lets nobody go on"),
    ];

    async fn start() -> Option<Self> {
        Some(Self { directory: tempfile::tempdir().unwrap(), seen: Arc::default() })
    }

    async fn open(&self) -> Watched {
        let directory = self.directory.path().to_owned();
        let sink = FileSink::open(FileLocation::Directory(directory.clone()), None).await.unwrap();
        Watched { sink: Resources(sink), directory, seen: Arc::clone(&self.seen) }
    }

    async fn read(&self, scope: &Scope) -> Contents {
        read(&file(self.directory.path(), scope))
    }

    async fn states(&self, scope: &Scope) -> Vec<Contents> {
        let seen = self.seen.0.lock();
        let written = seen.get(scope).into_iter().flatten().map(|(_, contents)| contents.clone());
        [Contents::new()].into_iter().chain(written).collect()
    }
}

fn file(directory: &Path, scope: &Scope) -> PathBuf {
    directory.join(format!("{}.yaml", &scope.as_str()[1..]))
}

/// What PingSIX would find, read by other means than the sink's.
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
