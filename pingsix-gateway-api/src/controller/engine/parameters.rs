//! The instances of data planes: those that parameters describe, and the Pods behind the Services of managed data
//! planes.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use pingsix_translate::selection::ObjectSource as _;
use pingsix_translate::snapshot::{Gateway, IngressClass, OwnAddress};
use pingsix_translate::status::Address;
use pingsix_translate::{DataPlaneKey, Kind, ObjectKey};

use super::Engine;
use crate::controller::poll_targets::{PageKey, PagesByPlane, StatusPages};
use crate::delivery::status_page::StatusUrl;
use crate::provision::service_name;

impl Engine {
    /// Sets the polled status pages of an owner: those of its parameters, and for its other data planes those of the
    /// options.
    pub(super) fn follow_parameters(&mut self, owner: &ObjectKey) {
        self.follow_own_addresses(owner);
        let pages = self.pages_of(owner);
        let planes: BTreeSet<DataPlaneKey> = pages.keys().cloned().collect();
        let Some(gone) = self.parts.targets.set(owner, pages) else { return };
        for plane in &planes {
            self.publish_revision(plane);
        }
        for plane in &gone {
            self.pages.remove(plane);
        }
        self.refresh_readers_of(gone);
    }

    /// Handles a change of the addresses that options publish.
    pub(super) fn refresh_addresses(&mut self) {
        self.report.update_all_addresses(self.view());
        let world = self.parts.reconciler.world();
        let owners: Vec<ObjectKey> =
            world.keys::<Gateway>().into_iter().chain(world.keys::<IngressClass>()).collect();
        for owner in owners {
            self.follow_own_addresses(&owner);
        }
    }

    /// Refuses backends that are the data planes of an owner. PingSIX would forward a request to itself until it has no
    /// connections left, because it marks no request that it forwards. Other ports of its Pods have metrics and status pages
    /// of all namespaces.
    pub(super) fn follow_own_addresses(&mut self, owner: &ObjectKey) {
        let addresses = self.own_addresses(owner);
        if self.parts.reconciler.set_own_addresses(owner, addresses) {
            self.push([owner.clone()].into());
        }
    }

    /// The known addresses of an owner's data planes: the Pods behind its Service, and its published addresses with the
    /// ports of its listeners.
    fn own_addresses(&self, owner: &ObjectKey) -> BTreeSet<OwnAddress> {
        let reconciler = &self.parts.reconciler;
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
        for address in self.report.addresses_of(self.view(), owner).into_iter().flatten() {
            if let Address::Ip(ip) = address {
                own.extend(ports.iter().map(|port| OwnAddress::Clients(SocketAddr::new(ip, *port))));
            }
        }
        own
    }

    /// The status pages of an owner's data planes.
    fn pages_of(&self, owner: &ObjectKey) -> PagesByPlane {
        let fixed = self.parts.fixed_pages.iter().filter(|(plane, _)| plane.owner() == *owner);
        let mut pages: PagesByPlane =
            fixed.map(|(plane, urls)| (plane.clone(), StatusPages::of_options(urls.clone()))).collect();
        if let Some(attached) = self.parts.reconciler.attached(owner) {
            for (plane, urls) in &attached.status_pages {
                // Validation refuses URLs that do not parse.
                let urls = urls.iter().filter_map(|url| url.parse::<StatusUrl>().ok()).collect();
                let key = if attached.status_pages_are_of_class { PageKey::OfOptions } else { PageKey::None };
                pages.insert(plane.clone(), StatusPages { urls, coming: BTreeSet::new(), key });
            }
        }
        pages.extend(self.managed.pages(&self.parts.reconciler, owner));
        pages
    }
}
