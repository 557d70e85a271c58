//! Decision lists: the rows that a Route tries in order, with their actions.
//!
//! Conditions choose among upstreams by `traffic-split`; the plugins before and after are one set for the whole
//! Route. So every difference between rows is an upstream, statuses and redirects included. The rows must agree on
//! the rest: on the filters of their rules, and on the chain of their policies.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::sync::Arc;

use super::budget::UNAVAILABLE;
use super::host::{cache_off, fixed_host};
use super::lowering::Lowering;
use super::naming::Naming;
use super::plane::{MISDIRECTED, Misdirected, RuleRef};
use super::redirect::{EntryPort, headers, instruction, native, to_https as redirect_to_https};
use super::rows::MISSPELLED;
use super::shared::SharedKey;
use super::table::{RequestScheme, Row, RowState};
use crate::attach::Protocol;
use crate::backends::{Action, Target};
use crate::model::{Capability, Decision, FieldPath, Hostname, ObjectKey, Origin, Reason, Refusal};
use crate::normalise::{DirectResponse, Filters, Redirect, vars_of};
use crate::pingsix::plugin::{self, SplitRule, TrafficSplit, WeightedUpstream};
use crate::pingsix::{self, Plugins};
use crate::policy::{BrokenPolicy, ChainError, EvaluatedChain};

/// A Route being written.
pub(super) struct Writer<'a, 'l> {
    pub(super) lowering: &'l Lowering<'a>,
    pub(super) naming: &'l mut Naming,
    pub(super) refused: BTreeMap<RuleRef, Refusal>,
}

impl<'a> Writer<'a, '_> {
    /// A Route that gives a status itself, and its service.
    fn native_status(&mut self, status: u16) -> pingsix::Route {
        let service_id = self.shared(SharedKey::Status(status));
        pingsix::Route { service_id, ..pingsix::Route::default() }
    }

    /// A Route that answers with a body.
    fn native_response(&mut self, response: &DirectResponse) -> pingsix::Route {
        pingsix::Route {
            plugins: Plugins::default().with(&response.lower()),
            upstream_id: self.shared(SharedKey::Nowhere),
            ..pingsix::Route::default()
        }
    }

    /// A row as a step of a list.
    fn step<'r>(&mut self, row: &'r Row<'a>, zone: usize) -> Step<'r, 'a> {
        let lowering = self.lowering;
        let mut response = self.response(row);
        let (action, chain) = match row.state {
            RowState::Served => match lowering.chain(row.rule, zone) {
                Ok(Some(chain)) if chain.facts.may_answer && response.take().is_some() => {
                    self.refuse_response(row, chain);
                    (Action::status(self.failure(row)), None)
                }
                Ok(Some(chain)) if self.refuse_contested_plugin(row, chain) => {
                    (Action::status(self.failure(row)), None)
                }
                Ok(chain) => (lowering.routes[row.rule.route].rules[row.rule.rule].action.clone(), chain),
                Err(error) => {
                    response = None;
                    self.refuse_for_chain(row, &error);
                    (Action::status(self.failure(row)), None)
                }
            },
            RowState::OtherSpelling => (Action::status(MISSPELLED), None),
            RowState::Refused => (Action::status(self.failure(row)), None),
            RowState::Unavailable | RowState::Guard => (Action::status(UNAVAILABLE), None),
        };
        Step { row, conditions: vars_of(row.conditions), action, filters: self.filters(row), response, chain }
    }

    /// Refuses a direct response to requests that policies may refuse. PingSIX would respond before it runs them.
    fn refuse_response(&mut self, row: &Row<'_>, chain: &EvaluatedChain) {
        let failure = self.failure(row);
        let values = [&*chain.named_to(row.route), &failure.to_string()];
        self.lacks(row, Capability::ResponseBehindPolicies, &values);
    }

    /// Refuses a rule with a filter that would replace a plugin of policies. Returns whether the rule has such a filter.
    fn refuse_contested_plugin(&mut self, row: &Row<'_>, chain: &EvaluatedChain) -> bool {
        let Some(filters) = self.filters(row) else { return false };
        let mut plugins = filters.plugins_of_policies();
        let Some(plugin) = plugins.find(|plugin| chain.facts.exclusive.contains(plugin)) else {
            return false;
        };
        let mut policies = self.lowering.policies.plugin_names(&chain.chain);
        let policy = policies.find(|(_, plugins)| plugins.contains(&plugin));
        let policy =
            policy.map_or_else(|| chain.named_to(row.route), |(policy, _)| policy.introduced_to(row.route));
        let failure = self.failure(row);
        self.lacks(row, Capability::FilterBesidePolicy, &[&policy, plugin, &failure.to_string()]);
        true
    }

    /// Refuses a rule whose policies PingSIX cannot honour.
    fn refuse_for_chain(&mut self, row: &Row<'_>, error: &ChainError<'_>) {
        let failure = self.failure(row);
        let message = match error {
            ChainError::Broken(BrokenPolicy { policy, .. }) if !policy.is_known_to(row.route) => format!(
                "{} applies to this rule and cannot be honoured, so its requests are answered with {failure}.",
                policy.introduced_to(row.route)
            ),
            ChainError::Broken(BrokenPolicy { policy, refusal }) => format!(
                "{policy} applies to this rule and cannot be honoured ({}), so its requests are answered with {failure}.",
                refusal.trim_end_matches('.')
            ),
            ChainError::DifferentListeners => {
                return self.lacks(row, Capability::PoliciesOfPorts, &[&failure.to_string()]);
            }
        };
        self.refuse(row, &message);
    }

    /// The status of a row that cannot be honoured.
    fn failure(&self, row: &Row<'_>) -> u16 {
        self.lowering.routes[row.rule.route].route.traffic.failure()
    }

    /// A Route that tries rows in order.
    pub(super) fn decide(
        &mut self,
        mut rows: Vec<&Row<'a>>,
        host: Option<&Hostname>,
        zone: usize,
    ) -> Decided {
        let mut to_https = take_redirect_to_https(&mut rows);
        let mut steps: Vec<Step<'_, 'a>> = rows.into_iter().map(|row| self.step(row, zone)).collect();
        let all: &[EntryPort] = &self.lowering.plane.zones[zone].entrances;
        let by_tls: Vec<EntryPort>;
        let mut entrances = all;
        if to_https.is_some() {
            by_tls =
                all.iter().copied().filter(|entry_port| entry_port.protocol == Protocol::Https).collect();
            entrances = &by_tls;
            self.refuse_answers_before_redirect(&mut steps);
        } else {
            self.refuse_mixed_audiences(&mut steps);
            // After a failure for all audiences, no later row is reached.
            if let Some(last) = steps.iter().position(|step| step.row.conditions.is_empty()) {
                steps.truncate(last + 1);
            }
        }
        let ends_in_404 = steps.last().is_none_or(|step| !step.row.conditions.is_empty());
        let alone = steps.len() == 1 && !ends_in_404;
        // Plugins that answer would do so before a redirect to HTTPS.
        // They would also answer requests that came in by another listener.
        let address = self.lowering.plane.zones[zone].address();
        let may_answer = alone && to_https.is_none() && address.is_none();
        let native =
            steps.first().filter(|_| may_answer).and_then(|step| step.native_redirect(host, entrances));
        if native.is_none() {
            self.refuse_ambiguous_redirects(&mut steps, entrances);
        }
        if !may_answer {
            self.refuse_bodies(&mut steps, address.is_some());
        }
        let CommonSettings { filters, chain } = self.common_settings(&mut steps).unwrap_or_default();
        let response = steps.first().filter(|_| may_answer).and_then(|step| step.response);
        let response = response.filter(|response| response.body.is_some());
        let status = steps.first().filter(|_| may_answer).and_then(|step| step.action.only_status());
        let (mut document, split_rules) = if let Some(plugin) = native {
            let plugins = Plugins::default().with(&plugin);
            let upstream_id = self.shared(SharedKey::Nowhere);
            (pingsix::Route { plugins, upstream_id, ..pingsix::Route::default() }, vec![0])
        } else if let Some(response) = response {
            (self.native_response(response), vec![0])
        } else if let Some(status) = status {
            (self.native_status(status), vec![0])
        } else if let Some((mut document, split_rules)) = self.split(&steps, ends_in_404, address) {
            let caches = chain.is_some_and(|chain| chain.facts.caches());
            let exact = host.filter(|host| !host.is_wildcard());
            let to_fix = exact.filter(|_| self.must_fix_host(&steps, caches));
            let fixed = to_fix.map(|host| fixed_host(host, all));
            match filters {
                Some(filters) => {
                    let redirect = filters.redirect.as_ref();
                    let redirect = redirect.and_then(|redirect| instruction(redirect, entrances));
                    filters.lower(redirect.as_ref().map(headers), fixed, &mut document.plugins);
                }
                None => Filters::default().lower(None, fixed, &mut document.plugins),
            }
            if caches && exact.is_none() {
                document.plugins.insert(&cache_off());
            }
            let service = chain.map(|chain| SharedKey::Policies(chain.chain.clone()));
            document.service_id = service.and_then(|service| self.shared(service));
            (document, split_rules)
        } else {
            // One status for all rows: that of the first, which owns the list.
            let failure = steps.first().map_or(500, |step| self.failure(step.row));
            self.refuse_for_want_of_responder(&steps, failure);
            if let Some(row) = to_https.take() {
                self.lacks(row, Capability::ChosenAnswer, &[&failure.to_string()]);
            }
            (self.native_status(failure), vec![0; steps.len()])
        };
        let decision = |(step, split_rules): (&Step<'_, 'a>, usize)| Decision {
            origin: Some(origin_of(step.row)),
            conditional: !step.row.conditions.is_empty(),
            split_rules,
        };
        let misdirected = address.map(|_| Decision { origin: None, conditional: true, split_rules: 1 });
        let not_found = ends_in_404.then_some(Decision { origin: None, conditional: false, split_rules: 0 });
        let of_rows = steps.iter().zip(split_rules).map(decision);
        let decisions = misdirected.into_iter().chain(of_rows).chain(not_found).collect();
        let redirect = to_https.and_then(|row| self.filters(row)?.redirect.as_ref());
        if let Some(plugin) = redirect.and_then(|redirect| redirect_to_https(redirect, host)) {
            document.plugins.insert(&plugin);
        }
        let redirect = to_https.map(origin_of).map(Box::new);
        Decided { document, decisions, redirect }
    }

    /// Whether backends must get the exact host of a Route in place of the client's ([`super::host`]).
    fn must_fix_host(&self, steps: &[Step<'_, '_>], caches: bool) -> bool {
        steps.iter().any(|step| {
            self.lowering.passes_host(&step.action) && (caches || self.lowering.fixes_host(step.row.rule))
        })
    }

    /// The guard of a zone: 404, and 421 for requests that came in by another listener.
    pub(super) fn guard(&mut self, misdirected: Option<Misdirected>) -> pingsix::Route {
        match misdirected {
            None => self.native_status(404),
            Some(Misdirected::All) => self.native_status(MISDIRECTED),
            Some(Misdirected::UnlessAt(address)) => match self.split(&[], true, Some(address)) {
                Some((document, _)) => document,
                // There are no such zones without a responder.
                None => self.native_status(MISDIRECTED),
            },
        }
    }

    /// The id of a shared document.
    fn shared(&mut self, key: SharedKey) -> Option<String> {
        self.naming.request(key, self.lowering)
    }

    fn filters(&self, row: &Row<'_>) -> Option<&'a Filters> {
        self.lowering.routes[row.rule.route].route.rules[row.rule.rule].filters.as_deref()
    }

    /// The direct response of a row that can be honoured.
    fn response(&self, row: &Row<'_>) -> Option<&'a DirectResponse> {
        let rule = &self.lowering.routes[row.rule.route].route.rules[row.rule.rule];
        let is_served = row.state == RowState::Served && rule.is_honoured();
        rule.filters.as_deref().filter(|_| is_served)?.response.as_deref()
    }

    /// Refuses direct responses with a body in a list. PingSIX responds before conditions choose, and the upstreams of
    /// statuses have no bodies.
    fn refuse_bodies(&mut self, steps: &mut [Step<'_, '_>], is_fronted: bool) {
        for step in steps {
            if step.response.is_some_and(|response| response.body.is_some()) {
                let failure = self.failure(step.row);
                step.action = Action::status(failure);
                let capability =
                    if is_fronted { Capability::BodyBehindFront } else { Capability::BodyBehindConditions };
                self.lacks(step.row, capability, &[&failure.to_string()]);
            }
        }
    }

    /// Refuses rows for one audience alone where both would reach them.
    fn refuse_mixed_audiences(&mut self, steps: &mut [Step<'_, '_>]) {
        for step in steps {
            let capability = match step.row.scheme {
                RequestScheme::Any => continue,
                RequestScheme::Tls => Capability::RulesBehindRedirect,
                RequestScheme::Plaintext => Capability::RedirectBehindRules,
            };
            step.action = Action::status(self.failure(step.row));
            step.response = None;
            self.lacks(step.row, capability, &[]);
        }
    }

    /// Refuses redirects that depend on the port a request came in by, where it may have come in by several.
    fn refuse_ambiguous_redirects(&mut self, steps: &mut [Step<'_, '_>], entrances: &[EntryPort]) {
        for step in steps {
            let Some(redirect) = step.redirect() else { continue };
            if instruction(redirect, entrances).is_none() {
                step.action = Action::status(self.failure(step.row));
                self.lacks(step.row, Capability::RedirectOfPort, &[]);
            }
        }
    }

    /// Refuses rules with policies that may answer, where a redirect to HTTPS follows: PingSIX would ask for credentials
    /// in plaintext.
    fn refuse_answers_before_redirect(&mut self, steps: &mut [Step<'_, '_>]) {
        for step in steps {
            if let Some(chain) = step.chain.filter(|chain| chain.facts.may_answer) {
                let failure = self.failure(step.row);
                (step.action, step.chain) = (Action::status(failure), None);
                let values = [&*chain.named_to(step.row.route), &failure.to_string()];
                self.lacks(step.row, Capability::PoliciesBehindRedirect, &values);
            }
        }
    }

    /// The filters and policies of a list. PingSIX runs plugins per Route, so rules with others are refused.
    ///
    /// The owner of the list is the oldest route of the first cell, which is the most specific one: a wider rule must
    /// not change its behaviour, however old it is. Of the owner, the last rule counts, which has the fewest
    /// conditions.
    fn common_settings(&mut self, steps: &mut [Step<'_, 'a>]) -> Option<CommonSettings<'a>> {
        let filtered = || steps.iter().filter(|step| step.action.is_filtered());
        let first = filtered().next()?.row;
        let of_cell = filtered().map(|step| step.row).take_while(|row| row.is_of_one_cell(first));
        let owner = of_cell.min_by(|one, other| one.compare_age(other))?.route;
        let counts = filtered().rfind(|step| step.row.route == owner)?;
        let (agreed, of) = (counts.plugins(), counts.row);
        let differ = filtered().any(|step| step.plugins() != agreed);
        if differ {
            let rule = self.field_of(of);
            for step in steps {
                let row = step.row;
                if step.action.is_filtered() && step.plugins() != agreed {
                    let failure = self.failure(row);
                    let first = if of.route.is_known_to(row.route) {
                        format!("{rule} of {}", of.route)
                    } else {
                        format!("A rule of {}", of.route.named_to(row.route))
                    };
                    let status = failure.to_string();
                    if step.filters == agreed.filters {
                        let theirs = chain_in_words(agreed.chain, row.route);
                        let own = chain_in_words(step.chain, row.route);
                        let values = [&*first, &theirs, &own, &status];
                        self.lacks(row, Capability::PoliciesOfConditions, &values);
                    } else {
                        self.lacks(row, Capability::FiltersOfConditions, &[&first, &status]);
                    }
                    (step.action, step.chain) = (Action::status(failure), None);
                }
            }
        }
        Some(agreed)
    }

    fn refuse(&mut self, row: &Row<'_>, message: &str) {
        let at = self.field_of(row);
        self.refused.entry(row.rule).or_insert_with(|| Refusal::new(at, Reason::UnsupportedValue, message));
    }

    /// Refuses a row for lack of a capability, or limits its rule.
    fn lacks(&mut self, row: &Row<'_>, capability: Capability, values: &[&str]) {
        let at = self.field_of(row);
        self.refused.entry(row.rule).or_insert_with(|| capability.refuse_with(at, values));
    }

    /// Says that requests reach an open rule by other spellings of the path of a protected one, or because the open rule is
    /// older than the rule that closes a path in its place. A limitation of a rule is kept like a refusal, with a reason of
    /// its own, and only if the rule has no refusal.
    pub(super) fn limit_exposed(&mut self, row: &Row<'_>, is_late: bool) {
        if is_late {
            self.lacks(row, Capability::ProtectedRegex, &[&row.path.text]);
        } else {
            self.lacks(row, Capability::NormalisedPath, &[&row.path.text, &MISSPELLED.to_string()]);
        }
    }

    /// The field of the rule that a row is of.
    fn field_of(&self, row: &Row<'_>) -> FieldPath {
        let route = &self.lowering.routes[row.rule.route].route;
        route.field_of(&route.rules[row.rule.rule])
    }

    /// Lowers steps to a `traffic-split`, with the number of its rules that each step took; `None` when that
    /// takes a responder and there is none. With an address, a first rule answers 421 to the requests that came in at
    /// another one.
    fn split(
        &mut self,
        steps: &[Step<'_, '_>],
        ends_in_404: bool,
        address: Option<SocketAddrV4>,
    ) -> Option<(pingsix::Route, Vec<usize>)> {
        let mut rules = Vec::new();
        if let Some(address) = address {
            let elsewhere = ["server_addr", "!=", &address.to_string()].map(str::to_owned).to_vec();
            let weighted_upstreams = self.weighted(&[(Target::Status(MISDIRECTED), 1)])?;
            rules.push(SplitRule { vars: vec![elsewhere], weighted_upstreams });
        }
        let mut taken = Vec::with_capacity(steps.len());
        let mut own = ends_in_404.then_some(Target::Status(404));
        for step in steps {
            let unconditional = step.conditions.iter().all(Vec::is_empty);
            match step.action.targets.as_slice() {
                // The end of a list needs no rule: it is the Route's own upstream.
                [(target, _)] if unconditional => {
                    own = Some(*target);
                    taken.push(0);
                }
                targets => {
                    let weighted_upstreams = self.weighted(targets)?;
                    rules.extend(step.conditions.iter().map(|vars| SplitRule {
                        vars: vars.clone(),
                        weighted_upstreams: weighted_upstreams.clone(),
                    }));
                    taken.push(step.conditions.len());
                }
            }
        }
        let upstream_id = match own {
            Some(target) => self.shared(SharedKey::Upstream(target))?,
            // The last rule always holds; a Route needs an upstream of its own all the same.
            None => rules.last()?.weighted_upstreams.first()?.upstream_id.clone()?,
        };
        let mut plugins = Plugins::default();
        if !rules.is_empty() {
            plugins.insert(&TrafficSplit { rules });
        }
        Some((pingsix::Route { plugins, upstream_id: Some(upstream_id), ..pingsix::Route::default() }, taken))
    }

    fn weighted(&mut self, targets: &[(Target, u32)]) -> Option<Vec<WeightedUpstream>> {
        targets
            .iter()
            .map(|&(target, weight)| {
                let id = self.shared(SharedKey::Upstream(target))?;
                Some(WeightedUpstream { upstream_id: Some(id), upstream: None, weight })
            })
            .collect()
    }

    /// Refuses the rules whose conditions or shares could not be expressed; an unconditional rule at the end of
    /// a list is served elsewhere and not to blame.
    fn refuse_for_want_of_responder(&mut self, steps: &[Step<'_, '_>], failure: u16) {
        for step in steps {
            let is_plain = step.action.targets.len() == 1 && step.redirect().is_none();
            if !step.row.conditions.is_empty() || !is_plain {
                self.lacks(step.row, Capability::ChosenAnswer, &[&failure.to_string()]);
            }
        }
    }
}

/// A Route that decides, and how it came to be.
pub(super) struct Decided {
    pub(super) document: pingsix::Route,
    pub(super) decisions: Box<[Decision]>,
    /// The row whose redirect takes requests in plaintext.
    pub(super) redirect: Option<Box<Origin>>,
}

/// Takes the row that redirects requests in plaintext out of a list, if it is the first that counts for them: then the
/// rest is reached by TLS alone, and rows meant for that are safe. Otherwise the list stays as it is.
fn take_redirect_to_https<'r, 'a>(rows: &mut Vec<&'r Row<'a>>) -> Option<&'r Row<'a>> {
    let first = rows.iter().copied().find(|row| row.scheme != RequestScheme::Tls)?;
    if first.scheme != RequestScheme::Plaintext {
        return None;
    }
    rows.retain(|row| row.scheme != RequestScheme::Plaintext);
    if let Some(last) = rows.iter().position(|row| row.conditions.is_empty()) {
        rows.truncate(last + 1);
    }
    Some(first)
}

/// One row of a decision list, lowered.
struct Step<'r, 'a> {
    row: &'r Row<'a>,
    /// Alternatives of `vars`; one empty list when the row is unconditional.
    conditions: Vec<Vec<Vec<String>>>,
    action: Action,
    filters: Option<&'a Filters>,
    response: Option<&'a DirectResponse>,
    /// The policies of the rule, if it sends requests to a backend.
    chain: Option<&'a Arc<EvaluatedChain>>,
}

/// The shared part of the rows of a list. PingSIX runs one set of plugins for all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct CommonSettings<'a> {
    filters: Option<&'a Filters>,
    chain: Option<&'a Arc<EvaluatedChain>>,
}

fn chain_in_words(chain: Option<&Arc<EvaluatedChain>>, reader: &ObjectKey) -> String {
    chain.map_or_else(|| "none".to_owned(), |chain| chain.named_to(reader))
}

impl<'a> Step<'_, 'a> {
    const fn plugins(&self) -> CommonSettings<'a> {
        CommonSettings { filters: self.filters, chain: self.chain }
    }

    /// The redirect of the step, if it is one.
    fn redirect(&self) -> Option<&'a Redirect> {
        self.filters?.redirect.as_ref().filter(|_| self.action.is_filtered())
    }

    /// The plugin that redirects, if PingSIX does that itself for a Route that does nothing else.
    fn native_redirect(&self, host: Option<&Hostname>, entrances: &[EntryPort]) -> Option<plugin::Redirect> {
        let filters = self.filters?;
        // Responses of plugins get no headers of others, and there is no request to change.
        if filters.changes_responses() {
            return None;
        }
        native(self.redirect()?, host, entrances)
    }
}

pub(super) fn origin_of(row: &Row<'_>) -> Origin {
    Origin { object: row.route.clone(), section: row.section }
}
