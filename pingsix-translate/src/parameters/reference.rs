//! References of classes and Gateways to their parameters.

use crate::model::{FieldPath, Kind, ObjectName, PINGSIX_GROUP, Reason, Refusal};
use crate::snapshot::{Gateway, GatewayClass, IngressClass};

/// The field of a reference with the PingsixProxy that it names; `None` without a reference.
type ParametersRef = Result<Option<(FieldPath, ObjectName)>, Refusal>;

pub(super) fn named_by_class(class: &GatewayClass) -> ParametersRef {
    let Some(reference) = &class.spec.parameters_ref else { return Ok(None) };
    let at = FieldPath::new("spec").child("parametersRef");
    check_kind(&at, "group", &reference.group, &reference.kind)?;
    let namespace = reference.namespace.as_deref().ok_or_else(|| without_namespace(&at))?;
    Ok(Some((at, ObjectName::new(namespace, reference.name.as_str()))))
}

pub(super) fn named_by_gateway(gateway: &Gateway, namespace: &str) -> ParametersRef {
    let infrastructure = gateway.spec.infrastructure.as_ref();
    let Some(reference) = infrastructure.and_then(|infrastructure| infrastructure.parameters_ref.as_ref())
    else {
        return Ok(None);
    };
    let at = FieldPath::new("spec").child("infrastructure").child("parametersRef");
    check_kind(&at, "group", &reference.group, &reference.kind)?;
    Ok(Some((at, ObjectName::new(namespace, reference.name.as_str()))))
}

pub(super) fn named_by_ingress_class(class: &IngressClass) -> ParametersRef {
    let Some(reference) = class.spec.as_ref().and_then(|spec| spec.parameters.as_ref()) else {
        return Ok(None);
    };
    let at = FieldPath::new("spec").child("parameters");
    check_kind(&at, "apiGroup", reference.api_group.as_deref().unwrap_or_default(), &reference.kind)?;
    // The default scope is that of the cluster.
    if reference.scope.as_deref() != Some("Namespace") {
        let message =
            format!("A {} lives in a namespace, so the scope has to be Namespace.", Kind::PingsixProxy);
        return Err(Refusal::new(at.child("scope"), Reason::InvalidParameters, message));
    }
    let namespace = reference.namespace.as_deref().ok_or_else(|| without_namespace(&at))?;
    Ok(Some((at, ObjectName::new(namespace, reference.name.as_str()))))
}

fn check_kind(at: &FieldPath, group_field: &str, group: &str, kind: &str) -> Result<(), Refusal> {
    if Kind::from_group_kind(group, kind) == Some(Kind::PingsixProxy) {
        return Ok(());
    }
    let field = if group == PINGSIX_GROUP { "kind" } else { group_field };
    let message = format!(
        "Parameters of kind {kind} of group \"{group}\" are not supported; those of kind {} of group \
         \"{PINGSIX_GROUP}\" are.",
        Kind::PingsixProxy
    );
    Err(Refusal::new(at.child(field), Reason::InvalidParameters, message))
}

fn without_namespace(at: &FieldPath) -> Refusal {
    let message = format!("A {} lives in a namespace, which has to be named.", Kind::PingsixProxy);
    Refusal::new(at.child("namespace"), Reason::InvalidParameters, message)
}
