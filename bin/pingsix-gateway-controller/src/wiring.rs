//! From the configuration to the options of the controller.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use http::HeaderValue;
use pingsix_gateway_api::controller::{ControllerOptions, PublishedAddresses};
use pingsix_gateway_api::delivery::status_page::StatusClient;
use pingsix_gateway_api::leader::LeaseOptions;
use pingsix_gateway_api::watch::{Namespaces, SecretWatch};
use pingsix_translate::verdict::Address;

use crate::configuration::{Configuration, Leader, Publish, Watch};
use crate::values::SecretChoice;

/// Who this process is, and where.
pub(crate) struct Place {
    /// The namespace it runs in, or that of the kubeconfig.
    pub(crate) namespace: String,
    /// The name of its Pod, or of its machine.
    pub(crate) instance: String,
}

/// The options of the controller.
///
/// # Errors
///
/// When a file that is named cannot be used, or the times of the election do not go together.
pub(crate) fn controller_options(
    configuration: &Configuration,
    place: &Place,
) -> anyhow::Result<ControllerOptions> {
    let mut options = ControllerOptions::new(configuration.translation(), &place.instance);
    watch(&configuration.watch, &mut options);
    options.pace = configuration.pace();
    options.addresses = addresses(&configuration.publish);
    options.status_pages = configuration.status_pages();
    if let Some(file) = &configuration.status.api_key_file {
        let key =
            api_key(file).with_context(|| format!("cannot use {} (status.api-key-file)", file.display()))?;
        options.status_client = StatusClient::new(Some(key));
    }
    if configuration.leader.elect {
        options.lease = Some(lease(&configuration.leader, &configuration.controller_name, place)?);
    }
    Ok(options)
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

/// The key of status pages. What is wrong with it is said without it.
fn api_key(file: &Path) -> anyhow::Result<HeaderValue> {
    let text = fs::read_to_string(file)?;
    let key = text.trim();
    if key.is_empty() {
        bail!("the file is empty");
    }
    HeaderValue::from_str(key).ok().context("the key has characters that no header can have")
}

fn lease(leader: &Leader, controller_name: &str, place: &Place) -> anyhow::Result<LeaseOptions> {
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
        for (content, fault) in [("  \n", "the file is empty"), ("ses\u{7}ame", "no header can have")] {
            fs::write(&file, content).unwrap();
            let error = format!("{:#}", api_key(&file).unwrap_err());
            assert!(error.contains(fault) && !error.contains("ame"), "{error}");
        }
        fs::write(&file, "sesame\n").unwrap();
        assert_eq!(api_key(&file).unwrap(), "sesame");
    }
}
