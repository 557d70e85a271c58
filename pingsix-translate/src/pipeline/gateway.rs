//! A Gateway as an owner of data planes: its listeners, policies and routes of every kind.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::JudgedRoute;
use super::Translation;
use super::frame::{Frame, JudgedBefore};
use super::owner::{Owner, Served, Update, Updated};
use super::seen::{Difference, Identity, News, OfKind};
use super::shared::Shared;
use super::slots::Source;
use crate::attach::Listener;
use crate::backends::Backends;
use crate::lower::{Listened, Plane, RouteInput, Stale};
use crate::model::{Kind, ObjectKey, ObjectName, Options, Problem};
use crate::normalise::{
    Route, normalise_grpc_route, normalise_http_route, normalise_tcp_route, normalise_tls_route,
    normalise_udp_route,
};
use crate::quarantine::refuse_rules;
use crate::references::{References, labels_of};
use crate::snapshot::{
    BackendTlsPolicy, Gateway, GatewayClass, GrpcRoute, HttpRoute, ListenerSet, Referents, Snapshot,
    TcpRoute, TlsRoute, UdpRoute,
};
use crate::status::{Refusals, RouteVerdict, attached_to, judge_route};

/// A Gateway with its ListenerSets and policies.
#[derive(Debug)]
pub(super) struct OfGateway {
    seen: Seen,
    frame: Frame,
}

impl Owner for OfGateway {
    type Snapshot = Snapshot;

    fn referents(snapshot: &Snapshot) -> &Referents {
        &snapshot.referents
    }

    fn new(snapshot: &Snapshot, references: &References<'_>, options: &Options) -> Self {
        Self { seen: Seen::new(snapshot), frame: Frame::new(snapshot, references, options) }
    }

    fn take_routes(&mut self, snapshot: &Snapshot, mut take: impl FnMut(&Self, Route)) {
        let quarantine = &snapshot.referents.quarantine;
        let http = snapshot.http_routes.values().map(|route| normalise_http_route(route));
        let grpc = snapshot.grpc_routes.values().map(|route| normalise_grpc_route(route));
        let tls = snapshot.tls_routes.values().map(|route| normalise_tls_route(route));
        let tcp = snapshot.tcp_routes.values().map(|route| normalise_tcp_route(route));
        let udp = snapshot.udp_routes.values().map(|route| normalise_udp_route(route));
        for route in http.chain(grpc).chain(tls).chain(tcp).chain(udp) {
            take(self, refuse_rules(quarantine, route));
        }
    }

    fn planes(&self) -> &[Plane] {
        &self.frame.planes
    }

    fn listeners(&self) -> &[Listener] {
        &self.frame.listeners.all
    }

    fn listened(&self) -> Option<Listened<'_>> {
        Some(self.frame.listened())
    }

    fn is_refused(&self) -> bool {
        self.frame.refused.is_some()
    }

    fn attach(
        &self,
        route: Route,
        references: &References<'_>,
        backends_and_shared: (&mut Backends, &mut Shared),
        problems: &mut Vec<Problem>,
    ) -> RouteInput {
        self.frame.attach(route, references, backends_and_shared, problems)
    }

    fn judge(
        &self,
        index: usize,
        input: &RouteInput,
        refusals: &Refusals,
        shared: &mut Shared,
    ) -> (Option<RouteVerdict>, JudgedRoute) {
        let mut problems = Vec::new();
        let mut verdict = judge_route(index, input, refusals, &mut problems);
        verdict.parents = shared.parents.share(verdict.parents);
        let counted = attached_to(index, input, &verdict, refusals);
        (Some(verdict), JudgedRoute { problems, counted })
    }

    fn update(&mut self, mut update: Update<'_, Self>) -> Result<Updated, Stale> {
        let Update { snapshot, news, references, options, .. } = update;
        let objects = self.seen.update(snapshot, news);
        let is_reframed = objects.are_of_frame || concerns_frame(news, snapshot);
        if is_reframed {
            self.reframe(Frame::new(snapshot, references, options), &mut update)?;
        }
        self.find_routes(&mut update);
        let normalised = objects.routes.into_iter().map(|(key, route)| {
            let route = route.map(|route| refuse_rules(&snapshot.referents.quarantine, route));
            (Source::Object(Arc::new(key)), route.into_iter().collect())
        });
        Ok(Updated { routes: normalised.collect(), is_reframed })
    }

    fn targets(&self) -> impl Iterator<Item = &ObjectName> {
        self.frame.policies.targets()
    }

    fn translation(
        &mut self,
        snapshot: &Snapshot,
        references: &References<'_>,
        served: Served<'_>,
    ) -> Translation {
        let Served { data_planes, stream_planes, inputs, counts, verdicts, problems } = served;
        let judged = JudgedBefore { counts, routes: verdicts, problems };
        let verdicts = self.frame.judge(snapshot, references, inputs, judged);
        Translation {
            data_planes,
            stream_planes,
            infrastructure: self.frame.infrastructure.clone(),
            attached: self.frame.parameters.attached().cloned(),
            has_unusable_parameters: self.frame.has_unusable_parameters(),
            verdicts,
        }
    }
}

impl OfGateway {
    /// Puts another frame in the place of the one before. Routes for which policies demand something else are attached again.
    fn reframe(&mut self, frame: Frame, update: &mut Update<'_, Self>) -> Result<(), Stale> {
        if !frame.takes_routes_like(&self.frame) {
            return Err(Stale);
        }
        let Update { slots, planes, again, .. } = update;
        let services = frame.policies.changed(&self.frame.policies);
        again.extend(services.into_iter().flat_map(|service| slots.of_service(service)));
        for (lowered, (before, now)) in planes.iter_mut().zip(self.frame.planes.iter().zip(&frame.planes)) {
            lowered.change_certificates(&before.certificates, &now.certificates)?;
        }
        self.frame = frame;
        Ok(())
    }

    /// Finds the routes that are not other ones, but may be attached to something else, or be permitted to refer to something
    /// else. Attaching looks at the labels of a route's namespace, and permission at the ReferenceGrants in the namespaces
    /// referred to that are for the route's.
    fn find_routes(&self, update: &mut Update<'_, Self>) {
        let Update { news, slots, again, .. } = update;
        for namespace in &news.namespaces {
            let name = &namespace.name;
            let [before, now] =
                [&namespace.before, &namespace.now].map(|object| labels_of(name, object.as_deref()));
            if self.frame.listeners.tell_apart(name, &before, &now) {
                again.extend(slots.of_namespace(name));
            }
        }
        for grant in &news.reference_grants {
            let into = &grant.name.namespace;
            let from = [&grant.before, &grant.now].into_iter().flatten().flat_map(|grant| &grant.spec.from);
            let namespaces: BTreeSet<&str> = from.map(|from| from.namespace.as_str()).collect();
            for from in namespaces.into_iter().map(Arc::from) {
                again.extend(slots.crossing(&from, into));
            }
        }
    }
}

/// Whether something is different that listeners and policies are judged by. Of Namespaces, those of ListenerSets are.
fn concerns_frame(news: &News, snapshot: &Snapshot) -> bool {
    let has_listener_set = |namespace: &Arc<str>| {
        let first = ObjectName::new(namespace.clone(), "");
        let mut sets = snapshot.listener_sets.from_key(&first);
        sets.next().is_some_and(|(name, _)| name.namespace == *namespace)
    };
    news.of_proxies
        || news.of_config_maps
        || !news.secrets.is_empty()
        || !news.reference_grants.is_empty()
        || news.namespaces.iter().any(|namespace| has_listener_set(&namespace.name))
}

/// The objects of a snapshot, as they were the last time.
#[derive(Debug)]
struct Seen {
    gateway: Arc<Gateway>,
    class: Option<Arc<GatewayClass>>,
    listener_sets: OfKind<Arc<ListenerSet>>,
    http: OfKind<Arc<HttpRoute>>,
    grpc: OfKind<Arc<GrpcRoute>>,
    tls: OfKind<Arc<TlsRoute>>,
    tcp: OfKind<Arc<TcpRoute>>,
    udp: OfKind<Arc<UdpRoute>>,
    backend_tls_policies: OfKind<Arc<BackendTlsPolicy>>,
}

/// Those that are others now.
struct Changed {
    /// Whether the Gateway, its class, ListenerSets or policies are.
    are_of_frame: bool,
    /// Routes, normalised, or nothing for one that is gone.
    routes: Vec<(ObjectKey, Option<Route>)>,
}

impl Seen {
    fn new(snapshot: &Snapshot) -> Self {
        Self {
            gateway: snapshot.gateway.clone(),
            class: snapshot.class.clone(),
            listener_sets: OfKind::new(&snapshot.listener_sets),
            http: OfKind::new(&snapshot.http_routes),
            grpc: OfKind::new(&snapshot.grpc_routes),
            tls: OfKind::new(&snapshot.tls_routes),
            tcp: OfKind::new(&snapshot.tcp_routes),
            udp: OfKind::new(&snapshot.udp_routes),
            backend_tls_policies: OfKind::new(&snapshot.backend_tls_policies),
        }
    }

    /// What is different now; from then on that is what was seen.
    fn update(&mut self, snapshot: &Snapshot, news: &News) -> Changed {
        let gateway = std::mem::replace(&mut self.gateway, snapshot.gateway.clone());
        let class = std::mem::replace(&mut self.class, snapshot.class.clone());
        let others = [
            !gateway.is_same(&snapshot.gateway),
            !class.is_same(&snapshot.class),
            !self.listener_sets.update(&snapshot.listener_sets).is_empty(),
            !self.backend_tls_policies.update(&snapshot.backend_tls_policies).is_empty(),
        ];
        let mut routes =
            normalised(Kind::HttpRoute, self.http.update(&snapshot.http_routes), normalise_http_route);
        routes.extend(normalised(
            Kind::GrpcRoute,
            self.grpc.update(&snapshot.grpc_routes),
            normalise_grpc_route,
        ));
        routes.extend(normalised(Kind::TlsRoute, self.tls.update(&snapshot.tls_routes), normalise_tls_route));
        routes.extend(normalised(Kind::TcpRoute, self.tcp.update(&snapshot.tcp_routes), normalise_tcp_route));
        routes.extend(normalised(Kind::UdpRoute, self.udp.update(&snapshot.udp_routes), normalise_udp_route));
        for key @ ObjectKey { kind, name } in &news.quarantined {
            let http = || Some(normalise_http_route(snapshot.http_routes.get(name)?));
            let grpc = || Some(normalise_grpc_route(snapshot.grpc_routes.get(name)?));
            let is_new = routes.iter().all(|(known, _)| known != key);
            let route = match kind {
                Kind::HttpRoute if is_new => http(),
                Kind::GrpcRoute if is_new => grpc(),
                // Known to be different already, or no route.
                Kind::HttpRoute
                | Kind::GrpcRoute
                | Kind::GatewayClass
                | Kind::Gateway
                | Kind::ListenerSet
                | Kind::TlsRoute
                | Kind::TcpRoute
                | Kind::UdpRoute
                | Kind::BackendTlsPolicy
                | Kind::ReferenceGrant
                | Kind::IngressClass
                | Kind::Ingress
                | Kind::Service
                | Kind::EndpointSlice
                | Kind::Secret
                | Kind::ConfigMap
                | Kind::Namespace
                | Kind::PingsixProxy => None,
            };
            routes.extend(route.map(|route| (key.clone(), Some(route))));
        }
        Changed { are_of_frame: others.contains(&true), routes }
    }
}

fn normalised<K>(
    kind: Kind,
    differences: Vec<Difference<Arc<K>>>,
    normalise: impl Fn(&K) -> Route,
) -> Vec<(ObjectKey, Option<Route>)> {
    let routes = differences
        .into_iter()
        .map(|Difference { name, now, .. }| (ObjectKey { kind, name }, now.map(|object| normalise(&object))));
    routes.collect()
}
