//! Documents with encrypted secrets, as they are stored in etcd or served.

use std::collections::BTreeMap;

use super::Keyring;
use crate::desired::{Desired, DocumentSet};
use crate::document::{Document, Key};

/// Seals successive publications of a scope; only the difference to the previous one is encrypted anew.
#[derive(Debug)]
pub struct Sealer {
    keyring: Keyring,
    plain: DocumentSet,
    sealed: DocumentSet,
}

impl Sealer {
    /// A sealer with the keys of PingSIX's `data_encryption`.
    pub fn new(keyring: Keyring) -> Self {
        Self { keyring, plain: DocumentSet::default(), sealed: DocumentSet::default() }
    }

    /// `desired` with every secret encrypted that PingSIX decrypts.
    pub fn seal(&mut self, desired: &Desired) -> Desired {
        let sealed = |document: &Document| {
            let value = self.keyring.seal(document).unwrap_or_else(|| document.value.clone());
            Document { value, ..document.clone() }
        };
        let pairs = desired.documents().pairs(&self.plain).filter(|(gone, new)| gone != new);
        let changes = pairs.filter_map(|(gone, new)| Some((gone.or(new)?.key.clone(), new.map(sealed))));
        let changes: BTreeMap<Key, Option<Document>> = changes.collect();
        self.sealed = self.sealed.with_changes(changes);
        self.plain = desired.documents().clone();
        Desired::new(desired.scope().clone(), self.sealed.clone()).owned_by(desired.owner().cloned())
    }
}

/// Documents of etcd with their secrets decrypted, as far as the keyring allows.
pub(crate) fn opened(keyring: &Keyring, documents: &DocumentSet) -> DocumentSet {
    let opened = documents.iter().filter_map(|document| {
        let value = keyring.open(document)?;
        Some((document.key.clone(), Some(Document { value, ..document.clone() })))
    });
    documents.with_changes(opened.collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::desired::Scope;
    use crate::document::{OrderHint, Owner};

    fn documents() -> impl Strategy<Value = DocumentSet> {
        let value = prop_oneof![
            "[a-c]".prop_map(|secret| format!(r#"{{"cert":"c","key":"{secret}"}}"#)),
            "[a-c]".prop_map(|cert| format!(r#"{{"cert":"{cert}"}}"#)),
        ];
        prop::collection::btree_map(0..300_u32, value, 0..300).prop_map(|documents| {
            DocumentSet::new(documents.into_iter().map(|(id, value)| Document {
                key: Key::new(format!("ssls/{id:03}")).unwrap(),
                value: value.into(),
                order: OrderHint(id),
                owner: Owner::new("test"),
            }))
            .unwrap()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Sealing the difference equals sealing everything, and the result can be opened.
        #[test]
        fn each_publication_is_sealed_as_if_it_were_the_first(sets in prop::collection::vec(documents(), 1..4)) {
            let keyring = Keyring::new(["key"]).unwrap();
            let scope = Scope::new("/pingsix/a").unwrap();
            let mut sealer = Sealer::new(keyring.clone());
            for set in sets {
                let desired = Desired::new(scope.clone(), set.clone());
                let sealed = sealer.seal(&desired);
                prop_assert_eq!(&sealed, &Sealer::new(keyring.clone()).seal(&desired));
                prop_assert!(opened(&keyring, sealed.documents()).same_content(&set));
                for (plain, sealed) in set.iter().zip(sealed.documents()) {
                    prop_assert_eq!(keyring.seal(plain).unwrap_or_else(|| plain.value.clone()), sealed.value.clone());
                }
            }
        }
    }
}
