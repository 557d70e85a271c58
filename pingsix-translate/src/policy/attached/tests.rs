//! Another effect of TrafficPolicies than the real one.

use serde_json::json;

use super::*;
use crate::fixture::object;
use crate::snapshot::{Referents, TrafficPolicy};

/// The effect: `spec.requestID.headerName`.
#[derive(Debug, PartialEq)]
struct Inherited(String);

impl PolicyEffect for Inherited {
    type Object = TrafficPolicy;

    fn read(policy: &TrafficPolicy, _: &References<'_>) -> PolicySpec<Self> {
        let header = policy.spec.request_id.as_ref().and_then(|id| id.header_name.clone());
        let effect = Ok(Self(header.unwrap_or_default()));
        PolicySpec {
            effect,
            unapplied: Vec::new(),
            unresolved: Vec::new(),
            limitations: Vec::new(),
            protects: true,
        }
    }

    fn refuse(&self, _: &UnsupportedTraffic) -> Vec<Refusal> {
        Vec::new()
    }
}

/// Policies in namespace `infra`, the oldest first: name, effect, and kind, name and section of the target.
fn attached(policies: &[(&str, &str, [&str; 3])]) -> AttachedPolicies<Inherited> {
    let objects = policies.iter().enumerate().map(|(second, (name, effect, [kind, target, section]))| {
        let policy: Arc<TrafficPolicy> = object(json!({
            "apiVersion": "pingsix.io/v1alpha1", "kind": "TrafficPolicy",
            "metadata": {
                "namespace": "infra", "name": name, "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z"),
            },
            "spec": {
                "targetRefs": [{
                    "group": "gateway.networking.k8s.io", "kind": kind, "name": target, "sectionName": section,
                }],
                "requestID": {"headerName": effect},
            },
        }));
        (ObjectKey::new(Kind::TrafficPolicy, "infra", name), AnyPolicy::from(policy))
    });
    AttachedPolicies::new(
        &objects.collect(),
        &AnnotationPolicies::new(),
        &References::new(&Referents::default()),
    )
}

fn effect(policies: &AttachedPolicies<Inherited>, kind: Kind, section: Option<&str>) -> Option<String> {
    let policy = policies.effective(ObjectKey::new(kind, "infra", "web"), section)?;
    Some(policy.spec.effect.as_ref().unwrap().0.clone())
}

#[test]
fn targets_of_any_kind_have_their_own_policies_and_sections() {
    let policies = attached(&[
        ("z", "gateway", ["Gateway", "web", ""]),
        ("y", "route", ["HTTPRoute", "web", ""]),
        ("a", "loser", ["HTTPRoute", "web", ""]),
        ("b", "rule", ["HTTPRoute", "web", "login"]),
    ]);
    assert_eq!(effect(&policies, Kind::Gateway, Some("https")).as_deref(), Some("gateway"));
    assert_eq!(effect(&policies, Kind::HttpRoute, None).as_deref(), Some("route"));
    assert_eq!(effect(&policies, Kind::HttpRoute, Some("login")).as_deref(), Some("rule"));
    assert_eq!(effect(&policies, Kind::HttpRoute, Some("other")).as_deref(), Some("route"));
    assert_eq!(effect(&policies, Kind::GrpcRoute, None), None);
    let conflicts: Vec<(&str, Reason)> = policies
        .iter()
        .filter_map(|policy| {
            let target = policy.targets[0].as_ref().unwrap();
            let conflict = policies.conflict(policy, target, FieldPath::new("spec"))?;
            Some((&*policy.key.name.name, conflict.reason))
        })
        .collect();
    assert_eq!(conflicts, [("a", Reason::Conflicted)]);
}

#[test]
fn another_kind_of_target_is_refused_with_the_kinds_that_may_be() {
    let policies = attached(&[("p", "", ["UDPRoute", "web", ""])]);
    let refusal = policies.iter().next().unwrap().targets[0].as_ref().unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "spec.targetRefs[0].kind: A TrafficPolicy may target Gateways, ListenerSets, HTTPRoutes, GRPCRoutes, Ingresses, but the \
         reference names kind UDPRoute of gateway.networking.k8s.io."
    );
    assert_eq!(policies.targets().next(), None);
}

#[test]
fn the_objects_with_another_effect_are_those_that_have_changed() {
    let before = attached(&[("a", "old", ["Gateway", "web", ""]), ("b", "same", ["HTTPRoute", "web", ""])]);
    let now = attached(&[("a", "new", ["Gateway", "web", ""]), ("b", "same", ["HTTPRoute", "web", ""])]);
    let changed: Vec<&ObjectKey> = now.changed(&before).collect();
    assert_eq!(changed, [&ObjectKey::new(Kind::Gateway, "infra", "web")]);
}
