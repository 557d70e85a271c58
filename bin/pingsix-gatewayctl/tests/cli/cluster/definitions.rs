//! The judgement of `check` by the definitions of kinds, beside that of the API server.

use pingsix_test_cluster::TestCluster;
use pingsix_translate::manifest::documents;
use serde_json::Value;

use super::dump::LISTS;
use crate::mistakes::mistakes;

/// The API server refuses each mistake for which `check` reports a problem against a definition. The requests store no
/// object.
pub(super) async fn are_judged_as_by_the_api_server(cluster: &TestCluster) {
    let client = cluster.admin();
    let mut refused = 0;
    for mistake in mistakes() {
        let by_definition = ["[UnknownField]", "[DoesNotDecode]", "[InvalidField]"];
        if !by_definition.iter().any(|reason| mistake.says.contains(reason)) {
            continue;
        }
        let mut answers = Vec::new();
        for document in documents(mistake.manifest) {
            let object = document.decode().unwrap();
            let Some(path) = path_of(&object) else { continue };
            let request = http::Request::post(path).header("content-type", "application/json");
            let answer =
                client.request::<Value>(request.body(object.to_string().into_bytes()).unwrap()).await;
            answers.push(answer.map_err(|error| error.to_string()));
        }
        assert!(answers.iter().any(Result::is_err), "{}: {answers:?}", mistake.title);
        refused += 1;
    }
    assert!(refused >= 20, "{refused} mistakes");
}

/// Where an object would be created, as `kubectl apply --dry-run=server` asks.
fn path_of(object: &Value) -> Option<String> {
    let (list, _) = LISTS.iter().find(|(path, kind)| {
        object["kind"] == *kind && path.contains(object["apiVersion"].as_str().unwrap_or_default())
    })?;
    let (version, plural) = list.rsplit_once('/')?;
    Some(format!("{version}/namespaces/shop/{plural}?dryRun=All&fieldValidation=Strict"))
}
