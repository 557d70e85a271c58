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
    CollectorUrl, Endpoint, FeedEndpoint, LayoutName, LogFormat, SecretChoice, ServiceName, SinkChoice, Span,
    StatusTarget, address, count, switch, value,
};

/// What the controller does, and how. Holds no secrets: they are in files that it names.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Translation")]
pub(crate) struct Configuration {
    /// The controller name of the GatewayClasses and IngressClasses that are ours.
    #[arg(id = "controller-name", value_name = "NAME", default_value = DEFAULT_CONTROLLER_NAME)]
    #[garde(custom(rules::controller_name))]
    pub(crate) controller_name: String,

    /// How listeners are spread over PingSIX fleets: all of a Gateway in one (shared), or one fleet per port (perPort). An
    /// IngressClass always has one.
    #[arg(id = "layout", value_name = "shared|perPort", default_value = "shared", value_parser = value::<LayoutName>)]
    #[garde(skip)]
    pub(crate) layout: LayoutName,

    /// What the etcd prefix of every data plane starts with.
    #[arg(id = "root", value_name = "PATH", default_value = "/pingsix")]
    #[garde(custom(rules::root))]
    pub(crate) root: String,

    /// Where PingSIX reaches the responder, which gives the answers PingSIX cannot give itself; without one, rules that
    /// need it are refused.
    #[arg(id = "responder", value_name = "IP:PORT|off", default_value = "off", value_parser = value::<Endpoint>)]
    #[garde(custom(rules::can_be_connected_to))]
    pub(crate) responder: Endpoint,

    /// Translate TCPRoute, UDPRoute and TLSRoute too, into stream documents under a prefix of their own. PingSIX has no
    /// stream proxy, so another program has to serve them.
    #[arg(id = "stream", value_name = "true|false", default_value = "false", value_parser = switch,
        action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[garde(skip)]
    pub(crate) stream: bool,

    /// Name each PingSIX route after the rule it comes from, which PingSIX shows in its metrics. Costs bytes.
    #[arg(id = "route-names", value_name = "true|false", default_value = "false", value_parser = switch,
        action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[garde(skip)]
    pub(crate) route_names: bool,

    #[command(flatten)]
    #[garde(dive)]
    pub(crate) budget: BudgetOf,

    #[command(flatten)]
    #[garde(dive)]
    pub(crate) watch: Watch,

    #[command(flatten)]
    #[garde(dive)]
    pub(crate) publish: Publish,

    #[command(flatten)]
    #[garde(dive)]
    pub(crate) status: Status,

    /// Where to publish: embedded: (a server of this program, which PingSIX reads from, see feed), etcd://HOST:PORT or
    /// etcds://HOST:PORT, admin+http://HOST:PORT or admin+https://HOST:PORT (PingSIX's Admin API), file:/PATH or
    /// file:/DIRECTORY/ (PingSIX's static configuration). DATAPLANE=URL is for one data plane alone, which is then published
    /// nowhere else; DATAPLANE is as with status.url, or stream/NAMESPACE/GATEWAY. Repeatable; what is published is published
    /// to each, and PingSIX is taken to read the first. In a variable, spaces separate them; in the file, they are a list, or
    /// a mapping of data planes, and default, to URLs. Replicas share all but embedded:, and the leader alone writes there.
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

    /// How long a shutdown may take.
    #[arg(id = "shutdown-grace", value_name = "TIME", default_value = "10s", value_parser = value::<Span>)]
    #[garde(custom(rules::between(0, 600)))]
    pub(crate) shutdown_grace: Span,
}

/// How large the configuration of one data plane may be.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct BudgetOf {
    /// How many bytes the configuration of one data plane may have; PingSIX reads 4 MiB at most.
    #[arg(id = "budget.bytes", value_name = "N", default_value = "3670016", value_parser = count::<usize>)]
    #[garde(range(min = 1_024, max = 4_194_304))]
    pub(crate) bytes: usize,

    /// How many matcher entries the configuration of one data plane may have: hosts times paths, over all routes.
    #[arg(id = "budget.entries", value_name = "N", default_value = "1000000", value_parser = count::<usize>)]
    #[garde(range(min = 1))]
    pub(crate) entries: usize,

    /// How much of both the objects of one namespace may take, in percent: 100 is no bound. Parameters of a class can say
    /// something else for its data planes, and those of a Gateway less.
    #[arg(id = "budget.namespace-share", value_name = "PERCENT", default_value = "100", value_parser = count::<u8>)]
    #[garde(range(min = 1, max = 100))]
    pub(crate) namespace_share: u8,
}

/// What is watched.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Watching")]
pub(crate) struct Watch {
    /// Watch namespaced objects in this namespace alone, so that no permission for the whole cluster is needed.
    /// Repeatable; without it, all namespaces are watched.
    #[arg(id = "watch.namespaces", value_name = "NAMESPACE", action = ArgAction::Append, num_args = 1, value_delimiter = ',')]
    #[garde(inner(custom(rules::label)))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) namespaces: Vec<String>,

    /// Serve only the Gateways, ListenerSets, routes and Ingresses with these labels, as kubectl --selector takes them.
    #[arg(id = "watch.selector", value_name = "SELECTOR")]
    #[garde(custom(rules::selector))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) selector: Option<String>,

    /// Which Secrets to read: those that are referred to, each by its name (by-name), or all of them (all), which takes
    /// one connection instead of one per Secret.
    #[arg(id = "watch.secrets", value_name = "by-name|all", default_value = "by-name", value_parser = value::<SecretChoice>)]
    #[garde(skip)]
    pub(crate) secrets: SecretChoice,
}

/// Which addresses statuses name.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Statuses")]
pub(crate) struct Publish {
    /// An address under which clients reach PingSIX, an IP address or a host name, for the statuses of Gateways and
    /// Ingresses. Repeatable.
    #[arg(id = "publish.address", value_name = "ADDRESS", action = ArgAction::Append, num_args = 1, value_delimiter = ',')]
    #[garde(inner(custom(rules::reachable_name)))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) address: Vec<String>,

    /// A Service whose addresses are those under which clients reach PingSIX, in the place of fixed ones.
    #[arg(id = "publish.service", value_name = "NAMESPACE/NAME", value_parser = value::<ServiceName>)]
    #[garde(custom(rules::instead_of("publish.address", !self.address.is_empty())))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) service: Option<ServiceName>,
}

/// How it becomes known what PingSIX has taken over.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Status {
    /// The status page of a PingSIX instance that reads a data plane, which confirms publications. DATAPLANE is
    /// NAMESPACE/GATEWAY, NAMESPACE/GATEWAY:PORT with the layout perPort, or IngressClass/NAME; without a path the URL
    /// means PingSIX's /status/config. Repeatable.
    #[arg(id = "status.url", value_name = "DATAPLANE=URL", value_parser = value::<StatusTarget>, action = ArgAction::Append, num_args = 1, value_delimiter = ',')]
    #[garde(skip)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) url: Vec<StatusTarget>,

    /// A file with the key that status pages ask for.
    #[arg(id = "status.api-key-file", value_name = "FILE")]
    #[garde(custom(rules::needs("status.url", !self.url.is_empty())))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) api_key_file: Option<PathBuf>,
}

/// What PingSIX reads its configuration from.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Feed")]
pub(crate) struct Feed {
    /// How data planes that the controller runs itself reach the feed: https://HOST:PORT with feed.authority.secret, or
    /// http://HOST:PORT for a feed without TLS. Repeatable; without it, it runs none, whatever parameters say. Needs a
    /// responder that listens on loopback, in each of their Pods, and a sink that is embedded:.
    #[arg(id = "feed.endpoint", value_name = "URL", value_parser = value::<FeedEndpoint>, action = ArgAction::Append, num_args = 1, value_delimiter = ',')]
    #[garde(skip)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) endpoint: Vec<FeedEndpoint>,

    /// Where PingSIX connects. Private keys pass here, so other addresses than those of loopback need TLS
    /// (feed.authority.secret, or feed.tls), or feed.allow-plaintext.
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

    /// A file that keeps revisions from going back over a restart, for one replica that is alone. Without it, replicas that
    /// elect a leader share them in a Lease; without election, they do not go back as long as clocks are not set back.
    #[arg(id = "feed.state-file", value_name = "FILE")]
    #[garde(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state_file: Option<PathBuf>,

    /// Serve only the clients that this file names, each its own prefixes: a line each, with a name, password PASSWORD or
    /// certificate (whose common name it is, which takes feed.tls.client-ca or feed.authority.secret), and prefixes. With
    /// feed.authority.secret, this comes on top of what certificates name, and every client needs one. Read again when it
    /// changes.
    #[arg(id = "feed.clients-file", value_name = "FILE")]
    #[garde(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) clients_file: Option<PathBuf>,

    /// How many connections may be open at once.
    #[arg(id = "feed.connection-limit", value_name = "N", default_value = "4096", value_parser = count::<usize>)]
    #[garde(range(min = 1))]
    pub(crate) connection_limit: usize,

    /// How many requests and watches one connection may carry at once.
    #[arg(id = "feed.stream-limit", value_name = "N", default_value = "100", value_parser = count::<u32>)]
    #[garde(range(min = 1))]
    pub(crate) stream_limit: u32,
}

/// Data planes that the controller runs itself.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Managed data planes")]
pub(crate) struct DataPlaneOf {
    /// The image of PingSIX in Pods that the controller makes, where parameters name none.
    #[arg(id = "data-plane.image", value_name = "IMAGE", default_value = "pingsix:0.1.0")]
    #[garde(custom(rules::image))]
    pub(crate) image: String,

    /// The image of the responder in those Pods, where parameters name none.
    #[arg(id = "data-plane.responder-image", value_name = "IMAGE", default_value = concat!("pingsix-gateway-responder:", env!("CARGO_PKG_VERSION")))]
    #[garde(custom(rules::image))]
    pub(crate) responder_image: String,
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
    /// Serve the feed over TLS with certificates of an authority that the controller makes and keeps in this Secret of its
    /// own namespace (that of leader.namespace), and renews. Only clients with a certificate of it are served, each the
    /// prefixes that the certificate names: managed data planes get theirs by themselves. In the place of feed.tls.
    #[arg(id = "feed.authority.secret", value_name = "NAME")]
    #[garde(inner(custom(rules::label)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<String>,

    /// The Service of the same namespace that leads to the feed: what its certificates are for.
    #[arg(id = "feed.authority.service", value_name = "NAME", default_value = "pingsix-gateway-feed")]
    #[garde(custom(rules::label))]
    pub(crate) service: String,

    /// How long an authority is good. The next one is introduced when two thirds of that are over, or when the annotation
    /// pingsix.io/rotate of the Secret is given another value.
    #[arg(id = "feed.authority.lifetime", value_name = "TIME", default_value = "87600h", value_parser = value::<Span>)]
    #[garde(custom(rules::outlives(self.certificate_lifetime, self.overlap)))]
    pub(crate) lifetime: Span,

    /// How long certificates of the server and of clients are good. They are replaced when two thirds of that are over.
    #[arg(id = "feed.authority.certificate-lifetime", value_name = "TIME", default_value = "2160h", value_parser = value::<Span>)]
    #[garde(custom(rules::between(1, 315_360_000)))]
    pub(crate) certificate_lifetime: Span,

    /// How long it takes at most until what is written into a Secret is known to all replicas, and in the files of Pods.
    /// What clocks of replicas differ by has to be less.
    #[arg(id = "feed.authority.overlap", value_name = "TIME", default_value = "10m", value_parser = value::<Span>)]
    #[garde(custom(rules::between(0, 604_800)))]
    pub(crate) overlap: Span,
}

/// TLS of the feed, with certificates that others make.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Tls {
    /// Serve the feed over TLS with this certificate chain, PEM: what PingSIX verifies with pingsix.etcd.tls.ca_cert. Read
    /// again when it changes.
    #[arg(id = "feed.tls.cert", value_name = "FILE")]
    #[garde(custom(rules::needs("feed.tls.key", self.key.is_some())))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cert: Option<PathBuf>,

    /// The private key of that certificate, PEM, without a passphrase. Read again when it changes.
    #[arg(id = "feed.tls.key", value_name = "FILE")]
    #[garde(custom(rules::needs("feed.tls.cert", self.cert.is_some())))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<PathBuf>,

    /// Serve only clients with a certificate of one of these authorities, PEM: PingSIX with pingsix.etcd.tls.client_cert
    /// and client_key. Read again when it changes.
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
    /// Have one replica at a time write statuses. All of them serve PingSIX, elected or not.
    #[arg(id = "leader.elect", value_name = "true|false", default_value = "true", value_parser = switch,
        action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[garde(skip)]
    pub(crate) elect: bool,

    /// The namespace of the Lease; without it, the one that the Pod runs in.
    #[arg(id = "leader.namespace", value_name = "NAMESPACE")]
    #[garde(inner(custom(rules::label)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,

    /// The name of the Lease; without it, one that follows from the controller name.
    #[arg(id = "leader.lease", value_name = "NAME")]
    #[garde(inner(custom(rules::label)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lease: Option<String>,

    /// How long others leave the Lease to a leader of whom they hear nothing. With leader.retry on top, one that crashes is
    /// followed at the latest.
    #[arg(id = "leader.duration", value_name = "TIME", default_value = "12s", value_parser = value::<Span>)]
    #[garde(custom(rules::whole_seconds), custom(rules::between(1, 3_600)))]
    pub(crate) duration: Span,

    /// How long a leader goes on without a renewal that succeeds.
    #[arg(id = "leader.renew-deadline", value_name = "TIME", default_value = "8s", value_parser = value::<Span>)]
    #[garde(custom(rules::shorter_than("leader.duration", self.duration)))]
    pub(crate) renew_deadline: Span,

    /// How often the Lease is renewed, or looked at.
    #[arg(id = "leader.retry", value_name = "TIME", default_value = "2s", value_parser = value::<Span>)]
    #[garde(custom(rules::several_within("leader.renew-deadline", self.renew_deadline)))]
    pub(crate) retry: Span,
}

/// How often one Gateway or IngressClass is reconsidered.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Pace")]
pub(crate) struct PaceOf {
    /// After a Gateway or an IngressClass was reconsidered, it rests this many times as long as that took.
    #[arg(id = "pace.rest-factor", value_name = "N", default_value = "2", value_parser = count::<u32>)]
    #[garde(range(max = 1_000))]
    pub(crate) rest_factor: u32,

    /// The longest rest.
    #[arg(id = "pace.longest-rest", value_name = "TIME", default_value = "1s", value_parser = value::<Span>)]
    #[garde(custom(rules::between(0, 600)))]
    pub(crate) longest_rest: Span,

    /// How long after a failure it is tried again; doubled with each further one.
    #[arg(id = "pace.first-retry", value_name = "TIME", default_value = "100ms", value_parser = value::<Span>)]
    #[garde(custom(rules::some_time))]
    pub(crate) first_retry: Span,

    /// The longest time between two tries.
    #[arg(id = "pace.longest-retry", value_name = "TIME", default_value = "30s", value_parser = value::<Span>)]
    #[garde(custom(rules::at_least("pace.first-retry", self.first_retry)))]
    pub(crate) longest_retry: Span,
}

/// How the API server is reached.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Kubernetes")]
pub(crate) struct Kube {
    /// How to reach the API server; without it, as kubectl does, or as a Pod does.
    #[arg(id = "kube.config", value_name = "FILE")]
    #[garde(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<PathBuf>,

    /// The context of the kubeconfig, in the place of its current one.
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
    /// Where /livez, /readyz and /metrics are served.
    #[arg(id = "health.address", value_name = "IP:PORT", default_value = "0.0.0.0:8080", value_parser = address)]
    #[garde(skip)]
    pub(crate) address: SocketAddr,

    /// How long the controller may not have gone round before /livez says that it is stuck.
    #[arg(id = "health.stuck-after", value_name = "TIME", default_value = "1m", value_parser = value::<Span>)]
    #[garde(custom(rules::between(5, 3_600)))]
    pub(crate) stuck_after: Span,
}

/// Dumps.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Debugging {
    /// Where dumps of what the controller holds are served, without secrets, to whoever can connect.
    #[arg(id = "debug.address", value_name = "IP:PORT|off", default_value = "127.0.0.1:8081", value_parser = value::<Endpoint>)]
    #[garde(skip)]
    pub(crate) address: Endpoint,
}

/// The log.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Log {
    /// How to write the log, which goes to standard error.
    #[arg(id = "log.format", value_name = "text|json", default_value = "text", value_parser = value::<LogFormat>)]
    #[garde(skip)]
    pub(crate) format: LogFormat,

    /// What to log: a level (error, warn, info, debug, trace), or levels per module, such as info,pingsix_sink=debug.
    #[arg(id = "log.filter", value_name = "FILTER", default_value = "info")]
    #[garde(custom(rules::filter))]
    pub(crate) filter: String,
}

/// Traces.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Validate)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Otlp {
    /// The OpenTelemetry collector that traces of reconciliations are sent to, with OTLP over gRPC: http://HOST:PORT or
    /// https://HOST:PORT. Without one, there are none. Takes a program that was built with the cargo feature otel.
    #[arg(id = "otlp.endpoint", value_name = "URL", value_parser = value::<CollectorUrl>)]
    #[garde(custom(rules::built_with("otel", cfg!(feature = "otel"))))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) endpoint: Option<CollectorUrl>,
}
