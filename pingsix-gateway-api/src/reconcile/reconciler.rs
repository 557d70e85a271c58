//! The picture of the cluster, and what was made of it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use jiff::Timestamp;
use pingsix_sink::{Desired, Revision};
use pingsix_translate::infrastructure::{AttachedParameters, Infrastructure};
use pingsix_translate::snapshot::{
    Gateway, GatewayClass, IngressClass, OwnAddresses, proxy_of_class, proxy_of_ingress_class,
};
use pingsix_translate::verdict::{
    Delivery, GatewayClassVerdict, PolicyVerdict, Problem, RouteVerdict, Verdicts, finish,
    judge_gateway_class, judge_ingress_class,
};
use pingsix_translate::{
    DataPlane, DataPlaneKey, Kind, ObjectKey, ObjectName, Options, SharedMap, Translation, Translator,
};
use tokio::time::Instant;

use super::held::hold_back;
use super::verdicts::Speakers;
use super::waits::Waits;
use crate::acceptance::{
    Acceptance, Draft, DraftNumber, Findings, Heard, Reception, Recollection, Trial, named_sources,
};
use crate::bridge::{Bridge, withdrawn};
use crate::world::{Changed, Cut, Effects, Event, OwnerSnapshot, World};
use crate::{BridgeError, bridge_stream, outdated_certificates, outdated_stream_certificates};

/// Holds the picture of the cluster and what was last made of each owner.
#[derive(Debug)]
pub struct Reconciler {
    world: World,
    options: Options,
    classes: BTreeMap<ObjectKey, GatewayClassVerdict>,
    owners: BTreeMap<ObjectKey, Owned>,
    speakers: Speakers,
    /// Referenced objects of which it is known whether they are there.
    answered: BTreeSet<ObjectKey>,
    /// Whether other objects are referred to than when that was last asked.
    references_changed: bool,
    /// What other replicas have found at fault.
    findings: Findings,
}

/// What was made of an owner.
#[derive(Debug, Default)]
struct Owned {
    /// Without what delivery adds.
    verdicts: Option<Verdicts>,
    problems: Vec<Problem>,
    planes: BTreeMap<DataPlaneKey, DataPlane>,
    streams: BTreeSet<DataPlaneKey>,
    /// What it takes to run its data planes, if the controller is to.
    infrastructure: Option<Arc<Infrastructure>>,
    /// How they are reached, if somebody else runs them and it is said.
    attached: Option<Arc<AttachedParameters>>,
    /// Where they are reached.
    own_addresses: OwnAddresses,
    /// The Secrets and ConfigMaps it refers to.
    referenced: BTreeSet<ObjectKey>,
    /// The snapshot that was translated last; `None` before the first translation.
    seen: Option<OwnerSnapshot>,
    /// The objects that wait for their references; the owner itself before the first translation.
    waits: Waits,
    memo: Memo,
    acceptance: Acceptance,
    /// What is published in the place of `planes`, during a trial.
    tried: BTreeMap<DataPlaneKey, DataPlane>,
    /// Its parameters cannot be used: what was published before stays.
    is_kept: bool,
}

/// What was made of an owner, so that only what is different has to be made again.
#[derive(Debug, Default)]
struct Memo {
    cut: Option<Cut>,
    /// What came, went or changed since.
    changed: Changed,
    translator: Option<Translator>,
    bridges: BTreeMap<DataPlaneKey, Bridge>,
}

/// What a data plane shall hold.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Publication {
    /// Which data plane.
    pub data_plane: DataPlaneKey,
    /// What it shall hold; nothing if it is gone.
    pub desired: Desired,
}

/// How an owner stands after it was reconsidered. Each of these takes another action, so whoever matches on them should
/// be told of a new one by the compiler.
#[derive(Debug)]
pub enum Standing {
    /// It is ours: here is what to publish.
    Current(Reconciled),
    /// It is gone, or not ours any more: its data planes are to be emptied.
    Withdrawn(Reconciled),
    /// Nothing was made of it so far, and it refers to objects of which nobody knows yet whether they are there. What an
    /// earlier process has published stays.
    Waiting(BTreeSet<ObjectKey>),
}

/// What came of reconsidering an owner.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Reconciled {
    /// What to publish, in the order of the data planes. Publications that change nothing are among them.
    pub publications: Vec<Publication>,
    /// Data planes that keep what they have, because what was made for them cannot be published.
    pub unpublished: Vec<(DataPlaneKey, BridgeError)>,
    /// Objects about which there is something else to tell than before.
    pub told: BTreeSet<Arc<ObjectKey>>,
    /// To be told which revisions come of the publications.
    pub draft: Option<DraftNumber>,
    /// Set when PingSIX has refused something, and this is to find out what: nothing is told of it.
    pub trial: Option<Trial>,
    /// Objects it refers to of which nobody knows yet whether they are there. What refers to one of these counts as it was
    /// before, and after a while fails closed.
    pub awaited: BTreeSet<ObjectKey>,
}

impl Reconciler {
    /// Nothing is known yet.
    pub fn new(options: Options) -> Self {
        Self {
            world: World::default(),
            options,
            classes: BTreeMap::new(),
            owners: BTreeMap::new(),
            speakers: Speakers::default(),
            answered: BTreeSet::new(),
            references_changed: false,
            findings: Findings::new(),
        }
    }

    /// The picture of the cluster.
    pub const fn world(&self) -> &World {
        &self.world
    }

    /// Options of the translation.
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// Takes in what a watch saw.
    pub fn apply(&mut self, event: Event) -> Effects {
        let kind = event.kind();
        let was_complete = self.world.is_complete(kind);
        let effects = self.world.apply(event);
        let mut effects = self.judge_classes(effects);
        if !was_complete && self.world.is_complete(kind) {
            // A list answers for every object of its kind at once.
            let awaits = |key: &ObjectKey| key.kind == kind && !self.answered.contains(key);
            let waiting = self.owners.iter().filter(|(_, owned)| owned.referenced.iter().any(awaits));
            effects.owners.extend(waiting.map(|(owner, _)| owner.clone()));
        }
        effects
    }

    /// Takes in that an object is not there, or that nobody refers to it any more.
    pub fn remove(&mut self, key: &ObjectKey) -> Effects {
        let effects = self.world.remove(key);
        self.judge_classes(effects)
    }

    /// Takes in that it is known whether a referenced object is there. Returns the owners that waited for it.
    pub fn answered(&mut self, key: ObjectKey) -> BTreeSet<ObjectKey> {
        let waiting = self.world.owners_of(&key);
        if self.answered.insert(key) { waiting } else { BTreeSet::new() }
    }

    /// Takes in that a referenced object is not watched any more.
    pub fn unwatched(&mut self, key: &ObjectKey) -> Effects {
        self.answered.remove(key);
        self.remove(key)
    }

    fn judge_classes(&mut self, effects: Effects) -> Effects {
        for owner in &effects.owners {
            if let Some(made) = self.owners.get_mut(owner) {
                let changed = &mut made.memo.changed;
                changed.objects.extend(effects.touched.iter().chain(&effects.removed).cloned());
                changed.sliced.extend(effects.sliced.iter().cloned());
            }
        }
        for class in &effects.classes {
            let verdict = self.world.get::<GatewayClass>(&class.name).and_then(|object| {
                let proxies = self.world.proxies([proxy_of_class(&object)]);
                judge_gateway_class(&object, &proxies, &self.options)
            });
            match verdict {
                Some(verdict) => self.classes.insert(class.clone(), verdict),
                None => self.classes.remove(class),
            };
        }
        effects
    }

    /// Takes in what other replicas have found at fault. Returns the owners that this may make a difference for.
    pub fn learn(&mut self, findings: Findings) -> BTreeSet<ObjectKey> {
        let before = std::mem::replace(&mut self.findings, findings);
        let owners: BTreeSet<&ObjectKey> =
            before.values().chain(self.findings.values()).flat_map(BTreeMap::keys).collect();
        let of = |findings: &Findings, owner: &ObjectKey| -> Vec<_> {
            let of =
                findings.iter().filter_map(|(replica, of)| Some((replica.clone(), of.get(owner)?.clone())));
            of.collect()
        };
        let changed = owners.into_iter().filter(|owner| of(&before, owner) != of(&self.findings, owner));
        changed.cloned().collect()
    }

    /// Verdict on a class of ours.
    pub fn class(&self, key: &ObjectKey) -> Option<&GatewayClassVerdict> {
        self.classes.get(key)
    }

    /// Every Gateway and IngressClass that is ours.
    pub fn ours(&self) -> BTreeSet<ObjectKey> {
        let gateways = self.world.keys::<Gateway>();
        let classes = self.world.keys::<IngressClass>();
        gateways.into_iter().chain(classes).filter(|owner| self.is_ours(owner)).collect()
    }

    /// Whether an owner is there and ours. It may be that its parameters, or those of its class, cannot be used.
    fn is_ours(&self, owner: &ObjectKey) -> bool {
        if owner.kind == Kind::Gateway {
            self.world.get::<Gateway>(&owner.name).is_some_and(|gateway| {
                let class = ObjectName::new("", gateway.spec.gateway_class_name.as_str());
                let class = ObjectKey { kind: Kind::GatewayClass, name: class };
                self.classes.contains_key(&class)
            })
        } else {
            let class = self.world.get::<IngressClass>(&owner.name);
            class.is_some_and(|class| {
                let proxies = self.world.proxies([proxy_of_ingress_class(&class)]);
                judge_ingress_class(&class, &proxies, &self.options).is_some()
            })
        }
    }

    /// The Secrets and ConfigMaps that have to be watched, if they are others than when this was last asked.
    pub fn take_references(&mut self) -> Option<BTreeSet<ObjectKey>> {
        std::mem::take(&mut self.references_changed).then(|| self.referenced())
    }

    /// The Secrets and ConfigMaps that have to be watched: those which owners of ours refer to.
    pub fn referenced(&self) -> BTreeSet<ObjectKey> {
        self.owners.values().flat_map(|made| &made.referenced).cloned().collect()
    }

    /// Takes note of where the data planes of an owner are reached, which no backend may be. Returns whether that is
    /// another than before, so that the owner has to be reconsidered.
    pub fn set_own_addresses(&mut self, owner: &ObjectKey, addresses: BTreeSet<SocketAddr>) -> bool {
        let Some(made) = self.owners.get_mut(owner) else { return false };
        let is_other = !made.own_addresses.keys().eq(&addresses);
        if is_other {
            made.own_addresses = addresses.into_iter().map(|address| (address, ())).collect();
        }
        is_other
    }

    /// Reconsiders an owner.
    pub fn reconcile(&mut self, owner: &ObjectKey, now: Timestamp) -> Standing {
        let cut = if self.is_ours(owner) { self.cut(owner) } else { None };
        let Some(cut) = cut else {
            return Standing::Withdrawn(self.withdraw(owner));
        };
        let is_known = |key: &ObjectKey| self.answered.contains(key) || self.world.is_complete(key.kind);
        let missing: BTreeSet<ObjectKey> =
            cut.referenced.iter().filter(|key| !is_known(key)).cloned().collect();
        let made = self.owners.entry(owner.clone()).or_default();
        if made.referenced != cut.referenced {
            self.references_changed = true;
            made.referenced.clone_from(&cut.referenced);
        }
        let mut snapshot = made.memo.cut.insert(cut).snapshot.clone();
        snapshot.own_addresses().clone_from(&made.own_addresses);
        if missing.is_empty() {
            made.waits.end(BTreeSet::new());
        } else {
            let referrers = self.world.referrers(&snapshot, &missing);
            match &made.seen {
                Some(before) => {
                    let held = made.waits.set(referrers);
                    hold_back(&self.world, &mut snapshot, before, &held);
                }
                // What an earlier process made of it is still served. One wait for the whole owner has an end, whoever
                // comes to refer to whatever else.
                None if !made.waits.set([owner.clone()].into()).is_empty() => {
                    return Standing::Waiting(missing);
                }
                None => made.waits.end(referrers),
            }
            *snapshot.pending() = missing.iter().map(|key| (key.clone(), ())).collect();
        }
        let reconciled = self.translate(owner, snapshot, now);
        Standing::Current(Reconciled { awaited: missing, ..reconciled })
    }

    /// Makes of an owner what follows from what it may see.
    fn translate(&mut self, owner: &ObjectKey, snapshot: OwnerSnapshot, now: Timestamp) -> Reconciled {
        let made = self.owners.entry(owner.clone()).or_default();
        if made.acceptance.is_new() {
            let status = |key: &ObjectKey| self.world.status(key);
            let recollection = Recollection::of(&snapshot, &self.options.controller_name, status);
            made.acceptance.recall(recollection);
        }
        made.acceptance.learn(owner, &self.findings, &snapshot);
        let snapshot = &*made.seen.insert(snapshot);
        let Draft { snapshot, number, trial } = made.acceptance.draft(snapshot);
        let translator = made.memo.translator.get_or_insert_with(|| Translator::new(self.options.clone()));
        let translation = match &snapshot {
            OwnerSnapshot::Gateway(snapshot) => translator.translate(snapshot),
            OwnerSnapshot::Ingress(snapshot) => translator.translate_ingress(snapshot),
        };
        let reconciled = match &trial {
            Some(_) => self.take_trial(owner, translation),
            None if translation.has_unusable_parameters => return self.keep(owner, translation.verdicts),
            None => self.take(owner, translation, now),
        };
        if let Some(made) = self.owners.get_mut(owner) {
            let planes = reconciled.publications.iter().map(|publication| publication.data_plane.clone());
            made.acceptance.expects(number, planes.filter(|key| made.planes.contains_key(key)));
        }
        Reconciled { draft: Some(number), trial, ..reconciled }
    }

    /// Ends the waits for answers of the API server for which it is time; patience counts while it answers. To be called
    /// about every second. Returns the owners to reconsider.
    pub fn end_waits(&mut self, now: Instant, is_answering: bool) -> BTreeSet<ObjectKey> {
        let owners = self.owners.iter_mut();
        let ended = owners.filter_map(|(owner, made)| made.waits.beat(now, is_answering).then_some(owner));
        ended.cloned().collect()
    }

    /// What is to be published for a trial. What is told of the owner stays as it is, and so do data planes that the trial
    /// does not have.
    fn take_trial(&mut self, owner: &ObjectKey, translation: Translation) -> Reconciled {
        let mut reconciled = Reconciled::default();
        let Some(made) = self.owners.get_mut(owner) else { return reconciled };
        if translation.has_unusable_parameters {
            return reconciled;
        }
        made.tried = translation.data_planes;
        made.tried.retain(|key, _| made.planes.contains_key(key));
        for (key, plane) in &made.tried {
            let bridge = made.memo.bridges.entry(key.clone()).or_default();
            let bridged = bridge.bridge(key, plane, &self.options);
            reconciled.add(key, bridged.map(|bridged| (bridged.desired, Vec::new())), &mut Vec::new());
        }
        reconciled
    }

    /// A draft of an owner was published.
    pub fn published(
        &mut self,
        owner: &ObjectKey,
        draft: DraftNumber,
        data_plane: &DataPlaneKey,
        revision: Revision,
    ) -> Heard {
        let made = self.owners.get_mut(owner);
        made.map_or(Heard::Nothing, |made| made.acceptance.published(draft, data_plane, revision))
    }

    /// Takes in how PingSIX takes what a data plane is given; nothing when there is no instance that says so.
    pub fn hears(&mut self, data_plane: &DataPlaneKey, reception: Option<Reception>) -> Heard {
        let Some(made) = self.owners.get_mut(&data_plane.owner()) else { return Heard::Nothing };
        let said = reception.as_ref().and_then(|reception| reception.refused.as_ref());
        let plane = made.tried.get(data_plane).or_else(|| made.planes.get(data_plane));
        let named = said.zip(plane).map(|((_, said), plane)| named_sources(said, plane)).unwrap_or_default();
        made.acceptance.hears(data_plane, reception, &named)
    }

    /// Does what the time has come for in how PingSIX takes publications. Returns the owners of which something else is to be
    /// published.
    pub fn beat(&mut self, now: Instant) -> Vec<(ObjectKey, Heard)> {
        let owners = self.owners.iter_mut();
        let heard = owners.map(|(owner, made)| (owner.clone(), made.acceptance.beat(now)));
        heard.filter(|(_, heard)| *heard != Heard::Nothing).collect()
    }

    /// Whether PingSIX refuses anything of any owner, or something is being tried again.
    pub fn is_listening(&self) -> bool {
        self.owners.values().any(|made| made.acceptance.is_busy() || made.acceptance.fault().is_some())
    }

    /// What PingSIX makes of the publications of an owner.
    pub fn acceptance(&self, owner: &ObjectKey) -> Option<&Acceptance> {
        Some(&self.owners.get(owner)?.acceptance)
    }

    /// Gives up what is being found out about an owner: nobody listens to PingSIX any more. Returns whether something was.
    pub fn give_up(&mut self, owner: &ObjectKey) -> bool {
        self.owners.get_mut(owner).is_some_and(|made| made.acceptance.give_up())
    }

    /// What an owner may see now.
    fn cut(&mut self, owner: &ObjectKey) -> Option<Cut> {
        let memo = self.owners.get_mut(owner).map(|made| &mut made.memo);
        let kept = memo.and_then(|memo| {
            let changed = std::mem::take(&mut memo.changed);
            Some((memo.cut.take()?, changed))
        });
        if let Some((mut cut, changed)) = kept
            && self.world.recut(&mut cut, &changed)
        {
            return Some(cut);
        }
        self.world.cut(owner)
    }

    fn take(&mut self, owner: &ObjectKey, translation: Translation, now: Timestamp) -> Reconciled {
        let Translation { data_planes, stream_planes, infrastructure, attached, mut verdicts, .. } =
            translation;
        let made = self.owners.entry(owner.clone()).or_default();
        let mut before = std::mem::take(made);
        if let Some(cut) = &before.memo.cut {
            before.acceptance.amend(&cut.snapshot, &mut verdicts.routes);
        }
        let mut reconciled = Reconciled::default();
        let mut problems = verdicts.problems.clone();
        for (key, plane) in &data_planes {
            problems.extend(outdated_certificates(plane, now));
            let bridged =
                before.memo.bridges.entry(key.clone()).or_default().bridge(key, plane, &self.options);
            reconciled.add(key, bridged.map(|bridged| (bridged.desired, bridged.problems)), &mut problems);
        }
        for (key, plane) in &stream_planes {
            problems.extend(outdated_stream_certificates(plane, now));
            let bridged = bridge_stream(key, plane, &self.options);
            reconciled.add(key, bridged.map(|bridged| (bridged.desired, bridged.problems)), &mut problems);
        }
        problems.extend(before.acceptance.problems());
        problems.sort();
        problems.dedup();
        before.memo.bridges.retain(|key, _| data_planes.contains_key(key));
        let planes_before = before.planes.keys().chain(&before.streams);
        let gone =
            planes_before.filter(|key| !data_planes.contains_key(*key) && !stream_planes.contains_key(*key));
        for key in gone {
            before.acceptance.forget(key);
            reconciled.add(
                key,
                withdrawn(key, &self.options).map(|desired| (desired, Vec::new())),
                &mut Vec::new(),
            );
        }
        reconciled.told =
            self.speakers.replace(&Arc::new(owner.clone()), before.verdicts.as_ref(), Some(&verdicts));
        if before.attached != attached || before.infrastructure.is_some() != infrastructure.is_some() {
            // Where its data planes are reached may be elsewhere.
            let gateway = (owner.kind == Kind::Gateway).then(|| Arc::new(owner.clone()));
            reconciled.told.extend(gateway.into_iter().chain(verdicts.ingresses.iter().cloned()));
        }
        *made = Owned {
            infrastructure,
            attached,
            verdicts: Some(verdicts),
            problems,
            planes: data_planes,
            streams: stream_planes.into_keys().collect(),
            own_addresses: before.own_addresses,
            referenced: before.referenced,
            seen: before.seen,
            waits: before.waits,
            memo: before.memo,
            acceptance: before.acceptance,
            tried: BTreeMap::new(),
            is_kept: false,
        };
        reconciled
    }

    /// What an owner is to serve is not known while its parameters cannot be used: whatever was published stays, and so does
    /// what runs for it. Of one of which nothing was published here, nothing is: a reader keeps what it has from elsewhere,
    /// and gets nothing if it has nothing.
    fn keep(&mut self, owner: &ObjectKey, mut verdicts: Verdicts) -> Reconciled {
        let mut reconciled = Reconciled::default();
        let Some(made) = self.owners.get_mut(owner) else { return reconciled };
        let mut before = std::mem::take(made);
        // A trial may be what was published last.
        for (key, plane) in &before.planes {
            let bridge = before.memo.bridges.entry(key.clone()).or_default();
            let bridged = bridge.bridge(key, plane, &self.options);
            reconciled.add(key, bridged.map(|bridged| (bridged.desired, Vec::new())), &mut Vec::new());
        }
        if let Some(before) = &before.verdicts {
            verdicts.ingresses.clone_from(&before.ingresses);
        }
        let problems = verdicts.problems.clone();
        reconciled.told =
            self.speakers.replace(&Arc::new(owner.clone()), before.verdicts.as_ref(), Some(&verdicts));
        *made = Owned { verdicts: Some(verdicts), problems, tried: BTreeMap::new(), is_kept: true, ..before };
        reconciled
    }

    /// Whether the parameters of an owner cannot be used, so that what was published before stays as it is.
    pub fn is_kept(&self, owner: &ObjectKey) -> bool {
        self.owners.get(owner).is_some_and(|made| made.is_kept)
    }

    /// Empties the data planes of an owner that is gone or not ours, and takes back what was said because of it.
    fn withdraw(&mut self, owner: &ObjectKey) -> Reconciled {
        let mut reconciled = Reconciled::default();
        let Some(made) = self.owners.remove(owner) else { return reconciled };
        self.references_changed |= !made.referenced.is_empty();
        for key in made.planes.keys().chain(&made.streams) {
            let desired = withdrawn(key, &self.options).map(|desired| (desired, Vec::new()));
            reconciled.add(key, desired, &mut Vec::new());
        }
        reconciled.told = self.speakers.replace(&Arc::new(owner.clone()), made.verdicts.as_ref(), None);
        reconciled
    }

    /// The verdicts on a Gateway and its ListenerSets, with what is known of the delivery of its data planes; `None` when
    /// it is not ours. Those on routes and policies are [elsewhere](Self::route), for other Gateways share them.
    pub fn verdicts(
        &self,
        owner: &ObjectKey,
        delivery: &BTreeMap<DataPlaneKey, Delivery>,
    ) -> Option<Verdicts> {
        let Verdicts { gateway, listener_sets, ingresses, .. } = self.owners.get(owner)?.verdicts.as_ref()?;
        let own = Verdicts {
            gateway: gateway.clone(),
            listener_sets: listener_sets.clone(),
            routes: SharedMap::new(),
            policies: BTreeMap::new(),
            ingresses: ingresses.clone(),
            problems: Vec::new(),
        };
        Some(finish(own, delivery))
    }

    /// What all Gateways together say of a route; `None` when none has anything to say.
    pub fn route(&self, route: &ObjectKey) -> Option<RouteVerdict> {
        let mut verdicts = self.verdicts_on(route).filter_map(|verdicts| verdicts.routes.get(route));
        let mut merged = verdicts.next()?.clone();
        for verdict in verdicts {
            merged.merge(verdict);
        }
        Some(merged)
    }

    /// The owners whose translation speaks of a Gateway, ListenerSet or Ingress: none when nobody serves it.
    pub fn owners_that_speak_of(&self, object: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        self.speakers.of(object)
    }

    /// What each Gateway says of a policy.
    pub fn policy(&self, policy: &ObjectKey) -> Vec<PolicyVerdict> {
        self.verdicts_on(policy).filter_map(|verdicts| verdicts.policies.get(policy)).cloned().collect()
    }

    /// What each owner that speaks of an object says.
    fn verdicts_on(&self, object: &ObjectKey) -> impl Iterator<Item = &Verdicts> {
        self.speakers.of(object).filter_map(|owner| self.owners.get(owner)?.verdicts.as_ref())
    }

    /// What it takes to run the data planes of an owner, if the controller is to.
    pub fn infrastructure(&self, owner: &ObjectKey) -> Option<&Arc<Infrastructure>> {
        self.owners.get(owner)?.infrastructure.as_ref()
    }

    /// How the data planes of an owner are reached, if somebody else runs them and it is said.
    pub fn attached(&self, owner: &ObjectKey) -> Option<&Arc<AttachedParameters>> {
        self.owners.get(owner)?.attached.as_ref()
    }

    /// Everything that is wrong with the objects of an owner.
    pub fn problems(&self, owner: &ObjectKey) -> &[Problem] {
        self.owners.get(owner).map(|made| made.problems.as_slice()).unwrap_or_default()
    }

    /// What was made for a data plane of an owner last, before what PingSIX would refuse was taken out. For dumps.
    pub fn data_plane(&self, owner: &ObjectKey, key: &DataPlaneKey) -> Option<&DataPlane> {
        self.owners.get(owner)?.planes.get(key)
    }

    /// Everything that is wrong with the objects of all owners.
    pub fn all_problems(&self) -> impl Iterator<Item = &Problem> {
        self.owners.values().flat_map(|made| &made.problems)
    }

    /// The data planes of an owner.
    pub fn data_planes(&self, owner: &ObjectKey) -> Vec<DataPlaneKey> {
        let planes = self.owners.get(owner).into_iter();
        planes.flat_map(|made| made.planes.keys().chain(&made.streams)).cloned().collect()
    }
}

impl Reconciled {
    fn add(
        &mut self,
        key: &DataPlaneKey,
        bridged: Result<(Desired, Vec<Problem>), BridgeError>,
        problems: &mut Vec<Problem>,
    ) {
        match bridged {
            Ok((desired, found)) => {
                problems.extend(found);
                self.publications.push(Publication { data_plane: key.clone(), desired });
            }
            Err(error) => self.unpublished.push((key.clone(), error)),
        }
    }
}
