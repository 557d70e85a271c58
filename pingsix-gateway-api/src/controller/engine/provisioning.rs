//! Managed data planes: desired infrastructure goes to the provisioner, and its reports come back.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use pingsix_translate::infrastructure::{Infrastructure, SecretKey};
use pingsix_translate::selection::ObjectSource as _;
use pingsix_translate::snapshot::{EndpointState, Gateway, GatewayClass, Secret};
use pingsix_translate::status::{
    Address, Condition, ConditionStatus, ConditionType, GatewayVerdict, Problem, Reason,
};
use pingsix_translate::{Kind, ObjectKey, ObjectName};
use tokio::sync::watch;

use super::{Message, Messages};
use crate::controller::poll_targets::{PageKey, PagesByPlane};
use crate::delivery::status_page::StatusUrl;
use crate::provision::{
    AddressProblem, DesiredInfrastructure, InfrastructureNeed, Installation, InstallationKey, Keyring,
    MissingKeysError, ProvisionedOwners, judge_addresses, service_name, status_ports,
};
use crate::reconcile::Reconciler;
use crate::world::World;

/// The message of a Gateway whose parameters cannot be used.
const KEPT: &str = "The Gateway is not accepted. Its last publication stays until its parameters are \
 valid.";

/// The problems of the objects that cannot be decoded.
type Undecodable = BTreeMap<ObjectKey, Problem>;

/// The settings of managed data planes.
#[derive(Debug)]
pub(in crate::controller) struct Provisioning {
    pub(in crate::controller) installation: Arc<Installation>,
    pub(in crate::controller) wanted: watch::Sender<DesiredInfrastructure>,
    pub(in crate::controller) provisioned: watch::Receiver<ProvisionedOwners>,
    pub(in crate::controller) key: watch::Receiver<Option<InstallationKey>>,
}

/// The message of a Gateway with managed data planes at a controller that runs none.
const NOT_RUN: &str = "This controller runs no data planes: it was started without feed.endpoint \
    (PINGSIX_GATEWAY_FEED_ENDPOINT). The manifests in deploy/data-planes set that, and grant the rights that it takes.";

/// Data planes that the controller runs.
#[derive(Debug, Default)]
pub(in crate::controller) struct Managed {
    /// The tasks that run data planes; `None` if this controller runs none.
    pub(super) provisioning: Option<Provisioning>,
    /// The Service of each owner.
    services: BTreeMap<ObjectKey, ObjectName>,
    /// The owner of each Service.
    owners: BTreeMap<ObjectName, ObjectKey>,
    /// The last report of the provisioner.
    pub(super) provisioned: ProvisionedOwners,
    /// The owners of data planes that this controller cannot run.
    refused: BTreeSet<ObjectKey>,
}

impl Managed {
    pub(in crate::controller) fn new(provisioning: Option<Provisioning>) -> Self {
        Self { provisioning, ..Self::default() }
    }

    /// Passes the infrastructure of a reconciled owner to the provisioner.
    pub(super) fn provide(&mut self, reconciler: &Reconciler, undecodable: &Undecodable, owner: &ObjectKey) {
        let infrastructure = reconciler.infrastructure(owner).cloned();
        let Some(provisioning) = &self.provisioning else {
            return self.refuse_to_run(owner, infrastructure.is_some());
        };
        let service = infrastructure.as_deref().map(service_name);
        if self.services.get(owner) != service.as_ref() {
            if let Some(before) = self.services.remove(owner) {
                self.owners.remove(&before);
            }
            if let Some(service) = service {
                self.owners.insert(service.clone(), owner.clone());
                self.services.insert(owner.clone(), service);
            }
        }
        let Some(infrastructure) = infrastructure else {
            let (is_unclear, is_there) =
                (is_unclear(reconciler, undecodable, owner), reconciler.world().contains(owner));
            provisioning.wanted.send_if_modified(|wanted| match (is_unclear, is_there) {
                (true, _) => wanted.leave(owner.clone()),
                (false, true) => wanted.dismiss(owner),
                (false, false) => wanted.remove(owner),
            });
            return;
        };
        let keyring = self.keys_of_processes(reconciler, owner);
        let need = InfrastructureNeed { infrastructure, keyring };
        provisioning.wanted.send_if_modified(|wanted| wanted.set(owner.clone(), need));
    }

    /// Logs once that an owner asks for data planes which this controller cannot run. The condition has the same message.
    fn refuse_to_run(&mut self, owner: &ObjectKey, asks: bool) {
        if !asks {
            self.refused.remove(owner);
        } else if self.refused.insert(owner.clone()) {
            tracing::warn!(%owner, "{NOT_RUN}");
        }
    }

    /// The status pages of the Pods behind an owner's Service; empty if the controller does not run them.
    pub(super) fn pages(&self, reconciler: &Reconciler, owner: &ObjectKey) -> PagesByPlane {
        let mut asked = PagesByPlane::new();
        let Some(provisioning) = &self.provisioning else { return asked };
        let Some(infrastructure) = reconciler.infrastructure(owner) else { return asked };
        let key = provisioning.key.borrow().as_ref().map(|key| key.diagnostics(owner));
        let (mut ready, mut coming) = (BTreeSet::new(), BTreeSet::new());
        // Without the key, instances refuse the request.
        if key.is_some() {
            let slices = reconciler.world().slices_of(&service_name(infrastructure));
            for endpoint in slices.iter().flat_map(|slice| slice.endpoints.iter()) {
                // Processes listen on IPv4 addresses; the same Pod may have an IPv6 address in another slice.
                let Some(ip) = endpoint.address.filter(IpAddr::is_ipv4) else { continue };
                match endpoint.state {
                    EndpointState::Ready => ready.insert(ip),
                    EndpointState::Down => coming.insert(ip),
                    // A leaving instance serves the former configuration to its end.
                    EndpointState::Leaving => continue,
                };
            }
        }
        let key = key.map_or(PageKey::None, PageKey::Own);
        let ports = status_ports(infrastructure, &provisioning.installation);
        for (data_plane, port) in ports {
            let pages = asked.entry(data_plane).or_default();
            pages.key = key.clone();
            pages.urls.extend(urls(&ready, port));
            pages.coming.extend(urls(&coming, port));
        }
        for pages in asked.values_mut().filter(|pages| pages.urls.is_empty()) {
            // Without a serving instance, all of them have to confirm.
            pages.urls = std::mem::take(&mut pages.coming);
        }
        asked
    }

    /// Ends the initial phase: the provisioner deletes data planes without an owner. It keeps those of owners in an
    /// unclear state.
    pub(super) fn complete(&self, reconciler: &Reconciler, undecodable: &Undecodable) {
        let Some(provisioning) = &self.provisioning else { return };
        let gateways = reconciler.world().keys::<Gateway>().into_iter();
        let unclear: Vec<ObjectKey> =
            gateways.filter(|owner| is_unclear(reconciler, undecodable, owner)).collect();
        provisioning.wanted.send_if_modified(|wanted| {
            for owner in unclear {
                if !wanted.needs.contains_key(&owner) {
                    wanted.leave(owner);
                }
            }
            wanted.complete()
        });
    }

    /// The owners of data planes that the controller runs.
    pub(super) fn owners(&self) -> impl Iterator<Item = &ObjectKey> {
        self.services.keys()
    }

    /// The owners of these Services.
    pub(super) fn owners_of(&self, services: &BTreeSet<ObjectName>) -> BTreeSet<&ObjectKey> {
        services.iter().filter_map(|service| self.owners.get(service)).collect()
    }

    /// Applies the report of the provisioner.
    pub(super) fn apply_report(&mut self, reconciler: &Reconciler) -> Messages {
        let Some(provisioning) = &mut self.provisioning else { return Messages::new() };
        let provisioned = provisioning.provisioned.borrow_and_update().clone();
        let previous = std::mem::replace(&mut self.provisioned, provisioned);
        let known: BTreeSet<&ObjectKey> = previous.keys().chain(self.provisioned.keys()).collect();
        let changed: Vec<&ObjectKey> =
            known.into_iter().filter(|owner| previous.get(*owner) != self.provisioned.get(*owner)).collect();
        let has_other_keys = |owner: &ObjectKey| {
            let keys =
                |owners: &ProvisionedOwners| owners.get(owner).map(|provisioned| provisioned.keys.clone());
            keys(&previous) != keys(&self.provisioned)
        };
        let has_keyring = |owner: &ObjectKey| {
            let infrastructure = reconciler.infrastructure(owner);
            infrastructure
                .is_some_and(|infrastructure| keyring_of(reconciler.world(), infrastructure).is_some())
        };
        // The encrypting key may have changed.
        let rekeyed = changed.iter().copied().filter(|owner| has_keyring(owner) && has_other_keys(owner));
        let rekeyed = Message::Reconcile(rekeyed.cloned().collect());
        [rekeyed].into_iter().chain(changed.into_iter().cloned().map(Message::Provisioned)).collect()
    }

    /// The addresses of an owner's Service; `None` while they are unknown.
    pub(super) fn addresses(&self, owner: &ObjectKey) -> Option<Vec<Address>> {
        Some(self.provisioned.get(owner)?.addresses.clone())
    }

    /// Adds the conditions of the infrastructure to those of an accepted Gateway.
    pub(super) fn hinder(&self, reconciler: &Reconciler, verdict: &mut GatewayVerdict) {
        let owner = &*verdict.key;
        if reconciler.is_kept(owner)
            && let Some(programmed) = verdict.conditions.get(ConditionType::Programmed).cloned()
        {
            verdict.conditions.set(Condition { message: KEPT.to_owned(), ..programmed });
        }
        let Some(infrastructure) = reconciler.infrastructure(owner) else { return };
        let Some(programmed) = verdict.conditions.get(ConditionType::Programmed).cloned() else { return };
        if !verdict.conditions.is_true(ConditionType::Accepted)
            || programmed.reason == Reason::AddressNotUsable
        {
            return;
        }
        let Some((reason, message)) = self.obstacle(owner, infrastructure) else { return };
        let is_programmed = programmed.status == ConditionStatus::True;
        // A reason that ends by itself comes after the pending ones.
        let (reason, message) = if reason == Reason::AddressNotAssigned && !is_programmed {
            (programmed.reason, format!("{} {message}", programmed.message))
        } else {
            (reason, message)
        };
        verdict.conditions.set(Condition { status: ConditionStatus::False, reason, message, ..programmed });
    }

    /// Whether the state of an owner's infrastructure is still unknown.
    pub(super) fn is_provisioning_unknown(&self, reconciler: &Reconciler, owner: &ObjectKey) -> bool {
        self.provisioning.is_some()
            && reconciler.infrastructure(owner).is_some()
            && !self.provisioned.contains_key(owner)
    }

    fn obstacle(&self, owner: &ObjectKey, infrastructure: &Infrastructure) -> Option<(Reason, String)> {
        if self.provisioning.is_none() {
            return Some((Reason::NoResources, NOT_RUN.to_owned()));
        }
        let Some(provisioned_owner) = self.provisioned.get(owner) else {
            let service = service_name(infrastructure);
            let message = format!("The address of Service \"{service}\" is still unknown.");
            return Some((Reason::AddressNotAssigned, message));
        };
        if let Some(error) = &provisioned_owner.error {
            return Some((Reason::NoResources, error.clone()));
        }
        let service = format!("\"{}\"", service_name(infrastructure));
        match judge_addresses(&infrastructure.addresses, &provisioned_owner.addresses, &service) {
            Ok(()) => None,
            Err(AddressProblem::NotAssigned(message)) => Some((Reason::AddressNotAssigned, message)),
            Err(AddressProblem::NotUsable(message)) => Some((Reason::AddressNotUsable, message)),
        }
    }
}

/// Whether the description of an owner's infrastructure has an error. Its infrastructure stays: a Gateway would lose
/// its address otherwise, and a slip in one object would cost all Gateways of a class theirs.
fn is_unclear(reconciler: &Reconciler, undecodable: &Undecodable, owner: &ObjectKey) -> bool {
    let is_about_that = |problem: &Problem| {
        *problem.object == *owner
            && matches!(problem.reason, Reason::InvalidParameters | Reason::UnsupportedAddress)
    };
    undecodable.contains_key(owner)
        || is_of_unclear_class(reconciler, owner)
        || reconciler.attached(owner).is_none() && reconciler.problems(owner).iter().any(is_about_that)
}

/// Whether an owner is a Gateway that is not accepted, for example because of its parameters, or a Gateway without a
/// class. A class that is deleted and created again keeps its Pods.
fn is_of_unclear_class(reconciler: &Reconciler, owner: &ObjectKey) -> bool {
    let gateway = (owner.kind == Kind::Gateway).then(|| reconciler.world().get::<Gateway>(&owner.name));
    gateway.flatten().is_some_and(|gateway| {
        let class = ObjectKey::new(Kind::GatewayClass, "", gateway.spec.gateway_class_name.as_str());
        reconciler.world().get::<GatewayClass>(&class.name).is_none()
            || reconciler.class(&class).is_some_and(|verdict| !verdict.is_accepted())
    })
}

/// The ids of the keys for encryption; `None` without encryption.
pub(super) fn keyring_of(
    world: &World,
    infrastructure: &Infrastructure,
) -> Option<Result<Keyring, MissingKeysError>> {
    infrastructure.parameters.process.keyring.as_ref().map(|key| keyring(world, key))
}

/// The ids of the keys in parameters, one per line.
fn keyring(world: &World, key: &SecretKey) -> Result<Keyring, MissingKeysError> {
    let SecretKey { secret, key } = key;
    let object = world.get::<Secret>(secret);
    let object = object.ok_or_else(|| MissingKeysError::NoSecret(secret.clone()))?;
    let bytes = object.data.as_ref().and_then(|data| data.get(key));
    let text = bytes.and_then(|bytes| std::str::from_utf8(&bytes.0).ok()).unwrap_or_default();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    if lines.is_empty() {
        return Err(MissingKeysError::NoKeys { secret: secret.clone(), entry: key.clone() });
    }
    Ok(Keyring(lines))
}

fn urls(addresses: &BTreeSet<IpAddr>, port: u16) -> impl Iterator<Item = StatusUrl> {
    addresses.iter().filter_map(move |ip| format!("http://{ip}:{port}").parse().ok())
}
