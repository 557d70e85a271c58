//! The contents of a certificate chain.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::der::asn1::{AnyRef, ObjectIdentifier};
use x509_cert::der::{Class, Decode as _, Tagged as _};

use crate::bounds;
use crate::model::Hostname;
use crate::pingsix::validate::read_certificates;

/// The contents of a chain. Certificates that [`x509_cert`] cannot parse are left out and not refused, because PingSIX may
/// accept them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CertificateChain {
    /// The DNS names of the leaf, sorted.
    pub(super) names: Box<[Hostname]>,
    /// Certificates between the leaf and a root.
    pub(super) intermediates: usize,
}

impl CertificateChain {
    /// Reads a chain of DER certificates, leaf first.
    ///
    /// # Errors
    /// Says in words which bound the chain exceeds.
    pub(super) fn read(chain: &[Vec<u8>]) -> Result<Self, String> {
        let Some((leaf, others)) = chain.split_first() else { return Ok(Self::default()) };
        if leaf.len() > bounds::CERTIFICATE_BYTES {
            return Err(format!(
                "its certificate has {} bytes, and clients take at most {}",
                leaf.len(),
                bounds::CERTIFICATE_BYTES
            ));
        }
        let bytes: usize = chain.iter().map(Vec::len).sum();
        if bytes > bounds::CHAIN_BYTES {
            return Err(format!(
                "its chain has {bytes} bytes, and clients take at most {}",
                bounds::CHAIN_BYTES
            ));
        }
        let names = parse(leaf).map(|leaf| names(&leaf)).unwrap_or_default();
        if names.len() > bounds::NAMES {
            let (names, most) = (names.len(), bounds::NAMES);
            return Err(format!("its certificate is for {names} DNS names, more than {most}"));
        }
        Ok(Self {
            names: names.into_iter().collect(),
            // Clients do not need a root in the chain: they trust their own copy or none.
            intermediates: others.iter().filter(|der| !is_self_issued(der)).count(),
        })
    }
}

/// The validity of the first certificate of a PEM text: its first and last moment since the Unix epoch (RFC 5280, section
/// 4.1.2.5). `None` if the certificate cannot be parsed.
///
/// Translation has no clock, so the caller compares the validity with its own.
pub fn certificate_validity(pem: &str) -> Option<RangeInclusive<Duration>> {
    let chain = read_certificates(pem);
    let leaf = parse(chain.first()?)?;
    let validity = leaf.tbs_certificate().validity();
    Some(validity.not_before.to_unix_duration()..=validity.not_after.to_unix_duration())
}

type Certificate = CertificateInner<Raw>;

fn parse(der: &[u8]) -> Option<Certificate> {
    Certificate::from_der(der).ok()
}

fn is_self_issued(der: &[u8]) -> bool {
    parse(der).is_some_and(|certificate| {
        let body = certificate.tbs_certificate();
        body.issuer() == body.subject()
    })
}

/// `id-ce-subjectAltName` (RFC 5280, section 4.2.1.6).
const SUBJECT_ALT_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.17");

/// The tag number of `dNSName` in a `GeneralName`.
const DNS_NAME: u32 = 2;

/// The DNS names of a certificate, without names that no request can have. The common name counts only in the absence of
/// other names (RFC 6125, section 6.4.4).
fn names(leaf: &Certificate) -> BTreeSet<Hostname> {
    let body = leaf.tbs_certificate();
    let extensions = body.extensions().map(Vec::as_slice).unwrap_or_default();
    let mut alternatives = extensions
        .iter()
        .filter(|extension| extension.extn_id == SUBJECT_ALT_NAME)
        // Each name is parsed on its own, so that a name of a rare kind does not hide the others.
        .filter_map(|extension| Vec::<AnyRef<'_>>::from_der(extension.extn_value.as_bytes()).ok())
        .flatten()
        .filter(|name| {
            name.tag().class() == Class::ContextSpecific && name.tag().number().value() == DNS_NAME
        })
        .peekable();
    if alternatives.peek().is_some() {
        let texts = alternatives.filter_map(|name| std::str::from_utf8(name.value()).ok());
        return texts.filter_map(|name| Hostname::parse(name).ok()).collect();
    }
    let common = body.subject().common_name().ok().flatten();
    common.and_then(|name| Hostname::parse(&name.value()).ok()).into_iter().collect()
}

#[cfg(test)]
mod tests;
