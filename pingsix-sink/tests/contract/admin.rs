//! The Admin API, as a double that keeps PingSIX's rules.

use std::collections::BTreeMap;
use std::time::Duration;

use http::HeaderValue;
use parking_lot::Mutex;
use pingsix_sink::admin::SCOPE_LABEL;
use pingsix_sink::contract::{Ability, Contents, TestTarget};
use pingsix_sink::{AdminSink, Scope};
use serde_json::Value;

use crate::admin_double::{AdminDouble, KEY};
use crate::resources::{Resources, from_resource, text, to_resource, value};

pub(crate) struct Admin {
    double: AdminDouble,
    /// Foreign keys of other prefixes, which the API does not know.
    elsewhere: Mutex<BTreeMap<Scope, Contents>>,
}

/// The only prefix of the API.
const PREFIX: &str = "/p/web";

impl TestTarget for Admin {
    type Sink = Resources<AdminSink>;

    const MISSING: &'static [(Ability, &'static str)] = &[
        (Ability::HasSeveralScopes, "an Admin API writes below one prefix"),
        (Ability::RemembersRevisions, "an Admin API does not tell the revision of a deletion"),
    ];

    async fn start() -> Option<Self> {
        Some(Self { double: AdminDouble::start().await, elsewhere: Mutex::default() })
    }

    async fn open(&self) -> Self::Sink {
        let url = format!("http://{}", self.double.address);
        let builder = AdminSink::builder(&url, HeaderValue::from_static(KEY));
        Resources(builder.timeout(Duration::from_millis(500)).build().unwrap())
    }

    async fn read(&self, scope: &Scope) -> Contents {
        if scope.as_str() == PREFIX {
            contents(&self.double.all())
        } else {
            self.elsewhere.lock().get(scope).cloned().unwrap_or_default()
        }
    }

    async fn states(&self, _: &Scope) -> Vec<Contents> {
        self.double.history().iter().map(contents).collect()
    }

    async fn write_foreign(&self, scope: &Scope, key: &str, written: Option<&str>) {
        if scope.as_str() != PREFIX {
            let mut elsewhere = self.elsewhere.lock();
            let contents = elsewhere.entry(scope.clone()).or_default();
            contents.extend(written.map(|text| (key.to_owned(), text.to_owned())));
            return;
        }
        // The API accepts no other keys.
        if key.contains("/.") || key.starts_with("consumers/") {
            return;
        }
        let key = to_resource(key);
        let Some(written) = written else { return self.double.remove(&key) };
        let mut edited = value(written);
        // A user edits a resource by a read and a write.
        if let Some(labels) = self.double.stored(&key).and_then(|stored| stored.get("labels").cloned()) {
            assert!(labels.get(SCOPE_LABEL).is_some());
            edited["labels"] = labels;
        }
        self.double.write(&key, edited);
    }

    fn fail_after(&self, writes: Option<usize>) {
        self.double.fail_after(writes);
    }

    fn lose_responses_after(&self, writes: Option<usize>) {
        self.double.lose_responses_after(writes);
    }

    fn stall(&self, is_stalled: bool) {
        self.double.stall(is_stalled);
    }
}

fn contents(all: &BTreeMap<String, Value>) -> Contents {
    all.iter().map(|(key, value)| (from_resource(key), text(value))).collect()
}
