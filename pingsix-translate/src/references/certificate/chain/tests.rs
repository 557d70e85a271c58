//! The contents of certificates.

use rcgen::{DnType, SanType, SerialNumber};

use super::*;
use crate::fixture::pem::{EC_CERT, RSA_CERT, chain, pair, pair_of, params};

fn read(pem: &str) -> CertificateChain {
    CertificateChain::read(&read_certificates(pem)).unwrap()
}

fn names(pem: &str) -> Vec<String> {
    read(pem).names.iter().map(ToString::to_string).collect()
}

#[test]
fn names_are_the_alternative_ones_and_else_the_common_one() {
    assert_eq!(
        names(&pair(&["b.test", "*.A.test", "a.test", "b.test"]).cert),
        ["*.a.test", "a.test", "b.test"]
    );
    let with_common = |alternatives: &[&str], common: &str| {
        let mut params = params(alternatives);
        params.distinguished_name.push(DnType::CommonName, common);
        names(&pair_of(&params).cert)
    };
    assert_eq!(with_common(&["a.test"], "common.test"), ["a.test"]);
    assert_eq!(with_common(&[], "common.test"), ["common.test"]);
    assert_eq!(with_common(&[], "Not a name"), Vec::<String>::new());
    assert_eq!(names(RSA_CERT), ["a.t"]);
    assert_eq!(names(EC_CERT), ["a.t"]);
}

#[test]
fn an_invalid_dns_name_does_not_hide_the_others() {
    let mut strange = params(&["a.test", "10.0.0.1", "*", "a_b.test", "*.*.test"]);
    strange.subject_alt_names.push(SanType::Rfc822Name("somebody@a.test".try_into().unwrap()));
    strange.subject_alt_names.push(SanType::OtherName((vec![1, 3, 6, 1], "other".to_owned().into())));
    assert_eq!(names(&pair_of(&strange).cert), ["a.test"]);
    let mut address = params(&["10.0.0.1"]);
    address.distinguished_name.push(DnType::CommonName, "common.test");
    assert_eq!(names(&pair_of(&address).cert), ["common.test"]);
}

/// Longer than RFC 5280 allows, yet there are such.
#[test]
fn a_long_serial_number_does_not_hide_the_names() {
    let mut long = params(&["a.test"]);
    long.serial_number = Some(SerialNumber::from_slice(&[0x7f; 30]));
    assert_eq!(names(&pair_of(&long).cert), ["a.test"]);
}

#[test]
fn intermediates_are_counted_and_roots_are_not() {
    let [leaf, intermediate, root] = chain(&["a.test"]).map(|pair| pair.cert);
    for (pem, expected) in [
        (leaf.clone(), 0),
        (format!("{leaf}{root}"), 0),
        (format!("{leaf}{intermediate}"), 1),
        (format!("{leaf}{intermediate}{root}"), 1),
        (format!("{leaf}{intermediate}{intermediate}"), 2),
    ] {
        let chain = read(&pem);
        assert_eq!(chain.intermediates, expected);
        assert_eq!(names(&pem), ["a.test"]);
    }
}

#[test]
fn unreadable_material_is_not_quoted() {
    let unreadable = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for pem in ["", "no pem", unreadable] {
        assert_eq!(read(pem), CertificateChain::default());
    }
    let leaf = pair(&["a.test"]).cert;
    assert_eq!(read(&format!("{leaf}{unreadable}")).intermediates, 1);
}
