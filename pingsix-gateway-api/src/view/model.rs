//! The data of the pages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use pingsix_translate::pingsix::{Config, Document, DocumentKey, LazyDocument};
use pingsix_translate::status::{Delivery, Problem, RouteVerdict, Severity, Verdicts};
use pingsix_translate::{
    DataPlaneKey, Kind, Object, ObjectKey, Objects, Options, Provenance, SharedMap, StreamPlane,
};

use crate::explain::{
    Explanation, Inquiry, InquiryAnswerError, Plane, RelatedObjects, StreamPorts, is_accepted,
};
use crate::pipeline::merged_route;

/// The state of a program at one moment.
#[derive(Debug)]
pub struct Model {
    /// The options of the translation.
    pub(super) options: Options,
    /// The arguments with which `pingsix-gatewayctl` reads the same objects, such as `--cluster` or a directory.
    pub(super) input: Vec<String>,
    /// Objects of the shown kinds.
    pub(super) objects: Objects,
    /// Each Gateway and IngressClass that the program serves.
    pub(super) owners: BTreeMap<ObjectKey, OwnerView>,
    /// All findings, in the order of the program.
    pub(super) findings: Vec<Finding>,
    /// The owners with a verdict on each route and Ingress; made on demand.
    owner_index: OnceLock<BTreeMap<ObjectKey, Vec<ObjectKey>>>,
    /// The findings about each object; made on demand.
    finding_index: OnceLock<BTreeMap<ObjectKey, Vec<usize>>>,
}

/// A Gateway or an IngressClass with its results.
#[derive(Debug)]
pub struct OwnerView {
    /// The verdicts, with the delivery.
    pub verdicts: Verdicts,
    /// The data planes.
    pub data_planes: BTreeMap<DataPlaneKey, DataPlaneView>,
}

/// A data plane.
#[derive(Debug)]
pub struct DataPlaneView {
    /// The desired documents.
    pub documents: PlaneDocuments,
    /// The revision of the last publication, if there was one.
    pub revision: Option<i64>,
    /// The delivery of the desired documents.
    pub delivery: Delivery,
    /// The known instances, by name.
    pub instances: Vec<Instance>,
    /// The number of connections to the sink, if it is known.
    pub connections: Option<usize>,
}

/// The documents of a data plane, and the objects from which they come.
#[derive(Debug)]
pub enum PlaneDocuments {
    /// Documents of PingSIX.
    Requests {
        /// The documents.
        config: Config,
        /// Their provenance.
        provenance: SharedMap<DocumentKey, Provenance>,
    },
    /// Documents of a stream proxy.
    Streams(Arc<StreamPlane>),
}

/// An instance that reads a data plane and has a status page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The address of its status page.
    pub name: String,
    /// The revision in force; `None` if the page cannot be read, or if the instance reads from another replica, whose
    /// revisions are not comparable.
    pub revision: Option<i64>,
    /// The state in words, such as the reason for which the instance refuses a revision. Empty without anything to add.
    pub remark: String,
    /// Whether the remark is an error.
    pub is_faulty: bool,
}

/// The level of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingLevel {
    /// Something that an author asked for is not served.
    Error,
    /// Everything is served, with a difference that the author may not expect.
    Warning,
    /// No action is needed.
    Info,
}

impl From<Severity> for FindingLevel {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Error => Self::Error,
            Severity::Warning => Self::Warning,
        }
    }
}

/// A finding about an object or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The level.
    pub level: FindingLevel,
    /// Kind, namespace and name of the object, or a file.
    pub object: String,
    /// The key of the object, if its page exists.
    pub key: Option<ObjectKey>,
    /// The file and the line of the object; empty without a file.
    pub place: String,
    /// The field; empty for the whole object.
    pub field: String,
    /// One sentence or more.
    pub message: String,
}

/// Whether pages read objects of a kind. Secrets and ConfigMaps are not among them.
fn is_shown(kind: Kind) -> bool {
    kind.is_route()
        || kind.is_policy()
        || matches!(
            kind,
            Kind::Gateway
                | Kind::ListenerSet
                | Kind::IngressClass
                | Kind::Ingress
                | Kind::Service
                | Kind::HttpRouteFilter
        )
}

impl Model {
    /// The kinds of objects that a model holds.
    pub fn kinds() -> impl Iterator<Item = Kind> {
        Kind::ALL.iter().copied().filter(|kind| is_shown(*kind))
    }

    /// A model. Objects of kinds that no page shows, such as Secrets, are dropped. `input` has the arguments with which
    /// `pingsix-gatewayctl` reads the same objects.
    pub fn new(options: Options, input: Vec<String>, objects: impl IntoIterator<Item = Object>) -> Self {
        let mut shown = Objects::default();
        for object in objects {
            if is_shown(object.kind()) {
                shown.insert(object);
            }
        }
        Self {
            options,
            input,
            objects: shown,
            owners: BTreeMap::new(),
            findings: Vec::new(),
            owner_index: OnceLock::new(),
            finding_index: OnceLock::new(),
        }
    }

    /// Adds a Gateway or an IngressClass.
    pub fn add_owner(&mut self, owner: ObjectKey, view: OwnerView) {
        self.owners.insert(owner, view);
        self.owner_index = OnceLock::new();
    }

    /// Adds findings.
    pub fn add_findings(&mut self, findings: impl IntoIterator<Item = Finding>) {
        self.findings.extend(findings);
        self.finding_index = OnceLock::new();
    }

    /// All data planes.
    pub(super) fn data_planes(&self) -> impl Iterator<Item = (&DataPlaneKey, &DataPlaneView)> {
        self.owners.values().flat_map(|owner| &owner.data_planes)
    }

    /// The owners with a verdict on a route or an Ingress.
    pub(super) fn owners_of(&self, object: &ObjectKey) -> impl Iterator<Item = (&ObjectKey, &OwnerView)> {
        let index = self.owner_index.get_or_init(|| {
            let mut index: BTreeMap<ObjectKey, Vec<ObjectKey>> = BTreeMap::new();
            for (owner, view) in &self.owners {
                for object in view.verdicts.routes.keys().chain(view.verdicts.ingresses.keys()) {
                    index.entry(ObjectKey::clone(object)).or_default().push(owner.clone());
                }
            }
            index
        });
        index.get(object).into_iter().flatten().filter_map(|owner| self.owners.get_key_value(owner))
    }

    /// The verdict of all Gateways on a route.
    pub(super) fn route_verdict(&self, route: &ObjectKey) -> Option<RouteVerdict> {
        merged_route(self.owners_of(route).filter_map(|(_, owner)| owner.verdicts.routes.get(route)))
    }

    /// The findings about an object.
    pub(super) fn findings_of(&self, object: &ObjectKey) -> impl Iterator<Item = &Finding> {
        let index = self.finding_index.get_or_init(|| {
            let mut index: BTreeMap<ObjectKey, Vec<usize>> = BTreeMap::new();
            for (at, finding) in self.findings.iter().enumerate() {
                if let Some(key) = &finding.key {
                    index.entry(key.clone()).or_default().push(at);
                }
            }
            index
        });
        index.get(object).into_iter().flatten().filter_map(|at| self.findings.get(*at))
    }

    /// The numbers of endpoints of ports of Services, in the documents of a route's data planes. A port without an upstream
    /// is absent.
    pub(super) fn endpoints(
        &self,
        route: &ObjectKey,
        ports: &BTreeSet<(ObjectKey, i32)>,
    ) -> BTreeMap<(ObjectKey, i32), usize> {
        let mut counts = BTreeMap::new();
        for (_, owner) in self.owners_of(route) {
            for plane in owner.data_planes.values() {
                let PlaneDocuments::Requests { config, provenance } = &plane.documents else { continue };
                for (key, origin) in provenance.iter() {
                    let Provenance::Backend { service, port } = origin else { continue };
                    let found = (ObjectKey::clone(service), *port);
                    if !ports.contains(&found) {
                        continue;
                    }
                    let Some(document) = config.get_lazy(key).map(LazyDocument::detached) else { continue };
                    if let Document::Upstream(upstream) = document.document() {
                        let count: &mut usize = counts.entry(found).or_default();
                        *count = upstream.nodes.len().max(*count);
                    }
                }
            }
        }
        counts
    }

    /// Explains a request for at most so many data planes. The second value is the number of the others.
    pub(super) fn explain(
        &self,
        inquiry: &Inquiry,
        most: usize,
    ) -> Result<(Vec<Explanation>, usize), InquiryAnswerError> {
        let mut planes = Vec::new();
        let mut stream_ports = Vec::new();
        for (owner, OwnerView { verdicts, data_planes }) in &self.owners {
            let mut documents = None;
            for (key, plane) in data_planes {
                match &plane.documents {
                    PlaneDocuments::Requests { config, provenance } => {
                        planes.push((key, config.detached(), provenance, verdicts));
                    }
                    PlaneDocuments::Streams(plane) => documents = Some((&plane.config, &plane.provenance)),
                }
            }
            if verdicts.gateway.is_some() {
                stream_ports.push(StreamPorts { gateway: owner, documents, verdicts });
            }
        }
        let planes: Vec<Plane<'_>> = planes
            .iter()
            .map(|(key, config, provenance, verdicts)| Plane { key, config, provenance, verdicts })
            .collect();
        inquiry.answer_at_most(most, &planes, &stream_ports, &self.related())
    }

    fn related(&self) -> RelatedObjects {
        RelatedObjects::new(&self.objects, |policy| {
            let verdicts = self.owners.values().filter_map(|owner| owner.verdicts.policies.get(policy));
            is_accepted(&verdicts.cloned().collect::<Vec<_>>())
        })
    }
}

/// A finding about a problem.
impl From<&Problem> for Finding {
    fn from(problem: &Problem) -> Self {
        Self {
            level: problem.severity.into(),
            object: problem.object.to_string(),
            key: Some(ObjectKey::clone(&problem.object)),
            place: String::new(),
            field: problem.field.to_string(),
            message: problem.message.clone(),
        }
    }
}
