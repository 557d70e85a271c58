//! Processes end with their test, and a test without a cluster says so.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use pingsix_test_cluster::{CONTROLLERS, Error, TestCluster};

use crate::support::{eventually, exists};

/// Set for a test that another test starts as a program of its own.
const ALONE: &str = "PINGSIX_CLUSTER_TEST_ALONE";

async fn pids(cluster: &TestCluster) -> Vec<u32> {
    let controllers = cluster.controller_manager().unwrap();
    let mut pids = Vec::new();
    for process in [cluster.etcd(), cluster.api_server(), controllers] {
        pids.push(process.pid().await.unwrap());
    }
    let supervisors: Vec<u32> = pids.iter().map(|pid| parent(*pid)).collect();
    pids.extend(supervisors);
    pids
}

/// The supervisor of a process.
fn parent(pid: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
    line.trim().parse().unwrap()
}

/// This very program, to run one test alone.
fn alone(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture"])
        .env(ALONE, "yes")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

#[tokio::test]
async fn a_dropped_cluster_leaves_no_process_and_no_folder() {
    let builder = TestCluster::builder().crds(None).controllers(CONTROLLERS);
    let Some(cluster) = builder.start_or_skip().await else { return };
    let (pids, folder) = (pids(&cluster).await, cluster.folder().to_owned());
    assert!(pids.iter().all(|pid| exists(*pid)), "{pids:?}");
    // A paused process cannot do anything for its end.
    cluster.etcd().pause().await.unwrap();
    drop(cluster);
    assert!(!pids.iter().any(|pid| exists(*pid)), "{pids:?}");
    assert!(!folder.exists());
}

#[tokio::test]
async fn a_process_does_not_outlive_its_supervisor() {
    let Some(cluster) = TestCluster::builder().crds(None).start_or_skip().await else { return };
    let pid = cluster.api_server().pid().await.unwrap();
    let killed = Command::new("kill").args(["-9", &parent(pid).to_string()]).status().unwrap();
    assert!(killed.success());
    eventually("the API server is gone", || async { !exists(pid) }).await;
    eventually("the cluster knows", || async { cluster.api_server().pid().await.is_none() }).await;
    cluster.api_server().start().await.unwrap();
    cluster.admin().apiserver_version().await.unwrap();
}

#[tokio::test]
async fn a_program_beside_a_cluster_is_handled_and_ends_like_its_processes() {
    let Some(cluster) = TestCluster::builder().crds(None).start_or_skip().await else { return };
    let command = ["/bin/sh", "-c", "echo $HOME; exec sleep 600"].map(Into::into).to_vec();
    let program = cluster.run("sleeper", command).await.unwrap();
    let has_written = async |times: usize| {
        let log = std::fs::read_to_string(program.log()).unwrap();
        log.lines().filter(|line| *line == cluster.folder().to_str().unwrap()).count() == times
    };
    eventually("it has written", || has_written(1)).await;
    let pid = program.pid().await.unwrap();
    program.pause().await.unwrap();
    program.kill().await.unwrap();
    assert!(!exists(pid));
    program.start().await.unwrap();
    let pid = program.pid().await.unwrap();
    eventually("it has written again", || has_written(2)).await;
    drop(program);
    assert!(!exists(pid));

    let command = vec![cluster.folder().join("none").into()];
    let error = cluster.run("nothing", command).await.unwrap_err();
    assert!(
        matches!(&error, Error::Ended { process: "nothing", log } if log.contains("no such file")),
        "{error}"
    );
}

/// Run by [`a_killed_test_leaves_no_process_and_no_locked_folder`].
#[tokio::test]
async fn holds_a_cluster() {
    if std::env::var_os(ALONE).is_none() {
        return;
    }
    let builder = TestCluster::builder().crds(None).controllers(CONTROLLERS);
    let Some(cluster) = builder.start_or_skip().await else { return };
    let pids: Vec<String> = pids(&cluster).await.iter().map(u32::to_string).collect();
    println!("\nrunning: {} in {}", pids.join(" "), cluster.folder().display());
    tokio::time::sleep(std::time::Duration::from_mins(2)).await;
}

#[tokio::test]
async fn a_killed_test_leaves_no_process_and_no_locked_folder() {
    let mut test = alone("lifetime::holds_a_cluster").spawn().unwrap();
    let lines = BufReader::new(test.stdout.take().unwrap()).lines().map_while(Result::ok);
    let running = lines.into_iter().find_map(|line| line.strip_prefix("running: ").map(str::to_owned));
    test.kill().unwrap();
    test.wait().unwrap();
    // Without a build the other test has ended, and said why.
    let Some(running) = running else { return };
    let (pids, folder) = running.split_once(" in ").unwrap();
    let pids: Vec<u32> = pids.split(' ').map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(pids.len(), 6);
    eventually("all processes are gone", || async { !pids.iter().any(|pid| exists(*pid)) }).await;
    // Unlocked, it is for the next cluster to remove, if that has not happened yet.
    let lock = std::path::Path::new(folder).join("lock");
    eventually("its folder is nobody's", || async {
        std::fs::File::open(&lock).map_or(true, |lock| lock.try_lock().is_ok())
    })
    .await;
    let _ = std::fs::remove_dir_all(folder);
}

/// Run by [`without_a_build_a_test_says_that_it_did_not_run`].
#[tokio::test]
async fn wants_a_cluster() {
    if std::env::var_os(ALONE).is_some() {
        assert!(TestCluster::builder().start_or_skip().await.is_none());
    }
}

#[test]
fn without_a_build_a_test_says_that_it_did_not_run() {
    let nothing = tempfile::tempdir().unwrap();
    let mut test = alone("lifetime::wants_a_cluster");
    test.env("PINGSIX_CLUSTER_CACHE", nothing.path()).env_remove("PINGSIX_CLUSTER");
    let output = test.output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    let expected = "NOT RUN: the test cluster is not built; `just cluster` does that";
    assert_eq!(said.matches(expected).count(), 1, "{said}");

    let output = test.env("PINGSIX_CLUSTER", "required").output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("no test cluster: the test cluster is not built"), "{said}");
}
