//! The instances of data planes: those that parameters describe, and the Pods behind the Services of managed data
//! planes.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use pingsix_translate::selection::ObjectSource as _;
use pingsix_translate::snapshot::{Gateway, IngressClass, OwnAddress};
use pingsix_translate::status::Address;
use pingsix_translate::{Kind, ObjectKey};

use super::shared::Shared;
use super::{Message, Messages};
use crate::controller::poll_targets::{PageKey, PagesByPlane, StatusPages};
use crate::delivery::status_page::StatusUrl;
use crate::provision::service_name;

impl Shared {
    /// Follows the addresses of all owners.
    pub(super) fn follow_all_addresses(&mut self) -> Messages {
        let world = self.reconciler.world();
        let owners = world.keys::<Gateway>().into_iter().chain(world.keys::<IngressClass>());
        owners.collect::<Vec<_>>().iter().filter_map(|owner| self.follow_own_addresses(owner)).collect()
    }

    /// Refuses backends that are the data planes of an owner. PingSIX would forward a request to itself until it has no
    /// connections left, because it marks no request that it forwards. Other ports of its Pods have metrics and status pages
    /// of all namespaces.
    pub(super) fn follow_own_addresses(&mut self, owner: &ObjectKey) -> Option<Message> {
        let addresses = self.own_addresses(owner);
        let is_other = self.reconciler.set_own_addresses(owner, addresses);
        is_other.then(|| Message::Reconcile([owner.clone()].into()))
    }

    /// The known addresses of an owner's data planes: the Pods behind its Service, and its published addresses with the
    /// ports of its listeners.
    fn own_addresses(&self, owner: &ObjectKey) -> BTreeSet<OwnAddress> {
        let reconciler = &self.reconciler;
        let mut own = BTreeSet::new();
        let ports: Vec<u16> = if let Some(infrastructure) = reconciler.infrastructure(owner) {
            for slice in reconciler.world().slices_of(&service_name(infrastructure)) {
                let addresses = slice.endpoints.iter().filter_map(|endpoint| endpoint.address);
                own.extend(addresses.map(OwnAddress::Pod));
            }
            infrastructure.all_ports().into_iter().collect()
        } else if owner.kind == Kind::Gateway {
            let gateway = reconciler.world().get::<Gateway>(&owner.name);
            let listeners = gateway.iter().flat_map(|gateway| &gateway.spec.listeners);
            listeners.filter_map(|listener| u16::try_from(listener.port).ok()).collect()
        } else {
            vec![80, 443]
        };
        for address in self.addresses_of(owner).into_iter().flatten() {
            if let Address::Ip(ip) = address {
                own.extend(ports.iter().map(|port| OwnAddress::Clients(SocketAddr::new(ip, *port))));
            }
        }
        own
    }

    /// The status pages of an owner's data planes.
    pub(super) fn pages_of(&self, owner: &ObjectKey) -> PagesByPlane {
        let fixed = self.fixed_pages.iter().filter(|(plane, _)| plane.owner() == *owner);
        let mut pages: PagesByPlane =
            fixed.map(|(plane, urls)| (plane.clone(), StatusPages::of_options(urls.clone()))).collect();
        if let Some(attached) = self.reconciler.attached(owner) {
            for (plane, urls) in &attached.status_pages {
                // Validation refuses URLs that do not parse.
                let urls = urls.iter().filter_map(|url| url.parse::<StatusUrl>().ok()).collect();
                let key = if attached.status_pages_are_of_class { PageKey::OfOptions } else { PageKey::None };
                pages.insert(plane.clone(), StatusPages { urls, coming: BTreeSet::new(), key });
            }
        }
        pages.extend(self.managed.pages(&self.reconciler, owner));
        pages
    }
}
