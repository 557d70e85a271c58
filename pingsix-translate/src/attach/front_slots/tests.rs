//! The slots of fronted listeners, and the listeners that share a port with them.

use std::collections::BTreeSet;
use std::net::SocketAddrV4;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::attach::{ListenerSupport, Listeners, judge_listeners};
use crate::fixture::pem::pair;
use crate::fixture::{add_certificate, add_listener_set, allow_listener_sets, gateway, https, snapshot};
use crate::model::{Executors, Kind, ObjectKey, Reason};
use crate::references::References;
use crate::snapshot::Objects;

fn judge(objects: &Objects) -> Listeners {
    let snapshot = snapshot(objects);
    let key = Arc::new(ObjectKey::new(Kind::Gateway, "infra", "public"));
    let unfronted = ListenerSupport::unfronted(true, usize::MAX);
    let support =
        ListenerSupport { executors: Executors { tls_front: true, ..unfronted.executors }, ..unfronted };
    judge_listeners(&snapshot, &key, &References::new(&snapshot.referents), support, &mut Vec::new())
}

fn with_certificate(listeners: &Value) -> Objects {
    let mut objects = gateway(listeners);
    add_certificate(&mut objects, "good", &pair(&["a.test"]));
    objects
}

fn numbered(count: usize) -> Vec<Value> {
    (0..count)
        .map(|index| https(&format!("l{index}"), 443, Some(&format!("h{index}.test")), &["good"]))
        .collect()
}

fn addresses(listeners: &Listeners) -> Vec<Option<SocketAddrV4>> {
    listeners.all.iter().map(Listener::front_address).collect()
}

#[test]
fn a_listener_has_an_address_of_its_own_and_keeps_it_when_others_come() {
    let few = addresses(&judge(&with_certificate(&json!(numbered(40)))));
    let mut objects = with_certificate(&json!(numbered(40)));
    allow_listener_sets(&mut objects);
    add_certificate(&mut objects, "good", &pair(&["a.test"]));
    let of_set: Vec<Value> = (0..20)
        .map(|index| {
            let mut listener = https(&format!("s{index}"), 443, Some(&format!("s{index}.test")), &["good"]);
            listener["tls"]["certificateRefs"][0]["namespace"] = json!("infra");
            listener
        })
        .collect();
    add_listener_set(&mut objects, ("infra", "set"), 1, &json!(of_set));
    let more = addresses(&judge(&objects));
    assert_eq!(more[..40], few[..]);
    let different: BTreeSet<_> = more.iter().flatten().collect();
    assert_eq!(different.len(), 60);
    assert!(different.iter().all(|address| {
        let [first, high, low, slot] = address.ip().octets();
        (first, high, low) == (127, 1, 187) && (1..=FRONT_SLOTS).contains(&slot)
    }));
}

#[test]
fn listeners_beyond_the_slots_of_a_port_share_one_and_say_so() {
    let mut listeners = numbered(66);
    listeners.push(https("elsewhere", 8443, Some("h0.test"), &["good"]));
    let judged = judge(&with_certificate(&json!(listeners)));
    let different: BTreeSet<_> = addresses(&judged).into_iter().take(66).flatten().collect();
    assert_eq!(different.len(), usize::from(FRONT_SLOTS));
    let limited: Vec<&str> = judged
        .all
        .iter()
        .filter(|listener| !listener.limitations.is_empty())
        .map(|listener| listener.name.as_str())
        .collect();
    assert_eq!(limited, ["l64", "l65"]);
}

#[test]
fn https_and_tls_share_a_port_by_hostname() {
    let tls = |name: &str, hostname: &str| json!({"name": name, "port": 443, "protocol": "TLS", "hostname": hostname, "tls": {"mode": "Passthrough"}});
    let listeners = json!([
        https("web", 443, Some("*.a.test"), &["good"]),
        tls("database", "db.a.test"),
        tls("same", "b.a.test"),
        https("rival", 443, Some("b.a.test"), &["good"]),
        https("lacking", 443, Some("c.a.test"), &["missing"]),
        {"name": "plain", "port": 8443, "protocol": "HTTP"},
        https("not plain", 8443, None, &["good"]),
    ]);
    let judged = judge(&with_certificate(&listeners));
    let reasons: Vec<_> =
        judged.all.iter().map(|listener| listener.refusal().map(|refusal| refusal.reason)).collect();
    let (same, other) = (Some(Reason::HostnameConflict), Some(Reason::ProtocolConflict));
    assert_eq!(reasons, [None, None, same, same, None, other, other]);
    // An address is also for a listener that only waits for its certificate, so that it keeps the address then.
    let has_address: Vec<bool> = addresses(&judged).iter().map(Option::is_some).collect();
    assert_eq!(has_address, [true, false, false, false, true, false, false]);
}
