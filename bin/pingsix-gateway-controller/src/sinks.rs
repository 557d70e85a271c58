//! From URLs to the sinks that are published to.

use std::collections::BTreeMap;

use anyhow::Context as _;
use std::sync::Arc;

use pingsix_gateway_api::controller::{SinkHandle, SinkRouter};
use pingsix_gateway_api::replicas::Replicas;
use pingsix_sink::embedded::{Access, Clients, EmbeddedError, ServerTls};
use pingsix_sink::{EmbeddedEtcd, Scope, Target};
use pingsix_translate::DataPlaneKey;

use crate::configuration::Configuration;
use crate::values::SinkChoice;

/// The targets of every data plane.
#[derive(Debug, PartialEq)]
pub(crate) struct Sinks {
    /// Of those that have none of their own.
    pub(crate) others: Vec<Target>,
    pub(crate) chosen: BTreeMap<DataPlaneKey, Vec<Target>>,
}

impl Configuration {
    /// The sinks of each data plane.
    pub(crate) fn sinks(&self) -> Sinks {
        let mut sinks = Sinks { others: Vec::new(), chosen: BTreeMap::new() };
        for SinkChoice { data_plane, target } in &self.sink {
            let targets = match data_plane {
                None => &mut sinks.others,
                Some(data_plane) => sinks.chosen.entry(data_plane.clone()).or_default(),
            };
            targets.push(target.clone());
        }
        if sinks.others.is_empty() {
            sinks.others.push(Target::embedded());
        }
        sinks
    }
}

impl Sinks {
    /// The target that a data plane is read from.
    pub(crate) fn read_from(&self, data_plane: &DataPlaneKey) -> Option<&Target> {
        self.chosen.get(data_plane).unwrap_or(&self.others).first()
    }
}

/// The open sinks, and the embedded server among them.
pub(crate) struct Opened {
    pub(crate) router: SinkRouter,
    pub(crate) etcd: Option<EmbeddedEtcd>,
}

/// Opens the sinks. Credentials are read where the URLs say.
pub(crate) async fn open(
    configuration: &Configuration,
    replicas: Option<&Replicas>,
) -> anyhow::Result<Opened> {
    let sinks = configuration.sinks();
    let mut opened = BTreeMap::new();
    let mut etcd = None;
    for target in sinks.chosen.values().flatten().chain(&sinks.others) {
        let name = target.to_string();
        if opened.contains_key(&name) {
            continue;
        }
        let sink = if target.kind() == "embedded" {
            let server = start_server(configuration, replicas).await?;
            etcd = Some(server.clone());
            SinkHandle::feed(&*name, Arc::new(server))
        } else {
            let opened = target.open(&|name| std::env::var(name).ok()).await;
            let opened = opened.with_context(|| format!("cannot use {target} (sink)"))?;
            SinkHandle::shared(target.kind(), &*name, opened)
        };
        opened.insert(name, sink);
    }
    let sinks_of = |targets: &[Target]| -> Vec<SinkHandle> {
        targets.iter().filter_map(|target| opened.get(&target.to_string()).cloned()).collect()
    };
    let mut router = SinkRouter::new(sinks_of(&sinks.others));
    for (data_plane, targets) in &sinks.chosen {
        let scope = Scope::new(data_plane.prefix(&configuration.root))?;
        router = router.with(scope, sinks_of(targets));
    }
    Ok(Opened { router, etcd })
}

/// The server that PingSIX reads from. Its revisions are in a file, where there is one, else in what replicas share.
async fn start_server(
    configuration: &Configuration,
    replicas: Option<&Replicas>,
) -> anyhow::Result<EmbeddedEtcd> {
    let feed = &configuration.feed;
    let mut builder = EmbeddedEtcd::builder()
        .drain_timeout(configuration.shutdown_grace.duration() / 2)
        .connection_limit(feed.connection_limit)
        .watch_limit(feed.connection_limit.saturating_mul(16))
        .stream_limit(feed.stream_limit);
    match (&feed.state_file, replicas) {
        (Some(path), _) => builder = builder.state_file(path),
        (None, Some(replicas)) => builder = builder.reservations(replicas.reservations()),
        (None, None) => {}
    }
    let clients = feed.clients_file.as_ref().map(Access::from_file);
    if feed.authority.secret.is_some() {
        // Holders of a certificate of the authority have access, and so do the clients in the file.
        let access = clients.unwrap_or_else(|| Access::of(Clients::new())).certificate_uris();
        // The authority issues the server certificate later.
        builder = builder.access(access).tls(ServerTls::deferred());
    } else {
        if let Some(access) = clients {
            builder = builder.access(access);
        }
        if let Some(tls) = feed.tls.server() {
            builder = builder.tls(tls);
        }
    }
    if feed.allow_plaintext {
        builder = builder.allow_plaintext_beyond_loopback();
    }
    builder.start().await.map_err(|error| {
        let key = match error.downcast_ref() {
            Some(EmbeddedError::Tls(_)) => "feed.tls",
            Some(EmbeddedError::Clients(_)) => "feed.clients-file",
            Some(_) | None => "feed.state-file",
        };
        anyhow::Error::new(error).context(format!("cannot start the feed ({key})"))
    })
}
