use pingsix_translate::{Object, ObjectName, Objects, Options, Translation, translate, translate_ingress};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

fn object<T: DeserializeOwned>(value: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(value).unwrap())
}

/// Secret `shop/old`, valid for two names in the year 2020, and Secret `shop/fresh`, for much longer.
fn secrets() -> Objects {
    let mut objects = Objects::default();
    for (name, last) in [("old", 2020), ("fresh", 2090)] {
        let names = ["shop.example", "pay.example"].map(str::to_owned);
        let mut params = rcgen::CertificateParams::new(names).unwrap();
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(last, 12, 31);
        let key = rcgen::KeyPair::generate().unwrap();
        let cert = params.self_signed(&key).unwrap().pem();
        objects.insert(Object::Secret(object(json!({
            "metadata": {"namespace": "shop", "name": name},
            "stringData": {"tls.crt": cert, "tls.key": key.serialize_pem()},
        }))));
    }
    objects
}

/// Gateway `shop/web` with a plaintext port and these listeners.
fn gateway(listeners: &[Value]) -> Translation {
    let mut objects = secrets();
    let listeners: Vec<Value> =
        [json!({"name": "plain", "port": 80, "protocol": "HTTP"})].iter().chain(listeners).cloned().collect();
    objects.insert(Object::Gateway(object(json!({
        "metadata": {"namespace": "shop", "name": "web"},
        "spec": {"gatewayClassName": "pingsix", "listeners": listeners},
    }))));
    objects.insert(Object::TlsRoute(object(json!({
        "metadata": {"namespace": "shop", "name": "any"},
        "spec": {"parentRefs": [{"name": "web"}], "hostnames": ["*.example"], "rules": [{"backendRefs": []}]},
    }))));
    let options = Options { stream: true, ..Options::default() };
    translate(&objects.snapshot(&ObjectName::new("shop", "web")).unwrap(), &options)
}

fn said_in(year: i16, translation: &Translation) -> Vec<String> {
    let now: Timestamp = format!("{year}-06-01T00:00:00Z").parse().unwrap();
    let planes = translation.data_planes.values().flat_map(|plane| outdated_certificates(plane, now));
    let streams =
        translation.stream_planes.values().flat_map(|plane| outdated_stream_certificates(plane, now));
    planes.chain(streams).map(|problem| problem.to_string()).collect()
}

#[test]
fn a_certificate_is_named_before_and_after_its_time() {
    let tls = json!({"certificateRefs": [{"name": "fresh"}, {"name": "old"}]});
    let listeners = [
        json!({"name": "https", "port": 443, "protocol": "HTTPS", "hostname": "shop.example",
            "tls": {"certificateRefs": [{"name": "old"}]}}),
        // Shown for no name, since the fresh one is for each of them.
        json!({"name": "both", "port": 443, "protocol": "HTTPS", "tls": tls}),
    ];
    let translation = gateway(&listeners);
    assert_eq!(
        said_in(2021, &translation),
        [
            "Gateway shop/web: spec.listeners[1].tls.certificateRefs[0]: The certificate of Secret shop/old that listener \
          \"https\" shows for shop.example expired at 2020-12-31T00:00:00Z; clients refuse it."
        ]
    );
    assert_eq!(said_in(2020, &translation), [""; 0]);
    assert_eq!(said_in(2019, &translation).len(), 2);
    assert!(said_in(2019, &translation)[0].contains("is not valid before 2020-01-01T00:00:00Z"));
}

#[test]
fn one_reference_is_named_once_with_all_its_names() {
    let tls = json!({"certificateRefs": [{"name": "old"}, {"name": "old"}]});
    let listener = json!({"name": "https", "port": 443, "protocol": "HTTPS", "tls": tls});
    let said = said_in(2021, &gateway(&[listener]));
    let [said] = said.as_slice() else { panic!("{said:?}") };
    assert!(said.contains("certificateRefs[0]"), "{said}");
    for name in ["*", "pay.example", "shop.example"] {
        assert!(said.contains(name), "{said}");
    }
}

#[test]
fn every_listener_that_terminates_streams_with_it_is_told() {
    let listener = |name: &str, port: u16| {
        json!({"name": name, "port": port, "protocol": "TLS", "hostname": "*.example",
            "tls": {"certificateRefs": [{"name": "fresh"}, {"name": "old"}]}})
    };
    let translation = gateway(&[listener("one", 8883), listener("two", 8884)]);
    let fields = [1, 2].map(|index| {
        format!(
            "Gateway shop/web: spec.listeners[{index}].tls.certificateRefs[1]: The certificate of Secret shop/old \
             expired at 2020-12-31T00:00:00Z; clients refuse it."
        )
    });
    assert_eq!(said_in(2021, &translation), fields);
    assert_eq!(said_in(2020, &translation), [""; 0]);
}

#[test]
fn an_ingress_is_told_at_the_secret_it_names() {
    let mut objects = secrets();
    let options = Options::default();
    objects.insert(Object::IngressClass(object(json!({
        "metadata": {"name": "pingsix"}, "spec": {"controller": options.controller_name},
    }))));
    objects.insert(Object::Ingress(object(json!({
        "metadata": {"namespace": "shop", "name": "web"},
        "spec": {"ingressClassName": "pingsix", "tls": [
            {"hosts": ["other.example"], "secretName": "fresh"},
            {"hosts": ["shop.example", "pay.example"], "secretName": "old"},
        ]},
    }))));
    let translation = translate_ingress(&objects.ingress_snapshot("pingsix").unwrap(), &options);
    assert_eq!(
        said_in(2021, &translation),
        [
            "Ingress shop/web: spec.tls[1].secretName: The certificate of Secret shop/old that the Ingress shows for \
          pay.example, shop.example expired at 2020-12-31T00:00:00Z; clients refuse it."
        ]
    );
}
