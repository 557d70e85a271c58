//! The dumps.

use std::collections::BTreeMap;
use std::sync::Arc;

use pingsix_translate::selection::{CrossNamespaceReference, Target};
use pingsix_translate::status::Delivery;
use pingsix_translate::{DataPlane, DataPlaneKey, Kind, ObjectKey, Origin, Size, StreamPlane};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{DebugState, Dump};
use crate::acceptance::Acceptance;
use crate::bridge::origins_of;
use crate::bridge::stream::stream_origin_of;
use crate::replicas::Replicas;
use crate::store::Direction;
use crate::watch::{Undecodable, Watched};
use crate::world::{KindVisitor, Stored, World, with_kind};

/// The replacement of secrets.
const REDACTED: &str = "<redacted>";

impl DebugState<'_> {
    /// A dump, or the part of it that is about an object.
    pub(crate) fn dump(&self, dump: Dump, about: Option<&ObjectKey>) -> Value {
        let world = self.reconciler.world();
        match (dump, about) {
            (Dump::World, None) => by_kind(&Overview, world),
            (Dump::World, Some(key)) => with_kind(&Content(key), key.kind, world),
            (Dump::Index, None) => by_kind(&Maps, world),
            (Dump::Index, Some(key)) => index_of(key, world),
            (Dump::Queue, _) => self.queue(),
            (Dump::Translation, None) => {
                let owners = self.reconciler.ours();
                owners.iter().map(|owner| (owner.to_string(), self.translated(owner, false))).collect()
            }
            (Dump::Translation, Some(owner)) => self.translated(owner, true),
            (Dump::Sink, None) => self.sink(),
            (Dump::Sink, Some(owner)) => self.served(owner),
        }
    }

    fn queue(&self) -> Value {
        let waiting = self.queue.waiting().map(|(owner, due, failures)| {
            json!({
                "owner": owner.to_string(),
                "dueInSeconds": seconds(due, self.now),
                "failures": failures,
            })
        });
        waiting.collect()
    }

    fn translated(&self, owner: &ObjectKey, has_documents: bool) -> Value {
        let name = Arc::new(owner.clone());
        let planes = self.reconciler.data_planes(owner).into_iter().map(|key| {
            let plane = self.reconciler.data_plane(owner, &key).map(|plane| {
                let documents = has_documents.then(|| documents(plane, &name));
                data_plane(documents, plane.config.len(), plane.size)
            });
            let streams = self.reconciler.stream_plane(owner, &key).map(|plane| {
                let documents = has_documents.then(|| stream_documents(plane, &name));
                data_plane(documents, plane.config.len(), plane.size)
            });
            (key.to_string(), plane.or(streams).unwrap_or_default())
        });
        json!({
            "dataPlanes": planes.collect::<Value>(),
            "problems": self.reconciler.problems(owner).iter().map(ToString::to_string).collect::<Value>(),
            "acceptance": self.reconciler.acceptance(owner).map_or(Value::Null, acceptance),
        })
    }

    fn sink(&self) -> Value {
        let served = self.etcd.map(|etcd| (etcd, etcd.scopes()));
        let scopes = served.iter().flat_map(|(etcd, scopes)| scopes.iter().map(move |scope| (*etcd, scope)));
        let scopes = scopes.map(|(etcd, (scope, size))| {
            let shown = json!({
                "documents": size.documents,
                "bytes": size.bytes,
                "readers": etcd.readers_of(scope),
                "readersElsewhere": self.replicas.map(|replicas| replicas.readers_of(scope)),
            });
            (scope.as_str().to_owned(), shown)
        });
        let others = self.replicas.map(Replicas::others).unwrap_or_default();
        let others = others.iter().map(|replica| {
            json!({
                "identity": replica.identity,
                "readers": replica.readers,
                "silentForSeconds": replica.silent_for.as_secs_f64(),
            })
        });
        let planes = self.reconciler.ours();
        let planes = planes.iter().flat_map(|owner| self.reconciler.data_planes(owner));
        json!({
            "open": self.etcd.map(pingsix_sink::EmbeddedEtcd::is_open),
            "revision": self.etcd.map(|etcd| etcd.revision().get()),
            "revisionsReserved": self.etcd.map(|etcd| !etcd.stats().store_away),
            "otherReplicas": others.collect::<Value>(),
            "scopes": scopes.collect::<Value>(),
            "dataPlanes": planes.map(|key| (key.to_string(), self.delivery(&key))).collect::<Value>(),
        })
    }

    fn delivery(&self, key: &DataPlaneKey) -> Value {
        let (state, message) = match self.deliveries.delivery(key) {
            Delivery::Offline => ("offline", None),
            Delivery::Pending(message) => ("pending", Some(message)),
            Delivery::Delivered => ("delivered", None),
            Delivery::Confirmed => ("confirmed", None),
            Delivery::ConfirmedInPart(unserved) => ("confirmedInPart", Some(unserved)),
            Delivery::ConfirmedByOtherVersion(version) => ("confirmedByOtherVersion", Some(version)),
            Delivery::Refused(message) => ("refused", Some(message)),
        };
        let revision = self.deliveries.revision(key).map(pingsix_sink::Revision::get);
        json!({ "revision": revision, "delivery": state, "message": message })
    }

    /// The documents of an owner at the sink. The values contain private keys and passwords, so neither they nor their
    /// digests are shown: a weak password could be guessed from a digest. The dump of the translation has redacted values.
    fn served(&self, owner: &ObjectKey) -> Value {
        let root = &self.reconciler.options().root;
        let planes = self.reconciler.data_planes(owner).into_iter().map(|key| {
            let scope = pingsix_sink::Scope::new(key.prefix(root)).ok();
            let documents = scope.and_then(|scope| self.etcd?.documents(&scope));
            let documents = documents.iter().flatten().map(|document| {
                let shown = json!({
                    "owner": document.owner.to_string(),
                    "bytes": document.value.len(),
                });
                (document.key.to_string(), shown)
            });
            let mut shown = self.delivery(&key);
            shown["documents"] = documents.collect();
            (key.to_string(), shown)
        });
        planes.collect()
    }
}

/// The refusals of an owner's objects by PingSIX.
fn acceptance(acceptance: &Acceptance) -> Value {
    let quarantined = acceptance.quarantined().map(|(source, said)| {
        json!({"object": source.object.to_string(), "field": source.field().to_string(), "said": said})
    });
    let held_back =
        acceptance.held_back().map(|(part, said)| json!({"object": part.to_string(), "said": said}));
    let trial = acceptance.trial().map(|trial| json!({"number": trial.number, "suspects": trial.suspects}));
    json!({
        "fault": acceptance.refusal(),
        "trial": trial,
        "quarantine": quarantined.collect::<Value>(),
        "heldBack": held_back.collect::<Value>(),
    })
}

/// The time from `now`, in seconds; negative for the past.
fn seconds(at: Instant, now: Instant) -> f64 {
    let ahead = at.saturating_duration_since(now).as_secs_f64();
    if ahead > 0.0 { ahead } else { -now.saturating_duration_since(at).as_secs_f64() }
}

/// A data plane with its documents, or with their number alone.
fn data_plane(documents: Option<Value>, count: usize, size: Size) -> Value {
    let documents = documents.unwrap_or_else(|| count.into());
    json!({ "documents": documents, "bytes": size.bytes, "matcherEntries": size.matcher_entries })
}

fn documents(plane: &DataPlane, owner: &Arc<ObjectKey>) -> Value {
    // The decoded documents are dropped after the dump.
    let config = plane.config.detached();
    let documents = config.iter().map(|(key, document)| {
        let origins = origins_of(&plane.provenance, key, owner);
        (key.to_string(), with_origins(&without_header_values(document.to_shown_value()), &origins))
    });
    documents.collect()
}

/// Replaces the values that plugins write into headers. They may come from a ConfigMap.
fn without_header_values(mut document: Value) -> Value {
    for plugin in ["proxy-rewrite", "response-rewrite"] {
        let headers =
            document.get_mut("plugins").and_then(|plugins| plugins.get_mut(plugin)?.get_mut("headers"));
        let Some(Value::Object(headers)) = headers else { continue };
        for (_, value) in headers.iter_mut().filter(|(name, value)| *name != "remove" || !value.is_array()) {
            if let Some(headers) = value.as_array_mut() {
                for header in headers {
                    let value = if header.is_object() { &mut header["value"] } else { header };
                    *value = REDACTED.into();
                }
            } else if let Some(values) = value.as_object_mut() {
                values.values_mut().for_each(|value| *value = REDACTED.into());
            } else {
                *value = REDACTED.into();
            }
        }
    }
    document
}

fn stream_documents(plane: &StreamPlane, owner: &Arc<ObjectKey>) -> Value {
    let documents = plane.config.iter().map(|(key, document)| {
        let origin = stream_origin_of(plane.provenance.get(key), owner);
        (key.to_string(), with_origins(&document.to_shown_value(), &[origin]))
    });
    documents.collect()
}

fn with_origins(document: &Value, origins: &[Origin]) -> Value {
    let origins = origins.iter().map(|origin| format!("{}: {}", origin.object, origin.field()));
    json!({ "document": document, "origins": origins.collect::<Value>() })
}

fn by_kind<W: KindVisitor<Output = Value>>(work: &W, world: &World) -> Value {
    Kind::ALL.iter().map(|kind| (kind.as_str().to_owned(), with_kind(work, *kind, world))).collect()
}

/// Names of objects, and the problems of undecodable ones.
struct Overview;

impl KindVisitor for Overview {
    type Output = Value;

    fn run<K: Stored>(&self, world: &World) -> Value {
        let mut names = Vec::new();
        let mut undecodable = BTreeMap::new();
        for object in K::store(world).objects() {
            let name = object.key().name.to_string();
            if let Some(problem) = object.undecodable() {
                undecodable.insert(name.clone(), message(K::KIND, problem));
            }
            names.push(name);
        }
        names.sort();
        json!({
            "complete": world.is_complete(K::KIND),
            "objects": names,
            "undecodable": undecodable,
        })
    }
}

/// One object.
struct Content<'a>(&'a ObjectKey);

impl KindVisitor for Content<'_> {
    type Output = Value;

    fn run<K: Stored>(&self, world: &World) -> Value {
        let Some(watched) = K::store(world).get(&self.0.name) else { return Value::Null };
        let watched: &Watched<K> = &watched;
        let object = watched.object().and_then(|object| serde_json::to_value(&**object).ok());
        json!({
            "object": object.map(|object| shown(K::KIND, object)),
            "status": watched.status(),
            "undecodable": watched.undecodable().map(|problem| message(K::KIND, problem)),
        })
    }
}

/// The values of Secrets are secret, and those of ConfigMaps may be.
const fn may_hold_secrets(kind: Kind) -> bool {
    matches!(kind, Kind::Secret | Kind::ConfigMap)
}

/// The problem of an object. The decoder quotes its input.
pub(super) fn message(kind: Kind, problem: &Undecodable) -> String {
    if may_hold_secrets(kind) { REDACTED.to_owned() } else { problem.to_string() }
}

/// An object without what must not be shown. Of those that may hold secrets, only names are left: of the object, and of
/// its entries.
fn shown(kind: Kind, object: Value) -> Value {
    if !may_hold_secrets(kind) {
        return object;
    }
    let Value::Object(fields) = object else { return REDACTED.into() };
    let field = |(name, field): (String, Value)| {
        let field = match (name.as_str(), field) {
            ("data" | "stringData" | "binaryData", Value::Object(entries)) => {
                entries.into_iter().map(|(name, _)| (name, Value::from(REDACTED))).collect()
            }
            ("metadata", Value::Object(mut metadata)) => {
                metadata.remove("annotations");
                Value::Object(metadata)
            }
            ("apiVersion" | "kind" | "type" | "immutable", field) => field,
            (_, _) => REDACTED.into(),
        };
        (name, field)
    };
    Value::Object(fields.into_iter().map(field).collect::<Map<_, _>>())
}

/// The sizes of the secondary maps.
struct Maps;

impl KindVisitor for Maps {
    type Output = Value;

    fn run<K: Stored>(&self, world: &World) -> Value {
        let store = K::store(world);
        let edges = store.edges().map(|(edge, targets)| {
            let direction = match edge.direction {
                Direction::Concerns => "concerns",
                Direction::DependsOn => "dependsOn",
            };
            (edge.name.to_owned(), json!({ "direction": direction, "targets": targets.len() }))
        });
        json!({
            "edges": edges.collect::<Value>(),
            "entries": store.entries(),
            "work": { "objects": store.work().objects, "entries": store.work().entries },
        })
    }
}

fn index_of(key: &ObjectKey, world: &World) -> Value {
    let mut shown = with_kind(&References(key), key.kind, world);
    let names = |found: Vec<ObjectKey>| found.iter().map(ToString::to_string).collect::<Value>();
    let target = Target::Object(key.clone());
    let all = |work: &Referrers<'_>| {
        Kind::ALL.iter().flat_map(|kind| with_kind(work, *kind, world)).collect::<Vec<_>>()
    };
    shown["dependents"] = names(all(&Referrers { target: &target, direction: Direction::DependsOn }));
    shown["concernedBy"] = names(all(&Referrers { target: &target, direction: Direction::Concerns }));
    shown["owners"] = names(world.owners_of(key).into_iter().collect());
    shown
}

/// The references of an object.
struct References<'a>(&'a ObjectKey);

impl KindVisitor for References<'_> {
    type Output = Value;

    fn run<K: Stored>(&self, world: &World) -> Value {
        let store = K::store(world);
        let object = store.get(&self.0.name);
        let of = |targets: fn(&crate::world::KindStore<K>, &Watched<K>) -> Vec<Target>| {
            let targets = object.as_ref().map(|object| targets(store, object)).unwrap_or_default();
            targets.iter().map(text).collect::<Value>()
        };
        json!({
            "known": object.is_some(),
            "concerns": of(crate::world::KindStore::<K>::concerns),
            "dependsOn": of(crate::world::KindStore::<K>::dependencies),
        })
    }
}

/// The referrers of a target.
struct Referrers<'a> {
    target: &'a Target,
    direction: Direction,
}

impl KindVisitor for Referrers<'_> {
    type Output = Vec<ObjectKey>;

    fn run<K: Stored>(&self, world: &World) -> Vec<ObjectKey> {
        let key = |name: &pingsix_translate::ObjectName| ObjectKey { kind: K::KIND, name: name.clone() };
        match self.direction {
            Direction::DependsOn => K::store(world).dependents(self.target).map(key).collect(),
            Direction::Concerns => K::store(world).members(self.target).map(key).collect(),
        }
    }
}

fn text(target: &Target) -> String {
    match target {
        Target::Object(key) => key.to_string(),
        Target::CrossNamespaceReference(crossing) => {
            let CrossNamespaceReference { kind, from, into } = &**crossing;
            format!("permission for {kind} from {from} into {into}")
        }
        Target::DefaultIngressClass => "the default IngressClass".to_owned(),
    }
}
