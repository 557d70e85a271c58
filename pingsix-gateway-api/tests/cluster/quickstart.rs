//! The pages about a cluster, command by command.

use std::path::PathBuf;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::Api;
use kube::api::ListParams;
use pingsix_test_cluster::{Channel, TestCluster};
use pingsix_test_programs::{commands, program_of};

use crate::reader::{Images, Reader, archive, cluster, cluster_with, node, page};
use crate::test_env::{eventually_async, pingsix};

/// The objects of a Gateway.
async fn of_the_gateway(cluster: &TestCluster) -> (usize, usize) {
    let of_gateway = ListParams::default().labels("gateway.networking.k8s.io/gateway-name=web");
    let deployments = Api::<Deployment>::namespaced(cluster.admin(), "quickstart");
    let services = Api::<Service>::namespaced(cluster.admin(), "quickstart");
    let deployments = deployments.list(&of_gateway).await.unwrap().items.len();
    (deployments, services.list(&of_gateway).await.unwrap().items.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_quick_start_does_what_it_says() {
    const TEST: &str = "quickstart::the_quick_start_does_what_it_says";
    let Some(cluster) = cluster(TEST).await else { return };
    follow_the_tutorial(&cluster).await;
}

/// The controller and the sidecar have no files but those of their images. The sidecar finds the feed by its name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_quick_start_runs_from_the_images() {
    const TEST: &str = "quickstart::the_quick_start_runs_from_the_images";
    let Some(folder) = std::env::var_os("PINGSIX_IMAGES").map(PathBuf::from) else {
        pingsix::print_message(&format!("{TEST}: NOT RUN: PINGSIX_IMAGES names no folder with images"));
        return;
    };
    let data_plane = archive(&folder, "pingsix").or_else(|| pingsix::binary(TEST).map(PathBuf::from));
    let with_data_plane = data_plane.is_some();
    let node = node(Images::Archives(&folder), data_plane).await;
    let Some(cluster) = cluster_with(TEST, node).await else { return };
    let images = if with_data_plane {
        follow_the_tutorial(&cluster).await
    } else {
        let mut reader = Reader::new(&cluster);
        let tutorial = page("tutorial/in-a-cluster.md");
        for command in commands(&tutorial).into_iter().take_while(|command| !command.contains("Programmed")) {
            reader.run(command).await;
        }
        images(&cluster).await
    };
    assert!(images.len() > 1 && images.iter().all(|image| image.starts_with("sha256:")), "{images:?}");
}

/// The images of the controller's containers.
async fn images(cluster: &TestCluster) -> Vec<String> {
    let pods = Api::<Pod>::namespaced(cluster.admin(), "pingsix-system");
    let pods = pods.list(&ListParams::default()).await.unwrap().items;
    let containers = pods.into_iter().filter_map(|pod| pod.status?.container_statuses).flatten();
    containers.map(|container| container.image_id).collect()
}

/// Types all commands, up to the end of everything. Returns the images of the controller before.
async fn follow_the_tutorial(cluster: &TestCluster) -> Vec<String> {
    let mut reader = Reader::new(cluster);
    let mut seen = Vec::new();
    for command in commands(&page("tutorial/in-a-cluster.md")) {
        reader.run(command).await;
        if command.starts_with("ADDRESS=") {
            assert_eq!(of_the_gateway(cluster).await, (1, 1), "a Deployment and a Service");
            seen = images(cluster).await;
        }
    }
    assert!(reader.outputs > 1);
    eventually_async("the end of all that belongs to the Gateway", async || {
        of_the_gateway(cluster).await == (0, 0)
    })
    .await;
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_without_a_load_balancer_does_what_the_page_says() {
    const TEST: &str = "quickstart::a_gateway_without_a_load_balancer_does_what_the_page_says";
    let Some(cluster) = cluster(TEST).await else { return };
    let mut reader = Reader::new(&cluster).with_definitions_of(&cluster, Channel::OldestStandard);
    for command in commands(&page("tutorial/local-cluster.md")) {
        reader.run(command).await;
    }
    assert_eq!(reader.outputs, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_symptom_has_a_command_that_works() {
    const TEST: &str = "quickstart::each_symptom_has_a_command_that_works";
    let plugin = program_of("pingsix-gatewayctl", "kubectl-pingsix").await;
    let Some(cluster) = cluster(TEST).await else { return };
    let mut reader = Reader::new(&cluster)
        .with_plugin(&plugin, cluster.folder())
        .with_definitions_of(&cluster, Channel::NewestStandard);
    let tutorial = page("tutorial/in-a-cluster.md");
    let (before, _) = tutorial.split_once("## Clean up").unwrap();
    for command in commands(before) {
        reader.run(command).await;
    }
    let page = page("how-to/troubleshoot.md");
    let commands = commands(&page);
    assert!(commands.len() > 15);
    for command in commands {
        let output = reader.look(command).await;
        // The cluster has no error, so these commands alone may print nothing.
        let may_be_empty = ["get events", "check"].iter().any(|part| command.contains(part));
        assert!(may_be_empty || !output.is_empty(), "{command} prints nothing");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_route_is_protected_as_the_page_says() {
    const TEST: &str = "quickstart::a_route_is_protected_as_the_page_says";
    let Some(cluster) = cluster(TEST).await else { return };
    let mut reader = Reader::new(&cluster);
    let tutorial = page("tutorial/in-a-cluster.md");
    let (before, _) = tutorial.split_once("## Clean up").unwrap();
    for command in commands(before) {
        reader.run(command).await;
    }
    let page = page("how-to/protect-a-route.md");
    let (_, in_a_cluster) = page.split_once("## In a cluster").unwrap();
    for command in commands(in_a_cluster) {
        reader.run(command).await;
    }
    assert!(reader.outputs > 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_chart_installs_upgrades_and_uninstalls_as_the_page_says() {
    const TEST: &str = "quickstart::the_chart_installs_upgrades_and_uninstalls_as_the_page_says";
    let Some(cluster) = cluster(TEST).await else { return };
    let mut reader = Reader::new(&cluster);
    for command in commands(&page("how-to/install-with-helm.md")) {
        reader.run(command).await;
    }
    assert_eq!(reader.outputs, 4);
}
