use std::fmt::Write as _;
use std::sync::LazyLock;

use pingsix_translate::stream::{Arrival, StreamConfig, StreamProtocol};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Documents by key, as values.
type World = BTreeMap<String, Value>;

fn documents(revision: i64, world: &World) -> Documents {
    let by_key = world.iter().map(|(key, value)| (key.clone(), value.to_string().into())).collect();
    Documents { revision, by_key }
}

/// The routes of a table and of all changes so far.
#[derive(Default)]
struct Served {
    table: Table,
    listeners: BTreeMap<Listener, Routes>,
}

impl Served {
    fn apply(&mut self, world: &World) -> Result<Vec<Listener>, Vec<ServeError>> {
        let changes = self.table.apply(&documents(1, world))?;
        let listeners = changes.keys().copied().collect();
        for (listener, routes) in changes {
            match routes {
                Some(routes) => self.listeners.insert(listener, routes),
                None => self.listeners.remove(&listener),
            };
        }
        self.table.sweep();
        Ok(listeners)
    }

    fn of(world: &World) -> Self {
        let mut served = Self::default();
        served.apply(world).unwrap();
        served
    }

    fn route(&self, port: u16, arrival: Arrival<'_>) -> Option<Arc<Route>> {
        let listener = match arrival {
            Arrival::Udp => Listener::Udp(port),
            Arrival::Tcp | Arrival::Tls(_) | Arrival::TlsUnnamed => Listener::Tcp(port),
        };
        match (self.listeners.get(&listener)?, arrival) {
            (Routes::Any(route), Arrival::Tcp | Arrival::Udp) => Some(Arc::clone(route)),
            (Routes::ByName(names), Arrival::Tls(name)) => names.route(Some(&name.to_ascii_lowercase())),
            (Routes::ByName(names), Arrival::TlsUnnamed) => names.route(None),
            (Routes::Any(_), Arrival::Tls(_) | Arrival::TlsUnnamed)
            | (Routes::ByName(_), Arrival::Tcp | Arrival::Udp) => None,
        }
    }

    /// Where the connections of one arrival go, in one text.
    fn answer(&self, port: u16, arrival: Arrival<'_>) -> String {
        self.route(port, arrival).map_or_else(|| "no route".to_owned(), |route| shown(&self.table, &route))
    }

    fn errors(&self) -> Vec<String> {
        self.table.errors().map(|error| error.to_string()).collect()
    }
}

/// The targets of a route: ids of upstreams and words.
fn shown(table: &Table, route: &Route) -> String {
    let mut text = String::new();
    for (target, weight) in route.targets() {
        match target {
            Target::Upstream(upstream) => {
                let (id, _) = table.upstreams.iter().find(|(_, known)| Arc::ptr_eq(known, upstream)).unwrap();
                let nodes = upstream.nodes().map(|nodes| nodes.addresses().collect::<Vec<_>>());
                write!(text, "{id} {nodes:?} x {weight}; ").unwrap();
            }
            Target::Reject(word) => write!(text, "{word:?} x {weight}; ").unwrap(),
        }
    }
    text
}

/// The answer of the model, in the text of [`shown`].
fn expected(config: &StreamConfig, port: u16, arrival: Arrival<'_>) -> String {
    let Some((_, route)) = config.route_for(port, arrival) else { return "no route".to_owned() };
    let mut text = String::new();
    for target in &route.targets {
        match &target.to {
            Destination::Upstream(id) => {
                let nodes = config.upstream(id).map(|upstream| {
                    let nodes = upstream.nodes.keys().map(|node| node.parse().unwrap());
                    let nodes: BTreeSet<std::net::SocketAddr> = nodes.collect();
                    Vec::from_iter(nodes)
                });
                write!(text, "{id} {nodes:?} x {}; ", target.weight).unwrap();
            }
            Destination::Reject(word) => write!(text, "{word:?} x {}; ", target.weight).unwrap(),
        }
    }
    text
}

const REJECTED: &str = "Invalid x 1; ";

const NAMES: [&str; 8] =
    ["a.test", "*.test", "*.a.test", "b.a.test", "*.b.a.test", "c.b.a.test", "other.example", "*"];
const ASKED: [&str; 11] = [
    "a.test",
    "A.TEST",
    "x.test",
    "b.a.test",
    "x.a.test",
    "c.b.a.test",
    "x.b.a.test",
    "other.example",
    "test",
    ".test",
    "y.x.test",
];

fn arrivals() -> impl Iterator<Item = (u16, Arrival<'static>)> {
    (1..5).flat_map(|port| {
        let names = ASKED.into_iter().map(Arrival::Tls);
        names.chain([Arrival::Tcp, Arrival::Udp, Arrival::TlsUnnamed]).map(move |arrival| (port, arrival))
    })
}

fn targets() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec!["invalid", "no_endpoints", "no_route"]);
    let target = prop_oneof![
        3 => (0..4_u8).prop_map(|id| ("upstream_id", format!("u{id}"))),
        1 => words.prop_map(|word| ("reject", word.to_owned())),
    ];
    prop::collection::btree_set(target, 1..4).prop_map(|targets| {
        let written = targets.into_iter().enumerate();
        written.map(|(index, (field, value))| json!({field: value, "weight": index + 1})).collect()
    })
}

/// A certificate and its key.
static PAIR: LazyLock<(String, String)> = LazyLock::new(|| {
    let pair = rcgen::generate_simple_self_signed(["a.test".to_owned()]).unwrap();
    (pair.cert.pem(), pair.signing_key.serialize_pem())
});

/// Makes a route terminate TLS with the certificate `s`.
fn terminate(route: &mut Value) {
    route["tls"] = json!("terminate");
    route["ssl_ids"] = json!(["s"]);
}

/// A world that keeps the rules of documents.
fn worlds() -> impl Strategy<Value = World> {
    let upstreams = prop::collection::vec(prop::collection::btree_set(1..250_u8, 1..4), 4);
    let protocols = prop::collection::vec(prop::sample::select(vec!["tcp", "tls", "none"]), 4);
    let udp = prop::collection::vec(any::<bool>(), 4);
    let owners = prop::collection::vec(0..4_u8, 4 * NAMES.len());
    (upstreams, protocols, udp, owners, prop::collection::vec(targets(), 24)).prop_map(
        |(upstreams, protocols, udp, owners, targets)| {
            let (cert, key) = &*PAIR;
            let mut world = World::from([
                ("ssls/s".to_owned(), json!({"cert": cert, "key": key})),
                ("cas/c".to_owned(), json!({"certs": cert})),
            ]);
            for (index, nodes) in upstreams.into_iter().enumerate() {
                let nodes: BTreeMap<String, u32> =
                    nodes.into_iter().map(|node| (format!("10.0.0.{node}:80"), 1)).collect();
                world.insert(format!("upstreams/u{index}"), json!({ "nodes": nodes }));
            }
            let mut targets = targets.into_iter();
            let mut next = || targets.next().unwrap_or_else(|| json!([{"reject": "no_route", "weight": 1}]));
            for (index, (protocol, udp)) in protocols.into_iter().zip(udp).enumerate() {
                let port = index + 1;
                let key = |rest: &str| format!("stream_routes/p{port}{rest}");
                if udp {
                    world
                        .insert(key("u"), json!({"server_port": port, "protocol": "udp", "targets": next()}));
                }
                match protocol {
                    "tcp" => {
                        let route = json!({"server_port": port, "protocol": "tcp", "targets": next()});
                        world.insert(key("t"), route);
                    }
                    "tls" => {
                        // Each name has one owner or none.
                        for owner in 1..4_u8 {
                            let owned =
                                |(place, _): &(usize, &&str)| owners[index * NAMES.len() + place] == owner;
                            let snis: Vec<_> =
                                NAMES.iter().enumerate().filter(owned).map(|(_, name)| name).collect();
                            if !snis.is_empty() {
                                let mut route = json!({"server_port": port, "protocol": "tls", "snis": snis,
                                    "tls": "passthrough", "targets": next()});
                                if snis.contains(&&"*") {
                                    terminate(&mut route);
                                }
                                if owner == 1 {
                                    terminate(&mut route);
                                    route["alpn"] = json!(["h2", "http/1.1"]);
                                    route["client_auth"] =
                                        json!({"mode": "require_and_verify", "ca_ids": ["c"]});
                                }
                                world.insert(key(&owner.to_string()), route);
                            }
                        }
                    }
                    _ => {}
                }
            }
            world
        },
    )
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn model(world: &World) -> StreamConfig {
    let pairs = world.iter().map(|(key, value)| (format!("/{key}"), value.to_string()));
    StreamConfig::from_pairs("/", pairs).unwrap()
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn routes_are_those_of_the_model_and_changes_end_where_a_rebuild_does(
        worlds in prop::collection::vec(worlds(), 1..5)
    ) {
        let mut served = Served::default();
        for world in &worlds {
            served.apply(world).unwrap();
            let rebuilt = Served::of(world);
            let model = model(world);
            prop_assert_eq!(pingsix_translate::stream::validate(&model), vec![]);
            for (port, arrival) in arrivals() {
                let answer = served.answer(port, arrival);
                prop_assert_eq!(&answer, &expected(&model, port, arrival), "{} {:?}", port, arrival);
                prop_assert_eq!(&answer, &rebuilt.answer(port, arrival));
            }
            prop_assert_eq!(served.errors(), rebuilt.errors());
            prop_assert_eq!(served.listeners.len(), rebuilt.listeners.len());
            prop_assert_eq!(&served.table.claims, &rebuilt.table.claims);
        }
    }

    #[test]
    fn a_mutated_document_gives_the_answer_of_the_model_or_rejects(
        world in worlds(),
        mutations in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut served = Served::of(&world);
        let mut mutated = documents(2, &world);
        for (document, place, byte) in mutations {
            let is_mutated = |key: &&String| !key.starts_with("ssls/") && !key.starts_with("cas/");
            let keys: Vec<String> = mutated.by_key.keys().filter(is_mutated).cloned().collect();
            let key = document.get(&keys);
            let mut value = mutated.by_key[key].to_vec();
            let place = place.index(value.len());
            value[place] = byte;
            mutated.by_key.insert(key.clone(), value.into());
        }
        let understood = understood(&world, &mutated);
        let model = model(&understood);
        if !pingsix_translate::stream::validate(&model).is_empty() {
            return Ok(());
        }
        let changes = served.table.apply(&mutated).unwrap();
        for (listener, routes) in changes {
            match routes {
                Some(routes) => served.listeners.insert(listener, routes),
                None => served.listeners.remove(&listener),
            };
        }
        for (port, arrival) in arrivals() {
            let expected = expected(&model, port, arrival);
            prop_assert_eq!(served.answer(port, arrival), expected, "{} {:?}", port, arrival);
        }
    }
}

/// The documents that mutated ones stand for: themselves, or a rejecting route, or their predecessors.
fn understood(world: &World, mutated: &Documents) -> World {
    let mut understood = World::new();
    for (key, value) in &mutated.by_key {
        let id = key.split_once('/').unwrap().1;
        let read = || serde_json::from_slice(value).unwrap();
        let value = if key.starts_with("upstreams/") {
            match decode::upstream(id, value, false) {
                Ok(_) => read(),
                // Its routes refer to nothing.
                Err(_) => continue,
            }
        } else if key.starts_with("ssls/") || key.starts_with("cas/") {
            read()
        } else {
            match decode::route(id, value) {
                Ok(Decoded { behaviour: Ok(_), .. }) => read(),
                Ok(Decoded { identity: Identity { port, protocol, names }, .. }) => {
                    let targets = json!([{"reject": "invalid", "weight": 1}]);
                    let mut route = json!({"server_port": port, "protocol": protocol, "targets": targets});
                    if protocol == StreamProtocol::Tls {
                        route["tls"] = json!("passthrough");
                        if names.iter().any(|name| name == "*") {
                            terminate(&mut route);
                        }
                        route["snis"] = json!(names);
                    }
                    route
                }
                Err(_) => world[key].clone(),
            }
        };
        understood.insert(key.clone(), value);
    }
    understood
}

fn tls(port: u16, snis: &[&str], upstream: &str) -> Value {
    json!({"server_port": port, "protocol": "tls", "snis": snis, "tls": "passthrough",
        "targets": [{"upstream_id": upstream, "weight": 1}]})
}

fn tcp(port: u16, upstream: &str) -> Value {
    json!({"server_port": port, "protocol": "tcp", "targets": [{"upstream_id": upstream, "weight": 1}]})
}

fn nodes(address: &str) -> Value {
    json!({"nodes": {address: 1}})
}

fn world(documents: &[(&str, Value)]) -> World {
    documents.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
}

#[test]
fn an_unreadable_route_keeps_its_names_from_a_wildcard() {
    let mut documents = world(&[
        ("upstreams/u", nodes("10.0.0.1:1")),
        ("stream_routes/narrow", tls(1, &["a.test"], "u")),
        ("stream_routes/wide", tls(1, &["*.test"], "u")),
    ]);
    documents.get_mut("stream_routes/narrow").unwrap()["client_auth"] = json!({"mode": "maybe"});
    let served = Served::of(&documents);
    assert_eq!(served.answer(1, Arrival::Tls("a.test")), REJECTED);
    assert_eq!(served.answer(1, Arrival::Tls("b.test")), "u Some([10.0.0.1:1]) x 1; ");
    assert!(served.errors()[0].starts_with("stream_routes/narrow: unknown variant `maybe`"));
}

#[test]
fn a_route_without_identity_keeps_the_former_document_or_revision() {
    let good = world(&[("upstreams/u", nodes("10.0.0.1:1")), ("stream_routes/a", tls(1, &["a.test"], "u"))]);
    let mut served = Served::of(&good);
    let mut bad = good.clone();
    bad.insert("stream_routes/a".to_owned(), json!({"server_port": 1, "protocol": "quic"}));
    assert_eq!(served.apply(&bad).unwrap(), []);
    let former = "u Some([10.0.0.1:1]) x 1; ";
    assert_eq!(served.answer(1, Arrival::Tls("a.test")), former);
    assert!(served.errors()[0].contains("The former document stays in force"));

    let mut worse = good.clone();
    worse.remove("stream_routes/a");
    worse.insert("stream_routes/b".to_owned(), json!([]));
    let refused = served.apply(&worse).unwrap_err();
    assert!(refused[0].message.contains("The former revision stays in force"));
    assert_eq!(served.answer(1, Arrival::Tls("a.test")), former);

    served.apply(&good).unwrap();
    assert_eq!(served.errors(), [""; 0]);
    served.apply(&World::new()).unwrap();
    assert!(served.listeners.is_empty() && served.table.upstreams.is_empty());
}

#[test]
fn a_connection_that_two_documents_take_is_rejected() {
    let mut documents = world(&[
        ("upstreams/u", nodes("10.0.0.1:1")),
        ("stream_routes/a", tls(1, &["a.test", "b.test"], "u")),
        ("stream_routes/b", tls(1, &["a.test"], "u")),
        ("stream_routes/c", tls(2, &["a.test"], "u")),
        ("stream_routes/d", tcp(2, "u")),
    ]);
    let mut served = Served::of(&documents);
    assert_eq!(served.answer(1, Arrival::Tls("a.test")), REJECTED);
    assert_eq!(served.answer(1, Arrival::Tls("b.test")), "u Some([10.0.0.1:1]) x 1; ");
    assert_eq!(served.answer(2, Arrival::Tcp), REJECTED);
    assert_eq!(served.errors().len(), 3);
    documents.remove("stream_routes/b");
    documents.remove("stream_routes/c");
    served.apply(&documents).unwrap();
    assert_eq!(served.answer(1, Arrival::Tls("a.test")), "u Some([10.0.0.1:1]) x 1; ");
    assert_eq!(served.errors(), [""; 0]);
}

#[test]
fn a_change_rebuilds_its_listener_alone_and_nodes_change_in_place() {
    let mut documents = world(&[
        ("upstreams/u", nodes("10.0.0.1:1")),
        ("stream_routes/a", tcp(1, "u")),
        ("stream_routes/b", tcp(2, "u")),
        ("stream_routes/c", tls(3, &["a.test"], "u")),
    ]);
    let mut served = Served::of(&documents);
    documents.insert("stream_routes/b".to_owned(), tcp(2, "v"));
    assert_eq!(served.apply(&documents).unwrap(), [Listener::Tcp(2)]);
    assert_eq!(served.answer(2, Arrival::Tcp), "v None x 1; ", "a document that is missing rejects");
    documents.insert("upstreams/v".to_owned(), nodes("10.0.0.2:1"));
    documents.insert("upstreams/u".to_owned(), nodes("10.0.0.3:1"));
    assert_eq!(served.apply(&documents).unwrap(), []);
    assert_eq!(served.answer(2, Arrival::Tcp), "v Some([10.0.0.2:1]) x 1; ");
    assert_eq!(served.answer(3, Arrival::Tls("a.test")), "u Some([10.0.0.3:1]) x 1; ");
    let before = served.route(1, Arrival::Tcp).unwrap();
    documents.insert("stream_routes/d".to_owned(), tls(3, &["b.test"], "u"));
    documents.insert("upstreams/v".to_owned(), json!({"nodes": {}}));
    assert_eq!(served.apply(&documents).unwrap(), [Listener::Tcp(3)]);
    assert_eq!(served.answer(2, Arrival::Tcp), "v None x 1; ", "a document without nodes rejects");
    assert!(Arc::ptr_eq(&before, &served.route(1, Arrival::Tcp).unwrap()));
    documents.insert("stream_routes/c".to_owned(), tls(3, &["a.test"], "v"));
    assert_eq!(served.apply(&documents).unwrap(), [], "the names of the listener stay");
    assert_eq!(served.answer(3, Arrival::Tls("a.test")), "v None x 1; ");
    documents.insert("stream_routes/c".to_owned(), tls(3, &["a.test"], "u"));
    documents.remove("stream_routes/b");
    documents.remove("upstreams/v");
    assert_eq!(served.apply(&documents).unwrap(), [Listener::Tcp(2)]);
    assert_eq!(served.table.upstreams.len(), 1);
}

#[test]
fn unknown_keys_are_errors_and_metadata_is_ignored() {
    let served = Served::of(&world(&[
        ("cas/c", json!({"certs": "", "more": 1})),
        ("certs/c", json!("x")),
        ("stream_routes/.owner", json!({})),
        ("ssls/s", json!({"cert": "", "key": "hush", "more": 1})),
    ]));
    assert_eq!(
        served.errors(),
        [
            "cas/c: The document cannot be decoded.",
            "certs/c: The key is of no known kind.",
            "ssls/s: The document cannot be decoded."
        ]
    );
}
