//! Users of the API server.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::Uri;
use kube::config::{AuthInfo, Cluster, Context, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext};
use kube::{Client, Config};
use rand::Rng;

use crate::authority::Authority;

/// A user with a token for the API server, and with the permissions of its roles.
#[derive(Clone)]
pub struct User {
    pub(crate) name: String,
    pub(crate) groups: Vec<String>,
    pub(crate) token: String,
}

impl User {
    pub(crate) fn new(name: impl Into<String>, groups: Vec<String>) -> Self {
        let token = format!("{:032x}", rand::rng().random::<u128>());
        Self { name: name.into(), groups, token }
    }

    /// The name that role bindings know the user by: for a service account, `system:serviceaccount:NAMESPACE:NAME`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The bearer token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// A line of the API server's token file: token, name, uid and groups.
    pub(crate) fn line(&self) -> String {
        format!("{},\"{name}\",\"{name}\",\"{}\"\n", self.token, self.groups.join(","), name = self.name)
    }

    pub(crate) fn client(&self, url: &Uri, authority: &Authority) -> Result<Client, kube::Error> {
        let mut config = Config::new(url.clone());
        config.root_cert = Some(vec![authority.certificate.to_vec()]);
        config.auth_info = self.auth_info();
        Client::try_from(config)
    }

    /// A configuration for this user alone, as other programs read it too.
    pub(crate) fn kubeconfig(&self, url: &Uri, authority: &Authority) -> Kubeconfig {
        let cluster = Cluster {
            server: Some(url.to_string()),
            certificate_authority_data: Some(BASE64_STANDARD.encode(&authority.certificate_pem)),
            ..Cluster::default()
        };
        let context =
            Context { cluster: "test".to_owned(), user: Some(self.name.clone()), ..Context::default() };
        Kubeconfig {
            kind: Some("Config".to_owned()),
            api_version: Some("v1".to_owned()),
            clusters: vec![NamedCluster {
                name: "test".to_owned(),
                cluster: Some(cluster),
                ..NamedCluster::default()
            }],
            auth_infos: vec![NamedAuthInfo {
                name: self.name.clone(),
                auth_info: Some(self.auth_info()),
                ..NamedAuthInfo::default()
            }],
            contexts: vec![NamedContext {
                name: "test".to_owned(),
                context: Some(context),
                ..NamedContext::default()
            }],
            current_context: Some("test".to_owned()),
            ..Kubeconfig::default()
        }
    }

    fn auth_info(&self) -> AuthInfo {
        AuthInfo { token: Some(self.token.clone().into()), ..AuthInfo::default() }
    }
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("User").field("name", &self.name).field("groups", &self.groups).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_not_shown_and_differs_from_others() {
        let (one, other) = (User::new("one", vec![]), User::new("one", vec![]));
        assert_ne!(one.token(), other.token());
        assert!(!format!("{one:?}").contains(one.token()));
    }

    #[test]
    fn a_user_is_a_line_of_the_token_file() {
        let mut user = User::new("team lead", vec!["a".to_owned(), "b".to_owned()]);
        user.token = "t".to_owned();
        assert_eq!(user.line(), "t,\"team lead\",\"team lead\",\"a,b\"\n");
    }
}
