//! From SecurityPolicies to services, answers and verdicts.

mod addresses;
mod ingress;

use serde_json::{Value, json};

use crate::fixture::{self, add_listener_set, allow_listener_sets, object, run};
use crate::model::{ConditionType, Kind, ObjectKey, ObjectName, Options, Provenance, Reason};
use crate::pingsix::plugin::{IpRestriction, JwtAuth, KeyAuth};
use crate::pipeline::{Translation, TranslationMode, Translator};
use crate::policy::fixture::{
    ROUTE, add_policy_of, add_route, condition, config, route, services, status, translated, world,
};
use crate::snapshot::{Object, Objects};
use crate::status::{ConditionStatus, PolicyVerdict};

/// Adds SecurityPolicy `infra/<name>` for this kind and name, and a section unless that is empty.
fn add_policy(objects: &mut Objects, name: &str, target: [&str; 3], fields: &Value) {
    crate::policy::fixture::add_policy(objects, (Kind::SecurityPolicy, name), target, fields);
}

fn verdict<'t>(translation: &'t Translation, name: &str) -> &'t PolicyVerdict {
    crate::policy::fixture::verdict(translation, (Kind::SecurityPolicy, name))
}

fn add_secret(objects: &mut Objects, name: &str, data: &Value) {
    objects.insert(Object::Secret(object(json!({
        "metadata": {"namespace": "infra", "name": name}, "stringData": data,
    }))));
}

fn keys(secret: &str) -> Value {
    json!({"apiKeyAuth": {"credentialRefs": [{"name": secret}], "sanitize": true}})
}

#[test]
fn the_keys_of_a_secret_become_one_service() {
    let mut objects = world();
    add_secret(&mut objects, "keys", &json!({"alice": "k1", "bob": "k2"}));
    add_policy(&mut objects, "keys", ROUTE, &keys("keys"));
    let translation = translated(&objects);
    let [plugins] = services(&translation)[..] else { panic!("one service") };
    let auth = plugins.get::<KeyAuth>().unwrap().unwrap();
    assert_eq!(
        (auth.keys, &*auth.header, auth.hide_credentials),
        (vec!["k1".to_owned(), "k2".to_owned()], "apikey", true)
    );
    let served = route(&translation, "/");
    assert!(served.service_id.is_some() && served.upstream_id.is_some() && status(served).is_none());
    let provenance = &translation.data_planes.values().next().unwrap().provenance;
    let named =
        provenance.values().any(|of| matches!(of, Provenance::Policies { policies } if policies.len() == 1));
    assert!(named);
    let (accepted, ..) = condition(verdict(&translation, "keys"), ConditionType::Accepted);
    assert_eq!(accepted, ConditionStatus::True);
}

#[test]
fn a_key_that_rotates_changes_one_document_and_no_route() {
    let mut objects = world();
    add_secret(&mut objects, "keys", &json!({"alice": "k1"}));
    add_policy(&mut objects, "keys", ["Gateway", "public", ""], &keys("keys"));
    let gateway = ObjectName::new("infra", "public");
    let mut translator = Translator::new(Options::default());
    let before = translator.translate(&objects.snapshot(&gateway).unwrap());
    add_secret(&mut objects, "keys", &json!({"alice": "k2"}));
    let now = translator.translate(&objects.snapshot(&gateway).unwrap());
    assert_eq!(translator.last_mode(), TranslationMode::Incremental { routes: 0 });
    let changed = config(&now).documents().changes(config(&before).documents());
    assert_eq!(changed.len(), 1);
    let [plugins] = services(&now)[..] else { panic!("one service") };
    assert_eq!(plugins.get::<KeyAuth>().unwrap().unwrap().keys, ["k2"]);
    let fresh = run(&objects, &Options::default());
    assert_eq!(config(&now), config(&fresh));
}

#[test]
fn a_policy_with_another_field_keeps_its_service() {
    let mut objects = world();
    add_secret(&mut objects, "keys", &json!({"alice": "k1"}));
    let origins = json!({"cors": {"allowOrigins": ["*"]}});
    let mut both = keys("keys");
    both["cors"] = origins["cors"].clone();
    let gateway = ObjectName::new("infra", "public");
    let mut translator = Translator::new(Options::default());
    for fields in [&origins, &both, &origins] {
        add_policy(&mut objects, "policy", ["Gateway", "public", ""], fields);
        let now = translator.translate(&objects.snapshot(&gateway).unwrap());
        assert_eq!(services(&now).len(), 1, "{fields}");
        assert_eq!(config(&now), config(&run(&objects, &Options::default())), "{fields}");
    }
}

#[test]
fn a_secret_that_goes_away_closes_its_rules() {
    let mut objects = world();
    add_policy(&mut objects, "keys", ROUTE, &keys("keys"));
    let translation = translated(&objects);
    assert_eq!(status(route(&translation, "/")), Some(500));
    assert!(services(&translation).is_empty());
    let verdict = verdict(&translation, "keys");
    assert_eq!(condition(verdict, ConditionType::Accepted).1, Reason::Invalid);
    let (resolved, reason, message) = condition(verdict, ConditionType::ResolvedRefs);
    assert_eq!((resolved, reason), (ConditionStatus::False, Reason::RefNotFound));
    assert!(message.contains("Secret infra/keys does not exist"), "{message}");
}

#[test]
fn a_secret_of_another_namespace_takes_a_grant() {
    let mut objects = world();
    objects.insert(Object::Secret(object(json!({
        "metadata": {"namespace": "vault", "name": "keys"}, "stringData": {"alice": "k1"},
    }))));
    let fields = json!({"apiKeyAuth": {"credentialRefs": [{"name": "keys", "namespace": "vault"}]}});
    add_policy(&mut objects, "keys", ROUTE, &fields);
    let refused = translated(&objects);
    assert_eq!(status(route(&refused, "/")), Some(500));
    let reason = condition(verdict(&refused, "keys"), ConditionType::ResolvedRefs).1;
    assert_eq!(reason, Reason::RefNotPermitted);
    objects.insert(Object::ReferenceGrant(object(json!({
        "metadata": {"namespace": "vault", "name": "keys"},
        "spec": {
            "from": [{"group": "pingsix.io", "kind": "SecurityPolicy", "namespace": "infra"}],
            "to": [{"group": "", "kind": "Secret"}],
        },
    }))));
    assert_eq!(services(&translated(&objects)).len(), 1);
}

#[test]
fn issuer_and_audience_are_required_once_set() {
    let mut objects = world();
    add_secret(&mut objects, "jwt", &json!({"key": "a secret that is long enough for HS256"}));
    let fields = json!({"jwt": {
        "algorithm": "HS256", "issuer": "https://issuer.example", "audience": "web", "secretRef": {"name": "jwt"},
    }});
    add_policy(&mut objects, "jwt", ROUTE, &fields);
    let translation = translated(&objects);
    let [plugins] = services(&translation)[..] else { panic!("one service") };
    assert_eq!(plugins.get::<JwtAuth>().unwrap().unwrap().required_claims, ["aud", "iss"]);
}

#[test]
fn bad_input_is_named_and_closes_its_rules_alone() {
    let long: Vec<Value> = vec![json!({"name": "keys"}); 2];
    for (field, fields) in [
        ("spec.jwt.algorithm", json!({"jwt": {"algorithm": "HS384", "secretRef": {"name": "keys"}}})),
        ("spec.basicAuth", json!({"basicAuth": {"secretRef": {"name": "keys"}}})),
        ("spec.authorization.allow[0]", json!({"authorization": {"allow": ["10.0.0.1/8"]}})),
        ("spec.authorization", json!({"authorization": {}})),
        ("spec.anonymous", json!({"apiKeyAuth": {"credentialRefs": long}, "anonymous": {}})),
        ("spec.strategy", json!({"strategy": "Overrides", "csrf": {"secretRef": {"name": "key"}}})),
    ] {
        let mut objects = world();
        add_route(
            &mut objects,
            "other",
            &json!([{"matches": [{"path": {"value": "/other"}}], "backendRefs": [{"name": "web", "port": 80}]}]),
        );
        add_secret(&mut objects, "keys", &json!({"alice": "k1"}));
        add_secret(&mut objects, "key", &json!({"key": "k1"}));
        add_policy(&mut objects, "bad", ROUTE, &fields);
        let translation = translated(&objects);
        assert_eq!(status(route(&translation, "/")), Some(500), "{field}");
        assert_eq!(status(route(&translation, "/other")), None, "{field}");
        let (accepted, _, message) = condition(verdict(&translation, "bad"), ConditionType::Accepted);
        assert!(accepted == ConditionStatus::False && message.contains(field), "{field}: {message}");
    }
}

#[test]
fn rules_of_one_list_need_the_same_policies() {
    let mut objects = world();
    let headers = json!([{"name": "x", "value": "1"}]);
    let rules = json!([{"matches": [{"headers": headers}], "backendRefs": [{"name": "web", "port": 80}]}]);
    add_route(&mut objects, "younger", &rules);
    add_secret(&mut objects, "keys", &json!({"alice": "k1"}));
    add_policy(&mut objects, "keys", ["HTTPRoute", "younger", ""], &keys("keys"));
    let translation = translated(&objects);
    let message = translation.verdicts.routes[&ObjectKey::new(Kind::HttpRoute, "infra", "younger")].parents
        [0]
    .conditions
    .get(ConditionType::Accepted)
    .unwrap()
    .message
    .clone();
    // The older route decides about requests to "/", and it has no policy.
    assert!(message.contains("HTTPRoute infra/web takes precedence and has other policies"), "{message}");
    assert!(services(&translation).is_empty());
    assert!(route(&translation, "/").service_id.is_none());
    add_policy(&mut objects, "keys", ["Gateway", "public", ""], &keys("keys"));
    let translation = translated(&objects);
    assert_eq!(services(&translation).len(), 1);
    assert!(route(&translation, "/").service_id.is_some());
}

/// A policy of the test of inheritance: which fields it sets, and whether it overrides others.
type Drawn = (bool, bool, bool);

/// Every combination of fields and strategies at four levels, against a direct reading of the rules.
#[test]
fn a_field_comes_from_the_widest_override_or_else_the_narrowest_default() {
    let levels =
        [["Gateway", "public", ""], ["Gateway", "public", "http"], ROUTE, ["HTTPRoute", "web", "main"]];
    for number in 0..8 * 8 * 4 * 4_usize {
        let drawn: [Drawn; 4] = [
            (number & 1 > 0, number & 2 > 0, number & 4 > 0),
            (number & 8 > 0, number & 16 > 0, number & 32 > 0),
            (number & 64 > 0, number & 128 > 0, false),
            (number & 256 > 0, number & 512 > 0, false),
        ];
        let mut objects = world();
        for (level, (allows, origins, overrides)) in drawn.into_iter().enumerate() {
            if !allows && !origins {
                continue;
            }
            let mut fields = json!({"strategy": if overrides { "Overrides" } else { "Defaults" }});
            if allows {
                fields["authorization"] = json!({"allow": [format!("10.{level}.0.0/16")]});
            }
            if origins {
                fields["cors"] = json!({"allowOrigins": ["*"], "maxAge": level + 1});
            }
            add_policy(&mut objects, &format!("p{level}"), levels[level], &fields);
        }
        let source = |sets: fn(Drawn) -> bool| {
            let setting = |level: &usize| sets(drawn[*level]);
            let overriding = (0..4).filter(setting).find(|level| drawn[*level].2);
            overriding.or_else(|| (0..4).rev().find(setting))
        };
        let (allowed, origins) = (source(|(allows, ..)| allows), source(|(_, origins, _)| origins));
        let translation = translated(&objects);
        let plugins = services(&translation).first().copied().cloned().unwrap_or_default();
        let list = plugins.get::<IpRestriction>().map(|config| config.unwrap().whitelist);
        let expected =
            allowed.map(|level| vec![format!("10.{level}.0.0/16"), format!("::ffff:10.{level}.0.0/112")]);
        assert_eq!(list, expected, "{drawn:?}");
        let age = plugins.raw("cors").map(|config| config["max_age"].as_u64().unwrap_or(5));
        assert_eq!(age, origins.map(|level| level as u64 + 1), "{drawn:?}");
        for (level, (allows, sets_origins, _)) in drawn.into_iter().enumerate() {
            let loses =
                |sets: bool, source: Option<usize>| sets && source.is_some_and(|source| source < level);
            if allows || sets_origins {
                let verdict = verdict(&translation, &format!("p{level}"));
                let is_overridden = verdict.conditions.get(ConditionType::Overridden).is_some();
                let expected = loses(allows, allowed) || loses(sets_origins, origins);
                assert_eq!(is_overridden, expected, "level {level} of {drawn:?}");
            }
        }
    }
}

#[test]
fn defaults_rank_by_the_narrowest_target_and_overrides_by_the_widest() {
    let allow =
        |network: &str, strategy: &str| json!({"authorization": {"allow": [network]}, "strategy": strategy});
    for (around, between) in [("Defaults", "Defaults"), ("Overrides", "Defaults"), ("Overrides", "Overrides")]
    {
        let mut objects = world();
        allow_listener_sets(&mut objects);
        let listener = json!([{"name": "own", "port": 80, "protocol": "HTTP", "hostname": "set.test"}]);
        add_listener_set(&mut objects, ("infra", "set"), 1, &listener);
        let parent = json!([{"kind": "ListenerSet", "name": "set"}]);
        let rules = json!([{"backendRefs": [{"name": "web", "port": 80}]}]);
        fixture::add_route(&mut objects, "web", &json!({"parentRefs": parent, "rules": rules}));
        add_policy(&mut objects, "between", ["ListenerSet", "set", ""], &allow("10.1.0.0/16", between));
        let mut fields = allow("10.0.0.0/16", around);
        let group = "gateway.networking.k8s.io";
        fields["targetRefs"] = json!([
            {"group": group, "kind": "Gateway", "name": "public"},
            {"group": group, "kind": "ListenerSet", "name": "set", "sectionName": "own"},
        ]);
        add_policy_of(&mut objects, (Kind::SecurityPolicy, "around"), &fields);
        let translation = translated(&objects);
        let [plugins] = services(&translation)[..] else { panic!("one service") };
        let restriction = plugins.get::<IpRestriction>().unwrap().unwrap();
        assert_eq!(restriction.whitelist, ["10.0.0.0/16", "::ffff:10.0.0.0/112"], "{around}");
    }
}

/// A Gateway that overrides origins, and a rule with a CORS filter of its own.
#[test]
fn a_filter_replaces_the_origins_of_a_default_and_of_no_override() {
    for (strategy, expected) in [("Defaults", None), ("Overrides", Some(500))] {
        let mut objects = world();
        let cors = json!({"type": "CORS", "cors": {"allowOrigins": ["https://own.test"]}});
        let rules = json!([{"filters": [cors], "backendRefs": [{"name": "web", "port": 80}]}]);
        add_route(&mut objects, "web", &rules);
        let fields = json!({"cors": {"allowOrigins": ["https://all.test"]}, "strategy": strategy});
        add_policy(&mut objects, "origins", ["Gateway", "public", ""], &fields);
        let translation = translated(&objects);
        let served = route(&translation, "/");
        assert_eq!(status(served), expected, "{strategy}");
        if expected.is_some() {
            let verdict = &translation.verdicts.routes[&ObjectKey::new(Kind::HttpRoute, "infra", "web")];
            let message = &verdict.parents[0].conditions.get(ConditionType::Accepted).unwrap().message;
            let said =
                "spec.rules[0]: SecurityPolicy infra/origins asks for the plugin cors, and so does a filter";
            assert!(message.contains(said), "{message}");
        } else {
            assert_eq!(served.plugins.raw("cors").unwrap()["allow_origins"], "https://own.test");
        }
    }
}

#[test]
fn a_policy_of_which_a_field_cannot_be_read_protects_its_targets() {
    for (field, error) in
        [("strategy", json!("Merge")), ("oidc", json!({})), ("authorization", json!({"allow": [4]}))]
    {
        let mut objects = world();
        let mut fields = json!({"authorization": {"allow": ["10.0.0.0/8"]}});
        fields[field] = error;
        add_policy(&mut objects, "guard", ROUTE, &fields);
        let translation = translated(&objects);
        assert_eq!(status(route(&translation, "/")), Some(500), "{field}");
        let verdict = verdict(&translation, "guard");
        let (accepted, reason, message) = condition(verdict, ConditionType::Accepted);
        assert_eq!((accepted, reason), (ConditionStatus::False, Reason::Invalid));
        assert!(message.contains(&format!("spec.{field}")), "{message}");
    }
}

#[test]
fn no_route_chooses_the_trusted_proxies_of_a_list_that_overrides() {
    let mut objects = world();
    let list = json!({"strategy": "Overrides", "authorization": {"allow": ["10.0.0.0/8"]}});
    add_policy(&mut objects, "list", ["Gateway", "public", ""], &list);
    let everyone = json!({"clientIP": {"trustedProxies": ["0.0.0.0/1", "128.0.0.0/1"]}});
    add_policy(&mut objects, "everyone", ROUTE, &everyone);
    let translation = translated(&objects);
    let [plugins] = services(&translation)[..] else { panic!("one service") };
    let restriction = plugins.get::<IpRestriction>().unwrap().unwrap();
    assert!(!restriction.use_forwarded_headers && restriction.trusted_proxies.is_empty());
    let (overridden, _, message) = condition(verdict(&translation, "everyone"), ConditionType::Overridden);
    assert_eq!(overridden, ConditionStatus::True);
    assert!(message.contains("clientIP by SecurityPolicy infra/list"), "{message}");
    // The default list of a Gateway may be refined, because a route may replace it, too.
    let list = json!({"authorization": {"allow": ["10.0.0.0/8"]}});
    add_policy(&mut objects, "list", ["Gateway", "public", ""], &list);
    let translation = translated(&objects);
    let [plugins] = services(&translation)[..] else { panic!("one service") };
    assert_eq!(plugins.get::<IpRestriction>().unwrap().unwrap().trusted_proxies.len(), 4);
}
