//! A Gateway as an owner of data planes: its listeners, policies and routes of every kind.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::RouteOutcome;
use super::Translation;
use super::diff::{ReferentsDiff, difference, provenances};
use super::gateway_context::GatewayContext;
use super::owner::{FullTranslationNeeded, Owner, OwnerDiff, OwnerUpdate, RouteResults, change_certificates};
use super::route_slab::Source;
use super::shadowed_rules::ShadowedRules;
use super::shared::Interners;
use crate::attach::{Listener, attach_route, only_host};
use crate::backends::{Backends, ResolvedRule};
use crate::lower::{Attachments, Plane, RouteInput, StreamListeners};
use crate::model::{Kind, ObjectKey, ObjectName, Options, Problem};
use crate::normalise::{Extensions, Route, normalise_route};
use crate::policy::{Payload, Policies};
use crate::quarantine::refuse_rules;
use crate::references::{References, labels_of};
use crate::snapshot::{Part, Referents, Snapshot};
use crate::status::{JudgedPolicies, Refusals, RouteVerdict, attached_to, judge_policies, judge_route};

/// A Gateway with its ListenerSets and policies.
#[derive(Debug)]
pub(super) struct GatewayOwner {
    extensions: Extensions,
    context: GatewayContext,
    policies: JudgedPolicies,
    shadowed: ShadowedRules,
}

impl Owner for GatewayOwner {
    type Snapshot = Snapshot;

    fn referents(snapshot: &Snapshot) -> &Referents {
        &snapshot.referents
    }

    fn new(snapshot: &Snapshot, references: &References<'_>, options: &Options) -> Self {
        Self {
            extensions: Extensions::new(&snapshot.referents.http_route_filters),
            context: GatewayContext::new(snapshot, references, options),
            policies: JudgedPolicies::default(),
            shadowed: ShadowedRules::default(),
        }
    }

    fn take_routes(&mut self, snapshot: &Snapshot, mut take: impl FnMut(&Self, Source, Vec<Route>)) {
        for key in snapshot.routes.keys() {
            let (source, routes) = self.read(key, snapshot);
            take(self, source, routes);
        }
    }

    fn planes(&self) -> &[Plane] {
        &self.context.planes
    }

    fn policies(&self) -> &Policies {
        &self.context.policies
    }

    fn listeners(&self) -> &[Listener] {
        &self.context.listeners.all
    }

    fn stream_listeners(&self) -> Option<StreamListeners<'_>> {
        self.context.executors.stream_proxy.then(|| StreamListeners {
            gateway: &self.context.gateway.name,
            listeners: &self.context.listeners.all,
            namespace_share: self.context.settings.namespace_share,
        })
    }

    fn is_refused(&self) -> bool {
        self.context.refused.is_some()
    }

    fn attach(
        &self,
        route: Route,
        references: &References<'_>,
        (backends, shared): (&mut Backends, &mut Interners),
        problems: &mut Vec<Problem>,
    ) -> RouteInput {
        let context = &self.context;
        let route = route.without_served_lacks(context.executors);
        let attached = Attachments::new(attach_route(&route, &context.listeners, references));
        let attached = shared.attachments.share(attached);
        let parents = &attached.parents;
        let host = only_host(&route.hostnames, attached.listeners(), &context.listeners.all);
        let payload = Payload::of(route.traffic, parents, &context.listeners.all, host.as_ref());
        let listeners = || attached.listeners().map(|index| (index, &context.listeners.all[index]));
        let is_fronted = listeners().any(|(_, listener)| listener.is_fronted());
        let policies = context.policies.for_route(&route.key, payload, is_fronted);
        let rules = route
            .rules
            .iter()
            .map(|rule| {
                let share = |chain| shared.chains.share(chain);
                let chains = context.policies.chains(&route, rule, listeners(), &context.gateway, share);
                ResolvedRule { chains, ..references.resolve_rule(&route, rule, policies, backends, problems) }
            })
            .collect();
        let input = RouteInput::new(route, rules, attached);
        problems.extend(context.closed_connections(&input, backends));
        input
    }

    fn judge_policies(
        &mut self,
        inputs: &[Arc<RouteInput>],
        references: &References<'_>,
    ) -> BTreeSet<ObjectKey> {
        let GatewayContext { gateway, listeners, policies, parameters, .. } = &self.context;
        let of_gateway = (gateway, &listeners.all[..], parameters.hides_clients());
        let judged = judge_policies(policies, of_gateway, inputs, references);
        let before = std::mem::replace(&mut self.policies, judged);
        self.policies.affected.changed(&before.affected)
    }

    fn judge(
        &self,
        index: usize,
        input: &RouteInput,
        refusals: &Refusals,
        shared: &mut Interners,
    ) -> (Option<RouteVerdict>, RouteOutcome) {
        let mut problems = Vec::new();
        let policies = self.policies.affected.of_route(&input.route.key);
        let mut verdict = judge_route(index, input, refusals, policies.as_deref(), &mut problems);
        verdict.parents = shared.parents.share(verdict.parents);
        let counted = attached_to(index, input, &verdict, refusals);
        (Some(verdict), RouteOutcome { problems, counted })
    }

    fn update(&mut self, mut update: OwnerUpdate<'_, Self>) -> Result<OwnerDiff, FullTranslationNeeded> {
        let OwnerUpdate { before, snapshot, diff, references, options, .. } = update;
        for filter in &diff.http_route_filters {
            self.extensions.update(&filter.name, filter.now.as_deref());
        }
        let objects = GatewayDiff::between(before, snapshot, diff);
        let has_new_context = objects.has_new_context || concerns_context(diff, snapshot);
        let mut policies = BTreeSet::new();
        if has_new_context {
            policies =
                self.replace_context(GatewayContext::new(snapshot, references, options), &mut update)?;
        }
        self.find_routes(&mut update);
        let routes = objects.routes.iter().map(|key| self.read(key, snapshot)).collect();
        Ok(OwnerDiff { routes, has_new_context, policies })
    }

    fn targets(&self) -> impl Iterator<Item = &ObjectKey> {
        self.context.policies.targets()
    }

    fn translation(
        &mut self,
        snapshot: &Snapshot,
        references: &References<'_>,
        served: RouteResults<'_>,
    ) -> Translation {
        let RouteResults { data_planes, stream_planes, counts, verdicts, slab, problems, recomputed } =
            served;
        self.shadowed.update(provenances(&data_planes));
        self.shadowed.judge(&self.context.gateway, slab, problems);
        let verdicts = self.context.judge(
            snapshot,
            references,
            (counts, verdicts),
            &self.policies,
            (problems, recomputed),
        );
        Translation {
            data_planes,
            stream_planes,
            infrastructure: self.context.infrastructure.clone(),
            attached: self.context.parameters.attached().cloned(),
            feed_cpu_percent: self.context.settings.feed_cpu_percent,
            has_unusable_parameters: self.context.has_unusable_parameters(),
            verdicts,
        }
    }
}

impl GatewayOwner {
    /// The normalised route of a key, if it exists.
    fn read(&self, key: &ObjectKey, snapshot: &Snapshot) -> (Source, Vec<Route>) {
        let route = snapshot.routes.get(key).map(|route| normalise_route(route, &self.extensions));
        let route = route.map(|route| refuse_rules(&snapshot.referents.quarantine, route));
        let shared = route.as_ref().map_or_else(|| Arc::new(key.clone()), |route| route.key.clone());
        (Source::Object(shared), route.into_iter().collect())
    }

    /// Replaces the context. Routes with other policies, or with a ListenerSet that was or is not allowed, are
    /// attached again. Returns the inherited policies with other contents.
    fn replace_context(
        &mut self,
        context: GatewayContext,
        update: &mut OwnerUpdate<'_, Self>,
    ) -> Result<BTreeSet<Arc<ObjectKey>>, FullTranslationNeeded> {
        if !context.takes_routes_like(&self.context) {
            return Err(FullTranslationNeeded);
        }
        let OwnerUpdate { slab, planes, to_attach, .. } = update;
        let (before, now) = (self.context.listeners.excluded(), context.listeners.excluded());
        to_attach.extend(before.symmetric_difference(&now).flat_map(|set| slab.referring(set)));
        let targets = context.policies.changed(&self.context.policies);
        to_attach.extend(targets.into_iter().flat_map(|target| slab.of_target(target)));
        change_certificates(planes, &self.context.planes, &context.planes);
        let policies = context.policies.changed_contents(&self.context.policies);
        self.context = context;
        Ok(policies)
    }

    /// Finds unchanged routes whose attachment or permissions may differ. Attachment depends on the labels of the
    /// route's namespace, and permission on the ReferenceGrants in the referred namespace for the route's namespace.
    fn find_routes(&self, update: &mut OwnerUpdate<'_, Self>) {
        let OwnerUpdate { diff, slab, to_attach, .. } = update;
        for namespace in &diff.namespaces {
            let name = &namespace.name;
            let [before, now] =
                [&namespace.before, &namespace.now].map(|object| labels_of(name, object.as_deref()));
            if self.context.listeners.selects_differently(name, &before, &now) {
                to_attach.extend(slab.of_namespace(name));
            }
        }
        for grant in &diff.reference_grants {
            let into = &grant.name.namespace;
            let from = [&grant.before, &grant.now].into_iter().flatten().flat_map(|grant| &grant.spec.from);
            let namespaces: BTreeSet<&str> = from.map(|from| from.namespace.as_str()).collect();
            for from in namespaces.into_iter().map(Arc::from) {
                to_attach.extend(slab.crossing(&from, into));
            }
        }
    }
}

/// Whether inputs of listeners or policies differ. Of Namespaces, only those of ListenerSets are such inputs.
fn concerns_context(diff: &ReferentsDiff, snapshot: &Snapshot) -> bool {
    diff.of_proxies
        || !diff.config_maps.is_empty()
        || !diff.secrets.is_empty()
        || !diff.reference_grants.is_empty()
        || diff.quarantined.iter().any(|key| key.kind.is_policy())
        || diff.namespaces.iter().any(|namespace| snapshot.has_listener_set_in(&namespace.name))
}

/// The difference between two snapshots, apart from the referents.
struct GatewayDiff {
    /// Whether the Gateway, its class, ListenerSets or policies differ.
    has_new_context: bool,
    /// The routes to normalise again, and removed routes.
    routes: BTreeSet<ObjectKey>,
}

impl GatewayDiff {
    fn between(before: &Snapshot, now: &Snapshot, referents: &ReferentsDiff) -> Self {
        let has_new_context = !before.gateway.is_same(&now.gateway)
            || !before.class.is_same(&now.class)
            || !difference(&now.listener_sets, &before.listener_sets).is_empty()
            || !difference(&now.policies, &before.policies).is_empty();
        let changed = difference(&now.routes, &before.routes).into_iter();
        let mut routes: BTreeSet<ObjectKey> = changed.map(|diff| diff.name).collect();
        let quarantined = referents.quarantined.iter().filter(|key| key.kind.has_requests());
        routes.extend(quarantined.filter(|key| now.routes.contains_key(*key)).cloned());
        routes.extend(with_filters(now, referents));
        Self { has_new_context, routes }
    }
}

/// The routes that name HTTPRouteFilters which differ, in the namespaces of these filters.
fn with_filters<'s>(snapshot: &'s Snapshot, diff: &'s ReferentsDiff) -> impl Iterator<Item = ObjectKey> + 's {
    let changed: BTreeSet<&ObjectName> = diff.http_route_filters.iter().map(|filter| &filter.name).collect();
    let namespaces: BTreeSet<&Arc<str>> = changed.iter().map(|name| &name.namespace).collect();
    let routes = namespaces.into_iter().flat_map(|namespace| {
        let first = ObjectKey::new(Kind::HttpRoute, namespace.clone(), "");
        let routes = snapshot.routes.from_key(&first);
        routes.take_while(move |(key, _)| key.kind == Kind::HttpRoute && key.name.namespace == *namespace)
    });
    let affected =
        routes.filter(move |(_, route)| route.filters().iter().any(|filter| changed.contains(filter)));
    affected.map(|(key, _)| key.clone())
}
