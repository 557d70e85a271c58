//! Pairs of certificates and keys, sound and odd.

mod numbers;
mod shapes;
mod texts;

use rcgen::{CertificateParams, KeyPair, SignatureAlgorithm};

use super::openssl::Program;
use numbers::{edwards, elliptic, rsa};
use shapes::{mutations, shapes};
use texts::texts;

/// A certificate with a key that may not be its own.
pub(super) struct Odd {
    pub(super) what: String,
    pub(super) cert: String,
    pub(super) key: String,
    /// Whether such files are common and must be accepted.
    pub(super) is_sound: bool,
    /// Whether it is one of many random mutations.
    pub(super) is_mutation: bool,
}

impl Odd {
    fn new(what: impl Into<String>, cert: &str, key: &str) -> Self {
        let (cert, key) = (cert.to_owned(), key.to_owned());
        Self { what: what.into(), cert, key, is_sound: false, is_mutation: false }
    }

    fn sound(what: impl Into<String>, cert: &str, key: &str) -> Self {
        Self { is_sound: true, ..Self::new(what, cert, key) }
    }
}

/// A pair as people have them.
#[derive(Clone)]
struct Base {
    name: &'static str,
    cert: String,
    key: String,
}

fn generated(name: &'static str, algorithm: &'static SignatureAlgorithm) -> Base {
    let key = KeyPair::generate_for(algorithm).unwrap();
    let mut params = CertificateParams::new(vec!["a.test".to_owned()]).unwrap();
    params.distinguished_name.push(rcgen::DnType::OrganizationName, "Odd Ltd");
    Base { name, cert: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
}

const KINDS: [(&str, &[&str]); 22] = [
    ("RSA 512", &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:512"]),
    ("RSA 1024", &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"]),
    ("RSA 2040", &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2040"]),
    ("RSA 2048", &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]),
    ("RSA 3072", &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:3072"]),
    ("RSA 4096", &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:4096"]),
    (
        "RSA with exponent 3",
        &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-pkeyopt", "rsa_keygen_pubexp:3"],
    ),
    ("RSA-PSS", &["-algorithm", "RSA-PSS", "-pkeyopt", "rsa_keygen_bits:2048"]),
    ("P-192", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-192"]),
    ("P-224", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-224"]),
    ("P-256", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]),
    ("P-384", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"]),
    ("P-521", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521"]),
    ("secp256k1", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:secp256k1"]),
    ("brainpoolP256r1", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:brainpoolP256r1"]),
    ("brainpoolP384r1", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:brainpoolP384r1"]),
    ("brainpoolP512r1", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:brainpoolP512r1"]),
    ("sect283k1", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:sect283k1"]),
    (
        "P-256 spelled out",
        &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-pkeyopt", "ec_param_enc:explicit"],
    ),
    ("Ed25519", &["-algorithm", "ED25519"]),
    ("Ed448", &["-algorithm", "ED448"]),
    ("SM2", &["-algorithm", "SM2"]),
];

/// Kinds whose owners have done nothing wrong.
const SOUND: [&str; 9] = [
    "RSA 2040",
    "RSA 2048",
    "RSA 3072",
    "RSA 4096",
    "RSA with exponent 3",
    "P-256",
    "P-384",
    "P-521",
    "Ed25519",
];

fn bases(program: &Program) -> Vec<Base> {
    KINDS
        .iter()
        .filter_map(|(name, options)| {
            let key = program.key(options)?;
            Some(Base { name, cert: program.certificate(&key, &[])?, key })
        })
        .collect()
}

/// A pair of every kind that PingSIX takes.
pub(super) fn kinds(program: &Program) -> Vec<Odd> {
    bases(program).iter().map(|Base { name, cert, key }| Odd::new(*name, cert, key)).collect()
}

/// All material.
pub(super) fn all(program: Option<&Program>) -> Vec<Odd> {
    let own = [
        generated("own P-256", &rcgen::PKCS_ECDSA_P256_SHA256),
        generated("own P-384", &rcgen::PKCS_ECDSA_P384_SHA384),
        generated("own Ed25519", &rcgen::PKCS_ED25519),
    ];
    let mut all: Vec<Odd> = own.iter().map(|Base { name, cert, key }| Odd::sound(*name, cert, key)).collect();
    let mut bases_of_all = own.to_vec();
    if let Some(program) = program {
        let made = bases(program);
        for Base { name, cert, key } in &made {
            all.push(Odd { is_sound: SOUND.contains(name), ..Odd::new(*name, cert, key) });
        }
        all.extend(made.iter().flat_map(|base| containers(program, base)));
        bases_of_all.extend(made);
        all.extend(others(program));
    }
    all.extend(foreign(&bases_of_all));
    let picked = |name: &str| bases_of_all.iter().find(|base| base.name == name);
    for base in ["own P-256", "own Ed25519", "RSA 2048"].iter().filter_map(|name| picked(name)) {
        all.extend(texts(base, &own[1]));
        all.extend(shapes(base));
        all.extend(mutations(base));
    }
    all.extend(elliptic(&own[0], &generated("other P-256", &rcgen::PKCS_ECDSA_P256_SHA256)));
    all.extend(edwards(&own[2], &generated("other Ed25519", &rcgen::PKCS_ED25519)));
    if let (Some(one), Some(program)) = (picked("RSA 2048"), program)
        && let Some(other) = program.key(KINDS[3].1)
    {
        all.extend(rsa(one, &other));
    }
    all
}

/// Every key beside every other certificate.
fn foreign(bases: &[Base]) -> Vec<Odd> {
    let mut all = Vec::new();
    for one in bases {
        for other in bases.iter().filter(|other| other.name != one.name) {
            all.push(Odd::new(
                format!("a certificate of {} with a key of {}", one.name, other.name),
                &one.cert,
                &other.key,
            ));
        }
    }
    for (what, algorithm) in [
        ("P-256", &rcgen::PKCS_ECDSA_P256_SHA256),
        ("P-384", &rcgen::PKCS_ECDSA_P384_SHA384),
        ("Ed25519", &rcgen::PKCS_ED25519),
    ] {
        let (one, other) = (generated(what, algorithm), generated(what, algorithm));
        all.push(Odd::new(format!("the {what} key of another certificate"), &one.cert, &other.key));
    }
    all
}

/// The ways in which a key can be written.
fn containers(program: &Program, Base { name, cert, key }: &Base) -> Vec<Odd> {
    let mut all = Vec::new();
    let mut add = |what: &str, is_sound: bool, text: Option<String>| {
        if let Some(text) = text {
            let is_sound = is_sound && SOUND.contains(name);
            all.push(Odd { is_sound, ..Odd::new(format!("{name}, {what}"), cert, &text) });
        }
    };
    add("the older form", true, program.convert(&["pkey", "-traditional"], key));
    add("encrypted", false, program.convert(&["pkey", "-aes256", "-passout", "pass:secret"], key));
    add(
        "the older form encrypted",
        false,
        program.convert(&["pkey", "-traditional", "-aes256", "-passout", "pass:secret"], key),
    );
    add("encrypted with no password", false, program.convert(&["pkey", "-aes256", "-passout", "pass:"], key));
    add("with its numbers in words", true, program.convert(&["pkey", "-text"], key));
    add("without a public key", true, program.convert(&["ec", "-no_public"], key));
    add("compressed", true, program.convert(&["ec", "-conv_form", "compressed"], key));
    add("hybrid", false, program.convert(&["ec", "-conv_form", "hybrid"], key));
    add("with a curve spelled out", false, program.convert(&["ec", "-param_enc", "explicit"], key));
    if let Some(parameters) = program.convert(&["ec", "-param_out"], key)
        && let Some(traditional) = program.convert(&["ec"], key)
        && parameters.contains("EC PARAMETERS")
    {
        add("parameters first", true, Some(format!("{parameters}{traditional}")));
    }
    let public = program.convert(&["pkey", "-pubout"], key);
    add("the public key alone", false, public.clone());
    add("the public key first", true, public.map(|public| format!("{public}{key}")));
    all
}

/// Keys of kinds that sign nothing, or are found elsewhere.
fn others(program: &Program) -> Vec<Odd> {
    let Base { cert, .. } = generated("P-256", &rcgen::PKCS_ECDSA_P256_SHA256);
    let mut all = Vec::new();
    for algorithm in ["X25519", "X448"] {
        if let Some(key) = program.key(&["-algorithm", algorithm]) {
            all.push(Odd::new(format!("a key for {algorithm}"), &cert, &key));
        }
    }
    let parameters = program.convert(&["dsaparam", "1024"], "");
    if let Some(key) =
        parameters.and_then(|parameters| program.convert(&["gendsa", "/dev/stdin"], &parameters))
    {
        if let Some(own) = program.certificate(&key, &[]) {
            all.push(Odd::new("DSA", &own, &key));
            if let Some(older) = program.convert(&["pkey", "-traditional"], &key) {
                all.push(Odd::new("DSA, the older form", &own, &older));
                all.push(Odd::new("another's key of DSA, the older form", &cert, &older));
            }
        }
        all.push(Odd::new("another's key of DSA", &cert, &key));
    }
    all.push(Odd::new(
        "a text with the label of DSA",
        &cert,
        "-----BEGIN DSA PRIVATE KEY-----\nMAA=\n-----END DSA PRIVATE KEY-----\n",
    ));
    for digest in ["-md5", "-sha1", "-sha512"] {
        let key = program.key(KINDS[3].1);
        if let Some(key) = key
            && let Some(own) = program.certificate(&key, &[digest])
        {
            all.push(Odd { is_sound: true, ..Odd::new(format!("signed with {digest}"), &own, &key) });
        }
    }
    all
}
