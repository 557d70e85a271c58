//! The options of input from a cluster.

use std::path::PathBuf;
#[cfg(feature = "cluster")]
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use pingsix_translate::is_dns_label;

/// The input from a cluster.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ClusterArguments {
    /// Read the objects of a cluster, instead of files. The program only lists kinds, and gets the Secrets and ConfigMaps
    /// to which objects refer.
    #[arg(long, visible_alias = "from-cluster", help_heading = "Cluster")]
    pub(crate) cluster: bool,

    /// The kubeconfig of the cluster. Default: $KUBECONFIG, ~/.kube/config, or the service account of the Pod.
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig. Default: its current context.
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub(crate) context: Option<String>,

    /// Read this namespace only. Objects without a namespace, such as classes, are read, too. Repeatable.
    #[arg(short, long = "namespace", value_name = "NAME", value_parser = parse_namespace, help_heading = "Cluster")]
    pub(crate) namespaces: Vec<String>,

    /// A label selector for Gateways, ListenerSets, routes, Ingresses and ApisixRoutes, as the option watch.selector of the
    /// controller has it.
    #[arg(short = 'l', long, value_name = "SELECTOR", help_heading = "Cluster")]
    pub(crate) selector: Option<String>,

    /// The time limit of each request to the API server, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=600), help_heading = "Cluster")]
    pub(crate) request_timeout: Option<u64>,
}

impl ClusterArguments {
    /// The time limit of each request.
    #[cfg(feature = "cluster")]
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.request_timeout.unwrap_or(30))
    }

    /// The first option that has a meaning for input from a cluster alone.
    fn given(&self) -> Option<&'static str> {
        let options = [
            ("--cluster", self.cluster),
            ("--kubeconfig", self.kubeconfig.is_some()),
            ("--context", self.context.is_some()),
            ("--namespace", !self.namespaces.is_empty()),
            ("--selector", self.selector.is_some()),
            ("--request-timeout", self.request_timeout.is_some()),
        ];
        options.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }
}

/// The name becomes part of a path.
fn parse_namespace(text: &str) -> Result<String, String> {
    if text.len() > 63 || !is_dns_label(text) {
        return Err("expected the name of a namespace".to_owned());
    }
    Ok(text.to_owned())
}

/// The default input, which depends on the name under which the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultInput {
    /// Files must be named.
    None,
    /// The cluster of the kubeconfig.
    Cluster,
}

/// The input of a command.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    Files(Vec<PathBuf>),
    #[cfg(feature = "cluster")]
    Cluster(ClusterArguments),
}

impl Input {
    /// Chooses between files and a cluster.
    ///
    /// # Errors
    ///
    /// When the arguments name both, or neither and there is no default.
    pub(crate) fn choose(
        paths: &[PathBuf],
        cluster: &ClusterArguments,
        default: DefaultInput,
    ) -> anyhow::Result<Self> {
        match (paths.is_empty(), cluster.cluster || default == DefaultInput::Cluster, cluster.given()) {
            (false, _, Some(option)) => {
                bail!("{option} is about a cluster, and the input is files; leave one of them out")
            }
            (false, _, None) => Ok(Self::Files(paths.to_owned())),
            (true, true, _) => Self::of_cluster(cluster),
            (true, false, Some(option)) => bail!("{option} needs --cluster"),
            (true, false, None) => {
                bail!("no input; name files or directories, - for standard input, or --cluster")
            }
        }
    }

    #[cfg(feature = "cluster")]
    #[expect(clippy::unnecessary_wraps, reason = "a program without the feature fails")]
    fn of_cluster(cluster: &ClusterArguments) -> anyhow::Result<Self> {
        Ok(Self::Cluster(cluster.clone()))
    }

    #[cfg(not(feature = "cluster"))]
    fn of_cluster(_: &ClusterArguments) -> anyhow::Result<Self> {
        bail!("--cluster: this program is built without the feature cluster, so its input is files")
    }
}
