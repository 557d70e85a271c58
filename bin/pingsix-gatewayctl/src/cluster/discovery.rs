//! The kinds that an API server serves.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_migrate::APISIX_GROUP;
use pingsix_translate::Kind;
use serde::Deserialize;

use super::reader::Reader;
use super::resource::Resource;

/// The served kinds of the groups that matter, by group and version.
#[derive(Debug, Default)]
pub(super) struct Served {
    resources: BTreeMap<(String, String), Vec<Resource>>,
}

#[derive(Deserialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    name: String,
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    version: String,
}

#[derive(Deserialize)]
struct Resources {
    resources: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    kind: String,
    namespaced: bool,
    verbs: Vec<String>,
}

/// Asks which kinds there are. A 404 for a list proves nothing, because proxies answer so, too.
pub(super) async fn discover(reader: &Reader) -> anyhow::Result<Served> {
    let about =
        |error: super::request_error::RequestError| error.about("discover", "the kinds of the API server");
    let mut wanted: BTreeSet<&str> = Kind::ALL.iter().map(|kind| kind.group()).collect();
    wanted.insert(APISIX_GROUP);
    let groups: Groups = reader.read("/apis").await.map_err(about)?;
    let mut versions = vec![(String::new(), "v1".to_owned())];
    for group in groups.groups.into_iter().filter(|group| wanted.contains(group.name.as_str())) {
        let names = group.versions.into_iter().map(|version| version.version);
        versions.extend(names.map(|version| (group.name.clone(), version)));
    }
    let mut served = Served::default();
    for (group, version) in versions {
        let (root, api_version) = if group.is_empty() {
            (format!("/api/{version}"), version.clone())
        } else {
            (format!("/apis/{group}/{version}"), format!("{group}/{version}"))
        };
        let found: Resources = reader.read(&root).await.map_err(about)?;
        // A name with a slash is a part of an object, such as its status.
        let entries = found
            .resources
            .into_iter()
            .filter(|entry| !entry.name.contains('/') && entry.verbs.iter().any(|verb| verb == "list"));
        let resources = entries.map(|entry| Resource {
            kind: entry.kind,
            api_version: api_version.clone(),
            root: root.clone(),
            plural: entry.name,
            is_namespaced: entry.namespaced,
        });
        served.resources.insert((group, version), resources.collect());
    }
    Ok(served)
}

impl Served {
    /// The kind in its [version](Kind::version); `None` if that is not served.
    pub(super) fn resource(&self, kind: Kind) -> Option<&Resource> {
        self.versions(kind).find_map(|(version, resource)| (version == kind.version()).then_some(resource))
    }

    /// The kind in every served version.
    pub(super) fn versions(&self, kind: Kind) -> impl Iterator<Item = (&str, &Resource)> {
        self.resources.iter().filter(move |((group, _), _)| group == kind.group()).filter_map(
            move |((_, version), resources)| {
                let resource = resources.iter().find(|resource| resource.kind == kind.as_str())?;
                Some((version.as_str(), resource))
            },
        )
    }

    /// The kinds of a group in these versions.
    pub(super) fn of_group(&self, group: &str, versions: &[&str]) -> Vec<&Resource> {
        let of_version = |version: &&str| self.resources.get(&(group.to_owned(), (*version).to_owned()));
        versions.iter().filter_map(of_version).flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_in_another_version_than_the_controller_reads_is_not_listed() {
        let group = Kind::TcpRoute.group();
        let of_version = |version: &str| {
            let resource = Resource {
                kind: "TCPRoute".to_owned(),
                api_version: format!("{group}/{version}"),
                root: format!("/apis/{group}/{version}"),
                plural: "tcproutes".to_owned(),
                is_namespaced: true,
            };
            ((group.to_owned(), version.to_owned()), vec![resource])
        };
        let older = Served { resources: [of_version("v1alpha2")].into() };
        assert_eq!(older.resource(Kind::TcpRoute), None);
        assert_eq!(older.versions(Kind::TcpRoute).next().unwrap().0, "v1alpha2");
        let both = Served { resources: [of_version("v1"), of_version("v1alpha2")].into() };
        assert!(both.resource(Kind::TcpRoute).unwrap().root.ends_with("/v1"));
        assert_eq!(both.resource(Kind::HttpRoute), None);
    }
}
