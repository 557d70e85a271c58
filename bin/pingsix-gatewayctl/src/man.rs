//! `man`: manual pages of the program and its commands.

use std::fs;

use anyhow::Context as _;

use crate::Exit;
use crate::arguments::ManArguments;
use crate::program::Program;

pub(crate) fn run(arguments: &ManArguments, program: Program) -> anyhow::Result<Exit> {
    let directory = &arguments.directory;
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(program.command(), directory))
        .with_context(|| format!("cannot write the manual pages into {}", directory.display()))?;
    Ok(Exit::Success)
}
