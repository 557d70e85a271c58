//! The names to which objects refer, existing or not: a snapshot holds these objects, and a controller watches them.

use std::collections::BTreeSet;
use std::sync::Arc;

use gateway_api::gateways::GatewayListeners;

use super::endpoint_slice::EndpointSlice;
use super::frontend::FrontendValidation;
use super::kinds::{Gateway, GatewayClass, Ingress, IngressClass, ListenerSet};
use crate::crd::{AnnotationDialect, PingsixProxy, SecretObjectReference};
use crate::model::{Kind, ObjectKey, ObjectName};

/// The annotation of ingress-nginx with the Service that answers in place of one without endpoints.
pub(crate) const DEFAULT_BACKEND: &str = "default-backend";

/// The annotation of ingress-nginx with the Secret of basic authentication.
pub(crate) const AUTH_SECRET: &str = "auth-secret";

/// The annotation of ingress-nginx with the ConfigMap of response headers.
pub(crate) const CUSTOM_HEADERS: &str = "custom-headers";

/// The value of an annotation of ingress-nginx, without white space around it.
fn annotation<'i>(ingress: &'i Ingress, name: &str) -> Option<&'i str> {
    let annotations = ingress.metadata.annotations.as_ref()?;
    Some(annotations.get(&AnnotationDialect::IngressNginx.whole_name(name))?.trim())
}

/// The names of the Services of an Ingress's backends.
fn backends_of_ingress(ingress: &Ingress) -> impl Iterator<Item = &str> {
    let spec = ingress.spec.iter();
    let rules = spec.clone().flat_map(|spec| spec.rules.iter().flatten());
    let paths = rules.filter_map(|rule| rule.http.as_ref()).flat_map(|http| &http.paths);
    let default_backend = spec.filter_map(|spec| spec.default_backend.as_ref());
    let backends = paths.map(|path| &path.backend).chain(default_backend);
    backends.filter_map(|backend| backend.service.as_ref()).map(|service| service.name.as_str())
}

/// The Services that the backends of an Ingress and its annotations name, existing or not.
pub fn services_of_ingress(ingress: &Ingress, namespace: &Arc<str>) -> Vec<ObjectName> {
    let of_annotations = annotation(ingress, DEFAULT_BACKEND);
    backends_of_ingress(ingress)
        .chain(of_annotations.filter(|name| !name.is_empty() && !name.contains('/')))
        .map(|name| ObjectName::new(namespace.clone(), name))
        .collect()
}

/// The name of an object in a text of an Ingress that names its own namespace before a slash.
fn name_behind_namespace<'t>(namespace: &str, text: &'t str) -> Option<&'t str> {
    let name = text.strip_prefix(namespace)?.strip_prefix('/')?;
    Some(name).filter(|name| !name.is_empty() && !name.contains('/'))
}

/// The name of a Secret in a text of an Ingress: a name, or the namespace of the Ingress and a name with a slash between.
pub(crate) fn secret_named_by<'t>(namespace: &str, text: &'t str) -> Option<&'t str> {
    let plain = Some(text).filter(|name| !name.is_empty() && !name.contains('/'));
    plain.or_else(|| name_behind_namespace(namespace, text))
}

/// The Secrets and ConfigMaps that an Ingress names in its own namespace, in `spec.tls` and in annotations, existing or not.
pub fn references_of_ingress(ingress: &Ingress, namespace: &Arc<str>) -> Vec<ObjectKey> {
    let tls = ingress.spec.iter().flat_map(|spec| spec.tls.iter().flatten());
    let of_tls = tls.filter_map(|tls| tls.secret_name.as_deref());
    let of_tls = of_tls.filter(|name| !name.is_empty() && !name.contains('/'));
    let users = annotation(ingress, AUTH_SECRET).and_then(|text| secret_named_by(namespace, text));
    let secrets = of_tls.chain(users).map(|name| (Kind::Secret, name));
    // The namespace of a ConfigMap may not be left out.
    let headers = annotation(ingress, CUSTOM_HEADERS).and_then(|text| name_behind_namespace(namespace, text));
    let named = secrets.chain(headers.map(|name| (Kind::ConfigMap, name)));
    named.map(|(kind, name)| ObjectKey { kind, name: ObjectName::new(namespace.clone(), name) }).collect()
}

/// The Service of an EndpointSlice.
pub fn service_of_slice(slice: &EndpointSlice) -> Option<ObjectName> {
    slice.service.clone()
}

/// The Secrets and ConfigMaps that a Gateway names, of its listeners, for its backends and for its clients, existing or not.
pub fn references_of_gateway(gateway: &Gateway, namespace: &str) -> BTreeSet<ObjectKey> {
    let backend = gateway.spec.tls.as_ref().and_then(|tls| tls.backend.as_ref());
    let client_certificate = backend.and_then(|backend| backend.client_certificate_ref.as_ref());
    let client_certificate = client_certificate.map(|secret| {
        ObjectName::new(secret.namespace.as_deref().unwrap_or(namespace), secret.name.as_str())
    });
    let secrets = secrets_of_listeners(&gateway.spec.listeners, namespace).chain(client_certificate);
    let validations = FrontendValidation::all(&gateway.spec);
    let config_maps = validations.iter().flat_map(|validation| validation.config_maps(namespace));
    let config_maps = config_maps.map(|name| ObjectKey { kind: Kind::ConfigMap, name });
    secrets.map(secret).chain(config_maps).collect()
}

/// The Secrets that the listeners of a ListenerSet name, existing or not.
pub fn references_of_listener_set(set: &ListenerSet, namespace: &str) -> BTreeSet<ObjectKey> {
    secrets_of_listeners(&set.spec.listeners, namespace).map(secret).collect()
}

fn secret(name: ObjectName) -> ObjectKey {
    ObjectKey { kind: Kind::Secret, name }
}

fn secrets_of_listeners<'a>(
    listeners: &'a [GatewayListeners],
    namespace: &'a str,
) -> impl Iterator<Item = ObjectName> + 'a {
    let tls = listeners.iter().filter_map(|listener| listener.tls.as_ref());
    let references = tls.flat_map(|tls| tls.certificate_refs.iter().flatten());
    let secrets = references.filter(|reference| {
        reference.group.as_deref().unwrap_or_default().is_empty()
            && reference.kind.as_deref().is_none_or(|kind| kind == Kind::Secret.as_str())
    });
    secrets.map(move |secret| {
        ObjectName::new(secret.namespace.as_deref().unwrap_or(namespace), secret.name.as_str())
    })
}

/// The Secret of a reference in a policy; `None` if the reference is to another kind.
pub(super) fn named_secret(reference: &SecretObjectReference, namespace: &str) -> Option<ObjectKey> {
    named_referent(reference, namespace).filter(|key| key.kind == Kind::Secret)
}

/// The object of a reference in a policy, by default a Secret; `None` if the kind is unknown. An empty field counts as
/// absent.
pub(crate) fn named_referent(reference: &SecretObjectReference, namespace: &str) -> Option<ObjectKey> {
    fn given(field: Option<&String>) -> Option<&str> {
        field.map(String::as_str).filter(|value| !value.is_empty())
    }
    let SecretObjectReference { group, kind, name, namespace: own } = reference;
    let kind = given(kind.as_ref()).unwrap_or(Kind::Secret.as_str());
    let kind = Kind::from_group_kind(given(group.as_ref()).unwrap_or_default(), kind)?;
    let name = ObjectName::new(given(own.as_ref()).unwrap_or(namespace), name.as_str());
    Some(ObjectKey { kind, name })
}

/// The PingsixProxy that a GatewayClass names, existing or not.
pub fn proxy_of_class(class: &GatewayClass) -> Option<ObjectName> {
    let reference = class.spec.parameters_ref.as_ref()?;
    let namespace = reference.namespace.as_deref()?;
    named_proxy(&reference.group, &reference.kind, namespace, &reference.name)
}

/// The PingsixProxy that a Gateway names, existing or not.
pub fn proxy_of_gateway(gateway: &Gateway, namespace: &str) -> Option<ObjectName> {
    let reference = gateway.spec.infrastructure.as_ref()?.parameters_ref.as_ref()?;
    named_proxy(&reference.group, &reference.kind, namespace, &reference.name)
}

/// The PingsixProxy that an IngressClass names, existing or not.
pub fn proxy_of_ingress_class(class: &IngressClass) -> Option<ObjectName> {
    let reference = class.spec.as_ref()?.parameters.as_ref()?;
    let namespace =
        reference.namespace.as_deref().filter(|_| reference.scope.as_deref() == Some("Namespace"))?;
    named_proxy(
        reference.api_group.as_deref().unwrap_or_default(),
        &reference.kind,
        namespace,
        &reference.name,
    )
}

/// The Secrets that a PingsixProxy names in its own namespace, existing or not. Provisioning and publication use them;
/// translation does not.
pub fn references_of_proxy(proxy: &PingsixProxy, namespace: &Arc<str>) -> BTreeSet<ObjectKey> {
    let process = proxy.spec.managed.as_ref().and_then(|managed| managed.process.as_ref());
    let keyring = process.and_then(|process| process.data_encryption.as_ref());
    let keyring = keyring.map(|encryption| &encryption.keyring_secret_ref.name);
    let sink = proxy.spec.attached.as_ref().and_then(|attached| attached.sink.as_ref());
    let credentials = sink.and_then(|sink| sink.credentials_secret_ref.as_ref()).map(|secret| &secret.name);
    let named = keyring.into_iter().chain(credentials);
    named.map(|name| secret(ObjectName::new(namespace.clone(), name.as_str()))).collect()
}

fn named_proxy(group: &str, kind: &str, namespace: &str, name: &str) -> Option<ObjectName> {
    let is_proxy = Kind::from_group_kind(group, kind) == Some(Kind::PingsixProxy);
    is_proxy.then(|| ObjectName::new(namespace, name))
}
