//! Assumptions about the parameters of data planes that the input leaves open.

use std::collections::BTreeSet;
use std::sync::Arc;

use pingsix_translate::snapshot::{Gateway, GatewayClass, IngressClass, Object, class_of_ingress};
use pingsix_translate::{Kind, ObjectKey, ObjectName, Options, PINGSIX_GROUP};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Manifests, key};
use crate::arguments::Input;
use crate::finding::{Finding, Level, reason};

/// The namespace and the name of the parameters of a class that is assumed to be managed.
const ASSUMED: [&str; 2] = ["pingsix-system", "assumed-managed"];

impl Manifests {
    /// Takes the place of parameters that are not among the files: with `managed`, data planes are managed, and otherwise they are
    /// attached, with the layout of the options. The objects of a cluster are complete.
    pub(crate) fn assume_parameters(&mut self, input: &Input, options: &Options, managed: bool) {
        if matches!(input, Input::Files(_)) {
            self.assume(options, managed);
        }
    }

    fn assume(&mut self, options: &Options, managed: bool) {
        let [namespace, name] = ASSUMED;
        let controller = &options.controller_name;
        let of_class =
            || json!({"group": PINGSIX_GROUP, "kind": "PingsixProxy", "namespace": namespace, "name": name});
        let of_ingress_class = || {
            json!({
                "apiGroup": PINGSIX_GROUP, "kind": "PingsixProxy", "scope": "Namespace",
                "namespace": namespace, "name": name,
            })
        };
        if managed {
            self.add_missing_classes(controller);
        }
        let classes: Vec<Arc<GatewayClass>> =
            self.objects.gateway_classes().map(|(_, class)| class.clone()).collect();
        let ours: Vec<&Arc<GatewayClass>> =
            classes.iter().filter(|class| class.spec.controller_name == *controller).collect();
        for class in &ours {
            let named = class.spec.parameters_ref.as_ref();
            let proxy = named
                .filter(|named| is_proxy(&named.group, &named.kind))
                .map(|named| ObjectName::new(named.namespace.as_deref().unwrap_or_default(), &*named.name));
            let object =
                ObjectKey::new(Kind::GatewayClass, "", class.metadata.name.as_deref().unwrap_or_default());
            if self.lacks(&object, "spec.parametersRef", proxy, managed) || (managed && named.is_none()) {
                let now = managed.then(of_class);
                self.replace(&***class, &["spec"], "parametersRef", now, Object::GatewayClass);
            }
        }
        let ingress_classes: Vec<Arc<IngressClass>> =
            self.objects.ingress_classes().map(|(_, class)| class.clone()).collect();
        for class in ingress_classes {
            let spec = class.spec.as_ref().filter(|spec| spec.controller.as_ref() == Some(controller));
            let Some(spec) = spec else { continue };
            let named = spec.parameters.as_ref();
            let is_named =
                |group: &Option<String>, kind: &str| is_proxy(group.as_deref().unwrap_or_default(), kind);
            let proxy = named
                .filter(|named| is_named(&named.api_group, &named.kind))
                .map(|named| ObjectName::new(named.namespace.as_deref().unwrap_or_default(), &*named.name));
            let object =
                ObjectKey::new(Kind::IngressClass, "", class.metadata.name.as_deref().unwrap_or_default());
            if self.lacks(&object, "spec.parameters", proxy, managed) || (managed && named.is_none()) {
                let now = managed.then(of_ingress_class);
                self.replace(&*class, &["spec"], "parameters", now, Object::IngressClass);
            }
        }
        let gateways: Vec<(ObjectName, Arc<Gateway>)> =
            self.objects.gateways().map(|(name, gateway)| (name.clone(), gateway.clone())).collect();
        for (name, gateway) in gateways {
            let class = Some(&gateway.spec.gateway_class_name);
            if !ours.iter().any(|our| our.metadata.name.as_ref() == class) {
                continue;
            }
            let infrastructure = gateway.spec.infrastructure.as_ref();
            let named = infrastructure.and_then(|infrastructure| infrastructure.parameters_ref.as_ref());
            let proxy = named
                .filter(|named| is_proxy(&named.group, &named.kind))
                .map(|named| ObjectName::new(name.namespace.clone(), &*named.name));
            let object = key(Kind::Gateway, &name);
            if self.lacks(&object, "spec.infrastructure.parametersRef", proxy, managed) {
                self.replace(&*gateway, &["spec", "infrastructure"], "parametersRef", None, Object::Gateway);
            }
        }
        if managed {
            let proxy = json!({
                "apiVersion": "pingsix.io/v1alpha1", "kind": "PingsixProxy",
                "metadata": {"namespace": namespace, "name": name}, "spec": {"managed": {}},
            });
            if let Ok(proxy) = serde_json::from_value(proxy) {
                self.objects.insert(Object::PingsixProxy(Arc::new(proxy)));
            }
        }
    }

    /// Adds the classes that Gateways and Ingresses name, as classes of this controller.
    fn add_missing_classes(&mut self, controller: &str) {
        let wanted = self.objects.gateways().map(|(_, gateway)| gateway.spec.gateway_class_name.clone());
        let known: BTreeSet<&str> = self.objects.gateway_classes().map(|(name, _)| &*name.name).collect();
        let missing: BTreeSet<String> = wanted.filter(|name| !known.contains(&**name)).collect();
        let gateway_classes = missing.into_iter().filter_map(|name| {
            let class = json!({"metadata": {"name": name}, "spec": {"controllerName": controller}});
            Some(Object::GatewayClass(Arc::new(serde_json::from_value(class).ok()?)))
        });
        let gateway_classes: Vec<Object> = gateway_classes.collect();
        let classes = self.objects.ingress_classes();
        let known: BTreeSet<&str> = classes.map(|(name, _)| &*name.name).collect();
        let wanted = self.objects.ingresses().filter_map(|(_, ingress)| class_of_ingress(ingress));
        let missing: BTreeSet<&str> = wanted.filter(|name| !known.contains(name)).collect();
        let ingress_classes = missing.into_iter().filter_map(|name| {
            let class = json!({"metadata": {"name": name}, "spec": {"controller": controller}});
            Some(Object::IngressClass(Arc::new(serde_json::from_value(class).ok()?)))
        });
        let ingress_classes: Vec<Object> = ingress_classes.collect();
        for class in gateway_classes.into_iter().chain(ingress_classes) {
            self.objects.insert(class);
        }
    }

    /// Whether an object names parameters that are not in the input; says so.
    fn lacks(&mut self, object: &ObjectKey, field: &str, proxy: Option<ObjectName>, managed: bool) -> bool {
        let Some(proxy) = proxy.filter(|proxy| {
            !proxy.namespace.is_empty() && !self.objects.contains(&key(Kind::PingsixProxy, proxy))
        }) else {
            return false;
        };
        let assumed = if managed {
            "managed data planes, as --managed says"
        } else {
            "attached data planes with the layout of --layout; --managed assumes managed ones"
        };
        self.further.push(Finding {
            place: self.location(object).cloned(),
            object: object.to_string(),
            field: field.to_owned(),
            severity: Level::Warning,
            reason: reason::PARAMETERS_NOT_GIVEN.to_owned(),
            message: format!("PingsixProxy {proxy} is not in the input; the check assumes {assumed}."),
        });
        true
    }

    /// Replaces a field of an object below a path; removes it without a value.
    fn replace<T: Serialize + DeserializeOwned>(
        &mut self,
        object: &T,
        path: &[&str],
        field: &str,
        now: Option<Value>,
        wrap: fn(Arc<T>) -> Object,
    ) {
        let Ok(mut value) = serde_json::to_value(object) else { return };
        let parent = path.iter().try_fold(&mut value, |value, name| value.get_mut(*name));
        let Some(fields) = parent.and_then(Value::as_object_mut) else { return };
        match now {
            Some(now) => fields.insert(field.to_owned(), now),
            None => fields.remove(field),
        };
        if let Ok(object) = serde_json::from_value(value) {
            self.objects.insert(wrap(Arc::new(object)));
        }
    }
}

/// Whether a reference to parameters is one to a PingsixProxy.
fn is_proxy(group: &str, kind: &str) -> bool {
    group == PINGSIX_GROUP && kind == Kind::PingsixProxy.as_str()
}
