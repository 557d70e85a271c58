//! Events with random objects.

mod events;

use std::sync::LazyLock;

use pingsix_translate::Kind;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::Event;
use crate::fixture::objects::{self, Pairs};
pub(crate) use events::event_of;

/// An object of a kind, with the metadata that an API server adds; the same name often means another content.
pub(crate) fn object(kind: Kind, version: u32, random: &mut StdRng) -> Value {
    static PAIRS: LazyLock<Pairs> = LazyLock::new(Pairs::new);
    let (key, mut object) = objects::object(kind, random, &PAIRS);
    let metadata = &mut object["metadata"];
    metadata["resourceVersion"] = json!(version.to_string());
    metadata["generation"] = json!(version);
    metadata["creationTimestamp"] = json!(format!("2026-01-0{}T00:00:00Z", key.name.name.len().min(9)));
    object
}
