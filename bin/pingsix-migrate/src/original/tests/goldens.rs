//! The models answer the requests of the migrations as the requests say: what ingress-nginx and APISIX document.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pingsix_translate::manifest::documents;
use serde::Deserialize;
use serde_json::Value;

use crate::answer::{Answer, Request};
use crate::original::Original;
use crate::replay;

/// The part of an entry of `requests.yaml` that concerns the original.
#[derive(Debug, Deserialize)]
struct Sample {
    request: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    backends: Option<BTreeMap<String, u64>>,
    status: Option<u16>,
    refused: Option<u16>,
    location: Option<String>,
    #[serde(default)]
    closed: bool,
    preflight: Option<bool>,
    #[serde(default)]
    sees: BTreeMap<String, String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/migrations")
}

/// The objects of a file.
pub(super) fn objects(text: &str) -> Vec<Value> {
    documents(text)
        .into_iter()
        .filter_map(|document| document.decode().ok())
        .filter(Value::is_object)
        .collect()
}

fn request(sample: &Sample) -> Request {
    let (method, url) = sample.request.split_once(' ').unwrap();
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let (host, target) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    Request {
        method: method.to_owned(),
        https: scheme == "https",
        host: sample.headers.get("Host").map_or(host, String::as_str).to_owned(),
        path: path.to_owned(),
        query: query.map(str::to_owned),
        headers: sample.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        client: "127.0.0.1".parse().ok(),
        ..Request::default()
    }
}

/// The difference between an answer and what a sample says.
fn difference(sample: &Sample, answer: &Answer) -> Option<String> {
    let is_as_written = match answer {
        Answer::Unknown(_) => true,
        Answer::Closed => sample.closed,
        Answer::Redirect { status, location } => {
            let is_same = |wanted: &String| replay::is_same_location(location, wanted, &request(sample));
            sample.status == Some(*status) && sample.location.as_ref().is_some_and(is_same)
        }
        Answer::Status(204) => sample.preflight.is_some() || sample.status == Some(204),
        Answer::Status(status) => sample.refused.or(sample.status) == Some(*status),
        Answer::Backends { backends, .. } => {
            let shares: BTreeMap<String, u64> =
                backends.iter().map(|(backend, share)| (backend.service.to_string(), *share)).collect();
            let sees = backends.keys().all(|backend| {
                sample.sees.get("target").is_none_or(|target| *target == backend.target)
                    && sample.sees.get("host").is_none_or(|host| Some(host) == backend.host.as_ref())
            });
            sees && sample.backends.as_ref().is_some_and(|wanted| is_in_proportion(wanted, &shares))
        }
    };
    (!is_as_written).then(|| format!("{answer:?}"))
}

fn is_in_proportion(wanted: &BTreeMap<String, u64>, found: &BTreeMap<String, u64>) -> bool {
    let total = |shares: &BTreeMap<String, u64>| shares.values().sum::<u64>();
    let (of_wanted, of_found) = (total(wanted), total(found));
    wanted.len() == found.len()
        && wanted
            .iter()
            .all(|(name, share)| found.get(name).is_some_and(|other| other * of_wanted == share * of_found))
}

/// Requests whose answers differ from those of the original in a way that documentation explains, and no report.
const KNOWN: [(&str, &str); 9] = [
    // Addresses that a route does not have get 404 in APISIX, and a policy answers 403.
    ("addresses", "GET http://any.example/admin"),
    // A canary without an Ingress to take requests from makes ingress-nginx drop the Service of another canary, too.
    ("nginx-canary-weight", "GET http://shop.example.com/api/v"),
    // The report has the default backend for all hosts.
    ("nginx-default-backend", "GET http://other.example.com/"),
    ("nginx-route-names", "GET http://elsewhere.test/"),
    // The second Gateway, which the sample names, is for hosts whose TLS passes through.
    ("nginx-passthrough-beside-https", "GET http://shop.example.com/"),
    // The API server refuses these objects.
    ("words-of-yaml", "GET http://nothing.example.com/any"),
    ("words-of-yaml", "GET http://toggles.example.com/"),
    ("words-of-yaml", "GET http://annotated.example.com/"),
    // ingress-nginx reads a file of htpasswd from the Secret, and the output reads a user and a password.
    ("nginx-basic-auth", "GET http://shop.example.com/orders"),
];

/// Whether the report says about an object that something is not exact.
fn has_reasons(report: &str, object: &str) -> bool {
    let mut lines = report.lines().skip_while(|line| *line != object).skip(1);
    let marks = ["limited", "impossible", "withheld", "weaker"];
    lines
        .by_ref()
        .take_while(|line| line.starts_with("  "))
        .any(|line| marks.iter().any(|mark| line[2..].starts_with(mark)))
}

#[test]
fn the_models_answer_as_the_migrations_say() {
    let mut directories: Vec<PathBuf> = std::fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    directories.sort();
    let (mut problems, mut known, mut unknown) = (Vec::new(), 0, 0);
    for directory in directories {
        let read = |file: &str| std::fs::read_to_string(directory.join(file)).unwrap_or_default();
        let original = Original::read(&objects(&read("input.yaml")), false);
        let samples: Vec<Sample> = serde_saphyr::from_str(&read("requests.yaml")).unwrap_or_default();
        for sample in &samples {
            let told = original.answer(&request(sample));
            if matches!(told.answer, Answer::Unknown(_)) {
                unknown += 1;
            } else {
                known += 1;
            }
            let Some(difference) = difference(sample, &told.answer) else { continue };
            let name = directory.file_name().unwrap().to_string_lossy().into_owned();
            let is_known = KNOWN.iter().any(|(case, request)| *case == name && *request == sample.request);
            let object = told.by.as_ref().map(|by| by.split(' ').take(2).collect::<Vec<_>>().join(" "));
            // A canary is another object than the one that decides.
            let is_canary = |line: &str| !line.starts_with("  exact") && line.contains("/canary");
            let has_canary = read("report.txt").lines().any(is_canary);
            if is_known
                || has_canary
                || object.is_some_and(|object| has_reasons(&read("report.txt"), &object))
            {
                continue;
            }
            problems.push(format!(
                "{name}: {} {:?}: {difference}, by {:?}",
                sample.request, sample.headers, told.by
            ));
        }
    }
    assert!(problems.is_empty(), "{} of {known}, {unknown} unknown\n{}", problems.len(), problems.join("\n"));
}
