//! Filters: changes of requests and responses by a rule, as far as PingSIX can make them.
//!
//! Each type of filter has a file below with a type that reads and lowers itself. [`FilterReader`] combines the
//! filters of a rule, and [`Filters`] has the resulting plugins.

mod cors;
mod direct_response;
mod extension;
mod header;
mod pattern;
mod redirect;
mod rewrite;

use std::sync::Arc;

use gateway_api::experimental::httproutes as api;
use serde::Serialize;

pub(crate) use self::cors::{Cors, admits_any_origin};
pub(crate) use self::direct_response::DirectResponse;
use self::extension::Extension;
pub(crate) use self::extension::Extensions;
pub(crate) use self::header::{HeaderChanges, header_name};
pub(crate) use self::redirect::Redirect;
pub(crate) use self::rewrite::{PathRewrite, RegexRewrite, replace_prefix, rooted};
use super::Match;
use crate::annotations::PathChange;
use crate::model::{Capability, FieldPath, Hostname, Kind, ObjectName, Reason, Refusal};
use crate::pingsix::Plugins;
use crate::pingsix::plugin::{self, PluginConfig as _, ProxyRewrite, ResponseRewrite};

/// The actions of a rule besides its backends. Two with the same effect are equal.
///
/// PingSIX runs plugins per Route, so all rules that a Route decides among must have the same filters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filters {
    pub(crate) request_headers: HeaderChanges,
    pub(crate) response_headers: HeaderChanges,
    /// The status of the responses of backends, in place of their own. Only an Ingress can ask for it.
    pub(crate) response_status: Option<u16>,
    /// The change of the path for a backend.
    pub(crate) path: Option<PathRewrite>,
    pub(crate) cors: Option<Cors>,
    pub(crate) redirect: Option<Redirect>,
    /// An answer without a backend. Not a plugin of a filter: the action of the rule.
    pub(crate) response: Option<Arc<DirectResponse>>,
}

impl Filters {
    /// The reason why no request goes to a backend.
    pub(crate) const fn no_backend(&self) -> Option<&'static str> {
        match (&self.redirect, &self.response) {
            (Some(_), _) => Some(BESIDE_REDIRECT),
            (None, Some(_)) => Some("A rule that answers requests itself sends nothing to a backend."),
            (None, None) => None,
        }
    }

    /// The plugins of the filters for which policies may ask, too. All of them change responses.
    pub(crate) fn plugins_of_policies(&self) -> impl Iterator<Item = &'static str> {
        let cors = self.cors.is_some().then_some(plugin::Cors::NAME);
        let response = self.response_rewrite().map(|_| ResponseRewrite::NAME);
        cors.into_iter().chain(response)
    }

    /// Whether a plugin changes the responses of the rule.
    pub(crate) fn changes_responses(&self) -> bool {
        self.plugins_of_policies().next().is_some()
    }

    /// Bytes that a Route with the filters is charged for the memory that their patterns may take.
    pub(crate) fn pattern_charge(&self) -> usize {
        let path = self.path.as_ref().map(PathRewrite::pattern_memory);
        let redirect = self.redirect.as_ref().map(Redirect::pattern_memory);
        let origins = self.cors.as_ref().map(Cors::pattern_memory);
        pattern::charge([path, redirect, origins].into_iter().flatten().sum())
    }

    fn response_rewrite(&self) -> Option<ResponseRewrite> {
        let rewrite = ResponseRewrite {
            status_code: self.response_status,
            headers: self.response_headers.lower_response(),
            vars: None,
        };
        (rewrite != ResponseRewrite::default()).then_some(rewrite)
    }

    /// Adds the plugins of the filters. `instead` replaces the changes of request headers, and `host` the Host of clients.
    pub(crate) fn lower(
        &self,
        instead: Option<plugin::HeaderChanges>,
        host: Option<String>,
        plugins: &mut Plugins,
    ) {
        // The action of the rule redirects or responds.
        let Self { request_headers, path, cors, .. } = self;
        let rewrite = ProxyRewrite {
            headers: instead.or_else(|| request_headers.lower_request()),
            host,
            ..path.as_ref().map(PathRewrite::lower).unwrap_or_default()
        };
        if rewrite != ProxyRewrite::default() {
            plugins.insert(&rewrite);
        }
        if let Some(rewrite) = self.response_rewrite() {
            plugins.insert(&rewrite);
        }
        if let Some(cors) = cors {
            plugins.insert(&cors.lower());
        }
    }
}

/// Bytes that the service of policies is charged for the memory that its patterns may take.
pub(crate) fn pattern_charge_of_policies(plugins: &Plugins) -> usize {
    let origins =
        plugins.raw(plugin::Cors::NAME).and_then(|cors| cors.get("allow_origins_by_regex")?.as_array());
    let lengths = origins.into_iter().flatten().filter_map(|pattern| Some(pattern.as_str()?.len()));
    pattern::charge(pattern::memory_of_origins(lengths))
}

/// The filters of a rule, read.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadFilters {
    /// `None` when there are none.
    pub(crate) filters: Option<Arc<Filters>>,
    /// The Host for the backend (`URLRewrite.hostname`). Not a plugin: an upstream sets it.
    pub(crate) host: Option<Hostname>,
    /// References to filters that lead nowhere.
    pub(crate) unresolved: Vec<Refusal>,
}

/// The objects to which filters may refer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilterScope<'r> {
    /// The namespace of the route.
    pub(crate) namespace: &'r Arc<str>,
    /// `None` for a kind of route without references to filters.
    pub(crate) extensions: Option<&'r Extensions>,
}

/// Reader of filters with their location and the rule's matches.
#[derive(Debug)]
pub(crate) struct FilterReader<'r> {
    scope: FilterScope<'r>,
    matches: &'r [Match],
    refusals: &'r mut Vec<Refusal>,
    read: ReadFilters,
    filters: Filters,
    /// The field with the direct response.
    response_at: Option<FieldPath>,
    /// Types met so far, in the list being read.
    types_read: Vec<&'static str>,
}

impl<'r> FilterReader<'r> {
    pub(crate) fn new(scope: FilterScope<'r>, matches: &'r [Match], refusals: &'r mut Vec<Refusal>) -> Self {
        Self {
            scope,
            matches,
            refusals,
            read: ReadFilters::default(),
            filters: Filters::default(),
            response_at: None,
            types_read: Vec::new(),
        }
    }

    /// Reads one list, after those read before: first the rule's, then that of its only backend.
    pub(crate) fn read(&mut self, list: &[api::HttpRouteRulesFilters], at: &FieldPath) {
        self.types_read.clear();
        for (index, filter) in list.iter().enumerate() {
            self.read_one(filter, &at.index(index));
        }
    }

    /// Reads a list of another generated type. All filter lists of Gateway API have one JSON shape.
    pub(crate) fn read_as_http<F: Serialize>(&mut self, list: &[F], at: &FieldPath) {
        match serde_json::to_value(list).and_then(serde_json::from_value) {
            Ok(list) => {
                let list: Vec<api::HttpRouteRulesFilters> = list;
                self.read(&list, at);
            }
            Err(error) => self.refuse(at.clone(), format!("The filters cannot be read: {error}.")),
        }
    }

    /// Replaces the path for backends by an annotation of an Ingress.
    pub(crate) fn rewrite(&mut self, change: &PathChange, at: FieldPath) {
        match change {
            PathChange::Full(path) => self.filters.path = Some(PathRewrite::Full(path.clone())),
            PathChange::Regex(path) => match RegexRewrite::read(path) {
                Ok(rewrite) => self.filters.path = Some(PathRewrite::Regex(Arc::new(rewrite))),
                Err(error) => self.refuse(at, format!("The path cannot be rewritten ({error}).")),
            },
            PathChange::Redirect(filter) => self.read(std::slice::from_ref(filter), &at),
        }
    }

    /// Replaces the status of the responses of backends by an annotation of an Ingress.
    pub(crate) fn answer_with(&mut self, status: u16) {
        self.filters.response_status = Some(status);
    }

    pub(crate) fn finish(mut self) -> ReadFilters {
        if let Some(at) = self.response_at.take() {
            let response = Filters { response: self.filters.response.clone(), ..Filters::default() };
            if self.filters != response || self.read.host.is_some() {
                // PingSIX's `fault-injection` answers before all other plugins, and none of them sees the answer.
                self.lacks(Capability::FiltersOfResponses, at);
            }
        }
        let Self { read, filters, .. } = self;
        ReadFilters { filters: (filters != Filters::default()).then(|| Arc::new(filters)), ..read }
    }

    fn refuse(&mut self, at: FieldPath, message: impl Into<String>) {
        self.refusals.push(Refusal::new(at, Reason::UnsupportedValue, message));
    }

    fn lacks(&mut self, capability: Capability, at: FieldPath) {
        self.refusals.push(capability.refuse(at));
    }

    fn read_one(&mut self, filter: &api::HttpRouteRulesFilters, at: &FieldPath) {
        use api::HttpRouteRulesFiltersType as Type;
        let name = filter_name(&filter.r#type);
        if self.types_read.contains(&name)
            && !matches!(filter.r#type, Type::RequestMirror | Type::ExtensionRef)
        {
            return self.refuse(at.child("type"), format!("A rule has one {name} filter at most."));
        }
        self.types_read.push(name);
        if self.read_content(filter, at).is_none() {
            self.refuse(at.clone(), format!("A filter of type {name} needs the field of that name."));
        }
    }

    /// Reads the field that the type of a filter asks for; `None` when it is missing.
    fn read_content(&mut self, filter: &api::HttpRouteRulesFilters, at: &FieldPath) -> Option<()> {
        use api::HttpRouteRulesFiltersType as Type;
        match filter.r#type {
            Type::RequestHeaderModifier => {
                let at = at.child("requestHeaderModifier");
                let modifier = filter.request_header_modifier.as_ref()?;
                let changes = HeaderChanges::of_request(modifier, &at, self.refusals);
                let earlier = std::mem::take(&mut self.filters.request_headers);
                self.filters.request_headers = self.both(earlier, &changes, at);
            }
            Type::ResponseHeaderModifier => {
                let at = at.child("responseHeaderModifier");
                let modifier = filter.response_header_modifier.as_ref()?;
                let changes = HeaderChanges::of_response(modifier, &at, self.refusals);
                let earlier = std::mem::take(&mut self.filters.response_headers);
                self.filters.response_headers = self.both(earlier, &changes, at);
            }
            Type::UrlRewrite => self.read_rewrite(filter.url_rewrite.as_ref()?, &at.child("urlRewrite")),
            Type::RequestRedirect => {
                let at = at.child("requestRedirect");
                let redirect = filter.request_redirect.as_ref()?;
                if self.filters.path.is_some() || self.read.host.is_some() {
                    self.refuse(at, BESIDE_REDIRECT);
                } else {
                    let redirect = Redirect::read(redirect, self.matches, &at, self.refusals);
                    self.filters.redirect = Some(redirect);
                }
            }
            Type::Cors => {
                let at = at.child("cors");
                let cors = Cors::read(filter.cors.as_ref()?, &at, self.refusals);
                if self.filters.cors.is_some() {
                    self.refuse(at, "The rule's own filter already says what other origins may do.");
                } else {
                    self.filters.cors = Some(cors);
                }
            }
            Type::RequestMirror => self.lacks(Capability::RequestMirror, at.child("type")),
            Type::ExternalAuth => self.lacks(Capability::ExternalAuthorization, at.child("type")),
            Type::ExtensionRef => {
                self.read_extension(filter.extension_ref.as_ref()?, at.child("extensionRef"));
            }
        }
        Some(())
    }

    /// Changes after those of an earlier filter.
    fn both(&mut self, earlier: HeaderChanges, changes: &HeaderChanges, at: FieldPath) -> HeaderChanges {
        earlier.then(changes).unwrap_or_else(|| {
            self.refuse(at, "The rule's own filter already changes one of these headers.");
            earlier
        })
    }

    fn read_rewrite(&mut self, rewrite: &api::HttpRouteRulesFiltersUrlRewrite, at: &FieldPath) {
        if self.filters.redirect.is_some() {
            return self.refuse(at.clone(), BESIDE_REDIRECT);
        }
        if let Some(hostname) = &rewrite.hostname {
            match (Hostname::parse(hostname), &self.read.host) {
                (Ok(parsed), None) if !parsed.is_wildcard() => self.read.host = Some(parsed),
                (Ok(_), Some(_)) => {
                    self.refuse(at.child("hostname"), "The rule's own filter already sets it.");
                }
                (Ok(_) | Err(_), _) => {
                    self.refuse(at.child("hostname"), format!("\"{hostname}\" is not a hostname."));
                }
            }
        }
        let Some(path) = &rewrite.path else { return };
        let at = at.child("path");
        if self.filters.path.is_some() {
            return self.refuse(at, PATH_ALREADY_REWRITTEN);
        }
        self.filters.path = PathRewrite::read(path, self.matches, &at, self.refusals);
    }

    /// Reads the HTTPRouteFilter to which a filter refers.
    fn read_extension(&mut self, reference: &api::HttpRouteRulesFiltersExtensionRef, at: FieldPath) {
        let Some(extensions) = self.scope.extensions else {
            return self.refuse(at, "Only HTTPRoutes can refer to filters.");
        };
        let name = ObjectName::new(self.scope.namespace.clone(), reference.name.as_str());
        if Kind::from_group_kind(&reference.group, &reference.kind) != Some(Kind::HttpRouteFilter) {
            return self.lacks(Capability::OtherFilters, at);
        }
        match extensions.get(&name) {
            None => {
                let message = format!("HTTPRouteFilter {name} does not exist.");
                self.read.unresolved.push(Refusal::new(at, Reason::BackendNotFound, message));
            }
            Some(Err(message)) => {
                self.refuse(at, format!("HTTPRouteFilter {name} cannot be used: {message}"));
            }
            Some(Ok(Extension::Rewrite(_))) if self.filters.redirect.is_some() => {
                self.refuse(at, BESIDE_REDIRECT);
            }
            Some(Ok(Extension::Rewrite(_))) if self.filters.path.is_some() => {
                self.refuse(at, PATH_ALREADY_REWRITTEN);
            }
            Some(Ok(Extension::Rewrite(rewrite))) => {
                self.filters.path = Some(PathRewrite::Regex(rewrite.clone()));
            }
            Some(Ok(Extension::Response(_))) if self.filters.response.is_some() => {
                self.refuse(at, "An earlier filter of the rule already answers its requests.");
            }
            Some(Ok(Extension::Response(response))) => {
                self.filters.response = Some(response.clone());
                self.response_at = Some(at);
            }
        }
    }
}

/// Reason why a filter cannot be beside a redirect.
const BESIDE_REDIRECT: &str = "A rule that redirects sends nothing to a backend.";

/// Reason why a filter cannot rewrite the path.
const PATH_ALREADY_REWRITTEN: &str = "The rule's own filter already rewrites the path.";

const fn filter_name(filter: &api::HttpRouteRulesFiltersType) -> &'static str {
    match filter {
        api::HttpRouteRulesFiltersType::RequestHeaderModifier => "RequestHeaderModifier",
        api::HttpRouteRulesFiltersType::ResponseHeaderModifier => "ResponseHeaderModifier",
        api::HttpRouteRulesFiltersType::RequestMirror => "RequestMirror",
        api::HttpRouteRulesFiltersType::RequestRedirect => "RequestRedirect",
        api::HttpRouteRulesFiltersType::UrlRewrite => "URLRewrite",
        api::HttpRouteRulesFiltersType::ExtensionRef => "ExtensionRef",
        api::HttpRouteRulesFiltersType::Cors => "CORS",
        api::HttpRouteRulesFiltersType::ExternalAuth => "ExternalAuth",
    }
}

#[cfg(test)]
mod tests;
