//! Certificates, keys, envelopes, server names.

use super::*;

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
    let found = faults(&two);
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
        assert_eq!(faults_with(&documents, &on), [], "{documents}");
    }
    for broken in ["$pingsix-enc:v2$AAAA", "$pingsix-enc:v1$AAAA", "$pingsix-enc:v1$%", "$pingsix-enc:"] {
        for documents in holders(broken) {
            let found = faults_with(&documents, &on);
            assert_eq!(worst(&found), Some((Severity::Rejected, Rule::Envelope)), "{documents}");
        }
    }
    // PingSIX never decrypts the targets of a traffic split.
    let target = json!({"nodes": {"127.0.0.1:1": 1}, "tls": {"client_cert": cert, "client_key": sealed}});
    let split = json!({"rules": [{"weighted_upstreams": [{"upstream": target, "weight": 1}]}]});
    let found = faults_with(&plugin("traffic-split", &split), &on);
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

// Throw-away material in the encodings that rcgen does not write, made with OpenSSL.

const RSA_CERT: &str = "\
-----BEGIN CERTIFICATE-----
MIIB+DCCAWGgAwIBAgIUX6YuXChiVKMyPaes7fam8uXFZgMwDQYJKoZIhvcNAQEL
BQAwDjEMMAoGA1UEAwwDYS50MB4XDTI2MTEyMTEyNTAzNFoXDTM2MTExODEyNTAz
NFowDjEMMAoGA1UEAwwDYS50MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDC
oXuoq3O7MJabnqd7bwBtJIsCZ/cVhX5QgSV6y11MH2yMPbMqMlYIOIDnwxTXPpJk
cOb9sJA72GcTAiFnDUZKtaKY4lXQ2SKMKsT8n2kLPQNQwto7fV08zFI9FGka9vK0
tnQYjXFYyvmkwzfJ2pz6CZw+Du87avgU6jzWQ45+oQIDAQABo1MwUTAdBgNVHQ4E
FgQU828i5LEZ9WWG2eY3jDwcOUiCA8wwHwYDVR0jBBgwFoAU828i5LEZ9WWG2eY3
jDwcOUiCA8wwDwYDVR0TAQH/BAUwAwEB/zANBgkqhkiG9w0BAQsFAAOBgQATvXE1
/AvBBikb7K4D6ailNJC5+qVE0Rv2j+KZRCHQhJa43zmd+04aOhHUE5FiLGwnzni9
4xMpy2Vfpes7ZajVSb+Yj7xvTTptV6xj/b3ad8FS6EgFJPrsW/0mgZcrigPrnyQ9
2XDTuhz73xPfuoMrkGiR3uKzsHQNkp8aK7MCrA==
-----END CERTIFICATE-----
";

const RSA_KEY_PKCS8: &str = "\
-----BEGIN PRIVATE KEY-----
MIICdgIBADANBgkqhkiG9w0BAQEFAASCAmAwggJcAgEAAoGBAMKhe6irc7swlpue
p3tvAG0kiwJn9xWFflCBJXrLXUwfbIw9syoyVgg4gOfDFNc+kmRw5v2wkDvYZxMC
IWcNRkq1opjiVdDZIowqxPyfaQs9A1DC2jt9XTzMUj0UaRr28rS2dBiNcVjK+aTD
N8nanPoJnD4O7ztq+BTqPNZDjn6hAgMBAAECgYBlFGCYdJKiQNW29Gqe3EMoa7YW
BdB4yN+VB71jTIKjqh5BpzmJTKMJme64bsRAFSsKJuiQEEaYDgdaA909G9PIx3R7
uu/8ly1Y2VTUuoVxWdqunUgsH48DtI4s7zIFYKmlleWf1IAwfZxe6ey9QDfxMpJO
aEFhzCrzN8v2R7ihwQJBAPyN2zA4PliEtuEUlF3K1F94oPACtUaqSmsuITEsgADO
oAqqfEDUrSceTgNNyXcB78tBxm/TjVKgZoHyAuonSNUCQQDFSU6X4gGGd/wrK2Hp
wE1vXgk1cTEiEQ+JK8y4u75aLvwnkQGVB0HI4svTiFln3mvpyTSpTw0YKAeuba3s
xYSdAkAjMPEV6wBk/Tkua9uwpg6prvld+EKiMiBkhu0BGR5M/n22fsMJlZj7FnHw
a+pittZfEC9CbcwHc2pVOQ/G6OpxAkEAsHLzRyaNRK5VrGqdpQood728ML8vOY/W
vFGfRW4tPs2dGuo3ZwnZjYlC0cu2Yw7sp2kcn30jcgKDdD+GeijihQJATS92GbPr
acSyXVGB9/fsZVAput+4JsQ1NWn+u589RsMrfM2R0HJcNppCFrQVvAMzLsHsKFjt
WvINFisnkZ2vkg==
-----END PRIVATE KEY-----
";

const RSA_KEY_PKCS1: &str = "\
-----BEGIN RSA PRIVATE KEY-----
MIICXAIBAAKBgQDCoXuoq3O7MJabnqd7bwBtJIsCZ/cVhX5QgSV6y11MH2yMPbMq
MlYIOIDnwxTXPpJkcOb9sJA72GcTAiFnDUZKtaKY4lXQ2SKMKsT8n2kLPQNQwto7
fV08zFI9FGka9vK0tnQYjXFYyvmkwzfJ2pz6CZw+Du87avgU6jzWQ45+oQIDAQAB
AoGAZRRgmHSSokDVtvRqntxDKGu2FgXQeMjflQe9Y0yCo6oeQac5iUyjCZnuuG7E
QBUrCibokBBGmA4HWgPdPRvTyMd0e7rv/JctWNlU1LqFcVnarp1ILB+PA7SOLO8y
BWCppZXln9SAMH2cXunsvUA38TKSTmhBYcwq8zfL9ke4ocECQQD8jdswOD5YhLbh
FJRdytRfeKDwArVGqkprLiExLIAAzqAKqnxA1K0nHk4DTcl3Ae/LQcZv041SoGaB
8gLqJ0jVAkEAxUlOl+IBhnf8Kyth6cBNb14JNXExIhEPiSvMuLu+Wi78J5EBlQdB
yOLL04hZZ95r6ck0qU8NGCgHrm2t7MWEnQJAIzDxFesAZP05LmvbsKYOqa75XfhC
ojIgZIbtARkeTP59tn7DCZWY+xZx8GvqYrbWXxAvQm3MB3NqVTkPxujqcQJBALBy
80cmjUSuVaxqnaUKKHe9vDC/LzmP1rxRn0VuLT7NnRrqN2cJ2Y2JQtHLtmMO7Kdp
HJ99I3ICg3Q/hnoo4oUCQE0vdhmz62nEsl1Rgff37GVQKbrfuCbENTVp/rufPUbD
K3zNkdByXDaaQha0FbwDMy7B7ChY7VryDRYrJ5Gdr5I=
-----END RSA PRIVATE KEY-----
";

const EC_CERT: &str = "\
-----BEGIN CERTIFICATE-----
MIIBcTCCARegAwIBAgIUWiXSXUfDPj31Uug5c7JNvvtz/70wCgYIKoZIzj0EAwIw
DjEMMAoGA1UEAwwDYS50MB4XDTI2MTEyMTEyNTAzNFoXDTM2MTExODEyNTAzNFow
DjEMMAoGA1UEAwwDYS50MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEF1K40PsQ
vaogwqwhKiQFkuLQ/K8JM6QSs4bEwaCzxVG/aoPDhD6nkVVmbUICrByr00qqnJgT
Nli/Wev8zX6aL6NTMFEwHQYDVR0OBBYEFHR/n0V3yk4SvnIxMrsHlWZsM24pMB8G
A1UdIwQYMBaAFHR/n0V3yk4SvnIxMrsHlWZsM24pMA8GA1UdEwEB/wQFMAMBAf8w
CgYIKoZIzj0EAwIDSAAwRQIgSXJegSI48qbYsXQ5EZ5t3PD9kUkurdGrMO2bBoyh
LnsCIQDiaAs31gKsfs9zi4vQ/ZGjdXhmm3pVb5sqK38ru1xOTQ==
-----END CERTIFICATE-----
";

const EC_KEY_SEC1: &str = "\
-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIDJim6OPxIeOqKCIuXuRFCT4q0c/FoDMAEx51Kppj3T6oAoGCCqGSM49
AwEHoUQDQgAEF1K40PsQvaogwqwhKiQFkuLQ/K8JM6QSs4bEwaCzxVG/aoPDhD6n
kVVmbUICrByr00qqnJgTNli/Wev8zX6aLw==
-----END EC PRIVATE KEY-----
";

const RSA_PUBLIC: &str = "\
-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDCoXuoq3O7MJabnqd7bwBtJIsC
Z/cVhX5QgSV6y11MH2yMPbMqMlYIOIDnwxTXPpJkcOb9sJA72GcTAiFnDUZKtaKY
4lXQ2SKMKsT8n2kLPQNQwto7fV08zFI9FGka9vK0tnQYjXFYyvmkwzfJ2pz6CZw+
Du87avgU6jzWQ45+oQIDAQAB
-----END PUBLIC KEY-----
";

const RSA_PUBLIC_BARE: &str = "\
-----BEGIN RSA PUBLIC KEY-----
MIGJAoGBAMKhe6irc7swlpuep3tvAG0kiwJn9xWFflCBJXrLXUwfbIw9syoyVgg4
gOfDFNc+kmRw5v2wkDvYZxMCIWcNRkq1opjiVdDZIowqxPyfaQs9A1DC2jt9XTzM
Uj0UaRr28rS2dBiNcVjK+aTDN8nanPoJnD4O7ztq+BTqPNZDjn6hAgMBAAE=
-----END RSA PUBLIC KEY-----
";

const EC_PUBLIC: &str = "\
-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEF1K40PsQvaogwqwhKiQFkuLQ/K8J
M6QSs4bEwaCzxVG/aoPDhD6nkVVmbUICrByr00qqnJgTNli/Wev8zX6aLw==
-----END PUBLIC KEY-----
";
