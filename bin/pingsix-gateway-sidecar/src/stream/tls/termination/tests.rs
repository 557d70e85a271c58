use std::sync::LazyLock;

use pingsix_translate::stream::ClientAuthMode;
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A document for a name.
fn document(name: &str) -> Vec<u8> {
    let pair = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    json!({"cert": pair.cert.pem(), "key": pair.signing_key.serialize_pem()}).to_string().into_bytes()
}

/// A document of authorities with these names.
fn authorities(names: &[&str]) -> Vec<u8> {
    let certificates = names.iter().map(|name| rcgen::generate_simple_self_signed([(*name).to_owned()]));
    let certs: String = certificates.map(|pair| pair.unwrap().cert.pem()).collect();
    json!({ "certs": certs }).to_string().into_bytes()
}

fn owned(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

/// Settings with these certificates alone.
fn settings(ids: &[&str]) -> Settings {
    Settings { certificates: owned(ids), protocols: Vec::new(), clients: None }
}

/// Settings with the certificate `a` and these authorities.
fn with_authorities(mode: ClientAuthMode, ids: &[&str]) -> Settings {
    Settings { clients: Some(ClientAuth { mode, ca_ids: owned(ids) }), ..settings(&["a"]) }
}

fn errors(terminations: &Terminations) -> Vec<String> {
    terminations.errors().map(|(key, message)| format!("{key}: {message}")).collect()
}

/// Configurations of routes that began with a document for each certificate.
fn three_routes() -> (Terminations, [Arc<Termination>; 3]) {
    let mut terminations = Terminations::default();
    for id in ["a", "b"] {
        terminations.set_certificate(id, &document("a.test")).unwrap();
    }
    let mut route = |key, ids: &[&str]| terminations.set_route(key, settings(ids));
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
fn a_route_keeps_its_own_ticket_key_while_its_certificates_stay() {
    let (mut terminations, [one, two, three]) = three_routes();
    let ticketer = |route: &Termination| Arc::clone(&route.config().unwrap().ticketer);
    let before = ticketer(&one);
    assert!(!Arc::ptr_eq(&before, &ticketer(&two)) && !Arc::ptr_eq(&before, &ticketer(&three)));
    assert!(before.enabled());

    let same = terminations.set_route("one", settings(&["a"]));
    terminations.set_route("two", settings(&["b"]));
    terminations.remove_route("three");
    terminations.set_certificate("c", &document("c.test")).unwrap();
    terminations.refresh();
    assert!(Arc::ptr_eq(&one, &same) && Arc::ptr_eq(&before, &ticketer(&one)));
    // Connections that have chosen the former routes finish with these.
    assert!(two.config().is_some() && three.config().is_some());

    let other = terminations.set_route("one", settings(&["b"]));
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
fn a_route_that_asks_for_client_certificates_resumes_no_session() {
    let (mut terminations, [one, ..]) = three_routes();
    terminations.set_authorities("c", &authorities(&["root"])).unwrap();
    let before = Arc::clone(&one.config().unwrap().ticketer);
    let ticket = before.encrypt(b"a session").unwrap();
    for mode in [ClientAuthMode::RequireAndVerify, ClientAuthMode::Request] {
        let route = terminations.set_route("one", with_authorities(mode, &["c"]));
        terminations.refresh();
        assert!(!route.config().unwrap().ticketer.enabled());
    }
    let route = terminations.set_route("one", settings(&["a"]));
    terminations.refresh();
    assert_eq!(route.config().unwrap().ticketer.decrypt(&ticket), None);
}

#[test]
fn a_route_without_one_of_its_authorities_has_no_configuration() {
    let (mut terminations, _) = three_routes();
    let route = terminations.set_route("one", with_authorities(ClientAuthMode::Request, &["c"]));
    terminations.refresh();
    let error = "one: client_auth.ca_ids: There is no usable document cas/c.";
    assert_eq!((route.config().is_some(), errors(&terminations)), (false, vec![error.to_owned()]));
    terminations.set_authorities("c", &authorities(&["one", "other"])).unwrap();
    terminations.refresh();
    assert_eq!((route.config().is_some(), errors(&terminations).len()), (true, 0));
    terminations.set_authorities("c", b"{}").unwrap_err();
    terminations.refresh();
    assert_eq!((route.config().is_some(), errors(&terminations)), (false, vec![error.to_owned()]));
    terminations.remove_authorities("c");
    terminations.remove_route("one");
    assert!(!terminations.users.contains_key(&StreamKey::new(StreamKind::Ca, "c")));
}

#[test]
fn unusable_authorities_are_named_and_never_quoted() {
    let read =
        |value: serde_json::Value| Terminations::default().set_authorities("c", value.to_string().as_bytes());
    let good: serde_json::Value = serde_json::from_slice(&authorities(&["one", "other"])).unwrap();
    let certs = good["certs"].as_str().unwrap();
    assert_eq!(read(good.clone()), Ok(()));
    assert_eq!(read(json!({"certs": certs, "hush": 1})), Err("The document cannot be decoded."));
    let broken = "-----BEGIN CERTIFICATE-----\naHVzaA==\n-----END CERTIFICATE-----\n";
    for text in ["", "hush", broken, &format!("{certs}{broken}"), "-----BEGIN CERTIFICATE-----\nhush"] {
        assert!(read(json!({ "certs": text })).unwrap_err().starts_with("certs: "), "{text}");
    }
}

#[test]
fn a_route_without_one_of_its_certificates_has_no_configuration() {
    let (mut terminations, [one, two, three]) = three_routes();
    let has = || [&one, &two, &three].map(|route| route.config().is_some());
    terminations.remove_certificate("b");
    terminations.refresh();
    assert_eq!(has(), [true, false, false]);
    assert_eq!(
        errors(&terminations),
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
    assert_eq!((has(), errors(&terminations).len()), ([true, false, true], 0));
    for key in ["one", "three"] {
        terminations.remove_route(key);
    }
    assert!(terminations.users.is_empty() && terminations.routes.is_empty());
}

/// Certificates for the property below; the last document cannot be used.
static CERTIFICATES: LazyLock<[Vec<u8>; 3]> =
    LazyLock::new(|| [document("a.test"), document("b.test"), b"{}".to_vec()]);
/// The same for authorities.
static AUTHORITIES: LazyLock<[Vec<u8>; 3]> =
    LazyLock::new(|| [authorities(&["one"]), authorities(&["one", "other"]), b"{}".to_vec()]);

/// By id, the index of a document.
type Ids = BTreeMap<u8, usize>;
/// The ids of certificates, and perhaps those of authorities.
type Route = (Vec<u8>, Option<Vec<u8>>);

/// Certificates, authorities, and routes by key.
type World = (Ids, Ids, BTreeMap<u8, Route>);

fn written((certificates, authorities): &Route) -> Settings {
    let ids = |ids: &Vec<u8>| ids.iter().map(ToString::to_string).collect();
    let mode = ClientAuthMode::RequireAndVerify;
    let clients = authorities.as_ref().map(|authorities| ClientAuth { mode, ca_ids: ids(authorities) });
    Settings { certificates: ids(certificates), protocols: Vec::new(), clients }
}

fn apply(terminations: &mut Terminations, before: &World, after: &World) {
    for id in 0..3 {
        match (before.0.get(&id), after.0.get(&id)) {
            (former, Some(now)) if former != Some(now) => {
                let _ = terminations.set_certificate(&id.to_string(), &CERTIFICATES[*now]);
            }
            (Some(_), None) => terminations.remove_certificate(&id.to_string()),
            (_, Some(_)) | (None, None) => {}
        }
        match (before.1.get(&id), after.1.get(&id)) {
            (former, Some(now)) if former != Some(now) => {
                let _ = terminations.set_authorities(&id.to_string(), &AUTHORITIES[*now]);
            }
            (Some(_), None) => terminations.remove_authorities(&id.to_string()),
            (_, Some(_)) | (None, None) => {}
        }
    }
    for key in 0..4 {
        match (before.2.get(&key), after.2.get(&key)) {
            (_, Some(now)) => _ = terminations.set_route(&key.to_string(), written(now)),
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

fn worlds() -> impl Strategy<Value = World> {
    let documents = || prop::collection::btree_map(0..3_u8, 0..3_usize, 0..4);
    let ids = || prop::sample::subsequence(vec![0, 1, 2_u8], 1..3);
    let routes = prop::collection::btree_map(0..4_u8, (ids(), prop::option::of(ids())), 0..5);
    (documents(), documents(), routes)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changes_end_where_a_rebuild_does_and_keep_the_ticket_keys_of_others(
        worlds in prop::collection::vec(worlds(), 1..5)
    ) {
        let mut changed = Terminations::default();
        let mut before = World::default();
        for world in worlds {
            let former = tickets(&changed);
            apply(&mut changed, &before, &world);
            let mut rebuilt = Terminations::default();
            apply(&mut rebuilt, &World::default(), &world);
            prop_assert_eq!(shown(&changed), shown(&rebuilt));
            prop_assert_eq!(errors(&changed), errors(&rebuilt));
            prop_assert_eq!(&changed.users, &rebuilt.users);
            for (key, ticketer) in tickets(&changed) {
                let is_kept = former.get(&key).is_some_and(|former| Arc::ptr_eq(former, &ticketer));
                let number: u8 = key.parse().unwrap();
                let (certificates, authorities) = &world.2[&number];
                let is_same = before.2.get(&number) == world.2.get(&number)
                    && certificates.iter().all(|id| before.0.get(id) == world.0.get(id))
                    && authorities.iter().flatten().all(|id| before.1.get(id) == world.1.get(id));
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
