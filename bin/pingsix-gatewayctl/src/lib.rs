//! A tool for laptops and pipelines: manifests or the objects of a cluster in, PingSIX configuration and explanations out.
//!
//! ```text
//! files ──► manifest (read, judge by schema, decode) ──► plane (the pipeline of the library) ──► translate | check | explain | serve | diff
//! cluster (list, get) ──► manifest, migrate
//! files ──► migrate (pingsix-migrate converts objects of other controllers) ──► manifests, report
//! ```
//!
//! Each subcommand is one file and writes to the given writers. Findings about manifests stop no subcommand: the valid
//! parts are still translated and served.

mod arguments;
mod check;
#[cfg(feature = "cluster")]
mod cluster;
mod completions;
mod crds;
mod diff;
mod explain;
mod finding;
mod input;
mod man;
mod manifest;
mod migrate;
mod missing_class;
mod pingsix_config;
mod plane;
mod program;
mod readable;
mod review;
mod schema;
mod serve;
mod translate;
mod yaml;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Error;
use clap::FromArgMatches as _;
use clap::error::ErrorKind;

use arguments::{Arguments, Command};
pub use program::Program;

/// The outcome of a subcommand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// Success.
    Success,
    /// Something is not served as asked, a request is not answered, or a publication would change something.
    Problems,
}

/// The output streams of a subcommand.
struct Streams<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
}

/// Runs the program with the arguments of the process.
///
/// Exit codes: 0 when all is well, 1 when there are problems, 2 when the arguments or input cannot be used.
pub fn main(program: Program) -> ExitCode {
    let mut out = io::BufWriter::new(io::stdout());
    main_with(program, std::env::args_os(), &mut out, &mut io::stderr())
}

/// As [`main`], with these arguments, of which the first one is the name of the executable, and with these outputs.
/// Help and problems of arguments go to those of the process.
pub fn main_with(
    program: Program,
    arguments: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> ExitCode {
    let matches = program.command().try_get_matches_from(arguments);
    let arguments = match matches.and_then(|matches| Arguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(error) => {
            let asked_for = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            // Standard error is closed, so a failure cannot be reported.
            let _ = error.print();
            return ExitCode::from(if asked_for { 0 } else { 2 });
        }
    };
    let result = run(arguments.command, program, &mut Streams { out: &mut *out, err: &mut *err });
    match result.and_then(|exit| out.flush().map(|()| exit).map_err(Error::from)) {
        Ok(Exit::Success) => ExitCode::SUCCESS,
        Ok(Exit::Problems) => ExitCode::FAILURE,
        // The reader of the output has closed it early.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(err, "error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(command: Command, program: Program, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let default = program.default_input();
    match command {
        Command::Translate(arguments) => translate::run(&arguments, default, streams),
        Command::Check(arguments) => check::run(&arguments, default, streams),
        Command::Explain(arguments) => explain::run(&arguments, default, streams),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Diff(arguments) => diff::run(&arguments, default, streams),
        Command::PingsixConfig(arguments) => pingsix_config::run(&arguments, streams),
        Command::Migrate(arguments) => migrate::run(&arguments, default, streams),
        Command::Crds => crds::run(streams),
        Command::Complete(arguments) => completions::complete(&arguments, program, streams),
        Command::Completions(arguments) => completions::run(&arguments, program, streams),
        Command::Man(arguments) => man::run(&arguments, program),
    }
}

fn is_broken_pipe(error: &Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
