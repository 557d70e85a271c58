//! Which certificate a data plane shows for a name that several listeners want.

use serde_json::{Value, json};

use crate::fixture::pem::pair;
use crate::fixture::{add_certificate, gateway, https, run};
use crate::options::{Layout, Options};
use crate::pingsix::validate::{ValidateOptions, validate};
use crate::snapshot::Objects;
use crate::translation::{DataPlane, Translation};
use crate::verdict::{ConditionType, Reason};

/// Certificates `a` for `a.test`, `b` for `b.test` and `ab` for both, and these listeners.
fn objects(listeners: &[Value]) -> Objects {
    let mut objects = gateway(&json!(listeners));
    add_certificate(&mut objects, "a", &pair(&["a.test"]));
    add_certificate(&mut objects, "b", &pair(&["b.test"]));
    add_certificate(&mut objects, "ab", &pair(&["a.test", "b.test"]));
    objects
}

/// Every name with the Secret whose certificate is shown, as `a.test=ab`, for each data plane.
fn shown(objects: &Objects, translation: &Translation) -> Vec<Vec<String>> {
    let snapshot = crate::fixture::snapshot(objects);
    let secret_of = |cert: &str| {
        let mut secrets = snapshot.referents.secrets.iter();
        let found = secrets.find(|(_, secret)| secret.string_data.as_ref().unwrap()["tls.crt"] == cert);
        found.unwrap().0.name.clone()
    };
    let describe = |plane: &DataPlane| {
        let mut names: Vec<String> = plane
            .config
            .ssls()
            .map(|(_, ssl)| format!("{}={}", ssl.snis.join(","), secret_of(&ssl.cert)))
            .collect();
        names.sort();
        names
    };
    translation.data_planes.values().map(describe).collect()
}

fn limits(translation: &Translation) -> Vec<String> {
    let listeners = &translation.verdicts.gateway.as_ref().unwrap().listeners;
    let limited = listeners.iter().filter_map(|listener| {
        let condition = listener.conditions.get(ConditionType::Limited)?;
        assert_eq!(condition.reason, Reason::Limited);
        Some(format!("{}: {}", listener.name, condition.message))
    });
    limited.collect()
}

fn check(listeners: &[Value], layout: Layout, expected: &[&[&str]], limited: &[&str]) {
    let objects = objects(listeners);
    let translation = run(&objects, &Options { layout, ..Options::default() });
    assert_eq!(shown(&objects, &translation), expected);
    assert_eq!(limits(&translation), limited);
    // PingSIX would refuse a name that stands twice.
    for data_plane in translation.data_planes.values() {
        let found = validate(&data_plane.config, &ValidateOptions::default());
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn the_first_of_several_ports_provides_a_name() {
    let listeners = [https("one", 443, Some("a.test"), &["a"]), https("two", 8443, Some("a.test"), &["ab"])];
    check(
        &listeners,
        Layout::Shared,
        &[&["a.test=a"]],
        &[
            "two: spec.listeners[1].tls.certificateRefs[0]: The certificate of Secret infra/ab is not shown for a.test, \
           because PingSIX takes one per name, on whatever port, and listener \"one\" on port 443 provides it; use \
           layout perPort.",
        ],
    );
    check(&listeners, Layout::PerPort, &[&["a.test=a"], &["a.test=ab"]], &[]);
}

#[test]
fn the_same_certificate_twice_is_nothing_to_tell() {
    check(
        &[https("one", 443, None, &["a"]), https("two", 8443, None, &["a"])],
        Layout::Shared,
        &[&["*=a"]],
        &[],
    );
}

/// Whatever their order.
#[test]
fn the_listener_that_a_request_selects_provides_its_certificate() {
    let any = https("any", 443, None, &["ab", "b"]);
    let own = https("own", 443, Some("a.test"), &["a"]);
    let expected: &[&[&str]] = &[&["*=ab", "a.test=a", "b.test=ab"]];
    let not_shown = |index: usize| {
        format!(
            "any: spec.listeners[{index}].tls.certificateRefs[1]: The certificate of Secret infra/b is not shown, \
             because earlier ones are for each of its names too."
        )
    };
    check(&[any.clone(), own.clone()], Layout::PerPort, expected, &[&not_shown(0)]);
    check(&[own, any], Layout::PerPort, expected, &[&not_shown(1)]);
}

#[test]
fn a_certificate_for_hosts_of_another_listener_alone_is_not_shown() {
    check(
        &[https("any", 443, None, &["b", "a"]), https("own", 443, Some("a.test"), &["ab"])],
        Layout::PerPort,
        &[&["*=b", "a.test=ab", "b.test=b"]],
        &[
            "any: spec.listeners[0].tls.certificateRefs[1]: The certificate of Secret infra/a is not shown, because \
           each of its names selects a more specific listener.",
        ],
    );
}

/// No exact name of a wider listener reaches into a narrower one.
#[test]
fn a_name_within_the_hostname_of_another_listener_is_not_shown() {
    let narrow = https("narrow", 443, Some("*.test"), &["a"]);
    let wide = |port| https("wide", port, None, &["ab", "a"]);
    let not_shown = "wide: spec.listeners[0].tls.certificateRefs[1]: The certificate of Secret infra/a is not shown, \
                     because earlier ones are for each of its names too.";
    check(&[wide(443), narrow.clone()], Layout::Shared, &[&["*.test=a", "*=ab"]], &[not_shown]);
    check(
        &[wide(8443), narrow],
        Layout::Shared,
        &[&["*.test=a", "*=ab", "a.test=ab", "b.test=ab"]],
        &[not_shown],
    );
}

#[test]
fn an_id_is_a_function_of_the_name() {
    let ids = |listeners: &[Value]| {
        let translation = run(&objects(listeners), &Options::default());
        let plane = translation.data_planes.into_values().next().unwrap();
        let mut ids: Vec<(String, String)> =
            plane.config.ssls().map(|(key, ssl)| (ssl.snis.join(","), key.id.clone())).collect();
        ids.sort();
        ids
    };
    let one = https("one", 443, Some("a.test"), &["a"]);
    let two = https("two", 443, Some("b.test"), &["b"]);
    let both = ids(&[one.clone(), two.clone()]);
    assert_eq!(ids(&[two, one]), both);
    // Another certificate, and another listener with more names: the document of a name stays where it is.
    assert_eq!(ids(&[https("other", 443, Some("a.test"), &["ab"])]), both[..1]);
    assert!(ids(&[https("any", 443, None, &["b", "a"])]).contains(&both[0]));
}
