//! The part of a configuration that one route more or less changes.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::pingsix::{Config, Document, DocumentKey, ResourceKind, Route, RouteTable};
use pingsix_translate::status::RouteVerdict;
use pingsix_translate::{DataPlane, ObjectKey, Provenance, SharedMap};
use serde_json::Value;

use crate::case::{Case, Setting};

/// The number of changed documents, by the permitted reason.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Changes {
    /// Routes that decide by a rule of the HTTPRoute.
    pub(crate) deciding: usize,
    /// Routes that only list its patterns.
    pub(crate) listing: usize,
    /// Routes that tell part of another Route's requests apart, because that one decides by a rule of it.
    pub(crate) regions: usize,
    /// Routes whose filters moved to a service or back, because another Route has the same.
    pub(crate) sharing: usize,
    /// Upstreams and services that came or went.
    pub(crate) shared: usize,
    /// Documents that did not change.
    pub(crate) unchanged: usize,
}

impl Changes {
    pub(crate) fn add(&mut self, other: Self) {
        self.deciding += other.deciding;
        self.listing += other.listing;
        self.regions += other.regions;
        self.sharing += other.sharing;
        self.shared += other.shared;
        self.unchanged += other.unchanged;
    }
}

/// Takes each route of a table away and looks at everything that changes.
///
/// # Errors
///
/// The first change that is none of the route's business.
pub(crate) fn changes(objects: &[Value], setting: Setting) -> Result<Changes, String> {
    let mut all = Changes::default();
    let with = Case::new(objects, setting);
    for (index, object) in objects
        .iter()
        .enumerate()
        .filter(|(_, object)| object["kind"].as_str().is_some_and(|kind| kind.ends_with("Route")))
    {
        let mut fewer = objects.to_vec();
        fewer.remove(index);
        let without = Case::new(&fewer, setting);
        let route = Owner::new(object);
        for (key, verdict) in &without.translation.verdicts.routes {
            let other = with.translation.verdicts.routes.get(key);
            if other == Some(verdict) {
                continue;
            }
            // Rules that are decided among must have the same filters, and the most specific route has the say; and what
            // is never reached is not refused for what it would do.
            let disagrees = |verdict: &RouteVerdict| {
                let said = format!("{verdict:?}");
                said.contains("runs one set of filters") || said.contains("cannot tell ports apart")
            };
            if !disagrees(verdict) && !other.is_some_and(disagrees) {
                return Err(format!("without {}, the verdict on {key} is another", route.name));
            }
        }
        let planes = with.translation.data_planes.len();
        if planes != without.translation.data_planes.len() {
            return Err(format!("without {}, there are fewer data planes", route.name));
        }
        for (key, with) in &with.translation.data_planes {
            all.add(route.compare(with, &without.translation.data_planes[key])?);
        }
    }
    Ok(all)
}

/// The HTTPRoute that is taken away.
struct Owner {
    name: String,
    paths: BTreeSet<String>,
}

impl Owner {
    fn new(object: &Value) -> Self {
        let mut paths = BTreeSet::new();
        for rule in object["spec"]["rules"].as_array().into_iter().flatten() {
            let matches = rule["matches"].as_array().cloned().unwrap_or_else(|| vec![Value::Null]);
            for one in matches {
                let value = one["path"]["value"].as_str().unwrap_or("/");
                let stem = value.trim_end_matches('/');
                let call = &one["method"];
                if let Some(service) = call["service"].as_str() {
                    let method = call["method"].as_str();
                    let stem = format!("/{service}");
                    paths.extend(match method {
                        Some(method) => vec![format!("{stem}/{method}")],
                        None => vec![stem.clone(), format!("{stem}/"), format!("{stem}/{{*p}}")],
                    });
                } else if one["path"]["type"] == "Exact" {
                    paths.insert(value.to_owned());
                } else {
                    paths.extend([stem.to_owned(), format!("{stem}/"), format!("{stem}/{{*p}}")]);
                }
            }
        }
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
        Self { name: format!("{}/{}", text("namespace"), text("name")), paths }
    }

    fn compare(&self, with: &DataPlane, without: &DataPlane) -> Result<Changes, String> {
        let mut changes = Changes::default();
        let mut sharing: BTreeMap<String, usize> = BTreeMap::new();
        let keys: BTreeSet<&DocumentKey> =
            with.config.iter().chain(without.config.iter()).map(|(key, _)| key).collect();
        let (paths, hosts) = self.patterns_that_changed(with, without);
        for key in keys {
            let pair = (with.config.get(key), without.config.get(key));
            if pair.0.map(Document::to_json) == pair.1.map(Document::to_json) {
                changes.unchanged += 1;
                continue;
            }
            let error = |what: &str| Err(format!("without {}, {key} {what}: {pair:#?}", self.name));
            match pair {
                _ if self.decides(key, &without.provenance) => return error("is still the route's"),
                (Some(Document::Upstream(_) | Document::Service(_)), None) if is_used(with, key) => {
                    changes.shared += 1;
                }
                // Requests that ended in the route get another answer now.
                (None, Some(Document::Upstream(_) | Document::Service(_))) if is_used(without, key) => {
                    changes.shared += 1;
                }
                _ if self.decides(key, &with.provenance) => changes.deciding += 1,
                (Some(Document::Route(one)), Some(Document::Route(other))) => {
                    let services = one.service_id.iter().chain(&other.service_id);
                    let (one, other) = (&with_own_filters(with, one), &with_own_filters(without, other));
                    if one.plugins == other.plugins && pair_differs_in_service(pair) {
                        for service in services {
                            *sharing.entry(service.clone()).or_default() += 1;
                        }
                        changes.sharing += 1;
                    }
                    if !same_but_for_patterns(one, other) {
                        return error("answers something else");
                    }
                    let differ = |all: &BTreeSet<String>, one: &[String], other: &[String]| {
                        let set = |patterns: &[String]| patterns.iter().cloned().collect::<BTreeSet<_>>();
                        (&set(one) ^ &set(other)).is_subset(all)
                    };
                    if !differ(&paths, one.path_patterns(), other.path_patterns())
                        || !differ(&hosts, one.host_patterns(), other.host_patterns())
                    {
                        return error("lists other patterns than those that came or went");
                    }
                    changes.listing += 1;
                }
                // Part of what another Route answers is told apart from the rest only because the HTTPRoute has a
                // path there, because its rule is, or is not, among the decisions, or because a Route that decides
                // by its rule for all methods would otherwise take this one's away.
                (Some(Document::Route(route)), None) | (None, Some(Document::Route(route))) => {
                    let own = route.path_patterns().last();
                    let is_named = own.is_some_and(|own| self.paths.contains(own));
                    let answers = |plane| self.answers_there(plane, &with.provenance, route);
                    if !is_named && !answers(with) && !answers(without) {
                        return error("comes or goes");
                    }
                    changes.regions += 1;
                }
                _ => return error("comes or goes"),
            }
        }
        // A service of filters has three Routes at least, and one of them is the route's.
        match sharing.into_iter().find(|(_, routes)| *routes > 2) {
            Some((service, routes)) => Err(format!("without {}, {routes} Routes leave {service}", self.name)),
            None => Ok(changes),
        }
    }

    /// Whether a Route that decides by a rule of the HTTPRoute would answer to a request for the widest pattern
    /// of a Route that is not there.
    fn answers_there(
        &self,
        plane: &DataPlane,
        provenance: &SharedMap<DocumentKey, Provenance>,
        absent: &Route,
    ) -> bool {
        let path = absent.path_patterns().last().unwrap().replace("{*p}", "zz-fresh");
        let host = absent.host_patterns().last().map(|host| host.replace('*', "zz-fresh"));
        let methods = absent.methods.iter().map(String::as_str).chain(["PURGE"]);
        let deciding = plane.config.iter().filter(|(key, _)| self.decides(key, provenance));
        let deciding: Config = deciding.map(|(key, document)| (key.id.clone(), document.clone())).collect();
        let table = RouteTable::new(&deciding);
        let router = table.insert_in(0..table.len()).unwrap();
        methods.into_iter().any(|method| router.lookup(host.as_deref(), &path, method).is_some())
    }

    /// Paths and hosts of the HTTPRoute, and of all documents that came or went with it.
    fn patterns_that_changed(
        &self,
        with: &DataPlane,
        without: &DataPlane,
    ) -> (BTreeSet<String>, BTreeSet<String>) {
        let (mut paths, mut hosts) = (self.paths.clone(), BTreeSet::new());
        for (here, there) in [(with, without), (without, with)] {
            for (_, route) in here.config.routes().filter(|(key, _)| there.config.get(key).is_none()) {
                paths.extend(route.path_patterns().iter().cloned());
                hosts.extend(route.host_patterns().iter().cloned());
            }
        }
        (paths, hosts)
    }

    fn decides(&self, key: &DocumentKey, provenance: &SharedMap<DocumentKey, Provenance>) -> bool {
        let Some(Provenance::Rules { decisions, .. }) = provenance.get(key) else { return false };
        let mut origins = decisions.iter().filter_map(|decision| decision.origin.as_ref());
        origins.any(|origin| self.is(&origin.object))
    }

    fn is(&self, object: &ObjectKey) -> bool {
        object.name.to_string() == self.name
    }
}

/// Whether a Route refers to an upstream or a service.
fn is_used(plane: &DataPlane, shared: &DocumentKey) -> bool {
    let quoted = format!("\"{}\"", shared.id);
    let mut routes = plane.config.of_kind(ResourceKind::Route);
    routes.any(|(_, document)| document.to_json().contains(&quoted))
}

fn pair_differs_in_service(pair: (Option<&Document>, Option<&Document>)) -> bool {
    let service = |document: Option<&Document>| match document {
        Some(Document::Route(route)) => route.service_id.clone(),
        _ => None,
    };
    service(pair.0) != service(pair.1)
}

/// A Route with the plugins of its service, if that has filters.
fn with_own_filters(plane: &DataPlane, route: &Route) -> Route {
    let mut route = route.clone();
    let Some(id) = route.service_id.clone() else { return route };
    let key = DocumentKey::new(ResourceKind::Service, id.clone());
    if let (Some(service), Some(Provenance::Filters)) =
        (plane.config.service(&id), plane.provenance.get(&key))
    {
        for (name, config) in service.plugins.iter() {
            route.plugins.insert_raw(name, config.clone());
        }
        route.service_id = None;
    }
    route
}

fn same_but_for_patterns(one: &Route, other: &Route) -> bool {
    let bare =
        |route: &Route| Route { uri: None, uris: Vec::new(), host: None, hosts: Vec::new(), ..route.clone() };
    bare(one) == bare(other)
}
