//! The snapshot of an IngressClass, and the Ingresses of a class.

use std::cmp::Reverse;
use std::sync::Arc;

use super::kinds::{Ingress, IngressClass};
use super::policy_object::AnyPolicy;
use super::referents::Referents;
use crate::model::{Age, ObjectKey, ObjectName};
use crate::shared_map::SharedMap;

/// The annotation for the class of an Ingress, which is older than the field.
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// The annotation of the default IngressClass.
const DEFAULT_ANNOTATION: &str = "ingressclass.kubernetes.io/is-default-class";

/// The input of translation for one IngressClass, from [`Objects::ingress_snapshot`](super::Objects::ingress_snapshot) or an
/// [`Extract`](crate::selection::Extract).
#[derive(Clone, Debug)]
pub struct IngressSnapshot {
    /// The IngressClass.
    pub class: Arc<IngressClass>,
    /// Every class that is marked as the default, as [`default_ingress_classes`] has them.
    pub default_classes: Vec<Arc<str>>,
    /// Ingresses of the class, by name.
    pub ingresses: SharedMap<ObjectName, Arc<Ingress>>,
    /// Policies of all kinds that count for Ingresses and target one of these or a Service to which one of them refers, by
    /// kind, then by name.
    pub policies: SharedMap<ObjectKey, AnyPolicy>,
    /// The objects to which all of these refer.
    pub referents: Referents,
}

/// The class that an Ingress names: `spec.ingressClassName`, or the annotation `kubernetes.io/ingress.class`. `None` is the
/// default class.
pub fn class_of_ingress(ingress: &Ingress) -> Option<&str> {
    let field = ingress.spec.as_ref().and_then(|spec| spec.ingress_class_name.as_deref());
    field.or_else(|| Some(ingress.metadata.annotations.as_ref()?.get(CLASS_ANNOTATION)?.as_str()))
}

/// The class of an Ingress among classes with these defaults: the class that it names, or else the first default.
pub fn class_or_default<'i>(ingress: &'i Ingress, default_classes: &'i [Arc<str>]) -> Option<&'i str> {
    class_of_ingress(ingress).or(default_classes.first().map(|class| &**class))
}

/// The classes that are marked as the default. The first one counts.
///
/// A cluster should have one at most. With several, some versions of Kubernetes refuse Ingresses without a class at
/// admission, and others choose the newest class, then the first by name. This function has that order, whichever
/// controller the class belongs to, so no Ingress is served by two.
pub fn default_ingress_classes<'a>(classes: impl IntoIterator<Item = &'a IngressClass>) -> Vec<Arc<str>> {
    let is_default = |class: &&IngressClass| {
        let annotations = class.metadata.annotations.as_ref();
        annotations.and_then(|annotations| annotations.get(DEFAULT_ANNOTATION)).is_some_and(|is| is == "true")
    };
    let mut defaults: Vec<(Reverse<Age>, Arc<str>)> = classes
        .into_iter()
        .filter(is_default)
        .map(|class| {
            let name = class.metadata.name.as_deref().unwrap_or_default();
            (Reverse(Age::of(&class.metadata)), Arc::from(name))
        })
        .collect();
    defaults.sort();
    defaults.into_iter().map(|(_, name)| name).collect()
}
