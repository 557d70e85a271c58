//! The certificate for a name that several listeners want.

use serde_json::{Value, json};

use super::*;
use crate::fixture::pem::pair;
use crate::fixture::{add_certificate, add_listener_set, allow_listener_sets, gateway, https, object, run};
use crate::lower::DataPlane;
use crate::model::{ConditionType, Layout, Options, Reason};
use crate::pingsix::listed_bytes;
use crate::pingsix::validate::{ValidateOptions, validate};
use crate::pipeline::Translation;
use crate::snapshot::{Object, Objects};

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
            .flat_map(|(_, ssl)| ssl.snis.iter().map(|name| format!("{name}={}", secret_of(&ssl.cert))))
            .collect();
        names.sort();
        names
    };
    translation.data_planes.values().map(describe).collect()
}

fn limitations(translation: &Translation) -> Vec<String> {
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
    assert_eq!(limitations(&translation), limited);
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

/// Independent of their order.
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

/// The names of each document with its id, of all data planes.
fn documents(objects: &Objects) -> Vec<(String, String)> {
    let translation = run(objects, &Options { layout: Layout::PerPort, ..Options::default() });
    let planes = translation.data_planes.into_values();
    let mut documents: Vec<(String, String)> = planes
        .flat_map(|plane| {
            let ssls = plane.config.ssls();
            ssls.map(|(key, ssl)| (ssl.snis.join(","), key.id.clone())).collect::<Vec<_>>()
        })
        .collect();
    documents.sort();
    documents
}

#[test]
fn a_certificate_has_one_document_with_all_its_names() {
    let one = https("one", 443, Some("a.test"), &["ab"]);
    let two = https("two", 443, Some("b.test"), &["ab"]);
    let any = https("any", 443, None, &["ab", "b"]);
    let both = documents(&objects(&[one.clone(), two.clone()]));
    assert_eq!(both.iter().map(|(names, _)| &**names).collect::<Vec<_>>(), ["a.test,b.test"]);
    // The id depends neither on the names nor on the order of listeners.
    assert_eq!(documents(&objects(&[two.clone(), one.clone()])), both);
    assert_eq!(documents(&objects(std::slice::from_ref(&one)))[0].1, both[0].1);
    assert_eq!(documents(&objects(&[any]))[0], ("*,a.test,b.test".to_owned(), both[0].1.clone()));
    assert_ne!(documents(&objects(&[https("one", 443, Some("a.test"), &["a"])]))[0].1, both[0].1);
}

#[test]
fn a_certificate_that_two_namespaces_show_has_a_document_in_each() {
    let mut objects = objects(&[https("one", 443, Some("a.test"), &["ab"])]);
    allow_listener_sets(&mut objects);
    for namespace in ["shop", "infra"] {
        let listener = json!([{
            "name": "l", "port": 443, "protocol": "HTTPS", "hostname": format!("{namespace}.test"),
            "tls": {"certificateRefs": [{"name": "ab", "namespace": "infra"}]},
        }]);
        add_listener_set(&mut objects, (namespace, "s"), 1, &listener);
    }
    objects.insert(Object::ReferenceGrant(object(json!({
        "metadata": {"namespace": "infra", "name": "g"},
        "spec": {
            "from": [{"group": "gateway.networking.k8s.io", "kind": "ListenerSet", "namespace": "shop"}],
            "to": [{"group": "", "kind": "Secret"}],
        },
    }))));
    let documents = documents(&objects);
    assert_eq!(
        documents.iter().map(|(names, _)| &**names).collect::<Vec<_>>(),
        ["a.test,infra.test", "shop.test"]
    );
    assert_ne!(documents[0].1, documents[1].1);
}

#[test]
fn the_size_of_a_document_is_known_before_it_is_built() {
    let objects =
        objects(&[https("any", 443, None, &["ab", "b"]), https("own", 443, Some("*.c.test"), &["a"])]);
    let snapshot = crate::fixture::snapshot(&objects);
    let translation = run(&objects, &Options::default());
    let plane = translation.data_planes.values().next().unwrap();
    let references = crate::references::References::new(&snapshot.referents);
    for (key, ssl) in plane.config.ssls() {
        let Provenance::Certificate { secret, by } = &plane.provenance[key] else { panic!("{key}") };
        let certificate =
            references.certificate_of(secret.name.clone(), &by[0].field(), &by[0].field()).unwrap();
        let names = ssl.snis.iter().map(|name| match &**name {
            "*" => ServerName::Any,
            name => ServerName::Named(Hostname::parse(name).unwrap()),
        });
        let known = certificate.listed_bytes() + names.map(|name| name.listed_bytes()).sum::<usize>();
        assert_eq!(known, listed_bytes(key, plane.config.get_lazy(key).unwrap()), "{key}");
    }
    assert_eq!(plane.config.ssls().count(), 2);
}

#[test]
fn names_beyond_the_bytes_of_a_document_are_not_shown_and_counted() {
    let key = |name: &str| SslKey { namespace: "shop".into(), secret: ObjectName::new("shop", name) };
    let mut bytes = NameBytes::default();
    let mut beyond = FirstNames::default();
    for index in 0..2_000 {
        let name = Hostname::parse(&format!("n{index:04}.{}.test", ["a"; 120].join("."))).unwrap();
        let name = ServerName::Named(name);
        if !bytes.take(&key("a"), &name) {
            beyond.add(&name);
        }
        assert!(index > 0 || bytes.take(&key("b"), &name));
    }
    // 250 characters, quotes and a comma.
    assert_eq!(beyond.count, 2_000 - bounds::NAME_BYTES / 253);
    assert!(beyond.to_string().ends_with(&format!(" and {} others", beyond.count - 8)));
}
