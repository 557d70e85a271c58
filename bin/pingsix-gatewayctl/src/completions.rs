//! `completions`: scripts that complete command lines.

use clap::CommandFactory as _;

use crate::arguments::{Arguments, CompletionsArguments};
use crate::{Exit, Streams};

pub(crate) fn run(arguments: &CompletionsArguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let mut command = Arguments::command();
    let name = command.get_name().to_owned();
    // Written at once, because the generator panics where a pipe breaks.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    streams.out.write_all(&script)?;
    Ok(Exit::Success)
}
