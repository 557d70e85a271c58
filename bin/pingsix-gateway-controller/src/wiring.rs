//! From the configuration to the options of the library crates.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use http::HeaderValue;
use pingsix_gateway_api::controller::{ControllerOptions, ProvisioningOptions, PublishedAddresses};
use pingsix_gateway_api::delivery::status_page::{StatusClient, StatusUrl};
use pingsix_gateway_api::leader::{LeaseOptions, lease_name};
use pingsix_gateway_api::pki::{AuthorityOptions, Lifetimes};
use pingsix_gateway_api::provision::Installation;
use pingsix_gateway_api::reconcile::Pace;
use pingsix_gateway_api::watch::{Namespaces, SecretWatch};
use pingsix_sink::Scope;
use pingsix_sink::embedded::ServerTls;
use pingsix_translate::status::Address;
use pingsix_translate::{BackendAddresses, Budget, DataPlaneKey, ObjectName, Options};

use crate::configuration::{Configuration, Leader, Publish, Tls, Watch};
use crate::values::{SecretChoice, Span, StatusTarget};

/// The identity of this process, and its namespace.
pub(crate) struct Replica {
    /// The namespace it runs in, or that of the kubeconfig.
    pub(crate) namespace: String,
    /// The name of its Pod, or of its machine.
    pub(crate) instance: String,
}

/// The name of the Pod, which is that of its machine.
pub(crate) fn instance() -> String {
    let named = |variable| std::env::var(variable).ok().filter(|name| !name.is_empty());
    named("POD_NAME").or_else(|| named("HOSTNAME")).unwrap_or_else(|| "pingsix-gateway-controller".to_owned())
}

impl Configuration {
    /// The options of translation.
    pub(crate) fn translation(&self) -> Options {
        Options {
            controller_name: self.controller_name.clone(),
            layout: self.layout.into(),
            root: self.root.clone(),
            responder: self.responder.address(),
            budget: Budget { bytes: self.budget.bytes, matcher_entries: self.budget.entries },
            namespace_share: self.budget.namespace_share,
            route_names: self.route_names,
            stream: self.stream,
            attached_sinks: true,
            backend_addresses: BackendAddresses {
                loopback: self.backends.loopback,
                // Validation refuses texts that are no networks.
                refused: self.backends.refuse.iter().filter_map(|network| network.parse().ok()).collect(),
            },
        }
    }

    /// The pace of reconciliations.
    pub(crate) fn pace(&self) -> Pace {
        Pace {
            rest_factor: self.pace.rest_factor,
            longest_rest: self.pace.longest_rest.duration(),
            first_retry: self.pace.first_retry.duration(),
            longest_retry: self.pace.longest_retry.duration(),
        }
    }

    /// The status pages of each data plane.
    pub(crate) fn status_pages(&self) -> BTreeMap<DataPlaneKey, BTreeSet<StatusUrl>> {
        let mut pages = BTreeMap::<_, BTreeSet<_>>::new();
        for StatusTarget { data_plane, url } in &self.status.url {
            pages.entry(data_plane.clone()).or_default().insert(url.clone());
        }
        pages
    }
}

impl Tls {
    /// `None` for plaintext.
    pub(crate) fn server(&self) -> Option<ServerTls> {
        let tls = ServerTls::from_files(self.cert.as_ref()?, self.key.as_ref()?);
        Some(match &self.client_ca {
            None => tls,
            Some(bundle) => tls.client_ca_file(bundle),
        })
    }
}

/// The options of the controller.
///
/// # Errors
///
/// When a file that is named cannot be used, or the times of the election do not go together.
pub(crate) fn controller_options(
    configuration: &Configuration,
    place: &Replica,
) -> anyhow::Result<ControllerOptions> {
    let mut options = ControllerOptions::new(configuration.translation(), &place.instance);
    watch(&configuration.watch, &mut options);
    options.pace = configuration.pace();
    options.drain = configuration.shutdown_grace.duration() / 2;
    options.addresses = addresses(&configuration.publish);
    options.status_pages = configuration.status_pages();
    if let Some(file) = &configuration.status.api_key_file {
        let key =
            api_key(file).with_context(|| format!("cannot use {} (status.api-key-file)", file.display()))?;
        options.status_client = StatusClient::new(Some(key));
    }
    if let Some(secret) = &configuration.feed.authority.secret {
        let namespace = configuration.leader.namespace.as_deref().unwrap_or(&place.namespace);
        options.feed_authority = Some(authority(configuration, ObjectName::new(namespace, secret.as_str()))?);
    }
    if configuration.leader.elect {
        options.lease = Some(lease(&configuration.leader, &configuration.controller_name, place)?);
    }
    options.provisioning = provisioning(configuration, place)?;
    Ok(options)
}

/// The options of managed data planes; `None` without an endpoint of the feed that they could reach.
fn provisioning(
    configuration: &Configuration,
    place: &Replica,
) -> anyhow::Result<Option<ProvisioningOptions>> {
    let endpoints = &configuration.feed.endpoint;
    if endpoints.is_empty() {
        return Ok(None);
    }
    let responder =
        configuration.responder.address().filter(|address| address.ip().to_canonical().is_loopback());
    let responder = responder.context(
        "a responder in each Pod is needed to run data planes: an address of loopback (responder, feed.endpoint)",
    )?;
    let namespace = configuration.leader.namespace.as_deref().unwrap_or(&place.namespace);
    let lease = lease_name(&configuration.controller_name);
    let lease = configuration.leader.lease.as_ref().unwrap_or(&lease);
    Ok(Some(ProvisioningOptions {
        installation: Installation {
            controller_name: configuration.controller_name.clone(),
            root: configuration.root.clone(),
            feed: endpoints.iter().map(ToString::to_string).collect(),
            image: configuration.data_plane.image.clone(),
            sidecar_image: configuration.data_plane.sidecar_image.clone(),
            responder,
        },
        key: ObjectName::new(namespace, format!("{lease}-status-key")),
    }))
}

fn watch(watch: &Watch, options: &mut ControllerOptions) {
    if !watch.namespaces.is_empty() {
        options.watch.namespaces = Namespaces::Only(watch.namespaces.iter().cloned().collect());
    }
    options.watch.labels.clone_from(&watch.selector);
    options.watch.secrets = match watch.secrets {
        SecretChoice::ByName => SecretWatch::ByName,
        SecretChoice::All => SecretWatch::All { labels: None, fields: None },
    };
}

fn addresses(publish: &Publish) -> PublishedAddresses {
    if let Some(service) = &publish.service {
        return PublishedAddresses::Service(service.0.clone());
    }
    if publish.address.is_empty() {
        return PublishedAddresses::None;
    }
    let read = |address: &String| match address.parse() {
        Ok(ip) => Address::Ip(ip),
        Err(_) => Address::Hostname(address.clone()),
    };
    PublishedAddresses::Fixed(publish.address.iter().map(read).collect())
}

/// The key of status pages. Errors do not show the key.
fn api_key(file: &Path) -> anyhow::Result<HeaderValue> {
    let text = fs::read_to_string(file)?;
    let key = text.trim();
    if key.is_empty() {
        bail!("the file is empty");
    }
    HeaderValue::from_str(key).ok().context("the key has characters that no header can have")
}

fn authority(configuration: &Configuration, secret: ObjectName) -> anyhow::Result<AuthorityOptions> {
    let authority = &configuration.feed.authority;
    let mut options = AuthorityOptions::new(secret, &authority.service);
    options.server_names.extend(authority.names.iter().cloned());
    for client in &authority.clients {
        let namespace = client.namespace.as_deref().unwrap_or(&options.secret.namespace);
        let secret = ObjectName::new(namespace, &client.secret);
        ensure!(
            secret != options.secret,
            "{client} names the Secret of the authority (feed.authority.clients)"
        );
        let scope = Scope::new(client.data_plane.prefix(&configuration.root))?;
        options.clients.entry(secret).or_default().insert(scope);
    }
    // Without data planes of its own, the controller has no writer that reports.
    options.has_reports = !configuration.feed.endpoint.is_empty();
    let [lifetime, certificate, overlap] =
        [authority.lifetime, authority.certificate_lifetime, authority.overlap].map(Span::duration);
    options.lifetimes = Lifetimes::new(lifetime, certificate, overlap)
        .context("the times of certificates do not go together (feed.authority)")?;
    Ok(options)
}

fn lease(leader: &Leader, controller_name: &str, place: &Replica) -> anyhow::Result<LeaseOptions> {
    let namespace = leader.namespace.as_deref().unwrap_or(&place.namespace);
    let mut lease = LeaseOptions::new(namespace, controller_name, &place.instance);
    if let Some(name) = &leader.lease {
        lease.name.clone_from(name);
    }
    lease.duration = leader.duration.duration();
    lease.renew_deadline = leader.renew_deadline.duration();
    lease.retry = leader.retry.duration();
    lease.validate().context("the times of the election do not go together (leader)")?;
    Ok(lease)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_an_ip_address_or_a_name() {
        let publish =
            Publish { address: vec!["192.0.2.1".to_owned(), "lb.example".to_owned()], service: None };
        let PublishedAddresses::Fixed(addresses) = addresses(&publish) else { panic!("they are fixed") };
        assert_eq!(addresses[0], Address::Ip([192, 0, 2, 1].into()));
        assert_eq!(addresses[1], Address::Hostname("lb.example".to_owned()));
    }

    #[test]
    fn a_key_that_cannot_be_used_is_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        for (content, expected) in [("  \n", "the file is empty"), ("ses\u{7}ame", "no header can have")] {
            fs::write(&file, content).unwrap();
            let error = format!("{:#}", api_key(&file).unwrap_err());
            assert!(error.contains(expected) && !error.contains("ame"), "{error}");
        }
        fs::write(&file, "sesame\n").unwrap();
        assert_eq!(api_key(&file).unwrap(), "sesame");
    }
}
