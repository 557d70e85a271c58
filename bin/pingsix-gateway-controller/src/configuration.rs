//! The configuration: each key once, with its help, its default and its rules.
//!
//! A key's path (`feed.tls.cert`) is its place in the file, its flag (`--feed-tls-cert`) and its variable
//! (`PINGSIX_GATEWAY_FEED_TLS_CERT`) follow from it: see `settings`.

#![expect(clippy::doc_markdown, reason = "the comments are help texts, not Markdown")]

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgAction, Args};
use garde::Validate;
use pingsix_translate::DEFAULT_CONTROLLER_NAME;
use serde::Serialize;

use crate::rules;
use crate::values::{
    CollectorUrl, Endpoint, FeedClient, FeedEndpoint, LayoutName, LogFormat, SecretChoice, ServiceName,
    SinkChoice, Span, StatusTarget, address, count, switch, value,
};

/// The configuration of the controller. Secrets are in files that the configuration names.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Translation")]
pub(crate) struct Configuration {
    /// The controller name of the GatewayClasses and IngressClasses to serve.
    #[arg(id = "controller-name", value_name = "NAME", default_value = DEFAULT_CONTROLLER_NAME)]
    #[garde(custom(rules::controller_name))]
    pub(crate) controller_name: String,

    /// The PingSIX fleets of a Gateway or an IngressClass: one for all ports (shared), or one per port (perPort).
    #[arg(id = "layout", value_name = "shared|perPort", default_value = "shared", value_parser = value::<LayoutName>)]
    #[garde(skip)]
    pub(crate) layout: LayoutName,

    /// The beginning of the etcd prefix of every data plane.
    #[arg(id = "root", value_name = "PATH", default_value = "/pingsix")]
    #[garde(custom(rules::root))]
    pub(crate) root: String,

    /// The address at which PingSIX reaches the responder, for answers that PingSIX cannot give itself. Without a
    /// responder, rules that need one are refused.
    #[arg(id = "responder", value_name = "IP:PORT|off", default_value = "off", value_parser = value::<Endpoint>)]
    #[garde(custom(rules::can_be_connected_to))]
    pub(crate) responder: Endpoint,

    /// Translate TCPRoute, UDPRoute and TLSRoute for attached data planes, too, to stream documents under a separate
    /// prefix. A sidecar beside each PingSIX serves them. Managed data planes have sidecars in any case.
    #[arg(id = "stream", value_name = "true|false", default_value = "false", value_parser = switch,
        action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[garde(skip)]
    pub(crate) stream: bool,

    /// Name each PingSIX route after its rule. PingSIX shows the name in its metrics. Names count against budget.bytes.
    #[arg(id = "route-names", value_name = "true|false", default_value = "false", value_parser = switch,
        action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[garde(skip)]
    pub(crate) route_names: bool,

    #[command(flatten)]
    #[garde(dive)]
    pub(crate) budget: BudgetOf,

    #[command(flatten)]
    #[garde(dive)]
    pub(crate) backends: BackendsOf,

    #[command(flatten)]
    #[garde(dive)]
    pub(crate) watch: Watch,

    #[command(flatten)]
    #[garde(dive)]
    pub(crate) publish: Publish,

    #[command(flatten)]
    #[garde(dive)]
    pub(crate) status: Status,

    /// The sinks to publish to: embedded: (a server of this program, which PingSIX reads from, see feed),
    /// etcd://HOST:PORT or etcds://HOST:PORT, admin+http://HOST:PORT or admin+https://HOST:PORT (PingSIX's Admin API),
    /// file:/PATH or file:/DIRECTORY/ (PingSIX's static configuration). DATAPLANE=URL replaces the sinks of one data
    /// plane; DATAPLANE is as in status.url, or stream/NAMESPACE/GATEWAY. Repeatable. Every sink gets all publications,
    /// and PingSIX reads the first one. In a variable, spaces separate sinks. In the file, sinks are a list, or a
    /// mapping of data planes, and default, to URLs. All replicas share every sink but embedded:, and the leader alone
    /// writes there.
    #[arg(id = "sink", value_name = "[DATAPLANE=]URL", value_parser = value::<SinkChoice>, action = ArgAction::Append, num_args = 1,
        value_delimiter = ' ', default_value = "embedded:", help_heading = "Sinks")]
    #[garde(skip)]
    pub(crate) sink: Vec<SinkChoice>,

    #[command(flatten)]
    #[garde(dive)]
    pub(crate) feed: Feed,

    #[command(flatten)]
    #[garde(dive)]
    pub(crate) data_plane: DataPlaneOf,

    #[command(flatten)]
    #[garde(dive)]
    pub(crate) leader: Leader,

    #[command(flatten)]
    #[garde(dive)]
    pub(crate) pace: PaceOf,

    #[command(flatten)]
    #[garde(dive)]
    pub(crate) kube: Kube,

    #[command(flatten)]
    #[garde(dive)]
    pub(crate) health: HealthOf,

    #[command(flatten)]
    #[garde(dive)]
    pub(crate) debug: Debugging,

    #[command(flatten)]
    #[garde(dive)]
    pub(crate) log: Log,

    #[command(flatten)]
    #[garde(dive)]
    pub(crate) otlp: Otlp,

    /// The longest time of a shutdown.
    #[arg(id = "shutdown-grace", value_name = "TIME", default_value = "10s", value_parser = value::<Span>)]
    #[garde(custom(rules::between(0, 600)))]
    pub(crate) shutdown_grace: Span,
}

/// The budget of one data plane.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct BudgetOf {
    /// The most bytes of the configuration of one data plane. PingSIX reads at most 4 MiB.
    #[arg(id = "budget.bytes", value_name = "N", default_value = "3670016", value_parser = count::<usize>)]
    #[garde(range(min = 1_024, max = 4_194_304))]
    pub(crate) bytes: usize,

    /// The most matcher entries of one data plane: hosts times paths, over all routes.
    #[arg(id = "budget.entries", value_name = "N", default_value = "1000000", value_parser = count::<usize>)]
    #[garde(range(min = 1))]
    pub(crate) entries: usize,

    /// The share of budget.bytes and budget.entries that the objects of one namespace may use, in percent. 100 is no
    /// limit. Parameters of a class override the share for its data planes. Parameters of a Gateway can lower the
    /// share.
    #[arg(id = "budget.namespace-share", value_name = "PERCENT", default_value = "100", value_parser = count::<u8>)]
    #[garde(range(min = 1, max = 100))]
    pub(crate) namespace_share: u8,
}

/// The addresses of backends.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct BackendsOf {
    /// A network without backends (CIDR), such as those of nodes and of the API server: authors of EndpointSlices could
    /// otherwise have data planes send requests there. Repeatable.
    #[arg(id = "backends.refuse", value_name = "NETWORK", action = ArgAction::Append, num_args = 1, value_delimiter = ',')]
    #[garde(inner(custom(rules::network)))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) refuse: Vec<String>,

    /// Let backends have loopback addresses, for a PingSIX that runs beside its backends on one machine. Authors of
    /// EndpointSlices then reach all that listens on loopback beside PingSIX.
    #[arg(id = "backends.loopback", value_name = "true|false", default_value = "false", value_parser = switch,
        action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[garde(skip)]
    pub(crate) loopback: bool,
}

/// The options of the watch.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Watching")]
pub(crate) struct Watch {
    /// Watch namespaced objects in this namespace alone, which needs no permission for the whole cluster. Repeatable.
    /// Default: all namespaces.
    #[arg(id = "watch.namespaces", value_name = "NAMESPACE", action = ArgAction::Append, num_args = 1, value_delimiter = ',')]
    #[garde(inner(custom(rules::label)))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) namespaces: Vec<String>,

    /// A label selector, as for kubectl --selector. Only the Gateways, ListenerSets, routes and Ingresses that match
    /// are served.
    #[arg(id = "watch.selector", value_name = "SELECTOR")]
    #[garde(custom(rules::selector))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) selector: Option<String>,

    /// The Secrets to read: each referenced Secret by its name (by-name), or all Secrets (all). With all, one
    /// connection replaces one per Secret.
    #[arg(id = "watch.secrets", value_name = "by-name|all", default_value = "by-name", value_parser = value::<SecretChoice>)]
    #[garde(skip)]
    pub(crate) secrets: SecretChoice,
}

/// Which addresses statuses name.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Statuses")]
pub(crate) struct Publish {
    /// An IP address or host name at which clients reach PingSIX, for the statuses of Gateways and Ingresses.
    /// Repeatable.
    #[arg(id = "publish.address", value_name = "ADDRESS", action = ArgAction::Append, num_args = 1, value_delimiter = ',')]
    #[garde(inner(custom(rules::reachable_name)))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) address: Vec<String>,

    /// A Service with the addresses at which clients reach PingSIX, instead of publish.address.
    #[arg(id = "publish.service", value_name = "NAMESPACE/NAME", value_parser = value::<ServiceName>)]
    #[garde(custom(rules::instead_of("publish.address", !self.address.is_empty())))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) service: Option<ServiceName>,
}

/// The sources of confirmations by PingSIX.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Status {
    /// The status page of a PingSIX instance of a data plane. The page confirms publications. DATAPLANE is
    /// NAMESPACE/GATEWAY or IngressClass/NAME, and :PORT with the layout perPort. The default path of the URL is
    /// /status/config. Repeatable.
    #[arg(id = "status.url", value_name = "DATAPLANE=URL", value_parser = value::<StatusTarget>, action = ArgAction::Append, num_args = 1, value_delimiter = ',')]
    #[garde(skip)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) url: Vec<StatusTarget>,

    /// A file with the API key of status pages.
    #[arg(id = "status.api-key-file", value_name = "FILE")]
    #[garde(custom(rules::needs("status.url", !self.url.is_empty())))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) api_key_file: Option<PathBuf>,
}

/// The feed, from which PingSIX reads its configuration.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Feed")]
pub(crate) struct Feed {
    /// The URL of the feed for managed data planes: https://HOST:PORT with feed.authority.secret, or http://HOST:PORT
    /// for a feed without TLS. Repeatable. Without the option, the controller manages no data planes, whatever
    /// parameters ask for. Needs a responder with a loopback address, for each Pod, and the sink embedded:.
    #[arg(id = "feed.endpoint", value_name = "URL", value_parser = value::<FeedEndpoint>, action = ArgAction::Append, num_args = 1, value_delimiter = ',')]
    #[garde(skip)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) endpoint: Vec<FeedEndpoint>,

    /// The address on which the feed listens for PingSIX. The feed carries private keys, so an address beyond loopback
    /// needs TLS (feed.authority.secret, or feed.tls) or feed.allow-plaintext.
    #[arg(id = "feed.address", value_name = "IP:PORT", default_value = "127.0.0.1:2379", value_parser = address)]
    #[garde(custom(rules::secured(self.has_tls(), self.allow_plaintext)))]
    pub(crate) address: SocketAddr,

    /// Serve private keys in plaintext on an address that other machines can reach.
    #[arg(id = "feed.allow-plaintext", value_name = "true|false", default_value = "false", value_parser = switch,
        action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[garde(skip)]
    pub(crate) allow_plaintext: bool,

    #[command(flatten)]
    #[garde(dive)]
    pub(crate) authority: Authority,

    #[command(flatten)]
    #[garde(dive)]
    pub(crate) tls: Tls,

    /// A file for the revisions of a single replica, so that a restart does not lower them. Without the file, replicas
    /// with leader election share revisions in a Lease. Without election, revisions follow the clock, which must not be
    /// set back.
    #[arg(id = "feed.state-file", value_name = "FILE")]
    #[garde(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state_file: Option<PathBuf>,

    /// A file with the clients to serve, and the prefixes of each. A line has the common name of a certificate, then
    /// the word certificate, then prefixes. Needs feed.tls.client-ca or feed.authority.secret. With
    /// feed.authority.secret, the file adds prefixes to those that certificates name. The file is read again after a
    /// change.
    #[arg(id = "feed.clients-file", value_name = "FILE")]
    #[garde(custom(rules::needs("feed.tls.client-ca or feed.authority.secret", self.tls.client_ca.is_some() || self.authority.secret.is_some())))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) clients_file: Option<PathBuf>,

    /// The most open connections.
    #[arg(id = "feed.connection-limit", value_name = "N", default_value = "4096", value_parser = count::<usize>)]
    #[garde(range(min = 1))]
    pub(crate) connection_limit: usize,

    /// The most requests and watches at once on one connection.
    #[arg(id = "feed.stream-limit", value_name = "N", default_value = "100", value_parser = count::<u32>)]
    #[garde(range(min = 1))]
    pub(crate) stream_limit: u32,
}

/// Data planes that the controller runs itself.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Managed data planes")]
pub(crate) struct DataPlaneOf {
    /// The image of PingSIX in Pods of managed data planes, unless parameters name another one.
    #[arg(id = "data-plane.image", value_name = "IMAGE", default_value = "pingsix:0.1.0")]
    #[garde(custom(rules::image))]
    pub(crate) image: String,

    /// The image of the sidecar in those Pods, unless parameters name another one.
    #[arg(id = "data-plane.sidecar-image", value_name = "IMAGE", default_value = concat!("pingsix-gateway-sidecar:", env!("CARGO_PKG_VERSION")))]
    #[garde(custom(rules::image))]
    pub(crate) sidecar_image: String,
}

impl Feed {
    pub(crate) const fn has_tls(&self) -> bool {
        self.authority.secret.is_some() || self.tls.cert.is_some()
    }
}

/// The certificates of the feed, where the controller makes them itself.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Authority {
    /// The Secret of the feed's certificate authority, in the namespace of leader.namespace. The controller creates the
    /// authority, renews its certificates, and serves the feed over TLS. A client needs a certificate of the authority,
    /// and reads the prefixes that the certificate names. Managed data planes get certificates automatically. Excludes
    /// feed.tls.
    #[arg(id = "feed.authority.secret", value_name = "NAME")]
    #[garde(inner(custom(rules::label)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<String>,

    /// The Service of the feed in the same namespace. Server certificates contain its name.
    #[arg(id = "feed.authority.service", value_name = "NAME", default_value = "pingsix-gateway-feed")]
    #[garde(custom(rules::label))]
    pub(crate) service: String,

    /// A further DNS name or IP address of the feed, for server certificates: the name by which PingSIX outside of the
    /// cluster connects. Repeatable.
    #[arg(id = "feed.authority.names", value_name = "NAME", action = ArgAction::Append, num_args = 1, value_delimiter = ',')]
    #[garde(custom(rules::needs_authority(self.secret.is_some())), inner(custom(rules::reachable_name)))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) names: Vec<String>,

    /// A data plane that the controller does not run, and the Secret for its client certificate: DATAPLANE=SECRET, in the
    /// namespace of leader.namespace, or DATAPLANE=NAMESPACE/SECRET. The controller creates the Secret, and renews the
    /// certificate. A Secret that occurs several times gets one certificate for all of its data planes. Repeatable.
    #[arg(id = "feed.authority.clients", value_name = "DATAPLANE=SECRET", value_parser = value::<FeedClient>, action = ArgAction::Append, num_args = 1, value_delimiter = ',')]
    #[garde(custom(rules::needs_authority(self.secret.is_some())), inner(custom(rules::secret_of_client(&self.secret))))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) clients: Vec<FeedClient>,

    /// The lifetime of an authority. The controller introduces the next authority after two thirds of the lifetime, or
    /// after a change of the annotation pingsix.io/rotate of the Secret.
    #[arg(id = "feed.authority.lifetime", value_name = "TIME", default_value = "87600h", value_parser = value::<Span>)]
    #[garde(custom(rules::outlives(self.certificate_lifetime, self.overlap)))]
    pub(crate) lifetime: Span,

    /// The lifetime of server and client certificates. The controller replaces a certificate after two thirds of its
    /// lifetime.
    #[arg(id = "feed.authority.certificate-lifetime", value_name = "TIME", default_value = "2160h", value_parser = value::<Span>)]
    #[garde(custom(rules::between(1, 315_360_000)))]
    pub(crate) certificate_lifetime: Span,

    /// The longest time until a change of a Secret has reached all replicas and the files of Pods. Clocks of replicas
    /// have to differ by less.
    #[arg(id = "feed.authority.overlap", value_name = "TIME", default_value = "10m", value_parser = value::<Span>)]
    #[garde(custom(rules::between(0, 604_800)))]
    pub(crate) overlap: Span,
}

/// TLS of the feed, with certificates that others make.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Tls {
    /// The certificate chain of the feed, PEM, for TLS. PingSIX verifies the chain with pingsix.etcd.tls.ca_cert. The
    /// file is read again after a change.
    #[arg(id = "feed.tls.cert", value_name = "FILE")]
    #[garde(custom(rules::needs("feed.tls.key", self.key.is_some())))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cert: Option<PathBuf>,

    /// The private key of that certificate, PEM, without a passphrase. The file is read again after a change.
    #[arg(id = "feed.tls.key", value_name = "FILE")]
    #[garde(custom(rules::needs("feed.tls.cert", self.cert.is_some())))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<PathBuf>,

    /// The authorities of client certificates, PEM. Only clients with such a certificate are served: PingSIX needs
    /// pingsix.etcd.tls.client_cert and client_key. The file is read again after a change.
    #[arg(id = "feed.tls.client-ca", value_name = "FILE")]
    #[garde(custom(rules::needs("feed.tls.cert", self.cert.is_some())))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client_ca: Option<PathBuf>,
}

/// Which replica writes statuses.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Leader election")]
pub(crate) struct Leader {
    /// Elect a leader among the replicas. The leader alone writes statuses. All replicas serve PingSIX.
    #[arg(id = "leader.elect", value_name = "true|false", default_value = "true", value_parser = switch,
        action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[garde(skip)]
    pub(crate) elect: bool,

    /// The namespace of the Lease. Default: the namespace of the Pod.
    #[arg(id = "leader.namespace", value_name = "NAMESPACE")]
    #[garde(inner(custom(rules::label)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,

    /// The name of the Lease. Default: a name derived from the controller name.
    #[arg(id = "leader.lease", value_name = "NAME")]
    #[garde(inner(custom(rules::label)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lease: Option<String>,

    /// The time after the last renewal until another replica may take the Lease. A crashed leader is replaced after at
    /// most this time plus leader.retry.
    #[arg(id = "leader.duration", value_name = "TIME", default_value = "12s", value_parser = value::<Span>)]
    #[garde(custom(rules::whole_seconds), custom(rules::between(1, 3_600)))]
    pub(crate) duration: Span,

    /// The time after the last successful renewal until a leader stops leading.
    #[arg(id = "leader.renew-deadline", value_name = "TIME", default_value = "8s", value_parser = value::<Span>)]
    #[garde(custom(rules::shorter_than("leader.duration", self.duration)))]
    pub(crate) renew_deadline: Span,

    /// The interval of renewals of the Lease by the leader, and of reads by the other replicas.
    #[arg(id = "leader.retry", value_name = "TIME", default_value = "2s", value_parser = value::<Span>)]
    #[garde(custom(rules::several_within("leader.renew-deadline", self.renew_deadline)))]
    pub(crate) retry: Span,
}

/// The rate of translations of one Gateway or IngressClass.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Pace")]
pub(crate) struct PaceOf {
    /// The pause of a Gateway or IngressClass after a reconciliation, as a multiple of the duration of the
    /// reconciliation.
    #[arg(id = "pace.rest-factor", value_name = "N", default_value = "2", value_parser = count::<u32>)]
    #[garde(range(max = 1_000))]
    pub(crate) rest_factor: u32,

    /// The longest pause after a reconciliation.
    #[arg(id = "pace.longest-rest", value_name = "TIME", default_value = "1s", value_parser = value::<Span>)]
    #[garde(custom(rules::between(0, 600)))]
    pub(crate) longest_rest: Span,

    /// The delay of the first retry after a failure. Each further failure doubles the delay.
    #[arg(id = "pace.first-retry", value_name = "TIME", default_value = "100ms", value_parser = value::<Span>)]
    #[garde(custom(rules::some_time))]
    pub(crate) first_retry: Span,

    /// The longest delay of a retry.
    #[arg(id = "pace.longest-retry", value_name = "TIME", default_value = "30s", value_parser = value::<Span>)]
    #[garde(custom(rules::at_least("pace.first-retry", self.first_retry)))]
    pub(crate) longest_retry: Span,
}

/// The API server.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Kubernetes")]
pub(crate) struct Kube {
    /// The kubeconfig for the API server. Default: the kubeconfig of kubectl, or the service account of the Pod.
    #[arg(id = "kube.config", value_name = "FILE")]
    #[garde(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<PathBuf>,

    /// The context of the kubeconfig. Default: the current context.
    #[arg(id = "kube.context", value_name = "NAME")]
    #[garde(inner(custom(rules::some_text)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<String>,
}

/// Health and metrics.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Operations")]
pub(crate) struct HealthOf {
    /// The address of /livez, /readyz and /metrics.
    #[arg(id = "health.address", value_name = "IP:PORT", default_value = "0.0.0.0:8080", value_parser = address)]
    #[garde(skip)]
    pub(crate) address: SocketAddr,

    /// The time without progress of the controller after which /livez fails.
    #[arg(id = "health.stuck-after", value_name = "TIME", default_value = "1m", value_parser = value::<Span>)]
    #[garde(custom(rules::between(5, 3_600)))]
    pub(crate) stuck_after: Span,
}

/// Dumps.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Debugging {
    /// The address of dumps of the controller's state, without secrets and without authentication.
    #[arg(id = "debug.address", value_name = "IP:PORT|off", default_value = "127.0.0.1:8081", value_parser = value::<Endpoint>)]
    #[garde(skip)]
    pub(crate) address: Endpoint,
}

/// The log.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Log {
    /// The format of the log, which goes to standard error.
    #[arg(id = "log.format", value_name = "text|json", default_value = "text", value_parser = value::<LogFormat>)]
    #[garde(skip)]
    pub(crate) format: LogFormat,

    /// The log level (error, warn, info, debug, trace), or levels per module, such as info,pingsix_sink=debug.
    #[arg(id = "log.filter", value_name = "FILTER", default_value = "info")]
    #[garde(custom(rules::filter))]
    pub(crate) filter: String,
}

/// Traces.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Otlp {
    /// The OpenTelemetry collector for traces of reconciliations, with OTLP over gRPC: http://HOST:PORT or
    /// https://HOST:PORT. Default: no traces. Needs a program that was built with the cargo feature otel.
    #[arg(id = "otlp.endpoint", value_name = "URL", value_parser = value::<CollectorUrl>)]
    #[garde(custom(rules::built_with("otel", cfg!(feature = "otel"))))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) endpoint: Option<CollectorUrl>,
}
