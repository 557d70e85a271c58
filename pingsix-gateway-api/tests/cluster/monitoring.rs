//! The dashboard and the alerts of `deploy/monitoring`, in a Prometheus that reads the metrics of real programs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use pingsix_test_cluster::{TestCluster, tool_or_skip};
use pingsix_test_programs::{commands, find, free_port, skipped};
use serde_json::{Value, json};

use crate::reader::{Reader, cluster, page, root};
use crate::test_env::eventually_async;

/// Panels that may have no data while nothing fails: their counters begin with the first failure, or with a policy.
const EMPTY_AT_REST: [&str; 3] =
    ["Errors of watches and publications", "Rate limits", "Rejected connections and dropped datagrams"];

fn folder() -> PathBuf {
    root().join("deploy/monitoring")
}

fn alerts() -> Vec<Value> {
    let file: Value =
        serde_saphyr::from_str(&std::fs::read_to_string(folder().join("alerts.yaml")).unwrap()).unwrap();
    let groups = file["groups"].as_array().unwrap().iter();
    groups.flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

/// The titles of panels, and their queries with values for the variables of the dashboard.
fn panels() -> Vec<(String, Vec<String>)> {
    let text = std::fs::read_to_string(folder().join("dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter().filter(|panel| panel["type"] != "row");
    panels
        .map(|panel| {
            let queries = panel["targets"].as_array().unwrap().iter().map(|target| {
                let query = target["expr"].as_str().unwrap();
                let query = query.replace("$__rate_interval", "1m");
                let query = query.replace("$job", ".*").replace("$data_plane_job", ".*");
                assert!(!query.contains('$'), "a variable without a value: {query}");
                query
            });
            (panel["title"].as_str().unwrap().to_owned(), queries.collect())
        })
        .collect()
}

/// The metrics of a query.
fn metrics(query: &str) -> impl Iterator<Item = &str> {
    let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| {
        ["pingsix_", "http_"].iter().any(|beginning| word.starts_with(beginning)) || *word == "bandwidth"
    })
}

#[test]
fn the_dashboard_conforms_to_the_schema_of_grafana() {
    let Some(checker) = tool_or_skip("dashboard") else { return };
    let check = |file: &Path| {
        let output = Command::new(&checker).arg(file).output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let file = folder().join("dashboard.json");
    let (conforms, errors) = check(&file);
    assert!(conforms, "{errors}");
    let misspelt = std::fs::read_to_string(&file).unwrap().replacen("\"fillOpacity\"", "\"opacity\"", 1);
    let scratch = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&scratch, misspelt).unwrap();
    let (conforms, errors) = check(scratch.path());
    assert!(!conforms && errors.contains("unexpected field 'opacity'"), "{errors}");
}

#[test]
fn each_metric_is_documented_and_each_alert_leads_to_a_symptom() {
    let documented =
        ["reference/operations.md", "reference/sidecar.md", "how-to/monitor.md"].map(page).concat();
    let expressions = alerts().into_iter().map(|alert| alert["expr"].as_str().unwrap().to_owned());
    let queries: Vec<String> =
        panels().into_iter().flat_map(|(_, queries)| queries).chain(expressions).collect();
    assert!(queries.len() > 50);
    for query in &queries {
        assert!(metrics(query).next().is_some(), "{query}");
        for metric in metrics(query) {
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|part| metric.strip_suffix(part));
            let family = family.unwrap_or(metric);
            assert!(documented.contains(&format!("`{family}`")), "{metric} in {query}");
        }
    }
    let list = page("how-to/monitor.md");
    let troubleshoot = page("how-to/troubleshoot.md");
    for alert in alerts() {
        let (name, severity) =
            (alert["alert"].as_str().unwrap(), alert["labels"]["severity"].as_str().unwrap());
        let summary = alert["annotations"]["summary"].as_str().unwrap().trim_end_matches('.');
        assert!(list.contains(&format!("| `{name}` | {severity} | {summary} |\n")), "{name}");
        let runbook = alert["annotations"]["runbook_url"].as_str().unwrap();
        let (page, section) = runbook.split_once('#').unwrap_or((runbook, ""));
        assert!(root().join(page.split_once("/main/").unwrap().1).is_file(), "{runbook}");
        let sections = troubleshoot.lines().filter_map(|line| line.strip_prefix("## "));
        let mut anchors = sections.map(|section| section.to_lowercase().replace(' ', "-"));
        assert!(section.is_empty() || anchors.any(|anchor| anchor == section), "{runbook}");
    }
    assert_eq!(list.matches("| `Pingsix").count(), alerts().len());
}

#[test]
fn each_alert_fires_at_its_fault_and_not_at_rest() {
    let Some(promtool) = find("promtool") else {
        return skipped(
            "alerts are NOT TRIED: there is no promtool, which Debian has in the package prometheus",
        );
    };
    for arguments in [["check", "rules", "alerts.yaml"], ["test", "rules", "alerts.test.yaml"]] {
        let output = Command::new(&promtool).args(arguments).current_dir(folder()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let tests = std::fs::read_to_string(folder().join("alerts.test.yaml")).unwrap();
    for alert in alerts() {
        let name = alert["alert"].as_str().unwrap();
        assert!(tests.contains(&format!("alertname=\"{name}\"")), "{name} fires in no test");
    }
}

#[test]
fn the_dashboard_counts_the_leaders_of_each_installation() {
    let Some(promtool) = find("promtool") else {
        return skipped(
            "the dashboard is NOT TRIED: there is no promtool, which Debian has in the package prometheus",
        );
    };
    let leaders = panels().into_iter().find(|(title, _)| title == "Leader").unwrap().1.remove(0);
    let series = |namespace: &str, instance: &str, leads: u8| {
        let labels = format!("job=\"controller\", namespace=\"{namespace}\", instance=\"{instance}\"");
        json!({ "series": format!("pingsix_gateway_leader{{{labels}}}"), "values": format!("{leads}x5") })
    };
    let sample = |namespace: &str, value: u8| json!({ "labels": format!("{{job=\"controller\", namespace=\"{namespace}\"}}"), "value": value });
    let samples = [sample("one", 1), sample("other", 0)];
    let test = json!({
        "interval": "1m",
        "input_series": [series("one", "a", 1), series("one", "b", 0), series("other", "a", 0)],
        "promql_expr_test": [{ "expr": leaders, "eval_time": "5m", "exp_samples": samples }],
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    // JSON is YAML.
    std::fs::write(&file, json!({ "evaluation_interval": "1m", "tests": [test] }).to_string()).unwrap();
    let output = Command::new(promtool).args(["test", "rules"]).arg(file.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// The ports of metrics, as the chart's monitors find them: those of the controller, and of Pods of data planes by name.
///
/// The prometheus of Debian finds no targets in Kubernetes.
async fn targets(cluster: &TestCluster) -> [Vec<String>; 2] {
    let pods = Api::<Pod>::all(cluster.admin()).list(&ListParams::default()).await.unwrap().items;
    let (mut controllers, mut data_planes) = (Vec::new(), Vec::new());
    for pod in pods {
        let Some(address) = pod.status.as_ref().and_then(|status| status.pod_ip.as_ref()) else { continue };
        let spec = pod.spec.as_ref().unwrap();
        let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
        for port in containers.flat_map(|container| container.ports.iter().flatten()) {
            let target = format!("{address}:{}", port.container_port);
            match port.name.as_deref().unwrap_or_default() {
                "health" => controllers.push(target),
                name if name.starts_with("metrics-") => data_planes.push(target),
                _ => {}
            }
        }
    }
    [controllers, data_planes]
}

/// Prometheus on loopback.
struct Prometheus {
    address: String,
    _process: tokio::process::Child,
}

impl Prometheus {
    async fn start(program: &Path, cluster: &TestCluster) -> Self {
        let address = format!("127.0.0.1:{}", free_port());
        let file = cluster.folder().join("prometheus.yaml");
        let [controllers, data_planes] = targets(cluster).await;
        let job = |name: &str, namespace: &str, targets: &[String]| {
            let targets = json!([{ "targets": targets, "labels": { "namespace": namespace } }]);
            json!({ "job_name": name, "static_configs": targets })
        };
        let configuration = json!({
            "global": { "scrape_interval": "1s", "evaluation_interval": "1s" },
            "rule_files": [folder().join("alerts.yaml")],
            "scrape_configs": [
                job("controller", "pingsix-system", &controllers),
                job("data-planes", "quickstart", &data_planes),
            ],
        });
        // JSON is YAML.
        std::fs::write(&file, configuration.to_string()).unwrap();
        let process = tokio::process::Command::new(program)
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", cluster.folder().join("prometheus").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=warn")
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { address, _process: process }
    }

    /// The result of a query; `None` if Prometheus refuses it or does not answer yet.
    async fn query(&self, query: &str) -> Option<Vec<Value>> {
        let output = tokio::process::Command::new("curl")
            .args(["--silent", "--fail", "--get", "--noproxy", "*", "--max-time", "10"])
            .arg(format!("http://{}/api/v1/query", self.address))
            .arg("--data-urlencode")
            .arg(format!("query={query}"))
            .output()
            .await
            .unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).ok()?;
        (answer["status"] == "success").then(|| answer["data"]["result"].as_array().unwrap().clone())
    }

    async fn has(&self, query: &str) -> bool {
        self.query(query).await.is_some_and(|series| !series.is_empty())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_query_has_data_from_real_programs() {
    const TEST: &str = "monitoring::each_query_has_data_from_real_programs";
    let Some(program) = find("prometheus") else {
        return skipped(&format!("{TEST}: NOT RUN: there is no prometheus, which Debian has in a package"));
    };
    let Some(cluster) = cluster(TEST).await else { return };
    let mut reader = Reader::new(&cluster);
    let tutorial = page("tutorial/in-a-cluster.md");
    let (before, _) = tutorial.split_once("## Clean up").unwrap();
    for command in commands(before) {
        reader.run(command).await;
    }
    reader.run("kubectl apply -f deploy/quickstart/protect/metrics.yaml").await;
    reader.run("kubectl apply -f testdata/monitoring/stream.yaml").await;
    reader.run("kubectl -n quickstart wait --timeout=2m --for=jsonpath='{.spec.replicas}'=1 deployment/web-pingsix").await;
    reader.run("kubectl -n quickstart rollout status deployment/web-pingsix").await;
    reader.run("kubectl -n quickstart wait --timeout=2m --for=condition=Programmed gateway/web").await;
    let prometheus = Prometheus::start(&program, &cluster).await;
    for metric in
        ["pingsix_gateway_leader", "pingsix_control_plane_pending_revision", "pingsix_sidecar_faults"]
    {
        eventually_async(metric, async || prometheus.has(metric).await).await;
    }
    // Rates need two samples, and counters of requests begin with the first one.
    let traffic = "curl -s -o /dev/null --max-time 2 -H 'Host: hello.example' \"http://$ADDRESS/get\" \"http://$ADDRESS:5432/\"; \
         bash -c \"echo question >/dev/udp/$ADDRESS/5353\"";
    let mut lacking = Vec::new();
    for (title, queries) in panels() {
        for query in queries {
            let found = if EMPTY_AT_REST.contains(&title.as_str()) {
                prometheus.query(&query).await.is_some()
            } else {
                let mut found = false;
                for _ in 0..60 {
                    reader.attempt(traffic).await;
                    found = prometheus.has(&query).await;
                    if found {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
                found
            };
            if !found {
                lacking.push(format!("{title}: {query}"));
            }
        }
    }
    assert!(lacking.is_empty(), "no data:\n{}", lacking.join("\n"));
    for alert in alerts() {
        let expression = alert["expr"].as_str().unwrap();
        assert!(prometheus.query(expression).await.is_some(), "{expression}");
    }
    // Without an error no alert fires.
    let firing = prometheus.query("ALERTS{alertstate=\"firing\"}").await.unwrap();
    assert!(firing.is_empty(), "{firing:?}");
}
