//! Certificates and their server names.

use serde::{Deserialize, Serialize};

use super::secret::Redacted;

/// A certificate, its key, and its server names.
///
/// PingSIX sends the first certificate only. Server names are case-insensitive, and unique among all documents of this
/// kind. PingSIX: `src/config/mod.rs`, `SSL`; `src/proxy/ssl.rs`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, garde::Validate)]
#[garde(allow_unvalidated)]
pub struct Ssl {
    /// The id in the body: never written, because the key has the id, and empty after decoding.
    #[serde(default, skip_serializing)]
    pub id: String,
    /// The certificate in PEM, leaf first.
    pub cert: String,
    /// The private key of the leaf in PEM, or an encryption envelope.
    pub key: String,
    /// Exact names, `*.` and a name for any number of labels, or `*`. At least one.
    #[garde(length(min = 1))]
    pub snis: Vec<String>,
}

impl std::fmt::Debug for Ssl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ssl")
            .field("id", &self.id)
            .field("cert", &self.cert)
            .field("key", &Redacted)
            .field("snis", &self.snis)
            .finish()
    }
}
