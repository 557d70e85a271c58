//! Worlds for the tests of inherited policies.

use serde_json::{Value, json};

use crate::fixture::{add_service, gateway, object, run};
use crate::model::{ConditionType, Kind, ObjectKey, Options};
use crate::pingsix::{Config, Plugins, Route};
use crate::pipeline::Translation;
use crate::snapshot::{Object, Objects};
use crate::status::{ConditionContent, PolicyVerdict};

/// Gateway `infra/public` with listener `http`, and HTTPRoute `infra/web` with one rule `main` for Service `infra/web`.
pub(super) fn world() -> Objects {
    let mut objects = gateway(&json!([{"name": "http", "port": 80, "protocol": "HTTP"}]));
    add_service(&mut objects, "web");
    add_route(&mut objects, "web", &json!([{"name": "main", "backendRefs": [{"name": "web", "port": 80}]}]));
    objects
}

pub(super) fn add_route(objects: &mut Objects, name: &str, rules: &Value) {
    objects.insert(Object::HttpRoute(object(json!({
        "metadata": {"namespace": "infra", "name": name, "generation": 3},
        "spec": {"parentRefs": [{"name": "public"}], "rules": rules},
    }))));
}

/// Adds policy `infra/<name>` of a kind for an object of this kind and name, and a section unless that is empty.
pub(super) fn add_policy(
    objects: &mut Objects,
    policy: (Kind, &str),
    [kind, target, section]: [&str; 3],
    fields: &Value,
) {
    let group = "gateway.networking.k8s.io";
    let mut target_ref = json!({"group": group, "kind": kind, "name": target});
    if !section.is_empty() {
        target_ref["sectionName"] = json!(section);
    }
    let mut spec = fields.clone();
    spec["targetRefs"] = json!([target_ref]);
    add_policy_of(objects, policy, &spec);
}

/// Adds policy `infra/<name>` of a kind.
pub(super) fn add_policy_of(objects: &mut Objects, (kind, name): (Kind, &str), spec: &Value) {
    let policy = json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": kind.as_str(),
        "metadata": {"namespace": "infra", "name": name, "generation": 5},
        "spec": spec,
    });
    objects.insert(if kind == Kind::SecurityPolicy {
        Object::SecurityPolicy(object(policy))
    } else {
        Object::TrafficPolicy(object(policy))
    });
}

pub(super) const ROUTE: [&str; 3] = ["HTTPRoute", "web", ""];

pub(super) fn translated(objects: &Objects) -> Translation {
    let options = Options { responder: Some(([127, 0, 0, 1], 9000).into()), ..Options::default() };
    run(objects, &options)
}

pub(super) fn config(translation: &Translation) -> &Config {
    &translation.data_planes.values().next().unwrap().config
}

/// The plugins of each service of policies.
pub(super) fn services(translation: &Translation) -> Vec<&Plugins> {
    let services = config(translation).services().filter(|(key, _)| !key.id.starts_with("status-"));
    services.map(|(_, service)| &service.plugins).collect()
}

/// The Route that takes requests for this path pattern: Routes for wider paths list the pattern, too.
pub(super) fn route<'t>(translation: &'t Translation, pattern: &str) -> &'t Route {
    let routes = config(translation).routes().map(|(_, route)| route);
    let listing = routes.filter(|route| route.path_patterns().iter().any(|own| own == pattern));
    listing.max_by_key(|route| route.priority).unwrap()
}

/// The status that a Route answers itself.
pub(super) fn status(route: &Route) -> Option<u16> {
    route.service_id.as_deref()?.strip_prefix("status-")?.parse().ok()
}

pub(super) fn verdict<'t>(translation: &'t Translation, (kind, name): (Kind, &str)) -> &'t PolicyVerdict {
    &translation.verdicts.policies[&ObjectKey::new(kind, "infra", name)]
}

/// Status, reason and message of a condition.
pub(super) fn condition(verdict: &PolicyVerdict, kind: ConditionType) -> ConditionContent {
    let condition = verdict.conditions.get(kind).unwrap();
    (condition.status, condition.reason, condition.message.clone())
}
