//! The data planes of the original.

use pingsix_translate::ObjectName;

use super::objects::label;
use super::report::Report;
use super::source::Fields;

/// The data plane of the original.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// That of an IngressClass; without a name, the default one.
    Class(String),
    /// That of a Gateway.
    Gateway(ObjectName),
}

impl Owner {
    /// The end of the names of Secrets.
    pub(crate) fn suffix(&self) -> String {
        match self {
            Self::Class(name) if name.is_empty() => String::new(),
            Self::Class(name) => format!("-{}", label(name, "class")),
            Self::Gateway(name) => format!("-{}", label(&name.name, "gateway")),
        }
    }
}

/// The classes of the input, and the Gateway that takes their place.
#[derive(Clone, Debug)]
pub(crate) struct Owners {
    /// The only class of the input; a class without a name means this one.
    pub(crate) only_class: Option<String>,
    pub(crate) gateway: ObjectName,
}

impl Owners {
    /// Takes the class of an object.
    pub(crate) fn of_class(&self, spec: &mut Fields, report: &mut Report) -> Owner {
        let class = spec.filled("ingressClassName", report);
        if let Some((place, _)) = &class {
            report.exact(place, format!("Gateway {} takes the place of the class.", self.gateway));
        }
        let class = class.map(|(_, name)| name).or_else(|| self.only_class.clone());
        Owner::Class(class.unwrap_or_default())
    }
}
