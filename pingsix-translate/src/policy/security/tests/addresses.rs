//! Addresses of clients, and credentials that backends of others must not get.

use serde_json::{Value, json};

use super::{add_policy, add_secret, condition, services, translated, verdict};
use crate::fixture::object;
use crate::model::{ConditionType, Kind, Provenance};
use crate::pingsix::plugin::{
    ForwardedHeaderErrorPolicy, IpRestriction, KeyAuth, PluginConfig as _, RequestId,
};
use crate::policy::fixture::{ROUTE, world};
use crate::snapshot::{Object, Objects};
use crate::status::ConditionStatus;

fn restriction(fields: &Value) -> IpRestriction {
    let mut objects = world();
    add_policy(&mut objects, "office", ROUTE, fields);
    let translation = translated(&objects);
    let [plugins] = services(&translation)[..] else { panic!("one service for {fields}") };
    plugins.get::<IpRestriction>().unwrap().unwrap()
}

#[test]
fn networks_of_ipv4_get_the_other_notation_once() {
    let list =
        json!(["10.0.0.0/8", "192.0.2.1", "::ffff:192.0.2.1", "2001:db8::/32", "::ffff:172.16.0.0/108"]);
    let expected = [
        "10.0.0.0/8",
        "192.0.2.1",
        "::ffff:192.0.2.1",
        "2001:db8::/32",
        "::ffff:172.16.0.0/108",
        "::ffff:10.0.0.0/104",
        "172.16.0.0/12",
    ];
    let IpRestriction { whitelist, blacklist, trusted_proxies, .. } = restriction(&json!({
        "authorization": {"allow": list, "deny": list}, "clientIP": {"trustedProxies": list},
    }));
    assert_eq!(
        [whitelist, blacklist, trusted_proxies],
        [expected; 3].map(|list| list.map(str::to_owned).to_vec())
    );
    // PingSIX gets twice as many as an author may write.
    let networks: Vec<String> = (0..256).map(|index| format!("10.{index}.0.0/16")).collect();
    assert_eq!(restriction(&json!({"authorization": {"deny": networks}})).blacklist.len(), 512);
}

#[test]
fn more_networks_than_the_definition_allows_are_invalid() {
    let networks: Vec<String> =
        (0..257).map(|index| format!("10.0.{}.{}", index / 200, index % 200)).collect();
    let mut objects = world();
    add_policy(&mut objects, "office", ROUTE, &json!({"authorization": {"deny": networks}}));
    let translation = translated(&objects);
    let (accepted, _, message) = condition(verdict(&translation, "office"), ConditionType::Accepted);
    assert_eq!(accepted, ConditionStatus::False);
    assert!(message.contains("spec.authorization.deny: The list has more than 256 networks."), "{message}");
}

#[test]
fn trusted_proxies_must_say_whose_request_they_forward() {
    let mut objects = world();
    let proxies = json!({"clientIP": {"trustedProxies": ["10.0.0.0/8"]}});
    add_policy(&mut objects, "proxies", ["Gateway", "public", ""], &proxies);
    // Without a list of addresses, there is nothing to refuse.
    assert!(services(&translated(&objects)).is_empty());
    add_policy(&mut objects, "office", ROUTE, &json!({"authorization": {"deny": ["203.0.113.9"]}}));
    let ids = (Kind::TrafficPolicy, "ids");
    crate::policy::fixture::add_policy(&mut objects, ids, ROUTE, &json!({"requestID": {}}));
    let translation = translated(&objects);
    let [plugins] = services(&translation)[..] else { panic!("one service") };
    let restriction = plugins.get::<IpRestriction>().unwrap().unwrap();
    assert!(restriction.use_forwarded_headers);
    assert_eq!(restriction.forwarded_header_error_policy, ForwardedHeaderErrorPolicy::Deny);
    let filled = plugins.get::<RequestId>().unwrap().unwrap();
    assert_eq!(filled, RequestId::empty_forwarded_for());
    let provenance = translation.data_planes.values().next().unwrap().provenance.values();
    let named: Vec<(String, Vec<&str>)> = provenance
        .filter_map(|of| {
            let Provenance::Policies { policies } = of else { return None };
            Some(policies)
        })
        .flatten()
        .map(|(policy, plugins)| (policy.name.name.to_string(), plugins.to_vec()))
        .collect();
    let both = vec![IpRestriction::NAME, RequestId::NAME];
    let expected = [("proxies", both), ("office", vec![IpRestriction::NAME]), ("ids", Vec::new())];
    assert_eq!(named, expected.map(|(policy, plugins)| (policy.to_owned(), plugins)));
    // An id of its own comes back with the last trusted proxy.
    add_policy(&mut objects, "proxies", ["Gateway", "public", ""], &json!({"cors": {"allowOrigins": ["*"]}}));
    let translation = translated(&objects);
    let [plugins] = services(&translation)[..] else { panic!("one service") };
    assert_eq!(plugins.get::<RequestId>().unwrap().unwrap(), RequestId::default());
}

#[test]
fn backends_of_others_get_no_credential_unless_the_policy_says_so() {
    let hides = |target: [&str; 3], sanitize: Option<bool>| {
        let mut objects = world();
        add_secret(&mut objects, "keys", &json!({"alice": "k1"}));
        let mut fields = json!({"apiKeyAuth": {"credentialRefs": [{"name": "keys"}]}});
        if let Some(sanitize) = sanitize {
            fields["apiKeyAuth"]["sanitize"] = json!(sanitize);
        }
        add_policy(&mut objects, "keys", target, &fields);
        let translation = translated(&objects);
        let [plugins] = services(&translation)[..] else { panic!("one service") };
        plugins.get::<KeyAuth>().unwrap().unwrap().hide_credentials
    };
    let gateway = ["Gateway", "public", ""];
    for (target, default) in [(gateway, true), (["Gateway", "public", "http"], true), (ROUTE, false)] {
        assert_eq!(hides(target, None), default, "{target:?}");
        assert_eq!([true, false].map(|said| hides(target, Some(said))), [true, false], "{target:?}");
    }
}

/// The message of `pingsix.io/Limited` of a policy for the route, with these parameters of the class.
fn limited(parameters: &Value, fields: &Value) -> Option<String> {
    let mut objects: Objects = world();
    let reference =
        json!({"group": "pingsix.io", "kind": "PingsixProxy", "name": "all", "namespace": "infra"});
    objects.insert(Object::GatewayClass(object(json!({
        "metadata": {"name": "pingsix"},
        "spec": {"controllerName": "pingsix.io/gateway-controller", "parametersRef": reference},
    }))));
    objects.insert(Object::PingsixProxy(object(json!({
        "metadata": {"namespace": "infra", "name": "all"}, "spec": parameters,
    }))));
    add_policy(&mut objects, "office", ROUTE, fields);
    let translation = translated(&objects);
    let conditions = &verdict(&translation, "office").conditions;
    conditions.get(ConditionType::Limited).map(|condition| condition.message.clone())
}

#[test]
fn a_list_is_limited_where_the_service_hides_clients() {
    let list = json!({"authorization": {"allow": ["10.0.0.0/8"]}});
    for (service, is_limited) in [
        (json!({}), true),
        (json!({"externalTrafficPolicy": "Cluster"}), true),
        (json!({"type": "NodePort"}), true),
        (json!({"externalTrafficPolicy": "Local"}), false),
        (json!({"type": "ClusterIP"}), false),
    ] {
        let message = limited(&json!({"managed": {"service": service}}), &list);
        let says_so = message.is_some_and(|message| {
            message.contains("spec.authorization: Clients may have the address of a node")
        });
        assert_eq!(says_so, is_limited, "{service}");
    }
    let cors = json!({"cors": {"allowOrigins": ["*"]}});
    assert_eq!(limited(&json!({"managed": {}}), &cors), None);
    assert_eq!(limited(&json!({"attached": {}}), &list), None);
}

#[test]
fn a_network_of_ipv6_with_every_client_of_ipv4_is_limited() {
    let message = |fields: Value| limited(&json!({"attached": {}}), &fields).unwrap_or_default();
    let said = "contains all clients of IPv4, too";
    assert!(message(json!({"authorization": {"allow": ["2001:db8::/32", "::/0"]}})).contains(said));
    assert!(message(json!({"clientIP": {"trustedProxies": ["::/0"]}})).contains(said));
    assert_eq!(message(json!({"authorization": {"deny": ["::/0"], "allow": ["2001:db8::/32"]}})), "");
}
