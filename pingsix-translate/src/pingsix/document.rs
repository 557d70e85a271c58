//! A document of any kind.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thin_vec::ThinVec;

use super::plugin::TrafficSplit;
use super::secret::redact_document;
use super::{DocumentKey, GlobalRule, Plugins, ResourceKind, Route, Service, Ssl, Upstream};

/// The value of one key: a document of any kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Document {
    /// A named upstream.
    Upstream(Upstream),
    /// A service.
    Service(Service),
    /// A route.
    Route(Route),
    /// A global rule.
    GlobalRule(GlobalRule),
    /// A certificate.
    Ssl(Ssl),
}

impl Document {
    /// The kind, which is also that of the document's key.
    pub const fn kind(&self) -> ResourceKind {
        match self {
            Self::Upstream(_) => ResourceKind::Upstream,
            Self::Service(_) => ResourceKind::Service,
            Self::Route(_) => ResourceKind::Route,
            Self::GlobalRule(_) => ResourceKind::GlobalRule,
            Self::Ssl(_) => ResourceKind::Ssl,
        }
    }

    /// The documents that this one refers to, one for each reference. A named upstream beside an inline one is none.
    pub(super) fn references(&self) -> ThinVec<DocumentKey> {
        let upstream = |inline: bool, id: &Option<String>| {
            let id = id.as_ref().filter(|_| !inline);
            id.map(|id| DocumentKey::new(ResourceKind::Upstream, id.as_str()))
        };
        match self {
            Self::Route(route) => {
                let service = route.service_id.as_ref();
                let service = service.map(|id| DocumentKey::new(ResourceKind::Service, id.as_str()));
                let own = upstream(route.upstream.is_some(), &route.upstream_id).into_iter().chain(service);
                own.chain(split_targets(&route.plugins)).collect()
            }
            Self::Service(service) => {
                let own = upstream(service.upstream.is_some(), &service.upstream_id);
                own.into_iter().chain(split_targets(&service.plugins)).collect()
            }
            Self::GlobalRule(rule) => split_targets(&rule.plugins).collect(),
            Self::Upstream(_) | Self::Ssl(_) => ThinVec::new(),
        }
    }

    /// The canonical compact JSON: no blanks, defaults left out, fields in the order of their declaration,
    /// maps sorted, no id. Equal documents give equal bytes.
    pub fn to_json(&self) -> String {
        // Encoding cannot fail, because all map keys are text.
        let mut json = serde_json::to_string(self).unwrap_or_default();
        // The text is stored while it is served.
        json.shrink_to_fit();
        json
    }

    /// The length of [`to_json`](Self::to_json) in bytes, without building it.
    pub fn json_len(&self) -> usize {
        json_len(self)
    }

    /// Decodes a value as PingSIX does (`src/proxy/graph_mutation.rs`): unknown fields are ignored. An id in the body
    /// must be text and is dropped, because the key has the id.
    ///
    /// # Errors
    ///
    /// The error of the decoder, if PingSIX would refuse the value. Its text may quote the value.
    pub fn decode(kind: ResourceKind, value: &Value) -> Result<Self, serde_json::Error> {
        Ok(match kind {
            ResourceKind::Upstream => {
                Self::Upstream(Upstream { id: String::new(), ..Upstream::deserialize(value)? })
            }
            ResourceKind::Service => {
                Self::Service(Service { id: String::new(), ..Service::deserialize(value)? })
            }
            ResourceKind::Route => Self::Route(Route { id: String::new(), ..Route::deserialize(value)? }),
            ResourceKind::GlobalRule => {
                Self::GlobalRule(GlobalRule { id: String::new(), ..GlobalRule::deserialize(value)? })
            }
            ResourceKind::Ssl => Self::Ssl(Ssl { id: String::new(), ..Ssl::deserialize(value)? }),
        })
    }

    /// Decodes the output of [`to_json`](Self::to_json).
    pub(super) fn read(kind: ResourceKind, json: &[u8]) -> Result<Self, serde_json::Error> {
        Ok(match kind {
            ResourceKind::Upstream => Self::Upstream(serde_json::from_slice(json)?),
            ResourceKind::Service => Self::Service(serde_json::from_slice(json)?),
            ResourceKind::Route => Self::Route(serde_json::from_slice(json)?),
            ResourceKind::GlobalRule => Self::GlobalRule(serde_json::from_slice(json)?),
            ResourceKind::Ssl => Self::Ssl(serde_json::from_slice(json)?),
        })
    }

    /// The document without secrets, for display: `<redacted>` replaces private keys and passwords.
    pub fn to_shown_value(&self) -> Value {
        redact_document(self.kind(), &self.to_value())
    }

    /// The document as a JSON value.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// The named upstreams of a traffic split.
fn split_targets(plugins: &Plugins) -> impl Iterator<Item = DocumentKey> {
    let split = plugins.get::<TrafficSplit>().and_then(Result::ok);
    let targets = split.into_iter().flat_map(|split| split.rules).flat_map(|rule| rule.weighted_upstreams);
    targets.filter_map(|target| Some(DocumentKey::new(ResourceKind::Upstream, target.upstream_id?)))
}

/// The type of the documents of a kind.
pub(super) trait Resource: Sized + 'static {
    const KIND: ResourceKind;

    /// A document of the kind; `None` for another kind.
    fn of(document: &Document) -> Option<&Self>;
}

macro_rules! resources {
    ($($kind:ident)+) => {$(
        impl From<$kind> for Document {
            fn from(document: $kind) -> Self {
                Self::$kind(document)
            }
        }

        impl Resource for $kind {
            const KIND: ResourceKind = ResourceKind::$kind;

            fn of(document: &Document) -> Option<&Self> {
                if let Document::$kind(document) = document { Some(document) } else { None }
            }
        }
    )+};
}

resources! { Upstream Service Route GlobalRule Ssl }

/// The length of a value's compact JSON in bytes.
pub(crate) fn json_len(value: &impl Serialize) -> usize {
    let mut counter = ByteCounter(0);
    // Writes to the counter never fail, and the values always encode.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

struct ByteCounter(usize);

impl std::io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
