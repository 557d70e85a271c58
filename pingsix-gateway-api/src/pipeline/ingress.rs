//! IngressClasses to data planes, and Ingresses that no class of ours serves.

use pingsix_translate::snapshot::{Ingress, Proxies, class_of_ingress, default_ingress_classes};
use pingsix_translate::status::{Severity, judge_ingress_class};
use pingsix_translate::{Kind, Object, ObjectKey, Objects, Options};

use super::judge::{FieldProblem, Judge, Translating, proxies};
use super::reason;

/// The outcome for an Ingress.
enum Membership {
    Served,
    Refused(Severity, FieldProblem),
}

impl Translating<'_> {
    pub(super) fn add_ingress_classes(&mut self) {
        let (objects, options) = (self.objects, self.options);
        let proxies = proxies(objects);
        for (_, class) in objects.ingress_classes() {
            let Some(verdict) = judge_ingress_class(class, &proxies, options) else { continue };
            if let Some(translation) = self.caches.translate(&verdict.key, options) {
                self.add_planes(&verdict.key, translation);
            }
        }
    }
}

impl Judge<'_> {
    pub(super) fn check_ingresses(&mut self) {
        let (objects, options) = (self.objects, self.options);
        let proxies = proxies(objects);
        let defaults = default_ingress_classes(objects.ingress_classes().map(|(_, class)| &**class));
        let default = defaults.first().map(|class| &**class);
        for (name, ingress) in objects.ingresses() {
            if let Membership::Refused(severity, problem) =
                membership(objects, &proxies, ingress, default, options)
            {
                let object = ObjectKey { kind: Kind::Ingress, name: name.clone() };
                self.report(&object, severity, problem);
            }
        }
    }
}

/// Whether the class of an Ingress is there, ours and served; a cluster would leave the others without a word.
fn membership(
    objects: &Objects,
    proxies: &Proxies,
    ingress: &Ingress,
    default: Option<&str>,
    options: &Options,
) -> Membership {
    let written = class_of_ingress(ingress);
    let field = match ingress.spec.as_ref().and_then(|spec| spec.ingress_class_name.as_ref()) {
        None if written.is_some() => "metadata.annotations",
        Some(_) | None => "spec.ingressClassName",
    };
    let refused = |severity, reason, message| {
        Membership::Refused(severity, FieldProblem { field: field.to_owned(), reason, message })
    };
    let Some(wanted) = written.or(default) else {
        let message = "The Ingress names no IngressClass and none is the default, so it is not served.";
        return refused(Severity::Error, reason::NO_INGRESS_CLASS, message.to_owned());
    };
    let class = objects.get(&ObjectKey::new(Kind::IngressClass, "", wanted));
    let Some(Object::IngressClass(class)) = class else {
        let message = format!("IngressClass \"{wanted}\" does not exist, so the Ingress is not served.");
        return refused(Severity::Error, reason::INGRESS_CLASS_NOT_FOUND, message);
    };
    match judge_ingress_class(&class, proxies, options) {
        None => {
            let controller =
                class.spec.as_ref().and_then(|spec| spec.controller.as_deref()).unwrap_or_default();
            let message = format!(
                "IngressClass \"{wanted}\" has controller \"{controller}\", not {}, so the Ingress is not served.",
                options.controller_name
            );
            // Another controller may be meant to serve it.
            refused(Severity::Warning, reason::INGRESS_CLASS_NOT_OURS, message)
        }
        Some(verdict) if !verdict.is_served() => {
            let message = format!("IngressClass \"{wanted}\" is not served, so neither is the Ingress.");
            refused(Severity::Error, reason::INGRESS_CLASS_NOT_SERVED, message)
        }
        Some(_) => Membership::Served,
    }
}
