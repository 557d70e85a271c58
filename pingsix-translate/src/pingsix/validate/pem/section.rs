//! The sections of PEM texts (RFC 7468).

use base64::Engine as _;
use rustls_pki_types::pem::{PemObject as _, SectionKind};

const LINE_BYTES: usize = 64;

/// The known labels of sections beside certificates and keys. OpenSSL skips parameters, and takes some other labels
/// for certificates or keys, so a text with an unknown label is refused.
const LABELS: [&str; 11] = [
    "CERTIFICATE",
    "CERTIFICATE REQUEST",
    "DH PARAMETERS",
    "EC PARAMETERS",
    "EC PRIVATE KEY",
    "NEW CERTIFICATE REQUEST",
    "PRIVATE KEY",
    "PUBLIC KEY",
    "RSA PRIVATE KEY",
    "RSA PUBLIC KEY",
    "X509 CRL",
];

/// The sections that rustls supports, up to the first unreadable one.
pub(super) fn sections(text: &str) -> impl Iterator<Item = (SectionKind, Vec<u8>)> {
    <(SectionKind, Vec<u8>)>::pem_slice_iter(text.as_bytes()).map_while(Result::ok)
}

/// All sections that rustls supports; `None` if one of them is unreadable.
pub(super) fn all_sections(text: &str) -> Option<Vec<(SectionKind, Vec<u8>)>> {
    <(SectionKind, Vec<u8>)>::pem_slice_iter(text.as_bytes()).collect::<Result<_, _>>().ok()
}

/// The difference between OpenSSL and this reader in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Oddity {
    /// A section has a label outside of [`LABELS`]. The text describes the label without a quotation, because the
    /// label may be part of a secret.
    Label(&'static str),
    /// Readers disagree on where lines or sections end.
    Form,
}

/// Checks that OpenSSL finds the same sections.
///
/// OpenSSL ends lines at line feeds only, takes an empty line for the end of a section's headers, and does not start a
/// section within another (`PEM_read_bio`).
pub(super) fn check_form(text: &str) -> Result<(), Oddity> {
    let mut within = None;
    for line in text.split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.contains('\r') {
            return Err(Oddity::Form);
        }
        let begins = line.strip_prefix("-----BEGIN ");
        match (within, begins) {
            (Some(_), Some(_)) => return Err(Oddity::Form),
            (None, Some(rest)) => {
                let label = rest.split("-----").next().unwrap_or(rest);
                if !LABELS.contains(&label) {
                    return Err(Oddity::Label(meaning(label)));
                }
                within = Some(0);
            }
            (Some(_), None) if line.starts_with("-----END ") => within = None,
            (Some(lines), None) if line.trim().is_empty() && lines > 0 => return Err(Oddity::Form),
            (Some(lines), None) => within = Some(lines + 1),
            (None, None) => {}
        }
    }
    Ok(())
}

fn meaning(label: &str) -> &'static str {
    match label {
        "DSA PRIVATE KEY" => "a DSA key",
        "ENCRYPTED PRIVATE KEY" => "an encrypted key",
        "OPENSSH PRIVATE KEY" => "a key in the form of OpenSSH",
        _ => "in a section with a label that is not known",
    }
}

/// A section in the form that every reader of PEM accepts.
pub(crate) fn write_section(label: &str, der: &[u8]) -> String {
    let body = base64::engine::general_purpose::STANDARD.encode(der);
    let mut text = format!("-----BEGIN {label}-----\n");
    let mut rest = body.as_str();
    while !rest.is_empty() {
        let (line, others) = rest.split_at_checked(LINE_BYTES).unwrap_or((rest, ""));
        text.push_str(line);
        text.push('\n');
        rest = others;
    }
    text.push_str("-----END ");
    text.push_str(label);
    text.push_str("-----\n");
    text
}
