//! The arguments of the program, each with its variable.

mod responder;
mod streams;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Parser, value_parser};

use crate::log::LogFormat;
use crate::status_key::StatusKey;
use responder::ResponderArguments;
use streams::StreamsArguments;

/// Runs the roles of the sidecar beside a PingSIX.
///
/// Each role is off by default, and at least one is needed. All roles are one process.
///
/// Exit codes: 0 after a signal, 1 after a failure, 2 for arguments that cannot be used.
#[derive(Debug, Parser)]
#[command(name = "pingsix-gateway-sidecar", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) responder: ResponderArguments,

    #[command(flatten)]
    pub(crate) streams: StreamsArguments,

    #[command(flatten)]
    pub(crate) process: ProcessArguments,
}

/// The arguments of the process, for all roles.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Process")]
pub(crate) struct ProcessArguments {
    /// The address of /status/live, /status/ready, /status/config and /metrics, for example 0.0.0.0:7086. Default: no
    /// such pages.
    #[arg(long, env = "PINGSIX_SIDECAR_STATUS_LISTEN", value_name = "IP:PORT")]
    pub(crate) status_listen: Option<SocketAddr>,

    /// A file with the key, in its first line, that readers of /status/config need in the header X-API-KEY. The file is
    /// read at the start. Default: no key.
    #[arg(long, env = "PINGSIX_SIDECAR_STATUS_KEY_FILE", value_name = "FILE")]
    status_key_file: Option<PathBuf>,

    /// The time limit of connections after SIGTERM or SIGINT, in seconds; then they are cut.
    #[arg(long, env = "PINGSIX_SIDECAR_DRAIN_SECONDS", value_name = "SECONDS", value_parser = value_parser!(u64).range(0..=86_400), default_value_t = 30)]
    drain_seconds: u64,

    /// The format of the log on standard error; the variable `RUST_LOG` selects its lines.
    #[arg(long, env = "PINGSIX_SIDECAR_LOG_FORMAT", value_enum, default_value_t)]
    pub(crate) log_format: LogFormat,
}

impl ProcessArguments {
    /// The key of the status page.
    ///
    /// # Errors
    ///
    /// When the file cannot be used.
    pub(crate) fn status_key(&self) -> anyhow::Result<Option<StatusKey>> {
        let read =
            |path| StatusKey::read(path).context("there is no key for the status page (--status-key-file)");
        self.status_key_file.as_deref().map(read).transpose()
    }

    /// The time limit of connections at a shutdown.
    pub(crate) const fn drain(&self) -> Duration {
        Duration::from_secs(self.drain_seconds)
    }
}

impl Arguments {
    /// What makes the arguments as a whole unusable; empty if they can be used.
    pub(crate) fn errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        if !self.responder.responder && !self.streams.streams {
            errors.push("no role is asked for: use --responder or --streams".to_owned());
        }
        if self.process.status_key_file.is_some() && self.process.status_listen.is_none() {
            errors.push("--status-key-file: needs --status-listen".to_owned());
        }
        errors.extend(self.responder.failure());
        errors.extend(self.streams.errors());
        errors
    }
}
