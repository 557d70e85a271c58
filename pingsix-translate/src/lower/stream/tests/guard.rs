//! Server names that are kept from listeners with a wider hostname.

use super::*;

#[test]
fn a_listener_without_routes_keeps_its_names_from_a_wider_one() {
    let mut objects = world();
    let hostnames =
        json!({"parentRefs": [{"name": "public", "sectionName": "any"}], "hostnames": ["*.test"]});
    add(&mut objects, Kind::TlsRoute, ("a", 2026), backend("web", 80), hostnames);
    let (_, plane) = translate(&objects);
    assert_eq!(targets_of(&plane.config, 443, Arrival::Tls("b.test")), one("10.0.0.1:8080"));
    assert_eq!(targets_of(&plane.config, 443, Arrival::Tls("x.a.test")), one("no_route"));
    // This port has no wider listener.
    assert_eq!(targets_of(&plane.config, 8443, Arrival::Tls("x.a.test")), []);
    let (key, route) = plane.config.route_for(443, Arrival::Tls("x.a.test")).unwrap();
    let owner = Arc::new(ObjectKey::new(Kind::Gateway, "infra", "public"));
    assert_eq!(plane.provenance[key], StreamProvenance::Guard { owner, listener: "test".to_owned() });
    assert_eq!(route.tls, Some(TlsMode::Passthrough));
}

#[test]
fn a_listener_that_is_not_served_keeps_its_names_from_a_wider_one() {
    let certificate = |name: &str| json!({"certificateRefs": [{"name": name}]});
    let own = |tls: Value, more: Value| {
        let mut listener =
            json!({"name": "own", "port": 9443, "protocol": "TLS", "hostname": "*.a.test", "tls": tls});
        listener.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        listener
    };
    let filters = json!({"filters": {"requests": [{"type": "ExternalAuth"}]}});
    for own in [own(certificate("missing"), json!({})), own(certificate("one"), filters)] {
        let mut objects = world();
        let listeners = json!([
            {"name": "any", "port": 9443, "protocol": "TLS", "tls": certificate("two")},
            own,
            {"name": "narrow", "port": 9443, "protocol": "TLS", "hostname": "x.b.a.test", "tls": certificate("one")},
            // This port has no wider listener.
            {"name": "alone", "port": 9444, "protocol": "TLS", "hostname": "a.test", "tls": certificate("missing")},
        ]);
        for (_, gateway) in gateway(&listeners).gateways() {
            objects.insert(Object::Gateway(gateway.clone()));
        }
        let hostnames = json!({"hostnames": ["*.test", "y.a.test", "x.b.a.test"]});
        add(&mut objects, Kind::TlsRoute, ("a", 2026), backend("web", 80), hostnames);
        let (_, plane) = translate(&objects);
        for (name, expected) in [
            ("b.test", one("10.0.0.1:8080")),
            ("x.a.test", one("invalid")),
            ("y.a.test", one("invalid")),
            ("y.b.a.test", one("invalid")),
            ("x.b.a.test", one("10.0.0.1:8080")),
        ] {
            assert_eq!(targets_of(&plane.config, 9443, Arrival::Tls(name)), expected, "{name}");
        }
        let (key, _) = plane.config.route_for(9443, Arrival::Tls("y.a.test")).unwrap();
        let owner = Arc::new(ObjectKey::new(Kind::Gateway, "infra", "public"));
        assert_eq!(plane.provenance[key], StreamProvenance::Guard { owner, listener: "own".to_owned() });
        assert_eq!(targets_of(&plane.config, 9444, Arrival::Tls("a.test")), []);
    }
}

#[test]
fn a_listener_that_lost_a_conflict_keeps_nothing() {
    let mut objects = world();
    let tls = json!({"certificateRefs": [{"name": "one"}]});
    let twin = json!({"name": "one", "port": 9443, "protocol": "TLS", "hostname": "*.a.test", "tls": tls});
    let mut other = twin.clone();
    other["name"] = json!("two");
    let any = json!({"name": "any", "port": 9443, "protocol": "TLS", "tls": tls});
    for (_, gateway) in gateway(&json!([any, twin, other])).gateways() {
        objects.insert(Object::Gateway(gateway.clone()));
    }
    let hostnames = json!({"hostnames": ["*.test"]});
    add(&mut objects, Kind::TlsRoute, ("a", 2026), backend("web", 80), hostnames);
    let (_, plane) = translate(&objects);
    assert_eq!(targets_of(&plane.config, 9443, Arrival::Tls("x.a.test")), one("10.0.0.1:8080"));
}
