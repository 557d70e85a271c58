//! The fields in which a Gateway may override its class.
//!
//! Two kinds of fields are for the class unless it allows otherwise. The first kind decides about the contents of Pods,
//! their identity and the destination of configuration: a Gateway that sets such a field is refused ([`check`]). The second
//! kind decides about resources of the cluster: such a field is ignored, and the Gateway is served with the value of its
//! class ([`trim`]).

use http::Uri;

use super::NamedProxy;
use crate::crd::{Managed, Override, OverrideBounds, PingsixProxy, PingsixProxySpec, Scheduling};
use crate::model::{FieldPath, Kind, Refusal};

/// The prefix of priority classes for the cluster's own Pods.
const SYSTEM_PREFIX: &str = "system-";

/// The parameters of a Gateway without the fields that its class does not allow, and a limitation for each of these. `at` is the
/// field in which the Gateway names its PingsixProxy.
pub(super) fn trim(
    own: NamedProxy<'_>,
    class: Option<NamedProxy<'_>>,
    at: &FieldPath,
) -> (PingsixProxy, Vec<Refusal>) {
    let mut proxy = own.proxy.clone();
    let mut limitations = Vec::new();
    let spec = class.map(|class| &class.proxy.spec);
    let allowed = spec.map(|spec| spec.allow_overrides.as_slice()).unwrap_or_default();
    let bounds = spec.and_then(|spec| spec.override_bounds.as_ref());
    if let Some(managed) = &mut proxy.spec.managed {
        for overridable in OVERRIDABLE_FIELDS {
            let excess = if allowed.contains(&overridable.needed) {
                (overridable.excess)(managed, bounds)
            } else {
                Some(format!(
                    "only the class may do that; its spec.allowOverrides would have to have {}",
                    overridable.needed.as_str()
                ))
            };
            if let Some(why) = excess
                && (overridable.remove)(managed)
            {
                limitations.push(Refusal::limited(
                    at.clone(),
                    format!(
                        "{} {} sets spec.managed.{}, which is not used and the class's value counts: {why}.",
                        Kind::PingsixProxy,
                        own.name,
                        overridable.field
                    ),
                ));
            }
        }
    }
    (proxy, limitations)
}

/// A field that a Gateway may set only if its class allows it.
struct OverridableField {
    field: &'static str,
    needed: Override,
    /// The reason why the value exceeds the bounds of the class, if it does.
    excess: fn(&Managed, Option<&OverrideBounds>) -> Option<String>,
    /// Removes the field. Returns whether it was set.
    remove: fn(&mut Managed) -> bool,
}

impl OverridableField {
    /// A field without a bound.
    const fn new(field: &'static str, needed: Override, remove: fn(&mut Managed) -> bool) -> Self {
        Self { field, needed, excess: |_, _| None, remove }
    }
}

const OVERRIDABLE_FIELDS: [OverridableField; 7] = [
    OverridableField {
        field: "replicas",
        needed: Override::Replicas,
        excess: |managed, bounds| {
            let most = bounds?.max_replicas?;
            let asked = managed.replicas?;
            (asked > most).then(|| {
                format!("{asked} is more than the {most} of the class's spec.overrideBounds.maxReplicas")
            })
        },
        remove: |managed| managed.replicas.take().is_some(),
    },
    OverridableField::new("resources", Override::Resources, |managed| managed.resources.take().is_some()),
    OverridableField::new("sidecar.resources", Override::Resources, |managed| {
        managed.sidecar.as_mut().is_some_and(|sidecar| sidecar.resources.take().is_some())
    }),
    OverridableField {
        field: "scheduling.priorityClassName",
        needed: Override::PriorityClass,
        excess: |managed, bounds| {
            let name = managed.scheduling.as_ref()?.priority_class_name.as_deref()?;
            let names = bounds.map(|bounds| bounds.priority_class_names.as_slice()).unwrap_or_default();
            if names.is_empty() {
                return name.starts_with(SYSTEM_PREFIX).then(|| {
                    format!("a name that begins with {SYSTEM_PREFIX} has to be in the class's spec.overrideBounds.priorityClassNames")
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

/// Refuses a Gateway that sets a field of the class, or another mode than its class.
pub(super) fn check(own: NamedProxy<'_>, class: Option<NamedProxy<'_>>) -> Result<(), String> {
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
        restricted_fields(&own.proxy.spec, &name.namespace).find(|(_, needed)| !allowed.contains(needed))
    else {
        return Ok(());
    };
    Err(format!(
        "{kind} {name} sets spec.{field}, which only the class may do; its spec.allowOverrides would have to have {}.",
        needed.as_str()
    ))
}

/// Whether the host of a URL is a Service of a namespace, or a Pod with a name below one. Authors with access to the
/// namespace can send requests there anyway. In a cluster with another domain than `cluster.local`, the URL has to leave the
/// domain out.
fn is_service_of(url: &str, namespace: &str) -> bool {
    let host =
        url.parse::<Uri>().ok().and_then(|url| url.host().map(str::to_ascii_lowercase)).unwrap_or_default();
    let host = host.strip_suffix(".cluster.local").unwrap_or(&host);
    let service = host.strip_suffix(".svc").and_then(|rest| rest.strip_suffix(namespace)?.strip_suffix('.'));
    service.is_some_and(|service| service.split('.').all(|label| !label.is_empty()))
}

fn mode(spec: &PingsixProxySpec) -> &'static str {
    if spec.managed.is_some() { "managed" } else { "attached" }
}

/// The fields that are set and that only the class may set.
fn restricted_fields(
    spec: &PingsixProxySpec,
    namespace: &str,
) -> impl Iterator<Item = (&'static str, Override)> {
    let (managed, attached) = (spec.managed.as_ref(), spec.attached.as_ref());
    let sidecar = managed.and_then(|managed| managed.sidecar.as_ref());
    let fields = [
        (managed.is_some_and(|managed| managed.image.is_some()), "managed.image", Override::Image),
        (sidecar.is_some_and(|sidecar| sidecar.image.is_some()), "managed.sidecar.image", Override::Image),
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
                .any(|page| !is_service_of(&page.url, namespace)),
            "attached.statusUrls to something else than Services of its namespace (http://NAME.NAMESPACE.svc:PORT)",
            Override::StatusUrls,
        ),
        (spec.shared_cache.is_some(), "sharedCache", Override::SharedCache),
    ];
    fields.into_iter().filter(|(is_set, ..)| *is_set).map(|(_, field, needed)| (field, needed))
}
