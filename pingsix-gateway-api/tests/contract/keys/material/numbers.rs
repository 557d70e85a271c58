//! Keys whose numbers do not belong together.

use std::slice::from_ref;

use super::super::der::{BITS, INTEGER, OCTETS, SEQUENCE, decode, encode, parts, sequence, value};
use super::{Base, Odd};

/// Keys of a curve that contradict themselves.
pub(super) fn elliptic(one: &Base, other: &Base) -> Vec<Odd> {
    let fields = |key: &str| parts(&parts(&decode(key))[0].1);
    let inner = |key: &str| parts(&parts(&fields(key)[2].1)[0].1);
    let (algorithm, own, others) = (fields(&one.key)[1].1.clone(), inner(&one.key), inner(&other.key));
    let scalar = own[1].1.clone();
    let public = |fields: &[(u8, Vec<u8>)]| fields.iter().find(|(tag, _)| *tag == 0xa1).unwrap().1.clone();
    let point = parts(&public(&own))[0].1[1..].to_vec();
    let mut all = Vec::new();
    let mut add = |what: &str, is_sound: bool, scalar: &[u8], more: &[Vec<u8>]| {
        let inner = [&[value(INTEGER, &[1]), value(OCTETS, scalar)], more].concat();
        let sec1 = sequence(&inner);
        let pkcs8 = sequence(&[value(INTEGER, &[0]), value(SEQUENCE, &algorithm), value(OCTETS, &sec1)]);
        let key = encode("PRIVATE KEY", &pkcs8, 64);
        all.push(Odd { is_sound, ..Odd::new(format!("P-256 {what}"), &one.cert, &key) });
        let key = encode("EC PRIVATE KEY", &sec1, 64);
        all.push(Odd::new(format!("P-256 {what}, in SEC 1"), &one.cert, &key));
    };
    let named = value(0xa0, &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7]);
    let of_p384 = value(0xa0, &[6, 5, 0x2b, 0x81, 4, 0, 0x22]);
    let bits = |bytes: &[u8]| value(0xa1, &value(BITS, &[&[0], bytes].concat()));
    let compressed = [&[2 + (point[64] & 1)][..], &point[1..33]].concat();
    let wrong_sign = [&[3 - (point[64] & 1)][..], &point[1..33]].concat();
    let hybrid = [&[6 + (point[64] & 1)][..], &point[1..]].concat();
    let own_public = value(0xa1, &public(&own));
    let order = [
        0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa,
        0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
    ];
    add("without a public key", true, &scalar, &[]);
    add("with the name of its curve", true, &scalar, from_ref(&named));
    add("with both", true, &scalar, &[named.clone(), own_public.clone()]);
    add("with another curve", false, &scalar, &[of_p384, own_public.clone()]);
    add("with another's public key", false, &scalar, &[value(0xa1, &public(&others))]);
    add("with another's scalar", false, &others[1].1, from_ref(&own_public));
    add("of another without a public key", false, &others[1].1, from_ref(&named));
    add("with scalar 0", false, &[0; 32], from_ref(&own_public));
    add("with the order for a scalar", false, &order, from_ref(&own_public));
    add("with no scalar", false, &[], from_ref(&own_public));
    add("with a scalar of a byte", false, &[5], from_ref(&own_public));
    add("with a scalar with a zero before", false, &[&[0], &scalar[..]].concat(), from_ref(&own_public));
    add("with a compressed point", true, &scalar, &[bits(&compressed)]);
    add("with a point of the other sign", false, &scalar, &[bits(&wrong_sign)]);
    add("with a hybrid point", false, &scalar, &[bits(&hybrid)]);
    add("with no point", false, &scalar, &[bits(&[])]);
    add("with the point at infinity", false, &scalar, &[bits(&[0])]);
    add("with half a point", false, &scalar, &[bits(&point[..40])]);
    add("with a point off the curve", false, &scalar, &[bits(&[&point[..64], &[point[64] ^ 1]].concat())]);
    add("with a null behind", false, &scalar, &[own_public, vec![5, 0]]);
    all
}

/// Keys of Ed25519 that are not quite.
pub(super) fn edwards(one: &Base, other: &Base) -> Vec<Odd> {
    let fields = |key: &str| parts(&parts(&decode(key))[0].1);
    let seed_of = |key: &str| parts(&fields(key)[2].1)[0].1.clone();
    let (own, others) = (seed_of(&one.key), seed_of(&other.key));
    let public = parts(&parts(&decode(&one.cert))[0].1)[0].1.clone();
    let info = parts(&public).into_iter().filter(|(tag, _)| *tag == SEQUENCE).nth(4).unwrap().1;
    let public = parts(&info)[1].1.clone();
    let algorithm = [6, 3, 0x2b, 0x65, 0x70];
    let mut all = Vec::new();
    let mut add =
        |what: &str, is_sound: bool, version: u8, algorithm: &[u8], inner: &[u8], more: &[Vec<u8>]| {
            let fixed = [value(INTEGER, &[version]), value(SEQUENCE, algorithm), value(OCTETS, inner)];
            let key = encode("PRIVATE KEY", &sequence(&[&fixed[..], more].concat()), 64);
            all.push(Odd { is_sound, ..Odd::new(format!("Ed25519 {what}"), &one.cert, &key) });
        };
    let inner = value(OCTETS, &own);
    add("alone", true, 0, &algorithm, &inner, &[]);
    add("of another", false, 0, &algorithm, &value(OCTETS, &others), &[]);
    add("with its public key", true, 1, &algorithm, &inner, &[value(0x81, &public)]);
    add("with its public key in version 0", false, 0, &algorithm, &inner, &[value(0x81, &public)]);
    add(
        "with another public key",
        false,
        1,
        &algorithm,
        &inner,
        &[value(0x81, &[&[0][..], &others].concat())],
    );
    add("with null for parameters", false, 0, &[&algorithm[..], &[5, 0]].concat(), &inner, &[]);
    add("of 31 bytes", false, 0, &algorithm, &value(OCTETS, &own[1..]), &[]);
    add("of 33 bytes", false, 0, &algorithm, &value(OCTETS, &[&own[..], &[0]].concat()), &[]);
    add("with both halves", false, 0, &algorithm, &value(OCTETS, &[&own[..], &public[1..]].concat()), &[]);
    add("without its inner string", false, 0, &algorithm, &own, &[]);
    add("said to be X25519", false, 0, &[6, 3, 0x2b, 0x65, 0x6e], &inner, &[]);
    add("said to be Ed448", false, 0, &[6, 3, 0x2b, 0x65, 0x71], &inner, &[]);
    all
}

/// RSA keys whose numbers do not belong together.
pub(super) fn rsa(one: &Base, other: &str) -> Vec<Odd> {
    let numbers = |key: &str| -> Vec<Vec<u8>> {
        let inner = parts(&parts(&decode(key))[0].1)[2].1.clone();
        parts(&parts(&inner)[0].1).into_iter().map(|(_, content)| content).collect()
    };
    let (own, others) = (numbers(&one.key), numbers(other));
    let mut all = Vec::new();
    let mut add = |what: &str, is_sound: bool, numbers: &[Vec<u8>]| {
        let pkcs1 = sequence(&numbers.iter().map(|number| value(INTEGER, number)).collect::<Vec<_>>());
        let key = encode("RSA PRIVATE KEY", &pkcs1, 64);
        all.push(Odd { is_sound, ..Odd::new(format!("RSA {what}"), &one.cert, &key) });
        let algorithm = [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
        let pkcs8 = sequence(&[value(INTEGER, &[0]), value(SEQUENCE, &algorithm), value(OCTETS, &pkcs1)]);
        let key = encode("PRIVATE KEY", &pkcs8, 64);
        all.push(Odd { is_sound, ..Odd::new(format!("RSA {what}, in PKCS#8"), &one.cert, &key) });
    };
    add("as it is", true, &own);
    add("of another", false, &others);
    let name = ["version", "n", "e", "d", "p", "q", "d mod p-1", "d mod q-1", "1/q"];
    for (index, name) in name.iter().enumerate() {
        for (what, number) in [
            ("of another", others[index].clone()),
            ("0", vec![0]),
            ("1", vec![1]),
            ("negative", vec![0xff]),
            ("empty", Vec::new()),
            ("off by two", {
                let mut number = own[index].clone();
                *number.last_mut().unwrap() ^= 2;
                number
            }),
            ("with zeros before", [&[0, 0][..], &own[index]].concat()),
            ("of 5,000 bytes", vec![0x11; 5_000]),
        ] {
            if number != own[index] {
                let mut numbers = own.clone();
                numbers[index] = number;
                add(&format!("with {name} {what}"), false, &numbers);
            }
        }
    }
    let mut mixed = others.clone();
    mixed[1..3].clone_from_slice(&own[1..3]);
    add("with n and e alone its own", false, &mixed);
    let mut swapped = own.clone();
    swapped.swap(4, 5);
    add("with its primes swapped", false, &swapped);
    swapped.swap(6, 7);
    add("with its primes and exponents swapped", false, &swapped);
    add("without its last number", false, &own[..8]);
    add("with a number more", false, &[&own[..], &[vec![1]]].concat());
    add("of n and e alone", false, &own[..3]);
    all
}
