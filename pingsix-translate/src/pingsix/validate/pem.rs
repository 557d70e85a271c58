//! Certificates, keys, and whether they belong together, without cryptography: a private key carries its public
//! half, or says enough to tell that it does not fit.

use std::fmt;

use rustls_pki_types::pem::{PemObject, SectionKind};

use super::document::Context;
use super::{Encryption, Rule, Severity, Violation};

/// How a secret is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Envelope {
    /// As itself.
    Plain,
    /// In an encryption envelope, so that its content is unknown here.
    Sealed,
}

/// Reports an encryption envelope that PingSIX could not open.
pub(super) fn check_envelope(
    secret: &str,
    field: &str,
    context: &Context<'_>,
    out: &mut Vec<Violation>,
) -> Envelope {
    let Some(rest) = secret.strip_prefix("$pingsix-enc:") else { return Envelope::Plain };
    let message = match context.options.encryption {
        Encryption::Literal => return Envelope::Plain,
        Encryption::Off => Some("The value is encrypted and PingSIX runs without `data_encryption`."),
        Encryption::On => match rest.strip_prefix("v1$").map(decode_base64) {
            None => Some("The value is in an encryption envelope of an unknown version."),
            // A nonce of 12 bytes and a tag of 16 are the least there can be.
            Some(Some(payload)) if payload.len() >= 28 => None,
            Some(_) => Some("The value is in an encryption envelope that holds no ciphertext."),
        },
    };
    if let Some(message) = message {
        out.push(context.fault(Rule::Envelope, Severity::Rejected, field, message));
    }
    Envelope::Sealed
}

pub(super) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}

/// What is wrong with a certificate and its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// There is no certificate, or it is malformed.
    Certificate,
    /// There is no private key, or it is malformed.
    Key,
    /// The key is another one's.
    Mismatch,
    /// The key is that of a certificate behind the first.
    LeafNotFirst,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certificate => "it holds no well-formed certificate",
            Self::Key => "it holds no well-formed private key",
            Self::Mismatch => "the private key is not that of the certificate",
            Self::LeafNotFirst => {
                "the private key is that of a certificate behind the first, and the leaf must come first"
            }
        })
    }
}

/// Checks the first certificate of a PEM text against a private key, as PingSIX does for its listeners.
pub(crate) fn check_leaf_and_key(certificates: &str, key: &str) -> Result<(), Fault> {
    check_pair(&read_certificates(certificates), key)
}

/// As [`check_leaf_and_key`], and every other certificate must parse too.
pub(crate) fn check_chain_and_key(certificates: &str, key: &str) -> Result<(), Fault> {
    let chain = read_certificates(certificates);
    if chain.iter().any(|der| public_key_of_certificate(der).is_none()) {
        return Err(Fault::Certificate);
    }
    check_pair(&chain, key)
}

/// The certificates of a PEM text as DER, up to the first section that cannot be read.
pub(crate) fn read_certificates(text: &str) -> Vec<Vec<u8>> {
    sections(text).filter_map(|(kind, der)| (kind == SectionKind::Certificate).then_some(der)).collect()
}

/// Checks that a PEM text holds certificates, and that all of it can be read.
pub(crate) fn check_authorities(text: &str) -> Result<(), Fault> {
    let sections: Vec<(SectionKind, Vec<u8>)> = PemObject::pem_slice_iter(text.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|_| Fault::Certificate)?;
    let mut certificates =
        sections.iter().filter(|(kind, _)| *kind == SectionKind::Certificate).map(|(_, der)| der).peekable();
    let well_formed =
        certificates.peek().is_some() && certificates.all(|der| public_key_of_certificate(der).is_some());
    if well_formed { Ok(()) } else { Err(Fault::Certificate) }
}

fn check_pair(chain: &[Vec<u8>], key: &str) -> Result<(), Fault> {
    let [leaf, others @ ..] = chain else { return Err(Fault::Certificate) };
    let public = public_key_of_certificate(leaf).ok_or(Fault::Certificate)?;
    let keys = [SectionKind::PrivateKey, SectionKind::RsaPrivateKey, SectionKind::EcPrivateKey];
    let Some((kind, der)) = sections(key).find(|(kind, _)| keys.contains(kind)) else {
        // A kind of key that this reader does not know is PingSIX's to judge.
        return if key.contains("-----BEGIN DSA PRIVATE KEY-----") { Ok(()) } else { Err(Fault::Key) };
    };
    let private = private_key(kind, &der).ok_or(Fault::Key)?;
    let is_for = |certificate: &Vec<u8>| {
        public_key_of_certificate(certificate).is_some_and(|public| fits(&public, &private))
    };
    if fits(&public, &private) {
        Ok(())
    } else if others.iter().any(is_for) {
        Err(Fault::LeafNotFirst)
    } else {
        Err(Fault::Mismatch)
    }
}

/// Whether a text holds a public key that PingSIX can verify RSA or elliptic-curve tokens with.
pub(super) fn holds_public_key(text: &str, elliptic: bool) -> bool {
    let wanted = if elliptic { EC } else { RSA };
    let first = sections(text).next();
    let Some((kind, der)) = first else { return false };
    let key = if kind == SectionKind::PublicKey {
        Reader(&der).sequence().and_then(|mut spki| public_key(&mut spki))
    } else if kind == SectionKind::Certificate {
        public_key_of_certificate(&der)
    } else {
        private_key(kind, &der)
    };
    key.is_some_and(|key| key.algorithm == wanted)
}

fn private_key(kind: SectionKind, der: &[u8]) -> Option<Key<'_>> {
    if kind == SectionKind::RsaPrivateKey {
        rsa_private(der)
    } else if kind == SectionKind::EcPrivateKey {
        ec_private(der, None)
    } else if kind == SectionKind::PrivateKey {
        pkcs8_private(der)
    } else {
        None
    }
}

/// Whether a text has the label of a bare RSA public key, which the PEM reader does not know and which is as far
/// as the check goes.
pub(super) fn holds_bare_rsa_key(text: &str) -> bool {
    text.contains("-----BEGIN RSA PUBLIC KEY-----")
}

/// The sections of a PEM text, up to the first that cannot be read.
fn sections(text: &str) -> impl Iterator<Item = (SectionKind, Vec<u8>)> {
    <(SectionKind, Vec<u8>)>::pem_slice_iter(text.as_bytes()).map_while(Result::ok)
}

const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];

/// A public key, or what a private key tells about its own.
struct Key<'a> {
    /// The object identifier of the algorithm.
    algorithm: &'a [u8],
    /// The object identifier of the curve.
    curve: Option<&'a [u8]>,
    /// The public key: a point or other bits, or the modulus of an RSA key.
    bits: Option<&'a [u8]>,
    /// The public exponent of an RSA key.
    exponent: Option<&'a [u8]>,
}

fn fits(public: &Key<'_>, private: &Key<'_>) -> bool {
    let agree = |one: Option<&[u8]>, other: Option<&[u8]>| match (one, other) {
        (Some(one), Some(other)) => one == other,
        // What a key does not say cannot be held against it.
        _ => true,
    };
    public.algorithm == private.algorithm
        && agree(public.curve, private.curve)
        && agree(public.exponent, private.exponent)
        && match public.algorithm {
            EC => agree(public.bits.map(abscissa), private.bits.map(abscissa)),
            _ => agree(public.bits, private.bits),
        }
}

/// The part of a point of a curve that its compressed and uncompressed forms share.
fn abscissa(bits: &[u8]) -> &[u8] {
    match bits {
        [0x04, coordinates @ ..] if coordinates.len() % 2 == 0 && coordinates.len() >= 48 => {
            coordinates.get(..coordinates.len() / 2).unwrap_or_default()
        }
        [0x02 | 0x03, x @ ..] if x.len() >= 24 && x.len() <= 66 => x,
        _ => bits,
    }
}

fn public_key_of_certificate(der: &[u8]) -> Option<Key<'_>> {
    let mut whole = Reader(der);
    let mut certificate = whole.sequence()?;
    let mut body = certificate.sequence()?;
    certificate.sequence()?;
    certificate.expect(BIT_STRING)?;
    // Serial number, signature algorithm, issuer, validity and subject come before the key.
    body.skip(0xa0);
    body.expect(INTEGER)?;
    for _ in 0..4 {
        body.sequence()?;
    }
    public_key(&mut body.sequence()?)
}

fn public_key<'a>(spki: &mut Reader<'a>) -> Option<Key<'a>> {
    let (algorithm, curve) = spki.algorithm()?;
    let bits = spki.bit_string()?;
    if algorithm == RSA {
        let mut key = Reader(bits).sequence()?;
        let (modulus, exponent) = (key.integer()?, key.integer()?);
        return Some(Key { algorithm, curve: None, bits: Some(modulus), exponent: Some(exponent) });
    }
    Some(Key { algorithm, curve, bits: Some(bits), exponent: None })
}

fn pkcs8_private(der: &[u8]) -> Option<Key<'_>> {
    let mut key = Reader(der).sequence()?;
    key.expect(INTEGER)?;
    let (algorithm, curve) = key.algorithm()?;
    let inner = key.expect(OCTET_STRING)?;
    match algorithm {
        RSA => rsa_private(inner),
        EC => ec_private(inner, curve),
        _ => Some(Key { algorithm, curve: None, bits: None, exponent: None }),
    }
}

fn rsa_private(der: &[u8]) -> Option<Key<'_>> {
    let mut key = Reader(der).sequence()?;
    key.expect(INTEGER)?;
    let (modulus, exponent) = (key.integer()?, key.integer()?);
    Some(Key { algorithm: RSA, curve: None, bits: Some(modulus), exponent: Some(exponent) })
}

fn ec_private<'a>(der: &'a [u8], curve: Option<&'a [u8]>) -> Option<Key<'a>> {
    let mut key = Reader(der).sequence()?;
    key.expect(INTEGER)?;
    key.expect(OCTET_STRING)?;
    let own = key.skip(0xa0).and_then(|parameters| Reader(parameters).expect(OBJECT_IDENTIFIER));
    let bits = key.skip(0xa1).and_then(|public| Reader(public).bit_string());
    Some(Key { algorithm: EC, curve: curve.or(own), bits, exponent: None })
}

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;

/// Reads DER values one after the other.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let [tag, length, rest @ ..] = self.0 else { return None };
        let (length, rest) = if *length < 0x80 {
            (usize::from(*length), rest)
        } else {
            let digits = usize::from(*length & 0x7f);
            if digits == 0 || digits > 4 {
                return None;
            }
            let (digits, rest) = rest.split_at_checked(digits)?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, value))
    }

    fn expect(&mut self, wanted: u8) -> Option<&'a [u8]> {
        self.next().and_then(|(tag, value)| (tag == wanted).then_some(value))
    }

    /// The next value if it has a tag; otherwise it stays for the next call.
    fn skip(&mut self, wanted: u8) -> Option<&'a [u8]> {
        (self.0.first() == Some(&wanted)).then(|| self.next()).flatten().map(|(_, value)| value)
    }

    fn sequence(&mut self) -> Option<Reader<'a>> {
        self.expect(SEQUENCE).map(Reader)
    }

    /// An integer without leading zeros.
    fn integer(&mut self) -> Option<&'a [u8]> {
        let digits = self.expect(INTEGER)?;
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        digits.get(zeros..)
    }

    /// The bytes of a bit string that has no partial byte.
    fn bit_string(&mut self) -> Option<&'a [u8]> {
        self.expect(BIT_STRING)?.strip_prefix(&[0])
    }

    /// The object identifier of an algorithm, and that of its parameters if they are one.
    fn algorithm(&mut self) -> Option<(&'a [u8], Option<&'a [u8]>)> {
        let mut algorithm = self.sequence()?;
        let identifier = algorithm.expect(OBJECT_IDENTIFIER)?;
        Some((identifier, algorithm.skip(OBJECT_IDENTIFIER)))
    }
}
