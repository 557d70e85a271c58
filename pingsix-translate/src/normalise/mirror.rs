//! References of `RequestMirror` filters. PingSIX mirrors no requests, but the references are checked like any other.

use std::sync::Arc;

use gateway_api::experimental::{grpcroutes as grpc, httproutes as http};

use super::backend_ref::{BackendPort, BackendRef, OtherKind, name_of};
use crate::model::FieldPath;

/// A backend that a filter wants copies of requests sent to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mirror {
    /// The field of the reference.
    pub(crate) at: FieldPath,
    /// The only backend of its filter; its weight is ignored.
    pub(crate) backend: BackendRef,
}

/// A filter of some generated type.
pub(super) trait MirrorFilter {
    /// The mirror backend in a route of `namespace`; `None` for another filter.
    fn mirror(&self, namespace: &Arc<str>) -> Option<BackendRef>;
}

macro_rules! mirror_filters {
    ($($filter:ty, $kind:ty;)+) => {$(
        impl MirrorFilter for $filter {
            fn mirror(&self, namespace: &Arc<str>) -> Option<BackendRef> {
                let mirror = self.request_mirror.as_ref().filter(|_| self.r#type == <$kind>::RequestMirror)?;
                let backend = &mirror.backend_ref;
                Some(BackendRef {
                    index: 0,
                    other: OtherKind::of(backend.group.as_deref(), backend.kind.as_deref()),
                    name: name_of(namespace, backend.namespace.as_deref(), &backend.name),
                    port: backend.port.map(BackendPort::Number),
                    weight: 1,
                })
            }
        }
    )+};
}

mirror_filters! {
    http::HttpRouteRulesFilters, http::HttpRouteRulesFiltersType;
    http::HttpRouteRulesBackendRefsFilters, http::HttpRouteRulesBackendRefsFiltersType;
    grpc::GrpcRouteRulesFilters, grpc::GrpcRouteRulesFiltersType;
    grpc::GrpcRouteRulesBackendRefsFilters, grpc::GrpcRouteRulesBackendRefsFiltersType;
}

/// The mirrors of one list of filters, which is at `at` in a route of `namespace`.
pub(super) fn mirrors<F: MirrorFilter>(
    namespace: &Arc<str>,
    list: &[F],
    at: &FieldPath,
) -> impl Iterator<Item = Mirror> {
    list.iter().enumerate().filter_map(|(index, filter)| {
        let backend = filter.mirror(namespace)?;
        Some(Mirror { at: at.index(index).child("requestMirror").child("backendRef"), backend })
    })
}
