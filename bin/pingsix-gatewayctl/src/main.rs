//! Translate, check, explain and serve Gateway API manifests for PingSIX.

use std::process::ExitCode;

use pingsix_gatewayctl::Program;

fn main() -> ExitCode {
    pingsix_gatewayctl::main(Program::Gatewayctl)
}
