//! Secrets with and without a certificate that PingSIX can serve.

use serde_json::{Value, json};

use super::*;
use crate::fixture::pem::{EC_CERT, EC_KEY_SEC1, Pair, RSA_CERT, RSA_KEY_PKCS1, RSA_KEY_PKCS8, chain, pair};
use crate::fixture::{gateway, object, snapshot};
use crate::snapshot::Object;

/// The certificate in a Secret, resolved for Gateway `infra/public`.
fn resolve(secret: Value) -> Result<Certificate, Refusal> {
    let mut objects = gateway(&json!([{
        "name": "a", "port": 443, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "cert"}]},
    }]));
    objects.insert(Object::Secret(object(secret)));
    let snapshot = snapshot(&objects);
    let reference = CertificateRef { name: "cert".to_owned(), ..CertificateRef::default() };
    References::new(&snapshot.referents).certificate(
        &ObjectKey::new(Kind::Gateway, "infra", "public"),
        &reference,
        &FieldPath::new("at"),
    )
}

fn secret(kind: &str, cert: &str, key: &str) -> Value {
    json!({
        "metadata": {"namespace": "infra", "name": "cert"}, "type": kind,
        "stringData": {"tls.crt": cert, "tls.key": key},
    })
}

fn resolve_pair(cert: &str, key: &str) -> Result<Certificate, Refusal> {
    resolve(secret("kubernetes.io/tls", cert, key))
}

fn message(cert: &str, key: &str) -> String {
    let refusal = resolve_pair(cert, key).unwrap_err();
    assert_eq!(refusal.reason, Reason::InvalidCertificateRef);
    refusal.to_string()
}

#[test]
fn keys_of_every_usual_encoding_are_taken() {
    let parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
    let pkcs8 = pair(&["a.t"]);
    assert!(pkcs8.key.starts_with("-----BEGIN PRIVATE KEY-----"));
    for (cert, key) in [
        (RSA_CERT, RSA_KEY_PKCS1),
        (RSA_CERT, RSA_KEY_PKCS8),
        (EC_CERT, EC_KEY_SEC1),
        (EC_CERT, &format!("{parameters}{EC_KEY_SEC1}")),
        (&pkcs8.cert, &pkcs8.key),
    ] {
        let certificate = resolve_pair(cert, key).unwrap();
        let names: Vec<&str> = certificate.names().iter().map(Hostname::as_str).collect();
        assert_eq!((names, certificate.pair.intermediates), (vec!["a.t"], 0));
    }
}

#[test]
fn a_key_is_encoded_anew_with_nothing_beside_it() {
    let Pair { cert, key } = pair(&["a.test"]);
    let comments = "a comment\n".repeat(1_000);
    let parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
    let noisy = format!("{comments}{parameters}{}{comments}{cert}", key.replace('\n', "\r\n"));
    assert_eq!(resolve_pair(&cert, &noisy).unwrap().private_key(), key);
    // Every form of a key becomes the same.
    let of = |key: &str| resolve_pair(RSA_CERT, key).unwrap().private_key().to_owned();
    assert_eq!(*of(RSA_KEY_PKCS1), *RSA_KEY_PKCS8);
    assert_eq!(*of(RSA_KEY_PKCS8), *RSA_KEY_PKCS8);
}

#[test]
fn keys_that_cannot_be_used_are_named() {
    let Pair { cert, key } = pair(&["a.test"]);
    let dsa = "-----BEGIN DSA PRIVATE KEY-----\nMAA=\n-----END DSA PRIVATE KEY-----\n";
    let encrypted = key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    // The seed of an X25519 key, which signs nothing.
    let agreement = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VuBCIEIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\n\
                     -----END PRIVATE KEY-----\n";
    let unknown = key.replace("PRIVATE KEY", "c2VjcmV0");
    for (key, named) in [
        (dsa, "a DSA key"),
        (&*encrypted, "an encrypted key"),
        (agreement, "an X25519 key"),
        (&*unknown, "in a section with a label that is not known"),
    ] {
        assert_eq!(
            message(&cert, key),
            format!(
                "at: Secret infra/cert cannot be used: the private key is {named}; use RSA of 2048 to 8192 bits, ECDSA on \
                 P-256, P-384 or P-521, or Ed25519."
            )
        );
    }
}

#[test]
fn the_entries_of_a_secret_decide_and_not_its_type() {
    let Pair { cert, key } = pair(&["a.test"]);
    for kind in ["kubernetes.io/tls", "Opaque"] {
        assert!(resolve(secret(kind, &cert, &key)).is_ok(), "{kind}");
    }
    let mut without = secret("Opaque", &cert, &key);
    without["stringData"].as_object_mut().unwrap().remove("tls.key");
    assert_eq!(resolve(without).unwrap_err().to_string(), "at: Secret infra/cert has no entry tls.key.");
}

#[test]
fn a_leaf_that_does_not_come_first_is_told_from_a_foreign_key() {
    let [leaf, intermediate, root] = chain(&["a.test"]);
    let reversed = format!("{}{}{}", root.cert, intermediate.cert, leaf.cert);
    assert_eq!(
        message(&reversed, &leaf.key),
        "at: Secret infra/cert cannot be used: the private key is that of a certificate behind the first, and the \
         leaf must come first."
    );
    assert_eq!(
        message(&leaf.cert, &root.key),
        "at: Secret infra/cert cannot be used: the private key is not that of the certificate."
    );
    let certificate = resolve_pair(&format!("{}{}", leaf.cert, intermediate.cert), &leaf.key).unwrap();
    assert_eq!(certificate.pair.intermediates, 1);
    assert_eq!(certificate.leaf(), leaf.cert);
    assert_eq!(certificate.chain(), format!("{}{}", leaf.cert, intermediate.cert));
}

#[test]
fn neither_certificate_nor_key_is_shown() {
    let Pair { cert, key } = pair(&["a.test"]);
    let shown = format!("{:?}", resolve_pair(&cert, &key).unwrap());
    assert!(shown.contains("a.test"), "{shown}");
    let lines = cert.lines().chain(key.lines());
    for line in lines.filter(|line| !line.starts_with("---")) {
        assert!(!shown.contains(line), "{shown}");
    }
    let refused = message(&cert, &pair(&[]).key);
    assert!(!refused.contains("BEGIN"), "{refused}");
}

#[test]
fn a_certificate_is_served_without_comments_and_chain() {
    let [leaf, intermediate, _] = chain(&["a.test"]);
    let comment = "comment\n".repeat(10_000);
    let text = format!("{comment}{}{comment}{}", leaf.cert, intermediate.cert);
    let certificate = resolve_pair(&text, &format!("{comment}{}{comment}", leaf.key)).unwrap();
    assert_eq!((certificate.leaf(), certificate.private_key()), (&*leaf.cert, &*leaf.key));
    assert_eq!(certificate.chain(), format!("{}{}", leaf.cert, intermediate.cert));
    // Another text of the same certificate is the same certificate.
    assert!(certificate.is_same(&resolve_pair(&leaf.cert, &leaf.key).unwrap()));
}

/// Names of `bytes` bytes each.
fn names(count: usize, bytes: usize) -> Vec<String> {
    let parent = format!(".{}.test", "a".repeat(bytes - 12));
    (0..count).map(|index| format!("n{index:05}{parent}")).collect()
}

fn pair_for(names: &[String]) -> Pair {
    pair(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_certificate_that_no_client_takes_is_refused_by_its_size() {
    let large = pair_for(&names(2_000, 40));
    let refusal = message(&large.cert, &large.key);
    assert!(
        refusal.starts_with("at: Secret infra/cert cannot be used: its certificate has ")
            && refusal.ends_with(" bytes, and clients take at most 65536."),
        "{refusal}"
    );
    let Pair { cert, key } = pair_for(&names(1_000, 40));
    assert_eq!(resolve_pair(&cert, &key).unwrap().names().len(), 1_000);
    let refusal = message(&cert.repeat(7), &key);
    assert!(
        refusal.contains("its chain has ") && refusal.ends_with("clients take at most 262144."),
        "{refusal}"
    );
}

#[test]
fn a_certificate_has_so_many_names_and_no_more() {
    let Pair { cert, key } = pair_for(&names(4_096, 13));
    assert_eq!(resolve_pair(&cert, &key).unwrap().names().len(), 4_096);
    let Pair { cert, key } = pair_for(&names(4_097, 13));
    assert_eq!(
        message(&cert, &key),
        "at: Secret infra/cert cannot be used: its certificate is for 4097 DNS names, more than 4096."
    );
}
