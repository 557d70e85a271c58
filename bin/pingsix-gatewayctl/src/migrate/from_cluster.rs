//! The input from a cluster: the kinds of the predecessors, Ingresses and objects of Gateway API, their Namespaces, and the
//! Services, Secrets and ConfigMaps to which they refer.
//!
//! Only a conversion knows these references, because they lie deep in plugins. So the objects are converted, the objects
//! that the conversion asked for and those to which its output refers are read, and so on until nothing is missing.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::bail;
use pingsix_migrate::{APISIX_GROUP, Choices, Input, referents};
use pingsix_translate::{Kind, ObjectKey};

use crate::arguments::ClusterArguments;
use crate::cluster::{Cluster, is_read_by_name};

/// The versions of the predecessors' kinds.
const VERSIONS: [&str; 2] = ["v2", "v1alpha1"];

/// The most rounds of questions. A Secret may lead to another question, and hardly ever to a third one.
const MAX_ROUNDS: usize = 8;

pub(super) fn read(
    arguments: &ClusterArguments,
    choices: &Choices,
    notes: &mut dyn Write,
) -> anyhow::Result<Input> {
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
    for _ in 0..MAX_ROUNDS {
        let wanted: BTreeSet<ObjectKey> =
            referents(values.clone(), choices)?.difference(&known).cloned().collect();
        if wanted.is_empty() {
            return Ok(Input::of_values(values)?);
        }
        values.extend(cluster.get(&wanted)?);
        known.extend(wanted);
    }
    bail!("the objects refer to each other in more than {MAX_ROUNDS} steps")
}

/// Whether all objects of the kind are read. Endpoints have no part in a migration.
fn is_listed(kind: Kind) -> bool {
    !is_read_by_name(kind) && !matches!(kind, Kind::Service | Kind::EndpointSlice | Kind::Namespace)
}
