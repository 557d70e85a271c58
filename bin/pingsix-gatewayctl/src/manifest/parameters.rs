//! Assumptions about the parameters of data planes that the input leaves open.

use std::collections::BTreeSet;
use std::sync::Arc;

use pingsix_translate::snapshot::{Object, class_of_ingress};
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
        if managed {
            self.add_missing_classes(controller);
        }
        let assumed = json!({"kind": "PingsixProxy", "namespace": namespace, "name": name});
        let with = |further: Value| {
            let fields = [&assumed, &further].into_iter().filter_map(Value::as_object).flatten();
            managed.then(|| fields.map(|(name, value)| (name.clone(), value.clone())).collect::<Value>())
        };
        let of_class = with(json!({"group": PINGSIX_GROUP}));
        let of_ingress_class = with(json!({"apiGroup": PINGSIX_GROUP, "scope": "Namespace"}));
        let classes = self.objects.gateway_classes();
        let classes = classes.filter(|(_, class)| class.spec.controller_name == *controller);
        let classes: Vec<_> = classes.map(|(name, class)| (name.clone(), class.clone())).collect();
        for (name, class) in &classes {
            let field = ("spec.parametersRef", of_class.as_ref());
            self.assume_of(&key(Kind::GatewayClass, name), &**class, field, managed, Object::GatewayClass);
        }
        let ingress_classes = self.objects.ingress_classes().filter(|(_, class)| {
            class.spec.as_ref().is_some_and(|spec| spec.controller.as_ref() == Some(controller))
        });
        let ingress_classes: Vec<_> =
            ingress_classes.map(|(name, class)| (name.clone(), class.clone())).collect();
        for (name, class) in &ingress_classes {
            let field = ("spec.parameters", of_ingress_class.as_ref());
            self.assume_of(&key(Kind::IngressClass, name), &**class, field, managed, Object::IngressClass);
        }
        let is_ours = |class: &str| classes.iter().any(|(name, _)| &*name.name == class);
        let gateways =
            self.objects.gateways().filter(|(_, gateway)| is_ours(&gateway.spec.gateway_class_name));
        let gateways: Vec<_> = gateways.map(|(name, gateway)| (name.clone(), gateway.clone())).collect();
        for (name, gateway) in &gateways {
            let field = ("spec.infrastructure.parametersRef", None);
            self.assume_of(&key(Kind::Gateway, name), &**gateway, field, managed, Object::Gateway);
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

    /// Replaces the parameters that an object names and that the input lacks, and says so. Without a value in their place, they
    /// are removed. With managed data planes, a class without parameters gets the value, too.
    fn assume_of<T: Serialize + DeserializeOwned>(
        &mut self,
        object: &ObjectKey,
        value: &T,
        (path, now): (&str, Option<&Value>),
        managed: bool,
        wrap: fn(Arc<T>) -> Object,
    ) {
        let Ok(mut value) = serde_json::to_value(value) else { return };
        let (parent, field) = path.rsplit_once('.').unwrap_or(("", path));
        let parent = value.pointer_mut(&format!("/{}", parent.replace('.', "/")));
        let Some(fields) = parent.and_then(Value::as_object_mut) else { return };
        let named = fields.get(field).filter(|named| !named.is_null());
        let text = |name: &str| named.and_then(|named| named.get(name)?.as_str());
        let is_proxy = text("group").or(text("apiGroup")) == Some(PINGSIX_GROUP)
            && text("kind") == Some(Kind::PingsixProxy.as_str());
        // A Gateway has its parameters beside it.
        let namespace = Some(&*object.name.namespace).filter(|_| object.kind.is_namespaced());
        let namespace = namespace.or(text("namespace")).unwrap_or_default();
        let proxy = ObjectName::new(namespace, text("name").unwrap_or_default());
        let is_missing =
            is_proxy && !namespace.is_empty() && !self.objects.contains(&key(Kind::PingsixProxy, &proxy));
        if !is_missing && (now.is_none() || named.is_some()) {
            return;
        }
        if is_missing {
            let assumed = if managed {
                "managed data planes, as --managed says"
            } else {
                "attached data planes with the layout of --layout; --managed assumes managed ones"
            };
            let message = format!("PingsixProxy {proxy} is not in the input; the check assumes {assumed}.");
            let finding = Finding::new(Level::Warning, reason::PARAMETERS_NOT_GIVEN, message);
            self.further.push(finding.about(object, self.location(object)).of_field(path));
        }
        match now {
            Some(now) => fields.insert(field.to_owned(), now.clone()),
            None => fields.remove(field),
        };
        if let Ok(object) = serde_json::from_value(value) {
            self.objects.insert(wrap(Arc::new(object)));
        }
    }
}
