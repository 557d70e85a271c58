//! The arguments of the stream role.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::builder::BoolishValueParser;
use clap::{Args, value_parser};
use pingsix_sink::Scope;
use pingsix_sink::etcd::{Builder, ClientTls};

use crate::feed::{Feed, FileReader};
use crate::stream::StreamOptions;

/// The time limit of the list of all documents, and of every other request to the endpoint.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Args, Debug)]
#[command(next_help_heading = "Streams")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct StreamsArguments {
    /// Serve TCPRoutes, UDPRoutes and TLSRoutes: proxy the connections of the stream documents of a Gateway, from an
    /// etcd feed or from a file.
    #[arg(long, env = "PINGSIX_SIDECAR_STREAMS", value_parser = BoolishValueParser::new())]
    pub(crate) streams: bool,

    /// The URL of an etcd, or of the feed of the controller: https://HOST:PORT, or http://HOST:PORT. Repeatable, for
    /// the members of one etcd.
    #[arg(long, env = "PINGSIX_SIDECAR_STREAMS_ENDPOINT", value_name = "URL", value_delimiter = ',')]
    streams_endpoint: Vec<String>,

    /// The prefix of the documents, such as /pingsix-stream/NAMESPACE/GATEWAY.
    #[arg(long, env = "PINGSIX_SIDECAR_STREAMS_PREFIX", value_name = "PREFIX", value_parser = scope)]
    streams_prefix: Option<Scope>,

    /// A PEM file with the authorities of the endpoint. TLS files are read again for each connection.
    #[arg(long, env = "PINGSIX_SIDECAR_STREAMS_CA", value_name = "FILE")]
    streams_ca: Option<PathBuf>,

    /// A PEM file with the client certificate and its chain.
    #[arg(long, env = "PINGSIX_SIDECAR_STREAMS_CERT", value_name = "FILE")]
    streams_cert: Option<PathBuf>,

    /// A PEM file with the key of the client certificate.
    #[arg(long, env = "PINGSIX_SIDECAR_STREAMS_KEY", value_name = "FILE")]
    streams_key: Option<PathBuf>,

    /// Accept a plaintext endpoint on another machine, for networks with encryption of their own. Private keys of
    /// certificates pass in plaintext.
    #[arg(long, env = "PINGSIX_SIDECAR_STREAMS_ALLOW_PLAINTEXT", value_parser = BoolishValueParser::new())]
    streams_allow_plaintext: bool,

    /// A file with the output of pingsix-gatewayctl translate --stream, in place of an endpoint. The file is read
    /// again when it changes, and after SIGHUP. If it has the documents of several Gateways, --streams-prefix names one.
    #[arg(long, env = "PINGSIX_SIDECAR_STREAMS_FILE", value_name = "FILE")]
    streams_file: Option<PathBuf>,

    /// Listen on ports below 1024 themselves, which takes the capability `NET_BIND_SERVICE`. Default: such a port is 10000
    /// higher here, 53 on 10053.
    #[arg(long, env = "PINGSIX_SIDECAR_STREAMS_LOW_PORTS", value_parser = BoolishValueParser::new())]
    streams_low_ports: bool,

    /// Accept nodes on this machine and its link, such as 127.0.0.1, to try it out. Default: such nodes are refused,
    /// because authors of EndpointSlices could reach what listens for this machine alone.
    #[arg(long, env = "PINGSIX_SIDECAR_STREAMS_LOCAL_NODES", value_parser = BoolishValueParser::new())]
    streams_local_nodes: bool,

    /// A port that other processes of the Pod listen on. Repeatable. A listener whose port is taken gets the next free
    /// one.
    #[arg(long, env = "PINGSIX_SIDECAR_STREAMS_TAKEN_PORTS", value_name = "PORT", value_delimiter = ',', value_parser = port)]
    streams_taken_ports: Vec<u16>,

    /// Connections served at a time.
    #[arg(long, env = "PINGSIX_SIDECAR_STREAMS_MAX_CONNECTIONS", value_name = "N", default_value_t = StreamOptions::default().max_connections)]
    streams_max_connections: usize,

    /// The time limit of a connection to one node, in seconds.
    #[arg(long, env = "PINGSIX_SIDECAR_STREAMS_CONNECT_TIMEOUT", value_name = "SECONDS", value_parser = value_parser!(u64).range(1..=10), default_value_t = StreamOptions::default().connect_timeout.as_secs())]
    streams_connect_timeout: u64,

    /// Sessions of UDP clients at a time.
    #[arg(long, env = "PINGSIX_SIDECAR_STREAMS_MAX_SESSIONS", value_name = "N", default_value_t = StreamOptions::default().max_sessions)]
    streams_max_sessions: usize,

    /// The time after the last datagram in either direction until a session ends, in seconds.
    #[arg(long, env = "PINGSIX_SIDECAR_STREAMS_SESSION_IDLE", value_name = "SECONDS", value_parser = value_parser!(u64).range(1..=86_400), default_value_t = StreamOptions::default().session_idle.as_secs())]
    streams_session_idle: u64,

    /// New sessions of one port in a second, and at once.
    #[arg(long, env = "PINGSIX_SIDECAR_STREAMS_MAX_NEW_SESSIONS", value_name = "N", default_value_t = StreamOptions::default().new_sessions_per_second)]
    streams_max_new_sessions: u32,
}

fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("\"{text}\" is not a port"))
}

fn scope(text: &str) -> Result<Scope, String> {
    Scope::new(text).map_err(|error| error.to_string())
}

impl StreamsArguments {
    pub(super) fn errors(&self) -> Vec<String> {
        let of_endpoints = [
            (self.streams_ca.is_some(), "--streams-ca"),
            (self.streams_cert.is_some(), "--streams-cert"),
            (self.streams_key.is_some(), "--streams-key"),
            (self.streams_allow_plaintext, "--streams-allow-plaintext"),
        ];
        let of_sources = [
            (!self.streams_endpoint.is_empty(), "--streams-endpoint"),
            (self.streams_file.is_some(), "--streams-file"),
            (self.streams_prefix.is_some(), "--streams-prefix"),
            (!self.streams_taken_ports.is_empty(), "--streams-taken-ports"),
            (self.streams_low_ports, "--streams-low-ports"),
            (self.streams_local_nodes, "--streams-local-nodes"),
        ];
        let mut errors = Vec::new();
        if !self.streams {
            let set = of_sources.iter().chain(&of_endpoints).filter(|(is_set, _)| *is_set);
            errors.extend(set.map(|(_, option)| format!("{option}: needs --streams")));
            return errors;
        }
        match (self.streams_endpoint.is_empty(), &self.streams_file) {
            (true, None) => {
                errors.push("--streams: needs --streams-endpoint or --streams-file".to_owned());
            }
            (false, Some(_)) => {
                errors.push("--streams-file: excludes --streams-endpoint".to_owned());
            }
            (true, Some(_)) => {
                let set = of_endpoints.iter().filter(|(is_set, _)| *is_set);
                errors.extend(set.map(|(_, option)| format!("{option}: needs --streams-endpoint")));
            }
            (false, None) => {
                if self.streams_prefix.is_none() {
                    errors.push("--streams-endpoint: needs --streams-prefix".to_owned());
                }
                if self.streams_cert.is_some() != self.streams_key.is_some() {
                    errors.push("--streams-cert and --streams-key: each needs the other".to_owned());
                } else if self.streams_cert.is_some() && self.streams_ca.is_none() {
                    errors.push("--streams-cert: needs --streams-ca".to_owned());
                }
            }
        }
        errors
    }

    /// The options of the role.
    pub(crate) fn options(&self) -> StreamOptions {
        StreamOptions {
            local_nodes: self.streams_local_nodes,
            low_ports: self.streams_low_ports,
            taken_ports: self.streams_taken_ports.iter().copied().collect(),
            max_connections: self.streams_max_connections,
            connect_timeout: Duration::from_secs(self.streams_connect_timeout),
            max_sessions: self.streams_max_sessions,
            session_idle: Duration::from_secs(self.streams_session_idle),
            new_sessions_per_second: self.streams_max_new_sessions,
            ..StreamOptions::default()
        }
    }

    /// The source of the documents, which connects when it is first read.
    ///
    /// # Errors
    ///
    /// When an endpoint or a file of TLS cannot be used.
    pub(crate) fn feed(&self) -> anyhow::Result<Feed> {
        if let Some(file) = &self.streams_file {
            let reader = FileReader::new(file.clone(), self.streams_prefix.clone());
            return Ok(Feed::File(reader.context("cannot wait for SIGHUP (--streams-file)")?));
        }
        let prefix = self.streams_prefix.clone().context("there is no prefix (--streams-prefix)")?;
        // All documents are one response.
        let mut builder = Builder::new(&self.streams_endpoint).timeout(LIST_TIMEOUT);
        if let Some(ca) = &self.streams_ca {
            let mut tls = ClientTls::ca_file(ca);
            if let (Some(certificate), Some(key)) = (&self.streams_cert, &self.streams_key) {
                tls = tls.identity_files(certificate, key);
            }
            builder = builder.tls(tls);
        }
        if self.streams_allow_plaintext {
            builder = builder.allow_plaintext_beyond_loopback();
        }
        let reader = builder.reader(prefix).context("cannot use the feed of streams (--streams-endpoint, --streams-ca, --streams-cert, --streams-key, --streams-allow-plaintext)")?;
        Ok(Feed::Etcd(Box::new(reader)))
    }
}
