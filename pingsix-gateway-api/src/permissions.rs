//! The permissions of a controller, and no others.
//!
//! [`permissions`] derives the rules from the options: from the table of watched kinds, from the kinds with written
//! statuses, and from the election. `deploy/` has the same rules as manifests. Tests compare both with each other and
//! with the requests of a controller.
//!
//! Discovery of a missing kind needs no rule, because every account may ask for it (`system:discovery`).

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::rbac::v1::PolicyRule;
use pingsix_translate::ObjectName;

use crate::controller::{ControllerOptions, ProvisioningOptions, PublishedAddresses};
use crate::leader::LeaseOptions;
use crate::pki::AuthorityOptions;
use crate::provision::ChildKind;
use crate::replicas::{replicas_name, revisions_name};
use crate::status::NAMESPACE_OF_CLUSTER_EVENTS;
use crate::watch::{Namespaces, WatchedResource, resources};

/// The permissions of a controller, as the rules of roles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Permissions {
    /// The rules of a `ClusterRole` with a `ClusterRoleBinding`.
    pub cluster: Vec<PolicyRule>,
    /// The additional rules in these namespaces, of a `Role` or of a `ClusterRole`, with a `RoleBinding`.
    pub namespaces: BTreeMap<String, Vec<PolicyRule>>,
}

/// The permissions of a controller with these options.
///
/// - The controller lists and watches objects of all kinds. It also reads objects with written statuses, after
///   conflicts.
/// - Secrets and `ConfigMaps` are listed and watched by name, or by namespace for [many](crate::watch::NameBounds)
///   references (or all [Secrets](crate::watch::SecretWatch::All)). Roles for some namespaces or with `resourceNames`
///   suffice; references to other objects are refused then. Managed data planes need the permission for all objects.
/// - Events are created, and existing Events are counted. Events on objects without a namespace are in `default`.
/// - The objects of [managed](ControllerOptions::provisioning) data planes are read, written and deleted in the watched
///   namespaces: Secrets, Services, `ServiceAccounts`, Deployments and `PodDisruptionBudgets`. The controller lists
///   them by a label, and RBAC has no label selectors, so the rules cover all objects of these kinds.
/// - Rules name the Lease of the election and the two Leases that [replicas](crate::replicas) share. Rules for `create`
///   cannot name objects.
/// - Rules name the Secret with the [authority of the feed](crate::pki), in the namespace of the controller, and the
///   Secrets with the client certificates of others.
pub fn permissions(options: &ControllerOptions) -> Permissions {
    let mut wanted = Wanted::default();
    for resource in resources() {
        wanted.watch(&resource, &options.watch.namespaces);
    }
    // The installation and the release of CRDs.
    wanted.add(None, ("apiextensions.k8s.io", "customresourcedefinitions".to_owned(), None), READ);
    wanted.events(&options.watch.namespaces);
    if let PublishedAddresses::Service(service) = &options.addresses {
        wanted.published_service(service, &options.watch.namespaces);
    }
    if let Some(lease) = &options.lease {
        wanted.lease(lease);
    }
    if let Some(provisioning) = &options.provisioning {
        wanted.provisioning(provisioning, &options.watch.namespaces);
    }
    if let Some(authority) = &options.feed_authority {
        wanted.feed_authority(authority);
    }
    wanted.into_permissions()
}

/// The verbs for reading objects and their changes.
const READ: &[&str] = &["list", "watch"];

/// The namespace of a permission; `None` for all.
type NamespaceScope = Option<String>;

/// The target of a permission: group, resource, and the name of the only permitted object.
type Target = (&'static str, String, Option<String>);

#[derive(Debug, Default)]
struct Wanted(BTreeMap<NamespaceScope, BTreeMap<Target, BTreeSet<&'static str>>>);

impl Wanted {
    fn add(&mut self, place: NamespaceScope, target: Target, verbs: &[&'static str]) {
        self.0.entry(place).or_default().entry(target).or_default().extend(verbs);
    }

    fn watch(&mut self, resource: &WatchedResource, namespaces: &Namespaces) {
        let kind = resource.kind;
        let places = if kind.is_namespaced() { namespaces.scopes() } else { vec![None] };
        for place in places {
            self.add(place.clone(), (kind.group(), resource.name.clone(), None), READ);
            if resource.has_our_status {
                self.add(place.clone(), (kind.group(), resource.name.clone(), None), &["get"]);
                self.add(place, (kind.group(), format!("{}/status", resource.name), None), &["patch"]);
            }
        }
    }

    fn events(&mut self, namespaces: &Namespaces) {
        let mut places = namespaces.scopes();
        if *namespaces != Namespaces::All {
            places.push(Some(NAMESPACE_OF_CLUSTER_EVENTS.to_owned()));
        }
        for place in places {
            self.add(place, ("events.k8s.io", "events".to_owned(), None), &["create", "get", "patch"]);
        }
    }

    fn published_service(&mut self, service: &ObjectName, namespaces: &Namespaces) {
        if !namespaces.contains(&service.namespace) {
            let target = ("", "services".to_owned(), Some(service.name.to_string()));
            self.add(Some(service.namespace.to_string()), target, READ);
        }
    }

    fn lease(&mut self, lease: &LeaseOptions) {
        let target = |name| ("coordination.k8s.io", "leases".to_owned(), name);
        let place = Some(lease.namespace.clone());
        self.add(place.clone(), target(None), &["create"]);
        let named = [
            (lease.name.clone(), ["get", "update"].as_slice()),
            (revisions_name(&lease.name), &["get", "update", "list", "watch"]),
            (replicas_name(&lease.name), &["patch", "list", "watch"]),
        ];
        for (name, verbs) in named {
            self.add(place.clone(), target(Some(name)), verbs);
        }
    }

    /// Adds the rules for managed data planes. Objects are read before their first write, so foreign objects stay.
    fn provisioning(&mut self, options: &ProvisioningOptions, namespaces: &Namespaces) {
        for place in namespaces.scopes() {
            for kind in ChildKind::ALL {
                let target = (kind.group(), kind.resource().to_owned(), None);
                self.add(place.clone(), target, &["create", "delete", "get", "list", "patch", "watch"]);
            }
        }
        if !namespaces.contains(&options.key.namespace) {
            let target = |name| ("", ChildKind::Secret.resource().to_owned(), name);
            let place = Some(options.key.namespace.to_string());
            self.add(place.clone(), target(None), &["create"]);
            self.add(place, target(Some(options.key.name.to_string())), READ);
        }
    }

    fn feed_authority(&mut self, AuthorityOptions { secret, clients, .. }: &AuthorityOptions) {
        let target = |name| ("", "secrets".to_owned(), name);
        let place = Some(secret.namespace.to_string());
        self.add(place.clone(), target(None), &["create"]);
        self.add(place, target(Some(secret.name.to_string())), &["update", "list", "watch"]);
        for client in clients.keys() {
            let place = Some(client.namespace.to_string());
            self.add(place.clone(), target(None), &["create"]);
            self.add(place, target(Some(client.name.to_string())), &["get", "update"]);
        }
    }

    fn into_permissions(self) -> Permissions {
        let mut permissions = Permissions::default();
        for (place, targets) in self.0 {
            let rules = rules(targets);
            match place {
                None => permissions.cluster = rules,
                Some(namespace) => {
                    permissions.namespaces.insert(namespace, rules);
                }
            }
        }
        permissions
    }
}

/// The rules, with one rule for all resources of a group with equal verbs and names.
fn rules(targets: BTreeMap<Target, BTreeSet<&'static str>>) -> Vec<PolicyRule> {
    let mut alike: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for ((group, resource, name), verbs) in targets {
        alike.entry((group, verbs, name)).or_default().push(resource);
    }
    let rules = alike.into_iter().map(|((group, verbs, name), resources)| PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(resources),
        resource_names: name.map(|name| vec![name]),
        verbs: verbs.into_iter().map(str::to_owned).collect(),
        ..PolicyRule::default()
    });
    rules.collect()
}
