//! What a Gateway may say in the place of its class.
//!
//! There are two kinds of fields that are for the class unless it allows otherwise. One decides what runs in Pods, as what,
//! and where configuration goes: a Gateway that sets one of these is refused ([`check`]). The other decides what a data plane
//! takes from the cluster: such a field is not used, and the Gateway is served with what its class says ([`trim`]).

use http::Uri;

use super::Named;
use crate::crd::{Managed, Override, OverrideBounds, PingsixProxy, PingsixProxySpec, Scheduling};
use crate::model::{FieldPath, Kind, Limit};

/// What names of priority classes begin with that are for the cluster's own Pods.
const OF_THE_SYSTEM: &str = "system-";

/// What a Gateway says, without what its class does not allow it, and a limit for each field that is not used. `at` is where
/// the Gateway names it.
pub(super) fn trim(own: Named<'_>, class: Option<Named<'_>>, at: &FieldPath) -> (PingsixProxy, Vec<Limit>) {
    let mut proxy = own.proxy.clone();
    let mut limits = Vec::new();
    let spec = class.map(|class| &class.proxy.spec);
    let allowed = spec.map(|spec| spec.allow_overrides.as_slice()).unwrap_or_default();
    let bounds = spec.and_then(|spec| spec.override_bounds.as_ref());
    if let Some(managed) = &mut proxy.spec.managed {
        for cut in CUTS {
            let beyond = if allowed.contains(&cut.needed) {
                (cut.beyond)(managed, bounds)
            } else {
                Some(format!(
                    "only the class may do that; its spec.allowOverrides would have to have {}",
                    cut.needed.as_str()
                ))
            };
            if let Some(why) = beyond
                && (cut.remove)(managed)
            {
                limits.push(Limit::new(
                    at.clone(),
                    format!(
                        "{} {} sets spec.managed.{}, which is not used and the class's value counts: {why}.",
                        Kind::PingsixProxy,
                        own.name,
                        cut.field
                    ),
                ));
            }
        }
    }
    (proxy, limits)
}

/// A field that a Gateway may set only if its class allows it.
struct OverridableField {
    field: &'static str,
    needed: Override,
    /// Why what is set is more than the class allows, if it is.
    beyond: fn(&Managed, Option<&OverrideBounds>) -> Option<String>,
    /// Takes the field away; whether it was set.
    remove: fn(&mut Managed) -> bool,
}

impl OverridableField {
    /// A field without a bound.
    const fn new(field: &'static str, needed: Override, remove: fn(&mut Managed) -> bool) -> Self {
        Self { field, needed, beyond: |_, _| None, remove }
    }
}

const CUTS: [OverridableField; 7] = [
    OverridableField {
        field: "replicas",
        needed: Override::Replicas,
        beyond: |managed, bounds| {
            let most = bounds?.max_replicas?;
            let asked = managed.replicas?;
            (asked > most).then(|| {
                format!("{asked} is more than the {most} of the class's spec.overrideBounds.maxReplicas")
            })
        },
        remove: |managed| managed.replicas.take().is_some(),
    },
    OverridableField::new("resources", Override::Resources, |managed| managed.resources.take().is_some()),
    OverridableField::new("responder.resources", Override::Resources, |managed| {
        managed.responder.as_mut().is_some_and(|responder| responder.resources.take().is_some())
    }),
    OverridableField {
        field: "scheduling.priorityClassName",
        needed: Override::PriorityClass,
        beyond: |managed, bounds| {
            let name = managed.scheduling.as_ref()?.priority_class_name.as_deref()?;
            let names = bounds.map(|bounds| bounds.priority_class_names.as_slice()).unwrap_or_default();
            if names.is_empty() {
                return name.starts_with(OF_THE_SYSTEM).then(|| {
                    format!("a name that begins with {OF_THE_SYSTEM} has to be in the class's spec.overrideBounds.priorityClassNames")
                });
            }
            let is_named = names.iter().any(|known| known == name);
            (!is_named)
                .then(|| format!("{name} is not in the class's spec.overrideBounds.priorityClassNames"))
        },
        remove: |managed| {
            managed
                .scheduling
                .as_mut()
                .is_some_and(|scheduling| scheduling.priority_class_name.take().is_some())
        },
    },
    OverridableField::new("scheduling", Override::Scheduling, |managed| {
        let Some(scheduling) = &mut managed.scheduling else { return false };
        let priority_class_name = scheduling.priority_class_name.take();
        let is_set = *scheduling != Scheduling::default();
        *scheduling = Scheduling { priority_class_name, ..Scheduling::default() };
        is_set
    }),
    OverridableField::new("disruptionBudget", Override::Scheduling, |managed| {
        managed.disruption_budget.take().is_some()
    }),
    OverridableField::new("service", Override::Service, |managed| managed.service.take().is_some()),
];

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
