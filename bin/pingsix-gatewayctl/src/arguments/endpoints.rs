//! Endpoints given on the command line.

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use pingsix_translate::ObjectName;

/// `NS/SVC[:PORT]=IP:PORT[,IP:PORT]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SuppliedEndpoints {
    pub(crate) service: ObjectName,
    /// The port of the Service; every port without a value.
    pub(crate) port: Option<u16>,
    pub(crate) addresses: BTreeSet<SocketAddr>,
}

/// The reverse of `FromStr`.
impl fmt::Display for SuppliedEndpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        let addresses: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
        write!(f, "{}{port}={}", self.service, addresses.join(","))
    }
}

impl FromStr for SuppliedEndpoints {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected NAMESPACE/SERVICE[:PORT]=IP:PORT[,IP:PORT...]";
        let (service, addresses) = text.split_once('=').ok_or(expected)?;
        let (namespace, name) = service.split_once('/').ok_or(expected)?;
        let (name, port) = match name.split_once(':') {
            Some((name, port)) => {
                (name, Some(port.parse().map_err(|_| format!("\"{port}\" is not a port; {expected}"))?))
            }
            None => (name, None),
        };
        if namespace.is_empty() || name.is_empty() {
            return Err(expected.to_owned());
        }
        let addresses = addresses
            .split(',')
            .map(|address| {
                address
                    .parse()
                    .map_err(|_| format!("\"{address}\" is not an address with a port; {expected}"))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { service: ObjectName::new(namespace, name), port, addresses })
    }
}
