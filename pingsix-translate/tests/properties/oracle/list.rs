//! The rules from which a data plane chooses by conditions. PingSIX runs filters for a host, path and method before it
//! reads headers and query parameters. All rules that conditions choose among must therefore have the same ones.

use std::collections::{BTreeMap, BTreeSet};

use super::World;
use super::filter::{self, Cors, Filters};
use super::hostname::representative;
use super::row::{Row, is_unsupported};
use super::security::Inherited;
use super::world::Match;
use super::{Answer, Target};
use crate::probe::Probe;

/// A rule that may decide about requests to one host, path and method.
pub(super) struct Choice<'w> {
    pub(super) row: Row<'w>,
    /// The answer of the rule alone.
    answer: Answer,
    filters: Filters,
    inherited: Inherited,
    /// Whether policies count for the rule that cannot be honoured.
    is_unhonoured: bool,
}

impl Choice<'_> {
    /// Whether filters make a difference: a status is the same with and without.
    fn is_filtered(&self) -> bool {
        !self.answer.targets().iter().all(|target| matches!(target, Target::Status(_)))
    }
}

/// The decisions on a list.
#[derive(Default)]
pub(super) struct Agreement {
    /// The permissions for scripts of all requests to the host, path and method.
    pub(super) cors: Option<Cors>,
    /// The status of all requests to the host, path and method, whatever the rules say.
    pub(super) error: Option<u16>,
    /// Rules that cannot have theirs, and fail where they are in the list.
    pub(super) refused: BTreeSet<(usize, usize)>,
}

/// Rules that fail beside others, by data plane. To find them is so much work that it is done once for all routes.
pub(crate) struct Refusals {
    /// Whether there is one data plane for all ports.
    pub(super) shared: bool,
    pub(super) by_plane: BTreeMap<Option<u16>, BTreeSet<(usize, usize)>>,
}

impl World {
    /// The rules that requests to the probe's host, path and method are decided among, in order.
    pub(super) fn choices(&self, port: Option<u16>, request: &Probe) -> Vec<Choice<'_>> {
        let host = request.routing_host();
        let listeners = self.listeners_for(port, host.as_deref());
        let mut choices: Vec<Choice<'_>> = Vec::new();
        // A listener may keep its hosts from others without serving them.
        if !listeners.iter().any(|&listener| self.serves(listener)) {
            return choices;
        }
        let mut tried = BTreeSet::new();
        let rows = self.rows(&listeners, host.as_deref());
        let guard = self.guard((port, &listeners), &rows, request);
        for row in rows {
            if guard.is_some_and(|guard| row.comes_after(guard)) {
                break;
            }
            if !row.stands_for(request) || !tried.insert(row.conditions()) {
                continue;
            }
            let is_last = row.conditions().is_empty();
            let route = &self.routes[row.route];
            let rule = &route.spec.rules[row.rule];
            let refused = is_unsupported(rule) || self.refuses(port, row.route, &listeners);
            let (answer, inherited) = if refused {
                (Answer::status(route.kind.failure()), Some(Inherited::default()))
            } else {
                self.answer_under_policies(&listeners, (row.route, row.rule), request)
            };
            choices.push(Choice {
                row,
                answer,
                filters: filter::read(rule).filters,
                is_unhonoured: inherited.is_none(),
                inherited: inherited.unwrap_or_default(),
            });
            if is_last {
                break;
            }
        }
        choices
    }

    /// Settles which filters count: those of the oldest route with the narrowest hostname, path and method, and of its
    /// rules those of the last.
    pub(super) fn agree(&self, port: Option<u16>, request: &Probe, choices: &[Choice<'_>]) -> Agreement {
        let origins = self.origins(&self.listeners_for(port, request.routing_host().as_deref()));
        let alone = matches!(choices, [only] if only.row.conditions().is_empty());
        let mut agreement = Agreement::default();
        let mut filtered: Vec<&Choice<'_>> = Vec::new();
        for choice in choices.iter().filter(|choice| choice.is_filtered()) {
            if choice.filters.is_ambiguous(&origins, alone) {
                agreement.refused.insert((choice.row.route, choice.row.rule));
            } else {
                filtered.push(choice);
            }
        }
        let Some(first) = filtered.first() else { return agreement };
        let narrowest = filtered.iter().filter(|choice| choice.row.width() == first.row.width());
        let owner = narrowest.map(|choice| choice.row.age()).min();
        let counts = filtered.iter().rev().find(|choice| Some(choice.row.age()) == owner).unwrap();
        let agrees = |choice: &Choice<'_>| {
            choice.filters == counts.filters && choice.inherited.has_policies_of(&counts.inherited)
        };
        for choice in filtered.iter().filter(|choice| !agrees(choice)) {
            agreement.refused.insert((choice.row.route, choice.row.rule));
        }
        agreement.cors = counts.filters.cors.clone().or(counts.inherited.cors.clone());
        agreement.error = counts.inherited.certain_error();
        agreement
    }

    /// Whether a rule that admits a request is more specific, by hostname, path and method, than all rules of a route for
    /// the request, of which there are some; then also whether it is younger than the route.
    pub(crate) fn outranks(
        &self,
        port: Option<u16>,
        request: &Probe,
        (name, rule): &(String, usize),
        over: &str,
    ) -> Option<bool> {
        let host = request.routing_host();
        let rows = self.rows(&self.listeners_for(port, host.as_deref()), host.as_deref());
        let rows = || rows.iter().filter(|row| row.stands_for(request));
        let own = rows().find(|row| row.age().1 == name && row.rule == *rule && row.admits(request))?;
        let mut wider = rows().filter(|row| row.age().1 == over).peekable();
        let age = wider.peek()?.age();
        wider.all(|row| row.width() < own.width()).then(|| age < own.age())
    }

    /// The rules that fail beside others, on the data plane for all ports or on those for each.
    pub(crate) fn refusals(&self, shared: bool) -> Refusals {
        let planes = if shared { vec![None] } else { self.ports().into_iter().map(Some).collect() };
        let of = |port| (port, self.refused_beside_others(port));
        Refusals { shared, by_plane: planes.into_iter().map(of).collect() }
    }

    /// Rules, as indexes of their routes and their own, that fail on a data plane because they were written beside
    /// others with other filters.
    fn refused_beside_others(&self, port: Option<u16>) -> BTreeSet<(usize, usize)> {
        let mut refused = BTreeSet::new();
        for request in self.requests_of_every_kind() {
            let choices = self.choices(port, &request);
            let unhonoured = choices.iter().filter(|choice| choice.is_unhonoured);
            refused.extend(unhonoured.map(|choice| (choice.row.route, choice.row.rule)));
            refused.extend(self.agree(port, &request, &choices).refused);
        }
        refused
    }

    /// A request for every way in which hosts, paths and methods of this table can be told apart.
    fn requests_of_every_kind(&self) -> Vec<Probe> {
        let of_listeners = self.listeners.iter().map(|listener| listener.hostname.as_deref());
        let names = self.routes.iter().flat_map(|route| &route.spec.hostnames);
        let hosts: BTreeSet<Option<&str>> =
            of_listeners.chain(names.map(|name| Some(name.as_str()))).chain([None]).collect();
        let matches =
            || self.routes.iter().flat_map(|route| &route.spec.rules).flat_map(|rule| &rule.matches);
        let mut methods: BTreeSet<&str> = matches().filter_map(|one| one.method.as_deref()).collect();
        methods.insert("ANY");
        let mut paths: BTreeSet<String> = ["/".to_owned(), "/zz-fresh".to_owned()].into();
        for path in matches().map(Match::path) {
            paths.insert(format!("{}/zz-fresh", path.trim_end_matches('/')));
            paths.insert(format!("{}/", path.trim_end_matches('/')));
            paths.insert(path);
        }
        let mut requests = Vec::new();
        for host in hosts {
            for path in &paths {
                for method in &methods {
                    requests.push(Probe {
                        host: Some(representative(host)),
                        path: path.clone(),
                        method: (*method).to_owned(),
                        ..Probe::default()
                    });
                }
            }
        }
        requests
    }
}
