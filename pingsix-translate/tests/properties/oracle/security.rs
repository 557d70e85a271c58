//! Inherited policies: which of them count for a rule (GEP-713), and the demands that SecurityPolicies make together.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::Value;

use super::super::generate::schema::has_mistake;
use super::filter::{self, Changes, Cors};
use super::world::{Grant, Metadata, Name, Owner};
use super::{Answer, World};
use crate::effect::{Headers, backend_answer};
use crate::probe::Probe;
use crate::protection::{Addresses, Claims, Credential, Place, Protection, in_both_notations};

/// A policy as written.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Policy {
    pub(crate) metadata: Metadata,
    pub(super) spec: Value,
}

/// The fields that count for themselves, each before those that refine it.
const FIELDS: [&str; 5] = ["authentication", "authorization", "clientIP", "cors", "csrf"];

const AUTHENTICATIONS: [&str; 4] = ["apiKeyAuth", "basicAuth", "jwt", "anonymous"];

/// The policies that count for a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Inherited {
    /// Contributors from the widest target to the narrowest. Rules with different ones cannot share a list.
    policies: Vec<Name>,
    /// The same of TrafficPolicies.
    pub(super) traffic_policies: Vec<Name>,
    /// Changes of responses that no filter may replace.
    pub(super) headers: Option<Changes>,
    pub(super) cors: Option<Cors>,
    /// Whether no filter may replace `cors`.
    overrides_cors: bool,
    pub(super) protection: Protection,
}

/// The policies of an Ingress.
pub(crate) struct OfIngress {
    pub(crate) protection: Protection,
    headers: Option<Changes>,
}

impl OfIngress {
    /// The headers that a client gets.
    pub(crate) fn response(&self) -> Headers {
        let mut headers = backend_answer();
        if let Some(changes) = &self.headers {
            changes.apply(&mut headers);
        }
        headers
    }
}

/// A policy that counts and cannot be honoured, or policies that depend on the listener.
pub(super) struct Unhonoured;

/// A target: kind, object and section.
pub(super) type Target<'w> = (&'static str, Name, Option<&'w str>);

impl World {
    /// The answer of a rule, and its policies if a backend gets the request; `None` if these cannot be honoured.
    pub(super) fn answer_under_policies(
        &self,
        listeners: &BTreeSet<usize>,
        (route_index, rule_index): (usize, usize),
        request: &Probe,
    ) -> (Answer, Option<Inherited>) {
        let route = &self.routes[route_index];
        let answer = self.answer_of(route, &route.spec.rules[rule_index], request);
        if !answer.reaches_backend() {
            return (answer, Some(Inherited::default()));
        }
        let filters = filter::read(&route.spec.rules[rule_index]).filters;
        let has_changes = filters.response != Changes::default();
        let replaces = |inherited: &Inherited| {
            (filters.cors.is_some() && inherited.overrides_cors)
                || (has_changes && inherited.headers.is_some())
        };
        match self.inherited(listeners, route_index, rule_index) {
            Ok(inherited) if !replaces(&inherited) => (answer, Some(inherited)),
            Ok(_) | Err(Unhonoured) => (Answer::status(route.kind.failure()), None),
        }
    }

    /// The policies for requests that may come in by any of some listeners, which have the route.
    pub(super) fn inherited(
        &self,
        listeners: &BTreeSet<usize>,
        route: usize,
        rule: usize,
    ) -> Result<Inherited, Unhonoured> {
        let mut all = listeners.iter().map(|&listener| self.inherited_by(listener, route, rule));
        let Some(first) = all.next() else { return Ok(Inherited::default()) };
        let first = first?;
        for other in all {
            if !other?.has_policies_of(&first) {
                return Err(Unhonoured);
            }
        }
        Ok(first)
    }

    fn inherited_by(&self, listener: usize, route: usize, rule: usize) -> Result<Inherited, Unhonoured> {
        self.inherited_at(&self.levels(listener, route, rule))
    }

    fn inherited_at(&self, levels: &[Target<'_>]) -> Result<Inherited, Unhonoured> {
        let mut inherited = self.secured_by(levels)?;
        self.treat(levels, &mut inherited)?;
        let Protection { addresses, treatment, .. } = &mut inherited.protection;
        if addresses.as_ref().is_some_and(|addresses| !addresses.proxies.is_empty()) {
            treatment.id = None;
        }
        Ok(inherited)
    }

    /// Whether policies protect a rule, and whether they do for other reasons than a listener's.
    pub(super) fn protection_of(&self, route: usize, rule: usize) -> (bool, bool) {
        let attached = (0..self.listeners.len()).filter(|listener| self.is_attached(route, *listener));
        let (mut is_protected, mut is_narrow) = (false, false);
        for listener in attached {
            let levels = self.levels(listener, route, rule);
            let is_wide = |level: &&Target<'_>| ["Gateway", "ListenerSet"].contains(&level.0);
            let wide: Vec<Target<'_>> = levels.iter().filter(is_wide).cloned().collect();
            let own = self.protectors(&levels);
            is_protected |= own.as_ref().is_ok_and(|own| !own.is_empty()) || own.is_err();
            is_narrow |= match (own, self.protectors(&wide)) {
                (_, Err(Unhonoured)) => false,
                (Err(Unhonoured), Ok(_)) => true,
                (Ok(own), Ok(wide)) => !own.is_subset(&wide),
            };
        }
        (is_protected, is_narrow)
    }

    /// Whether a rule lets requests to a backend without all policies that protect another one.
    pub(super) fn is_open_beside(&self, (route, rule): (usize, usize), protected: (usize, usize)) -> bool {
        let of = |listener: usize, (route, rule): (usize, usize)| {
            if !self.is_attached(route, listener) {
                return Ok(BTreeSet::new());
            }
            self.protectors(&self.levels(listener, route, rule))
        };
        let attached = (0..self.listeners.len()).filter(|listener| self.is_attached(protected.0, *listener));
        let mut protections = attached.map(|listener| (of(listener, protected), of(listener, (route, rule))));
        protections.any(|both| match both {
            (_, Err(Unhonoured)) => false,
            (Err(Unhonoured), Ok(_)) => true,
            (Ok(protected), Ok(own)) => !protected.is_subset(&own),
        })
    }

    /// The policies that keep requests out.
    fn protectors(&self, levels: &[Target<'_>]) -> Result<BTreeSet<Name>, Unhonoured> {
        let chosen = self.chosen(levels)?;
        let protects = |(field, (_, policy)): &(&str, (usize, &Policy))| match *field {
            "authentication" => policy.spec.get("anonymous").is_none(),
            field => field == "authorization",
        };
        Ok(chosen.into_iter().filter(protects).map(|(_, (_, policy))| policy.metadata.key()).collect())
    }

    /// The policy that counts for each field, with its level.
    fn chosen(&self, levels: &[Target<'_>]) -> Result<BTreeMap<&'static str, (usize, &Policy)>, Unhonoured> {
        let counting: Vec<Option<&Policy>> =
            levels.iter().map(|level| oldest_for(&self.security_policies, level)).collect();
        if counting.iter().flatten().any(|policy| self.demands(policy).is_none()) {
            return Err(Unhonoured);
        }
        // By field: the level and the policy.
        let mut chosen: BTreeMap<&str, (usize, &Policy)> = BTreeMap::new();
        for field in FIELDS {
            let last = match chosen.get("authorization").filter(|_| field == "clientIP") {
                Some((level, policy)) if policy.overrides() => *level,
                _ => counting.len(),
            };
            // From the narrowest to the widest.
            for (level, policy) in counting.iter().enumerate().rev() {
                let Some(policy) = policy.filter(|policy| policy.sets(field) && level <= last) else {
                    continue;
                };
                if policy.overrides() || !chosen.contains_key(field) {
                    chosen.insert(field, (level, policy));
                }
            }
        }
        Ok(chosen)
    }

    fn secured_by(&self, levels: &[Target<'_>]) -> Result<Inherited, Unhonoured> {
        let chosen = self.chosen(levels)?;
        let has_demand = chosen.iter().any(|(field, (_, policy))| match *field {
            "clientIP" => false,
            "authentication" => policy.spec.get("anonymous").is_none(),
            _ => true,
        });
        if !has_demand {
            return Ok(Inherited::default());
        }
        let policies = contributors(chosen.values().copied());
        let of = |field: &str| self.demands(chosen.get(field)?.1);
        let mut inherited = Inherited { policies, ..Inherited::default() };
        inherited.overrides_cors = chosen.get("cors").is_some_and(|(_, policy)| policy.overrides());
        inherited.cors = of("cors").and_then(|of| of.cors);
        let protection = &mut inherited.protection;
        protection.credential = of("authentication").and_then(|of| of.protection.credential);
        protection.csrf = of("csrf").and_then(|of| of.protection.csrf);
        protection.addresses = of("authorization").and_then(|of| of.protection.addresses);
        if let Some(addresses) = &mut protection.addresses {
            addresses.proxies =
                chosen.get("clientIP").map_or_else(BTreeSet::new, |(_, policy)| policy.proxies());
        }
        Ok(inherited)
    }

    /// Whether a policy targets the Gateway, a listener or a route that decides about requests with the host, path and
    /// method of this one.
    pub(crate) fn is_concerned(
        &self,
        (kind, policy): (&str, &Name),
        port: Option<u16>,
        request: &Probe,
    ) -> bool {
        let Some(policy) = self.policies_of(kind).iter().find(|other| other.metadata.key() == *policy) else {
            return false;
        };
        let host = request.routing_host();
        let listeners = self.listeners_for(port, host.as_deref());
        let is_of_listener = |&listener: &usize| {
            let owner = self.listeners[listener].owner;
            let kind = if owner == Owner::Gateway { "Gateway" } else { "ListenerSet" };
            policy.targets_object(kind, &self.metadata_of(owner).key())
        };
        // A preflight that no rule takes is for the method that the script asks for.
        let method = request.header("access-control-request-method").unwrap_or(&request.method).to_owned();
        let asked = Probe { method, ..request.clone() };
        let mut rows = self.rows(&listeners, host.as_deref()).into_iter();
        policy.targets_object("Gateway", &self.gateway.metadata.key())
            || listeners.iter().any(is_of_listener)
            || rows.any(|row| {
                let route = &self.routes[row.route];
                policy.targets_object(route.kind.as_str(), &route.metadata.key())
                    && (row.stands_for(request)
                        || row.stands_for(&asked)
                        // Protection of a rule also answers other spellings of its path.
                        || row.place_of_guard(request).is_some())
            })
    }

    /// The targets that hold for a rule, from the widest to the narrowest.
    fn levels(&self, listener: usize, route: usize, rule: usize) -> Vec<Target<'_>> {
        let listener = &self.listeners[listener];
        let owner = self.metadata_of(listener.owner).key();
        let mut levels: Vec<Target<'_>> = vec![("Gateway", self.gateway.metadata.key(), None)];
        let owner_kind = match listener.owner {
            Owner::Gateway => "Gateway",
            Owner::Set(_) => {
                levels.push(("ListenerSet", owner.clone(), None));
                "ListenerSet"
            }
        };
        levels.push((owner_kind, owner, Some(&listener.name)));
        let route = &self.routes[route];
        levels.push((route.kind.as_str(), route.metadata.key(), None));
        if let Some(name) = &route.spec.rules[rule].name {
            levels.push((route.kind.as_str(), route.metadata.key(), Some(name)));
        }
        levels
    }

    /// The policies of requests that an Ingress takes; `None` if these cannot be honoured.
    pub(crate) fn policies_of_ingress(&self, ingress: &Name) -> Option<OfIngress> {
        let Inherited { protection, headers, .. } =
            self.inherited_at(&[("Ingress", ingress.clone(), None)]).ok()?;
        Some(OfIngress { protection, headers })
    }

    /// Whether each policy with one of these Ingresses as a target is honoured and counts for all of them.
    pub(crate) fn verdicts_on_policies(&self, ingresses: &BTreeSet<Name>) -> BTreeMap<(String, Name), bool> {
        let mut verdicts = BTreeMap::new();
        for kind in ["SecurityPolicy", "TrafficPolicy"] {
            for policy in self.policies_of(kind) {
                let of_policy = ingresses.iter().filter(|ingress| policy.targets_object("Ingress", ingress));
                let counts: Vec<bool> = of_policy
                    .map(|ingress| {
                        let oldest = oldest_for(self.policies_of(kind), &("Ingress", ingress.clone(), None));
                        oldest.is_some_and(|oldest| oldest.metadata.key() == policy.metadata.key())
                    })
                    .collect();
                if !counts.is_empty() {
                    let is_valid = if kind == "SecurityPolicy" {
                        self.demands(policy).is_some()
                    } else {
                        super::traffic::is_valid(policy)
                    };
                    let is_accepted = counts.into_iter().all(|counts| counts) && is_valid;
                    verdicts.insert((kind.to_owned(), policy.metadata.key()), is_accepted);
                }
            }
        }
        verdicts
    }

    fn policies_of(&self, kind: &str) -> &[Policy] {
        if kind == "SecurityPolicy" { &self.security_policies } else { &self.traffic_policies }
    }

    /// The demands of a policy by itself; `None` if they cannot all be met.
    fn demands(&self, policy: &Policy) -> Option<Inherited> {
        let spec = &policy.spec;
        let known = ["targetRefs", "strategy", "authorization", "clientIP", "cors", "csrf"];
        let is_known =
            |field: &String| known.contains(&field.as_str()) || AUTHENTICATIONS.contains(&field.as_str());
        let authentications = AUTHENTICATIONS.iter().filter(|field| spec.get(field).is_some()).count();
        let overrides_nothing = policy.overrides() && spec.get("anonymous").is_some();
        let mut fields = spec.as_object().unwrap().keys();
        if !fields.all(is_known)
            || authentications > 1
            || has_mistake(spec)
            || !policy.has_targets_of_one_class()
            || overrides_nothing
        {
            return None;
        }
        let mut demands = Inherited::default();
        let protection = &mut demands.protection;
        if let Some(auth) = spec.get("apiKeyAuth") {
            let mut keys = BTreeSet::new();
            for reference in auth["credentialRefs"].as_array().unwrap() {
                let entries = self.entries(policy, reference)?;
                if entries.is_empty() {
                    return None;
                }
                keys.extend(entries.into_values());
            }
            protection.credential = Some(Credential::Key { keys, place: policy.place(auth, "apikey") });
        }
        if let Some(auth) = spec.get("basicAuth") {
            let mut entries = self.entries(policy, &auth["secretRef"])?;
            if self.credential(policy, &auth["secretRef"])?["type"] != "kubernetes.io/basic-auth" {
                return None;
            }
            let (name, password) = (entries.remove("username")?, entries.remove("password")?);
            let is_hidden = policy.hides(auth);
            protection.credential = Some(Credential::User { name, password, is_hidden });
        }
        if let Some(jwt) = spec.get("jwt") {
            let algorithm = jwt["algorithm"].as_str().unwrap().to_owned();
            if !["HS256", "HS512"].contains(&algorithm.as_str()) {
                return None;
            }
            let secret = self.entries(policy, jwt.get("secretRef")?)?.remove("key")?;
            let text = |field: &str| jwt[field].as_str().map(str::to_owned);
            let mut claims = Claims {
                issuer: text("issuer"),
                audience: text("audience"),
                required: texts(&jwt["requiredClaims"]),
                leeway: jwt.get("clockSkew").map_or(Some(0), Value::as_u64)?,
            };
            if claims.required.contains("role") {
                return None;
            }
            claims.required.extend(claims.issuer.iter().map(|_| "iss".to_owned()));
            claims.required.extend(claims.audience.iter().map(|_| "aud".to_owned()));
            let place = policy.place(jwt, "authorization");
            protection.credential = Some(Credential::Token { secret, algorithm, claims, place });
        }
        if let Some(authorization) = spec.get("authorization") {
            if authorization.as_object()?.is_empty() {
                return None;
            }
            let (allow, deny) = (networks(&authorization["allow"]), networks(&authorization["deny"]));
            protection.addresses = Some(Addresses { allow, deny, ..Addresses::default() });
        }
        let networks =
            protection.addresses.iter().flat_map(|addresses| addresses.allow.iter().chain(&addresses.deny));
        // The generator's only network with bits of a host.
        if networks.chain(&policy.proxies()).any(|network| network == "10.0.0.1/8") {
            return None;
        }
        if let Some(csrf) = spec.get("csrf") {
            protection.csrf = Some(self.entries(policy, &csrf["secretRef"])?.remove("key")?);
        }
        if let Some(cors) = spec.get("cors") {
            demands.cors = Some(Cors::read(cors, true)?);
        }
        Some(demands)
    }

    /// The Secret of a reference that the policy may use.
    fn credential(&self, policy: &Policy, reference: &Value) -> Option<&Value> {
        let own = &policy.metadata.namespace;
        let namespace = reference["namespace"].as_str().unwrap_or(own).to_owned();
        let name = reference["name"].as_str().unwrap().to_owned();
        let permits = |grant: &Grant| {
            let mut from = grant.spec.from.iter();
            let mut to = grant.spec.to.iter();
            grant.metadata.namespace == namespace
                && from.any(|from| {
                    from.group == "pingsix.io" && from.kind == "SecurityPolicy" && from.namespace == *own
                })
                && to.any(|to| {
                    to.group.is_empty()
                        && to.kind == "Secret"
                        && to.name.as_ref().is_none_or(|wanted| *wanted == name)
                })
        };
        let is_permitted = namespace == *own || self.grants.iter().any(permits);
        self.credentials.get(&(namespace, name)).filter(|_| is_permitted)
    }

    fn entries(&self, policy: &Policy, reference: &Value) -> Option<BTreeMap<String, String>> {
        let data = self.credential(policy, reference)?["data"].as_object();
        let decode = |value: &Value| {
            let bytes = BASE64_STANDARD.decode(value.as_str().unwrap()).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        Some(data.into_iter().flatten().map(|(name, value)| (name.clone(), decode(value))).collect())
    }
}

/// Of the policies with a target, the one that counts.
pub(super) fn oldest_for<'p>(
    policies: &'p [Policy],
    (kind, (namespace, name), section): &Target<'_>,
) -> Option<&'p Policy> {
    let is_ingress = *kind == "Ingress";
    let group = match *kind {
        "Ingress" => "networking.k8s.io",
        "Service" => "",
        _ => "gateway.networking.k8s.io",
    };
    let is_target = |target: &Value| {
        target["group"] == group
            && target["kind"] == *kind
            && target["name"] == **name
            // An Ingress has no sections; a policy that names one closes all of it.
            && (is_ingress || target["sectionName"].as_str() == *section)
    };
    let with_target = policies
        .iter()
        .filter(|policy| policy.metadata.namespace == *namespace && policy.targets().iter().any(is_target));
    with_target.min_by(|one, other| one.metadata.age().cmp(&other.metadata.age()))
}

/// The policies, each with its level, in the order of levels.
pub(super) fn contributors<'p>(chosen: impl Iterator<Item = (usize, &'p Policy)>) -> Vec<Name> {
    let mut contributors: Vec<(usize, Name)> =
        chosen.map(|(level, policy)| (level, policy.metadata.key())).collect();
    contributors.sort();
    let mut policies: Vec<Name> = Vec::new();
    for (_, policy) in contributors {
        if !policies.contains(&policy) {
            policies.push(policy);
        }
    }
    policies
}

impl Inherited {
    /// Whether both come from the same policies.
    pub(super) fn has_policies_of(&self, other: &Self) -> bool {
        self.policies == other.policies && self.traffic_policies == other.traffic_policies
    }

    /// The status that every request gets.
    pub(super) fn certain_error(&self) -> Option<u16> {
        self.protection.certain_error()
    }
}

impl Policy {
    fn targets(&self) -> &[Value] {
        self.spec["targetRefs"].as_array().unwrap()
    }

    pub(super) fn overrides(&self) -> bool {
        self.spec["strategy"] == "Overrides"
    }

    /// Whether the targets are all Gateways and ListenerSets, or else all routes of a policy that overrides no other.
    pub(super) fn has_targets_of_one_class(&self) -> bool {
        let is_wide = |target: &&Value| target["kind"] == "Gateway" || target["kind"] == "ListenerSet";
        let wide = self.targets().iter().filter(is_wide).count();
        let of_ingresses = self.targets().iter().filter(|target| target["kind"] == "Ingress");
        let names_section = of_ingresses.clone().any(|target| !target["sectionName"].is_null());
        let is_of_one_class = |count: usize| count == 0 || count == self.targets().len();
        is_of_one_class(wide)
            && is_of_one_class(of_ingresses.count())
            && !names_section
            && (wide > 0 || !self.overrides())
    }

    fn sets(&self, field: &str) -> bool {
        match field {
            "authentication" => AUTHENTICATIONS.iter().any(|field| self.spec.get(field).is_some()),
            field => self.spec.get(field).is_some(),
        }
    }

    fn proxies(&self) -> BTreeSet<String> {
        networks(&self.spec["clientIP"]["trustedProxies"])
    }

    /// Whether backends get no credential: by default, those that others may own.
    fn hides(&self, auth: &Value) -> bool {
        let is_wide = |target: &Value| target["kind"] == "Gateway" || target["kind"] == "ListenerSet";
        auth["sanitize"].as_bool().unwrap_or_else(|| self.targets().iter().any(is_wide))
    }

    fn place(&self, auth: &Value, header: &str) -> Place {
        let is_hidden = self.hides(auth);
        let Some(from) = auth.get("extractFrom") else {
            return Place { header: header.to_owned(), is_hidden, ..Place::default() };
        };
        let first = |field: &str| from[field][0].as_str().unwrap_or_default().to_owned();
        Place { header: first("headers"), query: first("params"), cookie: String::new(), is_hidden }
    }

    /// Whether the policy has a target of this kind and name.
    fn targets_object(&self, kind: &str, name: &Name) -> bool {
        let mut targets = self.targets().iter();
        self.metadata.namespace == name.0
            && targets.any(|target| target["kind"] == kind && target["name"] == *name.1)
    }
}

fn texts(list: &Value) -> BTreeSet<String> {
    list.as_array().into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn networks(list: &Value) -> BTreeSet<String> {
    in_both_notations(texts(list))
}
