//! `gzip` and `brotli`: compressed responses.

use serde::{Deserialize, Serialize};

use crate::pingsix::omit;

/// Compression with gzip. PingSIX: `src/plugins/gzip.rs`, `src/plugins/compression.rs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gzip {
    /// 0 to 9; 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comp_level: Option<u32>,
    /// Whether compressed responses are unpacked for clients that do not ask for them.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub decompression: bool,
}

/// Compression with brotli. PingSIX: `src/plugins/brotli.rs`, `src/plugins/compression.rs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Brotli {
    /// 0 to 11; 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comp_level: Option<u32>,
    /// Whether compressed responses are unpacked for clients that do not ask for them.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub decompression: bool,
}
