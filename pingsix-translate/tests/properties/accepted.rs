//! Whether PingSIX would accept everything that is emitted.

use pingsix_translate::pingsix::validate::{ValidateOptions, order_dependence, validate};
use pingsix_translate::{Options, Provenance, Translation};

/// Every violation of the documents of a translation and of their provenance; empty when all is well.
pub(crate) fn violations(translation: &Translation, options: &Options) -> Vec<String> {
    let mut found = Vec::new();
    for (key, plane) in &translation.data_planes {
        let rules = ValidateOptions { prefix: key.prefix(&options.root), ..ValidateOptions::default() };
        let violations = validate(&plane.config, &rules).into_iter().chain(order_dependence(&plane.config));
        found.extend(violations.map(|violation| format!("{key}: {violation:?}")));
        if !plane.config.iter().map(|(key, _)| key).eq(plane.provenance.keys()) {
            found.push(format!("{key}: documents and provenance are not of the same keys"));
        }
        let bytes = plane.config.size_in_bytes(&key.prefix(&options.root));
        if plane.size.bytes != bytes {
            found.push(format!("{key}: {} bytes stated, {bytes} counted", plane.size.bytes));
        }
        for (document, provenance) in &plane.provenance {
            if matches!(provenance, Provenance::Rules { decisions, .. } if decisions.is_empty()) {
                found.push(format!("{key}: {document} decides nothing"));
            }
        }
    }
    found
}
