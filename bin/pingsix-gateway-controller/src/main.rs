//! Serves the Gateways, routes and Ingresses of a cluster with PingSIX.

use std::process::ExitCode;

fn main() -> ExitCode {
    pingsix_gateway_controller::main()
}
