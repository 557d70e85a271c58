//! The command line.

#![expect(clippy::doc_markdown, reason = "the comments are help texts, not Markdown")]
#![allow(
    rustdoc::bare_urls,
    rustdoc::invalid_html_tags,
    reason = "the comments are help texts, not Markdown"
)]

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use pingsix_sink::embedded::ServerTls;
use pingsix_sink::{Scope, Target};
use pingsix_translate::{Budget, DEFAULT_CONTROLLER_NAME, Layout, ObjectName, Options};

use crate::manifest::SuppliedEndpoints;

/// Translate, check, explain and serve Gateway API and Ingress manifests for PingSIX, without a cluster.
///
/// Manifests are what kubectl takes, and what it gives out with -o yaml or -o json: files, directories (searched for
/// *.yaml, *.yml and *.json), or - for standard input. Files of other tools below a directory, which have neither kind
/// nor metadata, are left alone.
///
/// Exit codes: 0 when all is well, 1 when there are problems, 2 when arguments or files cannot be used.
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
    /// Print the definitions of our own kinds, for kubectl apply -f -.
    Crds,
    Completions(CompletionsArguments),
}

/// How manifests are translated.
#[derive(Clone, Debug, Args)]
pub(crate) struct TranslationArguments {
    /// How listeners are spread over PingSIX fleets: all of a Gateway in one, or one fleet per port. An IngressClass
    /// always has one.
    #[arg(long, value_enum, default_value_t, help_heading = "Translation")]
    pub(crate) layout: LayoutArgument,

    /// The controller name of the GatewayClasses and IngressClasses that are ours.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_CONTROLLER_NAME, help_heading = "Translation")]
    pub(crate) controller_name: String,

    /// What the etcd prefix of every data plane starts with.
    #[arg(long, value_name = "PATH", default_value = "/pingsix", value_parser = parse_root, help_heading = "Translation")]
    pub(crate) root: String,

    /// Where PingSIX reaches the responder, which gives the answers PingSIX cannot give itself; without one, rules that
    /// need it are refused.
    #[arg(long, value_name = "IP:PORT|off", default_value = "127.0.0.1:8089", help_heading = "Translation")]
    pub(crate) responder: ResponderArgument,

    /// Endpoints of a Service, in the place of its EndpointSlices, if any. Without PORT they serve every port of the
    /// Service. Repeatable.
    ///
    /// Example: --endpoints shop/cart:80=127.0.0.1:9001,127.0.0.1:9002
    #[arg(long, value_name = "NS/SVC[:PORT]=IP:PORT[,IP:PORT...]", help_heading = "Translation")]
    pub(crate) endpoints: Vec<SuppliedEndpoints>,

    /// How many bytes the configuration of one data plane may have; PingSIX reads 4 MiB at most.
    #[arg(long, value_name = "BYTES", default_value_t = Budget::default().bytes, help_heading = "Translation")]
    pub(crate) budget_bytes: usize,

    /// How many matcher entries the configuration of one data plane may have: hosts times paths, over all routes.
    #[arg(long, value_name = "N", default_value_t = Budget::default().matcher_entries, help_heading = "Translation")]
    pub(crate) budget_entries: usize,

    /// How much of both the objects of one namespace may take, in percent: 100 is no bound. Parameters of a class can say
    /// something else for its data planes, and those of a Gateway less.
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u8).range(1..=100), help_heading = "Translation")]
    pub(crate) budget_namespace_share: u8,

    /// Translate TCPRoute, UDPRoute and TLSRoute too, into stream documents under a prefix of their own. PingSIX has no
    /// stream proxy, so another program has to serve them.
    #[arg(long, help_heading = "Translation")]
    pub(crate) stream: bool,
}

impl TranslationArguments {
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
            ..Options::default()
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LayoutArgument {
    /// All listeners of a Gateway in one fleet.
    #[default]
    Shared,
    /// One fleet per port: exact semantics. Messages call it perPort, as the documentation does.
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

/// Prints the PingSIX configuration that manifests ask for.
///
/// The output is the configuration, so it holds the private keys of listeners and Ingresses; -o status and -o review never do.
/// Findings go to standard error, and everything that can be served is printed nevertheless.
///
/// -o review is for people, and for keeping under version control: every document with the rules it comes from, the
/// status of every object, and the findings.
///
/// Exit codes: 0, 1 when something is not served as asked (what can be served is printed all the same), 2 when arguments
/// or files cannot be used.
///
/// Examples:
///   pingsix-gatewayctl translate manifests/
///   pingsix-gatewayctl translate gateway.yaml routes.yaml -o status
///   kubectl get gatewayclasses,gateways,httproutes,services,endpointslices -A -o yaml | pingsix-gatewayctl translate -
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct TranslateArguments {
    /// Files, directories, or - for standard input.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// What to print: PingSIX's static form as one YAML document per data plane, the same as JSON, the status of each
    /// object, etcd keys and values, or a review of all of it.
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: TranslateOutput,

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

/// Reports everything that is wrong with manifests, or with a PingSIX configuration.
///
/// Findings are grouped by file and object. An error means that something asked for is not served, a warning that it is
/// served, but not quite as one may expect; info is good to know. Secrets are never printed.
///
/// Exit codes: 0, 1 when there are errors, or with --strict also warnings, 2 when arguments or files cannot be used.
///
/// Examples:
///   pingsix-gatewayctl check manifests/ --strict
///   pingsix-gatewayctl check manifests/ -o json
///   kustomize build . | pingsix-gatewayctl check -
///   pingsix-gatewayctl check --pingsix config.yaml
///   pingsix-gatewayctl translate manifests/ | pingsix-gatewayctl check --pingsix -
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CheckArguments {
    /// Files, directories, or - for standard input.
    #[arg(required_unless_present = "pingsix", value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// A PingSIX configuration in its static form, one or several YAML documents, or - for standard input.
    /// It is judged by PingSIX's acceptance rules. Repeatable.
    #[arg(long, value_name = "FILE")]
    pub(crate) pingsix: Vec<PathBuf>,

    /// Exit with 1 also for warnings.
    #[arg(long)]
    pub(crate) strict: bool,

    /// How to print.
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: ReportOutput,

    #[command(flatten)]
    pub(crate) translation: TranslationArguments,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportOutput {
    #[default]
    Text,
    Json,
}

/// Says what PingSIX does with a request, which rule decides, and why no other does.
///
/// To a port of listeners for TCP, UDP or TLS no request arrives, so what becomes of the connection is said; with
/// --stream, where the stream documents send it.
///
/// Exit codes: 0 when a backend, a redirect or another answer below 400 is given, 1 otherwise, 2 when arguments or files
/// cannot be used.
///
/// Examples:
///   pingsix-gatewayctl explain manifests/ GET http://shop.example.com/cart?page=2
///   pingsix-gatewayctl explain manifests/ POST https://shop.example.com/cart -H 'X-Env: canary' --http2
///   pingsix-gatewayctl explain manifests/ GET http://shop.example.com/ --gateway infra/web --port 8080
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    override_usage = "pingsix-gatewayctl explain [OPTIONS] <PATH>... <METHOD> <URL>"
)]
pub(crate) struct ExplainArguments {
    /// Manifests (files, directories, or - for standard input), then the method, then the URL.
    #[arg(required = true, num_args = 1.., value_name = "PATH... METHOD URL")]
    pub(crate) arguments: Vec<String>,

    /// A header of the request. Repeatable.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = parse_header)]
    pub(crate) headers: Vec<(String, String)>,

    /// The Gateway, when several could be meant; IngressClasses are left out then.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = parse_object_name)]
    pub(crate) gateway: Option<ObjectName>,

    /// The IngressClass, when it is none of the Gateways.
    #[arg(long, value_name = "NAME", conflicts_with = "gateway")]
    pub(crate) ingress_class: Option<String>,

    /// The listener's port; otherwise the one of the URL, if a listener has it. Ingresses are served on 80 and 443.
    #[arg(long)]
    pub(crate) port: Option<u16>,

    /// The request comes over HTTP/2.
    #[arg(long)]
    pub(crate) http2: bool,

    /// How to print.
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: ReportOutput,

    #[command(flatten)]
    pub(crate) translation: TranslationArguments,
}

fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("expected NAME: VALUE")?;
    let name = name.trim();
    name.parse::<http::HeaderName>().map_err(|_| format!("\"{name}\" is not the name of a header"))?;
    Ok((name.to_owned(), value.trim().to_owned()))
}

fn parse_object_name(text: &str) -> Result<ObjectName, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
            Ok(ObjectName::new(namespace, name))
        }
        Some(_) | None => Err("expected NAMESPACE/NAME".to_owned()),
    }
}

/// Serves manifests to PingSIX over the etcd protocol, and again whenever a file changes.
///
/// Point a PingSIX at it with the configuration that `pingsix-gatewayctl pingsix-config` prints. A file that stops
/// being valid keeps its last good objects until it is valid again. Private keys pass over the etcd port, so it stays on
/// loopback unless --tls-cert and --tls-key, or --allow-non-loopback, are given.
///
/// With --explain, any HTTP request to that address is answered with what PingSIX would do with that very request:
///   curl -H 'X-Explain-Host: shop.example.com' http://127.0.0.1:9180/cart
/// The header X-Explain-Port chooses a port; Accept: application/json asks for JSON.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ServeArguments {
    /// Directories or files to watch.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// Where PingSIX connects; port 0 takes a free one.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:2379")]
    pub(crate) listen: SocketAddr,

    /// Where to explain requests; port 0 takes a free one.
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) explain: Option<SocketAddr>,

    /// A file that keeps revisions from going back over a restart; otherwise one per address below
    /// $XDG_STATE_HOME or ~/.local/state.
    #[arg(long, value_name = "FILE|none")]
    pub(crate) state: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) tls: TlsArguments,

    /// Accept addresses that can be reached from other machines, in plaintext.
    #[arg(long)]
    pub(crate) allow_non_loopback: bool,

    /// Milliseconds without a further change before a change is read.
    #[arg(long, value_name = "MS", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub(crate) debounce: u64,

    /// Milliseconds between looks at the files, for file systems that report no changes.
    #[arg(long, value_name = "MS", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(10..=3_600_000))]
    pub(crate) poll: u64,

    #[command(flatten)]
    pub(crate) translation: TranslationArguments,
}

/// How the etcd port is secured. The files are read again when they change.
#[derive(Clone, Debug, Args)]
pub(crate) struct TlsArguments {
    /// Serve the etcd port over TLS, and on any address, with this certificate chain, PEM. It is what PingSIX verifies
    /// with pingsix.etcd.tls.ca_cert. Read again when it changes.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The private key of --tls-cert, PEM, without a passphrase. Read again when it changes.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Serve only clients with a certificate of one of these authorities, PEM: PingSIX with
    /// pingsix.etcd.tls.client_cert and client_key. Read again when it changes.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) client_ca: Option<PathBuf>,
}

impl TlsArguments {
    /// None for plaintext.
    pub(crate) fn server(&self) -> Option<ServerTls> {
        let tls = ServerTls::from_files(self.tls_cert.as_ref()?, self.tls_key.as_ref()?);
        Some(match &self.client_ca {
            None => tls,
            Some(bundle) => tls.client_ca_file(bundle),
        })
    }
}

/// Shows what publishing manifests would change on a target, without changing anything.
///
/// Each document that would be created, updated or deleted is named with the object it is for, and its fields are
/// compared. Secrets are never shown, only that one differs; where the target masks or encrypts them they cannot be
/// compared. Findings about the manifests go to standard error and change no exit code.
///
/// Targets:
///   embedded:                       the server of `serve` on 127.0.0.1:2379; ?listen=IP:PORT for another
///   etcd://[USER@]HOST:PORT[,...]   an etcd; etcds:// with ?ca=FILE, and cert=FILE&key=FILE
///   admin+http://HOST:PORT          PingSIX's Admin API; admin+https:// with ?ca=FILE
///   file:/PATH?base=FILE            PingSIX's static configuration; /DIRECTORY/ for one file per data plane
/// Secrets are not in the URL: password-env=NAME or password-file=FILE for etcd (or else $ETCD_PASSWORD), key-env=NAME
/// or key-file=FILE for the Admin API (or else $PINGSIX_ADMIN_KEY).
///
/// Exit codes: 0 when nothing would change, 1 when something would, 2 when that cannot be told.
///
/// Examples:
///   pingsix-gatewayctl diff manifests/ --target embedded:
///   pingsix-gatewayctl diff manifests/ --target etcd://127.0.0.1:2379 -o json
///   pingsix-gatewayctl diff manifests/ --target 'file:/etc/pingsix/config.yaml?base=/etc/pingsix/base.yaml'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct DiffArguments {
    /// Files, directories, or - for standard input.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// What to compare with.
    #[arg(long, value_name = "URL")]
    pub(crate) target: Target,

    /// Compare this data plane only: NAMESPACE/GATEWAY, or NAMESPACE/GATEWAY:PORT with the layout per-port, or
    /// IngressClass/NAME. Needed when there are several and the target is for one.
    #[arg(long, value_name = "NAME")]
    pub(crate) data_plane: Option<String>,

    /// How to print.
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: ReportOutput,

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

    /// Print this data plane only: NAMESPACE/GATEWAY, or NAMESPACE/GATEWAY:PORT with the layout per-port, or
    /// IngressClass/NAME.
    #[arg(long, value_name = "NAME")]
    pub(crate) data_plane: Option<String>,

    /// Threads per service.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: u32,

    /// The address to listen on.
    #[arg(long, value_name = "IP", default_value = "0.0.0.0")]
    pub(crate) bind: std::net::IpAddr,

    /// Added to listener ports below 1024, which only root may open.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) port_offset: u16,

    /// The default certificate of TLS listeners, PEM.
    #[arg(long, value_name = "FILE", default_value = "/etc/pingsix/tls.crt")]
    pub(crate) cert: PathBuf,

    /// Its private key, PEM.
    #[arg(long, value_name = "FILE", default_value = "/etc/pingsix/tls.key")]
    pub(crate) key: PathBuf,

    /// Where the first data plane serves its status; each further one takes the next port.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:7085")]
    pub(crate) status: SocketAddr,

    /// Seconds after which PingSIX looks again at the nodes of upstreams, which are addresses here; without it, it would
    /// each second, with lines in its log.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub(crate) dns_refresh: u32,

    #[command(flatten)]
    pub(crate) translation: TranslationArguments,
}

/// How PingSIX connects to the etcd server. Files are named as PingSIX finds them, and not read here.
#[derive(Clone, Debug, Args)]
pub(crate) struct EtcdArguments {
    /// The address of the etcd server. Repeatable.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:2379")]
    pub(crate) etcd: Vec<String>,

    /// Connect over TLS, and verify the etcd server's certificate with these authorities, PEM.
    #[arg(long, value_name = "FILE")]
    pub(crate) etcd_ca: Option<PathBuf>,

    /// Show the etcd server this certificate, PEM, as it asks for with feed.tls.client-ca or --client-ca.
    #[arg(long, value_name = "FILE", requires_all = ["etcd_ca", "etcd_key"])]
    pub(crate) etcd_cert: Option<PathBuf>,

    /// The private key of --etcd-cert, PEM.
    #[arg(long, value_name = "FILE", requires = "etcd_cert")]
    pub(crate) etcd_key: Option<PathBuf>,

    /// The name in the etcd server's certificate, when that is another than in its address.
    #[arg(long, value_name = "NAME", requires = "etcd_ca")]
    pub(crate) etcd_name: Option<String>,
}

/// Prints a script that completes command lines, for a shell.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}
