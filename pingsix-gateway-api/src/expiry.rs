//! Certificates that clients do not accept, because their time is over or has not come. They are served all the same
//! (`src/proxy/ssl.rs` judges no dates), so this takes nothing away.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use pingsix_translate::status::{Problem, Reason, Severity};
use pingsix_translate::stream::StreamKey;
use pingsix_translate::{
    CertificateReference, DataPlane, FieldPath, ObjectKey, Provenance, StreamPlane, StreamProvenance,
    certificate_validity,
};

/// One warning for each reference by which a data plane has got a certificate that is not valid at a time, with the
/// server names it is shown for. Certificates whose dates cannot be read are passed over.
pub fn outdated_certificates(plane: &DataPlane, now: Timestamp) -> Vec<Problem> {
    let mut outdated: BTreeMap<(CertificateUse, String), BTreeSet<&str>> = BTreeMap::new();
    for (key, ssl) in plane.config.ssls() {
        let Some(Provenance::Certificate { secret, by }) = plane.provenance.get(key) else { continue };
        let Some(fate) = fate(&ssl.cert, now) else { continue };
        for (by, name) in by.iter().zip(&ssl.snis) {
            outdated.entry((use_of(secret, by), fate.clone())).or_default().insert(name);
        }
    }
    let problems =
        outdated.into_iter().map(|((CertificateUse { object, field, secret, by }, fate), names)| {
            let names = listed(&names);
            let message =
                format!("The certificate of {secret} that {by} shows for {names} {fate}; clients refuse it.");
            problem(object, field, message)
        });
    problems.collect()
}

/// The number of names in a message.
const MAX_LISTED_NAMES: usize = 8;

fn listed(names: &BTreeSet<&str>) -> String {
    let first: Vec<&str> = names.iter().copied().take(MAX_LISTED_NAMES).collect();
    match names.len() - first.len() {
        0 => first.join(", "),
        others => format!("{} and {others} others", first.join(", ")),
    }
}

/// One warning for each reference to a certificate in stream documents that is not valid at a time. Certificates whose
/// dates cannot be read are passed over.
pub fn outdated_stream_certificates(plane: &StreamPlane, now: Timestamp) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (key, provenance) in &plane.provenance {
        let StreamProvenance::Certificate { secret, references } = provenance else { continue };
        let Some(fate) = certificate(plane, key).and_then(|cert| fate(cert, now)) else { continue };
        problems.extend(references.iter().map(|reference| {
            let message = format!("The certificate of {secret} {fate}; clients refuse it.");
            problem(reference.object.clone(), reference.field.clone(), message)
        }));
    }
    problems.sort();
    problems
}

fn certificate<'a>(plane: &'a StreamPlane, key: &StreamKey) -> Option<&'a str> {
    plane.config.ssl(&key.id).map(|ssl| ssl.cert.as_str())
}

fn problem(object: Arc<ObjectKey>, field: FieldPath, message: String) -> Problem {
    Problem { object, field, severity: Severity::Warning, reason: Reason::InvalidCertificateRef, message }
}

/// The reference to a certificate.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct CertificateUse {
    object: Arc<ObjectKey>,
    field: FieldPath,
    secret: Arc<ObjectKey>,
    /// The part of the object, in words.
    by: String,
}

fn use_of(secret: &Arc<ObjectKey>, by: &CertificateReference) -> CertificateUse {
    CertificateUse {
        object: by.object().clone(),
        field: by.field(),
        secret: secret.clone(),
        by: match by {
            CertificateReference::Listener { listener, .. } => format!("listener \"{listener}\""),
            CertificateReference::Ingress { .. } => "the Ingress".to_owned(),
        },
    }
}

/// Why the first certificate of a PEM text is not valid at a time, in words; `None` when it is, or when that cannot be
/// read.
fn fate(pem: &str, now: Timestamp) -> Option<String> {
    let now = Duration::try_from(now.duration_since(Timestamp::UNIX_EPOCH)).unwrap_or_default();
    let validity = certificate_validity(pem)?;
    if now < *validity.start() {
        Some(format!("is not valid before {}", date(*validity.start())))
    } else if now > *validity.end() {
        Some(format!("expired at {}", date(*validity.end())))
    } else {
        None
    }
}

/// A time since the Unix epoch as people write it.
fn date(time: Duration) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds)
        .map_or_else(|_| "a time beyond reckoning".to_owned(), |time| time.to_string())
}

#[cfg(test)]
mod tests;
