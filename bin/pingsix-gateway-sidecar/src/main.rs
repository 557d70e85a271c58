//! Runs the roles of the sidecar beside a PingSIX.

use std::process::ExitCode;

fn main() -> ExitCode {
    pingsix_gateway_sidecar::main()
}
