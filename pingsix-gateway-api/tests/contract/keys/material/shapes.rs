//! Certificates and keys with parts more, less, twice and changed.

use super::super::der::{BITS, INTEGER, OCTETS, SEQUENCE, decode, encode, parts, sequence, value};
use super::{Base, Odd};
use crate::rng::SeededRng;
use crate::run::seed;

/// A certificate and a key with parts more, less and twice.
#[expect(clippy::too_many_lines, reason = "it is a list of cases")]
pub(super) fn shapes(Base { name, cert, key }: &Base) -> Vec<Odd> {
    let mut all = Vec::new();
    let (of_cert, of_key) = (decode(cert), decode(key));
    let mut add_key = |what: &str, der: &[u8]| {
        all.push(Odd::new(format!("{name}, key {what}"), cert, &encode("PRIVATE KEY", der, 64)));
    };
    add_key("with bytes behind", &[&of_key[..], &[0, 0]].concat());
    add_key("twice in one section", &[&of_key[..], &of_key[..]].concat());
    add_key("without its last byte", &of_key[..of_key.len() - 1]);
    add_key("of nothing", &[]);
    let content = parts(&of_key)[0].1.clone();
    let fields = parts(&content);
    let with = |more: &[u8]| value(SEQUENCE, &[&content[..], more].concat());
    let attribute = sequence(&[vec![0x06, 3, 0x55, 0x1d, 0x0f], value(0x31, &value(BITS, &[4, 0x10]))]);
    if !fields.iter().any(|(tag, _)| *tag >= 0x80) {
        add_key("with an attribute", &with(&value(0xa0, &attribute)));
        add_key("with no attributes", &with(&value(0xa0, &[])));
        add_key("with attributes that are none", &with(&value(0xa0, &[1, 2, 3, 4, 5])));
        add_key("with attributes of another form", &with(&value(0xa0, &value(INTEGER, &[1]))));
        add_key("with a field that nobody knows", &with(&value(0xa5, &value(INTEGER, &[1]))));
        add_key("with a public key in version 0", &with(&value(0x81, &[0, 1, 2, 3])));
        add_key("with a null behind", &with(&[5, 0]));
    }
    let again = |fields: &[(u8, Vec<u8>)]| {
        sequence(&fields.iter().map(|(tag, content)| value(*tag, content)).collect::<Vec<_>>())
    };
    for version in [1, 2, 0x7f, 0xff] {
        let mut fields = fields.clone();
        fields[0].1 = vec![version];
        add_key(&format!("of version {version}"), &again(&fields));
    }
    let mut long = fields.clone();
    long[0].1 = vec![0, 0];
    add_key("with a version of two bytes", &again(&long));
    let mut bare = fields.clone();
    bare[1].1 = value(parts(&fields[1].1)[0].0, &parts(&fields[1].1)[0].1);
    add_key("without parameters", &again(&bare));
    let mut null = bare.clone();
    null[1].1.extend([5, 0]);
    add_key("with null for parameters", &again(&null));
    let mut twice = fields.clone();
    twice[1].1.extend([5, 0]);
    add_key("with more parameters", &again(&twice));
    let mut inner = fields;
    inner[2].1.extend([0, 0]);
    add_key("with bytes behind its inner part", &again(&inner));
    // A length that is indefinite, and one that is longer than it has to be.
    add_key("of indefinite length", &[&[SEQUENCE, 0x80][..], &content[..], &[0, 0]].concat());
    add_key(
        "with a long length",
        &[&[SEQUENCE, 0x83, 0][..], &u16::try_from(content.len()).unwrap().to_be_bytes(), &content].concat(),
    );

    let mut add_cert = |what: &str, der: &[u8]| {
        all.push(Odd::new(format!("{name}, certificate {what}"), &encode("CERTIFICATE", der, 64), key));
    };
    add_cert("with bytes behind", &[&of_cert[..], &[0, 0]].concat());
    add_cert("without its last byte", &of_cert[..of_cert.len() - 1]);
    let content = parts(&of_cert)[0].1.clone();
    let fields = parts(&content);
    add_cert("with a null behind", &value(SEQUENCE, &[&content[..], &[5, 0]].concat()));
    add_cert("without a signature", &again(&fields[..2]));
    add_cert("of indefinite length", &[&[SEQUENCE, 0x80][..], &content[..], &[0, 0]].concat());
    let body = parts(&fields[0].1);
    let text = |tag: u8, bytes: &[u8]| {
        let entry = sequence(&[vec![0x06, 3, 0x55, 4, 3], value(tag, bytes)]);
        value(0x31, &entry)
    };
    // Of version 3, so that the serial number is second and the subject sixth.
    for (what, at, content) in [
        ("whose subject is no UTF-8", 5, text(0x0c, &[0xff, 0xfe])),
        ("whose subject is half a surrogate", 5, text(0x0c, &[0xed, 0xa0, 0x80])),
        ("whose subject has five bytes in a letter", 5, text(0x0c, &[0xf8, 0x88, 0x80, 0x80, 0x80])),
        ("whose subject is printable and is not", 5, text(0x13, &[0xff, 1, 0])),
        ("whose subject is IA5 and is not", 5, text(0x16, &[0xff, 1])),
        ("whose subject is a BMPString of odd length", 5, text(0x1e, &[0, 0x61, 0])),
        ("whose subject is a BMPString", 5, text(0x1e, &[0, 0x61])),
        ("whose subject is a BMPString with a surrogate", 5, text(0x1e, &[0xd8, 0])),
        ("whose subject is a UniversalString", 5, text(0x1c, &[0, 0, 0, 0x61])),
        ("whose subject is a UniversalString beyond Unicode", 5, text(0x1c, &[1, 0, 0, 0x61])),
        ("whose subject is a TeletexString", 5, text(0x14, &[0x61, 0xff])),
        ("whose subject is a VisibleString", 5, text(0x1a, b"a")),
        ("whose subject is a NumericString with letters", 5, text(0x12, b"a")),
        ("whose subject is a number", 5, text(INTEGER, &[1])),
        ("whose subject is octets", 5, text(OCTETS, &[1])),
        ("whose subject is a boolean", 5, text(1, &[0xff])),
        ("whose subject is a time", 5, text(0x17, b"200101000000Z")),
        ("whose subject is empty", 5, Vec::new()),
        ("whose subject has an empty part", 5, value(0x31, &[])),
        (
            "whose subject has an identifier with zeros",
            5,
            value(0x31, &sequence(&[vec![6, 4, 0x55, 0x80, 4, 3], value(0x0c, b"a")])),
        ),
        ("whose subject is empty text", 5, text(0x0c, &[])),
        ("with a serial number of nothing", 1, Vec::new()),
        ("with a negative serial number", 1, vec![0xff]),
        ("with a serial number of 40 bytes", 1, vec![0x55; 40]),
        ("with a serial number with zeros", 1, vec![0, 0, 1]),
        ("with a serial number 0", 1, vec![0]),
        ("with times of nothing", 4, Vec::new()),
        ("with times that are none", 4, [value(0x17, b"never"), value(0x17, b"ever")].concat()),
        ("with times of texts", 4, [value(0x0c, b"200101000000Z"), value(0x0c, b"300101000000Z")].concat()),
        (
            "with general times",
            4,
            [value(0x18, b"20200101000000Z"), value(0x18, b"20300101000000Z")].concat(),
        ),
        (
            "with a time without seconds",
            4,
            [value(0x17, b"2001010000Z"), value(0x17, b"3001010000Z")].concat(),
        ),
        (
            "with a time of a zone",
            4,
            [value(0x17, b"200101000000+0100"), value(0x17, b"300101000000+0100")].concat(),
        ),
        ("with a signature algorithm that nobody knows", 2, vec![6, 3, 0x2a, 3, 4]),
        ("with a signature algorithm of nothing", 2, Vec::new()),
        (
            "with parameters that are a bad number",
            2,
            [&[6, 3, 0x2a, 3, 4][..], &value(INTEGER, &[0, 0])].concat(),
        ),
        ("with parameters that are bad bits", 2, [&[6, 3, 0x2a, 3, 4][..], &value(BITS, &[9])].concat()),
        ("with parameters that are a bad identifier", 2, vec![6, 3, 0x2a, 3, 4, 6, 2, 0x80, 1]),
        ("with parameters that are a long null", 2, vec![6, 3, 0x2a, 3, 4, 5, 1, 0]),
        ("with parameters that are a broken sequence", 2, vec![6, 3, 0x2a, 3, 4, 0x30, 3, 2, 5, 0]),
        ("with an identifier of nothing", 2, vec![6, 0]),
        ("with an identifier that does not end", 2, vec![6, 2, 0x2a, 0x83]),
        ("with an identifier with zeros", 2, vec![6, 3, 0x2a, 0x80, 1]),
        ("with version 4", 0, value(INTEGER, &[3])),
        ("with version 1 and extensions", 0, value(INTEGER, &[0])),
        ("with version 200", 0, value(INTEGER, &[0, 200])),
    ] {
        let mut body = body.clone();
        body[at].1 = content;
        let mut fields = fields.clone();
        fields[0].1 = body.iter().flat_map(|(tag, content)| value(*tag, content)).collect();
        add_cert(what, &again(&fields));
    }
    for (what, extensions) in [
        ("without extensions in their place", Vec::new()),
        ("with extensions that are none", value(SEQUENCE, &value(INTEGER, &[1]))),
        ("with no extension", value(SEQUENCE, &[])),
        (
            "with an extension that nobody knows",
            sequence(&[sequence(&[vec![6, 3, 0x2a, 3, 4], value(OCTETS, &[])])]),
        ),
        (
            "with an extension said to be critical by 1",
            sequence(&[sequence(&[vec![6, 3, 0x2a, 3, 4], vec![1, 1, 1], value(OCTETS, &[])])]),
        ),
        (
            "with an extension said not to be critical",
            sequence(&[sequence(&[vec![6, 3, 0x2a, 3, 4], vec![1, 1, 0], value(OCTETS, &[])])]),
        ),
        (
            "with an extension whose identifier has zeros",
            sequence(&[sequence(&[vec![6, 4, 0x2a, 0x80, 3, 4], value(OCTETS, &[])])]),
        ),
        (
            "with names that are none",
            sequence(&[sequence(&[vec![6, 3, 0x55, 0x1d, 0x11], value(OCTETS, &[1, 2, 3])])]),
        ),
        (
            "with the same extension twice",
            sequence(&[
                sequence(&[vec![6, 3, 0x55, 0x1d, 0x0e], value(OCTETS, &value(OCTETS, &[1]))]),
                sequence(&[vec![6, 3, 0x55, 0x1d, 0x0e], value(OCTETS, &value(OCTETS, &[2]))]),
            ]),
        ),
        (
            "with constraints that are none",
            sequence(&[sequence(&[vec![6, 3, 0x55, 0x1d, 0x13], value(OCTETS, &[5])])]),
        ),
    ] {
        let mut body = body.clone();
        if let Some(last) = body.last_mut() {
            last.1 = extensions;
        }
        let mut fields = fields.clone();
        fields[0].1 = body.iter().flat_map(|(tag, content)| value(*tag, content)).collect();
        add_cert(what, &again(&fields));
    }
    all
}

/// Pairs with a byte or two changed.
pub(super) fn mutations(Base { name, cert, key }: &Base) -> Vec<Odd> {
    let mut rng = SeededRng::new(seed(), 7);
    let mut all = Vec::new();
    for (label, pem) in [("CERTIFICATE", cert), ("PRIVATE KEY", key)] {
        let der = decode(pem);
        for turn in 0..250 {
            let mut changed = der.clone();
            let mut what = String::new();
            for _ in 0..=rng.below(2) {
                let (at, by) = (rng.below(der.len()), rng.below(255) + 1);
                changed[at] ^= u8::try_from(by).unwrap();
                what = format!("{what} {at}^{by}");
            }
            let text = encode(label, &changed, 64);
            let (cert, key) = if label == "CERTIFICATE" { (&text, key) } else { (cert, &text) };
            let what = format!("{name}, {label} {turn} with{what}");
            all.push(Odd { is_mutation: true, ..Odd::new(what, cert, key) });
        }
    }
    all
}
