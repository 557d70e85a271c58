//! The route of a connection.

use super::{ANY_NAME, StreamConfig, StreamKey, StreamProtocol, StreamRoute};
use crate::model::Hostname;

/// The arrival of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival<'a> {
    /// Over TCP, at a port that looks no further.
    Tcp,
    /// Over UDP.
    Udp,
    /// Over TCP, with a `ClientHello` for this server name.
    Tls(&'a str),
    /// Over TCP, with a `ClientHello` without a server name, or with an IP address in its place.
    TlsUnnamed,
}

impl StreamConfig {
    /// The route of a connection; without one, the connection is closed.
    ///
    /// Of the TLS routes of a port with a matching server name, an exact name wins over a wildcard, and a longer
    /// wildcard over a shorter one. [`ANY_NAME`] comes last, and alone takes connections without a server name. Each name
    /// occurs once on a port, so a valid configuration has at most one route.
    pub fn route_for(&self, port: u16, arrival: Arrival<'_>) -> Option<(&StreamKey, &StreamRoute)> {
        let on_port = self.routes().filter(|(_, route)| route.server_port == port);
        match arrival {
            Arrival::Tcp => on_port.into_iter().find(|(_, route)| route.protocol == StreamProtocol::Tcp),
            Arrival::Udp => on_port.into_iter().find(|(_, route)| route.protocol == StreamProtocol::Udp),
            Arrival::Tls(name) => most_specific(on_port, Some(name)),
            Arrival::TlsUnnamed => most_specific(on_port, None),
        }
    }
}

fn most_specific<'c>(
    routes: impl Iterator<Item = (&'c StreamKey, &'c StreamRoute)>,
    name: Option<&str>,
) -> Option<(&'c StreamKey, &'c StreamRoute)> {
    routes
        .filter(|(_, route)| route.protocol == StreamProtocol::Tls)
        .filter_map(|(key, route)| Some((route.specificity(name)?, (key, route))))
        .max_by_key(|(specificity, _)| *specificity)
        .map(|(_, found)| found)
}

impl StreamRoute {
    /// The specificity of its best matching name; `None` without a match.
    fn specificity(&self, name: Option<&str>) -> Option<u32> {
        let of_hostname = |name| {
            let patterns = self.snis.iter().filter_map(|sni| Hostname::parse(sni).ok());
            patterns.filter(|pattern| pattern.matches(name)).map(|pattern| pattern.precedence()).max()
        };
        // The precedence of a hostname is at least its length.
        let of_any = || self.snis.iter().any(|sni| sni == ANY_NAME).then_some(0);
        name.and_then(of_hostname).or_else(of_any)
    }
}
