//! Parameters of attached data planes.

use std::collections::{BTreeMap, BTreeSet};

use super::layers::Layers;
use crate::crd::{Attached, AttachedAddress, AttachedAddressType};
use crate::infrastructure::{AttachedParameters, SinkParameters};
use crate::model::{Address, DataPlaneKey, Layout, ObjectName, Options};

/// Merges parameters that are valid by themselves.
pub(super) fn read(
    attached: &Layers<'_, Attached>,
    options: &Options,
    plane_of: impl Fn(Option<u16>) -> DataPlaneKey,
) -> Result<AttachedParameters, String> {
    let layout = attached.first(|attached| attached.layout.as_ref());
    let urls =
        attached.first_with_name(|attached| Some(&attached.status_urls).filter(|urls| !urls.is_empty()));
    let of_gateway =
        attached.of_gateway(|attached| Some(&attached.status_urls).filter(|urls| !urls.is_empty()));
    let status_pages_are_of_class = of_gateway.is_none();
    let mut status_pages: BTreeMap<DataPlaneKey, BTreeSet<String>> = BTreeMap::new();
    for (proxy, (index, url)) in
        urls.into_iter().flat_map(|(proxy, urls)| urls.iter().enumerate().map(move |url| (proxy, url)))
    {
        let cause = match (layout.unwrap_or(options.layout), url.port) {
            (Layout::Shared, Some(_)) => "one process serves all ports, so that no port can be named",
            (Layout::PerPort, None) => "there is a process for each port, so that one has to be named",
            (Layout::Shared, None) | (Layout::PerPort, Some(_)) => {
                status_pages.entry(plane_of(url.port)).or_default().insert(url.url.clone());
                continue;
            }
        };
        return Err(format!(
            "PingsixProxy {proxy} cannot be used: spec.attached.statusUrls[{index}].port: With this layout, {cause}."
        ));
    }
    let sink =
        attached.first_with_name(|attached| attached.sink.as_ref()).map(|(proxy, sink)| SinkParameters {
            proxy: proxy.clone(),
            url: sink.url.clone(),
            allow_plaintext: sink.allow_plaintext,
            credentials: sink
                .credentials_secret_ref
                .as_ref()
                .map(|secret| ObjectName::new(proxy.namespace.clone(), secret.name.as_str())),
        });
    let addresses = attached.list(|attached| &attached.addresses);
    let addresses = addresses.iter().filter_map(address).collect();
    if let Some(sink) = sink.as_ref().filter(|_| !options.attached_sinks) {
        return Err(format!(
            "PingsixProxy {} cannot be used: spec.attached.sink: This controller publishes to its \
             own sinks alone, and not to {}.",
            sink.proxy, sink.url
        ));
    }
    Ok(AttachedParameters { layout, addresses, status_pages, status_pages_are_of_class, sink })
}

/// An address, if the value is of its type.
pub(super) fn address(address: &AttachedAddress) -> Option<Address> {
    match address.kind {
        AttachedAddressType::IPAddress => address.value.parse().ok().map(Address::Ip),
        AttachedAddressType::Hostname => {
            let hostname = crate::model::Hostname::parse(&address.value).ok()?;
            (!hostname.is_wildcard()).then(|| Address::Hostname(hostname.to_string()))
        }
    }
}
