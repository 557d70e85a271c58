//! nginx with one worker, keepalive and the buffers of the sidecar's UDP sockets; otherwise with its defaults.

use std::fmt::Write as _;
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
    let stream = match service {
        Service::Tcp | Service::Bulk => server(port, "", "", &backend.to_string()),
        Service::Udp => format!(
            "server {{ listen {port} udp rcvbuf=4m sndbuf=4m; proxy_timeout 60s; proxy_pass {backend}; }}\n"
        ),
        Service::Passthrough => map([(NAME, backend)]) + &server(port, "", "ssl_preread on;", "$node"),
        Service::Terminate | Service::Https => {
            let file = write_certificate(folder);
            let options =
                format!("ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate {file}; ssl_certificate_key {file};");
            server(port, " ssl", &options, &backend.to_string())
        }
    };
    start(program, folder, &stream)
}

/// nginx with a backend for each server name. With another configuration in the file of its folder, it can be reloaded.
pub(crate) fn names<'a>(
    program: &Path,
    folder: &Path,
    port: u16,
    names: impl IntoIterator<Item = (&'a str, SocketAddr)>,
) -> Command {
    start(program, folder, &(map(names) + &server(port, "", "ssl_preread on;", "$node")))
}

fn server(port: u16, listen: &str, options: &str, node: &str) -> String {
    format!(
        "server {{ listen {port}{listen} backlog=4096 so_keepalive=60s:15s:4; proxy_socket_keepalive on; \
         proxy_connect_timeout 3s; proxy_timeout 1h; {options} proxy_pass {node}; }}\n"
    )
}

fn map<'a>(names: impl IntoIterator<Item = (&'a str, SocketAddr)>) -> String {
    let mut map =
        "map_hash_max_size 65536; map_hash_bucket_size 128;\nmap $ssl_preread_server_name $node {\n"
            .to_owned();
    for (name, backend) in names {
        writeln!(map, "  {name} {backend};").unwrap();
    }
    map + "}\n"
}

fn start(program: &Path, folder: &Path, stream: &str) -> Command {
    let path = |name| folder.join(name).to_str().unwrap().to_owned();
    let configuration = format!(
        "load_module /usr/lib/nginx/modules/ngx_stream_module.so;\ndaemon off;\nworker_processes 1;\n\
         pid {};\nerror_log {} warn;\nevents {{ worker_connections 19500; }}\nstream {{\n{stream}}}\n",
        path("pid"),
        path("log"),
    );
    let file = write(folder, "nginx.conf", &configuration);
    let mut command = pinned(Processor::Proxy, program);
    command.args(["-c", &file, "-e", &path("log")]);
    command
}
