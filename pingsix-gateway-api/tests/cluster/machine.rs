//! PingSIX on a machine outside of the cluster, as `docs/how-to/pingsix-on-machines.md` has it. The machine is a network
//! namespace beside that of the node, with a route to it, names of its own, and PingSIX and the sidecar as its programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use pingsix_test_programs::{commands, program};
use tokio::process::{Child, Command};
use tokio::time::sleep;

use crate::reader::{Images, Reader, cluster_with, node, page, root};
use crate::test_env::{WAIT_TIMEOUT, eventually_async, pingsix};

/// The machine, in the network of the page.
const MACHINE: &str = "192.0.2.10";
const NODE: &str = "192.0.2.1";

/// A network namespace that a process keeps.
struct Machine {
    process: Child,
    folder: PathBuf,
}

impl Machine {
    /// A machine that knows this address of the feed.
    async fn start(folder: &Path, feed: &str) -> Self {
        let sleeping = ["--net", "--mount", "sleep", "900"];
        let process = Command::new("unshare").args(sleeping).kill_on_drop(true).spawn().unwrap();
        let machine = Self { process, folder: folder.to_owned() };
        let network = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
        eventually_async("the network of the machine", async || {
            let own = network(&machine.id());
            own.is_some() && own != network("self")
        })
        .await;
        let id = machine.id();
        run(Command::new("sh").arg("-ec").arg(format!(
            "ip link add machine0 type veth peer name eth0 netns {id}
             ip address add {NODE}/24 dev machine0
             ip link set machine0 up
             echo 1 > /proc/sys/net/ipv4/ip_forward"
        )))
        .await;
        let hosts = folder.join("hosts");
        fs::write(&hosts, format!("127.0.0.1 localhost\n{feed} feed.example.com\n")).unwrap();
        run(&mut machine.shell(&format!(
            "ip link set lo up
             ip address add {MACHINE}/24 dev eth0
             ip link set eth0 up
             ip route add default via {NODE}
             mount --bind {} /etc/hosts",
            hosts.display()
        )))
        .await;
        machine
    }

    fn id(&self) -> String {
        self.process.id().expect("it sleeps for longer than a test").to_string()
    }

    /// A command on the machine.
    fn shell(&self, command: &str) -> Command {
        let mut shell = Command::new("nsenter");
        shell.args(["--target", &self.id(), "--net", "--mount", "sh", "-ec", command]);
        shell.current_dir(&self.folder).stdin(Stdio::null()).kill_on_drop(true);
        shell
    }

    /// A program that runs on, with its log in a file.
    fn spawn(&self, command: &str, log: &str) -> Child {
        let log = fs::File::create(self.folder.join(log)).unwrap();
        let mut shell = self.shell(&format!("exec {command}"));
        shell.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
    }

    fn log(&self, log: &str) -> String {
        fs::read_to_string(self.folder.join(log)).unwrap_or_default()
    }
}

/// Runs a command that succeeds.
async fn run(command: &mut Command) {
    let output = tokio::time::timeout(WAIT_TIMEOUT, command.output()).await;
    let output = output.expect("the command ends").unwrap();
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&text));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_on_a_machine_of_its_own_lives_through_a_rotation() {
    const TEST: &str = "machine::pingsix_on_a_machine_of_its_own_lives_through_a_rotation";
    let Some(data_plane) = pingsix::binary(TEST) else { return };
    let (gatewayctl, sidecar) =
        (program("pingsix-gatewayctl").await, program("pingsix-gateway-sidecar").await);
    let Some(cluster) = cluster_with(TEST, node(Images::Programs, None).await).await else { return };
    let mut reader = Reader::new(&cluster);
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().display();
    let page = page("how-to/pingsix-on-machines.md");
    let (before, after) = page.split_once("## Start PingSIX").unwrap();

    for command in commands(before) {
        let command = command
            .replace("edge.kubeconfig", &format!("{here}/kubeconfig"))
            .replace("> config.yaml", &format!("> {here}/config.yaml"))
            .replace("/etc/pingsix/feed-tls", &format!("{here}/feed-tls"));
        if command.starts_with("SERVER=") {
            // Inside of the cluster, as the API server of the test has no other address for others.
            let get = "kubectl get service kubernetes -o jsonpath='{.spec.clusterIP}'";
            let address = reader.succeed(get).await;
            reader.variables.insert("SERVER".to_owned(), format!("https://{address}:443").into());
        } else if let Some(arguments) = command.strip_prefix("pingsix-gatewayctl ") {
            reader.succeed(&format!("{} {arguments}", gatewayctl.display())).await;
        } else {
            reader.run(&command).await;
        }
        if command.starts_with("kubectl apply -k") {
            // Steps of a rotation that do not take ten minutes. The page restarts the controller next.
            let overlap = r#"{"data":{"PINGSIX_GATEWAY_FEED_AUTHORITY_OVERLAP":"4s"}}"#;
            let configure = "kubectl -n pingsix-system patch configmap pingsix-gateway-controller";
            reader.run(&format!("{configure} --type merge -p '{overlap}'")).await;
        }
    }

    let feed = reader.variables["FEED"].to_str().unwrap().to_owned();
    let machine = Machine::start(folder.path(), &feed).await;
    let fetch_command = root().join("deploy/external-feed/machine/fetch-feed-certificate");
    let on_machine: Vec<String> = commands(after)
        .into_iter()
        .map(|command| {
            command
                .replace("/etc/pingsix", &here.to_string())
                .replace("fetch-feed-certificate", fetch_command.to_str().unwrap())
                .replace("edge.example.com", MACHINE)
        })
        .collect();
    let [fetch, responder, pingsix, answer] = &on_machine[..] else { panic!("{on_machine:?}") };
    let path = reader.variables["PATH"].clone();
    let fetched = async || run(machine.shell(fetch).env("PATH", &path)).await;
    fetched().await;
    let exec =
        |command: &str, name: &str, program: &Path| command.replacen(name, &program.display().to_string(), 1);
    let _sidecar = machine.spawn(&exec(responder, "pingsix-gateway-sidecar", &sidecar), "sidecar.log");
    let mut running = machine.spawn(&exec(pingsix, "pingsix", Path::new(&data_plane)), "pingsix.log");
    reader.run(answer).await;

    // The timer fetches while the authority rotates.
    let secret = |name: &str, key: &str| {
        format!("kubectl -n pingsix-system get secret {name} -o jsonpath='{{.data.{key}}}'")
    };
    let before = reader.succeed(&secret("pingsix-gateway-feed-authority", "tls\\.crt")).await;
    let own_before = reader.succeed(&secret("edge-feed", "tls\\.crt")).await;
    let rotate =
        "kubectl -n pingsix-system annotate secret pingsix-gateway-feed-authority pingsix.io/rotate=now";
    reader.run(rotate).await;
    eventually_async("the end of the rotation", async || {
        fetched().await;
        sleep(Duration::from_millis(500)).await;
        let signing = reader.succeed(&secret("pingsix-gateway-feed-authority", "tls\\.crt")).await;
        let trusted = reader.succeed(&secret("edge-feed", "ca\\.crt")).await;
        signing != before && trusted == signing
    })
    .await;
    fetched().await;
    assert_ne!(reader.succeed(&secret("edge-feed", "tls\\.crt")).await, own_before);
    let hostnames = r#"{"spec":{"hostnames":["hello.example","after.example"]}}"#;
    reader
        .run(&format!("kubectl -n quickstart patch httproute hello-edge --type merge -p '{hostnames}'"))
        .await;
    reader.run(&answer.replace("hello.example", "after.example")).await;
    assert!(running.try_wait().unwrap().is_none(), "{}", machine.log("pingsix.log"));

    // The account of the machine reads its own Secret alone.
    let other = fetch.replace("edge-feed", "pingsix-gateway-feed-authority");
    let output = machine.shell(&other).env("PATH", &path).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("forbidden"), "{said}");
}
