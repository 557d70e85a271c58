//! What a Gateway may say in the place of its class.

use http::Uri;

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
    let Some((field, needed)) =
        guarded(&own.proxy.spec, &name.namespace).find(|(_, needed)| !allowed.contains(needed))
    else {
        return Ok(());
    };
    Err(format!(
        "{kind} {name} sets spec.{field}, which only the class may do; its spec.allowOverrides would have to have {}.",
        needed.as_str()
    ))
}

/// Whether the host of a URL is a Service of a namespace, or a Pod that has a name by one. Whoever may write there may send
/// requests there anyway. A cluster whose domain is another one is asked under the name without it.
fn is_within(url: &str, namespace: &str) -> bool {
    let host =
        url.parse::<Uri>().ok().and_then(|url| url.host().map(str::to_ascii_lowercase)).unwrap_or_default();
    let host = host.strip_suffix(".cluster.local").unwrap_or(&host);
    let service = host.strip_suffix(".svc").and_then(|rest| rest.strip_suffix(namespace)?.strip_suffix('.'));
    service.is_some_and(|service| service.split('.').all(|label| !label.is_empty()))
}

fn mode(spec: &PingsixProxySpec) -> &'static str {
    if spec.managed.is_some() { "managed" } else { "attached" }
}

/// The fields that are set and are for the class to set, in a namespace.
fn guarded(spec: &PingsixProxySpec, namespace: &str) -> impl Iterator<Item = (&'static str, Override)> {
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
        (
            attached
                .iter()
                .flat_map(|attached| &attached.status_urls)
                .any(|page| !is_within(&page.url, namespace)),
            "attached.statusUrls to something else than Services of its namespace (http://NAME.NAMESPACE.svc:PORT)",
            Override::StatusUrls,
        ),
    ];
    fields.into_iter().filter(|(is_set, ..)| *is_set).map(|(_, field, needed)| (field, needed))
}
