//! The host of requests that name none.

use std::str::FromStr;

/// The host of requests that name none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayHost {
    /// Whether the requests use HTTPS; `None` if the file says so.
    pub https: Option<bool>,
    /// The host, perhaps with a port.
    pub host: String,
}

impl FromStr for ReplayHost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (https, host) = match text.split_once("://") {
            None => (None, text),
            Some(("http", host)) => (Some(false), host),
            Some(("https", host)) => (Some(true), host),
            Some(_) => return Err("expected HOST, http://HOST or https://HOST".to_owned()),
        };
        match host.parse::<http::uri::Authority>() {
            Ok(authority) if !host.contains('@') => Ok(Self { https, host: authority.as_str().to_owned() }),
            _ => Err(format!("\"{host}\" is not a host")),
        }
    }
}
