//! The form of the page of explanations.

use pingsix_translate::{Kind, ObjectKey};

use super::address::address;
use super::{command, cut};
use crate::about::About;
use crate::explain::{Inquiry, RequestOptions, parse_header};

/// The longest field of the form, in bytes.
pub(super) const MAX_FIELD_BYTES: usize = 8_000;

/// The most headers of a request.
const MAX_HEADERS: usize = 100;

/// The fields of the form, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) method: String,
    /// Empty before the first use of the form.
    pub(super) url: String,
    /// One header per line.
    pub(super) headers: String,
    pub(super) port: String,
    pub(super) server_name: String,
    pub(super) http2: bool,
    pub(super) owner: Option<ObjectKey>,
    /// A pasted text that is no request.
    pub(super) pasted: String,
    /// The error of that text.
    pub(super) error: Option<String>,
}

impl Form {
    /// The address of the page with the explanation.
    pub(super) fn address(&self) -> String {
        let Self { method, url, headers, port, server_name, http2, owner, .. } = self;
        let owner = owner.as_ref().map(|owner| About(owner.clone()).to_string()).unwrap_or_default();
        address(
            "/view/explain",
            &[
                ("method", method),
                ("url", url),
                ("headers", headers),
                ("port", port),
                ("server-name", server_name),
                ("http2", if *http2 { "yes" } else { "" }),
                ("owner", &owner),
            ],
        )
    }

    /// The headers, without empty lines.
    fn header_lines(&self) -> impl Iterator<Item = &str> {
        self.headers.lines().map(str::trim).filter(|line| !line.is_empty())
    }

    /// The inquiry. The error names the field of the form.
    pub(super) fn inquiry(&self) -> Result<Inquiry, String> {
        let headers: Vec<(String, String)> = self
            .header_lines()
            .map(|line| parse_header(line).map_err(|error| format!("Headers: \"{}\": {error}.", cut(line))))
            .collect::<Result<_, _>>()?;
        if headers.len() > MAX_HEADERS {
            return Err(format!("Headers: there are more than {MAX_HEADERS}."));
        }
        let port =
            Some(self.port.as_str()).filter(|port| !port.is_empty()).map(str::parse::<u16>).transpose();
        let port = port.map_err(|_| format!("Port: \"{}\" is not between 0 and 65535.", cut(&self.port)))?;
        let server_name = Some(self.server_name.clone()).filter(|name| !name.is_empty());
        let options = RequestOptions { headers, port, http2: self.http2, server_name };
        if let Some(owner) =
            self.owner.as_ref().filter(|owner| !matches!(owner.kind, Kind::Gateway | Kind::IngressClass))
        {
            return Err(format!("{owner} is neither a Gateway nor an IngressClass."));
        }
        let inquiry = Inquiry::new(&self.method, &self.url, options, self.owner.clone());
        inquiry.map_err(|error| format!("Method and URL: {error}."))
    }

    /// The arguments of `pingsix-gatewayctl explain` for the same answer.
    pub(super) fn arguments(&self) -> Vec<String> {
        let mut words: Vec<String> =
            self.header_lines().flat_map(|line| command::option("--header", line)).collect();
        if !self.port.is_empty() {
            words.extend(command::option("--port", &self.port));
        }
        if self.http2 {
            words.push("--http2".to_owned());
        }
        if !self.server_name.is_empty() {
            words.extend(command::option("--server-name", &self.server_name));
        }
        words.extend(self.owner.iter().flat_map(command::owner_option));
        if [&self.method, &self.url].into_iter().any(|word| word.starts_with('-')) {
            words.push("--".to_owned());
        }
        words.extend([self.method.clone(), self.url.clone()]);
        words
    }
}
