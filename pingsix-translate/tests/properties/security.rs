//! SecurityPolicies: which of them count for a request, what they leave alone, and that none of them fails open.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use pingsix_translate::pingsix::plugin::Cors;
use pingsix_translate::pingsix::{DocumentKey, PluginConfig as _, RouteTable};
use pingsix_translate::snapshot::Pending;
use pingsix_translate::{
    DataPlane, Kind, Layout, ObjectKey, Options, Origin, Provenance, Quarantine, Section, Translator,
    translate,
};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::answer::{answer, plugins_of};
use crate::case::{Case, Setting};
use crate::generate::security::{grant, policy, table_of_policies};
use crate::generate::{Taste, hosts, probe};
use crate::incremental::{Present, compare, identity, put, snapshot};
use crate::ingress::annotations::admits_any_origin;
use crate::oracle::World;
use crate::probe::Probe;
use crate::protection::{Credential, Protection};
use crate::{Tables, cases, check_routing, check_tables, order, refused_by_pingsix, report, wrong_verdicts};

#[test]
fn every_answer_under_security_policies_is_the_oracles() {
    for layout in [Layout::Shared, Layout::PerPort] {
        let tally = check_routing(table_of_policies, Setting { layout, responder: true }, 150, 2);
        assert!(tally.protected * 20 > tally.checks, "policies hardly ever count: {tally:?}");
    }
}

#[test]
fn verdicts_on_routes_under_security_policies_are_the_oracles() {
    check_tables(table_of_policies, wrong_verdicts);
}

#[test]
fn services_of_security_policies_are_accepted_by_pingsix() {
    check_tables(table_of_policies, refused_by_pingsix);
}

/// The specification of filters admits such credentials.
#[test]
fn no_service_of_policies_admits_credentials_of_any_origin() {
    let permissions = Cell::new(0_u64);
    check_tables(table_of_policies, |objects, setting| {
        let case = Case::new(objects, setting);
        let planes = case.translation.data_planes.iter();
        let services = planes.flat_map(|(_, plane)| {
            let of_policies =
                |key: &DocumentKey| matches!(plane.provenance.get(key), Some(Provenance::Policies { .. }));
            plane.config.services().filter(move |(key, _)| of_policies(key))
        });
        let mut plugins = services.filter_map(|(_, service)| service.plugins.raw(Cors::NAME).cloned());
        plugins.find_map(|cors| {
            permissions.set(permissions.get() + 1);
            let is_wrong = cors["allow_credential"] == true && admits_any_origin(&cors);
            is_wrong.then(|| cors.to_string())
        })
    });
    assert!(permissions.get() > 20, "hardly any permissions: {permissions:?}");
}

#[test]
fn the_order_of_security_policies_changes_nothing() {
    check_tables(table_of_policies, order::difference);
}

#[test]
fn a_security_policy_changes_no_answer_that_it_does_not_target() {
    check_interference(table_of_policies);
}

/// Checks that no policy of a table changes answers to requests that it does not target.
pub(crate) fn check_interference(tables: Tables) {
    let compared = Cell::new(0_u64);
    for seed in 0..cases() {
        let mut rng = SmallRng::seed_from_u64(seed ^ 0x0053_4543);
        let objects = tables(&mut rng, Taste { https: seed % 2 == 1 });
        let hosts = hosts(&objects);
        let probes: Vec<Probe> = (0..60).map(|_| probe(&mut rng, &hosts)).collect();
        for layout in [Layout::Shared, Layout::PerPort] {
            let setting = Setting { layout, responder: true };
            let failure = |objects: &[Value]| match interference(objects, setting, &probes) {
                Ok(count) => {
                    compared.set(compared.get() + count);
                    None
                }
                Err(difference) => Some(difference),
            };
            if failure(&objects).is_some() {
                report(seed, setting, objects, failure);
                return;
            }
        }
    }
    println!("{} answers compared", compared.get());
    assert!(compared.get() > cases() * 60, "policies target everything");
}

/// Compares answers with each policy and without it. Returns the number of compared answers.
fn interference(objects: &[Value], setting: Setting, probes: &[Probe]) -> Result<u64, String> {
    let with = Case::new(objects, setting);
    let mut compared = 0;
    let is_policy = |object: &&Value| object["kind"] == "SecurityPolicy" || object["kind"] == "TrafficPolicy";
    for policy in objects.iter().filter(is_policy) {
        let kind = policy["kind"].as_str().unwrap();
        let metadata = &policy["metadata"];
        let name = ["namespace", "name"].map(|field| metadata[field].as_str().unwrap().to_owned());
        let others: Vec<Value> = objects.iter().filter(|object| *object != policy).cloned().collect();
        let without = Case::new(&others, setting);
        for ((port, plane), (_, plane_without)) in with.planes().into_iter().zip(without.planes()) {
            let (Some(plane), Some(plane_without)) = (plane, plane_without) else { continue };
            let name = name.clone().into();
            let untargeted: Vec<&Probe> =
                probes.iter().filter(|probe| !with.world.is_concerned((kind, &name), port, probe)).collect();
            let answers = bytes_of_answers(plane, &untargeted)?;
            for ((one, other), probe) in
                answers.iter().zip(bytes_of_answers(plane_without, &untargeted)?).zip(&untargeted)
            {
                if *one != other {
                    return Err(format!(
                        "with {name:?}, {port:?} answers {probe:?} with {one}\nwithout: {other}"
                    ));
                }
                compared += 1;
            }
        }
    }
    Ok(compared)
}

/// The documents that answer requests.
fn bytes_of_answers(plane: &DataPlane, probes: &[&Probe]) -> Result<Vec<String>, String> {
    let table = RouteTable::new(&plane.config);
    let router = table.insert_in(0..table.len()).map_err(|error| error.to_string())?;
    let bytes = |probe: &&Probe| {
        let request = probe.request();
        let route = router.lookup(request.routing_host(), &request.path, &request.method);
        let plugins = match route {
            None => String::new(),
            Some(route) => {
                let mut plugins =
                    serde_json::to_value(plugins_of(plane, route)?).map_err(|e| e.to_string())?;
                remove_own_host(&mut plugins, request.routing_host());
                plugins.to_string()
            }
        };
        Ok(format!("{:?} {plugins}", router.outcome(&request)))
    };
    probes.iter().map(bytes).collect()
}

/// Removes the host that a Route sends, if it is the host of the request: a policy of another host may fix it.
fn remove_own_host(plugins: &mut Value, host: Option<&str>) {
    let Some(rewrite) = plugins.get_mut("proxy-rewrite").and_then(Value::as_object_mut) else { return };
    let sent = rewrite.get("host").and_then(Value::as_str).and_then(|sent| sent.split(':').next());
    if sent.zip(host).is_some_and(|(sent, host)| sent.eq_ignore_ascii_case(host)) {
        rewrite.remove("host");
    }
    if rewrite.is_empty() {
        plugins.as_object_mut().unwrap().remove("proxy-rewrite");
    }
}

/// Requests to backends behind the guard, by what became of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Judged {
    /// The backend asks for the key of the moment.
    pub(crate) guarded: u64,
    /// An error, while the guard cannot be honoured.
    pub(crate) closed: u64,
}

#[test]
fn a_security_policy_never_fails_open() {
    let mut all = Judged::default();
    for seed in 0..cases() / 2 {
        match guarded_history(seed) {
            Ok(Judged { guarded, closed }) => {
                all.guarded += guarded;
                all.closed += closed;
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    println!("{all:?}");
    assert!(all.guarded > cases() * 8 && all.closed > cases() * 20, "one state hardly ever occurs: {all:?}");
}

/// The policy that guards the whole Gateway. It is older than all others, so it wins its target.
fn guard(rng: &mut SmallRng) -> Value {
    let mut secret = json!({ "name": "guard" });
    if rng.random_bool(0.7) {
        secret["namespace"] = json!("app");
    }
    json!({
        "kind": "SecurityPolicy",
        "metadata": { "namespace": "infra", "name": "guard", "creationTimestamp": "2020-01-01T00:00:00Z" },
        "spec": {
            "targetRefs": [{ "group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "public" }],
            "strategy": "Overrides",
            "apiKeyAuth": { "credentialRefs": [secret] },
        },
    })
}

pub(crate) fn secret_of_guard(namespace: &str, key: &str) -> Value {
    json!({
        "kind": "Secret", "metadata": { "namespace": namespace, "name": "guard" },
        "data": { "key": BASE64_STANDARD.encode(key) },
    })
}

pub(crate) fn grant_of_guard(rng: &mut SmallRng) -> Value {
    let mut grant = grant(rng, "app");
    grant["metadata"]["name"] = json!("guard");
    grant["spec"]["from"][0]["namespace"] = json!("infra");
    grant["spec"]["to"][0] = json!({ "group": "", "kind": "Secret", "name": "guard" });
    grant
}

/// Whether an object lets the guard use its Secret in namespace `app`.
fn grants_guard(object: &Value) -> bool {
    let (from, to) = (&object["spec"]["from"][0], &object["spec"]["to"][0]);
    object["kind"] == "ReferenceGrant"
        && object["metadata"]["namespace"] == "app"
        && from["kind"] == "SecurityPolicy"
        && from["namespace"] == "infra"
        && to["kind"] == "Secret"
        && (to["name"].is_null() || to["name"] == "guard")
}

/// The keys that the guard asks for; `None` while it cannot be honoured.
pub(crate) fn keys_of_guard(
    objects: &Present,
    quarantine: &Quarantine,
    pending: &Pending,
) -> Option<BTreeSet<String>> {
    let (guard, _) = &objects["SecurityPolicy infra/guard"];
    let spec = &guard["spec"];
    let known = ["targetRefs", "strategy", "apiKeyAuth"];
    let namespace = spec["apiKeyAuth"]["credentialRefs"][0]["namespace"].as_str().unwrap_or("infra");
    let is_granted = namespace == "infra" || objects.values().any(|(object, _)| grants_guard(object));
    let policy = ObjectKey::new(Kind::SecurityPolicy, "infra", "guard");
    let secret = ObjectKey::new(Kind::Secret, namespace, "guard");
    let is_held = |key: &ObjectKey| quarantine.keys().any(|origin| *origin.object == *key);
    if !spec.as_object()?.keys().all(|field| known.contains(&field.as_str()))
        || !is_granted
        || is_held(&policy)
        || is_held(&secret)
        || (pending.contains_key(&secret) && !objects.contains_key(&format!("Secret {namespace}/guard")))
    {
        return None;
    }
    let (secret, _) = objects.get(&format!("Secret {namespace}/guard"))?;
    let data = secret["data"].as_object()?;
    let keys = data.values().map(|value| BASE64_STANDARD.decode(value.as_str()?).ok());
    let is_usable = |key: &String| !key.is_empty() && key.is_ascii();
    let keys = keys.map(|key| String::from_utf8(key?).ok().filter(is_usable));
    keys.collect::<Option<BTreeSet<String>>>().filter(|keys| !keys.is_empty())
}

/// Changes the guard or a thing that it depends on. `guard` makes a new guard.
pub(crate) fn change_guard(
    rng: &mut SmallRng,
    objects: &mut Present,
    quarantine: &mut Quarantine,
    pending: &mut Pending,
    guard: impl FnOnce(&mut SmallRng) -> Value,
) {
    let namespace = if rng.random() { "app" } else { "infra" };
    let secret = format!("Secret {namespace}/guard");
    match rng.random_range(0..10) {
        0..4 => {
            let keys = ["k1", "k2", "k3", "k4", "", "\u{e9}"].choose(rng).unwrap();
            put(objects, secret_of_guard(namespace, keys));
        }
        4 if rng.random_bool(0.3) => {
            objects.remove(&secret);
        }
        4 if rng.random_bool(0.3) => {
            objects.remove("ReferenceGrant app/guard");
        }
        4 => put(objects, grant_of_guard(rng)),
        5 => {
            let mut guard = guard(rng);
            match rng.random_range(0..4) {
                0 => guard["spec"]["apiKeyAuth"] = json!("k1"),
                1 => guard["spec"]["oidc"] = json!({}),
                2 => guard["spec"]["anonymous"] = json!({}),
                _ => {}
            }
            put(objects, guard);
        }
        6 => {
            let (kind, namespace) =
                *[(Kind::SecurityPolicy, "infra"), (Kind::Secret, "app")].choose(rng).unwrap();
            let object = Arc::new(ObjectKey::new(kind, namespace, "guard"));
            let origin = Origin { object, section: Section::Whole };
            if !quarantine.remove(&origin) {
                quarantine.insert(origin, "refused".into());
            }
        }
        7 => {
            let key = ObjectKey::new(Kind::Secret, namespace, "guard");
            if !pending.remove(&key) {
                pending.insert(key, ());
                objects.remove(&secret);
            }
        }
        _ => {}
    }
}

/// Changes policies and routes beside the guard.
fn change_rest(rng: &mut SmallRng, objects: &mut Present, others: &[Value]) {
    let Some(other) = others.choose(rng) else { return };
    let id = identity(other);
    match rng.random_range(0..4) {
        0 if other["kind"] != "Gateway" => {
            objects.remove(&id);
        }
        1 => {
            let targets: Vec<Value> = objects.values().map(|(object, _)| object.clone()).collect();
            let is_target = |object: &&Value| {
                let kind = object["kind"].as_str().unwrap_or_default();
                kind.ends_with("Route") || kind == "Gateway" || kind == "ListenerSet"
            };
            let targets: Vec<Value> = targets.iter().filter(is_target).cloned().collect();
            put(objects, policy(rng, "beside", &targets));
        }
        _ => put(objects, other.clone()),
    }
}

/// Takes a guarded table through changes, and judges the answers to requests after each.
fn guarded_history(seed: u64) -> Result<Judged, String> {
    let mut rng = SmallRng::seed_from_u64(seed ^ 0x4755_4152);
    let taste = Taste { https: seed % 2 == 1 };
    let mut objects = Present::new();
    for object in table_of_policies(&mut rng, taste) {
        put(&mut objects, object);
    }
    put(&mut objects, guard(&mut rng));
    for namespace in ["infra", "app"] {
        put(&mut objects, secret_of_guard(namespace, "k1"));
    }
    put(&mut objects, grant_of_guard(&mut rng));
    let mut others: Vec<Value> = (0..3).flat_map(|_| table_of_policies(&mut rng, taste)).collect();
    others.retain(|object| object["kind"] != "Namespace");
    let options = Options {
        layout: if rng.random() { Layout::Shared } else { Layout::PerPort },
        responder: rng.random_bool(0.7).then_some(crate::answer::RESPONDER),
        ..Options::default()
    };
    let mut translator = Translator::new(options.clone());
    let (mut quarantine, mut pending) = (Quarantine::new(), Pending::new());
    let mut judged = Judged::default();
    for step in 0..12 {
        let mut present = snapshot(&objects);
        present.referents.quarantine = quarantine.clone();
        present.referents.pending = pending.clone();
        let translation = translator.translate(&present);
        compare(&translation, &translate(&present, &options))
            .map_err(|error| format!("step {step}: {error}"))?;
        let keys = keys_of_guard(&objects, &quarantine, &pending);
        let written: Vec<Value> = objects.values().map(|(object, _)| object.clone()).collect();
        let world = World::read(&written);
        let hosts = hosts(&written);
        let probes: Vec<Probe> = (0..40).map(|_| probe(&mut rng, &hosts)).collect();
        for plane in translation.data_planes.values() {
            judge(&world, plane, &probes, keys.as_ref(), &mut judged)
                .map_err(|error| format!("step {step}: {error}"))?;
        }
        for _ in 0..rng.random_range(1..4) {
            if rng.random() {
                change_guard(&mut rng, &mut objects, &mut quarantine, &mut pending, guard);
            } else {
                change_rest(&mut rng, &mut objects, &others);
            }
        }
    }
    Ok(judged)
}

/// Judges the answers of a data plane. Only the key of the moment opens the way to a backend.
fn judge(
    world: &World,
    plane: &DataPlane,
    probes: &[Probe],
    keys: Option<&BTreeSet<String>>,
    judged: &mut Judged,
) -> Result<(), String> {
    let table = RouteTable::new(&plane.config);
    let router = table.insert_in(0..table.len()).map_err(|error| error.to_string())?;
    for probe in probes {
        let decided = answer(world, plane, &router, &probe.request())?;
        let Some(Protection { credential, .. }) = &decided.protection else {
            judged.closed += u64::from(keys.is_none() && decided.rule.is_some());
            continue;
        };
        match (credential, keys) {
            (Some(Credential::Key { keys: demanded, .. }), Some(keys)) if demanded == keys => {
                judged.guarded += 1;
            }
            _ => return Err(format!("the guard asks for {keys:?}, and {probe:?} gets {decided:?}")),
        }
    }
    Ok(())
}
