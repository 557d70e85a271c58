//! Names of objects in URLs.

use std::fmt;
use std::str::FromStr;

use pingsix_translate::{Kind, ObjectKey};

/// An object, as a URL names it: `KIND/NAMESPACE/NAME`, or `KIND/NAME` for kinds without namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About(pub ObjectKey);

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ObjectKey { kind, name } = &self.0;
        if kind.is_namespaced() { write!(f, "{kind}/{name}") } else { write!(f, "{kind}/{}", name.name) }
    }
}

impl FromStr for About {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected KIND/NAMESPACE/NAME, for example HTTPRoute/shop/cart, or KIND/NAME for a \
                                kind without namespace";
        let (kind, name) = text.split_once('/').ok_or(EXPECTED)?;
        let kind = Kind::ALL.iter().copied().find(|known| known.as_str() == kind).ok_or(EXPECTED)?;
        let (namespace, name) = match name.split_once('/') {
            Some((namespace, name)) if kind.is_namespaced() && !namespace.is_empty() => (namespace, name),
            None if !kind.is_namespaced() => ("", name),
            Some(_) | None => return Err(EXPECTED),
        };
        if name.is_empty() || name.contains('/') {
            return Err(EXPECTED);
        }
        Ok(Self(ObjectKey::new(kind, namespace, name)))
    }
}
