//! Objects of a cluster, in the form of manifests: lists of kinds, and the named Secrets and ConfigMaps.
//!
//! ```text
//! kubeconfig ──► connection ──► discovery (served kinds) ──► reader (lists, objects by name) ──► values
//! ```
//!
//! The values are decoded as files are, so the result is that of a dump of the same objects. The requests only read. The
//! lists are not of one moment: the objects may change between two requests.

mod connection;
mod discovery;
mod reader;
mod request_error;
mod resource;

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::{Context as _, bail};
use http::StatusCode;
use pingsix_translate::selection::IndexedObjects;
use pingsix_translate::{Kind, ObjectKey};
use serde_json::Value;

use crate::arguments::{ClusterArguments, SuppliedEndpoints};
use crate::manifest::{FileObjects, Manifests};
use discovery::Served;
use reader::Reader;
use resource::Resource;

/// The name of the input in messages.
pub(crate) const NAME: &str = "<cluster>";

/// A connection to a cluster, for commands that do nothing else meanwhile.
pub(crate) struct Cluster {
    runtime: tokio::runtime::Runtime,
    reader: Reader,
    served: Served,
    selector: Option<String>,
}

/// Reads everything that translation needs.
///
/// # Errors
///
/// When the API server does not answer, or refuses an answer.
pub(crate) fn load(
    arguments: &ClusterArguments,
    supplied: &[SuppliedEndpoints],
    notes: &mut dyn Write,
) -> anyhow::Result<Manifests> {
    let cluster = Cluster::connect(arguments)?;
    let listed: Vec<Kind> = Kind::ALL.iter().copied().filter(|kind| !is_read_by_name(*kind)).collect();
    let values = cluster.list(&listed, notes)?;
    cluster.check_namespaces(&values)?;
    let mut objects = FileObjects::of_values(NAME, values);
    if !cluster.reader.namespaces().is_empty() {
        let proxies = dependencies(&objects, |kind| kind == Kind::PingsixProxy);
        objects.extend(FileObjects::of_values(NAME, cluster.proxies_elsewhere(&proxies, notes)?));
    }
    // Secrets and ConfigMaps refer to nothing, so one round is enough.
    let named = dependencies(&objects, is_read_by_name);
    objects.extend(FileObjects::of_values(NAME, cluster.get(&named)?));
    Ok(Manifests::collect([objects], supplied))
}

/// The objects of some kinds to which others refer, existing or not.
fn dependencies(objects: &FileObjects, is_of_kinds: impl Fn(Kind) -> bool) -> BTreeSet<ObjectKey> {
    let indexed = IndexedObjects::from(Manifests::collect([objects.clone()], &[]).objects);
    indexed.dependencies().filter(|key| is_of_kinds(key.kind)).cloned().collect()
}

/// Whether objects of the kind are read only if another object refers to them.
pub(crate) const fn is_read_by_name(kind: Kind) -> bool {
    matches!(kind, Kind::Secret | Kind::ConfigMap)
}

impl Cluster {
    /// Connects, and asks the API server which kinds it serves.
    pub(crate) fn connect(arguments: &ClusterArguments) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (reader, served) = runtime.block_on(async {
            let connection = connection::connect(arguments).await?;
            let address = connection.server.clone();
            let reader = Reader::new(connection, arguments);
            let served =
                discovery::discover(&reader).await.with_context(|| format!("cannot use {address}"))?;
            anyhow::Ok((reader, served))
        })?;
        Ok(Self { runtime, reader, served, selector: arguments.selector.clone() })
    }

    /// Every object of these kinds. A note names the kinds that the API server does not serve.
    pub(crate) fn list(&self, kinds: &[Kind], notes: &mut dyn Write) -> anyhow::Result<Vec<Value>> {
        let mut absent = Vec::new();
        let mut resources = Vec::new();
        for kind in kinds {
            if let Some(resource) = self.served.resource(*kind) {
                let selector = self.selector.as_deref().filter(|_| kind.is_selected_by_label());
                resources.push((resource, selector));
                continue;
            }
            let others: Vec<&str> = self.served.versions(*kind).map(|(version, _)| version).collect();
            absent.push(match others.as_slice() {
                [] => kind.to_string(),
                others => format!("{kind} ({} is read, not {})", kind.version(), others.join(" or ")),
            });
        }
        if !absent.is_empty() {
            let absent = absent.join(", ");
            writeln!(
                notes,
                "note: the API server does not serve these kinds, so they count as absent: {absent}"
            )?;
        }
        self.list_resources(resources)
    }

    /// Every object of the other kinds of a group, in these versions.
    pub(crate) fn list_group(
        &self,
        group: &str,
        versions: &[&str],
        notes: &mut dyn Write,
    ) -> anyhow::Result<Vec<Value>> {
        let resources = self.served.of_group(group, versions);
        if resources.is_empty() {
            writeln!(notes, "note: the API server serves no kind of {group}, so they count as absent")?;
        }
        let of_routes = |resource: &Resource| resource.kind == "ApisixRoute";
        let selector = |resource: &Resource| self.selector.as_deref().filter(|_| of_routes(resource));
        self.list_resources(resources.into_iter().map(|resource| (resource, selector(resource))).collect())
    }

    /// Refuses a chosen namespace that does not exist: without objects, all would seem well.
    ///
    /// # Errors
    ///
    /// When a Namespace is missing in these objects.
    pub(crate) fn check_namespaces(&self, objects: &[Value]) -> anyhow::Result<()> {
        let is_namespace = |object: &&Value| object["kind"] == Kind::Namespace.as_str();
        let names =
            objects.iter().filter(is_namespace).filter_map(|object| object["metadata"]["name"].as_str());
        let names: BTreeSet<&str> = names.collect();
        match self.reader.namespaces().iter().find(|chosen| !names.contains(chosen.as_str())) {
            Some(missing) => bail!("--namespace {missing}: the cluster has no such namespace"),
            None => Ok(()),
        }
    }

    fn list_resources(&self, resources: Vec<(&Resource, Option<&str>)>) -> anyhow::Result<Vec<Value>> {
        self.runtime.block_on(self.reader.list(resources))
    }

    /// The existing ones of these objects. An object of another namespace than the chosen ones counts as absent.
    pub(crate) fn get(&self, keys: &BTreeSet<ObjectKey>) -> anyhow::Result<Vec<Value>> {
        let chosen = keys.iter().filter(|key| self.reader.is_chosen(key));
        let wanted: Vec<(&Resource, &ObjectKey)> =
            chosen.filter_map(|key| Some((self.served.resource(key.kind)?, key))).collect();
        self.runtime.block_on(self.reader.get(wanted))
    }

    /// The existing ones of these PingsixProxies that are in no chosen namespace. Without them, a Gateway in a chosen
    /// namespace would seem to have unusable parameters. A note names those that the user may not get.
    fn proxies_elsewhere(
        &self,
        proxies: &BTreeSet<ObjectKey>,
        notes: &mut dyn Write,
    ) -> anyhow::Result<Vec<Value>> {
        let Some(resource) = self.served.resource(Kind::PingsixProxy) else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for key in proxies.iter().filter(|key| !self.reader.is_chosen(key)) {
            match self.runtime.block_on(self.reader.get_one(resource, key)) {
                Ok(object) => found.extend(object),
                Err(error) if error.is(StatusCode::FORBIDDEN) => {
                    writeln!(notes, "note: {:#}; it counts as absent", error.about("get", &key.to_string()))?;
                }
                Err(error) => return Err(error.about("get", &key.to_string())),
            }
        }
        Ok(found)
    }
}
