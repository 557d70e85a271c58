//! Labels and annotations with which other tools own objects.
//!
//! A copy with them would belong to these tools, too: some would delete it, because their sources do not have it, and others
//! would send traffic to it. So a copy has none of them, and its original keeps them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::Draft;
use super::output::Output;
use crate::report::{Place, Reason};

/// The domains of labels and annotations of tools that write objects from sources of theirs, or read objects to write others.
const DOMAINS: [&str; 14] = [
    "addonmanager.kubernetes.io",
    "applyset.kubernetes.io",
    "argocd.argoproj.io",
    "config.k8s.io",
    "configmanagement.gke.io",
    "configsync.gke.io",
    "external-dns.alpha.kubernetes.io",
    "external-dns.kubernetes.io",
    "helm.sh",
    "helm.toolkit.fluxcd.io",
    "kapp.k14s.io",
    "kustomize.toolkit.fluxcd.io",
    "meta.helm.sh",
    "objectset.rio.cattle.io",
];

/// Annotations of external-dns that keep it from an object.
const EXTERNAL_DNS_LIMITS: [&str; 2] = ["controller", "ingress-hostname-source"];

/// The label of Helm beside its annotations.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// The label with the application of Argo CD, or with the release of Helm.
const INSTANCE: &str = "app.kubernetes.io/instance";

/// The annotation with the application of Argo CD and the name of the object in it.
const ARGO_CD_ID: &str = "argocd.argoproj.io/tracking-id";

/// Whether an annotation or a label belongs to a tool that owns the object.
pub(super) fn is_owned(name: &str) -> bool {
    let Some((domain, short)) = name.split_once('/') else { return false };
    let keeps_away = domain.starts_with("external-dns.") && EXTERNAL_DNS_LIMITS.contains(&short);
    DOMAINS.contains(&domain) && !keeps_away
}

/// Removes the metadata that make other tools or objects the owners of a copy.
pub(super) fn disown(metadata: &mut Map<String, Value>, output: &mut Output) {
    let fields =
        ["finalizers", "ownerReferences"].into_iter().filter(|field| metadata.remove(*field).is_some());
    let mut removed: BTreeSet<String> = fields.map(str::to_owned).collect();
    metadata.remove("generateName");
    let text = |list: &str, name: &str| metadata.get(list)?.get(name)?.as_str().map(str::to_owned);
    let application = text("annotations", ARGO_CD_ID).and_then(|id| Some(id.split_once(':')?.0.to_owned()));
    let is_of_argo_cd = application.is_some() && text("labels", INSTANCE) == application;
    let is_of_helm = text("labels", MANAGED_BY).as_deref() == Some("Helm");
    for list in ["annotations", "labels"] {
        let Some(Value::Object(items)) = metadata.get_mut(list) else { continue };
        items.retain(|name, _| {
            let is_label = list == "labels";
            let goes = is_owned(name)
                || (is_label && name == MANAGED_BY && is_of_helm)
                || (is_label && name == INSTANCE && is_of_argo_cd);
            if goes {
                removed.insert(name.clone());
            }
            !goes
        });
        if items.is_empty() {
            metadata.remove(list);
        }
    }
    output.disowned.append(&mut removed);
}

/// Reports what the copies do not have, once for all of them.
pub(super) fn report(draft: &mut Draft<'_>) {
    let names = std::mem::take(&mut draft.output.disowned);
    if names.is_empty() {
        return;
    }
    let names: Vec<String> = names.into_iter().collect();
    let message = format!(
        "The originals belong to other tools or objects, and their copies do not. These are left out: {}.",
        names.join(", ")
    );
    draft.report.limited(&Place::object("Copies"), Reason::ForeignAnnotation, message);
}
