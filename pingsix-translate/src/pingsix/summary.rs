//! The properties of a document that readers of the encoded form need.

use thin_vec::ThinVec;

use super::DocumentKey;

/// The properties of a document that readers of the encoded form need.
///
/// They are found before a document is encoded. So the check and the delivery of a document decode nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The documents that it refers to, each once for each reference.
    pub references: ThinVec<DocumentKey>,
    /// The server names of a certificate, in the form of PingSIX's tree of names.
    pub(crate) server_names: ThinVec<String>,
    /// The position in the order of writes; see [`Document::write_order`](super::Document::write_order).
    pub write_order: u32,
    /// The matcher entries of a Route, without the hosts of its service: hosts times paths.
    pub matcher_entries: usize,
    /// Whether PingSIX would refuse or misinterpret the document, regardless of other documents.
    pub(crate) has_violations: bool,
    /// Whether other documents may decide about a violation in another way than by their presence: patterns that may
    /// conflict, and services with hosts.
    pub(crate) is_entangled: bool,
}
