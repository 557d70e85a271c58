//! ReferenceGrants: whether an object of one namespace may refer to an object of another.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::{Kind, ObjectKey, ObjectName};
use crate::snapshot::ReferenceGrant;

/// The permissions of all ReferenceGrants.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grants(BTreeSet<Grant>);

/// One permission: (kind and namespace of the referrer, kind and namespace of the target, its name if given).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Grant {
    from: (String, String, String),
    to: (String, String, String),
    name: Option<String>,
}

impl Grants {
    pub(crate) fn new<'a>(grants: impl Iterator<Item = &'a Arc<ReferenceGrant>>) -> Self {
        let mut flat = BTreeSet::new();
        for grant in grants {
            let namespace = grant.metadata.namespace.as_deref().unwrap_or_default();
            for from in &grant.spec.from {
                for to in &grant.spec.to {
                    flat.insert(Grant {
                        from: (from.group.clone(), from.kind.clone(), from.namespace.clone()),
                        to: (to.group.clone(), to.kind.clone(), namespace.to_owned()),
                        name: to.name.clone().filter(|name| !name.is_empty()),
                    });
                }
            }
        }
        Self(flat)
    }

    /// Whether an object may refer to a target. References within a namespace need no grant (Gateway API
    /// `ReferenceGrant`).
    pub(crate) fn permit(&self, referrer: &ObjectKey, kind: Kind, target: &ObjectName) -> bool {
        if referrer.name.namespace == target.namespace {
            return true;
        }
        let lookup = |name: Option<String>| {
            self.0.contains(&Grant {
                from: (
                    referrer.kind.group().to_owned(),
                    referrer.kind.as_str().to_owned(),
                    referrer.name.namespace.to_string(),
                ),
                to: (kind.group().to_owned(), kind.as_str().to_owned(), target.namespace.to_string()),
                name,
            })
        };
        lookup(None) || lookup(Some(target.name.to_string()))
    }
}
