//! The identity of a data plane at the feed: its validity and its renewal.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use rcgen::{KeyPair, SanType};

use super::IssueError;
use super::authority::Purpose;
use super::certificate::Certificate;
use super::rotation::{Authorities, Lifetimes};
use crate::digest::short_digest;

/// The keys of a Secret, as `kubernetes.io/tls` has them.
const CA: &str = "ca.crt";
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// The longest permitted common name.
const MAX_NAME_CHARS: usize = 64;

/// The trust anchors and the client certificate of a PingSIX that reads a feed. The key is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct FeedIdentity {
    ca_bundle: String,
    certificate: String,
    key: String,
}

impl fmt::Debug for FeedIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let certificate = Certificate::read(&self.certificate);
        f.debug_struct("FeedIdentity").field("certificate", &certificate).finish_non_exhaustive()
    }
}

impl FeedIdentity {
    /// From existing PEM, which may be invalid.
    pub fn new(ca_bundle: impl Into<String>, certificate: impl Into<String>, key: impl Into<String>) -> Self {
        Self { ca_bundle: ca_bundle.into(), certificate: certificate.into(), key: key.into() }
    }

    /// The authorities of the server: `pingsix.etcd.tls.ca_cert`, PEM.
    pub fn ca_bundle(&self) -> &str {
        &self.ca_bundle
    }

    /// The certificate: `pingsix.etcd.tls.client_cert`, PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Its key: `pingsix.etcd.tls.client_key`, PEM.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The data of a Secret of the type `kubernetes.io/tls`: `ca.crt`, `tls.crt` and `tls.key`.
    pub fn to_data(&self) -> BTreeMap<String, ByteString> {
        let entry = |name: &str, pem: &String| (name.to_owned(), ByteString(pem.clone().into_bytes()));
        [entry(CA, &self.ca_bundle), entry(CERTIFICATE, &self.certificate), entry(KEY, &self.key)].into()
    }

    /// Reads the data of such a Secret without validation; `None` if an entry is missing or no text.
    pub fn from_data(data: &BTreeMap<String, ByteString>) -> Option<Self> {
        let text = |name: &str| String::from_utf8(data.get(name)?.0.clone()).ok();
        Some(Self { ca_bundle: text(CA)?, certificate: text(CERTIFICATE)?, key: text(KEY)? })
    }

    /// The time of the next check, even without other changes; `None` for an unreadable certificate.
    pub fn renewal(&self) -> Option<Timestamp> {
        Certificate::read(&self.certificate).map(|certificate| certificate.renewal())
    }
}

/// The decision about the identity of a data plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientIdentity {
    /// The identity is valid.
    Keep,
    /// This identity replaces the former one, as a whole.
    Write {
        /// The identity to write.
        identity: FeedIdentity,
        /// The reason against the former identity.
        because: ReissueReason,
    },
}

/// Why an identity is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReissueReason {
    /// There is no identity.
    Missing,
    /// The text is no certificate with its key.
    Unusable,
    /// The certificate names other prefixes, or another owner.
    OtherPrefixes,
    /// The certificate has expired, or the signing authority would not have signed it.
    OtherAuthority,
    /// The renewal is due.
    Renewal,
    /// The certificate is valid, and the authorities beside it are outdated.
    OtherBundle,
}

impl ReissueReason {
    /// The text for logs and Events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "there is none",
            Self::Unusable => "it is not a certificate with its key",
            Self::OtherPrefixes => "it is for other prefixes",
            Self::OtherAuthority => "its authority does not sign any more",
            Self::Renewal => "it is to be renewed",
            Self::OtherBundle => "the authorities to trust have changed",
        }
    }
}

impl Authorities {
    /// The decision about the identity of `owner`, a name for people. The identity may read exactly the prefixes of
    /// these URIs ([`feed_uri_of_owner`](pingsix_sink::embedded::feed_uri_of_owner)). `in_force` is the content of its
    /// Secret.
    ///
    /// A valid certificate is kept, even if the authorities beside it change.
    ///
    /// # Errors
    /// [`IssueError`] when a certificate cannot be made.
    pub fn client_identity(
        &self,
        owner: &str,
        uris: &BTreeSet<String>,
        in_force: Option<&FeedIdentity>,
        now: Timestamp,
        lifetimes: &Lifetimes,
    ) -> Result<ClientIdentity, IssueError> {
        let name = common_name(owner);
        let reason = match in_force {
            None => Some(ReissueReason::Missing),
            Some(identity) => self.reissue_reason(identity, &name, uris, now),
        };
        let identity = match (reason, in_force) {
            (None, _) => return Ok(ClientIdentity::Keep),
            (Some(ReissueReason::OtherBundle), Some(good)) => {
                FeedIdentity { ca_bundle: self.bundle(), ..good.clone() }
            }
            (Some(_), _) => {
                let uris = uris.iter().map(|uri| uri.as_str().try_into().map(SanType::URI));
                let uris = uris.collect::<Result<Vec<_>, _>>()?;
                let issued =
                    self.signing().issue(&Purpose::Client, &name, uris, now, lifetimes.certificate())?;
                let ca_bundle = self.bundle();
                FeedIdentity { ca_bundle, certificate: issued.certificate, key: issued.key }
            }
        };
        let because = reason.unwrap_or(ReissueReason::Missing);
        Ok(ClientIdentity::Write { identity, because })
    }

    /// Whether the next step has to wait for a data plane with this identity: it lacks the present edition, and its
    /// certificate still opens the feed. An identity is written as a whole, so the present bundle comes with a
    /// matching certificate.
    pub(crate) fn waits_for(&self, identity: &FeedIdentity, now: Timestamp) -> bool {
        identity.ca_bundle() != self.bundle()
            && Certificate::read(identity.certificate())
                .is_some_and(|certificate| self.accept_client(&certificate, now))
    }

    fn reissue_reason(
        &self,
        identity: &FeedIdentity,
        name: &str,
        wanted: &BTreeSet<String>,
        now: Timestamp,
    ) -> Option<ReissueReason> {
        let Some(certificate) = Certificate::read(&identity.certificate) else {
            return Some(ReissueReason::Unusable);
        };
        let is_its_key = KeyPair::from_pem(&identity.key)
            .is_ok_and(|key| key.public_key_raw() == certificate.public_key());
        let uris: BTreeSet<&String> = certificate.uris().iter().collect();
        if !is_its_key {
            Some(ReissueReason::Unusable)
        } else if !uris.into_iter().eq(wanted) || !certificate.is_of(name) {
            Some(ReissueReason::OtherPrefixes)
        } else if certificate.needs_renewal(now) && !certificate.has_expired(now) {
            Some(ReissueReason::Renewal)
        } else if !self.signing().accepts_client(&certificate, now) {
            Some(ReissueReason::OtherAuthority)
        } else if identity.ca_bundle != self.bundle() {
            Some(ReissueReason::OtherBundle)
        } else {
            None
        }
    }
}

/// A readable name, shortened, without characters that have a meaning in a name.
fn common_name(owner: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || " -._/:".contains(letter);
    let name: String = owner.chars().map(|letter| if plain(letter) { letter } else { '_' }).collect();
    if name.len() <= MAX_NAME_CHARS && !name.is_empty() {
        return name;
    }
    let digest = short_digest(owner);
    let begin: String = name.chars().take(MAX_NAME_CHARS - digest.len() - 1).collect();
    format!("{begin} {digest}")
}
