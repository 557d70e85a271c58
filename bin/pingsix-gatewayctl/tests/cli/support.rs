//! Running the program, and manifests to run it on.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use tempfile::TempDir;

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    /// Panics unless the exit code is this.
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// Panics unless this text was printed to standard output.
    pub(crate) fn prints(self, text: &str) -> Self {
        assert!(self.out.contains(text), "no {text:?} in stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// Panics unless this text was printed to standard error.
    pub(crate) fn prints_error(self, text: &str) -> Self {
        assert!(self.err.contains(text), "no {text:?} in stderr:\n{}", self.err);
        self
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in:\n{}", self.out))
    }
}

pub(crate) fn run<I: AsRef<OsStr>>(arguments: impl IntoIterator<Item = I>) -> Run {
    run_with("", arguments)
}

/// Runs the program with text on standard input.
pub(crate) fn run_with<I: AsRef<OsStr>>(input: &str, arguments: impl IntoIterator<Item = I>) -> Run {
    let output = command().args(arguments).write_stdin(input).output().unwrap();
    Run {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pingsix-gatewayctl"));
    command.env_remove("RUST_LOG").timeout(std::time::Duration::from_mins(1));
    command
}

pub(crate) fn quickstart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/quickstart")
}

/// A directory of manifests.
pub(crate) struct Manifests(TempDir);

impl Manifests {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let manifests = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            manifests.write(name, text);
        }
        manifests
    }

    /// The class, a Gateway `shop/web` on port 80, Service `shop/cart` with an endpoint, and these routes.
    pub(crate) fn shop(routes: &str) -> Self {
        Self::new(&[("gateway.yaml", GATEWAY), ("cart.yaml", CART), ("routes.yaml", routes)])
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Replaces a file atomically, as editors do.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let draft = path.with_extension("draft");
        fs::write(&draft, text).unwrap();
        fs::rename(draft, path).unwrap();
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.path().join(name)).unwrap();
    }

    pub(crate) fn check(&self) -> Run {
        run([OsStr::new("check"), self.path().as_os_str()])
    }

    pub(crate) fn translate(&self, arguments: &[&str]) -> Run {
        run(["translate"]
            .iter()
            .map(OsStr::new)
            .chain([self.path().as_os_str()])
            .chain(arguments.iter().map(OsStr::new)))
    }
}

pub(crate) const GATEWAY: &str = r"
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: { name: pingsix }
spec: { controllerName: pingsix.io/gateway-controller }
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: web, namespace: shop }
spec:
  gatewayClassName: pingsix
  listeners:
  - { name: http, port: 80, protocol: HTTP }
";

pub(crate) const CART: &str = r"
apiVersion: v1
kind: Service
metadata: { name: cart, namespace: shop }
spec: { ports: [{ name: http, port: 80 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: cart-1, namespace: shop, labels: { kubernetes.io/service-name: cart } }
addressType: IPv4
ports: [{ name: http, port: 8080 }]
endpoints: [{ addresses: [10.0.0.1] }]
";

/// A GRPCRoute of `shop/web` that sends the calls of a service to a Service.
pub(crate) fn grpc_route(name: &str, service: &str, backend: &str) -> String {
    format!(
        r#"
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {{ name: {name}, namespace: shop }}
spec:
  parentRefs: [{{ name: web }}]
  rules:
  - matches: [{{ method: {{ service: "{service}" }} }}]
    backendRefs: [{{ name: {backend}, port: 80 }}]
"#
    )
}

/// An HTTPRoute of `shop/web` that sends a path prefix to a Service.
pub(crate) fn route(name: &str, prefix: &str, service: &str) -> String {
    format!(
        r#"
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{ name: {name}, namespace: shop }}
spec:
  parentRefs: [{{ name: web }}]
  rules:
  - matches: [{{ path: {{ type: PathPrefix, value: "{prefix}" }} }}]
    backendRefs: [{{ name: {service}, port: 80 }}]
"#
    )
}
