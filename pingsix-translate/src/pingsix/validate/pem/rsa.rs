//! RSA keys and the consistency of their numbers.

use crypto_bigint::{BoxedUint, NonZero};
use der::Sequence;
use der::asn1::UintRef;

use super::KeyError;

/// The smallest size that OpenSSL accepts at PingSIX's security level. Some keys of 2048 bits lack a few leading bits.
const MIN_KEY_BITS: usize = 2040;

/// The largest size that clients with Go or rustls verify.
const MAX_KEY_BITS: usize = 8192;

/// Checks the size of a public key. The numbers have no leading zeros.
pub(super) fn check_size(modulus: &[u8], exponent: &[u8]) -> Result<(), KeyError> {
    let bits = bits(modulus);
    if bits < MIN_KEY_BITS {
        return Err(KeyError::Unsupported("an RSA key of fewer than 2048 bits"));
    }
    if bits > MAX_KEY_BITS {
        return Err(KeyError::Unsupported("an RSA key of more than 8192 bits"));
    }
    let is_odd = |number: &[u8]| number.last().is_some_and(|digit| digit & 1 == 1);
    if !is_odd(modulus) || !is_odd(exponent) || exponent == [1] {
        return Err(KeyError::Malformed);
    }
    if exponent.len() > 4 || exponent.first().is_some_and(|digit| exponent.len() == 4 && *digit >= 0x80) {
        return Err(KeyError::Unsupported("an RSA key with a public exponent of more than 31 bits"));
    }
    Ok(())
}

fn bits(number: &[u8]) -> usize {
    let leading = number.first().map_or(0, |digit| digit.leading_zeros() as usize);
    number.len() * 8 - leading
}

/// `RSAPrivateKey` of two primes (RFC 8017, appendix A.1.2).
#[derive(Sequence)]
pub(super) struct RsaPrivateKey<'a> {
    version: u8,
    pub(super) modulus: UintRef<'a>,
    pub(super) public_exponent: UintRef<'a>,
    private_exponent: UintRef<'a>,
    prime1: UintRef<'a>,
    prime2: UintRef<'a>,
    exponent1: UintRef<'a>,
    exponent2: UintRef<'a>,
    coefficient: UintRef<'a>,
}

impl RsaPrivateKey<'_> {
    /// Whether the public key verifies the signatures of the key. The check assumes that the primes are prime.
    pub(super) fn is_consistent(&self) -> bool {
        let length = self.modulus.as_bytes().len();
        let secrets = [
            self.private_exponent,
            self.prime1,
            self.prime2,
            self.exponent1,
            self.exponent2,
            self.coefficient,
        ];
        if self.version != 0 || secrets.iter().any(|number| number.as_bytes().len() > length) {
            return false;
        }
        // Products have twice the bits.
        let precision = u32::try_from(length * 16).unwrap_or(u32::MAX);
        let number = |number: UintRef<'_>| BoxedUint::from_be_slice_truncated(number.as_bytes(), precision);
        let one = BoxedUint::one_with_precision(precision);
        let less_one = |number: &BoxedUint| NonZero::new(number.wrapping_sub(&one)).into_option();
        let (p, q) = (number(self.prime1), number(self.prime2));
        let (e, d) = (number(self.public_exponent), number(self.private_exponent));
        let Some(of_p) = NonZero::new(p.clone()).into_option() else { return false };
        let (Some(below_p), Some(below_q)) = (less_one(&p), less_one(&q)) else { return false };
        let is_one = |product: BoxedUint, modulus: &NonZero<BoxedUint>| product.rem(modulus) == one;
        let product = e.wrapping_mul(&d);
        p.wrapping_mul(&q) == number(self.modulus)
            && is_one(product.clone(), &below_p)
            && is_one(product, &below_q)
            && d.rem(&below_p) == number(self.exponent1)
            && d.rem(&below_q) == number(self.exponent2)
            && is_one(number(self.coefficient).wrapping_mul(&q), &of_p)
    }

    /// Whether *ring* signs with the key (`ring::rsa::KeyPair::from_components`): 2048, 3072 or 4096 bits, primes of half
    /// the size each, and an exponent of at least 65537.
    pub(super) fn is_for_ring(&self) -> bool {
        let half = bits(self.modulus.as_bytes()).div_ceil(2);
        let exponent =
            self.public_exponent.as_bytes().iter().fold(0, |e: u64, digit| e << 8 | u64::from(*digit));
        [1024, 1536, 2048].contains(&half)
            && [self.prime1, self.prime2].iter().all(|prime| bits(prime.as_bytes()) == half)
            && exponent >= 65_537
    }
}
