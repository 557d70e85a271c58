//! The addresses of a Service, and the judgement on the requested addresses of a Gateway.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::Service;
use pingsix_translate::FieldPath;
use pingsix_translate::infrastructure::{RequestedAddress, RequestedAddressKind};
use pingsix_translate::status::Address;

/// Why a Gateway is not reached where it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AddressProblem {
    /// There is none yet, or none of the type that is asked for.
    NotAssigned(String),
    /// The requested addresses are not available: others were assigned.
    NotUsable(String),
}

/// The external addresses of a Service: those of its load balancer, else its external addresses, else its cluster
/// address.
pub(crate) fn addresses_of_service(service: &Service) -> Vec<Address> {
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

/// Compares what the Gateway asks for (`spec.addresses`) with what its Service has. A load balancer is asked for the first
/// IP address (`requested_address`); everything else may come true by chance only, or by annotations of the Service.
///
/// # Errors
///
/// [`AddressProblem`]: the Gateway is not programmed.
pub(crate) fn judge_addresses(
    requested: &[RequestedAddress],
    assigned: &[Address],
    service: &str,
) -> Result<(), AddressProblem> {
    if assigned.is_empty() {
        let too_many = unavailable(requested);
        return Err(if too_many.is_empty() {
            AddressProblem::NotAssigned(format!("Service {service} has no address yet."))
        } else {
            AddressProblem::NotUsable(too_many.join(" "))
        });
    }
    let (mut unusable, mut missing) = (Vec::new(), Vec::new());
    for RequestedAddress { index, kind, value } in requested {
        let at = FieldPath::new("spec").child("addresses").index(*index);
        let has = |wanted: &str| assigned.iter().any(|address| is(address, *kind, wanted));
        match value.as_deref() {
            Some(value) if !has(value) => {
                unusable
                    .push(format!("{}: \"{value}\" was not given to Service {service}.", at.child("value")));
            }
            None if !assigned.iter().any(|address| kind_of(address) == *kind) => {
                missing.push(format!("{at}: Service {service} was given no address of this type."));
            }
            Some(_) | None => {}
        }
    }
    if !unusable.is_empty() {
        return Err(AddressProblem::NotUsable(unusable.join(" ")));
    }
    if !missing.is_empty() {
        return Err(AddressProblem::NotAssigned(missing.join(" ")));
    }
    Ok(())
}

/// The address to ask a load balancer for: a Service has room for one.
pub(super) fn requested_address(requested: &[RequestedAddress]) -> Option<&RequestedAddress> {
    requested
        .iter()
        .find(|address| address.kind == RequestedAddressKind::IpAddress && address.value.is_some())
}

/// The messages on addresses that will never be available: a Service has one address of a family at most.
fn unavailable(requested: &[RequestedAddress]) -> Vec<String> {
    let ip = |address: &RequestedAddress| address.value.as_deref()?.parse::<IpAddr>().ok();
    let Some((first, asked)) = requested_address(requested).and_then(|first| Some((first, ip(first)?)))
    else {
        return Vec::new();
    };
    let same_family = |ip: IpAddr| ip != asked && ip.is_ipv4() == asked.is_ipv4();
    let addresses = FieldPath::new("spec").child("addresses");
    requested
        .iter()
        .filter(|address| address.kind == RequestedAddressKind::IpAddress)
        .filter_map(|address| ip(address).filter(|ip| same_family(*ip)).map(|ip| (address.index, ip)))
        .map(|(index, ip)| {
            let (at, first) = (addresses.index(index).child("value"), addresses.index(first.index));
            format!("{at}: \"{ip}\" cannot be had beside {first}: a load balancer is asked for one address.")
        })
        .collect()
}

const fn kind_of(address: &Address) -> RequestedAddressKind {
    match address {
        Address::Ip(_) => RequestedAddressKind::IpAddress,
        Address::Hostname(_) => RequestedAddressKind::Hostname,
    }
}

fn is(address: &Address, kind: RequestedAddressKind, wanted: &str) -> bool {
    match (address, kind) {
        (Address::Ip(ip), RequestedAddressKind::IpAddress) => {
            wanted.parse::<IpAddr>().is_ok_and(|wanted| wanted == *ip)
        }
        (Address::Hostname(name), RequestedAddressKind::Hostname) => name.eq_ignore_ascii_case(wanted),
        (Address::Ip(_), RequestedAddressKind::Hostname)
        | (Address::Hostname(_), RequestedAddressKind::IpAddress) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const IP: RequestedAddressKind = RequestedAddressKind::IpAddress;
    const HOSTNAME: RequestedAddressKind = RequestedAddressKind::Hostname;

    fn judged(
        requested: &[(RequestedAddressKind, Option<&str>)],
        assigned: &[Address],
    ) -> Result<(), AddressProblem> {
        let requested = requested.iter().enumerate().map(|(index, (kind, value))| RequestedAddress {
            index,
            kind: *kind,
            value: value.map(str::to_owned),
        });
        judge_addresses(&requested.collect::<Vec<_>>(), assigned, "\"infra/web\"")
    }

    fn ip() -> Address {
        Address::Ip([192, 0, 2, 1].into())
    }

    #[test]
    fn without_an_address_nothing_is_assigned() {
        let error = AddressProblem::NotAssigned("Service \"infra/web\" has no address yet.".to_owned());
        assert_eq!(judged(&[], &[]), Err(error.clone()));
        assert_eq!(judged(&[(IP, Some("192.0.2.1"))], &[]), Err(error));
        assert_eq!(judged(&[], &[ip()]), Ok(()));
    }

    #[test]
    fn of_two_addresses_of_a_family_one_is_never_had() {
        for addresses in [["192.0.2.1", "192.0.2.9"], ["2001:db8::1", "2001:db8::9"]] {
            let asked = addresses.map(|address| (IP, Some(address)));
            let Err(AddressProblem::NotUsable(message)) = judged(&asked, &[]) else { panic!() };
            assert_eq!(
                message,
                format!(
                    "spec.addresses[1].value: \"{}\" cannot be had beside spec.addresses[0]: a load balancer is asked \
                     for one address.",
                    addresses[1]
                )
            );
        }
        // Both families may come, and one address twice is one.
        for other in ["2001:db8::1", "192.0.2.1"] {
            let judged =
                judged(&[(IP, Some("192.0.2.1")), (IP, Some(other)), (HOSTNAME, Some("a.example"))], &[]);
            assert!(matches!(judged, Err(AddressProblem::NotAssigned(_))), "{judged:?}");
        }
        // The requested address is usable after all.
        let both = [ip(), Address::Ip([192, 0, 2, 9].into())];
        assert_eq!(judged(&[(IP, Some("192.0.2.1")), (IP, Some("192.0.2.9"))], &both), Ok(()));
    }

    #[test]
    fn a_requested_address_has_to_be_assigned() {
        let name = Address::Hostname("lb.example".to_owned());
        assert_eq!(
            judged(&[(IP, Some("192.0.2.1")), (HOSTNAME, Some("LB.example"))], &[ip(), name.clone()]),
            Ok(())
        );
        assert_eq!(judged(&[(IP, None)], &[ip()]), Ok(()));
        let Err(AddressProblem::NotUsable(message)) = judged(&[(IP, None), (IP, Some("192.0.2.9"))], &[ip()])
        else {
            panic!()
        };
        assert_eq!(message, "spec.addresses[1].value: \"192.0.2.9\" was not given to Service \"infra/web\".");
        let Err(AddressProblem::NotAssigned(message)) = judged(&[(IP, None)], &[name]) else { panic!() };
        assert_eq!(message, "spec.addresses[0]: Service \"infra/web\" was given no address of this type.");
    }

    fn addresses(service: Value) -> String {
        let service: Service = serde_json::from_value(service).unwrap();
        let addresses: Vec<String> = addresses_of_service(&service)
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
