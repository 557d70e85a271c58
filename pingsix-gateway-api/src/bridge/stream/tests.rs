use pingsix_sink::plan;
use pingsix_translate::stream::{Arrival, StreamSsl, StreamUpstream};
use pingsix_translate::{Object, ObjectName, Objects, translate};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

fn object<T: DeserializeOwned>(value: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(value).unwrap())
}

fn options() -> Options {
    Options { stream: true, ..Options::default() }
}

/// Gateway `infra/web` with a TCP port, on which TCPRoute `db` has two Services, and a TLS port, on which TLSRoute
/// `site` has two names.
fn plane() -> (DataPlaneKey, StreamPlane) {
    let mut objects = Objects::default();
    objects.insert(Object::Gateway(object(json!({
        "metadata": {"namespace": "infra", "name": "web"},
        "spec": {"gatewayClassName": "pingsix", "listeners": [
            {"name": "db", "port": 5432, "protocol": "TCP"},
            {"name": "tls", "port": 443, "protocol": "TLS", "tls": {"mode": "Passthrough"}},
        ]},
    }))));
    for (index, name) in ["a", "b"].into_iter().enumerate() {
        objects.insert(Object::Service(object(json!({
            "metadata": {"namespace": "infra", "name": name}, "spec": {"ports": [{"port": 80}]}}))));
        objects.insert(Object::EndpointSlice(object(json!({
            "metadata": {"namespace": "infra", "name": name, "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4", "ports": [{"port": 8080}],
            "endpoints": [{"addresses": [format!("10.0.0.{}", index + 1)]}]}))));
    }
    let parents = json!([{"name": "web"}]);
    objects.insert(Object::TcpRoute(object(json!({
        "metadata": {"namespace": "infra", "name": "db"},
        "spec": {"parentRefs": parents, "rules": [{"backendRefs": [
            {"name": "a", "port": 80}, {"name": "b", "port": 80}]}]}}))));
    objects.insert(Object::TlsRoute(object(json!({
        "metadata": {"namespace": "infra", "name": "site"},
        "spec": {"parentRefs": parents, "hostnames": ["a.test", "b.test"],
            "rules": [{"backendRefs": [{"name": "b", "port": 80}]}]}}))));
    let snapshot = objects.snapshot(&ObjectName::new("infra", "web")).unwrap();
    translate(&snapshot, &options()).stream_planes.pop_first().unwrap()
}

fn route_of(config: &StreamConfig, port: u16, arrival: Arrival<'_>) -> (StreamKey, StreamRoute) {
    let (key, route) = config.route_for(port, arrival).unwrap();
    (key.clone(), route.clone())
}

fn rejects(config: &StreamConfig, port: u16, arrival: Arrival<'_>) -> bool {
    let (_, route) = route_of(config, port, arrival);
    route.targets.iter().all(|target| target.to == Destination::Reject(RejectReason::Invalid))
}

fn measures(bridged: &BridgedStream) -> Vec<(String, Measure)> {
    bridged.quarantined.iter().map(|entry| (entry.key.kind.to_string(), entry.measure)).collect()
}

#[test]
fn stream_documents_pass_the_bridge_unchanged_and_in_order() {
    let (key, plane) = plane();
    let bridged = bridge_stream(&key, &plane, &options()).unwrap();
    assert_eq!(bridged.config, plane.config);
    assert!(bridged.quarantined.is_empty() && bridged.problems.is_empty(), "{bridged:?}");
    assert_eq!(bridged.desired.scope().as_str(), "/pingsix-stream/infra/web");
    let documents = bridged.desired.documents();
    assert_eq!(documents.len(), 5);
    let pairs = documents.iter().map(|document| {
        (format!("/x/{}", document.key), String::from_utf8(document.value.to_vec()).unwrap())
    });
    assert_eq!(StreamConfig::from_pairs("/x", pairs).unwrap(), plane.config);
    let owners: BTreeSet<String> = documents.iter().map(|document| document.owner.to_string()).collect();
    let expected = ["Service infra/a", "Service infra/b", "TCPRoute infra/db", "TLSRoute infra/site"];
    assert_eq!(owners.into_iter().collect::<Vec<_>>(), expected);
    let steps = plan(&DocumentSet::default(), documents);
    let kinds: Vec<&str> =
        steps.as_slice().iter().map(|step| step.key().as_str().split('/').next().unwrap()).collect();
    assert_eq!(kinds, ["upstreams", "upstreams", "stream_routes", "stream_routes", "stream_routes"]);
}

#[test]
fn an_upstream_at_fault_closes_the_routes_that_refer_to_it_alone() {
    let (key, mut plane) = plane();
    let faulty = plane.provenance.iter().find(|(_, provenance)| {
        matches!(provenance, StreamProvenance::Backend { service, .. } if &*service.name.name == "a")
    });
    plane.config.insert(faulty.unwrap().0.id.clone(), StreamUpstream::default());
    let bridged = bridge_stream(&key, &plane, &options()).unwrap();
    let expected =
        [("upstreams".to_owned(), Measure::LeftOut), ("stream_routes".to_owned(), Measure::Closed)];
    assert_eq!(measures(&bridged), expected);
    assert!(rejects(&bridged.config, 5432, Arrival::Tcp));
    assert!(!rejects(&bridged.config, 443, Arrival::Tls("a.test")));
    let objects: Vec<String> = bridged.problems.iter().map(|problem| problem.object.to_string()).collect();
    assert_eq!(objects, ["TCPRoute infra/db", "Service infra/a"]);
    assert!(validate(&bridged.config).is_empty());
}

#[test]
fn of_two_routes_that_want_one_name_the_later_keeps_its_others() {
    let (key, mut plane) = plane();
    let (_, route) = route_of(&plane.config, 443, Arrival::Tls("a.test"));
    plane.config.insert("zz", StreamRoute { snis: vec!["a.test".to_owned(), "c.test".to_owned()], ..route });
    let bridged = bridge_stream(&key, &plane, &options()).unwrap();
    assert_eq!(measures(&bridged), [("stream_routes".to_owned(), Measure::Narrowed)]);
    assert!(!rejects(&bridged.config, 443, Arrival::Tls("a.test")));
    assert!(rejects(&bridged.config, 443, Arrival::Tls("c.test")));
    // The document has no origin, so the Gateway gets the problem.
    assert_eq!(bridged.problems[0].object.to_string(), "Gateway infra/web");
    assert_eq!(bridged.problems[0].reason, Reason::Quarantined);
}

#[test]
fn a_route_for_any_name_at_fault_closes_its_other_names() {
    let (key, mut plane) = plane();
    let (_, route) = route_of(&plane.config, 443, Arrival::Tls("a.test"));
    let any = |snis: &[&str]| StreamRoute {
        snis: snis.iter().map(|name| (*name).to_owned()).collect(),
        tls: Some(TlsMode::Terminate),
        ssl_ids: vec!["none".to_owned()],
        ..route.clone()
    };
    plane.config.insert("zz", any(&["c.test", "*"]));
    plane.config.insert("zzz", StreamRoute { server_port: 444, ..any(&["*"]) });
    let bridged = bridge_stream(&key, &plane, &options()).unwrap();
    let kind = || "stream_routes".to_owned();
    assert_eq!(measures(&bridged), [(kind(), Measure::Closed), (kind(), Measure::LeftOut)]);
    assert!(rejects(&bridged.config, 443, Arrival::Tls("c.test")));
    for (port, arrival) in
        [(443, Arrival::Tls("d.test")), (443, Arrival::TlsUnnamed), (444, Arrival::TlsUnnamed)]
    {
        assert_eq!(bridged.config.route_for(port, arrival), None, "{arrival:?}");
    }
    assert!(!rejects(&bridged.config, 443, Arrival::Tls("a.test")));
}

#[test]
fn a_route_without_a_place_is_left_out() {
    let (key, mut plane) = plane();
    let (_, route) = route_of(&plane.config, 5432, Arrival::Tcp);
    plane.config.insert("zz", StreamRoute { server_port: 0, ..route.clone() });
    plane.config.insert("zzz", route);
    let bridged = bridge_stream(&key, &plane, &options()).unwrap();
    assert_eq!(measures(&bridged), vec![("stream_routes".to_owned(), Measure::LeftOut); 2]);
    assert!(!rejects(&bridged.config, 5432, Arrival::Tcp));
}

#[test]
fn no_secret_reaches_a_problem_or_debug() {
    let (key, mut plane) = plane();
    let secret = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n";
    plane.config.insert("s", StreamSsl { cert: "nonsense".to_owned(), key: secret.to_owned() });
    let bridged = bridge_stream(&key, &plane, &options()).unwrap();
    assert_eq!(measures(&bridged), [("ssls".to_owned(), Measure::LeftOut)]);
    assert!(!format!("{bridged:?}").contains("c2VjcmV0"), "{bridged:?}");
}

#[test]
fn a_root_that_is_no_prefix_is_refused() {
    let (key, plane) = plane();
    let options = Options { root: "pingsix".to_owned(), ..options() };
    assert!(matches!(bridge_stream(&key, &plane, &options), Err(BridgeError::Key { .. })));
}
