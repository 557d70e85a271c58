//! The names of the program, which has one set of commands under each.

use clap::{Command, CommandFactory as _};

use crate::arguments::{Arguments, DefaultInput};

/// The name in the help texts.
const NAME: &str = "pingsix-gatewayctl";

/// The name under which the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `pingsix-gatewayctl`.
    Gatewayctl,
    /// `kubectl pingsix`: kubectl runs the executable `kubectl-pingsix`. The default input is the cluster.
    KubectlPlugin,
}

impl Program {
    /// The name of the executable.
    pub(crate) const fn executable(self) -> &'static str {
        match self {
            Self::Gatewayctl => NAME,
            Self::KubectlPlugin => "kubectl-pingsix",
        }
    }

    pub(crate) const fn default_input(self) -> DefaultInput {
        match self {
            Self::Gatewayctl => DefaultInput::None,
            Self::KubectlPlugin => DefaultInput::Cluster,
        }
    }

    /// The command line, with the name of the program in all texts.
    pub(crate) fn command(self) -> Command {
        let command = Arguments::command();
        match self {
            Self::Gatewayctl => command,
            Self::KubectlPlugin => renamed(command.name("kubectl-pingsix").bin_name(PLUGIN)).mut_subcommand(
                "explain",
                |explain| {
                    explain.override_usage("kubectl pingsix explain [OPTIONS] [PATH]... <METHOD> <URL>")
                },
            ),
        }
    }
}

/// The beginning of command lines of the plugin.
const PLUGIN: &str = "kubectl pingsix";

/// Names the plugin in the texts of a command, of its arguments and of its subcommands.
fn renamed(mut command: Command) -> Command {
    let rename = |text: &clap::builder::StyledStr| text.to_string().replace(NAME, PLUGIN);
    if let Some(about) = command.get_about().map(rename) {
        command = command.about(about);
    }
    if let Some(about) = command.get_long_about().map(rename) {
        command = command.long_about(about);
    }
    command
        .mut_args(|mut argument| {
            if let Some(help) = argument.get_help().map(rename) {
                argument = argument.help(help);
            }
            if let Some(help) = argument.get_long_help().map(rename) {
                argument = argument.long_help(help);
            }
            argument
        })
        .mut_subcommands(renamed)
}
