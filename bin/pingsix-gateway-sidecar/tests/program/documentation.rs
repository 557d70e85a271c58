//! The reference page of the program.

use std::collections::BTreeSet;

use crate::process::{Sidecar, command};

const PAGE: &str = include_str!("../../../../docs/reference/sidecar.md");

/// The words of a text that begin like this.
fn words<'t>(text: &'t str, beginning: &str) -> BTreeSet<&'t str> {
    let is_separator = |character: char| !(character.is_ascii_alphanumeric() || "-_".contains(character));
    let is_word = |word: &&str| word.starts_with(beginning) && !word.trim_matches('-').is_empty();
    text.split(is_separator).filter(is_word).collect()
}

#[test]
fn the_page_has_every_option_and_no_other() {
    let help = String::from_utf8(command(&["--help"]).output().unwrap().stdout).unwrap();
    let options = |text| {
        let mut options = words(text, "--");
        for general in ["--help", "--version"] {
            options.remove(general);
        }
        options
    };
    // The program of the example has an option of its own.
    let documented: BTreeSet<_> = options(PAGE).into_iter().filter(|option| *option != "--stream").collect();
    let helped: BTreeSet<_> = options(&help).into_iter().filter(|option| *option != "--stream").collect();
    assert!(helped.len() > 10);
    assert_eq!(documented, helped);
    for option in helped {
        let variable = format!("PINGSIX_SIDECAR_{}", option[2..].to_uppercase().replace('-', "_"));
        assert!(help.contains(&format!("[env: {variable}=]")), "{option}");
    }
}

#[tokio::test]
async fn the_page_has_every_metric_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("streams.yaml");
    let sidecar = Sidecar::start(&["--streams", &format!("--streams-file={}", file.display())]);
    // Families without a series are not written.
    sidecar.until("the fault", |page| page["error_kind"] == "file_unusable").await;
    let port = pingsix_test_programs::free_port();
    let route = format!(
        "stream_routes:\n\
         - {{id: u, server_port: {port}, protocol: udp, targets: [{{reject: no_route, weight: 1}}]}}\n\
         - {{id: t, server_port: {port}, protocol: tcp, targets: [{{reject: no_route, weight: 1}}]}}\n"
    );
    std::fs::write(&file, route).unwrap();
    sidecar.until("the file", |page| page["ready"] == true).await;
    let client = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    client.send_to(b"dropped", ("127.0.0.1", port)).unwrap();
    let mut rejected = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let _ = std::io::Read::read(&mut rejected, &mut [0]);
    let metrics = loop {
        let (_, metrics) = sidecar.get("/metrics");
        if ["stream_dropped_datagrams_total{", "stream_connections_total{"]
            .iter()
            .all(|series| metrics.contains(series))
        {
            break metrics;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    let families: BTreeSet<String> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .filter_map(|line| {
            let (name, kind) = line.split_once(' ')?;
            let suffix = match kind {
                "counter" => "_total",
                "info" => "_info",
                _ => "",
            };
            Some(format!("{name}{suffix}"))
        })
        .collect();
    let documented: BTreeSet<String> = words(PAGE, "pingsix_sidecar_")
        .into_iter()
        .filter(|name| *name != "pingsix_sidecar_")
        .map(str::to_owned)
        .collect();
    assert_eq!(documented, families);
}
