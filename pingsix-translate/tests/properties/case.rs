//! A table of objects, and whether translation agrees with the oracle about one request to it.

use std::collections::BTreeSet;
use std::error::Error as _;
use std::fmt;
use std::sync::Arc;

use pingsix_translate::pingsix::RouteTable;
use pingsix_translate::snapshot::{
    Gateway, GrpcRoute, HttpRoute, Namespace, ReferenceGrant, Secret, Service,
};
use pingsix_translate::{
    DataPlane, Kind, Layout, Object, ObjectKey, ObjectName, Objects, Options, Origin, Section, Snapshot,
    Translation, translate,
};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::answer::{RESPONDER, answer};
use crate::effect::Effect;
use crate::oracle::{Answer, Decided, Metadata, Route, RouteKindName, Target, World};
use crate::probe::Probe;
use crate::protection::{Protection, Treatment};

/// The options of a translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) layout: Layout,
    pub(crate) responder: bool,
}

impl Setting {
    pub(crate) fn options(self) -> Options {
        Options { layout: self.layout, responder: self.responder.then_some(RESPONDER), ..Options::default() }
    }
}

/// A table, its translation, and the oracle's view of it.
pub(crate) struct Case {
    pub(crate) world: World,
    pub(crate) translation: Translation,
    pub(crate) setting: Setting,
}

impl Case {
    pub(crate) fn new(objects: &[Value], setting: Setting) -> Self {
        let translation = translate(&snapshot(objects), &setting.options());
        Self { world: World::read(objects), translation, setting }
    }

    /// A case in which PingSIX has refused some rules: `namespace/name` of the route, index of the rule. The oracle is told
    /// that they ask for something that there is not.
    pub(crate) fn with_quarantine(
        objects: &[Value],
        rules: &BTreeSet<(String, usize)>,
        setting: Setting,
    ) -> Self {
        let mut snapshot = snapshot(objects);
        let mut told = objects.to_vec();
        for object in &mut told {
            let Some(kind) = object["kind"].as_str().and_then(route_kind) else { continue };
            let metadata = &object["metadata"];
            let [namespace, name] =
                ["namespace", "name"].map(|key| metadata[key].as_str().unwrap().to_owned());
            let mut route_rules = object["spec"]["rules"].as_array_mut();
            for (index, rule) in route_rules.iter_mut().flat_map(|rules| rules.iter_mut()).enumerate() {
                if rules.contains(&(format!("{namespace}/{name}"), index)) {
                    match rule["filters"].as_array_mut() {
                        Some(filters) => filters.push(json!({"type": "ExtensionRef"})),
                        None => rule["filters"] = json!([{"type": "ExtensionRef"}]),
                    }
                    let object = Arc::new(ObjectKey::new(kind, namespace.as_str(), name.as_str()));
                    let origin = Origin { object, section: Section::Rule(index) };
                    snapshot.referents.quarantine.insert(origin, "refused".into());
                }
            }
        }
        let translation = translate(&snapshot, &setting.options());
        Self { world: World::read(&told), translation, setting }
    }

    /// The case of one of several Gateways.
    pub(crate) fn around(gateway: &str, objects: &[Value], setting: Setting) -> Self {
        let translation = translate(&snapshot_of(gateway, objects), &setting.options());
        Self { world: World::around(Some(gateway), objects), translation, setting }
    }

    /// Every data plane with its port, and every port that should have one.
    pub(crate) fn planes(&self) -> Vec<(Option<u16>, Option<&DataPlane>)> {
        let mut planes: Vec<_> =
            self.translation.data_planes.iter().map(|(key, plane)| (key.port(), Some(plane))).collect();
        if self.setting.layout == Layout::PerPort {
            for port in self.world.ports() {
                if !planes.iter().any(|(known, _)| *known == Some(port)) {
                    planes.push((Some(port), None));
                }
            }
        }
        planes
    }

    /// Compares the answers to requests in several insertion orders.
    ///
    /// # Errors
    ///
    /// The first disagreement.
    pub(crate) fn check(
        &self,
        probes: &[Probe],
        orders: usize,
        seed: u64,
    ) -> Result<Tally, Box<Disagreement>> {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut tally = Tally::default();
        for (port, plane) in self.planes() {
            let disagree =
                |probe: &Probe, said: String| Box::new(Disagreement { port, probe: probe.clone(), said });
            let Some(plane) = plane else {
                return Err(disagree(&Probe::default(), "a port that serves has no data plane".to_owned()));
            };
            let (probes, expected): (Vec<Probe>, Vec<Decided>) =
                probes.iter().map(|probe| self.world.meet(port, probe)).unzip();
            let requests: Vec<_> = probes.iter().map(Probe::request).collect();
            let table = RouteTable::new(&plane.config);
            let mut order: Vec<usize> = (0..table.len()).collect();
            for _ in 0..orders {
                order.shuffle(&mut rng);
                let router = table.insert_in(order.iter().copied()).map_err(|error| {
                    disagree(&Probe::default(), format!("{error}: {}", error.source().unwrap()))
                })?;
                for ((probe, request), expected) in probes.iter().zip(&requests).zip(&expected) {
                    let decided = answer(&self.world, plane, &router, request)
                        .map_err(|error| disagree(probe, error))?;
                    let refused = !self.setting.responder
                        && self
                            .route_of(&decided)
                            .is_some_and(|route| decided.answer == Answer::status(route.kind.failure()))
                        && self.reports_refusal(decided.rule.as_ref());
                    // A preflight for what no rule takes: PingSIX looks for a rule that has the method asked for.
                    let is_late_preflight = expected.rule.is_none()
                        && expected.answer == Answer::status(404)
                        && match decided.answer.targets().as_slice() {
                            [Target::Preflight(_)] => self.world.may_answer_preflight(port, probe),
                            [Target::Status(status)] => {
                                self.world.error_for_preflight(port, probe) == Some(*status)
                                    && self.world.may_answer_preflight(port, probe)
                            }
                            _ => false,
                        };
                    if decided != *expected && !refused && !is_late_preflight {
                        let said = format!("the oracle says {expected:?}, the data plane {decided:?}");
                        return Err(disagree(probe, said));
                    }
                    tally.count(expected, refused && decided != *expected);
                    let kind = self.route_of(&decided).map(|route| route.kind);
                    tally.of_listener_sets += u64::from(self.world.is_for_listener_set(port, probe));
                    tally.calls += u64::from(kind == Some(RouteKindName::Grpc));
                }
            }
        }
        Ok(tally)
    }

    /// The route whose rule decided. No two have one name, whatever their kinds.
    fn route_of(&self, decided: &Decided) -> Option<&Route> {
        let (name, _) = decided.rule.as_ref()?;
        self.world.routes.iter().find(|route| {
            let Metadata { namespace, name: own, .. } = &route.metadata;
            name.split_once('/') == Some((namespace.as_str(), own.as_str()))
        })
    }

    /// Whether the author of a rule is told that it is not served.
    fn reports_refusal(&self, rule: Option<&(String, usize)>) -> bool {
        let Some((route, rule)) = rule else { return false };
        let field = format!("spec.rules[{rule}]");
        self.translation.verdicts.problems.iter().any(|problem| {
            problem.object.name.to_string() == *route && problem.field.as_str().starts_with(&field)
        })
    }
}

fn route_kind(kind: &str) -> Option<Kind> {
    [Kind::HttpRoute, Kind::GrpcRoute].into_iter().find(|route| route.as_str() == kind)
}

/// The number of checked requests, by the oracle's answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) checks: u64,
    pub(crate) not_found: u64,
    pub(crate) errors: u64,
    pub(crate) one_service: u64,
    pub(crate) shares: u64,
    pub(crate) redirects: u64,
    pub(crate) preflights: u64,
    /// Reached a backend, and something became of its answer.
    pub(crate) effects: u64,
    /// Reached a backend under policies.
    pub(crate) protected: u64,
    /// Reached a backend under TrafficPolicies.
    pub(crate) treated: u64,
    /// Decided by a GRPCRoute, whatever the answer.
    pub(crate) calls: u64,
    /// Taken by a listener of a ListenerSet, whatever the answer.
    pub(crate) of_listener_sets: u64,
    /// Answered with 500 for want of a responder, whatever the oracle says.
    pub(crate) refused: u64,
}

impl Tally {
    fn count(&mut self, expected: &Decided, refused: bool) {
        self.checks += 1;
        self.refused += u64::from(refused);
        self.effects += u64::from(expected.effect.as_ref().is_some_and(Effect::is_one));
        let is_protected = expected.protection.as_ref().is_some_and(|of| *of != Protection::default());
        self.protected += u64::from(is_protected);
        let is_treated = expected.protection.as_ref().is_some_and(|of| of.treatment != Treatment::default());
        self.treated += u64::from(is_treated);
        let of_this_kind = match (&expected.rule, expected.answer.targets().as_slice()) {
            (_, [Target::Preflight(_)]) => &mut self.preflights,
            (None, _) => &mut self.not_found,
            (Some(_), [Target::Status(_)]) => &mut self.errors,
            (Some(_), [Target::Redirect { .. }]) => &mut self.redirects,
            (Some(_), [Target::Service { .. }]) => &mut self.one_service,
            (Some(_), _) => &mut self.shares,
        };
        *of_this_kind += 1;
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.checks += other.checks;
        self.not_found += other.not_found;
        self.errors += other.errors;
        self.one_service += other.one_service;
        self.shares += other.shares;
        self.redirects += other.redirects;
        self.preflights += other.preflights;
        self.effects += other.effects;
        self.protected += other.protected;
        self.treated += other.treated;
        self.calls += other.calls;
        self.of_listener_sets += other.of_listener_sets;
        self.refused += other.refused;
    }
}

/// A request about which the data plane and the oracle disagree.
#[derive(Clone, Debug)]
pub(crate) struct Disagreement {
    pub(crate) port: Option<u16>,
    pub(crate) probe: Probe,
    pub(crate) said: String,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port {:?}, {:#?}: {}", self.port, self.probe, self.said)
    }
}

/// Builds the objects in the order given and cuts the Gateway's snapshot.
pub(crate) fn snapshot(objects: &[Value]) -> Snapshot {
    snapshot_of("public", objects)
}

/// Builds the objects in the order given and cuts the snapshot of Gateway `infra/<gateway>`.
fn snapshot_of(gateway: &str, objects: &[Value]) -> Snapshot {
    let mut all = Objects::default();
    for object in objects {
        all.insert(decode(object));
    }
    all.snapshot(&ObjectName::new("infra", gateway)).expect("every table has the Gateway")
}

pub(crate) fn decode(object: &Value) -> Object {
    fn read<T: DeserializeOwned>(object: &Value) -> Arc<T> {
        Arc::new(T::deserialize(object).unwrap())
    }
    match object["kind"].as_str().unwrap() {
        "Gateway" => Object::Gateway(read::<Gateway>(object)),
        "ListenerSet" => Object::ListenerSet(read(object)),
        "HTTPRoute" => Object::HttpRoute(read::<HttpRoute>(object)),
        "GRPCRoute" => Object::GrpcRoute(read::<GrpcRoute>(object)),
        "ReferenceGrant" => Object::ReferenceGrant(read::<ReferenceGrant>(object)),
        "Service" => Object::Service(read::<Service>(object)),
        "EndpointSlice" => Object::EndpointSlice(read(object)),
        "IngressClass" => Object::IngressClass(read(object)),
        "Ingress" => Object::Ingress(read(object)),
        "Secret" => Object::Secret(read::<Secret>(object)),
        "ConfigMap" => Object::ConfigMap(read(object)),
        "TCPRoute" => Object::TcpRoute(read(object)),
        "TLSRoute" => Object::TlsRoute(read(object)),
        "BackendTLSPolicy" => Object::BackendTlsPolicy(read(object)),
        "BackendTrafficPolicy" => Object::BackendTrafficPolicy(read(object)),
        "Namespace" => Object::Namespace(read::<Namespace>(object)),
        "GatewayClass" => Object::GatewayClass(read(object)),
        "SecurityPolicy" => Object::SecurityPolicy(read(object)),
        "TrafficPolicy" => Object::TrafficPolicy(read(object)),
        "HTTPRouteFilter" => Object::HttpRouteFilter(read(object)),
        "PingsixProxy" => Object::PingsixProxy(read(object)),
        other => panic!("tables have no objects of kind {other}"),
    }
}

/// Every document of every data plane.
pub(crate) fn documents(translation: &Translation) -> Vec<(String, String)> {
    let planes = translation.data_planes.iter();
    planes
        .flat_map(|(key, plane)| plane.config.to_pairs(&key.prefix("/pingsix")).collect::<Vec<_>>())
        .collect()
}
