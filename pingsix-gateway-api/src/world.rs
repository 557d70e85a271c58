//! The state of the cluster in memory: a store per kind, the references between kinds, and the Gateways and
//! IngressClasses that a change affects.
//!
//! ```text
//! watch events ──► World::apply ──► stores, secondary maps ──► affected owners (Gateways, IngressClasses)
//!                                        │
//!                                        └──► Extract::new: the objects of one owner
//! ```
//!
//! The state is a plain value without watches and clocks. The secondary maps of [`crate::store`] answer every query
//! without a scan of all objects of a kind.

mod kinds;
mod owners;
mod referrers;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::selection::{Direction, Edges, ObjectSource, Target};
use pingsix_translate::snapshot::{Pool, Proxies};
use pingsix_translate::status::Problem;
use pingsix_translate::{Kind, Object, ObjectKey, ObjectName, Objects, for_each_kind};

pub(crate) use kinds::{KindVisitor, with_kind};
use owners::AffectedOwners;

use crate::store::{Change, Edge, Reader, ReflectorStore, Work};
pub use crate::watch::Event;
use crate::watch::{Undecodable, Watched, WatchedKind};

/// A store of one kind.
pub(crate) type KindStore<K> = ReflectorStore<Watched<K>, Target>;

macro_rules! world {
    ($($kind:ident in $field:ident $facts:tt)+) => {
        /// The state of the cluster in memory.
        #[derive(Debug)]
        pub struct World {
            $($field: KindStore<pingsix_translate::snapshot::$kind>,)+
            pool: Pool,
            steps: usize,
        }

        impl Default for World {
            fn default() -> Self {
                Self {
                    $($field: store(),)+
                    pool: Pool::default(),
                    steps: 0,
                }
            }
        }

        $(
            impl Stored for pingsix_translate::snapshot::$kind {
                fn store(world: &World) -> &KindStore<Self> {
                    &world.$field
                }
            }
        )+

        impl World {
            /// Applies an event, and returns its effects.
            pub fn apply(&mut self, event: Event) -> Effects {
                match event {
                    $(Event::$kind(event) => {
                        let changes = self.$field.apply(event.modify(|object| object.share(&mut self.pool)));
                        self.effects(changes)
                    })+
                }
            }

            /// Removes an object that was deleted or has no reference left, and returns the effects.
            pub fn remove(&mut self, key: &ObjectKey) -> Effects {
                match key.kind {
                    $(Kind::$kind => {
                        let change = self.$field.remove(&key.name);
                        self.effects(change)
                    })+
                }
            }

            /// Whether a list of the kind was complete, so all its objects are known.
            pub fn is_complete(&self, kind: Kind) -> bool {
                match kind { $(Kind::$kind => self.$field.is_complete(),)+ }
            }

            /// Whether there is an object with this key, decodable or not.
            pub fn contains(&self, key: &ObjectKey) -> bool {
                match key.kind { $(Kind::$kind => self.$field.get(&key.name).is_some(),)+ }
            }

            /// The keys of all objects of a kind, as [`keys`](Self::keys) of its type.
            pub(crate) fn keys_of(&self, kind: Kind) -> BTreeSet<ObjectKey> {
                match kind { $(Kind::$kind => self.keys::<pingsix_translate::snapshot::$kind>(),)+ }
            }

            /// The objects of a kind that depend on a target.
            fn dependents(&self, kind: Kind, target: &Target) -> Vec<&ObjectName> {
                match kind { $(Kind::$kind => self.$field.dependents(target).collect(),)+ }
            }

            /// The status of an object as the API server has it; null if absent or not stored.
            pub fn status(&self, key: &ObjectKey) -> serde_json::Value {
                match key.kind {
                    $(Kind::$kind => self.$field.get(&key.name).map(|object| object.status()).unwrap_or_default(),)+
                }
            }

            /// Every undecodable object, with its problem.
            pub(crate) fn undecodable(&self) -> Vec<(ObjectKey, Undecodable)> {
                let mut problems = Vec::new();
                $(
                    problems.extend(self.$field.objects().iter().filter_map(|object| {
                        Some((object.key(), object.undecodable()?.clone()))
                    }));
                )+
                problems.sort_by(|(one, _), (other, _)| one.cmp(other));
                problems
            }

            /// The work of all stores so far.
            pub fn work(&self) -> Work {
                let mut all = Work::default();
                $(
                    let Work { objects, entries, .. } = self.$field.work();
                    all.objects += objects;
                    all.entries += entries;
                )+
                all
            }

            /// All decodable objects, as `pingsix-gatewayctl` would read them from a dump of the cluster. The call
            /// scans all objects, so it serves tests and dumps.
            pub fn to_objects(&self) -> Objects {
                let mut objects = Objects::default();
                $(
                    for object in self.$field.objects() {
                        if let Some(object) = object.object() {
                            objects.insert(Object::$kind(object.clone()));
                        }
                    }
                )+
                objects
            }

            /// The targets that the object with this key concerns now; none for an absent object.
            fn concerns(&self, key: &ObjectKey) -> Vec<Target> {
                match key.kind {
                    $(Kind::$kind => {
                        self.$field.get(&key.name).map_or_else(Vec::new, |object| self.$field.concerns(&object))
                    })+
                }
            }

            /// The Gateways and IngressClasses that depend on a target, and the targets that its other dependents
            /// concern. No object depends on a Gateway or an IngressClass.
            fn concerned_through(&self, target: &Target) -> BTreeSet<Target> {
                let mut concerned = BTreeSet::new();
                $(
                    if owners::is_owner(Kind::$kind) {
                        let owners = self.$field.dependents(target).cloned();
                        concerned.extend(owners.map(|name| Target::Object(ObjectKey { kind: Kind::$kind, name })));
                    } else {
                        concerned.append(&mut self.$field.concerned_through(target));
                    }
                )+
                concerned
            }
        }

        impl ObjectSource for World {
            fn object(&self, key: &ObjectKey) -> Option<Object> {
                match key.kind {
                    $(Kind::$kind => self.$field.get(&key.name)?.object().cloned().map(Object::$kind),)+
                }
            }

            fn members(&self, kind: Kind, target: &Target) -> Vec<ObjectName> {
                match kind { $(Kind::$kind => self.$field.members(target).cloned().collect(),)+ }
            }

            fn has_dependent(&self, kind: Kind, target: &Target, is_one: &dyn Fn(&ObjectName) -> bool) -> bool {
                match kind { $(Kind::$kind => self.$field.has_dependent(target, is_one),)+ }
            }
        }
    };
}

for_each_kind! { world }

/// An empty store with a secondary map for each edge of the kind. Undecodable objects have no references.
fn store<K: WatchedKind + Edges>() -> KindStore<K> {
    let edges = K::EDGES.iter().map(|edge| {
        let targets = |object: &Watched<K>, targets: &mut Vec<Target>| {
            if let Some(decoded) = object.object() {
                (edge.targets)(decoded, &object.name(), targets);
            }
        };
        match edge.direction {
            Direction::Concerns => Edge::concerns(edge.name, targets),
            Direction::DependsOn => Edge::depends_on(edge.name, targets),
        }
    });
    ReflectorStore::new(edges).comparing(Watched::has_equal_content)
}

/// A kind with a store.
#[doc(hidden)]
pub trait Stored: WatchedKind {
    /// The store of the kind.
    fn store(world: &World) -> &KindStore<Self>;
}

/// The effects of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Effects {
    /// Gateways and IngressClasses to reconcile, deleted ones included.
    pub owners: BTreeSet<ObjectKey>,
    /// GatewayClasses with a possibly different verdict.
    pub classes: BTreeSet<ObjectKey>,
    /// New and changed objects, whose status may differ from the last written one.
    pub touched: BTreeSet<ObjectKey>,
    /// Deleted objects.
    pub removed: BTreeSet<ObjectKey>,
    /// Services with a new, changed or deleted EndpointSlice, in its old or its new version.
    pub sliced: BTreeSet<ObjectName>,
    /// Touched objects that cannot be decoded, with their problems. They count as absent.
    pub undecodable: BTreeMap<ObjectKey, Problem>,
}

impl World {
    /// The existing, decodable PingsixProxies with these names.
    pub fn proxies(&self, names: impl IntoIterator<Item = Option<ObjectName>>) -> Proxies {
        let found = names.into_iter().flatten().filter_map(|name| Some((name.clone(), self.get(&name)?)));
        found.collect()
    }

    /// The keys of all objects of a kind, decodable or not. The call scans all objects of the kind.
    pub fn keys<K: Stored>(&self) -> BTreeSet<ObjectKey> {
        K::store(self).objects().iter().map(|object| object.key()).collect()
    }

    /// A handle that reads objects of a kind in other threads.
    pub fn reader<K: Stored>(&self) -> Reader<Watched<K>> {
        K::store(self).reader()
    }

    /// The Gateways and IngressClasses that a change of an object affects, if its references stay.
    pub fn owners_of(&self, key: &ObjectKey) -> BTreeSet<ObjectKey> {
        owners::affected_owners(self, [Target::Object(key.clone())]).owners
    }

    /// The number of steps from changes to owners so far. With [`work`](Self::work), the number bounds the cost of an
    /// event.
    pub const fn steps(&self) -> usize {
        self.steps
    }

    fn effects<K: WatchedKind>(
        &mut self,
        changes: impl IntoIterator<Item = Change<Watched<K>, Target>>,
    ) -> Effects {
        let mut effects = Effects::default();
        for change in changes {
            let key = ObjectKey { kind: K::KIND, name: change.name().clone() };
            if let Change::Applied { after, .. } | Change::Touched { after, .. } = &change
                && let Some(problem) = after.undecodable()
            {
                effects.undecodable.insert(key.clone(), problem.problem(key.clone()));
            }
            let concerned = match change {
                Change::Touched { .. } => {
                    effects.touched.insert(key);
                    continue;
                }
                Change::Applied { concerned, .. } => {
                    effects.touched.insert(key.clone());
                    concerned
                }
                Change::Removed { concerned, .. } => {
                    effects.removed.insert(key.clone());
                    concerned
                }
            };
            if K::KIND == Kind::EndpointSlice {
                effects.sliced.extend(concerned.iter().filter_map(|target| match target {
                    Target::Object(service) => Some(service.name.clone()),
                    Target::CrossNamespaceReference(_) | Target::DefaultIngressClass => None,
                }));
            }
            let start = concerned.into_iter().chain([Target::Object(key)]);
            let AffectedOwners { owners, classes, steps } = owners::affected_owners(self, start);
            effects.owners.extend(owners);
            effects.classes.extend(classes);
            self.steps += steps;
        }
        effects
    }
}
