//! Where data planes are reached: what is written into statuses.

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client};
use kube_runtime::{WatchStreamExt as _, watcher};
use pingsix_translate::ObjectName;
use pingsix_translate::status::Address;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::fault::Fault;

/// Where data planes are reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PublishedAddresses {
    /// Somebody else says so; statuses are left alone.
    #[default]
    None,
    /// Always at these.
    Fixed(Vec<Address>),
    /// Where this Service is reached.
    Service(ObjectName),
}

/// Follows the addresses until it is stopped. `None` as long as they are not known.
pub(super) fn start(
    client: &Client,
    addresses: &PublishedAddresses,
    stop: &CancellationToken,
) -> (impl Future<Output = ()> + Send + use<>, watch::Receiver<Option<Vec<Address>>>) {
    let (known, receiver) = watch::channel(match addresses {
        PublishedAddresses::Fixed(addresses) => Some(addresses.clone()),
        PublishedAddresses::None | PublishedAddresses::Service(_) => None,
    });
    let service = match addresses {
        PublishedAddresses::Service(name) => Some(name.clone()),
        PublishedAddresses::None | PublishedAddresses::Fixed(_) => None,
    };
    let (client, stop) = (client.clone(), stop.clone());
    let follow = async move {
        match service {
            Some(service) => {
                stop.run_until_cancelled(follow(client, service, known)).await;
            }
            // The channel stays open, so that nobody takes its end for a change.
            None => stop.cancelled().await,
        }
    };
    (follow, receiver)
}

async fn follow(client: Client, name: ObjectName, known: watch::Sender<Option<Vec<Address>>>) {
    let api: Api<Service> = Api::namespaced(client, &name.namespace);
    let mut versions = std::pin::pin!(watcher::watch_object(api, &name.name).default_backoff());
    // What was last complained about: a fault that stays is said once.
    let mut complaint = None;
    while let Some(version) = versions.next().await {
        let fault = match &version {
            Ok(Some(_)) => None,
            Ok(None) => Some("it does not exist".to_owned()),
            Err(error) => Some(Fault::from(error).to_string()),
        };
        if complaint != fault
            && let Some(error) = &fault
        {
            tracing::warn!(service = %name, error, "the addresses of the Service cannot be published");
        }
        complaint = fault;
        // When it cannot be watched, what was known stays.
        if let Ok(service) = version {
            let addresses = service.as_ref().map(of_service).unwrap_or_default();
            known.send_if_modified(|known| {
                let is_other = known.as_ref() != Some(&addresses);
                *known = Some(addresses);
                is_other
            });
        }
    }
}

/// Where a Service is reached from outside: at its load balancer, else at its external addresses, else, for one without
/// either, at its cluster address.
pub(crate) fn of_service(service: &Service) -> Vec<Address> {
    let ingress = service.status.iter().flat_map(|status| &status.load_balancer).flat_map(|balancer| {
        balancer.ingress.iter().flatten().filter_map(|ingress| {
            let ip = ingress.ip.as_deref().and_then(|ip| ip.parse().ok()).map(Address::Ip);
            ip.or_else(|| ingress.hostname.clone().filter(|name| !name.is_empty()).map(Address::Hostname))
        })
    });
    let balanced: Vec<Address> = ingress.collect();
    if !balanced.is_empty() {
        return balanced;
    }
    let Some(spec) = &service.spec else { return Vec::new() };
    let parsed =
        |ips: &[String]| ips.iter().filter_map(|ip| ip.parse().ok()).map(Address::Ip).collect::<Vec<_>>();
    let external = parsed(spec.external_ips.as_deref().unwrap_or_default());
    // One that waits for its load balancer is not reached yet.
    if !external.is_empty() || spec.type_.as_deref() == Some("LoadBalancer") {
        return external;
    }
    parsed(spec.cluster_ip.as_slice())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn addresses(service: Value) -> String {
        let service: Service = serde_json::from_value(service).unwrap();
        let addresses: Vec<String> = of_service(&service)
            .iter()
            .map(|address| address.to_gateway_status()["value"].to_string())
            .collect();
        addresses.join(" ").replace('"', "")
    }

    #[test]
    fn a_service_is_reached_at_its_load_balancer_first() {
        let balanced = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}, {"hostname": "lb.example"}]}},
            "spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1"}});
        assert_eq!(addresses(balanced), "192.0.2.1 lb.example");
        let waiting = json!({"spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1"}});
        assert_eq!(addresses(waiting), "");
        let external = json!({"spec": {"externalIPs": ["192.0.2.7"], "clusterIP": "10.0.0.1"}});
        assert_eq!(addresses(external), "192.0.2.7");
        assert_eq!(addresses(json!({"spec": {"clusterIP": "10.0.0.1"}})), "10.0.0.1");
        assert_eq!(addresses(json!({"spec": {"clusterIP": "None"}})), "");
    }
}
