//! The part of a Gateway that depends neither on routes nor on their references: listeners, data planes, policies.

use std::sync::Arc;

use super::current_problems::CurrentProblems;
use super::infrastructure;
use crate::attach::{
    Attachment, Listener, ListenerSupport, Listeners, MANAGED_PORTS, Protocol, judge_listeners,
};
use crate::backends::{AppProtocol, Backends, Target};
use crate::infrastructure::Infrastructure;
use crate::lower::{Plane, RouteInput, planes};
use crate::model::{
    Capability, Executors, FieldPath, Kind, Layout, ObjectKey, Options, Problem, Reason, Refusal, Severity,
    Traffic,
};
use crate::parameters::{self, Parameters, PlaneSettings};
use crate::pingsix::process::h2c_obstacle;
use crate::policy::{AnnotationPolicies, Policies};
use crate::references::References;
use crate::shared_map::SharedMap;
use crate::snapshot::{Snapshot, key_of};
use crate::status::{
    GatewayState, JudgedPolicies, RouteVerdict, Verdicts, judge_gateway, judge_listener_sets, refuse_gateway,
};

/// The listeners, data planes and policies that routes are attached with.
#[derive(Debug)]
pub(super) struct GatewayContext {
    pub(super) gateway: Arc<ObjectKey>,
    pub(super) listeners: Listeners,
    pub(super) planes: Vec<Plane>,
    pub(super) policies: Policies,
    pub(super) parameters: Parameters,
    /// The reason for which the Gateway serves nothing at all.
    pub(super) refused: Option<Refusal>,
    pub(super) infrastructure: Option<Arc<Infrastructure>>,
    /// The settings that the Gateway asks for and does not get.
    limitations: Vec<Refusal>,
    layout: Layout,
    /// Whether PingSIX accepts HTTP/2 without TLS on a port of the Gateway.
    accepts_h2c: bool,
    pub(super) executors: Executors,
    pub(super) settings: PlaneSettings,
    problems: Vec<Problem>,
}

impl GatewayContext {
    pub(super) fn new(snapshot: &Snapshot, references: &References<'_>, options: &Options) -> Self {
        let gateway = Arc::new(key_of(Kind::Gateway, &snapshot.gateway.metadata));
        let mut problems = Vec::new();
        let proxies = &snapshot.referents.proxies;
        let (parameters, refused, limitations) =
            match parameters::of_gateway(&snapshot.gateway, snapshot.class.as_deref(), proxies, options) {
                Ok((parameters, limitations)) => (parameters, refuse_gateway(&snapshot.gateway), limitations),
                Err(refusal) => (Parameters::Unset, Some(refusal), Vec::new()),
            };
        let max_ports = if parameters.managed().is_some() { MANAGED_PORTS } else { usize::MAX };
        let executors = parameters.executors(options);
        let support = ListenerSupport { executors, max_ports };
        let mut listeners = judge_listeners(snapshot, &gateway, references, support, &mut problems);
        let layout = parameters.layout(options);
        let settings =
            PlaneSettings::of_gateway(&snapshot.gateway, snapshot.class.as_deref(), proxies, options);
        let planes = planes(&gateway.name, &listeners.all, layout, &settings);
        for (listener, limitation) in planes.iter().flat_map(|plane| &plane.certificates.limitations) {
            listeners.all[*listener].limitations.push(limitation.clone());
        }
        for listener in &listeners.all {
            problems.extend(listener.limitations.iter().map(|limitation| limitation.of(&listener.owner)));
        }
        let served = listeners.all.iter().filter(|listener| listener.is_served());
        let has_tls = |listener: &&Listener| listener.protocol == Some(Protocol::Https);
        // With a port for itself, a process has no TLS beside plaintext.
        let accepts_h2c = layout == Layout::PerPort || h2c_obstacle(served, has_tls).is_none();
        let mut policies = Policies::new(&snapshot.policies, &AnnotationPolicies::new(), references);
        if !settings.shared_cache && listeners.admit_others(&gateway.name.namespace) {
            policies.forbid_caches();
        }
        let infrastructure = match (&parameters, &refused) {
            (Parameters::Managed(managed), None) => Some(Arc::new(infrastructure::of_gateway(
                &gateway,
                &snapshot.gateway,
                &listeners.all,
                managed,
            ))),
            (Parameters::Managed(_), Some(_)) | (Parameters::Unset | Parameters::Attached(_), _) => None,
        };
        Self {
            gateway,
            listeners,
            planes,
            policies,
            parameters,
            refused,
            infrastructure,
            limitations,
            layout,
            accepts_h2c,
            executors,
            settings,
            problems,
        }
    }

    /// Whether the Gateway serves nothing because of its parameters.
    pub(super) fn has_unusable_parameters(&self) -> bool {
        self.refused.as_ref().is_some_and(|refusal| refusal.reason == Reason::InvalidParameters)
    }

    /// Whether another context attaches, places and judges routes alike. Policies ([`Policies::changed`]) and
    /// ListenerSets that the Gateway does not allow ([`Listeners::excluded`]) may differ.
    pub(super) fn takes_routes_like(&self, other: &Self) -> bool {
        self.gateway == other.gateway
            && self.executors == other.executors
            && self.listeners.attach_like(&other.listeners)
            && self.planes.len() == other.planes.len()
            && self.planes.iter().zip(&other.planes).all(|(one, other)| one.places_like(other))
    }

    /// The warning about HTTP/2 without TLS, which a route needs and PingSIX may not accept ([`h2c_obstacle`]).
    pub(super) fn closed_connections(&self, input: &RouteInput, backends: &Backends) -> Option<Problem> {
        let route = &input.route;
        let is_h2c = |target: &(Target, u32)| match target.0 {
            Target::Backend(index) => {
                let backend = backends.get(index);
                backend.protocol == AppProtocol::H2c && backend.key.usage.tls.is_none()
            }
            Target::Status(_) | Target::Redirect => false,
        };
        let needs_h2c = || input.rules.iter().flat_map(|rule| &rule.action.targets).any(is_h2c);
        if self.accepts_h2c || !(route.traffic == Traffic::Grpc || needs_h2c()) {
            return None;
        }
        let plaintext = |index: &usize| {
            let listener = &self.listeners.all[*index];
            (listener.is_served() && listener.protocol == Some(Protocol::Http)).then_some(listener.port)
        };
        let (parent, port) =
            input.attached.parents.iter().find_map(|Attachment { parent_ref, outcome }| {
                let port = outcome.as_ref().ok()?.iter().find_map(plaintext)?;
                Some((parent_ref.index, port))
            })?;
        let served = match route.traffic {
            Traffic::Grpc => "calls over TLS are served",
            Traffic::Http | Traffic::Tcp | Traffic::Tls | Traffic::Udp => {
                "HTTP/1.1, and HTTP/2 over TLS, are served"
            }
        };
        Some(Problem {
            object: route.key.clone(),
            field: FieldPath::new("spec").child("parentRefs").index(parent),
            severity: Severity::Warning,
            reason: Capability::PlaintextHttp2.row().reason,
            message: Capability::PlaintextHttp2.message(&[&port.to_string(), served]),
        })
    }

    /// Verdicts on everything but routes and policies, and all problems. `counts` has the number of accepted routes of each
    /// listener. `problems` are those of data planes.
    pub(super) fn judge(
        &self,
        snapshot: &Snapshot,
        references: &References<'_>,
        (counts, routes): (&[i32], SharedMap<Arc<ObjectKey>, RouteVerdict>),
        policies: &JudgedPolicies,
        (current, mut problems): (&mut CurrentProblems, Vec<Problem>),
    ) -> Verdicts {
        let JudgedPolicies { verdicts: of_policies, problems: problems_of_policies, affected } = policies;
        problems.extend(problems_of_policies.iter().cloned());
        let state = GatewayState {
            listeners: &self.listeners,
            attached: counts,
            layout: self.layout,
            refused: self.refused.as_ref(),
            limitations: &self.limitations,
        };
        let mut listener_sets = judge_listener_sets(&state);
        let mut gateway = judge_gateway(&snapshot.gateway, &state, &listener_sets, references, &mut problems);
        affected.mark(&self.gateway, gateway.generation, (&mut gateway.conditions, &mut gateway.listeners));
        for (key, set) in &mut listener_sets {
            affected.mark(key, set.generation, (&mut set.conditions, &mut set.listeners));
        }
        problems.extend(self.problems.iter().cloned());
        current.replace_recomputed(problems);
        Verdicts {
            gateway: Some(gateway),
            listener_sets,
            routes,
            policies: of_policies.clone(),
            ingresses: SharedMap::new(),
            problems: current.all().clone(),
        }
    }
}
