//! Public keys, and private keys with the public keys that derive from them.

use der::asn1::{AnyRef, BitStringRef, ObjectIdentifier, OctetStringRef, UintRef};
use der::{Decode as _, Encode as _, Sequence};
use p256::NistP256;
use p256::elliptic_curve::sec1::{FromSec1Point, ModulusSize, ToSec1Point};
use p256::elliptic_curve::{AffinePoint, CurveArithmetic, FieldBytesSize, PublicKey as Point, SecretKey};
use p384::NistP384;
use p521::NistP521;
use sha2::{Digest as _, Sha512};
use x509_cert::attr::Attributes;
use x509_cert::spki::{AlgorithmIdentifier, SubjectPublicKeyInfoRef};

use super::{KeyError, rsa};

pub(super) const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
pub(super) const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
const P521: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.35");

/// The names of unsupported algorithms and curves. PingSIX accepts keys of most of them, and clients do not.
const NAMES: [(ObjectIdentifier, &str); 14] = [
    (ObjectIdentifier::new_unwrap("1.2.840.10040.4.1"), "a DSA key"),
    (ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.10"), "a key for RSA-PSS alone"),
    (ObjectIdentifier::new_unwrap("1.3.101.110"), "an X25519 key"),
    (ObjectIdentifier::new_unwrap("1.3.101.111"), "an X448 key"),
    (ObjectIdentifier::new_unwrap("1.3.101.113"), "an Ed448 key"),
    (ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.1"), "a key of curve P-192"),
    (ObjectIdentifier::new_unwrap("1.3.132.0.33"), "a key of curve P-224"),
    (ObjectIdentifier::new_unwrap("1.3.132.0.10"), "a key of curve secp256k1"),
    (ObjectIdentifier::new_unwrap("1.3.36.3.3.2.8.1.1.7"), "a key of curve brainpoolP256r1"),
    (ObjectIdentifier::new_unwrap("1.3.36.3.3.2.8.1.1.11"), "a key of curve brainpoolP384r1"),
    (ObjectIdentifier::new_unwrap("1.3.36.3.3.2.8.1.1.13"), "a key of curve brainpoolP512r1"),
    (ObjectIdentifier::new_unwrap("1.2.156.10197.1.301"), "an SM2 key"),
    (ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.3.17"), "an ML-DSA-44 key"),
    (ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.3.18"), "an ML-DSA-65 key"),
];

fn unsupported(identifier: ObjectIdentifier, unknown: &'static str) -> KeyError {
    let name = NAMES.iter().find(|(known, _)| *known == identifier).map(|(_, name)| *name);
    KeyError::Unsupported(name.unwrap_or(unknown))
}

/// A public key in its canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PublicKey {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// The uncompressed point of SEC 1.
    Elliptic {
        curve: ObjectIdentifier,
        point: Vec<u8>,
    },
    Ed25519([u8; 32]),
}

impl PublicKey {
    pub(super) const fn algorithm(&self) -> ObjectIdentifier {
        match self {
            Self::Rsa { .. } => RSA,
            Self::Elliptic { .. } => EC,
            Self::Ed25519(_) => ED25519,
        }
    }

    /// The key of a certificate.
    pub(super) fn read(info: &SubjectPublicKeyInfoRef<'_>) -> Result<Self, KeyError> {
        let bits = info.subject_public_key.as_bytes().ok_or(KeyError::Malformed)?;
        match info.algorithm.oid {
            RSA => {
                expect_null(info.algorithm.parameters)?;
                let RsaPublicKey { modulus, exponent } =
                    RsaPublicKey::from_der(bits).map_err(|_| KeyError::Malformed)?;
                rsa::check_size(modulus.as_bytes(), exponent.as_bytes())?;
                Ok(Self::Rsa { modulus: modulus.as_bytes().into(), exponent: exponent.as_bytes().into() })
            }
            EC => {
                let curve = curve_of(info.algorithm.parameters)?;
                let point = match curve {
                    P256 => point::<NistP256>(bits),
                    P384 => point::<NistP384>(bits),
                    P521 => point::<NistP521>(bits),
                    other => return Err(unsupported(other, "a key of a curve that is not known")),
                }?;
                Ok(Self::Elliptic { curve, point })
            }
            ED25519 => {
                expect_none(info.algorithm.parameters)?;
                bits.try_into().map(Self::Ed25519).map_err(|_| KeyError::Malformed)
            }
            other => Err(unsupported(other, "a key of an algorithm that is not known")),
        }
    }
}

/// `RSAPublicKey` (RFC 8017, appendix A.1.1).
#[derive(Sequence)]
struct RsaPublicKey<'a> {
    modulus: UintRef<'a>,
    exponent: UintRef<'a>,
}

/// Whether the DER is that of a bare RSA public key.
pub(super) fn is_bare_rsa_key(der: &[u8]) -> bool {
    RsaPublicKey::from_der(der).is_ok()
}

/// A checked private key.
#[derive(PartialEq, Eq)]
pub(super) struct PrivateKey {
    pub(super) public: PublicKey,
    /// `PrivateKeyInfo` with nothing but the key.
    pub(super) pkcs8: Vec<u8>,
    /// Whether *ring*, with which the sidecar terminates TLS, signs with the key.
    pub(super) is_for_ring: bool,
}

/// `OneAsymmetricKey` (RFC 5958, section 2).
#[derive(Sequence)]
struct PrivateKeyInfo<'a> {
    version: u8,
    algorithm: AlgorithmIdentifier<AnyRef<'a>>,
    key: &'a OctetStringRef,
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT", optional = "true")]
    attributes: Option<Attributes>,
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", optional = "true")]
    public: Option<BitStringRef<'a>>,
}

/// `ECPrivateKey` (RFC 5915, section 3).
#[derive(Sequence)]
struct EcPrivateKey<'a> {
    version: u8,
    key: &'a OctetStringRef,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    parameters: Option<AnyRef<'a>>,
    #[asn1(context_specific = "1", tag_mode = "EXPLICIT", optional = "true")]
    public: Option<BitStringRef<'a>>,
}

impl PrivateKey {
    /// A key of a section `PRIVATE KEY`.
    pub(super) fn of_pkcs8(der: &[u8]) -> Result<Self, KeyError> {
        let info = PrivateKeyInfo::from_der(der).map_err(|_| KeyError::Malformed)?;
        // The second version has a public key.
        if info.version != u8::from(info.public.is_some()) {
            return Err(KeyError::Malformed);
        }
        let AlgorithmIdentifier { oid, parameters } = info.algorithm;
        let key = match oid {
            RSA => expect_null(parameters).and_then(|()| Self::of_pkcs1(info.key.as_bytes())),
            EC => Self::elliptic(info.key.as_bytes(), Some(curve_of(parameters)?)),
            ED25519 => expect_none(parameters).and_then(|()| Self::ed25519(info.key.as_bytes())),
            other => Err(unsupported(other, "a key of an algorithm that is not known")),
        }?;
        match info.public.map(|public| public.as_bytes()) {
            None => Ok(key),
            Some(Some(public)) if key.public.is_encoded_as(public) => Ok(key),
            Some(_) => Err(KeyError::Malformed),
        }
    }

    /// A key of a section `RSA PRIVATE KEY`.
    pub(super) fn of_pkcs1(der: &[u8]) -> Result<Self, KeyError> {
        let key = rsa::RsaPrivateKey::from_der(der).map_err(|_| KeyError::Malformed)?;
        let (modulus, exponent) = (key.modulus.as_bytes(), key.public_exponent.as_bytes());
        // The check of the size comes first, because the size bounds the cost of the rest.
        rsa::check_size(modulus, exponent)?;
        if !key.is_consistent() {
            return Err(KeyError::Malformed);
        }
        Ok(Self {
            public: PublicKey::Rsa { modulus: modulus.into(), exponent: exponent.into() },
            pkcs8: pkcs8(RSA, Some(AnyRef::NULL), der)?,
            is_for_ring: key.is_for_ring(),
        })
    }

    /// A key of a section `EC PRIVATE KEY`.
    pub(super) fn of_sec1(der: &[u8]) -> Result<Self, KeyError> {
        Self::elliptic(der, None)
    }

    fn elliptic(der: &[u8], curve: Option<ObjectIdentifier>) -> Result<Self, KeyError> {
        let key = EcPrivateKey::from_der(der).map_err(|_| KeyError::Malformed)?;
        let own = key.parameters.map(|parameters| curve_of(Some(parameters))).transpose()?;
        let curve = match (curve, own) {
            (Some(curve), Some(own)) if curve != own => return Err(KeyError::Malformed),
            (curve, own) => curve.or(own).ok_or(KeyError::Malformed)?,
        };
        match curve {
            P256 => Self::on_curve::<NistP256>(curve, &key),
            P384 => Self::on_curve::<NistP384>(curve, &key),
            P521 => Self::on_curve::<NistP521>(curve, &key),
            other => Err(unsupported(other, "a key of a curve that is not known")),
        }
    }

    fn on_curve<C>(curve: ObjectIdentifier, key: &EcPrivateKey<'_>) -> Result<Self, KeyError>
    where
        C: CurveArithmetic,
        AffinePoint<C>: FromSec1Point<C> + ToSec1Point<C>,
        FieldBytesSize<C>: ModulusSize,
    {
        if key.version != 1 {
            return Err(KeyError::Malformed);
        }
        let secret = SecretKey::<C>::from_slice(key.key.as_bytes()).map_err(|_| KeyError::Malformed)?;
        let encoded = secret.public_key().to_sec1_point(false).as_bytes().to_vec();
        let stated = key.public.map(|bits| bits.as_bytes().ok_or(KeyError::Malformed)).transpose()?;
        if let Some(stated) = stated
            && point::<C>(stated)? != encoded
        {
            return Err(KeyError::Malformed);
        }
        let scalar = secret.to_bytes();
        let inner = EcPrivateKey {
            version: 1,
            key: OctetStringRef::new(&scalar).map_err(|_| KeyError::Malformed)?,
            parameters: None,
            public: Some(BitStringRef::from_bytes(&encoded).map_err(|_| KeyError::Malformed)?),
        };
        let inner = inner.to_der().map_err(|_| KeyError::Malformed)?;
        let pkcs8 = pkcs8(EC, Some(AnyRef::from(&curve)), &inner)?;
        Ok(Self { public: PublicKey::Elliptic { curve, point: encoded }, pkcs8, is_for_ring: curve != P521 })
    }

    /// The public key of a seed (RFC 8032, section 5.1.5).
    fn ed25519(der: &[u8]) -> Result<Self, KeyError> {
        let seed = <&OctetStringRef>::from_der(der).map_err(|_| KeyError::Malformed)?.as_bytes();
        if seed.len() != 32 {
            return Err(KeyError::Malformed);
        }
        let mut scalar = [0; 32];
        scalar.copy_from_slice(&Sha512::digest(seed)[..32]);
        let public = curve25519_dalek::EdwardsPoint::mul_base_clamped(scalar).compress().to_bytes();
        Ok(Self { public: PublicKey::Ed25519(public), pkcs8: pkcs8(ED25519, None, der)?, is_for_ring: true })
    }
}

impl PublicKey {
    fn is_encoded_as(&self, bits: &[u8]) -> bool {
        match self {
            Self::Rsa { modulus, exponent } => RsaPublicKey::from_der(bits)
                .is_ok_and(|key| key.modulus.as_bytes() == modulus && key.exponent.as_bytes() == exponent),
            Self::Elliptic { point, .. } => point == bits,
            Self::Ed25519(public) => public == bits,
        }
    }
}

/// The uncompressed form of a point.
fn point<C>(bits: &[u8]) -> Result<Vec<u8>, KeyError>
where
    C: CurveArithmetic,
    AffinePoint<C>: FromSec1Point<C> + ToSec1Point<C>,
    FieldBytesSize<C>: ModulusSize,
{
    let point = Point::<C>::from_sec1_bytes(bits).map_err(|_| KeyError::Malformed)?;
    Ok(point.to_sec1_point(false).as_bytes().to_vec())
}

/// The named curve of parameters. Parameters with an explicit curve are refused.
fn curve_of(parameters: Option<AnyRef<'_>>) -> Result<ObjectIdentifier, KeyError> {
    let parameters = parameters.ok_or(KeyError::Malformed)?;
    parameters.decode_as().map_err(|_| KeyError::Unsupported("a key of a curve without a name"))
}

fn expect_null(parameters: Option<AnyRef<'_>>) -> Result<(), KeyError> {
    if parameters.is_none_or(|parameters| parameters == AnyRef::NULL) {
        Ok(())
    } else {
        Err(KeyError::Malformed)
    }
}

fn expect_none(parameters: Option<AnyRef<'_>>) -> Result<(), KeyError> {
    if parameters.is_none() { Ok(()) } else { Err(KeyError::Malformed) }
}

fn pkcs8(oid: ObjectIdentifier, parameters: Option<AnyRef<'_>>, key: &[u8]) -> Result<Vec<u8>, KeyError> {
    let info = PrivateKeyInfo {
        version: 0,
        algorithm: AlgorithmIdentifier { oid, parameters },
        key: OctetStringRef::new(key).map_err(|_| KeyError::Malformed)?,
        attributes: None,
        public: None,
    };
    info.to_der().map_err(|_| KeyError::Malformed)
}
