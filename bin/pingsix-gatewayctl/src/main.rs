//! Translate, check, explain and serve Gateway API manifests for PingSIX, without a cluster.

use std::process::ExitCode;

fn main() -> ExitCode {
    pingsix_gatewayctl::main()
}
