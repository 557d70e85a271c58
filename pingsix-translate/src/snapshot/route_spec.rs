//! The kinds of routes and the common parts of their specs: one table.

use std::collections::BTreeSet;
use std::sync::Arc;

use gateway_api::experimental::grpcroutes::{GrpcRouteParentRefs, GrpcRouteSpec};
use gateway_api::experimental::httproutes::{HttpRouteParentRefs, HttpRouteSpec};
use gateway_api::experimental::tcproutes::{TcpRouteParentRefs, TcpRouteSpec};
use gateway_api::experimental::tlsroutes::{TlsRouteParentRefs, TlsRouteSpec};
use gateway_api::experimental::udproutes::{UdpRouteParentRefs, UdpRouteSpec};

use super::metadata::{Identified as _, Metadata};
use super::objects::{Object, Objects};
use super::part::{Part, any_of};
use super::routes::{ApiObject, RouteObject, RouteSpec};
use super::wire;
use crate::model::{Kind, ObjectKey, ObjectName, ParentRef};

/// A reference to a backend, of any generated type.
struct BackendTarget<'a> {
    group: Option<&'a str>,
    kind: Option<&'a str>,
    namespace: Option<&'a str>,
    name: &'a str,
}

impl BackendTarget<'_> {
    /// The Service of a reference in a route of `namespace`.
    fn service(&self, namespace: &Arc<str>) -> Option<ObjectName> {
        let is_service = self.group.unwrap_or_default().is_empty()
            && self.kind.is_none_or(|kind| kind == Kind::Service.as_str());
        let written = self.namespace.map(Arc::<str>::from);
        is_service.then(|| ObjectName::new(written.unwrap_or_else(|| namespace.clone()), self.name))
    }
}

macro_rules! backend_target {
    ($backend:expr) => {{
        let backend = $backend;
        BackendTarget {
            group: backend.group.as_deref(),
            kind: backend.kind.as_deref(),
            namespace: backend.namespace.as_deref(),
            name: &backend.name,
        }
    }};
}

/// The mirrors in a list of filters.
macro_rules! mirrors {
    ($filters:expr) => {{
        let mirrors = $filters.iter().flatten().filter_map(|filter| filter.request_mirror.as_ref());
        mirrors.map(|mirror| backend_target!(&mirror.backend_ref))
    }};
}

/// The backends of the spec of a route whose rules and backends have filters.
macro_rules! filtered {
    ($spec:expr) => {{
        let rules = $spec.rules.iter().flatten();
        rules.flat_map(|rule| {
            let backends = rule.backend_refs.iter().flatten();
            let of_backends = backends.flat_map(|backend| {
                std::iter::once(backend_target!(backend)).chain(mirrors!(backend.filters))
            });
            of_backends.chain(mirrors!(rule.filters))
        })
    }};
}

/// The backends of the spec of a route without filters.
macro_rules! plain {
    ($spec:expr) => {
        $spec.rules.iter().flat_map(|rule| &rule.backend_refs).map(|backend| backend_target!(backend))
    };
}

/// The names of the HTTPRouteFilters in the filters of a spec.
macro_rules! extensions {
    ($spec:expr) => {{
        let rules = $spec.rules.iter().flatten();
        let references = rules.flat_map(|rule| {
            let backends = rule.backend_refs.iter().flatten();
            let of_backends = backends.flat_map(|backend| backend.filters.iter().flatten());
            let of_backends = of_backends.filter_map(|filter| filter.extension_ref.as_ref());
            let of_backends = of_backends.map(|filter| (&filter.group, &filter.kind, &filter.name));
            let of_rule = rule.filters.iter().flatten().filter_map(|filter| filter.extension_ref.as_ref());
            of_rule.map(|filter| (&filter.group, &filter.kind, &filter.name)).chain(of_backends)
        });
        let named = references
            .filter(|(group, kind, _)| Kind::from_group_kind(group, kind) == Some(Kind::HttpRouteFilter));
        named.map(|(_, _, name)| name)
    }};
}

/// The same for routes of other kinds, which refer to no filters.
macro_rules! no_extensions {
    ($spec:expr) => {
        std::iter::empty::<&String>()
    };
}

macro_rules! routes {
    ($($kind:ident { $spec:ident, $parent_ref:ident, $references:ident, $extensions:ident })+) => {
        $(
            #[doc = concat!("A route with a [`", stringify!($spec), "`].")]
            pub type $kind = RouteObject<$spec>;

            impl RouteSpec for $spec {
                type Wire = wire::$kind;

                fn take_parent_refs(&mut self) -> Arc<[ParentRef]> {
                    let parents = self.parent_refs.take().unwrap_or_default().into_iter().enumerate();
                    parents
                        .map(|(index, parent)| ParentRef {
                            index,
                            group: parent.group,
                            kind: parent.kind,
                            namespace: parent.namespace,
                            name: parent.name,
                            section_name: parent.section_name,
                            port: parent.port,
                        })
                        .collect()
                }

                fn with_parent_refs(self, parent_refs: &[ParentRef]) -> Self {
                    let parents = parent_refs.iter().cloned().map(|parent| $parent_ref {
                        group: parent.group,
                        kind: parent.kind,
                        namespace: parent.namespace,
                        name: parent.name,
                        section_name: parent.section_name,
                        port: parent.port,
                    });
                    let parents: Vec<_> = parents.collect();
                    Self { parent_refs: Some(parents).filter(|parents| !parents.is_empty()), ..self }
                }

                fn services(&self, namespace: &Arc<str>) -> Box<[ObjectName]> {
                    let references = $references!(self).filter_map(|reference| reference.service(namespace));
                    references.collect::<BTreeSet<_>>().into_iter().collect()
                }

                fn filters(&self, namespace: &Arc<str>) -> Box<[ObjectName]> {
                    let names: BTreeSet<&String> = $extensions!(self).collect();
                    names.into_iter().map(|name| ObjectName::new(namespace.clone(), name.as_str())).collect()
                }
            }

            impl From<wire::$kind> for $kind {
                fn from(wire::$kind { metadata, spec, .. }: wire::$kind) -> Self {
                    Self::from(ApiObject { metadata, spec })
                }
            }
        )+

        any_of! {
            /// A route of any kind.
            AnyRoute { $($kind)+ }
        }

        impl AnyRoute {
            /// The kept part of `metadata`.
            pub fn metadata(&self) -> &Metadata {
                match self { $(Self::$kind(route) => &route.metadata,)+ }
            }

            /// `spec.parentRefs`, in order.
            pub fn parent_refs(&self) -> &Arc<[ParentRef]> {
                match self { $(Self::$kind(route) => &route.parent_refs,)+ }
            }

            /// The Services that backendRefs and mirrors name, existing or not; sorted, without repetitions.
            pub fn services(&self) -> &[ObjectName] {
                match self { $(Self::$kind(route) => route.services(),)+ }
            }

            /// The HTTPRouteFilters that filters name, existing or not; sorted, without repetitions.
            pub fn filters(&self) -> &[ObjectName] {
                match self { $(Self::$kind(route) => route.filters(),)+ }
            }
        }
    };
}

routes! {
    // The type of the spec, the type of its parentRefs, and the macros for its backends and its HTTPRouteFilters.
    HttpRoute { HttpRouteSpec, HttpRouteParentRefs, filtered, extensions }
    GrpcRoute { GrpcRouteSpec, GrpcRouteParentRefs, filtered, no_extensions }
    TlsRoute { TlsRouteSpec, TlsRouteParentRefs, plain, no_extensions }
    TcpRoute { TcpRouteSpec, TcpRouteParentRefs, plain, no_extensions }
    UdpRoute { UdpRouteSpec, UdpRouteParentRefs, plain, no_extensions }
}

impl Objects {
    /// Every route, by kind, then by name.
    pub fn routes(&self) -> impl Iterator<Item = AnyRoute> {
        Kind::routes().flat_map(|kind| self.of_kind(kind)).filter_map(AnyRoute::of)
    }
}
