//! Certificates and the server names they are shown to.

use serde::{Deserialize, Serialize};

use super::secret::Redacted;

/// A certificate, its key, and the server names it is shown to.
///
/// PingSIX sends the first certificate only. A server name, compared without regard to case, may stand once in
/// all documents of this kind. PingSIX: `src/config/mod.rs`, `SSL`; `src/proxy/ssl.rs`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, garde::Validate)]
#[garde(allow_unvalidated)]
pub struct Ssl {
    /// The id in the body. It is never written, because the key decides, and it is empty after decoding.
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
