//! One authority: a key that signs, and the certificate that says so.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType, date_time_ymd,
};
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::UnixTime;
use rustls::server::WebPkiClientVerifier;

use super::certificate::Certificate;
use super::{IssueError, RecordError};
use crate::digest::short_digest;

/// The most that a certificate is backdated, for clients with slow clocks.
const MAX_BACKDATING: Duration = Duration::from_mins(5);

/// A certificate is backdated by at most its lifetime, divided by this number.
const BACKDATING_DIVISOR: u32 = 12;

/// An authority that signs. Its key is never shown.
#[derive(Clone)]
pub struct Authority {
    certificate: Certificate,
    key: Arc<KeyPair>,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl PartialEq for Authority {
    fn eq(&self, other: &Self) -> bool {
        self.certificate == other.certificate
    }
}

impl Eq for Authority {}

/// The purpose of a certificate.
pub(super) enum Purpose {
    Server,
    Client,
}

/// A certificate and its key, as PEM.
pub(super) struct Issued {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl Authority {
    /// A new authority, good for so long from now on.
    ///
    /// # Errors
    /// [`IssueError`], which nothing but a machine without randomness explains.
    pub(crate) fn new(now: Timestamp, lifetime: Duration) -> Result<Self, IssueError> {
        let key = new_key()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = name_of(&key);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        set_times(&mut params, now, lifetime, None);
        let pem = params.self_signed(&key)?.pem();
        let certificate = Certificate::read(&pem).ok_or(rcgen::Error::CouldNotParseCertificate)?;
        Ok(Self { certificate, key: Arc::new(key) })
    }

    /// Puts one together again that [`new`](Self::new) made.
    pub(super) fn read(certificate: &str, key: &str, names: [&'static str; 2]) -> Result<Self, RecordError> {
        let [of_certificate, of_key] = names;
        let certificate = read_certificate(certificate, of_certificate)?;
        let wrong = |problem| RecordError { key: of_key, problem };
        let key = KeyPair::from_pem(key).map_err(|_| wrong("is not a private key in PEM (PKCS #8)"))?;
        if key.public_key_raw() != certificate.public_key() {
            return Err(wrong("is not the key of the certificate beside it"));
        }
        if !certificate.is_of(&subject(&key)) {
            let problem = "is not a certificate that this controller has made for an authority";
            return Err(RecordError { key: of_certificate, problem });
        }
        Ok(Self { certificate, key: Arc::new(key) })
    }

    /// Its certificate.
    pub(crate) const fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    pub(super) fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// Makes a key, and signs a certificate for it, good for so long, and not longer than its own.
    pub(super) fn issue(
        &self,
        purpose: &Purpose,
        name: &str,
        alternatives: Vec<SanType>,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Issued, IssueError> {
        let key = new_key()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.subject_alt_names = alternatives;
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![match purpose {
            Purpose::Server => ExtendedKeyUsagePurpose::ServerAuth,
            Purpose::Client => ExtendedKeyUsagePurpose::ClientAuth,
        }];
        params.use_authority_key_identifier_extension = true;
        set_times(&mut params, now, lifetime, Some(self.certificate.not_after()));
        let mut own = CertificateParams::default();
        own.distinguished_name = name_of(&self.key);
        let certificate = params.signed_by(&key, &Issuer::from_params(&own, &*self.key))?;
        Ok(Issued { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    /// Whether a server that trusts this authority alone would let in the holder of a certificate now.
    pub(super) fn accepts_client(&self, certificate: &Certificate, now: Timestamp) -> bool {
        accepts_client([&self.certificate], certificate, now)
    }
}

/// Whether a server that trusts these authorities lets in the holder of a certificate now.
pub(super) fn accepts_client<'a>(
    authorities: impl IntoIterator<Item = &'a Certificate>,
    certificate: &Certificate,
    now: Timestamp,
) -> bool {
    let mut roots = RootCertStore::empty();
    let added = authorities.into_iter().all(|authority| roots.add(authority.der().clone()).is_ok());
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let seconds = u64::try_from(now.as_second()).unwrap_or_default();
    let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    added && verifier.is_ok_and(|verifier| verifier.verify_client_cert(certificate.der(), &[], now).is_ok())
}

/// Reads the certificate of an authority.
pub(super) fn read_certificate(pem: &str, name: &'static str) -> Result<Certificate, RecordError> {
    let wrong = |problem| RecordError { key: name, problem };
    let certificate = Certificate::read(pem).ok_or(wrong("is not one certificate in PEM"))?;
    let is_usable =
        certificate.is_authority() && RootCertStore::empty().add(certificate.der().clone()).is_ok();
    if is_usable { Ok(certificate) } else { Err(wrong("is not the certificate of an authority")) }
}

fn new_key() -> Result<KeyPair, IssueError> {
    Ok(KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?)
}

/// The name of an authority follows from its key, so that two of them are never mistaken for each other.
fn name_of(key: &KeyPair) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, subject(key));
    name
}

fn subject(key: &KeyPair) -> String {
    format!("PingSIX feed {}", short_digest(&format!("{:?}", key.public_key_raw())))
}

/// Whole seconds, as certificates have them: good no later than now, and for no less than the lifetime from now on.
fn set_times(params: &mut CertificateParams, now: Timestamp, lifetime: Duration, most: Option<Timestamp>) {
    let now = u64::try_from(now.as_second()).unwrap_or_default();
    let before = MAX_BACKDATING.min(lifetime / BACKDATING_DIVISOR).as_secs();
    let end = now.saturating_add(lifetime.as_secs()).saturating_add(1);
    let most = most.and_then(|most| u64::try_from(most.as_second()).ok()).unwrap_or(LAST_SECOND);
    let epoch = date_time_ymd(1970, 1, 1);
    params.not_before = epoch + Duration::from_secs(now.saturating_sub(before).min(LAST_SECOND));
    params.not_after = epoch + Duration::from_secs(end.min(most).min(LAST_SECOND));
}

/// The last second of the year 9999, after which no certificate can say anything.
const LAST_SECOND: u64 = 253_402_300_799;
