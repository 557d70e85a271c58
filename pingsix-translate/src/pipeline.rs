//! The translation of one snapshot, stage by stage.

mod cache;
mod current_problems;
mod diff;
mod gateway;
mod gateway_context;
mod infrastructure;
mod ingress;
mod owner;
mod protected_services;
mod route_slab;
mod shadowed_rules;
mod shared;
mod translation;

#[cfg(doc)]
use std::sync::Arc;

pub use ingress::{read_annotations, read_custom_headers, read_regex_uri};
pub use translation::Translation;

use self::cache::TranslationCache;
use self::gateway::GatewayOwner;
use self::ingress::{IngressClassOwner, of_another_controller};
use self::owner::Owner;
#[cfg(doc)]
use crate::SharedMap;
use crate::model::{Options, Problem};
use crate::small_set::SmallSet;
use crate::snapshot::{IngressSnapshot, OwnerSnapshot, Snapshot};

/// Translates what one Gateway may see into PingSIX configuration and verdicts.
///
/// Translation is total and deterministic: every snapshot has a result, and the same snapshot and options give the
/// same bytes. A rule that cannot be honoured answers its requests with an error and is named in the verdicts. All
/// other rules are served.
pub fn translate(snapshot: &Snapshot, options: &Options) -> Translation {
    Translator::new(options.clone()).translate(snapshot)
}

/// Translates what one IngressClass may see into PingSIX configuration and verdicts.
///
/// As [`translate`], it is total and deterministic. A class of another controller has no data plane; one of ours that
/// cannot be served has an empty one.
pub fn translate_ingress(snapshot: &IngressSnapshot, options: &Options) -> Translation {
    Translator::new(options.clone()).translate_ingress(snapshot)
}

/// Translates one owner of data planes repeatedly, at a cost in proportion to the changes.
///
/// Each result is the one that [`translate`] or [`translate_ingress`] gives, byte for byte. Objects count as unchanged
/// when they are the same [`Arc`]s as the last time; results share what is the same, see [`SharedMap::changes`].
///
/// The comparison with the last snapshot skips the parts that both share, so it takes hardly any time for a changed
/// copy of the last snapshot. The cost of a change depends on its kind:
///
/// - EndpointSlices: the endpoints, and the routes of a port that gains its first endpoint or loses its last one;
/// - routes, Ingresses and Services: attachment and resolution of these routes and of those that refer to the
///   Services;
/// - Secrets, Namespaces, ReferenceGrants, policies and changes of listeners that keep hosts, ports and names: all
///   listeners are judged, and the routes with another result are attached again;
/// - Ingresses that name other hosts than before: the other Ingresses of these hosts, if several namespaces name
///   them;
/// - Secrets and `spec.tls` of Ingresses: all of `spec.tls`.
///
/// Documents are compiled and written in proportion to the difference of the result. In the cases that `lower/change.rs`
/// names, all documents of a data plane are compiled. Other changes of listeners, and changes that concern most of the
/// routes, take a full translation.
#[derive(Debug)]
pub struct Translator {
    options: Options,
    cache: Option<AnyTranslationCache>,
    mode: TranslationMode,
}

/// The cache of the last translation, by the kind of its owner.
#[derive(Debug)]
enum AnyTranslationCache {
    Gateway(Box<TranslationCache<GatewayOwner>>),
    IngressClass(Box<TranslationCache<IngressClassOwner>>),
}

/// The mode of a translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranslationMode {
    /// All routes were attached, or all documents of a data plane were compiled.
    Full,
    /// An incremental translation.
    Incremental {
        /// The number of routes that were attached and whose references were resolved.
        routes: usize,
    },
}

impl Translator {
    /// A translator without a last translation.
    pub const fn new(options: Options) -> Self {
        Self { options, cache: None, mode: TranslationMode::Full }
    }

    /// As [`translate`].
    pub fn translate(&mut self, snapshot: &Snapshot) -> Translation {
        let cache = match self.cache.take() {
            Some(AnyTranslationCache::Gateway(cache)) => Some(cache),
            Some(AnyTranslationCache::IngressClass(_)) | None => None,
        };
        let (translation, cache, mode) = translate_incrementally_or_full(cache, snapshot, &self.options);
        (self.cache, self.mode) = (Some(AnyTranslationCache::Gateway(cache)), mode);
        translation
    }

    /// As [`translate_ingress`].
    pub fn translate_ingress(&mut self, snapshot: &IngressSnapshot) -> Translation {
        let cache = match self.cache.take() {
            Some(AnyTranslationCache::IngressClass(cache)) => Some(cache),
            Some(AnyTranslationCache::Gateway(_)) | None => None,
        };
        if let Some(translation) = of_another_controller(snapshot, &self.options) {
            self.mode = TranslationMode::Full;
            return translation;
        }
        let (translation, cache, mode) = translate_incrementally_or_full(cache, snapshot, &self.options);
        (self.cache, self.mode) = (Some(AnyTranslationCache::IngressClass(cache)), mode);
        translation
    }

    /// As [`translate`] or [`translate_ingress`].
    pub fn translate_owner(&mut self, snapshot: &OwnerSnapshot) -> Translation {
        match snapshot {
            OwnerSnapshot::Gateway(snapshot) => self.translate(snapshot),
            OwnerSnapshot::Ingress(snapshot) => self.translate_ingress(snapshot),
        }
    }

    /// The mode of the last translation.
    pub const fn last_mode(&self) -> TranslationMode {
        self.mode
    }

    /// The number of Route documents that the last translation wrote again; 0 after a full translation.
    pub fn routes_written(&self) -> usize {
        match &self.cache {
            Some(AnyTranslationCache::Gateway(cache)) => cache.routes_written(),
            Some(AnyTranslationCache::IngressClass(cache)) => cache.routes_written(),
            None => 0,
        }
    }
}

/// Translates incrementally if the cache allows it, and in full otherwise. Returns the new cache.
fn translate_incrementally_or_full<O: Owner>(
    cache: Option<Box<TranslationCache<O>>>,
    snapshot: &O::Snapshot,
    options: &Options,
) -> (Translation, Box<TranslationCache<O>>, TranslationMode) {
    if let Some(mut cache) = cache
        && let Ok((translation, mode)) = cache.change(snapshot, options)
    {
        return (translation, cache, mode);
    }
    let (cache, translation) = TranslationCache::new(snapshot, options);
    (translation, Box::new(cache), TranslationMode::Full)
}

/// The side results of a verdict on a route.
#[derive(Debug, Default)]
struct RouteOutcome {
    problems: Vec<Problem>,
    /// The listeners that count the route as attached.
    counted: SmallSet<usize>,
}
