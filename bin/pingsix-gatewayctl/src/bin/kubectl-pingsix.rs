//! `kubectl pingsix`: the commands of `pingsix-gatewayctl` on the objects of a cluster.

use std::process::ExitCode;

use pingsix_gatewayctl::Program;

fn main() -> ExitCode {
    pingsix_gatewayctl::main(Program::KubectlPlugin)
}
