//! Keys of stream documents: kind and id.

use std::fmt;

/// The kinds of stream documents, declared in dependency order: a document refers only to kinds before its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamKind {
    /// A named set of backend nodes.
    Upstream,
    /// A certificate with its key.
    Ssl,
    /// Authorities of client certificates.
    Ca,
    /// The destination of the connections of one port, or of some server names on it.
    StreamRoute,
}

impl StreamKind {
    /// Every kind, in dependency order.
    pub const ALL: [Self; 4] = [Self::Upstream, Self::Ssl, Self::Ca, Self::StreamRoute];

    /// The segment of keys of this kind, for example `stream_routes`.
    pub const fn segment(self) -> &'static str {
        match self {
            Self::Upstream => "upstreams",
            Self::Ssl => "ssls",
            Self::Ca => "cas",
            Self::StreamRoute => "stream_routes",
        }
    }

    /// The kind of a key segment.
    pub fn from_segment(segment: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.segment() == segment)
    }
}

impl fmt::Display for StreamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.segment())
    }
}

/// The identity of a stream document. It orders by kind first, so a sorted list of keys is a valid order of writing.
///
/// `Display` gives the key below a prefix: `stream_routes/<id>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamKey {
    /// The kind of the document.
    pub kind: StreamKind,
    /// The last segment of the key: not empty, without `/`, and not starting with `.`.
    pub id: String,
}

impl StreamKey {
    /// The key of a kind with an id. [`super::validate()`] checks the id.
    pub fn new(kind: StreamKind, id: impl Into<String>) -> Self {
        Self { kind, id: id.into() }
    }

    /// The length in bytes of the key below a prefix, without building it.
    pub(super) fn len(&self) -> usize {
        self.kind.segment().len() + 1 + self.id.len()
    }

    /// Parses the rest of a key after the prefix; the error is the reason why it names no document.
    ///
    /// `Ok(None)` is a metadata key, as for PingSIX: its last segment starts with a dot.
    pub(super) fn parse(path: &str) -> Result<Option<Self>, &'static str> {
        if path.rsplit('/').next().is_some_and(|leaf| leaf.starts_with('.')) {
            return Ok(None);
        }
        match path.split_once('/') {
            None => Err("it has no id"),
            Some((segment, id)) => {
                let kind = StreamKind::from_segment(segment).ok_or("it is of no known kind")?;
                if is_id(id) {
                    Ok(Some(Self::new(kind, id)))
                } else {
                    Err("its id is empty or has more than one segment")
                }
            }
        }
    }
}

/// Whether a text can be an id.
pub(super) fn is_id(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('.') && !text.contains('/')
}

impl fmt::Display for StreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.id)
    }
}
