//! Validation of clients by a Gateway: `spec.tls.frontend`.

use gateway_api::gateways as api;

use super::{AuthorityRef, GatewaySpec};
use crate::model::{FieldPath, ObjectName};

/// The references to authorities in a validation of either generated type.
macro_rules! authorities {
    ($validation:expr) => {{
        let references = $validation.ca_certificate_refs.iter().map(|reference| AuthorityRef {
            group: &reference.group,
            kind: &reference.kind,
            namespace: reference.namespace.as_deref(),
            name: &reference.name,
        });
        references.collect()
    }};
}

/// The validation of client certificates on a port.
#[derive(Clone, Debug)]
pub(crate) struct FrontendValidation<'a> {
    /// The field: `default` or an element of `perPort`.
    pub(crate) at: FieldPath,
    authorities: Vec<AuthorityRef<'a>>,
    is_insecure: bool,
}

impl<'a> FrontendValidation<'a> {
    /// The validation on a port, if there is one.
    pub(crate) fn of(gateway: &'a GatewaySpec, port: i32) -> Option<Self> {
        let frontend = gateway.tls.as_ref()?.frontend.as_ref()?;
        let per_port = frontend.per_port.as_deref().unwrap_or_default();
        match per_port.iter().enumerate().find(|(_, per_port)| per_port.port == port) {
            // An element replaces the default for its port, also without a validation.
            Some((index, per_port)) => Self::of_port(index, per_port),
            None => Self::by_default(frontend),
        }
    }

    /// All validations, also of ports without a listener.
    pub(crate) fn all(gateway: &'a GatewaySpec) -> Vec<Self> {
        let Some(frontend) = gateway.tls.as_ref().and_then(|tls| tls.frontend.as_ref()) else {
            return Vec::new();
        };
        let per_port = frontend.per_port.iter().flatten().enumerate();
        let of_ports = per_port.filter_map(|(index, per_port)| Self::of_port(index, per_port));
        Self::by_default(frontend).into_iter().chain(of_ports).collect()
    }

    fn by_default(frontend: &'a api::GatewayTlsFrontend) -> Option<Self> {
        let validation = frontend.default.validation.as_ref()?;
        Some(Self {
            at: at().child("default"),
            authorities: authorities!(validation),
            is_insecure: validation.mode
                == Some(api::GatewayTlsFrontendDefaultValidationMode::AllowInsecureFallback),
        })
    }

    fn of_port(index: usize, per_port: &'a api::GatewayTlsFrontendPerPort) -> Option<Self> {
        let validation = per_port.tls.validation.as_ref()?;
        Some(Self {
            at: at().child("perPort").index(index).child("tls"),
            authorities: authorities!(validation),
            is_insecure: validation.mode
                == Some(api::GatewayTlsFrontendPerPortTlsValidationMode::AllowInsecureFallback),
        })
    }

    /// The references to authorities, each with its field.
    pub(crate) fn authorities(&self) -> impl ExactSizeIterator<Item = (FieldPath, &AuthorityRef<'a>)> {
        let at = self.at.child("validation").child("caCertificateRefs");
        self.authorities.iter().enumerate().map(move |(index, authority)| (at.index(index), authority))
    }

    /// The field that lets clients in without a valid certificate.
    pub(crate) fn insecure_field(&self) -> Option<FieldPath> {
        self.is_insecure.then(|| self.at.child("validation").child("mode"))
    }

    /// The ConfigMaps to which it refers, existing or not.
    pub(super) fn config_maps<'s>(&'s self, namespace: &'s str) -> impl Iterator<Item = ObjectName> + 's {
        self.authorities
            .iter()
            .filter(|authority| authority.is_config_map())
            .map(move |authority| authority.target(namespace))
    }
}

fn at() -> FieldPath {
    FieldPath::new("spec").child("tls").child("frontend")
}
