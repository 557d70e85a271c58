//! Whether anything depends on the order in which objects arrive.

use pingsix_translate::Translation;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use serde_json::Value;

use crate::case::{Case, Setting, documents};

/// The difference between translations of the same objects in other orders; `None` for equal ones.
pub(crate) fn difference(objects: &[Value], setting: Setting) -> Option<String> {
    let first = Case::new(objects, setting).translation;
    let mut rng = SmallRng::seed_from_u64(1);
    let mut shuffled = objects.to_vec();
    for _ in 0..3 {
        shuffled.shuffle(&mut rng);
        for object in &mut shuffled {
            // Lists whose order says nothing.
            for list in ["/endpoints", "/spec/from", "/spec/to"] {
                if let Some(list) = object.pointer_mut(list).and_then(Value::as_array_mut) {
                    list.shuffle(&mut rng);
                }
            }
        }
        let other = Case::new(&shuffled, setting).translation;
        if documents(&first) != documents(&other) {
            return Some("the documents depend on the order of the objects".to_owned());
        }
        if first.verdicts != other.verdicts {
            return Some("the verdicts depend on the order of the objects".to_owned());
        }
        let provenances = |translation: &Translation| {
            translation.data_planes.values().map(|plane| plane.provenance.clone()).collect::<Vec<_>>()
        };
        if provenances(&first) != provenances(&other) {
            return Some("the provenance depends on the order of the objects".to_owned());
        }
    }
    None
}
