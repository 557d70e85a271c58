//! The kind-neutral shape of a route.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{BackendRef, Filters, Match, Mirror, TimeoutsAndRetries};
use crate::model::{Age, FieldPath, Hostname, ObjectKey, ObjectName, Section, compare_age, field};
use crate::model::{Capability, Executors, ParentRef, Refusal, Traffic};
use thin_vec::ThinVec;

/// A route of any kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Route {
    pub(crate) key: Arc<ObjectKey>,
    /// The part of the object.
    pub(crate) part: Part,
    pub(crate) traffic: Traffic,
    pub(crate) generation: i64,
    pub(crate) age: Age,
    pub(crate) parent_refs: Arc<[ParentRef]>,
    pub(crate) hostnames: Hostnames,
    pub(crate) rules: Vec<Rule>,
    /// The only port of an Ingress that serves the route, as an index of [`INGRESS_PORTS`](crate::infrastructure::INGRESS_PORTS).
    pub(crate) ingress_port: Option<u8>,
    /// The number of the alias of an Ingress that is the hostname; 0 without an alias.
    pub(crate) alias: u8,
    /// Refusals besides rules: hostnames.
    pub(crate) refusals: ThinVec<Refusal>,
    /// Limits besides rules.
    pub(crate) limitations: ThinVec<Refusal>,
}

/// The part of an object that a route implements. An Ingress becomes several routes, because each of its rules has its
/// own hostname.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// The whole object; `Rule::index` counts `spec.rules`.
    Whole,
    /// An entry of `spec.rules` of an Ingress; `Rule::index` counts its `http.paths`.
    IngressRule(usize),
    /// An entry of `spec.rules` of an Ingress without paths, whose requests go to `spec.defaultBackend`.
    IngressHost(usize),
    /// The challenges of ACME among the paths of an entry of `spec.rules` of an Ingress, which annotations neither redirect
    /// to HTTPS nor protect by credentials; `Rule::index` counts its `http.paths`.
    IngressChallenges(usize),
    /// The redirect of the root of an entry of `spec.rules` of an Ingress, by an annotation.
    IngressRoot(usize),
    /// The redirect from another host to the one of an entry of `spec.rules` of an Ingress, by an annotation.
    HostRedirect(usize),
    /// `spec.defaultBackend` of an Ingress.
    DefaultBackend,
    /// 404 for requests of a host without a matching path, charged to the oldest entry of `spec.rules` for the host.
    HostFallback(usize),
    /// `spec.defaultBackend` of an Ingress, for requests of a host without a matching path.
    HostDefault,
}

impl Part {
    /// The order of the routes of one object: entries of `spec.rules` in turn, the default backend, the fallback routes of
    /// hosts.
    const fn order(self) -> (u8, usize) {
        match self {
            Self::Whole => (0, 0),
            Self::IngressRoot(entry) | Self::HostRedirect(entry) => (0, entry),
            Self::IngressRule(entry) | Self::IngressChallenges(entry) | Self::IngressHost(entry) => {
                (1, entry)
            }
            Self::DefaultBackend => (2, 0),
            Self::HostFallback(_) | Self::HostDefault => (3, 0),
        }
    }

    /// The section of the object that a rule is.
    pub(crate) const fn section_of_rule(self, rule: &Rule) -> Section {
        match self {
            Self::Whole => Section::Rule(rule.index),
            Self::IngressRule(entry) | Self::IngressChallenges(entry) => {
                Section::Match { rule: entry, index: rule.index }
            }
            Self::IngressHost(entry)
            | Self::IngressRoot(entry)
            | Self::HostRedirect(entry)
            | Self::HostFallback(entry) => Section::Rule(entry),
            Self::DefaultBackend | Self::HostDefault => Section::DefaultBackend,
        }
    }

    /// The section of the object that a match of a rule is.
    pub(crate) const fn section(self, rule: &Rule, matched: &Match) -> Section {
        if matches!(self, Self::Whole) {
            return Section::Match { rule: rule.index, index: matched.index };
        }
        self.section_of_rule(rule)
    }
}

impl Route {
    /// A route of an Ingress.
    pub(super) fn of_ingress(
        (key, generation, age): (&Arc<ObjectKey>, i64, Age),
        part: Part,
        hostnames: Hostnames,
        rules: Vec<Rule>,
    ) -> Self {
        Self {
            key: key.clone(),
            part,
            traffic: Traffic::Http,
            generation,
            age,
            parent_refs: Arc::default(),
            hostnames,
            rules,
            ingress_port: None,
            alias: 0,
            refusals: ThinVec::default(),
            limitations: ThinVec::default(),
        }
    }

    /// The route on data planes with these executors: what they serve is neither refused nor limited for its lack.
    pub(crate) fn without_served_lacks(mut self, executors: Executors) -> Self {
        let is_served = |capability: Option<Capability>| {
            capability.is_some_and(|capability| capability.is_served(executors))
        };
        for rule in &mut self.rules {
            rule.refusals.retain(|refusal| !is_served(refusal.capability));
            rule.limitations.retain(|limitation| !is_served(limitation.capability));
        }
        self
    }

    /// The place of the route among those of one object: no other has the same.
    pub(crate) const fn place(&self) -> (Part, Option<u8>, u8) {
        (self.part, self.ingress_port, self.alias)
    }

    /// The order of two routes in a conflict: by the age of their objects, then by their order in the object.
    pub(crate) fn compare_age(&self, other: &Self) -> Ordering {
        compare_age((self.age, &self.key), (other.age, &other.key))
            .then_with(|| self.part.order().cmp(&other.part.order()))
            .then_with(|| self.hostnames.cmp(&other.hostnames))
            .then_with(|| self.place().cmp(&other.place()))
    }

    /// The field of a rule.
    pub(crate) fn field_of(&self, rule: &Rule) -> FieldPath {
        match self.part {
            Part::Whole => field::rule(rule.index),
            Part::IngressRule(entry) | Part::IngressChallenges(entry) => {
                field::ingress_path(entry, rule.index)
            }
            Part::IngressHost(entry)
            | Part::IngressRoot(entry)
            | Part::HostRedirect(entry)
            | Part::HostFallback(entry) => field::rule(entry),
            Part::DefaultBackend | Part::HostDefault => field::default_backend(),
        }
    }

    /// The field of a backend of a rule.
    pub(crate) fn field_of_backend(&self, rule: &Rule, backend: &BackendRef) -> FieldPath {
        match self.part {
            Part::Whole => field::rule(rule.index).child("backendRefs").index(backend.index),
            Part::IngressRule(_) | Part::IngressChallenges(_) => {
                self.field_of(rule).child("backend").child("service")
            }
            Part::IngressHost(_)
            | Part::IngressRoot(_)
            | Part::HostRedirect(_)
            | Part::DefaultBackend
            | Part::HostFallback(_)
            | Part::HostDefault => field::default_backend().child("service"),
        }
    }
}

/// The hostnames of a route. A route whose names are all unusable is not a route for every name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hostnames {
    /// The route has none.
    Any,
    /// The usable ones of those given, sorted, without repetitions.
    Named(Box<[Hostname]>),
}

/// One rule of a route. By default, it has no matches and no backends.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rule {
    /// The index into `spec.rules`, or in a [`Part`].
    pub(crate) index: usize,
    /// `name`, to which policies may refer.
    pub(crate) name: Option<Box<str>>,
    /// The expressible matches. An inexpressible match is missing here and refused below.
    ///
    /// Shared, because thousands of rules have the same ones.
    pub(crate) matches: Arc<[Match]>,
    /// The destinations of matching requests.
    pub(crate) backends: Box<[BackendRef]>,
    /// The mirrors of refused filters: their references are checked nevertheless.
    pub(crate) mirrors: ThinVec<Mirror>,
    /// The filters; `None` without any.
    pub(crate) filters: Option<Arc<Filters>>,
    /// The Host for backends; `None` is the client's.
    pub(crate) host: Option<Hostname>,
    pub(crate) timeouts: TimeoutsAndRetries,
    /// The settings of backends by annotations of an Ingress. In a box, because hardly any rule has them.
    pub(crate) backend_settings: Option<Box<BackendSettings>>,
    /// The limitations of the served parts.
    pub(crate) limitations: ThinVec<Refusal>,
    /// The refusals. With any, the rule's matches answer [`Traffic::failure`].
    pub(crate) refusals: ThinVec<Refusal>,
    pub(crate) role: RuleRole,
    /// The matches that stand for inexpressible ones. If policies protect the rule, they answer [`Traffic::failure`].
    pub(crate) closing: ThinVec<Match>,
    /// References to filters that lead nowhere. If there is any, the matches of the rule answer [`Traffic::failure`].
    pub(crate) unresolved: ThinVec<Refusal>,
}

/// The origin of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum RuleRole {
    #[default]
    Written,
    /// It refuses requests for these Services because of an annotation, which cannot be honoured or allows other methods.
    Refusing(ThinVec<ObjectName>),
    /// It stands for the inexpressible matches of a protected rule, of which it has the index.
    Closing,
}

impl Rule {
    /// Whether nothing is wrong with the rule by itself.
    pub(crate) fn is_honoured(&self) -> bool {
        self.refusals.is_empty() && self.unresolved.is_empty()
    }
}

/// The settings of the backends of a rule by annotations of an Ingress.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BackendSettings {
    /// The protocol; `None` is the one of the Service's port.
    pub(crate) protocol: Option<BackendProtocol>,
    /// Whether requests go to the cluster IPs of Services instead of their endpoints.
    pub(crate) by_cluster_ip: bool,
    /// The Service that answers in place of one without endpoints, by its first port.
    pub(crate) default_backend: Option<ObjectName>,
}

/// The protocol of the backends of a rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BackendProtocol {
    /// gRPC in plaintext.
    Grpc,
    /// TLS, with the name to send and to verify.
    Tls { traffic: Traffic, name: Hostname },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixture::object;
    use crate::normalise::{Extensions, normalise_route};
    use crate::snapshot::{AnyRoute, HttpRoute};

    #[test]
    fn refusals_for_capabilities_that_an_executor_serves_are_removed() {
        let route = object::<HttpRoute>(json!({
            "metadata": {"namespace": "infra", "name": "web"},
            "spec": {"rules": [{
                "filters": [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "copy", "port": 80}}}],
                "timeouts": {"request": "10s"},
                "backendRefs": [{"name": "web", "port": 80, "weight": -1}],
            }]},
        }));
        let mut route = normalise_route(&AnyRoute::from(route), &Extensions::default());
        let lacks = |route: &Route| -> Vec<Option<Capability>> {
            let rule = &route.rules[0];
            let refused = rule.refusals.iter().map(|refusal| refusal.capability);
            refused.chain(rule.limitations.iter().map(|limitation| limitation.capability)).collect()
        };
        let (invalid, mirror, timeout) =
            (None, Some(Capability::RequestMirror), Some(Capability::TotalTimeout));
        assert_eq!(lacks(&route), [invalid, mirror, timeout]);
        assert_eq!(route.rules[0].mirrors.len(), 1, "the value stays");
        route.rules[0].refusals.push(Capability::ChosenAnswer.refuse(FieldPath::new("spec")));
        route.rules[0].limitations.push(Capability::MisdirectedRequests.limit(FieldPath::new("spec")));
        let executors = Executors { responder: true, ..Executors::default() };
        let unserved = route.clone().without_served_lacks(Executors::default());
        assert_eq!(lacks(&unserved).len(), 5);
        assert_eq!(lacks(&route.without_served_lacks(executors)), [invalid, mirror, timeout]);
    }
}
