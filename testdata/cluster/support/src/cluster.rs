//! A cluster that runs.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Uri;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};

use crate::authority::Authority;
use crate::build::Build;
use crate::builder::{Builder, Channel, NODE, json, write};
use crate::error::Error;
use crate::folder::Folder;
use crate::process::{Process, Program};
use crate::ready::Ready;
use crate::turn::Turn;
use crate::user::User;

/// The lifetime of a token of a service account; the API server grants no less than ten minutes.
const TOKEN_SECONDS: i64 = 3600;

/// A control plane of its own for a test. Everything of it is gone when it is dropped.
// The order of the fields is the order in which they end: who asks goes before who answers.
pub struct TestCluster {
    pub(crate) node: Option<Process>,
    pub(crate) controller_manager: Option<Process>,
    pub(crate) api_server: Process,
    pub(crate) etcd: Process,
    pub(crate) client: Client,
    pub(crate) admin: User,
    pub(crate) users: Vec<User>,
    pub(crate) url: Uri,
    pub(crate) authority: Authority,
    pub(crate) build: Build,
    pub(crate) folder: Folder,
    pub(crate) start_time: Duration,
    pub(crate) turn: Turn,
}

impl TestCluster {
    /// Starts a cluster with the standard channel of Gateway API and without controllers.
    pub async fn start() -> Result<Self, Error> {
        Self::builder().start().await
    }

    /// Describes another cluster than that.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A client that may do everything.
    pub fn admin(&self) -> Client {
        self.client.clone()
    }

    /// The administrator of [`admin`](Self::admin).
    pub fn administrator(&self) -> &User {
        &self.admin
    }

    /// A user that [`Builder::user`] declared.
    pub fn user(&self, name: &str) -> Result<&User, Error> {
        let user = self.users.iter().find(|user| user.name() == name);
        user.ok_or_else(|| Error::UnknownUser { name: name.to_owned() })
    }

    /// A service account with a token as Pods get it. Namespace and account are made where they are missing.
    pub async fn service_account(&self, namespace: &str, name: &str) -> Result<User, Error> {
        self.namespace(namespace).await?;
        let accounts = Api::<ServiceAccount>::namespaced(self.admin(), namespace);
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let account = ServiceAccount { metadata, ..ServiceAccount::default() };
        let what = format!("make the service account {namespace}/{name}");
        unless_there(accounts.create(&PostParams::default(), &account).await).map_err(Error::api(what))?;

        let spec =
            TokenRequestSpec { expiration_seconds: Some(TOKEN_SECONDS), ..TokenRequestSpec::default() };
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        let answer = accounts.create_token_request(name, &PostParams::default(), &request).await;
        let what = format!("get a token for the service account {namespace}/{name}");
        let token = answer.map_err(Error::api(what))?.status.unwrap_or_default().token.unwrap_or_default();
        let groups = vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
        Ok(User { name: format!("system:serviceaccount:{namespace}:{name}"), groups, token })
    }

    /// Makes a namespace unless there is one of this name.
    pub async fn namespace(&self, name: &str) -> Result<(), Error> {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let made = Api::<Namespace>::all(self.admin()).create(&PostParams::default(), &namespace).await;
        unless_there(made).map_err(Error::api(format!("make the namespace {name}")))
    }

    /// A client for a user, with connections of its own.
    pub fn client(&self, user: &User) -> Result<Client, Error> {
        user.client(&self.url, &self.authority)
            .map_err(Error::api(format!("make a client for {}", user.name())))
    }

    /// Writes a kubeconfig for a user, for programs that take one. It is gone with the cluster.
    pub fn kubeconfig(&self, user: &User) -> Result<PathBuf, Error> {
        let path = self.folder().join(format!("{}.kubeconfig", file_name(user.name())));
        write(&path, &json(&user.kubeconfig(&self.url, &self.authority))?)?;
        Ok(path)
    }

    /// The folder with the definitions of a channel of Gateway API.
    pub fn definitions(&self, channel: Channel) -> PathBuf {
        self.build.crds(channel.folder())
    }

    /// The API server.
    pub fn api_server(&self) -> &Process {
        &self.api_server
    }

    /// The store of the API server.
    pub fn etcd(&self) -> &Process {
        &self.etcd
    }

    /// The controller manager, if the cluster has controllers.
    pub fn controller_manager(&self) -> Option<&Process> {
        self.controller_manager.as_ref()
    }

    /// The node, if the cluster has one. Its containers end with it.
    pub fn node(&self) -> Option<&Process> {
        self.node.as_ref()
    }

    /// The output of a container, each line with its time before it. The file is there when something was written,
    /// and outlives the Pod.
    pub fn container_log(&self, namespace: &str, pod: &str, container: &str) -> PathBuf {
        self.folder().join(NODE).join("logs").join(namespace).join(pod).join(format!("{container}.log"))
    }

    /// Runs a program beside the cluster, with nothing in its environment, as [`Process`]es are run: it does not outlive
    /// the test. Whether it is ready is for the test to find out. The name is that of its log, too.
    pub async fn run(&self, name: &'static str, command: Vec<OsString>) -> Result<Process, Error> {
        let supervisor = self.build.program("supervise");
        let folder = self.folder().to_owned();
        Process::launch(Program { name, supervisor, command, folder, ready: Ready::Nobody }).await
    }

    /// The address of the API server.
    pub fn url(&self) -> &Uri {
        &self.url
    }

    /// The duration of the start, without the wait for the cluster's turn.
    pub fn start_time(&self) -> Duration {
        self.start_time
    }

    /// The folder with everything that the cluster keeps. Others may put in files that shall go with it.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl fmt::Debug for TestCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = self.folder();
        f.debug_struct("TestCluster").field("url", &self.url).field("folder", &folder).finish_non_exhaustive()
    }
}

/// A name for a file that no other user's name becomes.
fn file_name(user: &str) -> String {
    let letter = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' => letter.to_string(),
        other => format!("_{:x}_", u32::from(other)),
    };
    user.chars().map(letter).collect()
}

/// An existing object counts as created.
fn unless_there<K>(made: kube::Result<K>) -> kube::Result<()> {
    match made {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn users_do_not_share_a_file() {
        assert_eq!(file_name("team-a1"), "team-a1");
        let names = ["a:b", "a/b", "a_b", "a_3a_b", "a b"].map(file_name);
        for (index, name) in names.iter().enumerate() {
            assert!(!name.contains('/'), "{name}");
            assert!(!names[..index].contains(name), "{name}");
        }
    }
}
