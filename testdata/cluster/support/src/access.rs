//! Permissions of users.

use std::time::{Duration, Instant};

use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::PostParams;
use tokio::time::sleep;

use crate::cluster::TestCluster;
use crate::error::Error;
use crate::user::User;

/// The time limit for a binding to take effect; it takes milliseconds.
const EFFECT_TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const GROUP: &str = "rbac.authorization.k8s.io";

impl TestCluster {
    /// Allows a user what a cluster role says, everywhere, and returns when that is so. Deleting the binding takes it
    /// back.
    pub async fn bind_cluster_role(&self, user: &User, role: &str) -> Result<ClusterRoleBinding, Error> {
        let what = format!("bind the cluster role {role} to {}", user.name());
        let rules = self.rules_of_cluster_role(role).await?;
        let binding = ClusterRoleBinding {
            metadata: generated_name(),
            role_ref: reference("ClusterRole", role),
            subjects: Some(vec![subject(user)]),
        };
        let bindings = Api::<ClusterRoleBinding>::all(self.admin());
        let binding = bindings.create(&PostParams::default(), &binding).await.map_err(Error::api(what))?;
        self.wait_until_allowed(user, None, &rules).await?;
        Ok(binding)
    }

    /// Allows a user in one namespace what a cluster role says, and returns when that is so.
    pub async fn bind_cluster_role_in(
        &self,
        namespace: &str,
        user: &User,
        role: &str,
    ) -> Result<RoleBinding, Error> {
        let what = format!("bind the cluster role {role} to {} in {namespace}", user.name());
        let rules = self.rules_of_cluster_role(role).await?;
        self.bind_in(namespace, user, reference("ClusterRole", role), &rules, what).await
    }

    /// Allows a user what a role of a namespace says, and returns when that is so.
    pub async fn bind_role(&self, namespace: &str, user: &User, role: &str) -> Result<RoleBinding, Error> {
        let what = format!("bind the role {namespace}/{role} to {}", user.name());
        let api = Api::<Role>::namespaced(self.admin(), namespace);
        let found = api.get(role).await.map_err(Error::api(what.clone()))?;
        let rules = rules("role", role, found.rules)?;
        self.bind_in(namespace, user, reference("Role", role), &rules, what).await
    }

    async fn rules_of_cluster_role(&self, role: &str) -> Result<Vec<PolicyRule>, Error> {
        let found = Api::<ClusterRole>::all(self.admin()).get(role).await;
        let found = found.map_err(Error::api(format!("read the cluster role {role}")))?;
        rules("cluster role", role, found.rules)
    }

    async fn bind_in(
        &self,
        namespace: &str,
        user: &User,
        role_ref: RoleRef,
        rules: &[PolicyRule],
        what: String,
    ) -> Result<RoleBinding, Error> {
        let binding =
            RoleBinding { metadata: generated_name(), role_ref, subjects: Some(vec![subject(user)]) };
        let bindings = Api::<RoleBinding>::namespaced(self.admin(), namespace);
        let binding = bindings.create(&PostParams::default(), &binding).await.map_err(Error::api(what))?;
        self.wait_until_allowed(user, Some(namespace), rules).await?;
        Ok(binding)
    }

    /// Waits until something of each rule is allowed: the API server learns of a binding a moment after it is made.
    async fn wait_until_allowed(
        &self,
        user: &User,
        namespace: Option<&str>,
        rules: &[PolicyRule],
    ) -> Result<(), Error> {
        let reviews = Api::<SubjectAccessReview>::all(self.admin());
        let started = Instant::now();
        for spec in rules.iter().filter_map(|rule| question(user, namespace, rule)) {
            let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
            loop {
                let answer = reviews.create(&PostParams::default(), &review).await;
                let answer = answer.map_err(Error::api("ask what a user may do"))?;
                if answer.status.is_some_and(|status| status.allowed) {
                    break;
                }
                if started.elapsed() > EFFECT_TIMEOUT {
                    let what = format!("{} may still not do what was bound to it", user.name());
                    return Err(Error::TimedOut { what, after: EFFECT_TIMEOUT });
                }
                sleep(POLL_INTERVAL).await;
            }
        }
        Ok(())
    }
}

/// The rules of a role. To bind a role without rules is a mistake of the test.
fn rules(kind: &'static str, name: &str, rules: Option<Vec<PolicyRule>>) -> Result<Vec<PolicyRule>, Error> {
    let rules = rules.unwrap_or_default();
    if rules.is_empty() { Err(Error::NoRules { kind, name: name.to_owned() }) } else { Ok(rules) }
}

/// Whether the user may do the first thing that a rule names. Paths count for cluster-wide bindings only.
fn question(user: &User, namespace: Option<&str>, rule: &PolicyRule) -> Option<SubjectAccessReviewSpec> {
    let first = |list: &Option<Vec<String>>| list.as_ref().and_then(|list| list.first().cloned());
    let verb = rule.verbs.first().cloned();
    let spec = SubjectAccessReviewSpec {
        user: Some(user.name.clone()),
        groups: Some(user.groups.clone()),
        ..SubjectAccessReviewSpec::default()
    };
    if let Some(named) = first(&rule.resources) {
        let (resource, subresource) = match named.split_once('/') {
            Some((resource, subresource)) => (resource.to_owned(), Some(subresource.to_owned())),
            None => (named, None),
        };
        let resource_attributes = Some(ResourceAttributes {
            group: first(&rule.api_groups),
            resource: Some(resource),
            subresource,
            name: first(&rule.resource_names),
            namespace: namespace.map(str::to_owned),
            verb,
            ..ResourceAttributes::default()
        });
        return Some(SubjectAccessReviewSpec { resource_attributes, ..spec });
    }
    let path = first(&rule.non_resource_urls).filter(|_| namespace.is_none())?;
    let non_resource_attributes = Some(NonResourceAttributes { path: Some(path), verb });
    Some(SubjectAccessReviewSpec { non_resource_attributes, ..spec })
}

fn generated_name() -> ObjectMeta {
    ObjectMeta { generate_name: Some("test-".to_owned()), ..ObjectMeta::default() }
}

fn reference(kind: &str, name: &str) -> RoleRef {
    RoleRef { api_group: Some(GROUP.to_owned()), kind: kind.to_owned(), name: name.to_owned() }
}

/// A service account is a user whose name says so, for bindings too.
fn subject(user: &User) -> Subject {
    Subject {
        api_group: Some(GROUP.to_owned()),
        kind: "User".to_owned(),
        name: user.name.clone(),
        namespace: None,
    }
}
