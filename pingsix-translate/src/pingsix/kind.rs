//! The key of a PingSIX document: its kind and its id.

use std::fmt;

/// The kinds of PingSIX's documents, in dependency order: a document refers to earlier kinds only.
///
/// PingSIX: `src/proxy/graph_mutation.rs`, `ResourceKind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceKind {
    /// A named set of backend nodes.
    Upstream,
    /// Plugins, hosts and an upstream shared by routes.
    Service,
    /// The handling of requests with some hosts, paths and methods.
    Route,
    /// Plugins that run on every request.
    GlobalRule,
    /// A certificate with its key and its server names.
    Ssl,
}

impl ResourceKind {
    /// Every kind, in dependency order.
    pub const ALL: [Self; 5] = [Self::Upstream, Self::Service, Self::Route, Self::GlobalRule, Self::Ssl];

    /// The segment of keys of this kind, for example `routes`.
    pub const fn segment(self) -> &'static str {
        match self {
            Self::Upstream => "upstreams",
            Self::Service => "services",
            Self::Route => "routes",
            Self::GlobalRule => "global_rules",
            Self::Ssl => "ssls",
        }
    }

    /// The kind of a key segment; `None` for a segment that PingSIX does not know.
    pub fn from_segment(segment: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.segment() == segment)
    }
}

impl fmt::Display for ResourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.segment())
    }
}

/// The identity of a document. Keys are ordered by kind first, so a sorted list of keys is a valid order of writes.
///
/// `Display` gives the key below a prefix: `routes/<id>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentKey {
    /// The kind of the document.
    pub kind: ResourceKind,
    /// The last segment of the key. PingSIX accepts any non-empty text without `/` that does not start with
    /// `.`; see [`KeyError`].
    pub id: String,
}

impl DocumentKey {
    /// The key of a kind with an id. [`super::validate`] checks the id.
    pub fn new(kind: ResourceKind, id: impl Into<String>) -> Self {
        Self { kind, id: id.into() }
    }

    /// The etcd key with a prefix, for example `/apisix/routes/r1`.
    ///
    /// The prefix is canonicalised as in PingSIX (`src/config/etcd.rs`): trailing slashes are dropped, and one is
    /// appended.
    pub fn under(&self, prefix: &str) -> String {
        format!("{}{self}", canonical_prefix(prefix))
    }

    /// The length in bytes of the key below a prefix, without building it.
    pub(super) fn len(&self) -> usize {
        self.kind.segment().len() + 1 + self.id.len()
    }

    /// Parses the part of an etcd key behind a prefix.
    ///
    /// `Ok(None)` is a metadata key: PingSIX ignores every key whose last segment starts with `.`
    /// (`src/config/etcd.rs`).
    ///
    /// # Errors
    ///
    /// [`KeyError`] for a key with which PingSIX would fail to synchronise the whole prefix.
    pub fn parse(path: &str) -> Result<Option<Self>, KeyError> {
        if path.rsplit('/').next().is_some_and(|leaf| leaf.starts_with('.')) {
            return Ok(None);
        }
        let Some((segment, id)) = path.split_once('/') else {
            return Err(KeyError::NoId { path: path.to_owned() });
        };
        let Some(kind) = ResourceKind::from_segment(segment) else {
            return Err(KeyError::UnknownKind { path: path.to_owned() });
        };
        if id.is_empty() {
            return Err(KeyError::NoId { path: path.to_owned() });
        }
        if id.contains('/') {
            return Err(KeyError::NestedId { path: path.to_owned() });
        }
        Ok(Some(Self::new(kind, id)))
    }
}

impl fmt::Display for DocumentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.id)
    }
}

/// A key that names no document. Such a key under its prefix makes every later synchronisation of PingSIX fail, and
/// PingSIX becomes unready (`src/config/etcd.rs`, `src/proxy/graph_mutation.rs`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The first segment is no kind of PingSIX.
    #[error("key \"{path}\" is of no kind that PingSIX knows")]
    UnknownKind {
        /// The key below the prefix.
        path: String,
    },
    /// The id is missing or empty.
    #[error("key \"{path}\" has no id")]
    NoId {
        /// The key below the prefix.
        path: String,
    },
    /// The id contains a `/`.
    #[error("key \"{path}\" has more segments than a kind and an id")]
    NestedId {
        /// The key below the prefix.
        path: String,
    },
    /// The key does not start with the prefix, by a mistake of the caller. PingSIX never requests such keys.
    #[error("key \"{path}\" is not under the prefix")]
    ForeignPrefix {
        /// The whole key.
        path: String,
    },
    /// The key is not UTF-8.
    #[error("key \"{path}\" is not UTF-8")]
    NotText {
        /// The key with the invalid bytes replaced.
        path: String,
    },
}

/// The canonical prefix of PingSIX, with exactly one trailing slash.
pub(crate) fn canonical_prefix(prefix: &str) -> String {
    format!("{}/", prefix.trim_end_matches('/'))
}
