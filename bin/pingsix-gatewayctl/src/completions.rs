//! `completions`: scripts that complete command lines, and the candidates for kubectl.

use std::collections::BTreeMap;

use clap::{Arg, Command};
use clap_complete::Shell;

use crate::arguments::{CompleteArguments, CompletionTarget, CompletionsArguments};
use crate::program::Program;
use crate::{Exit, Streams};

/// The executable `kubectl_complete-pingsix`, which kubectl runs with the words after `kubectl pingsix`.
const KUBECTL_SCRIPT: &str = "#!/bin/sh\nexec kubectl-pingsix __complete -- \"$@\"\n";

pub(crate) fn run(
    arguments: &CompletionsArguments,
    program: Program,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let shell = match arguments.shell {
        CompletionTarget::Bash => Shell::Bash,
        CompletionTarget::Elvish => Shell::Elvish,
        CompletionTarget::Fish => Shell::Fish,
        CompletionTarget::PowerShell => Shell::PowerShell,
        CompletionTarget::Zsh => Shell::Zsh,
        CompletionTarget::Kubectl => {
            streams.out.write_all(KUBECTL_SCRIPT.as_bytes())?;
            return Ok(Exit::Success);
        }
    };
    // Written at once, because the generator panics where a pipe breaks.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program.command(), program.executable(), &mut script);
    streams.out.write_all(&script)?;
    Ok(Exit::Success)
}

/// Prints a candidate per line, with a description after a tab, and the directive of cobra: 4 for no completion of
/// files, 0 for one.
pub(crate) fn complete(
    arguments: &CompleteArguments,
    program: Program,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let (last, before) = arguments.words.split_last().map_or(("", &[][..]), |(last, before)| (last, before));
    let Candidates { words, files } = candidates(&program.command(), before, last);
    for (word, description) in words.iter().filter(|(word, _)| word.starts_with(last)) {
        if description.is_empty() {
            writeln!(streams.out, "{word}")?;
        } else {
            writeln!(streams.out, "{word}\t{description}")?;
        }
    }
    writeln!(streams.out, ":{}", if files { 0 } else { 4 })?;
    Ok(Exit::Success)
}

/// The candidates for a word.
#[derive(Debug, Default, PartialEq, Eq)]
struct Candidates {
    /// With descriptions.
    words: BTreeMap<String, String>,
    /// Whether the word may be a file.
    files: bool,
}

fn candidates(root: &Command, before: &[String], last: &str) -> Candidates {
    let is_option = |word: &&String| word.starts_with('-');
    let subcommand = before.iter().find(|word| !is_option(word));
    let Some(command) = subcommand.and_then(|name| root.find_subcommand(name)) else {
        return match subcommand {
            Some(_) => Candidates::default(),
            None if last.starts_with('-') => options(root),
            None => subcommands(root),
        };
    };
    let expects_value = |word: &String| option(command, word).filter(|option| takes_value(option));
    if let Some(option) = before.last().and_then(expects_value) {
        return values(option, "");
    }
    if let Some((name, _)) = last.split_once('=') {
        return option(command, name).map(|option| values(option, &format!("{name}="))).unwrap_or_default();
    }
    if last.starts_with('-') {
        return options(command);
    }
    command.get_positionals().next().map(|argument| values(argument, "")).unwrap_or_default()
}

/// The option of a word such as `--output` or `-o`.
fn option<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let (long, short) = match (word.strip_prefix("--"), word.strip_prefix('-')) {
        (Some(long), _) => (Some(long), None),
        (None, Some(short)) => (None, short.chars().next().filter(|_| short.chars().count() == 1)),
        (None, None) => return None,
    };
    command.get_arguments().find(|argument| {
        (long.is_some() && argument.get_long() == long) || (short.is_some() && argument.get_short() == short)
    })
}

fn takes_value(argument: &Arg) -> bool {
    argument.get_action().takes_values()
}

/// The possible values of an argument; files if any text is possible.
fn values(argument: &Arg, prefix: &str) -> Candidates {
    let values = argument.get_possible_values();
    let shown = values.iter().filter(|value| !value.is_hide_set());
    let describe = |help: &clap::builder::StyledStr| first_line(&help.to_string());
    let words = shown.map(|value| {
        (format!("{prefix}{}", value.get_name()), value.get_help().map(describe).unwrap_or_default())
    });
    Candidates { files: values.is_empty(), words: words.collect() }
}

fn options(command: &Command) -> Candidates {
    let options = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let words = options.filter_map(|argument| {
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        Some((format!("--{}", argument.get_long()?), first_line(&help)))
    });
    let mut words: BTreeMap<String, String> = words.collect();
    words.insert("--help".to_owned(), "Print help".to_owned());
    Candidates { words, files: false }
}

fn subcommands(command: &Command) -> Candidates {
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    let words = shown.map(|command| {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        (command.get_name().to_owned(), first_line(&about))
    });
    Candidates { words: words.collect(), files: false }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
