//! `--name-suffix`: the Gateways of other controllers and their routes stay as they are, and copies are converted.
//!
//! The conversion changes objects in their places, so that objects refer to each other by their names in the input. In the
//! end, the changed objects become copies, and references to them get the names of the copies.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::{DEFAULT_CONTROLLER_NAME, Kind, ObjectKey};
use serde_json::{Value, json};

use super::{Context, Draft, ownership};
use crate::report::{Place, Reason};

/// The kinds with `parentRefs`.
const ROUTES: [Kind; 5] = [Kind::HttpRoute, Kind::GrpcRoute, Kind::TcpRoute, Kind::TlsRoute, Kind::UdpRoute];

/// The names of the copies, by the objects of the input.
type Copies = BTreeMap<ObjectKey, String>;

/// Writes the copies, if the user wants them.
pub(super) fn write(draft: &mut Draft<'_>) {
    let context = draft.context;
    let Some(suffix) = context.choices.name_suffix.clone() else { return };
    let mut copies = Copies::new();
    let mut served: BTreeSet<ObjectKey> = BTreeSet::new();
    // Parents come before the objects that refer to them.
    for kinds in [&[Kind::Gateway][..], &[Kind::ListenerSet], &ROUTES] {
        for (key, original) in context.sources.kept.iter().filter(|(key, _)| kinds.contains(&key.kind)) {
            let is_served = if key.kind == Kind::Gateway {
                is_of_another_controller(original, context)
            } else {
                parents(key, original).iter().any(|parent| served.contains(parent))
            };
            if is_served {
                served.insert(key.clone());
                copy((key, original), &suffix, &mut copies, draft);
            }
        }
    }
    // An IngressClass stays, too: its Ingresses are converted without it.
    for (key, original) in context.sources.kept.iter().filter(|(key, _)| key.kind == Kind::IngressClass) {
        if draft.output.objects.contains(key) {
            draft.output.objects.keep(key.clone(), original.clone());
        }
    }
    refer_to_copies(&copies, draft);
}

/// Whether a Gateway has a class of another controller. A class may be missing in the input.
fn is_of_another_controller(gateway: &Value, context: &Context<'_>) -> bool {
    let name = gateway.pointer("/spec/gatewayClassName").and_then(Value::as_str).unwrap_or_default();
    match context.sources.kept.get(&ObjectKey::new(Kind::GatewayClass, "", name)) {
        Some(class) => {
            class.pointer("/spec/controllerName").and_then(Value::as_str) != Some(DEFAULT_CONTROLLER_NAME)
        }
        None => name != context.choices.gateway_class,
    }
}

/// The object to which a reference of another object leads.
fn referent(from: &ObjectKey, reference: &Value) -> Option<ObjectKey> {
    let text = |field: &str| reference.get(field).and_then(Value::as_str);
    let kind = text("kind").unwrap_or(Kind::Gateway.as_str());
    let kind =
        [Kind::Gateway, Kind::ListenerSet].into_iter().chain(ROUTES).find(|known| known.as_str() == kind)?;
    Some(ObjectKey::new(kind, text("namespace").unwrap_or(&from.name.namespace), text("name")?))
}

/// The parents of a route or a ListenerSet.
fn parents(key: &ObjectKey, object: &Value) -> Vec<ObjectKey> {
    let list = object.pointer("/spec/parentRefs").and_then(Value::as_array).into_iter().flatten();
    let references = list.chain(object.pointer("/spec/parentRef"));
    references.filter_map(|reference| referent(key, reference)).collect()
}

/// Puts the original back into the output, and the converted object beside it. A Gateway that is withheld has no copy, and
/// its routes have none.
fn copy((key, original): (&ObjectKey, &Value), suffix: &str, copies: &mut Copies, draft: &mut Draft<'_>) {
    let context = draft.context;
    let converted = draft.output.objects.get_mut(key).cloned();
    draft.output.objects.keep(key.clone(), original.clone());
    let Some(mut copy) = converted else { return };
    let place = Place::object(key.to_string());
    if key.kind != Kind::Gateway && !parents(key, original).iter().any(|parent| copies.contains_key(parent)) {
        return draft.report.withhold(&place, "The object has no copy, because its parents have none.");
    }
    let name = format!("{}{suffix}", key.name.name);
    let name = draft.output.objects.free_name(key.kind, &key.name.namespace, &name);
    if let Some(Value::Object(metadata)) = copy.get_mut("metadata") {
        ownership::disown(metadata, draft.output);
    }
    copy["metadata"]["name"] = json!(name);
    let of = ObjectKey::new(key.kind, &*key.name.namespace, name.as_str());
    if key.kind == Kind::Gateway {
        let class = &context.choices.gateway_class;
        copy["spec"]["gatewayClassName"] = json!(class);
        draft.report.exact(&place, format!("The copy {of} has GatewayClass {class}."));
        let addresses =
            copy.get_mut("spec").and_then(Value::as_object_mut).and_then(|spec| spec.remove("addresses"));
        if addresses.is_some() {
            let message = "The original keeps its addresses, so the copy has others.";
            draft.report.limited(&place.at("spec.addresses"), Reason::ManualStep, message);
        }
    } else {
        // Other parents are served by the original.
        if let Some(Value::Array(list)) = copy.pointer_mut("/spec/parentRefs") {
            list.retain(|reference| {
                referent(key, reference).is_some_and(|parent| copies.contains_key(&parent))
            });
        }
        draft.report.exact(&place, format!("The copy {of} belongs to the copies of its parents."));
    }
    copies.insert(key.clone(), name);
    draft.output.objects.origins.note_copy(of.clone(), key);
    draft.output.objects.keep(of, copy);
}

/// Gives the references of the written objects the names of the copies. Policies of the input stay as they are.
fn refer_to_copies(copies: &Copies, draft: &mut Draft<'_>) {
    let context = draft.context;
    let mut without = Vec::new();
    for (key, object) in draft.output.objects.iter_mut() {
        let is_kept = context.sources.kept.get(key).is_some_and(|kept| **kept == *object);
        for field in ["parentRefs", "targetRefs", "parentRef"] {
            let references = match object.get_mut("spec").and_then(|spec| spec.get_mut(field)) {
                Some(Value::Array(list)) => list.iter_mut().collect(),
                Some(reference) => vec![reference],
                None => Vec::new(),
            };
            for reference in references {
                let Some(of) = referent(key, reference) else { continue };
                let Some(name) = copies.get(&of) else { continue };
                if !is_kept {
                    reference["name"] = json!(name);
                } else if field == "targetRefs" {
                    without.push((key.clone(), of, name.clone()));
                }
            }
        }
    }
    for (policy, of, name) in without {
        let message = format!("The policy is for {of}. Add its copy {name} to the targets.");
        draft.report.impossible(
            &Place::object(policy.to_string()).at("spec.targetRefs"),
            Reason::ManualStep,
            message,
        );
    }
}
