//! The arguments of the responder.

use std::net::SocketAddr;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{Args, value_parser};

use crate::responder::{Options, Reach};

#[derive(Args, Debug)]
#[command(next_help_heading = "Responder")]
pub(crate) struct ResponderArguments {
    /// Answer as an HTTP/1.1 and h2c upstream of PingSIX: reserved hosts with a status, and redirect instructions with
    /// a Location.
    #[arg(long, env = "PINGSIX_SIDECAR_RESPONDER", value_parser = BoolishValueParser::new())]
    pub(crate) responder: bool,

    /// The address of the responder.
    #[arg(
        long,
        env = "PINGSIX_SIDECAR_RESPONDER_LISTEN",
        value_name = "IP:PORT",
        default_value = "127.0.0.1:8089"
    )]
    pub(crate) responder_listen: SocketAddr,

    /// Accept an address that can be reached from other machines.
    #[arg(long, env = "PINGSIX_SIDECAR_RESPONDER_ALLOW_NON_LOOPBACK", value_parser = BoolishValueParser::new())]
    responder_allow_non_loopback: bool,

    /// Connections served at a time.
    #[arg(long, env = "PINGSIX_SIDECAR_RESPONDER_MAX_CONNECTIONS", value_name = "N", default_value_t = Options::default().max_connections)]
    responder_max_connections: usize,

    /// The time limit of the head of a request, in seconds.
    #[arg(long, env = "PINGSIX_SIDECAR_RESPONDER_HEADER_TIMEOUT", value_name = "SECONDS", value_parser = value_parser!(u64).range(1..=86_400), default_value_t = Options::default().header_timeout.as_secs())]
    responder_header_timeout: u64,

    /// The time limit of a connection without a request, in seconds.
    #[arg(long, env = "PINGSIX_SIDECAR_RESPONDER_IDLE_TIMEOUT", value_name = "SECONDS", value_parser = value_parser!(u64).range(1..=86_400), default_value_t = Options::default().idle_timeout.as_secs())]
    responder_idle_timeout: u64,
}

impl ResponderArguments {
    pub(crate) fn reach(&self) -> Reach {
        if self.responder_allow_non_loopback { Reach::Anywhere } else { Reach::Loopback }
    }

    /// The options of the responder; its connections have `grace` to end at a shutdown.
    pub(crate) fn options(&self, grace: Duration) -> Options {
        Options {
            max_connections: self.responder_max_connections,
            header_timeout: Duration::from_secs(self.responder_header_timeout),
            idle_timeout: Duration::from_secs(self.responder_idle_timeout),
            shutdown_grace: grace,
            ..Options::default()
        }
    }

    pub(super) fn failure(&self) -> Option<String> {
        let address = self.responder_listen;
        (self.responder && !self.reach().allows(address)).then(|| {
            format!(
                "--responder-listen: {address} can be reached from other machines; use a loopback address, or \
                 --responder-allow-non-loopback"
            )
        })
    }
}
