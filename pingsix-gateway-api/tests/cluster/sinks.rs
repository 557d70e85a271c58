//! Data planes that are published to an etcd which their parameters name.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use pingsix_translate::Kind;
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::lab::shop::{self, PLANE};
use crate::lab::{Lab, Running, eventually_found, hasty};

const PASSWORDS: [&str; 2] = ["CANARY-of-before", "CANARY-of-now"];

/// A real etcd that asks for passwords; dropping it ends it.
struct Etcd {
    address: String,
    control: PathBuf,
    _directory: tempfile::TempDir,
    _process: Child,
}

impl Etcd {
    /// Nothing where it is not installed.
    async fn start() -> Option<Self> {
        let (server, control) = (find("etcd")?, find("etcdctl")?);
        let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let (address, peer, directory) = (free(), free(), tempfile::tempdir().unwrap());
        let (client_url, peer_url) = (format!("http://{address}"), format!("http://{peer}"));
        let process = Command::new(server)
            .arg("--data-dir")
            .arg(directory.path().join("data"))
            .args(["--listen-client-urls", &client_url, "--advertise-client-urls", &client_url])
            .args(["--listen-peer-urls", &peer_url, "--initial-advertise-peer-urls", &peer_url])
            .args(["--initial-cluster", &format!("default={peer_url}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let etcd = Self { address, control, _directory: directory, _process: process };
        eventually_found("an etcd", async || etcd.control(&["endpoint", "health"]).await.is_ok()).await;
        // The role root comes with its user in some versions, and before it in others.
        let _ = etcd.control(&["role", "add", "root"]).await;
        for arguments in [
            &["user", "add", "root:root"][..],
            &["user", "grant-role", "root", "root"],
            &["role", "add", "gateway"],
            &["role", "grant-permission", "gateway", "--prefix=true", "readwrite", "/pingsix"],
            &["user", "add", &format!("gateway:{}", PASSWORDS[0])],
            &["user", "grant-role", "gateway", "gateway"],
            &["auth", "enable"],
        ] {
            etcd.control(arguments).await.unwrap();
        }
        Some(etcd)
    }

    async fn control(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new(&self.control);
        command.env("ETCDCTL_API", "3").arg(format!("--endpoints={}", self.address)).args(arguments);
        let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
        let output = tokio::time::timeout(Duration::from_secs(20), output).await.expect("it ends").unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    async fn change_password(&self, password: &str) {
        let program = format!("printf '%s' '{password}' | \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &program]).arg(&self.control).arg(format!("--endpoints={}", self.address));
        command.args(["--user=root:root", "user", "passwd", "gateway", "--interactive=false"]);
        let output = command.env("ETCDCTL_API", "3").kill_on_drop(true).output().await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// What the data plane holds there.
    async fn documents(&self) -> String {
        let prefix = format!("{PLANE}/routes/");
        self.control(&["--user=root:root", "get", "--prefix", &prefix]).await.unwrap()
    }
}

/// A program on the PATH; says so when there is none.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    if found.is_none() {
        eprintln!("NOT RUN: {name} is not on the PATH");
    }
    found
}

async fn put(lab: &Lab, kind: Kind, name: &str, object: Value) {
    let params = PatchParams::apply("test").force();
    lab.objects(kind, "default").patch(name, &params, &Patch::Apply(object)).await.unwrap();
}

async fn put_secret(lab: &Lab, password: &str) {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "default"},
        "stringData": {"username": "gateway", "password": password},
    });
    put(lab, Kind::Secret, "login", secret).await;
}

fn says(object: &Value, text: &str) -> bool {
    object["status"]["conditions"].to_string().contains(text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_is_published_to_the_etcd_that_its_parameters_name_and_a_new_password_is_followed() {
    let Some(etcd) = Etcd::start().await else { return };
    let Some(lab) = Lab::start().await else { return };
    let proxy = json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": "PingsixProxy",
        "metadata": {"name": "run", "namespace": "default"},
        "spec": {"attached": {"sink": {
            "url": format!("etcd://{}", etcd.address), "credentialsSecretRef": {"name": "login"},
        }}},
    });
    put(&lab, Kind::PingsixProxy, "run", proxy).await;
    lab.apply(&format!(
        "{}  parametersRef: {{group: pingsix.io, kind: PingsixProxy, namespace: default, name: run}}\n",
        shop::CLASS.replace(
            "spec: {controllerName: pingsix.io/gateway-controller}",
            "spec:\n  controllerName: pingsix.io/gateway-controller"
        )
    ))
    .await;
    lab.apply(shop::GATEWAY).await;
    lab.apply(shop::SERVICE).await;
    lab.apply(shop::ROUTE).await;
    let mut running = Running::opening_sinks(lab.cluster.admin(), &lab.etcd, hasty());
    running.is_ready().await;

    // Without the Secret nothing is published, neither there nor elsewhere.
    lab.until(Kind::Gateway, "default", "web", "what is missing", |object| {
        says(object, "PingsixProxy default/run names for its sink Secret default/login, which does not exist")
    })
    .await;
    put_secret(&lab, PASSWORDS[0]).await;
    lab.says(Kind::Gateway, "default", "web", "", "Programmed=True/Programmed").await;
    assert!(etcd.documents().await.contains("cart.example"));

    etcd.change_password(PASSWORDS[1]).await;
    lab.apply(&shop::ROUTE.replace("cart.example", "basket.example")).await;
    lab.until(Kind::Gateway, "default", "web", "that it is not let in", |object| {
        says(object, "etcd does not accept the user")
    })
    .await;
    put_secret(&lab, PASSWORDS[1]).await;
    lab.says(Kind::Gateway, "default", "web", "", "Programmed=True/Programmed").await;
    assert!(etcd.documents().await.contains("basket.example"));
    let gateway = lab.object(Kind::Gateway, "default", "web").await.to_string();
    assert!(!gateway.contains("CANARY"), "{gateway}");

    lab.objects(Kind::Gateway, "default").delete("web", &kube::api::DeleteParams::default()).await.unwrap();
    eventually_found("withdrawal", async || etcd.documents().await.is_empty()).await;
    assert!(lab.etcd.scopes().is_empty(), "the controller's own sink has got nothing of it");
    running.stop().await;
}
