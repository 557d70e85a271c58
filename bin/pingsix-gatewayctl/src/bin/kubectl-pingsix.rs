//! `kubectl pingsix`: the commands of `pingsix-gatewayctl` on the objects of a cluster.

use std::process::ExitCode;

use mimalloc::MiMalloc;
use pingsix_gatewayctl::Program;

/// Large inputs take many small allocations.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    pingsix_gatewayctl::main(Program::KubectlPlugin)
}
