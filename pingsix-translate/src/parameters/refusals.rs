//! Refusals of a PingsixProxy by itself.
//!
//! The API server finds most of them by schema. Manifest files have not been through the API server, and the schema has
//! gaps.

use std::collections::BTreeMap;

use garde::Validate as _;
use k8s_openapi::api::core::v1::{Affinity, PodTemplateSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{attached, sink, telemetry};
use crate::crd::{Attached, FreeObject, Managed, PingsixProxy, ServiceType, SinkScheme, StatusUrl};
use crate::infrastructure::INGRESS_PORTS;
use crate::model::{FieldPath, Hostname, Reason, Refusal};

/// All refusals of a PingsixProxy, in the order of the checks.
pub(crate) fn refusals(proxy: &PingsixProxy) -> Vec<Refusal> {
    let spec = FieldPath::new("spec");
    let mut refusals = Refusals(Vec::new());
    match (&proxy.spec.attached, &proxy.spec.managed) {
        (Some(_), None) | (None, Some(_)) => {}
        (Some(_), Some(_)) => refusals.add(
            &spec,
            "The parameters need one of attached and managed, and \
         not both.",
        ),
        (None, None) => refusals.add(&spec, "The parameters need one of attached and managed."),
    }
    if let Err(report) = proxy.spec.validate() {
        for (path, error) in report.iter() {
            refusals.add(&api_path(&path.to_string()), format!("The value cannot be used: {error}."));
        }
    }
    if let Some(attached) = &proxy.spec.attached {
        refusals.attached(&spec.child("attached"), attached);
    }
    if let Some(managed) = &proxy.spec.managed {
        refusals.managed(&spec.child("managed"), managed);
    }
    refusals.0.extend(telemetry::refusals(proxy));
    refusals.0
}

/// The refusal of attached data planes, of which an IngressClass has one for each port.
pub(super) fn of_ingress_ports(attached: &Attached) -> Option<Refusal> {
    let at = FieldPath::new("spec").child("attached");
    let scheme = attached.sink.as_ref().and_then(|sink| SinkScheme::split(&sink.url));
    if scheme.is_some_and(|(scheme, _)| scheme.is_admin) {
        let message =
            "An Admin API holds one data plane, and with the layout PerPort an IngressClass has two.";
        return Some(invalid(at.child("sink").child("url"), message));
    }
    let ports = INGRESS_PORTS.map(|(port, _)| port);
    let of_others = |url: &StatusUrl| url.port.is_some_and(|port| !ports.contains(&port));
    let index = attached.status_urls.iter().position(of_others)?;
    let message =
        format!("An IngressClass has the ports {}.", ports.map(|port| port.to_string()).join(" and "));
    Some(invalid(at.child("statusUrls").index(index).child("port"), message))
}

/// The refusal of a field of a PingsixProxy.
fn invalid(at: FieldPath, message: impl Into<String>) -> Refusal {
    Refusal::new(at, Reason::InvalidParameters, message)
}

/// The refusal of a combination of fields of a Service, with its field.
pub(super) const fn service(
    kind: ServiceType,
    has_load_balancer_class: bool,
    has_external_traffic_policy: bool,
) -> Option<(&'static str, &'static str)> {
    match kind {
        ServiceType::NodePort | ServiceType::ClusterIp if has_load_balancer_class => {
            Some(("loadBalancerClass", "The field is for Services of type LoadBalancer."))
        }
        ServiceType::ClusterIp if has_external_traffic_policy => Some((
            "externalTrafficPolicy",
            "The field is for Services of type LoadBalancer or \
             NodePort.",
        )),
        ServiceType::LoadBalancer | ServiceType::NodePort | ServiceType::ClusterIp => None,
    }
}

struct Refusals(Vec<Refusal>);

impl Refusals {
    fn add(&mut self, at: &FieldPath, message: impl Into<String>) {
        self.0.push(invalid(at.clone(), message));
    }

    fn attached(&mut self, at: &FieldPath, attached: &Attached) {
        for (index, address) in attached.addresses.iter().enumerate() {
            if attached::address(address).is_none() {
                let at = at.child("addresses").index(index).child("value");
                self.add(&at, format!("\"{}\" is no address of this type.", address.value));
            }
        }
        if let Some((field, message)) = attached.sink.as_ref().and_then(sink::refusal) {
            self.add(&at.child("sink").child(field), message);
        }
    }

    fn managed(&mut self, at: &FieldPath, managed: &Managed) {
        self.resources(&at.child("resources"), managed.resources.as_ref());
        let sidecar = managed.sidecar.as_ref().and_then(|sidecar| sidecar.resources.as_ref());
        self.resources(&at.child("sidecar").child("resources"), sidecar);
        if let Some(service) = &managed.service
            && let Some((field, message)) = service_refusal(service)
        {
            self.add(&at.child("service").child(field), message);
        }
        if let Some(budget) = &managed.disruption_budget {
            let at = at.child("disruptionBudget");
            match (&budget.min_available, &budget.max_unavailable) {
                (Some(value), None) => self.share(&at.child("minAvailable"), value),
                (None, Some(value)) => self.share(&at.child("maxUnavailable"), value),
                (Some(_), Some(_)) | (None, None) => {
                    self.add(
                        &at,
                        "The field needs one of minAvailable and maxUnavailable, and not \
                     both.",
                    );
                }
            }
        }
        if let Some(name) = &managed.service_account_name
            && !Hostname::parse(name).is_ok_and(|name| !name.is_wildcard())
        {
            self.add(&at.child("serviceAccountName"), format!("No ServiceAccount can be called \"{name}\"."));
        }
        let affinity = managed.scheduling.as_ref().and_then(|scheduling| scheduling.affinity.as_ref());
        self.decode::<Affinity>(&at.child("scheduling").child("affinity"), affinity);
        self.decode::<PodTemplateSpec>(&at.child("podTemplatePatch"), managed.pod_template_patch.as_ref());
    }

    /// A number of Pods, or a share of them.
    fn share(&mut self, at: &FieldPath, value: &IntOrString) {
        let is_good = match value {
            IntOrString::Int(number) => *number >= 0,
            IntOrString::String(text) => text
                .strip_suffix('%')
                .is_some_and(|number| number.parse::<u8>().is_ok_and(|share| share <= 100)),
        };
        if !is_good {
            self.add(at, "The value must be a number or a percentage of Pods.");
        }
    }

    fn resources(&mut self, at: &FieldPath, resources: Option<&ResourceRequirements>) {
        let Some(resources) = resources else { return };
        for (field, quantities) in [("limits", &resources.limits), ("requests", &resources.requests)] {
            let quantities = quantities.iter().flat_map(BTreeMap::iter);
            for (name, Quantity(quantity)) in quantities {
                if !is_quantity(quantity) {
                    let at = at.child(field).child(name);
                    self.add(&at, format!("\"{quantity}\" is no quantity, such as 500m or 256Mi."));
                }
            }
        }
    }

    /// Checks that a part of a Pod can be decoded.
    fn decode<T: DeserializeOwned>(&mut self, at: &FieldPath, object: Option<&FreeObject>) {
        let Some(object) = object else { return };
        if let Err(error) = serde_path_to_error::deserialize::<_, T>(Value::Object(object.0.clone())) {
            let inner = error.path().to_string();
            let at = if inner == "." { at.clone() } else { at.child(&inner) };
            self.add(&at, format!("The patch does not fit the object: {}.", error.inner()));
        }
    }
}

fn service_refusal(managed: &crate::crd::ManagedService) -> Option<(&'static str, &'static str)> {
    // Without a type, that of the class counts.
    service(managed.kind?, managed.load_balancer_class.is_some(), managed.external_traffic_policy.is_some())
}

/// Whether a text is a quantity of Kubernetes that is not negative: a number with a suffix.
fn is_quantity(text: &str) -> bool {
    let end = text.find(|sign: char| !sign.is_ascii_digit() && sign != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let is_exponent =
        |suffix: &str| suffix.strip_prefix(['e', 'E']).is_some_and(|exponent| exponent.parse::<i8>().is_ok());
    number.chars().any(|sign| sign.is_ascii_digit())
        && number.matches('.').count() <= 1
        && (["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
            .contains(&suffix)
            || is_exponent(suffix))
}

/// The path of a field in the API, from that in the Rust types.
pub(crate) fn api_path(path: &str) -> FieldPath {
    let mut text = String::from("spec");
    for segment in path.split('.') {
        text.push('.');
        // `type` is a keyword of Rust.
        let segment = if segment == "kind" { "type" } else { segment };
        let mut is_new = false;
        for sign in segment.chars() {
            match sign {
                '_' => is_new = true,
                _ if is_new => {
                    text.extend(sign.to_uppercase());
                    is_new = false;
                }
                _ => text.push(sign),
            }
        }
    }
    FieldPath::new(&text)
}
