//! What a Gateway may say in the place of its class.

use super::Named;
use crate::crd::{Override, PingsixProxySpec};
use crate::object::Kind;

/// Says what a Gateway must not say.
pub(super) fn check(own: Named<'_>, class: Option<Named<'_>>) -> Result<(), String> {
    let (kind, name) = (Kind::PingsixProxy, own.name);
    if let Some(class) = class {
        let (own, class) = (mode(&own.proxy.spec), mode(&class.proxy.spec));
        if own != class {
            return Err(format!(
                "{kind} {name} has spec.{own} where that of the class has spec.{class}; a Gateway cannot change who runs \
                 its data planes."
            ));
        }
    }
    let allowed = class.map(|class| class.proxy.spec.allow_overrides.as_slice()).unwrap_or_default();
    let Some((field, needed)) = guarded(&own.proxy.spec).find(|(_, needed)| !allowed.contains(needed)) else {
        return Ok(());
    };
    Err(format!(
        "{kind} {name} sets spec.{field}, which only the class may do; its spec.allowOverrides would have to have {}.",
        needed.as_str()
    ))
}

fn mode(spec: &PingsixProxySpec) -> &'static str {
    if spec.managed.is_some() { "managed" } else { "attached" }
}

/// The fields that are set and are for the class to set.
fn guarded(spec: &PingsixProxySpec) -> impl Iterator<Item = (&'static str, Override)> {
    let (managed, attached) = (spec.managed.as_ref(), spec.attached.as_ref());
    let responder = managed.and_then(|managed| managed.responder.as_ref());
    let fields = [
        (managed.is_some_and(|managed| managed.image.is_some()), "managed.image", Override::Image),
        (
            responder.is_some_and(|responder| responder.image.is_some()),
            "managed.responder.image",
            Override::Image,
        ),
        (
            managed.is_some_and(|managed| managed.pod_template_patch.is_some()),
            "managed.podTemplatePatch",
            Override::PodTemplatePatch,
        ),
        (
            managed.is_some_and(|managed| managed.service_account_name.is_some()),
            "managed.serviceAccountName",
            Override::ServiceAccount,
        ),
        (attached.is_some_and(|attached| attached.sink.is_some()), "attached.sink", Override::Sink),
    ];
    fields.into_iter().filter(|(is_set, ..)| *is_set).map(|(_, field, needed)| (field, needed))
}
