//! Data planes that the controller runs.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use pingsix_sink::resource;
use pingsix_translate::status::ConditionType;

use super::*;
use crate::controller::poll_targets::TargetsByOwner;
use crate::delivery::Instances;
use crate::delivery::status_page::{StatusPage, StatusUrl};
use crate::provision::tests::installation;
use crate::provision::{
    DeployedKeys, DesiredInfrastructure, InstallationKey, Keyring, MissingKeysError, Provisioned,
    ProvisionedOwners,
};

/// The other ends of what the engine is connected with.
struct Ends {
    wanted: watch::Receiver<DesiredInfrastructure>,
    provisioned: watch::Sender<ProvisionedOwners>,
    pages: watch::Receiver<TargetsByOwner>,
    key: watch::Sender<Option<InstallationKey>>,
}

impl Rig {
    /// The number of publications for PingSIX; those for the sidecar have no encryption.
    fn begun_for_pingsix(&self) -> usize {
        let begun = self.feed().begun().into_iter();
        begun.filter(|(scope, _)| !scope.starts_with("/pingsix-stream/")).count()
    }

    /// With a Gateway whose data planes the controller runs.
    fn managing() -> (Self, Ends) {
        Self::managing_with(json!({"managed": {}}), vec![managed_class()])
    }

    /// The same, with these parameters and these classes.
    fn managing_with(parameters: Value, classes: Vec<Value>) -> (Self, Ends) {
        let mut rig = Self::new();
        let (wanted, needs) = watch::channel(DesiredInfrastructure::default());
        let (provisioned, told) = watch::channel(ProvisionedOwners::new());
        let (key, known) = watch::channel(InstallationKey::new(&[7; 32]));
        let pages = rig.engine.shared.targets.subscribe();
        rig.engine.shared.managed.provisioning = Some(Provisioning {
            installation: Arc::new(installation()),
            wanted,
            provisioned: told,
            key: known,
        });
        for kind in Kind::ALL {
            rig.tell(*kind, watcher::Event::Init);
        }
        let has_none = classes.is_empty();
        for class in classes {
            rig.tell(Kind::GatewayClass, watcher::Event::InitApply(class));
        }
        for (kind, object) in [
            (Kind::PingsixProxy, proxy(parameters)),
            (Kind::Gateway, managed_gateway()),
            (Kind::HttpRoute, route(1)),
        ] {
            rig.tell(kind, watcher::Event::InitApply(object));
        }
        for kind in Kind::ALL {
            rig.tell(*kind, watcher::Event::InitDone);
        }
        assert_eq!(needs.borrow().is_complete, has_none, "not before everything was looked at");
        rig.settle();
        (rig, Ends { wanted: needs, provisioned, pages, key })
    }

    /// Two slices of the Service, with these endpoints: address, whether it is ready, whether it is terminating.
    fn endpoints(&mut self, version: u32, endpoints: &[(&str, bool, bool)]) {
        let endpoints: Vec<Value> = endpoints
            .iter()
            .map(|(ip, ready, leaving)| {
                json!({"addresses": [ip], "conditions": {"ready": ready, "serving": *ready || *leaving, "terminating": leaving}})
            })
            .collect();
        self.apply(
            Kind::EndpointSlice,
            json!({
                "metadata": {
                    "name": "web-1", "namespace": "infra", "resourceVersion": version.to_string(),
                    "labels": {"kubernetes.io/service-name": "web-pingsix"},
                },
                "addressType": "IPv4", "endpoints": endpoints,
            }),
        );
    }

    fn stand(&mut self, ends: &Ends, provisioned: Provisioned) {
        ends.provisioned.send_replace(ProvisionedOwners::from([(web(), provisioned)]));
        self.engine.handle(Message::ProvisionerReported);
    }

    /// All instances confirm the publication.
    fn confirm(&mut self, ends: &Ends) {
        for port in [80, 8080] {
            let page = StatusPage { published_revision: i64::MAX, ..StatusPage::default() };
            let urls = ends.pages.borrow()[&web()][&plane(port)].pages.urls.clone();
            let pages = urls.into_iter().map(|url| (url, Ok(page.clone()))).collect();
            self.engine.handle(Message::Pages(plane(port), Instances::Pages(pages)));
        }
    }

    /// Status and reason of `Programmed`, its message, and the addresses.
    fn told(&self) -> (String, String, Option<usize>) {
        let Some(Wanted::Gateway { verdict, addresses }) = self.wanted(&web()) else {
            panic!("nothing is said")
        };
        let programmed = verdict.conditions.get(ConditionType::Programmed).unwrap();
        let short = format!("{:?} {}", programmed.status, programmed.reason);
        (short, programmed.message.clone(), addresses.map(|addresses| addresses.len()))
    }
}

#[allow(clippy::needless_pass_by_value, reason = "it is always written where it is called")]
fn proxy(spec: Value) -> Value {
    json!({"metadata": {"name": "edge", "namespace": "infra", "resourceVersion": spec.to_string()}, "spec": spec})
}

fn managed_class() -> Value {
    let mut class = class();
    class["spec"]["parametersRef"] =
        json!({"group": "pingsix.io", "kind": "PingsixProxy", "name": "edge", "namespace": "infra"});
    class
}

fn managed_gateway() -> Value {
    let mut gateway = gateway();
    gateway["metadata"]["uid"] = json!("4a1c8f06");
    gateway["spec"]["listeners"] = json!([
        {"name": "a", "port": 80, "protocol": "HTTP"}, {"name": "b", "port": 8080, "protocol": "HTTP"},
    ]);
    gateway
}

fn plane(port: u16) -> DataPlaneKey {
    DataPlaneKey::Gateway { gateway: web().name, port: Some(port) }
}

/// Which pages have to confirm, and which may refuse.
fn urls(ends: &Ends, port: u16) -> (Vec<String>, Vec<String>) {
    let pages = ends.pages.borrow();
    let text = |urls: &BTreeSet<StatusUrl>| urls.iter().map(ToString::to_string).collect();
    let pages = &pages[&web()][&plane(port)].pages;
    (text(&pages.urls), text(&pages.coming))
}

#[tokio::test(start_paused = true)]
async fn infrastructure_needs_are_sent_when_they_change_and_revoked_at_the_end() {
    let (mut rig, mut ends) = Rig::managing();
    let needs = ends.wanted.borrow_and_update().clone();
    assert!(needs.is_complete);
    assert_eq!(needs.needs[&web()].infrastructure.ports.keys().collect::<Vec<_>>(), [&80, &8080]);
    rig.apply(Kind::HttpRoute, route(2));
    rig.settle();
    assert!(!ends.wanted.has_changed().unwrap(), "routes change nothing");
    let mut other = managed_gateway();
    other["metadata"]["resourceVersion"] = json!("2");
    other["spec"]["listeners"].as_array_mut().unwrap().pop();
    rig.apply(Kind::Gateway, other);
    rig.settle();
    assert_eq!(ends.wanted.borrow_and_update().needs[&web()].infrastructure.ports.len(), 1);
    assert!(!ends.pages.borrow()[&web()].contains_key(&plane(8080)), "nobody asks any more");
    rig.apply(Kind::PingsixProxy, proxy(json!({"attached": {}})));
    rig.settle();
    assert!(ends.wanted.borrow_and_update().needs.is_empty());
    assert!(ends.pages.borrow().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_is_the_data_plane_itself_is_refused_while_it_is() {
    let (mut rig, ends) = Rig::managing();
    let slice = |name: &str, service: &str, address: &str, version: u32| {
        json!({
            "metadata": {
                "name": name, "namespace": "infra", "resourceVersion": version.to_string(),
                "labels": {"kubernetes.io/service-name": service},
            },
            "addressType": "IPv4", "ports": [{"port": 8000}], "endpoints": [{"addresses": [address]}],
        })
    };
    rig.apply(
        Kind::Service,
        json!({
            "metadata": {"name": "back", "namespace": "infra", "resourceVersion": "1"},
            "spec": {"ports": [{"port": 80}]},
        }),
    );
    rig.apply(Kind::EndpointSlice, slice("back-1", "back", "10.0.0.7", 1));
    let mut back = route(2);
    back["spec"]["rules"] = json!([{"backendRefs": [{"name": "back", "port": 80}]}]);
    rig.apply(Kind::HttpRoute, back);
    rig.settle();
    let refused = |rig: &Rig| {
        let problems = rig.engine.shared.reconciler.problems(&web());
        problems.iter().filter(|problem| problem.message.contains("is the data plane itself")).count()
    };
    assert_eq!(refused(&rig), 0);
    // A Pod of the data plane has an address that the endpoints of a Service contain.
    rig.apply(Kind::EndpointSlice, slice("web-pingsix-1", "web-pingsix", "10.0.0.7", 1));
    rig.settle();
    assert_eq!(refused(&rig), 1);
    rig.apply(Kind::EndpointSlice, slice("web-pingsix-1", "web-pingsix", "10.0.0.8", 2));
    rig.settle();
    assert_eq!(refused(&rig), 0);
    // The address that clients reach it by, with the port of a listener, leads to it as well.
    let address = "192.0.2.9".parse().unwrap();
    rig.stand(&ends, Provisioned { addresses: vec![Address::Ip(address)], ..Provisioned::default() });
    for (ip, port, expected) in [("192.0.2.9", 9, 0), ("192.0.2.9", 8080, 1), ("192.0.2.8", 8080, 0)] {
        let mut other = slice("back-1", "back", ip, 10 + port);
        other["ports"][0]["port"] = json!(port);
        rig.apply(Kind::EndpointSlice, other);
        rig.settle();
        assert_eq!(refused(&rig), expected, "{ip}:{port}");
    }
}

#[tokio::test(start_paused = true)]
async fn running_processes_stay_while_their_gateway_or_parameters_are_invalid() {
    let (mut rig, ends) = Rig::managing();
    let held = |ends: &Ends| {
        let wanted = ends.wanted.borrow();
        (wanted.needs.contains_key(&web()), wanted.unclear.contains(&web()), wanted.is_unwanted(&web()))
    };
    assert_eq!(held(&ends), (true, false, false));
    let mut of_another_type = managed_gateway();
    of_another_type["metadata"]["resourceVersion"] = json!("2");
    of_another_type["spec"]["addresses"] = json!([{"type": "example.com/Name", "value": "a"}]);
    let mut undecodable = managed_gateway();
    undecodable["metadata"]["resourceVersion"] = json!("3");
    undecodable["spec"]["listeners"] = json!("none");
    // Running processes keep the last valid parameters.
    let (goes_on, is_left) = ((true, false, false), (false, true, false));
    for (kind, wrong, right, expected) in [
        (Kind::PingsixProxy, proxy(json!({})), proxy(json!({"managed": {}})), goes_on),
        (Kind::Gateway, of_another_type, managed_gateway(), is_left),
        (Kind::Gateway, undecodable, managed_gateway(), is_left),
    ] {
        rig.apply(kind, wrong);
        rig.settle();
        assert_eq!(held(&ends), expected, "{kind}");
        rig.apply(kind, right);
        rig.settle();
        assert_eq!(held(&ends), (true, false, false), "{kind}");
    }
    // The parameters are gone, and then the Gateway.
    rig.tell(Kind::PingsixProxy, watcher::Event::Delete(proxy(json!({"managed": {}}))));
    rig.settle();
    assert_eq!(held(&ends), goes_on);
    rig.tell(Kind::Gateway, watcher::Event::Delete(managed_gateway()));
    rig.settle();
    assert_eq!(held(&ends), (false, false, true));
}

/// Certificates of a data plane name the UID of its owner, so what is published for an owner has to as well, for as long as
/// certificates that name it may be in use.
#[tokio::test(start_paused = true)]
async fn a_publication_names_the_uid_of_the_gateway_that_it_was_made_of() {
    let (mut rig, _ends) = Rig::managing();
    let owner = |rig: &Rig| rig.feed().owners.lock()["/pingsix/infra/web:80"].clone();
    assert_eq!(owner(&rig).as_deref(), Some("4a1c8f06"));
    // Also while its parameters are unknown.
    rig.tell(Kind::PingsixProxy, watcher::Event::Delete(proxy(json!({"managed": {}}))));
    rig.settle();
    rig.apply(Kind::HttpRoute, another_route());
    rig.settle();
    assert_eq!(owner(&rig).as_deref(), Some("4a1c8f06"));
    rig.apply(Kind::PingsixProxy, proxy(json!({"managed": {}})));
    rig.settle();
    assert_eq!(owner(&rig).as_deref(), Some("4a1c8f06"));

    rig.tell(Kind::Gateway, watcher::Event::Delete(managed_gateway()));
    rig.settle();
    assert_eq!(documents(&rig), Some(0), "it is withdrawn");
    let mut next = managed_gateway();
    next["metadata"]["uid"] = json!("77b1d2c9");
    rig.apply(Kind::Gateway, next.clone());
    rig.settle();
    assert_eq!(owner(&rig).as_deref(), Some("77b1d2c9"));
    // And when the deletion was never seen.
    next["metadata"]["uid"] = json!("c3f5e000");
    next["metadata"]["resourceVersion"] = json!("900");
    rig.apply(Kind::Gateway, next);
    rig.settle();
    assert_eq!(owner(&rig).as_deref(), Some("c3f5e000"));
}

#[tokio::test(start_paused = true)]
async fn the_feed_limits_the_cpu_as_the_parameters_say() {
    let (mut rig, _ends) = Rig::managing();
    let limit = |rig: &Rig| rig.feed().cpu_limits.lock()["/pingsix/infra/web:80"];
    assert_eq!(limit(&rig), 100);
    let mut version = 900;
    let mut set = |rig: &mut Rig, spec: Value| {
        let mut parameters = proxy(spec);
        version += 1;
        parameters["metadata"]["resourceVersion"] = json!(version.to_string());
        rig.apply(Kind::PingsixProxy, parameters);
        rig.settle();
        limit(rig)
    };
    assert_eq!(set(&mut rig, json!({"managed": {}, "feed": {"cpuPercent": 20}})), 20);
    // An unusable value changes nothing.
    assert_eq!(set(&mut rig, json!({"managed": {}, "feed": {"cpuPercent": 0}})), 20);
    assert_eq!(set(&mut rig, json!({"managed": {}})), 100);
}

/// The number of documents in the data plane of port 80.
fn documents(rig: &Rig) -> Option<usize> {
    rig.feed().held("/pingsix/infra/web:80")
}

/// The status of the Gateway: `Accepted` with its reason, and `Programmed`.
fn said(rig: &Rig) -> (bool, Reason, String) {
    let Some(Wanted::Gateway { verdict, .. }) = rig.wanted(&web()) else { panic!("nothing is said") };
    let accepted = verdict.conditions.get(ConditionType::Accepted).unwrap();
    let programmed = verdict.conditions.get(ConditionType::Programmed).unwrap();
    (accepted.status == ConditionStatus::True, accepted.reason, programmed.message.clone())
}

/// A route beside the first.
fn another_route() -> Value {
    let mut other = route(7);
    other["metadata"]["name"] = json!("other");
    other["spec"]["hostnames"] = json!(["other.example"]);
    other
}

#[tokio::test(start_paused = true)]
async fn published_documents_stay_while_parameters_cannot_be_used() {
    // Of the class, and of the Gateway itself.
    let mut own = managed_gateway();
    own["metadata"]["resourceVersion"] = json!("2");
    own["spec"]["infrastructure"] =
        json!({"parametersRef": {"group": "pingsix.io", "kind": "PingsixProxy", "name": "own"}});
    let broken = |kind| if kind == Kind::Gateway { own.clone() } else { proxy(json!({})) };
    let mended = |kind| if kind == Kind::Gateway { managed_gateway() } else { proxy(json!({"managed": {}})) };
    for kind in [Kind::PingsixProxy, Kind::Gateway] {
        let (mut rig, ends) = Rig::managing();
        let addresses = vec![Address::Ip([192, 0, 2, 7].into())];
        rig.stand(&ends, Provisioned { addresses, ..Provisioned::default() });
        let before = documents(&rig).unwrap();
        assert!(before > 0 && said(&rig).0);
        rig.apply(kind, broken(kind));
        rig.settle();
        rig.apply(Kind::HttpRoute, another_route());
        rig.settle();
        assert_eq!(documents(&rig), Some(before), "{kind}");
        let (is_accepted, reason, programmed) = said(&rig);
        assert!(!is_accepted && reason == Reason::InvalidParameters);
        assert!(programmed.contains("stays until its parameters are valid"), "{programmed}");
        assert_eq!(rig.told().2, Some(1), "it has its address");
        rig.apply(kind, mended(kind));
        rig.settle();
        assert!(documents(&rig).unwrap() > before, "{kind}");
        assert!(said(&rig).0 && !said(&rig).2.contains("stays as it is"));
        // With the class or the Gateway, everything goes.
        rig.apply(kind, broken(kind));
        rig.settle();
        if kind == Kind::Gateway {
            rig.tell(kind, watcher::Event::Delete(own.clone()));
        } else {
            rig.tell(Kind::GatewayClass, watcher::Event::Delete(managed_class()));
        }
        rig.settle();
        assert_eq!(documents(&rig), Some(0), "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_is_unusable_at_the_start_alone_is_not_published() {
    let (mut rig, ends) = Rig::managing_with(json!({}), vec![managed_class()]);
    assert!(rig.is_ready() && rig.feed().is_open());
    // Readers keep their documents; an empty data plane would delete them.
    assert_eq!(rig.feed().begun(), []);
    let (is_accepted, reason, _) = said(&rig);
    assert!(!is_accepted && reason == Reason::InvalidParameters);
    assert!(ends.wanted.borrow().is_complete && !ends.wanted.borrow().is_unwanted(&web()));
    rig.apply(Kind::PingsixProxy, proxy(json!({"managed": {}})));
    rig.settle();
    assert!(documents(&rig).unwrap() > 0 && said(&rig).0);
}

#[tokio::test(start_paused = true)]
async fn running_processes_stay_while_their_class_is_deleted_and_recreated() {
    let (mut rig, ends) = Rig::managing();
    let state = |ends: &Ends| {
        let wanted = ends.wanted.borrow();
        (wanted.needs.contains_key(&web()), wanted.is_unwanted(&web()))
    };
    assert_eq!(state(&ends), (true, false));
    let delete = |rig: &mut Rig| {
        rig.tell(Kind::GatewayClass, watcher::Event::Delete(managed_class()));
        rig.settle();
    };
    delete(&mut rig);
    assert_eq!(state(&ends), (false, false));
    rig.apply(Kind::GatewayClass, managed_class());
    rig.settle();
    assert_eq!(state(&ends), (true, false));
    // The object belongs to another owner now.
    delete(&mut rig);
    let mut foreign = managed_class();
    foreign["spec"]["controllerName"] = json!("example.com/other");
    rig.apply(Kind::GatewayClass, foreign);
    rig.settle();
    assert_eq!(state(&ends), (false, true));
    // Or its class asks for no processes.
    rig.apply(Kind::GatewayClass, managed_class());
    rig.settle();
    delete(&mut rig);
    assert_eq!(state(&ends), (false, false));
    rig.apply(Kind::GatewayClass, class());
    rig.settle();
    assert_eq!(state(&ends), (false, true));
    // Or the Gateway goes.
    rig.apply(Kind::GatewayClass, managed_class());
    rig.settle();
    delete(&mut rig);
    rig.tell(Kind::Gateway, watcher::Event::Delete(managed_gateway()));
    rig.settle();
    assert_eq!(state(&ends), (false, true));
}

#[tokio::test(start_paused = true)]
async fn running_processes_stay_over_a_start_without_their_class() {
    let (_rig, ends) = Rig::managing_with(json!({"managed": {}}), vec![]);
    let wanted = ends.wanted.borrow();
    assert!(wanted.is_complete && wanted.needs.is_empty() && !wanted.is_unwanted(&web()));
    assert!(wanted.is_unwanted(&ObjectKey::new(Kind::Gateway, "infra", "gone")));
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_is_no_longer_selected_keeps_its_running_processes() {
    let (mut rig, ends) = Rig::managing();
    let provisioning = rig.engine.shared.managed.provisioning.as_ref().unwrap();
    provisioning.wanted.send_modify(|wanted| wanted.is_partial = true);
    let is_unwanted = |ends: &Ends| ends.wanted.borrow().is_unwanted(&web());
    rig.apply(Kind::PingsixProxy, proxy(json!({"attached": {}})));
    rig.settle();
    assert!(is_unwanted(&ends), "somebody else runs its data planes");
    rig.apply(Kind::PingsixProxy, proxy(json!({"managed": {}})));
    rig.settle();
    assert!(!is_unwanted(&ends));
    rig.tell(Kind::Gateway, watcher::Event::Delete(managed_gateway()));
    rig.settle();
    assert!(ends.wanted.borrow().needs.is_empty() && !is_unwanted(&ends));
}

#[tokio::test(start_paused = true)]
async fn the_instances_are_the_pods_behind_the_service() {
    let (mut rig, ends) = Rig::managing();
    assert_eq!(urls(&ends, 80), (vec![], vec![]));
    let url = |ip: &str, port: u16| format!("http://{ip}:{port}/status/config");
    // While none is ready, all have to confirm.
    rig.endpoints(1, &[("10.0.0.1", false, false), ("fd00::1", true, false)]);
    assert_eq!(urls(&ends, 80), (vec![url("10.0.0.1", 30_080)], vec![]));
    rig.endpoints(2, &[("10.0.0.1", true, false), ("10.0.0.2", false, false), ("10.0.0.3", false, true)]);
    assert_eq!(urls(&ends, 80), (vec![url("10.0.0.1", 30_080)], vec![url("10.0.0.2", 30_080)]));
    assert_eq!(urls(&ends, 8080).0, [url("10.0.0.1", 28_080)]);
    // No request comes without the key.
    ends.key.send_replace(None);
    rig.engine.handle(Message::KeyChanged);
    assert_eq!(urls(&ends, 80), (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_managed_gateway_is_programmed_when_it_runs_is_reached_and_confirms() {
    let (mut rig, ends) = Rig::managing();
    let (short, _, addresses) = rig.told();
    assert_eq!((short.as_str(), addresses), ("False Pending", None), "nothing is known of the Service");
    rig.stand(&ends, Provisioned::default());
    let (short, message, addresses) = rig.told();
    assert_eq!((short.as_str(), addresses), ("False Pending", Some(0)));
    assert!(message.contains("Service \"infra/web-pingsix\" has no address yet."), "{message}");

    // The instances confirm, and the address is missing.
    rig.endpoints(1, &[("10.0.0.1", true, false)]);
    rig.confirm(&ends);
    assert_eq!(rig.told().0, "False AddressNotAssigned");
    let address = Address::Ip([192, 0, 2, 7].into());
    rig.stand(&ends, Provisioned { addresses: vec![address.clone()], ..Provisioned::default() });
    let (short, _, addresses) = rig.told();
    assert_eq!((short.as_str(), addresses), ("True Programmed", Some(1)));

    let error = Some("It belongs to somebody else.".to_owned());
    rig.stand(
        &ends,
        Provisioned { addresses: vec![address], error: error.clone(), ..Provisioned::default() },
    );
    let (short, message, _) = rig.told();
    assert_eq!((short.as_str(), Some(message)), ("False NoResources", error));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_address_delays_programmed_and_revokes_no_earlier_status() {
    let (mut rig, ends) = Rig::managing();
    rig.endpoints(1, &[("10.0.0.1", true, false)]);
    rig.confirm(&ends);
    let (short, message, addresses) = rig.told();
    assert_eq!((short.as_str(), addresses), ("False AddressNotAssigned", None));
    assert!(message.contains("The address of Service \"infra/web-pingsix\""), "{message}");
    // Another process has seen more objects: its status stays for a while.
    let mut said = managed_gateway();
    said["metadata"]["resourceVersion"] = json!("2");
    said["status"] = json!({"conditions": [{"type": "Programmed", "status": "True"}]});
    rig.apply(Kind::Gateway, said);
    assert!(!rig.engine.report.status.contains(&web()));
    let addresses = vec![Address::Ip([192, 0, 2, 7].into())];
    rig.stand(&ends, Provisioned { addresses, ..Provisioned::default() });
    assert_eq!(rig.told().0, "True Programmed");
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_runs_no_data_planes_says_so() {
    let (mut rig, _ends) = Rig::managing();
    rig.engine.shared.managed.provisioning = None;
    rig.engine.handle(Message::Delivery(web()));
    let (short, message, _) = rig.told();
    assert_eq!(short, "False NoResources");
    assert!(message.contains("runs no data planes"), "{message}");
    assert!(
        message.contains("PINGSIX_GATEWAY_FEED_ENDPOINT") && message.contains("deploy/data-planes"),
        "{message}"
    );
    // The class claims no feature either.
    let class = ObjectKey::new(Kind::GatewayClass, "", "pingsix");
    let features = |rig: &Rig| {
        let Some(Wanted::GatewayClass(verdict)) = rig.wanted(&class) else { panic!("nothing is said") };
        assert!(verdict.is_accepted());
        let accepted = verdict.conditions.get(ConditionType::Accepted).unwrap();
        (verdict.supported_features.len(), accepted.message.clone())
    };
    assert!(features(&rig).0 > 0 && !features(&rig).1.contains("runs none"));
    rig.engine.report.update_class(&rig.engine.shared, &class);
    assert_eq!(features(&rig).0, 0);
    assert!(
        features(&rig).1.contains("this controller was started without feed.endpoint"),
        "{}",
        features(&rig).1
    );
}

/// Names a Secret with keys.
fn encrypted() -> Value {
    proxy(json!({"managed": {"process": {"dataEncryption": {"keyringSecretRef": {"name": "keys"}}}}}))
}

fn keys(version: u32, keyring: &str) -> Value {
    json!({
        "metadata": {"name": "keys", "namespace": "infra", "resourceVersion": version.to_string()},
        "data": {"keyring": BASE64_STANDARD.encode(keyring)},
    })
}

impl Rig {
    /// With a certificate on a third port.
    fn with_certificate() -> (Self, Ends) {
        let (mut rig, ends) = Self::managing();
        let pair = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
        let (cert, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
        rig.apply(
            Kind::Secret,
            json!({
                "metadata": {"name": "tls", "namespace": "infra", "resourceVersion": "1"},
                "type": "kubernetes.io/tls",
                "data": {"tls.crt": BASE64_STANDARD.encode(cert), "tls.key": BASE64_STANDARD.encode(key)},
            }),
        );
        let mut other = managed_gateway();
        other["metadata"]["resourceVersion"] = json!("2");
        other["spec"]["listeners"].as_array_mut().unwrap().push(json!({
            "name": "c", "port": 443, "protocol": "HTTPS", "hostname": "a.example",
            "tls": {"certificateRefs": [{"name": "tls"}]},
        }));
        rig.apply(Kind::Gateway, other);
        rig.settle();
        (rig, ends)
    }

    /// The certificate as it is handed out: whether it is in plaintext, and which of the keys opens it.
    fn certificate(&self, keys: &[&'static str]) -> (bool, Vec<&'static str>) {
        let scope = Scope::new("/pingsix/infra/web:443").unwrap();
        let documents = self.feed().sink.documents(&scope).unwrap();
        let ssl = documents.iter().find(|document| document.key.as_str().starts_with("ssls/")).unwrap();
        let text = String::from_utf8_lossy(&ssl.value);
        assert_eq!(text.contains("$pingsix-enc:v1$"), !text.contains("PRIVATE KEY"));
        let opens = |entry: &&&str| resource::Keyring::new([**entry]).unwrap().open(ssl).is_some();
        (text.contains("PRIVATE KEY"), keys.iter().filter(opens).copied().collect())
    }
}

/// All processes have these keys.
fn held(keys: &[&str]) -> Provisioned {
    let keys = Keyring(keys.iter().map(|key| (*key).to_owned()).collect());
    Provisioned { keys: DeployedKeys::All(keys), ..Provisioned::default() }
}

/// Which keys processes are to be given.
fn given(ends: &Ends) -> Result<Vec<String>, MissingKeysError> {
    ends.wanted.borrow().needs[&web()].keyring.clone().map(|keys| keys.0)
}

impl Rig {
    /// All processes get these keys, and the controller takes all steps that follow.
    fn hold(&mut self, ends: &Ends, keys: &[&str]) {
        self.stand(ends, held(keys));
        self.settle();
    }
}

#[tokio::test(start_paused = true)]
async fn secrets_are_handed_out_encrypted_with_a_key_that_all_processes_have() {
    let (mut rig, ends) = Rig::with_certificate();
    let all = &["old", "new", "other"];
    let text = |keys: &[&str]| Ok(keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>());
    rig.hold(&ends, &[]);
    // The running processes have no key.
    rig.apply(Kind::Secret, keys(1, "old\n"));
    rig.apply(Kind::PingsixProxy, encrypted());
    rig.settle();
    assert_eq!((rig.certificate(all), given(&ends)), ((true, vec![]), text(&["old"])));
    rig.hold(&ends, &["old"]);
    assert_eq!(rig.certificate(all), (false, vec!["old"]));
    // The new one first, with that of before.
    rig.apply(Kind::Secret, keys(2, "new\nold\n"));
    rig.settle();
    assert_eq!((rig.certificate(all), given(&ends)), ((false, vec!["old"]), text(&["new", "old"])));
    rig.hold(&ends, &["new", "old"]);
    assert_eq!(rig.certificate(all), (false, vec!["new"]));
    rig.apply(Kind::Secret, keys(3, "new\n"));
    rig.settle();
    assert_eq!((rig.certificate(all), given(&ends)), ((false, vec!["new"]), text(&["new"])));
    // In one step.
    rig.hold(&ends, &["new"]);
    rig.apply(Kind::Secret, keys(4, "other\n"));
    rig.settle();
    assert_eq!((rig.certificate(all), given(&ends)), ((false, vec!["new"]), text(&["other", "new"])));
    rig.hold(&ends, &["other", "new"]);
    assert_eq!((rig.certificate(all), given(&ends)), ((false, vec!["other"]), text(&["other"])));
    // While the Secret is not there, routes go on changing.
    rig.hold(&ends, &["other"]);
    rig.tell(Kind::Secret, watcher::Event::Delete(keys(4, "")));
    rig.apply(Kind::HttpRoute, route(2));
    rig.settle();
    assert_eq!(rig.certificate(all), (false, vec!["other"]));
    assert!(given(&ends).unwrap_err().to_string().contains("does not exist"));
    let shown = format!("{:?} {:?}", rig.engine.publish.encryptions, rig.engine.shared.managed.provisioned);
    assert!(!shown.contains("\"other\""), "keys are not shown: {shown}");
    // Switched off, while they have keys.
    rig.apply(Kind::PingsixProxy, proxy(json!({"managed": {}})));
    rig.settle();
    assert_eq!((rig.certificate(all), given(&ends)), ((true, vec![]), text(&[])));
}

#[tokio::test(start_paused = true)]
async fn another_process_of_the_controller_goes_on_with_the_key_of_before() {
    for (keyring, seal, next) in [("new\nold\n", "old", Ok(vec!["new", "old"])), ("", "old", Err(()))] {
        let (mut rig, ends) = Rig::with_certificate();
        if !keyring.is_empty() {
            rig.apply(Kind::Secret, keys(1, keyring));
        }
        let before = rig.begun_for_pingsix();
        rig.apply(Kind::PingsixProxy, encrypted());
        rig.settle();
        // The keys of its processes are unknown: no publication, and no report of completion.
        assert_eq!(rig.begun_for_pingsix(), before);
        assert!(given(&ends).is_err());
        rig.hold(&ends, &["old"]);
        assert_eq!(rig.certificate(&["old", "new"]), (false, vec![seal]));
        let given = given(&ends).map_err(|_| ());
        assert_eq!(given, next.map(|keys| keys.into_iter().map(str::to_owned).collect()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_gateway_without_processes_is_encrypted_from_the_start() {
    let (mut rig, ends) = Rig::with_certificate();
    rig.stand(&ends, Provisioned::default());
    rig.apply(Kind::Secret, keys(1, "new\nold\n"));
    rig.apply(Kind::PingsixProxy, encrypted());
    rig.settle();
    assert_eq!(rig.certificate(&["old", "new"]), (false, vec!["new"]));
    assert_eq!(given(&ends), Ok(vec!["new".to_owned(), "old".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_decryption_error_starts_no_search_while_keys_are_being_deployed() {
    let says = "secret Decrypt failed for 'ssls/a': Configuration error: Encrypted value found but data_encryption is disabled";
    for (is_under_way, said, is_searched) in
        [(true, says, false), (true, "it is bad", true), (false, says, true)]
    {
        let (mut rig, ends) = Rig::with_certificate();
        rig.apply(Kind::Secret, keys(1, "old\n"));
        rig.endpoints(1, &[("10.0.0.1", true, false)]);
        rig.hold(&ends, if is_under_way { &[] } else { &["old"] });
        let plane = plane(443);
        let judge = |rig: &mut Rig, error: Option<&str>| {
            let revision = rig.engine.shared.deliveries.revision(&plane).unwrap().get();
            let page = StatusPage {
                published_revision: if error.is_some() { 1 } else { revision },
                observed_revision: revision,
                error_kind: error.map(|_| "candidate_invalid".to_owned()),
                last_error: error.map(str::to_owned),
                ..StatusPage::default()
            };
            let urls = ends.pages.borrow()[&web()][&plane].pages.urls.clone();
            let pages = urls.into_iter().map(|url| (url, Ok(page.clone()))).collect();
            rig.engine.handle(Message::Pages(plane.clone(), Instances::Pages(pages)));
        };
        judge(&mut rig, None);
        rig.apply(Kind::PingsixProxy, encrypted());
        rig.settle();
        for _ in 0..3 {
            judge(&mut rig, Some(said));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let is_refused = rig.engine.shared.reconciler.acceptance(&web()).unwrap().refusal().is_some();
        assert_eq!(is_refused, is_searched, "{is_under_way} {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn data_to_be_encrypted_is_not_published_in_plaintext_without_a_key() {
    let (mut rig, mut ends) = Rig::managing();
    rig.stand(&ends, Provisioned::default());
    let keyring = |ends: &mut Ends| ends.wanted.borrow_and_update().needs[&web()].keyring.clone();
    let before = rig.begun_for_pingsix();
    rig.apply(Kind::PingsixProxy, encrypted());
    rig.settle();
    assert_eq!(rig.begun_for_pingsix(), before);
    let absent = keyring(&mut ends).unwrap_err().to_string();
    assert_eq!(absent, "Secret \"infra/keys\" with the keyring does not exist.");
    let (short, message, _) = rig.told();
    assert_eq!(short, "False Pending");
    assert!(message.contains("Secret \"infra/keys\" with the keyring does not exist."), "{message}");
    // The object is watched.
    let secret = ObjectKey::new(Kind::Secret, "infra", "keys");
    assert_eq!(rig.engine.shared.reconciler.referenced(), [secret].into());
    rig.apply(Kind::Secret, keys(1, "\n\n"));
    rig.settle();
    assert!(
        keyring(&mut ends).unwrap_err().to_string().contains("holds no keyring in its entry \"keyring\"")
    );
    assert_eq!(rig.begun_for_pingsix(), before);
    rig.apply(Kind::Secret, keys(2, "old\n"));
    rig.settle();
    assert!(keyring(&mut ends).is_ok() && rig.begun_for_pingsix() > before);
}

/// Until all kinds are listed, the parameters of a class are unknown and not absent.
#[test]
fn a_class_has_no_report_before_everything_is_listed() {
    let mut rig = Rig::new();
    let class = ObjectKey::new(Kind::GatewayClass, "", "pingsix");
    for kind in Kind::ALL {
        rig.tell(*kind, watcher::Event::Init);
    }
    rig.tell(Kind::GatewayClass, watcher::Event::InitApply(managed_class()));
    rig.tell(Kind::GatewayClass, watcher::Event::InitDone);
    rig.engine.advance();
    assert!(rig.wanted(&class).is_none());
    rig.tell(Kind::PingsixProxy, watcher::Event::InitApply(proxy(json!({"managed": {}}))));
    for kind in Kind::ALL.iter().filter(|kind| **kind != Kind::GatewayClass) {
        rig.tell(*kind, watcher::Event::InitDone);
    }
    rig.engine.advance();
    let Some(Wanted::GatewayClass(verdict)) = rig.wanted(&class) else { panic!("a report on the class") };
    let accepted = verdict.conditions.get(ConditionType::Accepted).unwrap();
    assert_eq!(accepted.status, ConditionStatus::True, "{}", accepted.message);
}
