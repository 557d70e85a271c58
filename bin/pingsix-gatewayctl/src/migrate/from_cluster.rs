//! The input from a cluster: the kinds of the predecessors, Ingresses and objects of Gateway API, their Namespaces, and the
//! Services, Secrets and ConfigMaps to which they refer.
//!
//! Only a conversion knows these references, because they lie deep in plugins. So the objects are converted, the objects
//! that the conversion asked for and those to which its output refers are read, and so on until nothing is missing.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;

use anyhow::bail;
use pingsix_translate::{Kind, ObjectKey};
use serde_json::Value;

use super::convert::{self, Choices};
use super::report::Report;
use super::source::Sources;
use crate::arguments::ClusterArguments;
use crate::cluster::{Cluster, NAME, is_read_by_name};
use crate::manifest::{FileObjects, Manifests};
use crate::predecessor::APISIX_GROUP;

/// The versions of the predecessors' kinds.
const VERSIONS: [&str; 2] = ["v2", "v1alpha1"];

/// The most rounds of questions. A Secret may lead to another question, and hardly ever to a third one.
const ROUNDS: usize = 8;

pub(super) fn read(
    arguments: &ClusterArguments,
    choices: &Choices,
    report: &mut Report,
    notes: &mut dyn Write,
) -> anyhow::Result<Sources> {
    let cluster = Cluster::connect(arguments)?;
    let mut namespaces = cluster.list(&[Kind::Namespace], notes)?;
    cluster.check_namespaces(&namespaces)?;
    let kinds: Vec<Kind> = Kind::ALL.iter().copied().filter(|kind| is_listed(*kind)).collect();
    let mut values = cluster.list(&kinds, notes)?;
    values.extend(cluster.list_group(APISIX_GROUP, &VERSIONS, notes)?);
    if values.is_empty() {
        bail!("the cluster has no object to convert");
    }
    let holders: BTreeSet<&str> =
        values.iter().filter_map(|object| object["metadata"]["namespace"].as_str()).collect();
    // Listeners select routes by the labels of their namespaces.
    namespaces.retain(|one| one["metadata"]["name"].as_str().is_some_and(|name| holders.contains(name)));
    values.extend(namespaces);
    let mut known: BTreeSet<ObjectKey> = BTreeSet::new();
    for _ in 0..ROUNDS {
        let wanted: BTreeSet<ObjectKey> =
            references(values.clone(), choices)?.difference(&known).cloned().collect();
        if wanted.is_empty() {
            return Sources::of_values(values, report);
        }
        values.extend(cluster.get(&wanted)?);
        known.extend(wanted);
    }
    bail!("the objects refer to each other in more than {ROUNDS} steps")
}

/// Whether all objects of the kind are read. Endpoints have no part in a migration.
fn is_listed(kind: Kind) -> bool {
    !is_read_by_name(kind) && !matches!(kind, Kind::Service | Kind::EndpointSlice | Kind::Namespace)
}

/// The objects that a conversion needs by name, and those to which its output refers.
fn references(values: Vec<Value>, choices: &Choices) -> anyhow::Result<BTreeSet<ObjectKey>> {
    let mut report = Report::default();
    let sources = Sources::of_values(values, &mut report)?;
    let asked = sources.asked();
    let objects = convert::convert(sources, choices.clone(), report).objects;
    let converted = FileObjects::of_values(
        NAME,
        objects.into_iter().map(|(_, object)| Arc::unwrap_or_clone(object)).collect(),
    );
    let mut references = Manifests::collect([converted], &[]).objects.referents_by_name();
    references.extend(asked.take());
    Ok(references)
}
