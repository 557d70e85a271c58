//! Filters: what a rule does to requests and responses, and which of it PingSIX can do.

use std::num::NonZeroU16;
use std::sync::Arc;

use gateway_api::experimental::httproutes as api;
use serde::Serialize;

use super::cors::Cors;
use super::header::HeaderChanges;
use super::{Match, PathKind};
use crate::model::{FieldPath, Hostname, Reason, Refusal};
use crate::responder::{RedirectHostname, RedirectPath, RedirectScheme, RedirectStatus};

/// What a rule does besides choosing a backend. Two that have the same effect are equal.
///
/// PingSIX runs plugins per Route, so all rules that a Route decides among must have the same filters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filters {
    pub(crate) request_headers: HeaderChanges,
    pub(crate) response_headers: HeaderChanges,
    /// What becomes of the path on the way to a backend.
    pub(crate) path: Option<RedirectPath>,
    pub(crate) cors: Option<Cors>,
    pub(crate) redirect: Option<Redirect>,
}

/// A `RequestRedirect` filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) status: RedirectStatus,
    pub(crate) scheme: Option<RedirectScheme>,
    pub(crate) hostname: Option<RedirectHostname>,
    pub(crate) port: Option<NonZeroU16>,
    pub(crate) path: RedirectPath,
}

/// The filters of a rule, read.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadFilters {
    /// `None` when there are none.
    pub(crate) filters: Option<Arc<Filters>>,
    /// What the backend sees as Host (`URLRewrite.hostname`). Not a plugin: an upstream sets it.
    pub(crate) host: Option<Hostname>,
}

/// Reads filters, where they stand and what the rule matches in hand.
#[derive(Debug)]
pub(crate) struct FilterReader<'r> {
    matches: &'r [Match],
    refusals: &'r mut Vec<Refusal>,
    filters: Filters,
    host: Option<Hostname>,
    /// Types met so far, in the list being read.
    seen: Vec<&'static str>,
}

impl<'r> FilterReader<'r> {
    pub(crate) fn new(matches: &'r [Match], refusals: &'r mut Vec<Refusal>) -> Self {
        Self { matches, refusals, filters: Filters::default(), host: None, seen: Vec::new() }
    }

    /// Reads one list, after those read before: first the rule's, then that of its only backend.
    pub(crate) fn read(&mut self, list: &[api::HttpRouteRulesFilters], at: &FieldPath) {
        self.seen.clear();
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

    pub(crate) fn finish(self) -> ReadFilters {
        let Self { filters, host, .. } = self;
        ReadFilters { filters: (filters != Filters::default()).then(|| Arc::new(filters)), host }
    }

    fn refuse(&mut self, at: FieldPath, message: impl Into<String>) {
        self.refusals.push(Refusal::new(at, Reason::UnsupportedValue, message));
    }

    fn read_one(&mut self, filter: &api::HttpRouteRulesFilters, at: &FieldPath) {
        use api::HttpRouteRulesFiltersType as Type;
        let name = filter_name(&filter.r#type);
        if self.seen.contains(&name) && !matches!(filter.r#type, Type::RequestMirror | Type::ExtensionRef) {
            return self.refuse(at.child("type"), format!("A rule has one {name} filter at most."));
        }
        self.seen.push(name);
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
                self.read_redirect(filter.request_redirect.as_ref()?, &at.child("requestRedirect"));
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
            Type::RequestMirror => self.refuse(at.child("type"), "PingSIX cannot mirror requests."),
            Type::ExternalAuth => {
                self.refuse(at.child("type"), "PingSIX cannot ask another service for authorisation.");
            }
            Type::ExtensionRef => {
                self.refuse(at.child("extensionRef"), "There are no filters of our own to refer to.");
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
            return self.refuse(at.clone(), "A rule that redirects sends nothing to a backend.");
        }
        if let Some(hostname) = &rewrite.hostname {
            match (Hostname::parse(hostname), &self.host) {
                (Ok(parsed), None) if !parsed.is_wildcard() => self.host = Some(parsed),
                (Ok(_), Some(_)) => {
                    self.refuse(at.child("hostname"), "The rule's own filter already sets it.");
                }
                (Ok(_) | Err(_), _) => {
                    self.refuse(at.child("hostname"), format!("\"{hostname}\" is not the name of a host."));
                }
            }
        }
        let Some(path) = &rewrite.path else { return };
        let at = at.child("path");
        let full = path.replace_full_path.as_deref();
        let prefix = path.replace_prefix_match.as_deref();
        let is_full = path.r#type == api::HttpRouteRulesFiltersUrlRewritePathType::ReplaceFullPath;
        if self.filters.path.is_some() {
            return self.refuse(at, "The rule's own filter already rewrites the path.");
        }
        self.filters.path = self.read_path(is_full, full, prefix, &at);
        if let Some(RedirectPath::Prefix { replacement, .. }) = &self.filters.path
            && replacement.contains('$')
        {
            // A template has no way to write a dollar sign before a digit (`src/utils/request.rs`).
            self.refuse(at.child("replacePrefixMatch"), "PingSIX takes $ for a reference; write %24.");
        }
    }

    fn read_redirect(&mut self, redirect: &api::HttpRouteRulesFiltersRequestRedirect, at: &FieldPath) {
        if self.filters.path.is_some() || self.host.is_some() {
            return self.refuse(at.clone(), "A rule that redirects sends nothing to a backend.");
        }
        let status = match redirect.status_code {
            None => Some(RedirectStatus::default()),
            Some(code) => u16::try_from(code).ok().and_then(RedirectStatus::from_u16),
        };
        let status = status.unwrap_or_else(|| {
            self.refuse(at.child("statusCode"), "A redirect has status 301, 302, 303, 307 or 308.");
            RedirectStatus::default()
        });
        let scheme = redirect.scheme.as_ref().map(|scheme| match scheme {
            api::HttpRouteRulesFiltersRequestRedirectScheme::Http => RedirectScheme::Http,
            api::HttpRouteRulesFiltersRequestRedirectScheme::Https => RedirectScheme::Https,
        });
        let hostname = redirect.hostname.as_deref().and_then(|name| {
            let hostname = RedirectHostname::new(&name.to_ascii_lowercase());
            if hostname.is_none() {
                self.refuse(at.child("hostname"), format!("\"{name}\" is not the name of a host."));
            }
            hostname
        });
        let port = redirect.port.and_then(|port| {
            let number = u16::try_from(port).ok().and_then(NonZeroU16::new);
            if number.is_none() {
                self.refuse(at.child("port"), format!("{port} is not a port number."));
            }
            number
        });
        let path = redirect.path.as_ref().and_then(|path| {
            let full = path.replace_full_path.as_deref();
            let prefix = path.replace_prefix_match.as_deref();
            let is_full = path.r#type == api::HttpRouteRulesFiltersRequestRedirectPathType::ReplaceFullPath;
            self.read_path(is_full, full, prefix, &at.child("path"))
        });
        let path = path.unwrap_or(RedirectPath::Keep);
        self.filters.redirect = Some(Redirect { status, scheme, hostname, port, path });
    }

    /// Reads a path modifier (Gateway API `HTTPPathModifier`).
    fn read_path(
        &mut self,
        is_full: bool,
        full: Option<&str>,
        prefix: Option<&str>,
        at: &FieldPath,
    ) -> Option<RedirectPath> {
        if is_full {
            let Some(value) = full else {
                self.refuse(at.child("replaceFullPath"), "A modifier of type ReplaceFullPath needs it.");
                return None;
            };
            return Some(RedirectPath::Full(value.to_owned()));
        }
        let Some(replacement) = prefix else {
            self.refuse(at.child("replacePrefixMatch"), "A modifier of type ReplacePrefixMatch needs it.");
            return None;
        };
        // Several matches with one prefix would do, but the API does not take them either.
        let [Match { path, .. }] = self.matches else {
            self.refuse(at.child("type"), "ReplacePrefixMatch needs a rule with exactly one match.");
            return None;
        };
        if path.kind != PathKind::Prefix {
            self.refuse(at.child("type"), "ReplacePrefixMatch needs a match of type PathPrefix.");
            return None;
        }
        Some(RedirectPath::Prefix { matched: path.stem().to_owned(), replacement: replacement.to_owned() })
    }
}

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
