//! The overlap of a listener with others (Gateway API `OverlappingTLSConfig`), and its message.

use std::fmt;

use crate::model::Reason;

/// The other listeners of its port with which a listener with TLS shares hosts. At least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Overlap {
    /// Listeners with an overlapping hostname.
    pub(super) hostnames: ListenerNames,
    /// Listeners for whose hosts a certificate of this one is valid, or the other way round.
    pub(super) certificates: ListenerNames,
    /// Whether requests that come in by the connection of another listener are answered with 421.
    pub(super) detects: bool,
}

/// The first names of some listeners. Otherwise, a wildcard certificate of a thousand listeners would fill a thousand
/// conditions with a thousand names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListenerNames {
    pub(super) first: Vec<String>,
    pub(super) is_truncated: bool,
}

impl fmt::Display for ListenerNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, name) in self.first.iter().enumerate() {
            write!(f, "{}{name}", if position == 0 { "" } else { ", " })?;
        }
        if self.is_truncated { f.write_str(" and more") } else { Ok(()) }
    }
}

impl Overlap {
    /// The reason of the condition. Certificates come before hostnames, as the specification recommends.
    pub(crate) fn reason(&self) -> Reason {
        if self.certificates.first.is_empty() {
            Reason::OverlappingHostnames
        } else {
            Reason::OverlappingCertificates
        }
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut space = "";
        if !self.certificates.first.is_empty() {
            write!(
                f,
                "A certificate covers hosts of this listener and of other listeners on the port. \
                 Clients may share one connection for them. {} Listeners: {}.",
                if self.detects {
                    "A request by the connection of another listener is answered with 421."
                } else {
                    "PingSIX answers each request by its host."
                },
                self.certificates
            )?;
            space = " ";
        }
        if !self.hostnames.first.is_empty() {
            write!(f, "{space}The hostname overlaps with that of others on the port: {}.", self.hostnames)?;
        }
        Ok(())
    }
}
