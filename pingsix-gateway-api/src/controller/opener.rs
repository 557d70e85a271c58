//! How the sinks that parameters name are opened.

use std::fmt;
use std::sync::Arc;

use pingsix_sink::target::{Address, AddressError, Material, MaterialPart, Opened};
use pingsix_translate::infrastructure::{SinkCredentials, SinkParameters};

use super::Outlet;

/// Opens the sinks that parameters name (`PingsixProxy.spec.attached.sink`), with what their Secrets hold.
///
/// A sink is opened once for all data planes that name it with the same credentials, opened anew when these change, and
/// dropped when no data plane is published to it any more. Clones are the same.
#[derive(Clone)]
pub struct Opener(Arc<Open>);

type Open = dyn Fn(&SinkParameters, &SinkCredentials) -> Result<Outlet, String> + Send + Sync;

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener").finish_non_exhaustive()
    }
}

impl Opener {
    /// One that does as it is told. It is called in the task of the controller, so it must not wait for anything: a sink
    /// connects when something is published. The outlet has to be a [shared](Outlet::shared) one.
    ///
    /// What it returns as an error is half a sentence for whoever wrote the parameters, without full stop and without
    /// secrets: it stands in statuses, Events and logs.
    pub fn new(
        open: impl Fn(&SinkParameters, &SinkCredentials) -> Result<Outlet, String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(open))
    }

    /// One for whatever parameters may name: an etcd, and PingSIX's Admin API.
    pub fn of_servers() -> Self {
        Self::new(open_server)
    }

    pub(super) fn open(
        &self,
        sink: &SinkParameters,
        credentials: &SinkCredentials,
    ) -> Result<Outlet, String> {
        (self.0)(sink, credentials)
    }
}

fn open_server(sink: &SinkParameters, credentials: &SinkCredentials) -> Result<Outlet, String> {
    let unusable = |problem: &dyn fmt::Display| {
        format!("PingsixProxy {} names a sink that cannot be used: {problem}", sink.proxy)
    };
    let mut address: Address = sink.url.parse().map_err(|error| unusable(&error))?;
    if sink.allow_plaintext {
        address = address.allow_plaintext_beyond_loopback();
    }
    let SinkCredentials { username, password, api_key, ca, certificate, key } = credentials.clone();
    let opened = address.open(&Material { user: username, password, api_key, ca, certificate, key });
    let Opened { kind, sink: opened } = opened.map_err(|error| {
        if let AddressError::Unusable { part, problem } = &error {
            sink.fault_of(entry(*part), problem)
        } else {
            unusable(&error)
        }
    })?;
    Ok(Outlet::shared(kind, sink.url.clone(), opened))
}

/// Where a part is in a Secret.
const fn entry(part: MaterialPart) -> &'static str {
    match part {
        MaterialPart::User => SinkCredentials::USERNAME,
        MaterialPart::Password => SinkCredentials::PASSWORD,
        MaterialPart::ApiKey => SinkCredentials::API_KEY,
        MaterialPart::Ca => SinkCredentials::CA,
        MaterialPart::Certificate => SinkCredentials::CERTIFICATE,
        MaterialPart::Key => SinkCredentials::KEY,
    }
}

#[cfg(test)]
mod tests {
    use pingsix_translate::ObjectName;

    use super::*;

    fn sink(url: &str) -> SinkParameters {
        SinkParameters {
            proxy: ObjectName::new("infra", "edge"),
            url: url.to_owned(),
            allow_plaintext: false,
            credentials: Some(ObjectName::new("infra", "login")),
        }
    }

    fn fault(url: &str, credentials: &SinkCredentials) -> String {
        Opener::of_servers().open(&sink(url), credentials).unwrap_err()
    }

    #[tokio::test]
    async fn what_cannot_be_parsed_is_told_by_secret_and_entry_and_never_quoted() {
        let pem = |text: &str| Some(text.as_bytes().to_vec());
        let ca = SinkCredentials { ca: pem("CANARY"), ..SinkCredentials::default() };
        for url in ["etcds://etcd:2379", "admin+https://pingsix:9181"] {
            let api_key = Some("key".to_owned());
            let fault = fault(url, &SinkCredentials { api_key, ..ca.clone() });
            let expected =
                "PingsixProxy infra/edge names for its sink Secret infra/login, whose entry \"ca.crt\" ";
            assert_eq!(fault, format!("{expected}holds no certificate"), "{url}");
        }
        let api_key = Some("CANARY\u{7f}".to_owned());
        let fault_of_key =
            fault("admin+http://127.0.0.1:9181", &SinkCredentials { api_key, ..SinkCredentials::default() });
        assert!(fault_of_key.contains("entry \"apiKey\" cannot be"), "{fault_of_key}");
        assert!(!fault_of_key.contains("CANARY"), "{fault_of_key}");
    }

    #[tokio::test]
    async fn plaintext_leaves_the_machine_only_if_that_is_allowed() {
        let fault = fault("etcd://etcd:2379", &SinkCredentials::default());
        assert!(fault.contains("PingsixProxy infra/edge") && fault.contains("plaintext"), "{fault}");
        let allowed = SinkParameters { allow_plaintext: true, ..sink("etcd://etcd:2379") };
        let credentials = SinkCredentials {
            username: Some("gateway".to_owned()),
            password: Some("CANARY".to_owned()),
            ..SinkCredentials::default()
        };
        let outlet = Opener::of_servers().open(&allowed, &credentials).unwrap();
        assert_eq!(format!("{outlet:?}"), "Outlet(\"etcd://etcd:2379\")");
    }
}
