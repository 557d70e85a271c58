//! Certificates, keys, envelopes, server names.

use super::*;
use crate::fixture::pem::{
    EC_CERT, EC_KEY_SEC1, EC_PUBLIC, RSA_CERT, RSA_KEY_PKCS1, RSA_KEY_PKCS8, RSA_PUBLIC, RSA_PUBLIC_BARE,
};

struct Pair {
    cert: String,
    key: String,
}

fn pair(algorithm: &'static rcgen::SignatureAlgorithm) -> Pair {
    let key = rcgen::KeyPair::generate_for(algorithm).expect("generates");
    let cert = rcgen::CertificateParams::new(vec!["a.t".to_owned()])
        .and_then(|params| params.self_signed(&key))
        .expect("signs");
    Pair { cert: cert.pem(), key: key.serialize_pem() }
}

fn ec() -> Pair {
    pair(&rcgen::PKCS_ECDSA_P256_SHA256)
}

fn ssl(cert: &str, key: &str, snis: &Value) -> Value {
    json!({"ssls/s": {"cert": cert, "key": key, "snis": snis}})
}

/// [`EC_KEY_SEC1`] with nothing but its scalar and its curve.
fn ec_key_without_public_half() -> String {
    use base64::Engine as _;
    let engine = base64::engine::general_purpose::STANDARD;
    let body: String = EC_KEY_SEC1.lines().filter(|line| !line.starts_with('-')).collect();
    let whole = engine.decode(body).unwrap();
    // Version, scalar and curve take 49 bytes.
    let der = [&[0x30, 49], &whole[2..51]].concat();
    format!("-----BEGIN EC PRIVATE KEY-----\n{}\n-----END EC PRIVATE KEY-----\n", engine.encode(der))
}

#[test]
fn certificates_that_fit_their_keys_are_accepted() {
    for algorithm in [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ED25519] {
        let Pair { cert, key } = pair(algorithm);
        accepted(&ssl(&cert, &key, &json!(["a.t", "*.a.t", "*.t"])));
        let other = ec();
        accepted(&ssl(&format!("{cert}{}", other.cert), &format!("{cert}{key}"), &json!(["a.t"])));
        accepted(&upstream(&json!({"tls": {"client_cert": cert, "client_key": key}})));
    }
    accepted(&ssl(RSA_CERT, RSA_KEY_PKCS1, &json!(["a.t"])));
    accepted(&ssl(RSA_CERT, RSA_KEY_PKCS8, &json!(["a.t"])));
    accepted(&ssl(EC_CERT, EC_KEY_SEC1, &json!(["a.t"])));
    accepted(&ssl(EC_CERT, &ec_key_without_public_half(), &json!(["a.t"])));
    let parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
    accepted(&ssl(EC_CERT, &format!("{parameters}{EC_KEY_SEC1}"), &json!(["a.t"])));
}

#[test]
fn certificates_that_do_not_fit_are_refused_late() {
    let (one, other, edwards) = (ec(), ec(), pair(&rcgen::PKCS_ED25519));
    let snis = json!(["a.t"]);
    for (cert, key) in [
        (one.cert.as_str(), other.key.as_str()),
        (&format!("{}{}", other.cert, one.cert), &one.key),
        (&one.cert, &edwards.key),
        (&edwards.cert, &pair(&rcgen::PKCS_ED25519).key),
        (&edwards.cert, &one.key),
        (&one.cert, "-----BEGIN DSA PRIVATE KEY-----\nMAA=\n-----END DSA PRIVATE KEY-----\n"),
        (
            &one.cert,
            &format!("-----BEGIN DSA PRIVATE KEY-----\nMAA=\n-----END DSA PRIVATE KEY-----\n{}", one.key),
        ),
        (&one.cert, &one.key.replace("PRIVATE", "ENCRYPTED PRIVATE")),
        (&format!("{}{}", other.cert.replace("CERTIFICATE", "X509 CERTIFICATE"), one.cert), &one.key),
        (&one.cert, &format!("-----BEGIN PRIVATE KEY-----\n{}", one.key)),
        (&one.cert, &one.key.replace('\n', "\r")),
        (&one.cert, &ec_key_without_public_half()),
        (&one.cert, RSA_KEY_PKCS1),
        (RSA_CERT, &one.key),
        (EC_CERT, &one.key),
        ("", &one.key),
        ("no pem", &one.key),
        (&one.key, &one.key),
        (&one.cert, ""),
        (&one.cert, "no pem"),
        (&one.cert, &one.cert),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", &one.key),
        (&one.cert, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
    ] {
        refused_late(&ssl(cert, key, &snis), Rule::Certificate);
    }
    let tls = |cert: &str, key: &str| upstream(&json!({"tls": {"client_cert": cert, "client_key": key}}));
    refused_late(&tls(&one.cert, &other.key), Rule::ClientCertificate);
    refused_late(&tls("no pem", &one.key), Rule::ClientCertificate);
    refused_late(&tls(&one.cert, "no pem"), Rule::ClientCertificate);
    refused(&tls("", &one.key), Rule::Range);
}

#[test]
fn ssl_documents_of_the_wrong_form_are_refused() {
    let Pair { cert, key } = ec();
    refused(&ssl(&cert, &key, &json!([])), Rule::Empty);
    refused(&json!({"ssls/s": {"cert": cert, "key": key}}), Rule::Decode);
    refused(&json!({"ssls/s": {"cert": cert, "key": key, "sni": "a.t"}}), Rule::Decode);
    refused(&json!({"ssls/s": {"cert": cert, "snis": ["a.t"]}}), Rule::Decode);
}

#[test]
fn a_server_name_may_stand_once() {
    let Pair { cert, key } = ec();
    for snis in
        [json!(["a.t", "a.t"]), json!(["a.t", "A.T"]), json!(["*.t", "*.T"]), json!(["{a}.t"]), json!(["a}"])]
    {
        refused_late(&ssl(&cert, &key, &snis), Rule::ServerName);
    }
    let mut two = ssl(&cert, &key, &json!(["a.t"]));
    two["ssls/z"] = json!({"cert": cert, "key": key, "snis": ["b.t", "A.t"]});
    refused_late(&two, Rule::ServerName);
    let found = violations(&two);
    assert_eq!(found[0].subject.to_string(), "ssls/z");
    assert_eq!(found[0].field, "snis[1]");
    assert!(found[0].message.contains("ssls/s"), "{}", found[0]);
    accepted(&ssl(&cert, &key, &json!(["a.t", "*.t", "*.a.t", "*"])));
}

#[test]
fn envelopes_are_refused_where_they_cannot_be_opened() {
    let Pair { cert, .. } = ec();
    let sealed = format!("$pingsix-enc:v1${}", "A".repeat(40));
    let holders = |secret: &str| {
        vec![
            ssl(&cert, secret, &json!(["a.t"])),
            upstream(&json!({"tls": {"client_cert": cert, "client_key": secret}})),
            plugin("key-auth", &json!({"key": secret})),
            plugin("key-auth", &json!({"keys": [secret]})),
            plugin("basic-auth", &json!({"username": "u", "password": secret})),
            plugin("jwt-auth", &json!({"secret": secret})),
            plugin("csrf", &json!({"key": secret})),
        ]
    };
    let on = ValidateOptions { encryption: Encryption::On, ..ValidateOptions::default() };
    for documents in holders(&sealed) {
        refused(&documents, Rule::Envelope);
        assert_eq!(violations_with(&documents, &on), [], "{documents}");
    }
    for broken in ["$pingsix-enc:v2$AAAA", "$pingsix-enc:v1$AAAA", "$pingsix-enc:v1$%", "$pingsix-enc:"] {
        for documents in holders(broken) {
            let found = violations_with(&documents, &on);
            assert_eq!(worst(&found), Some((Severity::Rejected, Rule::Envelope)), "{documents}");
        }
    }
    // PingSIX never decrypts the targets of a traffic split.
    let target = json!({"nodes": {"127.0.0.1:1": 1}, "tls": {"client_cert": cert, "client_key": sealed}});
    let split = json!({"rules": [{"weighted_upstreams": [{"upstream": target, "weight": 1}]}]});
    let found = violations_with(&plugin("traffic-split", &split), &on);
    assert_eq!(worst(&found), Some((Severity::RejectedLate, Rule::ClientCertificate)));
}

#[test]
fn a_static_form_takes_envelopes_for_texts() {
    let sealed = format!("$pingsix-enc:v1${}", "A".repeat(40));
    let of = |plugins: Value| {
        let text = json!({"global_rules": [{"id": "g", "plugins": plugins}]});
        worst(&validate_static(&text, &ValidateOptions::default()))
    };
    assert_eq!(of(json!({"key-auth": {"key": sealed}})), None);
    let Pair { cert, .. } = ec();
    let text = json!({"ssls": [{"id": "s", "cert": cert, "key": sealed, "snis": ["a.t"]}]});
    let found = validate_static(&text, &ValidateOptions::default());
    assert_eq!(worst(&found), Some((Severity::RejectedLate, Rule::Certificate)));
}

#[test]
fn public_keys_of_tokens_must_fit_their_algorithm() {
    let jwt =
        |algorithm: &str, key: &str| plugin("jwt-auth", &json!({"algorithm": algorithm, "public_key": key}));
    for (algorithm, key) in [
        ("RS256", RSA_PUBLIC),
        ("RS512", RSA_PUBLIC_BARE),
        ("RS384", RSA_CERT),
        ("ES256", EC_PUBLIC),
        ("ES384", EC_CERT),
    ] {
        accepted(&jwt(algorithm, key));
    }
    for (algorithm, key) in
        [("RS256", EC_PUBLIC), ("ES256", RSA_PUBLIC), ("ES256", RSA_PUBLIC_BARE), ("RS256", "x")]
    {
        refused_late(&jwt(algorithm, key), Rule::JwtAuth);
    }
}

#[test]
fn a_public_key_is_read_alone_and_no_private_one_is() {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).expect("generates");
    let (public, private) = (key.public_key_pem(), key.serialize_pem());
    let canonical = read_public_key(&public).expect("reads");
    assert_eq!(canonical.lines().collect::<String>(), public.lines().collect::<String>());
    // Comments and what follows the first section stay behind.
    let pair = ec();
    let commented = format!("a comment\n{public}{}more\n", pair.cert);
    assert_eq!(read_public_key(&commented), Ok(canonical));
    assert!(read_public_key(&pair.cert).is_ok_and(|text| text.starts_with("-----BEGIN CERTIFICATE-----")));
    for text in [EC_PUBLIC, RSA_PUBLIC, RSA_PUBLIC_BARE, RSA_CERT] {
        assert!(read_public_key(text).is_ok(), "{text}");
    }
    let sec1 = "-----BEGIN EC PRIVATE KEY-----\nMAA=\n-----END EC PRIVATE KEY-----\n";
    let spaced = private.replace("-----BEGIN PRIVATE", "-----BEGIN  PRIVATE");
    let disguised = private.replace("PRIVATE KEY", "PUBLIC KEY");
    let as_rsa = private.replace("PRIVATE KEY", "RSA PUBLIC KEY");
    let behind = format!("{public}{private}");
    for text in [
        &private,
        sec1,
        &spaced,
        &disguised,
        &as_rsa,
        &behind,
        EC_KEY_SEC1,
        RSA_KEY_PKCS1,
        "",
        "no key",
        "-----BEGIN X-----",
    ] {
        assert!(read_public_key(text).is_err(), "{text}");
    }
}
