//! The certificate of a listener for each name, and the messages about the other certificates.

use serde_json::{Value, json};

use crate::fixture::pem::{chain, pair};
use crate::fixture::{add_certificate, gateway, https, run};
use crate::model::{ConditionType, Options, Reason, Severity};
use crate::snapshot::Objects;
use crate::status::Verdicts;

/// A listener with one certificate per set of names, called `c0`, `c1` and so on.
fn objects(hostname: Option<&str>, certificates: &[&[&str]]) -> Objects {
    let secrets: Vec<String> = (0..certificates.len()).map(|index| format!("c{index}")).collect();
    let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
    let mut objects = gateway(&json!([https("a", 443, hostname, &secrets)]));
    for (secret, names) in secrets.iter().zip(certificates) {
        add_certificate(&mut objects, secret, &pair(names));
    }
    objects
}

/// Each name with the certificate that is shown for it, as `a.test=c0`.
fn shown(hostname: Option<&str>, certificates: &[&[&str]]) -> Vec<String> {
    let objects = objects(hostname, certificates);
    let snapshot = crate::fixture::snapshot(&objects);
    let text = |name: &crate::model::ObjectName| {
        let data = snapshot.referents.secrets[name].string_data.clone().unwrap();
        data["tls.crt"].clone()
    };
    let translation = run(&objects, &Options::default());
    let mut shown: Vec<String> = translation
        .data_planes
        .values()
        .flat_map(|data_plane| data_plane.config.ssls())
        .flat_map(|(_, ssl)| {
            let secret = snapshot.referents.secrets.keys().find(|name| text(name) == ssl.cert).unwrap();
            ssl.snis.iter().map(|name| format!("{name}={}", secret.name)).collect::<Vec<_>>()
        })
        .collect();
    shown.sort();
    shown
}

/// The limitations of the first listener, which the condition and the problems agree on.
fn limitations(verdicts: &Verdicts) -> Vec<String> {
    let problems: Vec<String> = verdicts
        .problems
        .iter()
        .filter(|problem| problem.reason == Reason::Limited && problem.severity == Severity::Warning)
        .map(|problem| format!("{}: {}", problem.field, problem.message))
        .collect();
    let condition = verdicts.gateway.as_ref().unwrap().listeners[0].conditions.get(ConditionType::Limited);
    assert_eq!(condition.map(|condition| condition.message.clone()).unwrap_or_default(), problems.join(" "));
    assert!(condition.is_none_or(|condition| condition.observed_generation == 7));
    problems.iter().map(|text| text.trim_start_matches("spec.listeners[0].tls.").to_owned()).collect()
}

fn limits_of(hostname: Option<&str>, certificates: &[&[&str]]) -> Vec<String> {
    limitations(&run(&objects(hostname, certificates), &Options::default()).verdicts)
}

#[test]
fn a_single_certificate_is_shown_for_a_hostname_that_it_does_not_cover() {
    assert_eq!(shown(None, &[&["a.test", "b.test"]]), ["*=c0"]);
    assert_eq!(shown(Some("*.test"), &[&["a.test"]]), ["*.test=c0"]);
    assert_eq!(shown(Some("A.test"), &[&["b.test"]]), ["a.test=c0"]);
    assert_eq!(limits_of(Some("a.test"), &[&["b.test"]]), [""; 0]);
}

#[test]
fn several_certificates_are_shown_for_their_names_within_the_hostname() {
    let two: [&[&str]; 2] = [&["a.x.test", "b.test"], &["*.x.test", "*.y.test"]];
    assert_eq!(shown(Some("*.x.test"), &two), ["*.x.test=c1", "a.x.test=c0"]);
    assert_eq!(shown(None, &two), ["*.x.test=c1", "*.y.test=c1", "*=c0", "a.x.test=c0", "b.test=c0"]);
    assert_eq!(shown(Some("a.x.test"), &two), ["a.x.test=c0"]);
    assert_eq!(shown(Some("c.x.test"), &two), ["c.x.test=c1"]);
}

#[test]
fn the_first_certificate_is_shown_for_the_hostname_if_no_other_is() {
    assert_eq!(shown(Some("*.test"), &[&["a.test"], &["b.test"]]), ["*.test=c0", "a.test=c0", "b.test=c1"]);
    assert_eq!(shown(Some("a.test"), &[&["b.test"], &["c.test"]]), ["a.test=c0"]);
    assert_eq!(shown(Some("a.test"), &[&["b.test"], &["a.test"]]), ["a.test=c1"]);
}

#[test]
fn a_wildcard_of_a_certificate_stands_for_one_label() {
    let two: [&[&str]; 2] = [&["z.test"], &["*.test"]];
    assert_eq!(shown(Some("a.test"), &two), ["a.test=c1"]);
    assert_eq!(shown(Some("a.b.test"), &two), ["a.b.test=c0"]);
    assert_eq!(shown(Some("*.b.test"), &two), ["*.b.test=c0"]);
    assert_eq!(shown(Some("test"), &two), ["test=c0"]);
}

#[test]
fn a_certificate_that_is_not_shown_is_named() {
    assert_eq!(
        limits_of(Some("*.x.test"), &[&["a.x.test"], &["a.test"], &["a.x.test", "x.test"], &["b.x.test"]]),
        [
            "certificateRefs[1]: The certificate of Secret infra/c1 is not shown, because it is for no name within \
             the hostname of the listener.",
            "certificateRefs[2]: The certificate of Secret infra/c2 is not shown, because earlier ones are for each \
             of its names too.",
        ]
    );
}

#[test]
fn a_certificate_that_cannot_be_used_does_not_count() {
    let mut objects = gateway(&json!([https("a", 443, Some("*.test"), &["missing", "cert"])]));
    add_certificate(&mut objects, "cert", &pair(&["a.test"]));
    let translation = run(&objects, &Options::default());
    let ssls: Vec<_> = translation.data_planes.values().flat_map(|one| one.config.ssls()).collect();
    assert_eq!(ssls.len(), 1);
    assert_eq!(ssls[0].1.snis, ["*.test"]);
}

#[test]
fn a_chain_with_an_intermediate_certificate_is_limited() {
    let [leaf, intermediate, root] = chain(&["a.test"]);
    let with = |others: &str| {
        let mut objects = gateway(&json!([https("a", 443, Some("a.test"), &["cert"])]));
        let cert = format!("{}{others}", leaf.cert);
        add_certificate(&mut objects, "cert", &crate::fixture::pem::Pair { cert, key: leaf.key.clone() });
        limitations(&run(&objects, &Options::default()).verdicts)
    };
    assert_eq!(
        with(&intermediate.cert),
        [
            "certificateRefs[0]: PingSIX sends the first certificate of Secret infra/cert only, so clients that do not \
          know its issuer, an intermediate authority, cannot verify it."
        ]
    );
    assert_eq!(with(&root.cert), [""; 0]);
}

#[test]
fn options_are_named_and_not_looked_at() {
    let with = |options: Value, secrets: &[&str]| {
        let mut listener = https("a", 443, None, secrets);
        listener["tls"]["options"] = options;
        let mut objects = gateway(&json!([listener]));
        add_certificate(&mut objects, "cert", &pair(&["a.test"]));
        limitations(&run(&objects, &Options::default()).verdicts)
    };
    assert_eq!(
        with(json!({"example.com/min": "1.3", "example.com/ciphers": "x"}), &["cert"]),
        [
            "options: There are no options for TLS, so these are not looked at: example.com/ciphers, example.com/min."
        ]
    );
    assert_eq!(with(json!({}), &["cert"]), [""; 0]);
    // A listener that is not served has other conditions.
    assert_eq!(with(json!({"example.com/min": "1.3"}), &["missing"]), [""; 0]);
}
