//! Encoders of DER and PEM, as far as invalid material needs them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

pub(super) const INTEGER: u8 = 0x02;
pub(super) const BITS: u8 = 0x03;
pub(super) const OCTETS: u8 = 0x04;
pub(super) const SEQUENCE: u8 = 0x30;

/// A value with its tag and length.
pub(super) fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut der = vec![tag];
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => der.push(short),
        Ok(long) => der.extend([0x81, long]),
        Err(_) => {
            der.push(0x82);
            der.extend(u16::try_from(length).unwrap().to_be_bytes());
        }
    }
    der.extend(content);
    der
}

pub(super) fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    value(SEQUENCE, &parts.concat())
}

/// The values one after the other: tag and content.
pub(super) fn parts(mut der: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut parts = Vec::new();
    while let [tag, length, rest @ ..] = der {
        let digits = if *length < 0x80 { 0 } else { usize::from(length & 0x7f) };
        let long = rest[..digits].iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit));
        let length = if digits == 0 { usize::from(*length) } else { long };
        parts.push((*tag, rest[digits..digits + length].to_vec()));
        der = &rest[digits + length..];
    }
    parts
}

/// The first section of a text.
pub(super) fn decode(pem: &str) -> Vec<u8> {
    let body: String = pem
        .lines()
        .skip_while(|line| !line.starts_with("-----BEGIN"))
        .skip(1)
        .take_while(|line| !line.starts_with("-----END"))
        .collect();
    BASE64_STANDARD.decode(body).unwrap()
}

/// A section with lines of a width.
pub(super) fn encode(label: &str, der: &[u8], width: usize) -> String {
    let body = BASE64_STANDARD.encode(der);
    let lines: Vec<&str> =
        body.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
