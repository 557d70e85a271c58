//! From objects to documents, problems and explanations, in one call.
//!
//! ```text
//! Objects ──► Pipeline::run: each Gateway, each IngressClass ──► translate ──► bridge ──► Output: documents, verdicts, findings
//!                                                                                           ├──► Output::explain
//!                                                                                           └──► Publisher ──► Sink
//! ```
//!
//! [`Pipeline::run`] translates everything anew, for tools and for controllers of few objects. [`IncrementalPipeline`] does
//! so again and again, and translates the data planes at a cost in proportion to the change. `controller::Controller`
//! extracts no more than a change affects, too.
//!
//! ```
//! use pingsix_gateway_api::{Objects, Options, Pipeline};
//!
//! let (objects, problems) = Objects::from_yaml(include_str!("../examples/shop.yaml"));
//! let options = Options { controller_name: "example.com/embedded".to_owned(), ..Options::default() };
//! let output = Pipeline::new(options).run(&objects);
//! assert!(problems.is_empty() && output.findings.is_empty());
//! assert_eq!(output.desired().count(), 1);
//! ```

mod judge;
mod publish;
mod run;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use pingsix_sink::Desired;
use pingsix_translate::pingsix::DocumentKey;
use pingsix_translate::selection::{Extract, IndexedObjects};
use pingsix_translate::status::{
    GatewayClassVerdict, PingsixProxyVerdict, PolicyVerdict, Problem, RouteVerdict, Severity, Verdicts,
};
use pingsix_translate::{
    DataPlane, DataPlaneKey, ObjectKey, Objects, Options, Provenance, StreamPlane, Translation,
};
pub use publish::{PublishError, Publisher};
pub(crate) use run::{BridgedOwner, OwnerRun};

use crate::bridge::{Bridged, BridgedStream};
use crate::explain::{Explanation, Inquiry, InquiryAnswerError, Plane, RelatedObjects, StreamPorts};

/// Translates objects and converts the results to documents.
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    options: Options,
    now: Option<Timestamp>,
}

impl Pipeline {
    /// A pipeline with the options of the translation.
    pub const fn new(options: Options) -> Self {
        Self { options, now: None }
    }

    /// Sets the time by which certificates are judged. Without a time, expired certificates cause no finding.
    #[must_use]
    pub const fn at(mut self, now: Timestamp) -> Self {
        self.now = Some(now);
        self
    }

    /// Translates every Gateway and IngressClass that belongs to this controller, and judges all other objects, too. A pure
    /// function of the objects, the options and the time.
    pub fn run(&self, objects: &Objects) -> Output {
        IncrementalPipeline::new(self.options.clone()).run(objects, self.now)
    }
}

/// A [`Pipeline`] that runs again and again. Each output is the one of [`Pipeline::run`].
///
/// Objects count as unchanged when they are the same [`Arc`]s as in the last run, as for [`Translator`](pingsix_translate::Translator).
#[derive(Debug)]
pub struct IncrementalPipeline {
    options: Options,
    caches: Caches,
}

impl IncrementalPipeline {
    /// A pipeline that has not run yet.
    pub fn new(options: Options) -> Self {
        Self { options, caches: Caches::default() }
    }

    /// The options of the translation.
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// As [`Pipeline::run`] of a pipeline [at](Pipeline::at) this time.
    pub fn run(&mut self, objects: &Objects, now: Option<Timestamp>) -> Output {
        self.translate(objects, now).judge()
    }

    /// The first part of [`run`](Self::run), whose cost is that of the change: the documents.
    pub fn translate(&mut self, objects: &Objects, now: Option<Timestamp>) -> UnjudgedOutput {
        let output = judge::translate(objects, &self.options, now, &mut self.caches);
        self.caches.owners.retain(|owner, _| output.owners.contains_key(owner));
        UnjudgedOutput { output, objects: objects.clone(), options: self.options.clone() }
    }
}

/// Documents that can be published while their objects are judged.
#[derive(Debug)]
pub struct UnjudgedOutput {
    output: Output,
    objects: Objects,
    options: Options,
}

impl UnjudgedOutput {
    /// The documents of all data planes, for a [`Publisher`]. The verdicts of the owners are complete, and all findings and
    /// other verdicts are not.
    pub const fn output(&self) -> &Output {
        &self.output
    }

    /// The complete output. Each call reads all objects, whatever has changed.
    pub fn judge(self) -> Output {
        judge::judge(&self.objects, &self.options, self.output)
    }
}

/// The state of the last run.
#[derive(Debug, Default)]
struct Caches {
    objects: IndexedObjects,
    owners: BTreeMap<ObjectKey, CachedOwner>,
}

#[derive(Debug, Default)]
struct CachedOwner {
    extract: Option<Extract>,
    run: OwnerRun,
}

impl Caches {
    /// Takes other objects. The extracts are then those of these objects.
    fn update(&mut self, objects: &Objects) {
        let changed = self.objects.update(objects.clone());
        for owner in self.owners.values_mut() {
            owner.extract.take_if(|extract| !extract.refresh(&self.objects, &changed));
        }
    }

    /// The translation and the documents of an owner; `None` if the owner does not exist.
    fn run(
        &mut self,
        owner: &ObjectKey,
        options: &Options,
        now: Option<Timestamp>,
    ) -> Option<(Translation, BridgedOwner)> {
        let CachedOwner { extract, run } = self.owners.entry(owner.clone()).or_default();
        let extract = match extract {
            Some(held) => held,
            None => extract.insert(Extract::new(&self.objects, owner)?),
        };
        let translation = run.translate(&extract.snapshot, options);
        let bridged = run.bridge_all(&translation, options, now);
        Some((translation, bridged))
    }
}

/// The verdict of all Gateways on a route; `None` without any.
#[cfg(feature = "view")]
pub(crate) fn merged_route<'v>(verdicts: impl Iterator<Item = &'v RouteVerdict>) -> Option<RouteVerdict> {
    verdicts.cloned().reduce(|mut merged, verdict| {
        merged.merge(&verdict);
        merged
    })
}

/// The documents of all data planes, and the verdicts on all objects.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Output {
    /// Each data plane, with the documents for its PingSIX.
    pub planes: BTreeMap<DataPlaneKey, ServedPlane>,
    /// The stream documents of each Gateway.
    pub streams: BTreeMap<DataPlaneKey, ServedStreams>,
    /// The verdicts on GatewayClasses of this controller.
    pub classes: Vec<GatewayClassVerdict>,
    /// The verdicts on all PingsixProxies.
    pub proxies: Vec<PingsixProxyVerdict>,
    /// The verdicts of each Gateway and IngressClass.
    pub owners: BTreeMap<ObjectKey, Arc<Verdicts>>,
    /// The verdicts of each Gateway, with `Programmed` as far as it is known before the delivery.
    pub gateways: Vec<Arc<Verdicts>>,
    /// The verdicts of all Gateways on each route.
    pub routes: BTreeMap<Arc<ObjectKey>, RouteVerdict>,
    /// The verdicts of each Gateway and IngressClass on each policy.
    pub policies: BTreeMap<Arc<ObjectKey>, Vec<PolicyVerdict>>,
    /// The problems of objects; sorted, without repetitions.
    pub findings: Vec<Finding>,
    /// Gateways and IngressClasses with unusable parameters. Their data planes and documents are unknown, so former
    /// publications stay.
    kept: BTreeSet<ObjectKey>,
    related: RelatedObjects,
}

/// A data plane and its origin.
#[derive(Debug)]
pub struct ServedPlane {
    /// The documents; `None` if they must not be published. A finding has the reason.
    pub bridged: Option<Bridged>,
    verdicts: Arc<Verdicts>,
    data_plane: DataPlane,
}

impl ServedPlane {
    /// The data plane for [`explain`](crate::explain()).
    pub fn to_explain<'a>(&'a self, key: &'a DataPlaneKey) -> Plane<'a> {
        Plane {
            key,
            config: self.bridged.as_ref().map_or(&self.data_plane.config, |bridged| &bridged.config),
            provenance: &self.data_plane.provenance,
            verdicts: &self.verdicts,
        }
    }

    /// The provenance of a document.
    pub fn provenance(&self, key: &DocumentKey) -> Option<&Provenance> {
        self.data_plane.provenance.get(key)
    }
}

/// The stream documents of a Gateway and their origin.
#[derive(Debug)]
pub struct ServedStreams {
    /// The documents; `None` if they must not be published. A finding has the reason.
    pub bridged: Option<BridgedStream>,
    /// The documents before the bridge, with the provenance of each.
    pub plane: StreamPlane,
}

/// A problem of an object, or a loss that its author may not expect. Displays as
/// `HTTPRoute shop/cart: spec.rules[0]: message`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The object.
    pub object: ObjectKey,
    /// The path of the field; empty for the whole object.
    pub field: String,
    /// The severity.
    pub severity: Severity,
    /// The reason in one word: that of a condition, or one of [`reason`].
    pub reason: &'static str,
    /// One sentence or more.
    pub message: String,
}

impl From<&Problem> for Finding {
    fn from(problem: &Problem) -> Self {
        Self {
            object: ObjectKey::clone(&problem.object),
            field: problem.field.to_string(),
            severity: problem.severity,
            reason: problem.reason.as_str(),
            message: problem.message.clone(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.object)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}

/// Reasons of findings about objects without a status in a cluster. All other reasons are those of conditions.
pub mod reason {
    /// The GatewayClass of a Gateway does not exist.
    pub const CLASS_NOT_FOUND: &str = "GatewayClassNotFound";
    /// The GatewayClass of a Gateway belongs to another controller.
    pub const CLASS_NOT_OURS: &str = "GatewayClassNotOurs";
    /// An Ingress has no class.
    pub const NO_INGRESS_CLASS: &str = "NoIngressClass";
    /// The IngressClass of an Ingress does not exist.
    pub const INGRESS_CLASS_NOT_FOUND: &str = "IngressClassNotFound";
    /// The IngressClass of an Ingress belongs to another controller.
    pub const INGRESS_CLASS_NOT_OURS: &str = "IngressClassNotOurs";
    /// The IngressClass of an Ingress is refused.
    pub const INGRESS_CLASS_NOT_SERVED: &str = "IngressClassNotServed";
    /// A parent does not exist.
    pub const PARENT_NOT_FOUND: &str = "ParentNotFound";
    /// A route or ListenerSet names no parent that is a Gateway.
    pub const NO_PARENT: &str = "NoParent";
    /// A policy has no effect.
    pub const NO_TARGET: &str = "NoTarget";
    /// The documents of a data plane must not be published.
    pub const NOT_PUBLISHED: &str = "NotPublished";
}

impl Output {
    /// The desired documents of every data plane and of every stream data plane that can be published.
    pub fn desired(&self) -> impl Iterator<Item = (&DataPlaneKey, &Desired)> {
        let planes = self.planes.iter();
        let planes = planes.filter_map(|(key, plane)| Some((key, &plane.bridged.as_ref()?.desired)));
        let streams = self.streams.iter();
        let streams = streams.filter_map(|(key, streams)| Some((key, &streams.bridged.as_ref()?.desired)));
        planes.chain(streams)
    }

    /// Whether there is such a data plane, or may be.
    pub fn has(&self, key: &DataPlaneKey) -> bool {
        self.planes.contains_key(key) || self.streams.contains_key(key) || self.kept.contains(&key.owner())
    }

    /// The objects that shape a document beside its owner. `key` is the kind and the id of the document.
    pub fn related(&self, plane: &DataPlaneKey, key: &str) -> Vec<String> {
        let documents = self.planes.get(plane).map(|plane| &plane.data_plane.provenance);
        documents.map(|documents| self.related.of_document(documents, key)).unwrap_or_default()
    }

    /// Explains a request: one explanation for each data plane that has the port of the request and a listener for its host.
    /// If no data plane has a listener, all data planes with the port are explained. If none has the port, all data planes
    /// count as having it. Gateways with a stream port of this number explain the connection.
    ///
    /// # Errors
    ///
    /// [`InquiryAnswerError`] if the Gateway or IngressClass of the inquiry is not served, or documents cannot be put into a
    /// router.
    pub fn explain(&self, inquiry: &Inquiry) -> Result<Vec<Explanation>, InquiryAnswerError> {
        let planes: Vec<Plane<'_>> = self.planes.iter().map(|(key, plane)| plane.to_explain(key)).collect();
        let stream_ports: Vec<StreamPorts<'_>> = self.stream_ports().collect();
        inquiry.answer(&planes, &stream_ports, &self.related)
    }

    /// Each Gateway with its stream documents, if there are any.
    pub fn stream_ports(&self) -> impl Iterator<Item = StreamPorts<'_>> {
        self.gateways.iter().filter_map(|verdicts| {
            let gateway = &*verdicts.gateway.as_ref()?.key;
            let streams = self.streams.get(&DataPlaneKey::Stream { gateway: gateway.name.clone() });
            let documents = streams
                .and_then(|streams| Some((&streams.bridged.as_ref()?.config, &streams.plane.provenance)));
            Some(StreamPorts { gateway, documents, verdicts })
        })
    }
}
