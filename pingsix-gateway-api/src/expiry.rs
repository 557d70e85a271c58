//! Certificates that clients do not accept, because their time is over or has not come. PingSIX serves them all the same
//! (`src/proxy/ssl.rs` judges no dates), so this takes nothing away.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use pingsix_translate::verdict::{Problem, Reason, Severity};
use pingsix_translate::{DataPlane, FieldPath, ObjectKey, Provenance, certificate_validity};

/// One warning for each server name of a data plane whose certificate is not valid at a time, on the object that asks
/// for it. Certificates whose dates cannot be read are passed over.
pub fn outdated_certificates(plane: &DataPlane, now: Timestamp) -> Vec<Problem> {
    let now = Duration::try_from(now.duration_since(Timestamp::UNIX_EPOCH)).unwrap_or_default();
    let mut problems = Vec::new();
    for (key, ssl) in plane.config.ssls() {
        let Some(validity) = certificate_validity(&ssl.cert) else { continue };
        if validity.contains(&now) {
            continue;
        }
        let Some((object, field, asked_by)) = plane.provenance.get(key).and_then(asked_for) else { continue };
        let fate = if now < *validity.start() {
            format!("is not valid before {}", date(*validity.start()))
        } else {
            format!("expired at {}", date(*validity.end()))
        };
        let names = ssl.snis.join(", ");
        problems.push(Problem {
            object,
            field,
            severity: Severity::Warning,
            reason: Reason::InvalidCertificateRef,
            message: format!("The certificate that {asked_by} shows for {names} {fate}; clients refuse it."),
        });
    }
    problems.sort();
    problems
}

/// The object and field that ask for a certificate, and who that is in words.
fn asked_for(provenance: &Provenance) -> Option<(Arc<ObjectKey>, FieldPath, String)> {
    let spec = FieldPath::new("spec");
    match provenance {
        Provenance::Certificate { owner, listener } => {
            Some((owner.clone(), spec.child("listeners"), format!("listener \"{listener}\"")))
        }
        Provenance::IngressCertificate { ingress, tls } => {
            Some((ingress.clone(), spec.child("tls").index(*tls), "the Ingress".to_owned()))
        }
        Provenance::Rules { .. }
        | Provenance::Guard { .. }
        | Provenance::Backend { .. }
        | Provenance::Status { .. }
        | Provenance::Redirect => None,
    }
}

/// A time since the Unix epoch as people write it.
fn date(time: Duration) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds)
        .map_or_else(|_| "a time beyond reckoning".to_owned(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pingsix_translate::Kind;
    use pingsix_translate::pingsix::{DocumentKey, ResourceKind, Ssl};

    /// A data plane whose only certificate is valid in the year 2020.
    fn plane() -> DataPlane {
        let mut params = rcgen::CertificateParams::new(vec!["shop.example".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2020, 12, 31);
        let key = rcgen::KeyPair::generate().unwrap();
        let cert = params.self_signed(&key).unwrap().pem();
        let snis = vec!["shop.example".to_owned()];
        let mut plane = DataPlane::default();
        plane.config.insert("s1", Ssl { cert, key: key.serialize_pem(), snis, ..Ssl::default() });
        let owner = Arc::new(ObjectKey::new(Kind::Gateway, "shop", "web"));
        let origin = Provenance::Certificate { owner, listener: "https".to_owned() };
        plane.provenance.insert(DocumentKey::new(ResourceKind::Ssl, "s1"), origin);
        plane
    }

    fn said_in(year: i16) -> Vec<String> {
        let now = format!("{year}-06-01T00:00:00Z").parse().unwrap();
        outdated_certificates(&plane(), now).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_certificate_is_named_before_and_after_its_time() {
        assert_eq!(
            said_in(2021),
            [
                "Gateway shop/web: spec.listeners: The certificate that listener \"https\" shows for shop.example expired at \
              2020-12-31T00:00:00Z; clients refuse it."
            ]
        );
        assert_eq!(said_in(2020), [""; 0]);
        assert!(said_in(2019)[0].contains("is not valid before 2020-01-01T00:00:00Z"));
    }
}
