//! Certificates and authorities, from PEM.

use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

/// Why a text has no certificates that can be used. Never quotes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PemFault {
    Damaged,
    Empty,
    /// A certificate, counted from one, is none that can vouch for others.
    NoAuthority {
        number: usize,
    },
}

impl PemFault {
    /// What is wrong, behind the name of the file.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Damaged => "is not PEM, or its PEM is damaged",
            Self::Empty => "holds no certificate",
            Self::NoAuthority { .. } => "holds a certificate that is no authority's",
        }
    }
}

/// All certificates of a text, of which there is one at least. What cannot be read as one is not passed over.
pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemFault> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match certificates {
        Ok(certificates) if certificates.is_empty() => Err(PemFault::Empty),
        Ok(certificates) => Ok(certificates),
        Err(_) => Err(PemFault::Damaged),
    }
}

/// All certificates of a text, each of them an authority.
pub(crate) fn authorities(pem: &[u8]) -> Result<RootCertStore, PemFault> {
    let mut roots = RootCertStore::empty();
    for (number, certificate) in (1..).zip(certificates(pem)?) {
        roots.add(certificate).map_err(|_| PemFault::NoAuthority { number })?;
    }
    Ok(roots)
}
