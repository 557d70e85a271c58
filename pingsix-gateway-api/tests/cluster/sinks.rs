//! Data planes that are published to an etcd which their parameters name.

use std::path::PathBuf;

use kube::api::{Patch, PatchParams};
use pingsix_test_programs::{Etcd, find};
use pingsix_translate::Kind;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::lab::shop::{self, PLANE};
use crate::lab::{Lab, Running, eventually_found, hasty};

const PASSWORDS: [&str; 2] = ["CANARY-of-before", "CANARY-of-now"];

/// A real etcd that asks for passwords, with the program that speaks to it.
struct Guarded {
    etcd: Etcd,
    control: PathBuf,
}

impl Guarded {
    /// `None` where etcd is not installed.
    async fn start() -> Option<Self> {
        let (control, etcd) = (find("etcdctl")?, Etcd::start().await?);
        // The role root comes with its user in some versions, and before it in others.
        etcd.try_control(&["role", "add", "root"]).await;
        for arguments in [
            &["user", "add", "root:root"][..],
            &["user", "grant-role", "root", "root"],
            &["role", "add", "gateway"],
            &["role", "grant-permission", "gateway", "--prefix=true", "readwrite", "/pingsix"],
            &["user", "add", &format!("gateway:{}", PASSWORDS[0])],
            &["user", "grant-role", "gateway", "gateway"],
            &["auth", "enable"],
        ] {
            etcd.control(arguments).await;
        }
        Some(Self { etcd, control })
    }

    async fn change_password(&self, password: &str) {
        let program = format!("printf '%s' '{password}' | \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &program]).arg(&self.control).arg(format!("--endpoints={}", self.etcd.address()));
        command.args(["--user=root:root", "user", "passwd", "gateway", "--interactive=false"]);
        let output = command.env("ETCDCTL_API", "3").kill_on_drop(true).output().await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// The documents of the data plane in the sink.
    async fn documents(&self) -> String {
        let prefix = format!("{PLANE}/routes/");
        self.etcd.control(&["--user=root:root", "get", "--prefix", &prefix]).await
    }
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
    let Some(etcd) = Guarded::start().await else { return };
    let Some(lab) = Lab::start().await else { return };
    let proxy = json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": "PingsixProxy",
        "metadata": {"name": "run", "namespace": "default"},
        "spec": {"attached": {"sink": {
            "url": format!("etcd://{}", etcd.etcd.address()), "credentialsSecretRef": {"name": "login"},
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
