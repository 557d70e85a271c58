//! An executable model of PingSIX's router: the outcome of a request with a configuration and an order of insertion.
//!
//! PingSIX inserts its routes in a random order, which differs at every publication. Before the insertion of a
//! pattern, PingSIX looks the pattern up *as if it were a request*. A pattern that an earlier one matches gets no
//! entry, and its route joins the earlier entry. So the order of insertion is an argument here. The model uses the
//! same library, matchit 0.8.4.
//!
//! PingSIX: `src/proxy/route.rs`, `src/utils/request.rs`, `src/service/http.rs`.

mod cors;
mod outcome;
mod pattern;
mod redirect;
mod request;
mod sent;
mod split;

use std::sync::Arc;

use smallvec::SmallVec;

pub use self::outcome::Outcome;
pub(crate) use self::pattern::{PatternError, inspect_pattern, reverse_host};
pub use self::pattern::{is_host_pattern, is_path_pattern};
pub use self::request::{Request, conditions_hold};
pub use self::sent::SentRequest;
pub use self::split::{Candidate, UpstreamRef};

use super::plugin::{Cors, PluginConfig};
use super::{Config, DocumentKey, Route, Service};

/// A route with its prepared patterns, for any number of insertion orders.
#[derive(Debug)]
pub(super) struct Row<'c> {
    key: &'c DocumentKey,
    route: &'c Route,
    service: Option<&'c Service>,
    /// The host patterns in the written and in the stored form; empty for a route that serves any host.
    hosts: SmallVec<[(&'c str, String); 1]>,
    answers_preflight: bool,
}

/// The routes of a configuration, ready to be inserted in any order, in time proportional to their patterns.
#[derive(Clone, Debug)]
pub struct RouteTable<'c> {
    config: &'c Config,
    rows: Arc<[Row<'c>]>,
}

impl<'c> RouteTable<'c> {
    /// Collects the routes of a configuration in id order. A route without hosts takes those of its service.
    pub fn new(config: &'c Config) -> Self {
        let rows = config.routes().map(|(key, route)| {
            let service = route.service_id.as_deref().and_then(|id| config.service(id));
            let hosts = config.hosts_of(route);
            Row {
                key,
                route,
                service,
                hosts: hosts.iter().map(|host| (host.as_str(), reverse_host(host))).collect(),
                answers_preflight: route.plugins.contains(Cors::NAME)
                    || service.is_some_and(|service| service.plugins.contains(Cors::NAME)),
            }
        });
        Self { config, rows: rows.collect() }
    }

    /// The number of routes, which is the bound of the indexes of [`Self::insert_in`].
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no routes.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Builds the router by inserting the routes in an order, given as indexes into the id order. An index that
    /// is out of range is skipped; a route whose index does not occur is absent.
    ///
    /// # Errors
    ///
    /// [`InsertionError`] for the first pattern that PingSIX would fail on in this order.
    pub fn insert_in(&self, order: impl IntoIterator<Item = usize>) -> Result<Router<'c>, InsertionError> {
        let mut router =
            Router { table: self.clone(), any_host: matchit::Router::new(), hosts: matchit::Router::new() };
        for index in order {
            if let Some(row) = self.rows.get(index) {
                router.insert(index, row)?;
            }
        }
        Ok(router)
    }
}

/// The routes of one matcher entry, by descending priority and then by insertion.
type Entry = SmallVec<[u32; 4]>;

type PathRouter = matchit::Router<Entry>;

/// PingSIX's router after the routes were inserted in one order.
#[derive(Clone)]
pub struct Router<'c> {
    table: RouteTable<'c>,
    any_host: PathRouter,
    hosts: matchit::Router<PathRouter>,
}

impl std::fmt::Debug for Router<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Router").field("routes", &self.table.len()).finish_non_exhaustive()
    }
}

impl<'c> Router<'c> {
    /// Builds the router of a configuration; see [`RouteTable::insert_in`]. Callers that try many orders keep
    /// the [`RouteTable`].
    ///
    /// # Errors
    ///
    /// As [`RouteTable::insert_in`].
    pub fn build(config: &'c Config, order: impl IntoIterator<Item = usize>) -> Result<Self, InsertionError> {
        RouteTable::new(config).insert_in(order)
    }

    /// The configuration the router was built from.
    pub fn config(&self) -> &'c Config {
        self.table.config
    }

    /// The route that serves a request, or `None` for 404.
    ///
    /// `host` is without port, in any case; `path` is raw and without query. A host that is known but serves
    /// neither the path nor the method falls back to the routes without hosts, once.
    pub fn lookup(&self, host: Option<&str>, path: &str, method: &str) -> Option<&'c DocumentKey> {
        self.find(host, path, |row| row.route.allows(method)).map(|row| row.key)
    }

    /// The route that answers a CORS preflight without a route of [`Self::lookup`]: the first one that allows the
    /// requested method and has the `cors` plugin. A global rule may supply the plugin for all routes.
    pub fn lookup_preflight(
        &self,
        host: Option<&str>,
        path: &str,
        requested_method: &str,
    ) -> Option<&'c DocumentKey> {
        self.find_preflight(host, path, requested_method).map(|row| row.key)
    }

    /// The row of a route.
    fn row(&self, key: &DocumentKey) -> Option<&Row<'c>> {
        let index = self.table.rows.binary_search_by(|row| row.key.cmp(key)).ok()?;
        self.table.rows.get(index)
    }

    fn find_preflight(&self, host: Option<&str>, path: &str, method: &str) -> Option<&Row<'c>> {
        let global = self.table.config.global_rules().any(|(_, rule)| rule.plugins.contains(Cors::NAME));
        self.find(host, path, |row| (global || row.answers_preflight) && row.route.allows(method))
    }

    fn find(&self, host: Option<&str>, path: &str, serves: impl Fn(&Row<'c>) -> bool) -> Option<&Row<'c>> {
        // The host's own paths first, then, once, those of routes without hosts.
        let reversed = host.filter(|host| !host.is_empty()).map(pattern::reverse);
        let of_host = reversed.and_then(|host| {
            let paths = self.hosts.at(&host).ok()?.value;
            self.serving(paths, path, &serves)
        });
        of_host.or_else(|| self.serving(&self.any_host, path, &serves))
    }

    fn serving(
        &self,
        paths: &PathRouter,
        path: &str,
        serves: &impl Fn(&Row<'c>) -> bool,
    ) -> Option<&Row<'c>> {
        let entry = paths.at(path).ok()?;
        entry.value.iter().filter_map(|&index| self.table.rows.get(index as usize)).find(|row| serves(row))
    }

    fn insert(&mut self, index: usize, row: &Row<'c>) -> Result<(), InsertionError> {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let rows = &self.table.rows;
        if row.hosts.is_empty() {
            return insert_paths(&mut self.any_host, index, row, None, rows);
        }
        for (host, reversed) in &row.hosts {
            let error = |cause| InsertionError {
                route: row.key.clone(),
                host: None,
                pattern: (*host).to_owned(),
                cause,
            };
            if self.hosts.at(reversed).is_err() {
                inspect_pattern(reversed).map_err(|cause| error(InsertionCause::Pattern(cause)))?;
                self.hosts
                    .insert(reversed.as_str(), PathRouter::new())
                    .map_err(|conflicting| error(conflict(&conflicting)))?;
            }
            // PingSIX looks the new entry up again and panics without a result. This happens for patterns with escaped
            // braces, which are stored unescaped.
            let paths = self.hosts.at_mut(reversed).map_err(|_| error(InsertionCause::Unfindable))?;
            insert_paths(paths.value, index, row, Some(host), rows)?;
        }
        Ok(())
    }
}

fn insert_paths(
    paths: &mut PathRouter,
    index: u32,
    row: &Row<'_>,
    host: Option<&str>,
    rows: &[Row<'_>],
) -> Result<(), InsertionError> {
    for pattern in row.route.path_patterns() {
        if let Ok(entry) = paths.at_mut(pattern) {
            // A stable sort after every push equals insertion behind the last route of at least this priority.
            let priority = |index: &u32| rows.get(*index as usize).map_or(0, |row| row.route.priority);
            let at = entry.value.partition_point(|held| priority(held) >= row.route.priority);
            entry.value.insert(at, index);
            continue;
        }
        let error = |cause| InsertionError {
            route: row.key.clone(),
            host: host.map(str::to_owned),
            pattern: pattern.clone(),
            cause,
        };
        inspect_pattern(pattern).map_err(|cause| error(InsertionCause::Pattern(cause)))?;
        paths
            .insert(pattern.as_str(), Entry::from_slice(&[index]))
            .map_err(|conflicting| error(conflict(&conflicting)))?;
    }
    Ok(())
}

fn conflict(error: &matchit::InsertError) -> InsertionCause {
    InsertionCause::Conflict { with: error.to_string() }
}

/// A pattern that PingSIX fails to insert. PingSIX refuses the whole configuration then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pattern \"{pattern}\" of {route} cannot be inserted")]
pub struct InsertionError {
    /// The route whose pattern fails.
    pub route: DocumentKey,
    /// The host pattern whose paths were being inserted; `None` for the host patterns themselves and for
    /// routes without hosts.
    pub host: Option<String>,
    /// The host or path pattern as written.
    pub pattern: String,
    /// The reason.
    #[source]
    pub(crate) cause: InsertionCause,
}

/// The reason why a pattern cannot be inserted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InsertionCause {
    /// The pattern is invalid by itself.
    #[error(transparent)]
    Pattern(PatternError),
    /// The pattern conflicts with another one.
    #[error("{with}")]
    Conflict {
        /// The message of matchit, which quotes the other pattern.
        with: String,
    },
    /// PingSIX's worker panics, because a look-up does not find the inserted pattern.
    #[error("the pattern is stored in another form than it is looked up in")]
    Unfindable,
}

#[cfg(test)]
mod tests;
