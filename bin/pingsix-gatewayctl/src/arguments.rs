//! The command line.

#![expect(clippy::doc_markdown, reason = "the comments are help texts, not Markdown")]
#![allow(
    rustdoc::bare_urls,
    rustdoc::invalid_html_tags,
    reason = "the comments are help texts, not Markdown"
)]

mod cluster;
mod endpoints;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use pingsix_gateway_api::explain::parse_header;
use pingsix_migrate::ReplayHost;
use pingsix_sink::embedded::ServerTls;
use pingsix_sink::{Scope, Target};
use pingsix_translate::pingsix::process::{DEFAULT_THREADS, DNS_REFRESH_SECONDS};
use pingsix_translate::{BackendAddresses, Budget, DEFAULT_CONTROLLER_NAME, Layout, ObjectName, Options};

pub(crate) use cluster::{ClusterArguments, DefaultInput, Input};
pub(crate) use endpoints::SuppliedEndpoints;

/// Translate, check, explain and serve Gateway API and Ingress manifests for PingSIX.
///
/// Manifests are files, directories (searched for *.yaml, *.yml and *.json), or - for standard input, in the form of
/// kubectl apply and of kubectl get -o yaml or -o json. Files below a directory with neither kind nor metadata are ignored.
/// With --cluster, some commands read the objects of a cluster instead.
///
/// Exit codes: 0 without problems, 1 with problems, 2 for unusable arguments or input.
#[derive(Debug, Parser)]
#[command(name = "pingsix-gatewayctl", version, max_term_width = 110)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Translate(TranslateArguments),
    Check(CheckArguments),
    Explain(ExplainArguments),
    Serve(ServeArguments),
    Diff(DiffArguments),
    PingsixConfig(PingsixConfigArguments),
    Migrate(MigrateArguments),
    /// Print the CustomResourceDefinitions of this project, for kubectl apply -f -.
    Crds,
    Completions(CompletionsArguments),
    Man(ManArguments),
    #[command(name = "__complete", hide = true)]
    Complete(CompleteArguments),
}

/// The options of the translation.
#[derive(Clone, Debug, Args)]
pub(crate) struct TranslationArguments {
    /// The PingSIX fleets of a Gateway or an IngressClass: one for all ports, or one per port.
    #[arg(long, value_enum, default_value_t, help_heading = "Translation")]
    pub(crate) layout: LayoutArgument,

    /// The controller name of the GatewayClasses and IngressClasses to serve.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_CONTROLLER_NAME, help_heading = "Translation")]
    pub(crate) controller_name: String,

    /// The beginning of the etcd prefix of every data plane.
    #[arg(long, value_name = "PATH", default_value = "/pingsix", value_parser = parse_root, help_heading = "Translation")]
    pub(crate) root: String,

    /// The address at which PingSIX reaches the responder, for answers that PingSIX cannot give itself. Without a
    /// responder, rules that need one are refused.
    #[arg(long, value_name = "IP:PORT|off", default_value = "127.0.0.1:8089", help_heading = "Translation")]
    pub(crate) responder: ResponderArgument,

    /// Endpoints of a Service, instead of its EndpointSlices. Without PORT, the endpoints serve every port of the Service.
    /// Repeatable.
    ///
    /// Example: --endpoints shop/cart:80=127.0.0.1:9001,127.0.0.1:9002
    #[arg(long, value_name = "NS/SVC[:PORT]=IP:PORT[,IP:PORT...]", help_heading = "Translation")]
    pub(crate) endpoints: Vec<SuppliedEndpoints>,

    /// The most bytes of the configuration of one data plane. PingSIX reads at most 4 MiB.
    #[arg(long, value_name = "BYTES", default_value_t = Budget::default().bytes, help_heading = "Translation")]
    pub(crate) budget_bytes: usize,

    /// The most matcher entries of one data plane: hosts times paths, over all routes.
    #[arg(long, value_name = "N", default_value_t = Budget::default().matcher_entries, help_heading = "Translation")]
    pub(crate) budget_entries: usize,

    /// The share of both budgets that the objects of one namespace may use, in percent. 100 is no limit. Parameters of a
    /// class override the share for its data planes. Parameters of a Gateway can lower the share.
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u8).range(1..=100), help_heading = "Translation")]
    pub(crate) budget_namespace_share: u8,

    /// Translate TCPRoute, UDPRoute and TLSRoute for attached data planes, too, to stream documents under a separate
    /// prefix. A sidecar beside each PingSIX serves them. Managed data planes have sidecars in any case.
    #[arg(long, help_heading = "Translation")]
    pub(crate) stream: bool,
}

impl TranslationArguments {
    /// The values without any argument.
    pub(crate) fn defaults() -> Result<Self, clap::Error> {
        let command = Self::augment_args(clap::Command::new("defaults").no_binary_name(true));
        Self::from_arg_matches(&command.try_get_matches_from([] as [&str; 0])?)
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            controller_name: self.controller_name.clone(),
            layout: match self.layout {
                LayoutArgument::Shared => Layout::Shared,
                LayoutArgument::PerPort => Layout::PerPort,
            },
            root: self.root.clone(),
            responder: match self.responder {
                ResponderArgument::Off => None,
                ResponderArgument::At(address) => Some(address),
            },
            budget: Budget { bytes: self.budget_bytes, matcher_entries: self.budget_entries },
            namespace_share: self.budget_namespace_share,
            stream: self.stream,
            attached_sinks: true,
            // Manifests of a machine name backends of the same machine.
            backend_addresses: BackendAddresses { loopback: true, ..BackendAddresses::default() },
            ..Options::default()
        }
    }
}

/// Assumptions about what the files leave open.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct AssumptionArguments {
    /// Assume managed data planes, with a fleet per port, where the files leave that open: for classes that are missing, that
    /// have no parameters, or whose PingsixProxy is missing. Without the option, check assumes attached data planes with --layout.
    #[arg(long, help_heading = "Translation")]
    pub(crate) managed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LayoutArgument {
    /// All ports in one fleet.
    #[default]
    Shared,
    /// One fleet per port: exact semantics. Messages and documentation write perPort.
    #[value(alias = "perPort")]
    PerPort,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponderArgument {
    Off,
    At(SocketAddr),
}

impl std::str::FromStr for ResponderArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        text.parse().map(Self::At).map_err(|_| "expected an IP address with a port, or off".to_owned())
    }
}

fn parse_root(text: &str) -> Result<String, String> {
    Scope::new(text).map(|scope| scope.as_str().to_owned()).map_err(|error| error.to_string())
}

/// Prints the PingSIX configuration of manifests.
///
/// The configuration contains the private keys of listeners and Ingresses; the outputs status and review contain no keys.
/// Findings go to standard error. A part that cannot be served does not stop the output of the rest.
///
/// -o review is for people and for version control: every document with its rules, the status of every object, and the
/// findings.
///
/// Exit codes: 0, 1 for a part that is not served as asked, 2 for unusable arguments or input.
///
/// Examples:
///   pingsix-gatewayctl translate manifests/
///   pingsix-gatewayctl translate gateway.yaml routes.yaml -o status
///   pingsix-gatewayctl translate --cluster -o status
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct TranslateArguments {
    /// Files, directories, or - for standard input. Alternative: --cluster.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// The output: PingSIX's static form as one YAML document per data plane, or as JSON, the status of each object, etcd
    /// keys and values, or a review of all these.
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: TranslateOutput,

    #[command(flatten)]
    pub(crate) cluster: ClusterArguments,

    #[command(flatten)]
    pub(crate) translation: TranslationArguments,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TranslateOutput {
    #[default]
    Yaml,
    Json,
    Status,
    EtcdJson,
    Review,
}

/// Reports all problems of manifests, or of a PingSIX configuration.
///
/// Findings are grouped by file and object. With an error, a part of the object is not served. With a warning, the object
/// is served in an unexpected way. An info needs no action. Secrets are never printed.
///
/// Exit codes: 0, 1 with errors, or with --strict also with warnings, 2 for unusable arguments or input.
///
/// Examples:
///   pingsix-gatewayctl check manifests/ --strict
///   pingsix-gatewayctl check manifests/ -o json
///   pingsix-gatewayctl check --cluster --namespace shop
///   kustomize build . | pingsix-gatewayctl check -
///   pingsix-gatewayctl check --pingsix config.yaml
///   pingsix-gatewayctl translate manifests/ | pingsix-gatewayctl check --pingsix -
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CheckArguments {
    /// Files, directories, or - for standard input. Alternatives: --cluster, --pingsix.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// A PingSIX configuration in its static form, one or several YAML documents, or - for standard input. PingSIX's
    /// acceptance rules apply to the configuration. Repeatable.
    #[arg(long, value_name = "FILE")]
    pub(crate) pingsix: Vec<PathBuf>,

    /// Exit with 1 for warnings, too.
    #[arg(long)]
    pub(crate) strict: bool,

    #[command(flatten)]
    pub(crate) assumptions: AssumptionArguments,

    /// The format of the output.
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: ReportOutput,

    #[command(flatten)]
    pub(crate) cluster: ClusterArguments,

    #[command(flatten)]
    pub(crate) translation: TranslationArguments,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportOutput {
    #[default]
    Text,
    Json,
}

/// Explains the answer to a request: the rule that decides, and the reason why each other rule does not.
///
/// A port of listeners for TCP, UDP or TLS gets no requests. For such a port, the output explains the connection; with
/// --stream, by the stream documents.
///
/// Exit codes: 0 for a backend, a redirect or another answer below 400, 1 for other answers, 2 for unusable arguments or
/// input.
///
/// Examples:
///   pingsix-gatewayctl explain manifests/ GET http://shop.example.com/cart?page=2
///   pingsix-gatewayctl explain manifests/ POST https://shop.example.com/cart -H 'X-Env: canary' --http2
///   pingsix-gatewayctl explain manifests/ GET http://shop.example.com/ --gateway infra/web --port 8080
///   pingsix-gatewayctl explain --cluster GET http://shop.example.com/cart
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    override_usage = "pingsix-gatewayctl explain [OPTIONS] [PATH]... <METHOD> <URL>"
)]
pub(crate) struct ExplainArguments {
    /// Manifests (files, directories, or - for standard input; none with --cluster), then the method, then the URL.
    #[arg(required = true, num_args = 1.., value_name = "PATH... METHOD URL")]
    pub(crate) arguments: Vec<String>,

    /// A header of the request. Repeatable.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = parse_header)]
    pub(crate) headers: Vec<(String, String)>,

    /// The Gateway, if several match. Excludes IngressClasses.
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub(crate) gateway: Option<ObjectName>,

    /// The IngressClass, instead of a Gateway.
    #[arg(long, value_name = "NAME", conflicts_with = "gateway")]
    pub(crate) ingress_class: Option<String>,

    /// The port of the listener. Default: the port of the URL, if a listener has that port. Ingresses are served on 80 and
    /// 443.
    #[arg(long)]
    pub(crate) port: Option<u16>,

    /// Explain a request over HTTP/2.
    #[arg(long)]
    pub(crate) http2: bool,

    /// The server name of the TLS handshake. It matters where the sidecar terminates TLS. Default: the host.
    #[arg(long, value_name = "NAME")]
    pub(crate) server_name: Option<String>,

    #[command(flatten)]
    pub(crate) assumptions: AssumptionArguments,

    /// The format of the output.
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: ReportOutput,

    #[command(flatten)]
    pub(crate) cluster: ClusterArguments,

    #[command(flatten)]
    pub(crate) translation: TranslationArguments,
}

/// Serves manifests to PingSIX over the etcd protocol, and publishes them again after each change of a file.
///
/// The configuration of PingSIX is the output of `pingsix-gatewayctl pingsix-config`. While a file is invalid, its last
/// valid objects are served. The etcd port carries private keys, so an address beyond loopback needs --tls-cert and
/// --tls-key, or --allow-non-loopback.
///
/// With --explain, the answer to an HTTP request at that address explains what PingSIX does with such a request:
///   curl -H 'X-Explain-Host: shop.example.com' http://127.0.0.1:9180/cart
/// The header X-Explain-Port chooses a port; Accept: application/json asks for JSON.
///
/// With --view, a browser on this machine shows Gateways, routes and data planes, and explains requests:
///   pingsix-gatewayctl serve manifests/ --view
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ServeArguments {
    /// Directories or files to watch.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// The address of the etcd server for PingSIX. Port 0 is a free port.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:2379")]
    pub(crate) listen: SocketAddr,

    /// The address for explanations of requests. Port 0 is a free port.
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) explain: Option<SocketAddr>,

    /// The loopback address of read-only pages for a browser. Without a value, the address is 127.0.0.1:9181. Port 0 is a
    /// free port.
    #[arg(long, value_name = "IP:PORT", num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:9181")]
    pub(crate) view: Option<SocketAddr>,

    /// A file for the revisions, so that a restart does not lower them. Default: a file per address below $XDG_STATE_HOME
    /// or ~/.local/state.
    #[arg(long, value_name = "FILE|none")]
    pub(crate) state: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) tls: TlsArguments,

    /// Accept addresses that other machines can reach, in plaintext.
    #[arg(long)]
    pub(crate) allow_non_loopback: bool,

    /// The time without a further change before a change is read, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub(crate) debounce: u64,

    /// The interval of reads of the files, in milliseconds, for file systems that report no changes.
    #[arg(long, value_name = "MS", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(10..=3_600_000))]
    pub(crate) poll: u64,

    #[command(flatten)]
    pub(crate) translation: TranslationArguments,
}

/// TLS of the etcd port. Changed files are read again.
#[derive(Clone, Debug, Args)]
pub(crate) struct TlsArguments {
    /// The certificate chain of the etcd port, PEM, for TLS on any address. PingSIX verifies the chain with
    /// pingsix.etcd.tls.ca_cert. The file is read again after a change.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The private key of --tls-cert, PEM, without a passphrase. The file is read again after a change.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    /// The authorities of client certificates, PEM. Only clients with such a certificate are served: PingSIX needs
    /// pingsix.etcd.tls.client_cert and client_key. The file is read again after a change.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) client_ca: Option<PathBuf>,
}

impl TlsArguments {
    /// `None` for plaintext.
    pub(crate) fn server(&self) -> Option<ServerTls> {
        let tls = ServerTls::from_files(self.tls_cert.as_ref()?, self.tls_key.as_ref()?);
        Some(match &self.client_ca {
            None => tls,
            Some(bundle) => tls.client_ca_file(bundle),
        })
    }
}

/// Shows what publishing the manifests would change on a target. Changes nothing.
///
/// The output names each document that would be created, updated or deleted, its object, and the fields that differ. The
/// values of secrets are never shown. Secrets that the target masks or encrypts are not compared. Findings about the
/// manifests go to standard error and change no exit code.
///
/// Targets:
///   embedded:                       the server of `serve` on 127.0.0.1:2379; ?listen=IP:PORT for another
///   etcd://[USER@]HOST:PORT[,...]   an etcd; etcds:// with ?ca=FILE, and cert=FILE&key=FILE
///   admin+http://HOST:PORT          PingSIX's Admin API; admin+https:// with ?ca=FILE
///   file:/PATH?base=FILE            PingSIX's static configuration; /DIRECTORY/ for one file per data plane
/// A URL names secrets: password-env=NAME or password-file=FILE for etcd (default: $ETCD_PASSWORD), key-env=NAME or
/// key-file=FILE for the Admin API (default: $PINGSIX_ADMIN_KEY).
///
/// Exit codes: 0 without changes, 1 with changes, 2 for unusable arguments, input or targets.
///
/// Examples:
///   pingsix-gatewayctl diff manifests/ --target embedded:
///   pingsix-gatewayctl diff manifests/ --target etcd://127.0.0.1:2379 -o json
///   pingsix-gatewayctl diff --cluster --target etcd://127.0.0.1:2379
///   pingsix-gatewayctl diff manifests/ --target 'file:/etc/pingsix/config.yaml?base=/etc/pingsix/base.yaml'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct DiffArguments {
    /// Files, directories, or - for standard input. Alternative: --cluster.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// The target to compare with.
    #[arg(long, value_name = "URL")]
    pub(crate) target: Target,

    /// Compare this data plane only: NAMESPACE/GATEWAY or IngressClass/NAME, and :PORT with the layout per-port. Needed
    /// for several data planes and a target that holds one.
    #[arg(long, value_name = "NAME")]
    pub(crate) data_plane: Option<String>,

    /// The format of the output.
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: ReportOutput,

    #[command(flatten)]
    pub(crate) cluster: ClusterArguments,

    #[command(flatten)]
    pub(crate) translation: TranslationArguments,
}

/// Prints the config.yaml of the PingSIX processes that serve the manifests' Gateways and IngressClasses.
///
/// One YAML document per data plane; --data-plane chooses one, which PingSIX can then load:
///   pingsix-gatewayctl pingsix-config manifests/ --data-plane infra/web > config.yaml
///   pingsix -c config.yaml
/// TLS listeners need a default certificate on disk, whatever certificates the Gateway or the Ingresses have.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct PingsixConfigArguments {
    /// Files, directories, or - for standard input.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) feed: EtcdArguments,

    /// Print this data plane only: NAMESPACE/GATEWAY or IngressClass/NAME, and :PORT with the layout per-port.
    #[arg(long, value_name = "NAME")]
    pub(crate) data_plane: Option<String>,

    /// Threads per service.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_THREADS, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: u32,

    /// The address to listen on.
    #[arg(long, value_name = "IP", default_value = "0.0.0.0")]
    pub(crate) bind: std::net::IpAddr,

    /// The number to add to listener ports below 1024, which only root may open.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) port_offset: u16,

    /// The default certificate of TLS listeners, PEM.
    #[arg(long, value_name = "FILE", default_value = "/etc/pingsix/tls.crt")]
    pub(crate) cert: PathBuf,

    /// The private key of that certificate, PEM.
    #[arg(long, value_name = "FILE", default_value = "/etc/pingsix/tls.key")]
    pub(crate) key: PathBuf,

    /// The address of the status page of the first data plane. Each further data plane has the next port.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:7085")]
    pub(crate) status: SocketAddr,

    /// The ports of the process. PingSIX serves HTTP/2 without TLS, as gRPC needs it, only in a process without ports with
    /// TLS. So a data plane with both runs two processes, each with a --status of its own.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) ports: PortsArgument,

    /// The interval of DNS lookups for upstream nodes by PingSIX, in seconds. The nodes are addresses here, so lookups are
    /// useless, and PingSIX logs each one; its own default is one second.
    #[arg(long, value_name = "SECONDS", default_value_t = DNS_REFRESH_SECONDS, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub(crate) dns_refresh: u32,

    #[command(flatten)]
    pub(crate) translation: TranslationArguments,
}

/// The ports of one process of PingSIX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PortsArgument {
    /// All ports of the data plane.
    #[default]
    All,
    /// The ports without TLS.
    Plaintext,
    /// The ports with TLS.
    Tls,
}

/// The connection of PingSIX to the etcd server. Paths are those of PingSIX; this program does not read the files.
#[derive(Clone, Debug, Args)]
pub(crate) struct EtcdArguments {
    /// The address of the etcd server. Repeatable.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:2379")]
    pub(crate) etcd: Vec<String>,

    /// The authorities of the etcd server's certificate, PEM, for a connection over TLS.
    #[arg(long, value_name = "FILE")]
    pub(crate) etcd_ca: Option<PathBuf>,

    /// The client certificate of PingSIX, PEM, for an etcd server with feed.tls.client-ca or --client-ca.
    #[arg(long, value_name = "FILE", requires_all = ["etcd_ca", "etcd_key"])]
    pub(crate) etcd_cert: Option<PathBuf>,

    /// The private key of --etcd-cert, PEM.
    #[arg(long, value_name = "FILE", requires = "etcd_cert")]
    pub(crate) etcd_key: Option<PathBuf>,

    /// The name in the etcd server's certificate, if that differs from the address.
    #[arg(long, value_name = "NAME", requires = "etcd_ca")]
    pub(crate) etcd_name: Option<String>,
}

/// Converts objects of APISIX, of the Go controller and of ingress-nginx to objects of Gateway API, and reports on each field.
///
/// The input has ApisixRoutes, ApisixUpstreams, ApisixTls, ApisixConsumers, ApisixPluginConfigs and ApisixGlobalRules
/// (apisix.apache.org/v2), GatewayProxies, PluginConfigs, HTTPRoutePolicies, BackendTrafficPolicies, Consumers and
/// L4RoutePolicies (apisix.apache.org/v1alpha1), and the Services and Secrets to which they refer. Objects of Gateway API,
/// other Ingresses, Services and Secrets stay as they are, and are written too, unless --only-converted is set.
///
/// Ingresses of ingress-nginx become HTTPRoutes with policies: those of a class with the controller k8s.io/ingress-nginx, or
/// with annotations of nginx.ingress.kubernetes.io. With --keep-ingress, copies of them keep the annotations, in a class that
/// reads them. Ingresses of networking.k8s.io/v1beta1 and extensions/v1beta1 get the form of networking.k8s.io/v1 first.
///
/// From a cluster, the Services, Secrets and ConfigMaps are those to which the other objects refer.
///
/// The manifests contain secrets, the report contains none. The report goes to standard error.
///
/// Without --gateway, the routes get a Gateway "pingsix" with a listener for HTTP and one for each host of an ApisixTls or
/// of spec.tls. The Gateway is in the namespace of the ApisixRoutes, ApisixTls and Ingresses if there is one, and otherwise in "default". With --gateway,
/// the Gateway gets the listeners if it is among the input.
///
/// A part whose protection or conditions would be lost is not written. Where other rules might take the requests of a
/// protected rule, a rule in its place answers 503.
///
/// The report has the problems by cause, the most severe first: a sentence once, with the objects that have the problem.
/// With --all, it has the verdict on each field of each object, also of those that are exact. JSON has both, and a code for
/// the reason of each verdict.
///
/// Exit codes: 0, 1 for something impossible or withheld, 2 for unusable arguments or input. What is impossible in an object
/// of --allow-weaker is accepted, and does not count.
///
/// Examples:
///   pingsix-gatewayctl migrate apisix/ > gateway-api.yaml
///   pingsix-gatewayctl migrate apisix/ --report markdown --report-file migration.md --output-dir manifests/
///   pingsix-gatewayctl migrate --from-cluster --only-converted > gateway-api.yaml
///   pingsix-gatewayctl migrate ingresses.yaml --keep-ingress > kept.yaml
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct MigrateArguments {
    /// Files, directories, or - for standard input. Alternative: --cluster.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// The Gateway of the routes that become HTTPRoutes. Default: a new Gateway "pingsix".
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub(crate) gateway: Option<ObjectName>,

    /// The class of a new Gateway, and of copies.
    #[arg(long, value_name = "NAME", default_value = "pingsix")]
    pub(crate) gateway_class: String,

    /// Write copies of the Gateways of other controllers and of their routes, with this suffix to their names, instead of
    /// changes to them. The originals stay as they are.
    ///
    /// Example: --name-suffix -pingsix
    #[arg(long, value_name = "SUFFIX", value_parser = parse_suffix, allow_hyphen_values = true)]
    pub(crate) name_suffix: Option<String>,

    /// The certificate of hosts without one: the Secret of --default-ssl-certificate of ingress-nginx. A listener for all hosts
    /// shows it.
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub(crate) default_certificate: Option<ObjectName>,

    /// Write Ingresses of ingress-nginx and of APISIX with their annotations, in a class that reads them, instead of
    /// HTTPRoutes.
    #[arg(long)]
    pub(crate) keep_ingress: bool,

    /// The class of Ingresses that keep their annotations.
    #[arg(long, value_name = "NAME", default_value = "pingsix")]
    pub(crate) ingress_class: String,

    /// Write the object although it protects less than the original. Repeatable.
    #[arg(long, value_name = "KIND/NAMESPACE/NAME")]
    pub(crate) allow_weaker: Vec<NamedObject>,

    /// Leave out objects of the input that stay as they are, such as Services and Secrets.
    #[arg(long)]
    pub(crate) only_converted: bool,

    /// A directory for the manifests, a file per object, instead of standard output.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) output_dir: Option<PathBuf>,

    /// The format of the report.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) report: MigrationReport,

    /// Report the verdict on each field of each object, instead of the problems by cause.
    #[arg(long)]
    pub(crate) all: bool,

    /// A file for the report, instead of standard error; - for standard output, with --output-dir.
    #[arg(long, value_name = "FILE")]
    pub(crate) report_file: Option<PathBuf>,

    /// Ask the requests of this file, or of - for standard input, of a model of the original and of the output, and print
    /// those with other answers instead of the manifests. The file has command lines of curl, lines of an access log in the
    /// combined format, or is a HAR file.
    #[arg(long, value_name = "REQUESTS", conflicts_with_all = ["output_dir", "report_file", "only_converted"])]
    pub(crate) replay: Option<PathBuf>,

    /// The host of requests of an access log, which has none. Default: the only host with the backend that ingress-nginx
    /// has logged. Without a scheme, requests for hosts with a certificate are over HTTPS unless the answer was 301 or 308.
    #[arg(long, value_name = "[SCHEME://]HOST", requires = "replay")]
    pub(crate) replay_host: Option<ReplayHost>,

    #[command(flatten)]
    pub(crate) cluster: ClusterArguments,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum MigrationReport {
    #[default]
    Text,
    Markdown,
    Json,
}

/// The most letters of a suffix.
const MAX_SUFFIX_BYTES: usize = 32;

fn parse_suffix(text: &str) -> Result<String, String> {
    let is_name = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && text.ends_with(|letter: char| letter.is_ascii_alphanumeric());
    if is_name && text.len() <= MAX_SUFFIX_BYTES {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "expected at most {MAX_SUFFIX_BYTES} lower-case letters, digits and dashes, and no dash at the end"
        ))
    }
}

/// An object by its kind, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedObject {
    pub(crate) kind: String,
    pub(crate) name: ObjectName,
}

impl std::str::FromStr for NamedObject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected KIND/NAMESPACE/NAME";
        let (kind, name) = text.split_once('/').ok_or(expected)?;
        let name = name.parse().map_err(|_| expected)?;
        if kind.is_empty() {
            return Err(expected.to_owned());
        }
        Ok(Self { kind: kind.to_owned(), name })
    }
}

/// Prints a completion script for a shell, or for kubectl.
///
/// kubectl runs the executable kubectl_complete-pingsix, for the plugin kubectl-pingsix:
///   pingsix-gatewayctl completions kubectl > ~/.local/bin/kubectl_complete-pingsix
///   chmod +x ~/.local/bin/kubectl_complete-pingsix
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CompletionsArguments {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: CompletionTarget,
}

/// The programs that complete command lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompletionTarget {
    Bash,
    Elvish,
    Fish,
    #[value(name = "powershell")]
    PowerShell,
    Zsh,
    Kubectl,
}

/// Write manual pages into a directory, for man: one of the program and one of each command.
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// The directory, which is created if needed. Pages of the same names are replaced.
    pub(crate) directory: PathBuf,
}

/// Prints the candidates for the last word of a command line, as kubectl asks for them.
#[derive(Debug, Args)]
pub(crate) struct CompleteArguments {
    /// The words after the name of the program. The last one is incomplete.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    pub(crate) words: Vec<String>,
}
