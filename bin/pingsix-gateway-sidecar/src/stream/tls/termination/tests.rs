use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A document for a name.
fn document(name: &str) -> Vec<u8> {
    let pair = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    json!({"cert": pair.cert.pem(), "key": pair.signing_key.serialize_pem()}).to_string().into_bytes()
}

fn faults(terminations: &Terminations) -> Vec<String> {
    terminations.faults().map(|(key, message)| format!("{key}: {message}")).collect()
}

/// Configurations of routes that began with a document for each certificate.
fn three_routes() -> (Terminations, [Arc<Termination>; 3]) {
    let mut terminations = Terminations::default();
    for id in ["a", "b"] {
        terminations.set_certificate(id, &document("a.test")).unwrap();
    }
    let mut route = |key, ids: &[&str]| {
        terminations.set_route(key, ids.iter().map(|id| (*id).to_owned()).collect()).unwrap()
    };
    let routes = [route("one", &["a"]), route("two", &["a", "b"]), route("three", &["b"])];
    terminations.refresh();
    (terminations, routes)
}

#[test]
fn a_changed_certificate_concerns_its_routes_alone() {
    let (mut terminations, routes) = three_routes();
    let before = routes.each_ref().map(|route| route.config().unwrap());
    let shown = |config: &Arc<ServerConfig>| format!("{:?}", config.cert_resolver);
    terminations.set_certificate("a", &document("a.test")).unwrap();
    terminations.refresh();
    let after = routes.each_ref().map(|route| route.config().unwrap());
    for (index, changes) in [true, true, false].into_iter().enumerate() {
        assert_eq!(!Arc::ptr_eq(&before[index], &after[index]), changes, "{index}");
        assert_eq!(shown(&before[index]) != shown(&after[index]), changes, "{index}");
        assert_eq!(!Arc::ptr_eq(&before[index].ticketer, &after[index].ticketer), changes, "{index}");
    }
    assert!(terminations.stale.is_empty());
}

#[test]
fn a_route_with_the_same_certificates_keeps_its_ticket_key_and_shares_it_with_none() {
    let (mut terminations, [one, two, three]) = three_routes();
    let ticketer = |route: &Termination| Arc::clone(&route.config().unwrap().ticketer);
    let before = ticketer(&one);
    assert!(!Arc::ptr_eq(&before, &ticketer(&two)) && !Arc::ptr_eq(&before, &ticketer(&three)));
    assert!(before.enabled());

    let same = terminations.set_route("one", vec!["a".to_owned()]).unwrap();
    terminations.set_route("two", vec!["b".to_owned()]);
    terminations.remove_route("three");
    terminations.set_certificate("c", &document("c.test")).unwrap();
    terminations.refresh();
    assert!(Arc::ptr_eq(&one, &same) && Arc::ptr_eq(&before, &ticketer(&one)));
    // Connections that have chosen the former routes finish with these.
    assert!(two.config().is_some() && three.config().is_some());

    let other = terminations.set_route("one", vec!["b".to_owned()]).unwrap();
    terminations.refresh();
    assert!(!Arc::ptr_eq(&before, &ticketer(&other)));
}

#[test]
fn a_ticket_of_one_route_is_nothing_to_another() {
    let (_, [one, two, _]) = three_routes();
    let (one, two) = (one.config().unwrap(), two.config().unwrap());
    let ticket = one.ticketer.encrypt(b"a session").unwrap();
    assert_eq!(one.ticketer.decrypt(&ticket).unwrap(), b"a session");
    assert_eq!(two.ticketer.decrypt(&ticket), None);
}

#[test]
fn a_route_without_one_of_its_certificates_has_no_configuration() {
    let (mut terminations, [one, two, three]) = three_routes();
    let has = || [&one, &two, &three].map(|route| route.config().is_some());
    terminations.remove_certificate("b");
    terminations.refresh();
    assert_eq!(has(), [true, false, false]);
    assert_eq!(
        faults(&terminations),
        [
            "three: ssl_ids: There is no usable document ssls/b.",
            "two: ssl_ids: There is no usable document ssls/b."
        ]
    );
    terminations.set_certificate("b", b"{}").unwrap_err();
    terminations.refresh();
    assert_eq!(has(), [true, false, false]);
    terminations.set_certificate("b", &document("b.test")).unwrap();
    terminations.remove_route("two");
    terminations.refresh();
    assert_eq!((has(), faults(&terminations).len()), ([true, false, true], 0));
    for key in ["one", "three"] {
        terminations.remove_route(key);
    }
    assert!(terminations.users.is_empty() && terminations.routes.is_empty());
}

/// Documents for the property below; the last one cannot be used.
static DOCUMENTS: LazyLock<[Vec<u8>; 3]> =
    LazyLock::new(|| [document("a.test"), document("b.test"), b"{}".to_vec()]);

/// By id, the index of a document.
type Certificates = BTreeMap<u8, usize>;
/// By key, the ids of certificates.
type Routes = BTreeMap<u8, Vec<u8>>;

fn ids(written: &[u8]) -> Vec<String> {
    written.iter().map(ToString::to_string).collect()
}

fn apply(terminations: &mut Terminations, before: &(Certificates, Routes), after: &(Certificates, Routes)) {
    for id in 0..3 {
        match (before.0.get(&id), after.0.get(&id)) {
            (former, Some(now)) if former != Some(now) => {
                let _ = terminations.set_certificate(&id.to_string(), &DOCUMENTS[*now]);
            }
            (Some(_), None) => terminations.remove_certificate(&id.to_string()),
            (_, Some(_)) | (None, None) => {}
        }
    }
    for key in 0..4 {
        match (before.1.get(&key), after.1.get(&key)) {
            (_, Some(now)) => _ = terminations.set_route(&key.to_string(), ids(now)),
            (Some(_), None) => terminations.remove_route(&key.to_string()),
            (None, None) => {}
        }
    }
    terminations.refresh();
}

/// The certificates of each route, by its key.
fn shown(terminations: &Terminations) -> BTreeMap<String, Option<String>> {
    let shown = |route: &Termination| Some(format!("{:?}", route.config()?.cert_resolver));
    terminations.routes.iter().map(|(key, route)| (key.clone(), shown(route))).collect()
}

/// The keys of routes with a ticket key, each with that.
fn tickets(terminations: &Terminations) -> BTreeMap<String, Arc<dyn rustls::server::ProducesTickets>> {
    let ticketer = |route: &Termination| Some(Arc::clone(&route.config()?.ticketer));
    let routes = terminations.routes.iter();
    routes.filter_map(|(key, route)| Some((key.clone(), ticketer(route)?))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changes_end_where_a_rebuild_does_and_keep_the_ticket_keys_of_others(
        worlds in prop::collection::vec(
            (
                prop::collection::btree_map(0..3_u8, 0..3_usize, 0..4),
                prop::collection::btree_map(0..4_u8, prop::sample::subsequence(vec![0, 1, 2_u8], 1..3), 0..5),
            ),
            1..5,
        )
    ) {
        let mut changed = Terminations::default();
        let mut before = (Certificates::new(), Routes::new());
        for world in worlds {
            let former = tickets(&changed);
            apply(&mut changed, &before, &world);
            let mut rebuilt = Terminations::default();
            apply(&mut rebuilt, &Default::default(), &world);
            prop_assert_eq!(shown(&changed), shown(&rebuilt));
            prop_assert_eq!(faults(&changed), faults(&rebuilt));
            prop_assert_eq!(&changed.users, &rebuilt.users);
            for (key, ticketer) in tickets(&changed) {
                let is_kept = former.get(&key).is_some_and(|former| Arc::ptr_eq(former, &ticketer));
                let number: u8 = key.parse().unwrap();
                let same = |id: &u8| before.0.get(id) == world.0.get(id);
                let is_same = before.1.get(&number) == world.1.get(&number) && world.1[&number].iter().all(same);
                prop_assert_eq!(is_kept, is_same, "route {}", key);
            }
            before = world;
        }
    }
}

#[test]
fn unusable_documents_are_named_and_never_quoted() {
    let read = |value: &[u8]| Terminations::default().set_certificate("s", value);
    let good: serde_json::Value = serde_json::from_slice(&document("a.test")).unwrap();
    let other: serde_json::Value = serde_json::from_slice(&document("a.test")).unwrap();
    let with = |field: &str, value: serde_json::Value| {
        let mut changed = good.clone();
        changed[field] = value;
        read(changed.to_string().as_bytes()).unwrap_err()
    };
    assert_eq!(read(br#"{"cert":"","key":"hush","more":1}"#), Err("The document cannot be decoded."));
    assert_eq!(read(br#"{"cert":"","key":7}"#), Err("The document cannot be decoded."));
    assert!(with("cert", json!("")).starts_with("cert: "));
    assert!(with("cert", good["key"].clone()).starts_with("cert: "));
    assert!(with("cert", json!("-----BEGIN CERTIFICATE-----\nhush")).starts_with("cert: "));
    let broken = "-----BEGIN CERTIFICATE-----\naHVzaA==\n-----END CERTIFICATE-----\n";
    let chain = format!("{}{broken}", good["cert"].as_str().unwrap());
    assert!(with("cert", json!(chain)).starts_with("cert: "));
    assert!(with("key", json!("hush")).starts_with("key: "));
    assert!(with("key", json!(broken.replace("CERTIFICATE", "PRIVATE KEY"))).starts_with("key: "));
    assert!(with("key", other["key"].clone()).starts_with("key: "));
}

#[test]
fn debug_shows_no_key() {
    let (terminations, routes) = three_routes();
    let config = routes[0].config().unwrap();
    let text = format!("{terminations:?} {routes:?} {config:?} {:?}", terminations.certificates);
    // The key of P-256 in DER begins with its version, and the scalar follows.
    let ssl: serde_json::Value = serde_json::from_slice(&document("a.test")).unwrap();
    let key = ssl["key"].as_str().unwrap();
    let mut other = Terminations::default();
    other.set_certificate("s", ssl.to_string().as_bytes()).unwrap();
    let certificate = format!("{:?} {other:?}", other.certificates);
    for line in key.lines() {
        assert!(!certificate.contains(line), "{line}");
    }
    let der = <rustls::pki_types::PrivateKeyDer<'_> as rustls::pki_types::pem::PemObject>::from_pem_slice(
        key.as_bytes(),
    );
    let der = der.unwrap();
    let scalar = &der.secret_der()[36..52];
    let (decimal, hex): (Vec<String>, Vec<String>) =
        scalar.iter().map(|byte| (byte.to_string(), format!("{byte:02x}"))).unzip();
    for shown in [decimal.join(", "), hex.concat()] {
        assert!(!certificate.contains(&shown) && !text.contains(&shown));
    }
}
