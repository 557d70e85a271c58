//! Clusters that cannot be read.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use pingsix_test_cluster::TestCluster;
use pingsix_test_programs::free_address;

use crate::support::{Manifests, run};

/// A role for everything that `check` reads, without HTTPRoutes and without the bystander.
const ROLE: &str = r"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: reader }
rules:
- { apiGroups: ['', networking.k8s.io, discovery.k8s.io], resources: [services, namespaces, ingresses, ingressclasses, endpointslices, configmaps], verbs: [list, get] }
- { apiGroups: [pingsix.io], resources: ['*'], verbs: [list] }
- apiGroups: [gateway.networking.k8s.io]
  resources: [gatewayclasses, gateways, listenersets, grpcroutes, tlsroutes, tcproutes, udproutes, backendtlspolicies, referencegrants]
  verbs: [list]
";

/// A kind that the user may not read is named, with the verb.
pub(super) async fn forbidden_kinds(cluster: &TestCluster) {
    let user = cluster.user("reader").unwrap();
    cluster.apply(ROLE).await.unwrap();
    cluster.bind_cluster_role(user, "reader").await.unwrap();
    let kubeconfig = cluster.kubeconfig(user).unwrap();
    let kubeconfig = kubeconfig.to_str().unwrap();
    run(["check", "--cluster", "--kubeconfig", kubeconfig]).exits(2).prints_error(
        "error: the API server forbids to list HTTPRoute: httproutes.gateway.networking.k8s.io is forbidden",
    );
    run(["check", "--cluster", "--kubeconfig", kubeconfig, "-n", "shop"])
        .exits(2)
        .prints_error("the API server forbids to list HTTPRoute in namespace shop: ");
    let routes = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: { name: routes }\n\
        rules: [{ apiGroups: [gateway.networking.k8s.io], resources: [httproutes], verbs: [list] }]\n";
    cluster.apply(routes).await.unwrap();
    cluster.bind_cluster_role(user, "routes").await.unwrap();
    // No object in this namespace refers to a Secret, so none is read.
    run(["check", "--cluster", "--kubeconfig", kubeconfig, "-n", "default"]).prints("0 errors");
    run(["check", "--cluster", "--kubeconfig", kubeconfig])
        .exits(2)
        .prints_error("error: the API server forbids to get Secret ");
    run(["check", "--cluster", "--kubeconfig", kubeconfig, "-n", "missing"])
        .exits(2)
        .prints_error("--namespace missing: the cluster has no such namespace");
}

/// The parameters of a class are read from every namespace, and a note names those that the user may not get.
pub(super) async fn parameters_elsewhere(cluster: &TestCluster, administrator: &str) {
    let objects = "apiVersion: v1\nkind: Namespace\nmetadata: { name: elsewhere }\n---\n\
        apiVersion: pingsix.io/v1alpha1\nkind: PingsixProxy\nmetadata: { name: limits, namespace: elsewhere }\n\
        spec: { attached: {} }\n---\n\
        apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: { name: limited }\n\
        spec:\n  controllerName: pingsix.io/gateway-controller\n\
        \x20 parametersRef: { group: pingsix.io, kind: PingsixProxy, name: limits, namespace: elsewhere }\n";
    cluster.apply(objects).await.unwrap();
    let check = ["check", "--cluster", "-n", "default", "--kubeconfig"];
    let missing = "There is no PingsixProxy elsewhere/limits that can be read.";
    let all = run(check.iter().chain(&[administrator]));
    assert!(!all.out.contains(missing) && all.err.is_empty(), "{}{}", all.out, all.err);

    let kubeconfig = cluster.kubeconfig(cluster.user("reader").unwrap()).unwrap();
    run(check.iter().chain(&[kubeconfig.to_str().unwrap()]))
        .prints(missing)
        .prints_error("note: the API server forbids to get PingsixProxy elsewhere/limits: ");
}

fn kubeconfig(server: &str) -> Manifests {
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: one\ncontexts:\n- {{ name: one, context: {{ cluster: c, user: u }} }}\n\
        - {{ name: two, context: {{ cluster: gone, user: u }} }}\nclusters:\n- {{ name: c, cluster: {{ server: '{server}' }} }}\n\
        users:\n- {{ name: u, user: {{ token: sentinel }} }}\n"
    );
    Manifests::new(&[("config.yaml", &text)])
}

#[test]
fn an_unusable_kubeconfig_is_named() {
    let files = kubeconfig("http://127.0.0.1:1");
    files.write("broken.yaml", "clusters: [\nusers: sentinel\n");
    let path = |name: &str| files.path().join(name).to_str().unwrap().to_owned();
    let check = |name: &str, more: &[&str]| {
        let arguments = ["check", "--cluster", "--kubeconfig"].map(str::to_owned).into_iter();
        let more = more.iter().map(|argument| (*argument).to_owned());
        let run = run(arguments.chain([path(name)]).chain(more)).exits(2);
        assert!(!run.err.contains("sentinel"), "{}", run.err);
        run
    };
    check("missing.yaml", &[]).prints_error("cannot read --kubeconfig ").prints_error("No such file");
    check("broken.yaml", &[]).prints_error("broken.yaml: the content is not a kubeconfig");
    check("config.yaml", &["--context", "three"])
        .prints_error("has no context three, which --context names; known: one, two");
    check("config.yaml", &["--context", "two"]).prints_error("the cluster gone, which does not exist");
}

#[test]
fn a_server_without_an_answer_is_named_within_the_time_limit() {
    let check = |server: &str| {
        let files = kubeconfig(server);
        let path = files.path().join("config.yaml");
        let started = Instant::now();
        let run =
            run(["check", "--cluster", "--request-timeout", "1", "--kubeconfig", path.to_str().unwrap()]);
        assert!(started.elapsed() < Duration::from_secs(30), "{}", run.err);
        assert!(!run.err.contains("sentinel"), "{}", run.err);
        run.exits(2)
    };
    let address = free_address();
    check(&format!("http://{address}")).prints_error(&format!("cannot use the API server at {address}: "));
    // The server accepts the connection, and is silent.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    check(&format!("http://{}", silent.local_addr().unwrap())).prints_error("no answer within 1 s");
}
