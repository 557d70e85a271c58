//! Data planes that are published to an etcd which their parameters name.

use std::path::PathBuf;

use kube::api::{Patch, PatchParams};
use pingsix_test_programs::{Etcd, find};
use pingsix_translate::Kind;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::test_env::shop::{self, PLANE};
use crate::test_env::{Running, TestEnv, eventually_async, fast_retries};

const PASSWORDS: [&str; 2] = ["CANARY-of-before", "CANARY-of-now"];

/// A real etcd that asks for passwords, with the program that speaks to it.
struct AuthenticatedEtcd {
    etcd: Etcd,
    control: PathBuf,
}

impl AuthenticatedEtcd {
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

async fn put(test_env: &TestEnv, kind: Kind, name: &str, object: Value) {
    let params = PatchParams::apply("test").force();
    test_env.objects(kind, "default").patch(name, &params, &Patch::Apply(object)).await.unwrap();
}

async fn put_secret(test_env: &TestEnv, password: &str) {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "default"},
        "stringData": {"username": "gateway", "password": password},
    });
    put(test_env, Kind::Secret, "login", secret).await;
}

fn has_text(object: &Value, text: &str) -> bool {
    object["status"]["conditions"].to_string().contains(text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_is_published_to_its_own_etcd_and_follows_a_new_password() {
    let Some(etcd) = AuthenticatedEtcd::start().await else { return };
    let Some(test_env) = TestEnv::start().await else { return };
    let proxy = json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": "PingsixProxy",
        "metadata": {"name": "run", "namespace": "default"},
        "spec": {"attached": {"sink": {
            "url": format!("etcd://{}", etcd.etcd.address()), "credentialsSecretRef": {"name": "login"},
        }}},
    });
    put(&test_env, Kind::PingsixProxy, "run", proxy).await;
    test_env
        .apply(&format!(
            "{}  parametersRef: {{group: pingsix.io, kind: PingsixProxy, namespace: default, name: run}}\n",
            shop::CLASS.replace(
                "spec: {controllerName: pingsix.io/gateway-controller}",
                "spec:\n  controllerName: pingsix.io/gateway-controller"
            )
        ))
        .await;
    test_env.apply(shop::GATEWAY).await;
    test_env.apply(shop::SERVICE).await;
    test_env.apply(shop::ROUTE).await;
    let mut running = Running::with_attached_sinks(test_env.cluster.admin(), &test_env.etcd, fast_retries());
    running.wait_until_ready().await;

    // Without the Secret nothing is published, neither there nor elsewhere.
    test_env
        .until(Kind::Gateway, "default", "web", "what is missing", |object| {
            has_text(
                object,
                "PingsixProxy default/run names for its sink Secret default/login, which does not exist",
            )
        })
        .await;
    put_secret(&test_env, PASSWORDS[0]).await;
    test_env.wait_for_condition(Kind::Gateway, "default", "web", "", "Programmed=True/Programmed").await;
    assert!(etcd.documents().await.contains("cart.example"));

    etcd.change_password(PASSWORDS[1]).await;
    test_env.apply(&shop::ROUTE.replace("cart.example", "basket.example")).await;
    test_env
        .until(Kind::Gateway, "default", "web", "that it is not let in", |object| {
            has_text(object, "etcd does not accept the user")
        })
        .await;
    put_secret(&test_env, PASSWORDS[1]).await;
    test_env.wait_for_condition(Kind::Gateway, "default", "web", "", "Programmed=True/Programmed").await;
    assert!(etcd.documents().await.contains("basket.example"));
    let gateway = test_env.object(Kind::Gateway, "default", "web").await.to_string();
    assert!(!gateway.contains("CANARY"), "{gateway}");

    test_env
        .objects(Kind::Gateway, "default")
        .delete("web", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    eventually_async("withdrawal", async || etcd.documents().await.is_empty()).await;
    assert!(test_env.etcd.scopes().is_empty(), "the controller's own sink has got nothing of it");
    running.stop().await;
}
