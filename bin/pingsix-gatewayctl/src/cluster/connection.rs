//! A kubeconfig to a client.

use anyhow::{Context as _, anyhow, bail};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use super::request_error;
use crate::arguments::ClusterArguments;

/// A client of an API server.
pub(super) struct Connection {
    pub(super) client: Client,
    /// The API server in messages.
    pub(super) server: String,
}

pub(super) async fn connect(arguments: &ClusterArguments) -> anyhow::Result<Connection> {
    let mut config = configuration(arguments).await?;
    let timeout = arguments.timeout();
    config.connect_timeout = Some(timeout);
    config.read_timeout = Some(timeout);
    config.write_timeout = Some(timeout);
    // Without user and password, which an address may have.
    let authority = config.cluster_url.authority();
    let server = authority.map_or("", |authority| authority.as_str().rsplit('@').next().unwrap_or_default());
    let server = format!("the API server at {server}");
    let client = Client::try_from(config)
        .map_err(|error| anyhow!("{}", request_error::in_words(&error)))
        .with_context(|| format!("cannot connect to {server}"))?;
    Ok(Connection { client, server })
}

async fn configuration(arguments: &ClusterArguments) -> anyhow::Result<Config> {
    let context = arguments.context.clone();
    let (kubeconfig, source) = match &arguments.kubeconfig {
        Some(path) => (Kubeconfig::read_from(path), format!("--kubeconfig {}", path.display())),
        None => (Kubeconfig::read(), "the kubeconfig".to_owned()),
    };
    let kubeconfig = match kubeconfig {
        Ok(kubeconfig) => kubeconfig,
        Err(error) if arguments.kubeconfig.is_none() && context.is_none() && is_missing(&error) => {
            return Config::incluster().map_err(|_| {
                anyhow!(
                    "no cluster: there is no kubeconfig, and no service account of a Pod; give --kubeconfig"
                )
            });
        }
        Err(error) => return Err(describe(error)).with_context(|| format!("cannot read {source}")),
    };
    if let Some(name) = &context
        && !kubeconfig.contexts.iter().any(|known| known.name == *name)
    {
        let mut known: Vec<&str> = kubeconfig.contexts.iter().map(|known| known.name.as_str()).collect();
        known.sort_unstable();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        bail!("{source} has no context {name}, which --context names; known: {known}");
    }
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(describe);
    config.with_context(|| format!("cannot use {source}"))
}

/// Whether there is no file, in the places where a kubeconfig usually is.
fn is_missing(error: &KubeconfigError) -> bool {
    let is_absent = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    matches!(error, KubeconfigError::FindPath)
        || matches!(error, KubeconfigError::ReadConfig(error, _) if is_absent(error))
}

/// The error, without text of the file, which holds credentials.
fn describe(error: KubeconfigError) -> anyhow::Error {
    match error {
        KubeconfigError::ReadConfig(error, path) => anyhow!("{}: {error}", path.display()),
        KubeconfigError::Parse(_) => anyhow!("the content is not a kubeconfig"),
        KubeconfigError::CurrentContextNotSet => {
            anyhow!("current-context: the field is not set; name a context by --context")
        }
        KubeconfigError::LoadContext(name) => {
            anyhow!("current-context: there is no context {name}; name another one by --context")
        }
        KubeconfigError::LoadClusterOfContext(name) => {
            anyhow!("contexts: the context names the cluster {name}, which does not exist")
        }
        KubeconfigError::MissingClusterUrl => anyhow!("clusters: the cluster has no server"),
        KubeconfigError::ParseClusterUrl(_) => anyhow!("clusters: server: the value is not a URL"),
        KubeconfigError::ParseProxyUrl(_) => anyhow!("clusters: proxy-url: the value is not a URL"),
        KubeconfigError::LoadCertificateAuthority(_) => {
            anyhow!("clusters: certificate-authority: the authority cannot be read")
        }
        KubeconfigError::LoadClientCertificate(_) => {
            anyhow!("users: client-certificate: the certificate cannot be read")
        }
        KubeconfigError::LoadClientKey(_) => anyhow!("users: client-key: the key cannot be read"),
        KubeconfigError::ParseCertificates(_) => {
            anyhow!("clusters: certificate-authority: the content is not PEM")
        }
        KubeconfigError::KindMismatch | KubeconfigError::ApiVersionMismatch => {
            anyhow!("the files of $KUBECONFIG differ in kind or apiVersion")
        }
        KubeconfigError::FindPath => anyhow!("there is no home directory; give --kubeconfig"),
    }
}
