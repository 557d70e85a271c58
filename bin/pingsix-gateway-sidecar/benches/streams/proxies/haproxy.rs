//! `HAProxy` with one thread and keepalive, and splice where it helps: with much data.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use super::{NAME, Service, write, write_certificate};
use crate::process::{Processor, pinned};

pub(super) fn command(
    program: &Path,
    folder: &Path,
    service: Service,
    port: u16,
    backend: SocketAddr,
) -> Command {
    let (bind, rules) = match service {
        Service::Passthrough => (
            String::new(),
            format!(
                "  tcp-request inspect-delay 5s\n  tcp-request content accept if {{ req.ssl_hello_type 1 }}\n\
                 \x20 use_backend named if {{ req.ssl_sni -i {NAME} }}\n"
            ),
        ),
        Service::Terminate | Service::Https => {
            (format!(" ssl crt {}", write_certificate(folder)), "  default_backend named\n".to_owned())
        }
        Service::Tcp | Service::Bulk | Service::Udp => {
            (String::new(), "  default_backend named\n".to_owned())
        }
    };
    // `splice-auto` seldom splices, and costs more.
    let (pipes, splice) = match service {
        Service::Bulk => ("  maxpipes 256\n", "  option splice-request\n  option splice-response\n"),
        Service::Tcp | Service::Udp | Service::Passthrough | Service::Terminate | Service::Https => ("", ""),
    };
    let configuration = format!(
        "global\n  nbthread 1\n{pipes}defaults\n  mode tcp\n  option tcpka\n{splice}\
         \x20 timeout connect 3s\n  timeout client 1h\n  timeout server 1h\nfrontend clients\n\
         \x20 bind *:{port}{bind} backlog 4096\n{rules}backend named\n  server node {backend}\n"
    );
    let file = write(folder, "haproxy.cfg", &configuration);
    let mut command = pinned(Processor::Proxy, program);
    command.args(["-q", "-db", "-f", &file]);
    command
}
