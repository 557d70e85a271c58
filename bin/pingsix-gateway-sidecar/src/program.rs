//! The program: arguments in, exit code out.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;

use crate::arguments::Arguments;
use crate::run;

/// For arguments that cannot be used.
const USAGE_EXIT_CODE: u8 = 2;

/// Runs the program with the arguments and the environment of the process.
///
/// Exit codes: 0 after a signal, 1 after a failure, 2 for arguments that cannot be used.
pub fn main() -> ExitCode {
    start(std::env::args_os())
}

fn start(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Standard error is closed, so a failure cannot be reported.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(USAGE_EXIT_CODE) } else { ExitCode::SUCCESS };
        }
    };
    let errors = arguments.errors();
    if !errors.is_empty() {
        let mut err = io::stderr().lock();
        for error in &errors {
            let _ = writeln!(err, "error: {error}");
        }
        return ExitCode::from(USAGE_EXIT_CODE);
    }
    match run::run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
