//! The parts of a cluster, and its start.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use http::Uri;
use kube::Client;
use pingsix_test_programs::free_port;

use crate::authority::Authority;
use crate::build::{Build, NotBuilt};
use crate::cluster::TestCluster;
use crate::error::Error;
use crate::folder::Folder;
use crate::node::Node;
use crate::process::{Process, Program};
use crate::ready::Ready;
use crate::turn::Turn;
use crate::user::User;

/// The controllers that a cluster without nodes has a use for.
pub const CONTROLLERS: [&str; 11] = [
    "namespace-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "endpointslice-mirroring-controller",
    "garbage-collector-controller",
    "deployment-controller",
    "replicaset-controller",
    "daemonset-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "root-ca-certificate-publisher-controller",
];

/// The number of ports that are tried for a process.
const MAX_PORTS: usize = 8;

/// The folder of the node within that of the cluster.
pub(crate) const NODE: &str = "node";

/// The environment variable that makes a missing build a failure: `required`.
const DEMAND: &str = "PINGSIX_CLUSTER";

/// A release channel of Gateway API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// The default options.
    Standard,
    /// Fields and kinds that may still change, too.
    Experimental,
    /// The default options of the oldest supported version.
    OldestStandard,
    /// The default options of the newest supported version.
    NewestStandard,
}

impl Channel {
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Experimental => "experimental",
            Self::OldestStandard => "oldest",
            Self::NewestStandard => "newest",
        }
    }
}

/// Describes a cluster before it is started.
#[derive(Clone, Debug)]
pub struct Builder {
    controllers: Vec<String>,
    channel: Option<Channel>,
    users: Vec<User>,
    arguments: Vec<OsString>,
    node: Option<Node>,
    ports: Vec<u16>,
    turn: Option<Turn>,
}

impl Default for Builder {
    /// The standard channel of Gateway API, no controllers, no users beside the administrator.
    fn default() -> Self {
        Self {
            controllers: Vec::new(),
            channel: Some(Channel::Standard),
            users: Vec::new(),
            arguments: Vec::new(),
            node: None,
            ports: Vec::new(),
            turn: None,
        }
    }
}

impl Builder {
    /// Runs these controllers, for example [`CONTROLLERS`], in a controller manager. Without any there is none.
    #[must_use]
    pub fn controllers(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.controllers = names.into_iter().map(Into::into).collect();
        self
    }

    /// Installs the definitions of this channel, or none. [`TestCluster::install`] can do so later.
    #[must_use]
    pub fn crds(mut self, channel: impl Into<Option<Channel>>) -> Self {
        self.channel = channel.into();
        self
    }

    /// Declares a user, who may do nothing at first; the API server reads its users only once.
    /// [`TestCluster::user`] has them, and [`TestCluster::service_account`] makes more at any time.
    #[must_use]
    pub fn user(mut self, name: &str, groups: &[&str]) -> Self {
        self.users.push(User::new(name, groups.iter().map(|group| (*group).to_owned()).collect()));
        self
    }

    /// One more argument for the API server, such as `--etcd-compaction-interval=2s`.
    #[must_use]
    pub fn api_server_argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Gives the cluster a node, which runs Pods as processes. The test has to be in a network of its own
    /// ([`in_own_network`](crate::in_own_network)), and Deployments become Pods by [`CONTROLLERS`].
    #[must_use]
    pub fn node(mut self, node: Node) -> Self {
        self.node = Some(node);
        self
    }

    /// Starts beside a cluster of the same test, without waiting for a turn: a test that waits for a second cluster
    /// while it has one could wait for itself.
    #[must_use]
    pub fn beside(mut self, cluster: &TestCluster) -> Self {
        self.turn = Some(cluster.turn.clone());
        self
    }

    /// Starts the cluster when it is its turn, and returns when it is ready and knows its definitions.
    pub async fn start(self) -> Result<TestCluster, Error> {
        let build = Build::find()?;
        let turn = match &self.turn {
            Some(turn) => turn.clone(),
            None => Turn::take().await,
        };
        let started = Instant::now();
        // A second provider is never in the tree, and who was first does not matter.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = Folder::new().map_err(Error::io("could not make a folder for the cluster"))?;
        let authority = Authority::new()?;
        let admin = User::new("admin", vec!["system:masters".to_owned()]);
        write_material(folder.path(), &authority, self.users.iter().chain([&admin]))?;
        let start = Start { build: &build, folder: &folder, authority: &authority, admin: &admin };

        let etcd = start.etcd().await?;
        let (api_server, url) = start.api_server(&self.arguments, self.ports.clone()).await?;
        let client = admin.client(&url, &authority).map_err(Error::api("make a client"))?;
        let controller_manager = if self.controllers.is_empty() {
            None
        } else {
            write(
                &folder.path().join("controllers.kubeconfig"),
                &json(&admin.kubeconfig(&url, &authority))?,
            )?;
            Some(start.controller_manager(&self.controllers).await?)
        };
        let node = match &self.node {
            Some(node) => Some(start.node(node, &client, &url).await?),
            None => None,
        };
        let mut cluster = TestCluster {
            node,
            controller_manager,
            api_server,
            etcd,
            client,
            admin,
            users: self.users,
            url,
            authority,
            build,
            folder,
            start_time: started.elapsed(),
            turn,
        };
        if let Some(channel) = self.channel {
            cluster.install(channel).await?;
            cluster.start_time = started.elapsed();
        }
        Ok(cluster)
    }

    /// Starts the cluster, or says why it is not there: the test then returns.
    ///
    /// # Panics
    ///
    /// If a cluster that is built does not start, or `PINGSIX_CLUSTER=required` and it is not built.
    #[allow(clippy::panic, reason = "a test without its cluster has failed")]
    pub async fn start_or_skip(self) -> Option<TestCluster> {
        or_skip(self.start().await)
    }

    /// The ports to try first, whether they are free or not.
    #[cfg(test)]
    fn ports(mut self, ports: impl IntoIterator<Item = u16>) -> Self {
        self.ports = ports.into_iter().collect();
        self
    }
}

/// A part of the test cluster; `None`, with a message, if it is not built and need not be.
#[allow(clippy::panic, reason = "a test without its cluster has failed")]
fn or_skip<T>(found: Result<T, Error>) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(Error::NotBuilt(why)) if std::env::var_os(DEMAND).is_none_or(|demand| demand != "required") => {
            say_not_run(&why);
            None
        }
        Err(error) => panic!("no test cluster: {}", with_causes(&error)),
    }
}

/// The path of a tool, `kubectl` or `helm`, or a message why it is not there: the test then returns.
///
/// # Panics
///
/// If it is not built, and `PINGSIX_CLUSTER=required`.
pub fn tool_or_skip(name: &str) -> Option<PathBuf> {
    or_skip(Build::find().map(|build| build.program(name)).map_err(Error::NotBuilt))
}

/// The shared inputs of the processes of one cluster during their start.
struct Start<'a> {
    build: &'a Build,
    folder: &'a Folder,
    authority: &'a Authority,
    admin: &'a User,
}

impl Start<'_> {
    async fn etcd(&self) -> Result<Process, Error> {
        let socket = self.folder.path().join("etcd.sock");
        let arguments = [
            flag("--data-dir=", &self.folder.path().join("etcd")),
            flag("--listen-client-urls=unix://", &socket),
            // There are no peers, so this is never listened on; and nobody asks where clients shall go.
            flag("--listen-peer-urls=unix://", &self.folder.path().join("peer.sock")),
            "--initial-advertise-peer-urls=http://127.0.0.1:0".into(),
            "--initial-cluster=test=http://127.0.0.1:0".into(),
            "--advertise-client-urls=http://127.0.0.1:0".into(),
            "--name=test".into(),
            "--log-level=warn".into(),
            // The data need not survive a crash of the machine.
            "--unsafe-no-fsync".into(),
        ];
        Process::launch(self.program("etcd", "etcd", arguments, Ready::Etcd(socket))).await
    }

    async fn api_server(&self, more: &[OsString], ports: Vec<u16>) -> Result<(Process, Uri), Error> {
        let file = |name: &str| self.folder.path().join(name);
        let arguments = [
            "kube-apiserver".into(),
            flag("--etcd-servers=unix://", &file("etcd.sock")),
            flag("--cert-dir=", self.folder.path()),
            flag("--tls-cert-file=", &file("server.crt")),
            flag("--tls-private-key-file=", &file("server.key")),
            flag("--token-auth-file=", &file("tokens")),
            flag("--service-account-key-file=", &file("tokens.pub")),
            flag("--service-account-signing-key-file=", &file("tokens.key")),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            "--service-cluster-ip-range=10.96.0.0/16".into(),
            "--authorization-mode=RBAC".into(),
            "--bind-address=127.0.0.1".into(),
            // Otherwise it looks for an address that other machines reach, which there need not be.
            "--advertise-address=127.0.0.1".into(),
            "--endpoint-reconciler-type=none".into(),
            "--profiling=false".into(),
        ];
        let arguments = arguments.iter().chain(more).cloned().collect();
        self.on_a_port("kube-apiserver", "/readyz", arguments, ports).await
    }

    async fn controller_manager(&self, controllers: &[String]) -> Result<Process, Error> {
        let file = |name: &str| self.folder.path().join(name);
        let arguments = vec![
            "kube-controller-manager".into(),
            flag("--kubeconfig=", &file("controllers.kubeconfig")),
            format!("--controllers={}", controllers.join(",")).into(),
            flag("--cert-dir=", self.folder.path()),
            flag("--tls-cert-file=", &file("server.crt")),
            flag("--tls-private-key-file=", &file("server.key")),
            flag("--root-ca-file=", &file("ca.crt")),
            flag("--service-account-private-key-file=", &file("tokens.key")),
            "--authentication-skip-lookup=true".into(),
            "--bind-address=127.0.0.1".into(),
            "--leader-elect=false".into(),
            "--use-service-account-credentials=false".into(),
            "--kube-api-qps=500".into(),
            "--kube-api-burst=1000".into(),
        ];
        Ok(self.on_a_port("kube-controller-manager", "/healthz", arguments, Vec::new()).await?.0)
    }

    async fn node(&self, node: &Node, client: &Client, url: &Uri) -> Result<Process, Error> {
        let kubeconfig = self.folder.path().join("node.kubeconfig");
        write(&kubeconfig, &json(&self.admin.kubeconfig(url, self.authority))?)?;
        let arguments = node.arguments(&kubeconfig, &self.folder.path().join(NODE));
        Process::launch(self.program("node", "node", arguments, Ready::Node(client.clone()))).await
    }

    /// Starts a process that listens on a port, and tries another one while another process takes the port first.
    ///
    /// Another process on the port cannot be mistaken for this one, because it has no certificate of this authority.
    async fn on_a_port(
        &self,
        name: &'static str,
        path: &'static str,
        arguments: Vec<OsString>,
        first: Vec<u16>,
    ) -> Result<(Process, Uri), Error> {
        let mut last = None;
        for port in first.into_iter().chain(std::iter::repeat_with(free_port).take(MAX_PORTS)) {
            let url = Uri::builder()
                .scheme("https")
                .authority(format!("127.0.0.1:{port}"))
                .path_and_query("/")
                .build()
                .map_err(|error| Error::api("make an address")(kube::Error::HttpError(error)))?;
            let client = self.admin.client(&url, self.authority).map_err(Error::api("make a client"))?;
            let arguments = arguments.iter().cloned().chain([format!("--secure-port={port}").into()]);
            let program = self.program(name, "kubernetes", arguments, Ready::Https { client, path });
            match Process::launch(program).await {
                Ok(process) => return Ok((process, url)),
                Err(Error::Ended { process, log }) if log.contains("address already in use") => {
                    last = Some(Error::Ended { process, log });
                    // The next attempt is judged by its own output.
                    let _ = fs::remove_file(self.folder.path().join(format!("{name}.log")));
                }
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or(Error::NotRunning { process: name }))
    }

    fn program(
        &self,
        name: &'static str,
        executable: &str,
        arguments: impl IntoIterator<Item = OsString>,
        ready: Ready,
    ) -> Program {
        Program {
            name,
            supervisor: self.build.program("supervise"),
            command: [self.build.program(executable).into()].into_iter().chain(arguments).collect(),
            folder: self.folder.path().to_owned(),
            ready,
        }
    }
}

fn write_material<'a>(
    folder: &Path,
    authority: &Authority,
    users: impl Iterator<Item = &'a User>,
) -> Result<(), Error> {
    write(&folder.join("ca.crt"), &authority.certificate_pem)?;
    write(&folder.join("server.crt"), &authority.server_certificate_pem)?;
    write(&folder.join("server.key"), &authority.server_key_pem)?;
    write(&folder.join("tokens.key"), &authority.token_key_pem)?;
    write(&folder.join("tokens.pub"), &authority.token_public_key_pem)?;
    write(&folder.join("tokens"), &users.map(User::line).collect::<String>())
}

/// Writes a file that only its owner reads.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(Error::writing(path))
}

pub(crate) fn json(value: &kube::config::Kubeconfig) -> Result<String, Error> {
    serde_json::to_string_pretty(value)
        .map_err(|error| Error::api("write a kubeconfig")(kube::Error::SerdeError(error)))
}

fn flag(name: &str, path: &Path) -> OsString {
    let mut flag = OsString::from(name);
    flag.push(path);
    flag
}

fn say_not_run(why: &NotBuilt) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    // In one piece, because other tests speak at the same time; and past the harness, which would swallow it.
    let _ = std::io::stderr().write_all(format!("\n{test}: NOT RUN: {why}\n").as_bytes());
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[tokio::test]
    async fn a_port_that_somebody_has_taken_is_passed_over() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let Some(cluster) = Builder::default().crds(None).ports([port]).start_or_skip().await else { return };
        assert_ne!(cluster.url().port_u16(), Some(port));
        cluster.admin().apiserver_version().await.unwrap();
    }
}
