//! Requests by connections for which the sidecar terminates TLS: every pair of a server name and a host.

use pingsix_translate::pingsix::{Request, RouteTable};
use pingsix_translate::stream::{Arrival, Destination, StreamConfig};
use pingsix_translate::{DataPlaneKey, Layout};
use rand::rngs::SmallRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::answer::answer;
use crate::case::{Setting, snapshot};
use crate::generate::{Taste, hosts, listener_set, probe, table};
use crate::oracle::{Answer, Decided, World};
use crate::probe::Probe;

/// Data planes per port, behind sidecars that terminate TLS.
pub(crate) const SETTING: Setting = Setting { layout: Layout::PerPort, responder: true };

/// The status for a request that came in by the connection of another listener.
const MISDIRECTED: u16 = 421;

/// Counts of pairs by what becomes of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) closed: u64,
    pub(crate) misdirected: u64,
    pub(crate) not_found: u64,
    pub(crate) decided: u64,
    pub(crate) redirects: u64,
}

impl Seen {
    pub(crate) fn add(&mut self, other: Self) {
        self.closed += other.closed;
        self.misdirected += other.misdirected;
        self.not_found += other.not_found;
        self.decided += other.decided;
        self.redirects += other.redirects;
    }

    pub(crate) const fn is_everything(self) -> bool {
        let all = self.closed + self.misdirected + self.not_found + self.decided;
        self.closed * 50 > all
            && self.misdirected * 20 > all
            && self.not_found * 50 > all
            && self.decided * 20 > all
            && self.redirects > 0
    }
}

/// A table with several HTTPS listeners on a port, also of ListenerSets.
pub(crate) fn fronted_table(rng: &mut SmallRng) -> Vec<Value> {
    let mut objects = table(rng, Taste { https: true });
    listener_set::add(rng, Taste { https: true }, &mut objects);
    for object in &mut objects {
        if !["Gateway", "ListenerSet"].contains(&object["kind"].as_str().unwrap_or_default()) {
            continue;
        }
        for listener in object["spec"]["listeners"].as_array_mut().into_iter().flatten() {
            // The oracle takes streams for unsupported.
            if listener["protocol"] == "TCP" {
                listener["protocol"] = json!("example.com/bespoke");
            }
            if listener["protocol"] == "HTTP" && rng.random_bool(0.7) {
                listener["protocol"] = json!("HTTPS");
                listener["port"] = json!(443);
                let secret = if rng.random_bool(0.1) { "absent" } else { "certificate" };
                listener["tls"] = json!({"certificateRefs": [{"name": secret, "namespace": "infra"}]});
            }
        }
    }
    objects
}

/// The class with parameters by which sidecars terminate TLS.
pub(crate) fn parameters() -> [Value; 2] {
    let reference =
        json!({"group": "pingsix.io", "kind": "PingsixProxy", "namespace": "infra", "name": "all"});
    [
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": "pingsix"},
            "spec": {"controllerName": "pingsix.io/gateway-controller", "parametersRef": reference},
        }),
        json!({
            "apiVersion": "pingsix.io/v1alpha1", "kind": "PingsixProxy",
            "metadata": {"namespace": "infra", "name": "all"}, "spec": {"managed": {"sidecar": {"https": true}}},
        }),
    ]
}

/// Compares the answers to pairs of server names and hosts with the oracle's.
///
/// # Errors
///
/// The first disagreement.
pub(crate) fn check(objects: &[Value], seed: u64) -> Result<Seen, String> {
    let mut rng = SmallRng::seed_from_u64(seed ^ 0x0046_524e);
    let hosts = hosts(objects);
    let probes: Vec<Probe> = (0..120).map(|_| probe(&mut rng, &hosts)).collect();
    let world = World::read(objects);
    let all: Vec<Value> = objects.iter().cloned().chain(parameters()).collect();
    let translation = pingsix_translate::translate(&snapshot(&all), &SETTING.options());
    let streams = translation.stream_planes.values().next().ok_or("there are no stream documents")?;
    let violations = pingsix_translate::stream::validate(&streams.config);
    if !violations.is_empty() {
        return Err(format!("stream documents at fault: {violations:?}"));
    }
    let mut counts = Seen::default();
    for (key, plane) in &translation.data_planes {
        let DataPlaneKey::Gateway { port: Some(port), .. } = key else {
            return Err(format!("what is {key}?"));
        };
        let is_fronted = |index: usize| {
            let listener = &world.listeners[index];
            listener.port == *port && listener.protocol == "HTTPS" && world.serves(index)
        };
        if !(0..world.listeners.len()).any(is_fronted) {
            continue;
        }
        if let Some((key, _)) = plane.config.to_pairs("").find(|(key, _)| key.contains("ssls/")) {
            return Err(format!("PingSIX has a certificate it shows nobody: {key}"));
        }
        let table = RouteTable::new(&plane.config);
        let mut order: Vec<usize> = (0..table.len()).collect();
        order.shuffle(&mut rng);
        let router = table.insert_in(order).map_err(|error| error.to_string())?;
        // A request for no path gets 404 from PingSIX, whatever the host.
        let is_usual = |probe: &&Probe| !probe.is_preflight() && probe.path.starts_with('/');
        for probe in probes.iter().filter(is_usual) {
            let probe = probe.clone().at(true, *port);
            let names = [hosts.choose(&mut rng).cloned(), probe.routing_host(), None];
            for name in names {
                let arrived = arrival(&world, &streams.config, *port, name.as_deref(), &probe)?;
                let Some((request, expected)) = arrived else {
                    counts.closed += 1;
                    continue;
                };
                let got = answer(&world, plane, &router, &request)?;
                if got != expected {
                    return Err(format!(
                        "{probe:?} by a connection for {name:?}: the oracle says {expected:?}, the data plane {got:?}"
                    ));
                }
                match (&expected.rule, expected.answer.targets().as_slice()) {
                    (None, [crate::oracle::Target::Status(MISDIRECTED)]) => counts.misdirected += 1,
                    (None, _) => counts.not_found += 1,
                    (Some(_), _) => counts.decided += 1,
                }
                counts.redirects += u64::from(expected.redirects());
            }
        }
    }
    Ok(counts)
}

/// The request as PingSIX gets it, and the answer to it; `None` if the connection is closed.
fn arrival(
    world: &World,
    config: &StreamConfig,
    port: u16,
    name: Option<&str>,
    probe: &Probe,
) -> Result<Option<(Request, Decided)>, String> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
    let name = name.map(|name| name.split(':').next().unwrap_or_default().to_ascii_lowercase());
    // Other texts are no server names, and no client sends them.
    let name = name.filter(|name| !name.is_empty() && name.chars().all(is_letter));
    let by = world.listener_for(port, Some(name.as_deref().unwrap_or_default()));
    let by = by.filter(|&listener| world.serves(listener));
    let route = config.route_for(port, name.as_deref().map_or(Arrival::TlsUnnamed, Arrival::Tls));
    let node = route.and_then(|(_, route)| match &route.targets.first()?.to {
        Destination::Upstream(id) => config.upstream(id)?.nodes.keys().next(),
        Destination::Reject(_) => None,
    });
    let (by, node) = match (by, node) {
        (None, None) => return Ok(None),
        (Some(by), Some(node)) => (by, node),
        (by, node) => {
            return Err(format!("a connection for {name:?} is for listener {by:?}, and goes to {node:?}"));
        }
    };
    let local = Some(node.parse().map_err(|error| format!("{node}: {error}"))?);
    let request = Request { tls: false, local, ..probe.request() };
    let decided = match world.listener_for(port, probe.routing_host().as_deref()) {
        Some(own) if own != by => Decided::without_backend(None, Answer::status(MISDIRECTED)),
        Some(_) | None => world.decide(Some(port), probe),
    };
    Ok(Some((request, decided)))
}
