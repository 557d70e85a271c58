use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::json;

use super::*;

fn file(name: &str, text: &str) -> FileObjects {
    FileObjects::decode(&FileText { name: name.to_owned(), origin: Origin::Named, text: Ok(text.into()) })
}

#[test]
fn string_data_is_stored_as_data() {
    let secret =
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: YQ==, b: YQ==}\nstringData: {b: x}\n";
    let file = file("s.yaml", secret);
    assert!(file.findings.is_empty(), "{:?}", file.findings);
    let Object::Secret(secret) = &file.objects[0].1 else { panic!("{:?}", file.objects) };
    let data = secret.data.as_ref().unwrap();
    assert_eq!((&*data["a"].0, &*data["b"].0), (&b"a"[..], &b"x"[..]));
    assert_eq!(secret.metadata.namespace.as_deref(), Some("default"));
}

#[test]
fn an_export_of_an_api_server_is_read_without_findings() {
    let exported = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "s", "namespace": "n", "uid": "u", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": { "a": "b" }, "managedFields": [{ "manager": "kubectl", "fieldsV1": { "f:metadata": {} } }],
        },
        "spec": { "clusterIP": "None", "ports": [{ "port": 80, "protocol": "TCP", "targetPort": "http" }],
            "sessionAffinity": "None", "type": "ClusterIP" },
        "status": { "loadBalancer": {} },
    });
    let file = file("s.json", &exported.to_string());
    assert!(file.findings.is_empty(), "{:?}", file.findings);
    assert_eq!(file.objects.len(), 1);
}

#[test]
fn typed_lists_may_leave_the_type_of_items_out() {
    let list = json!({
        "apiVersion": "v1", "kind": "ServiceList", "items": [{ "metadata": { "name": "a" } }, { "metadata": { "name": "b" } }],
    });
    assert_eq!(file("l.json", &list.to_string()).objects.len(), 2);
}

#[test]
fn cluster_scoped_objects_lose_their_namespace() {
    let class = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
        "metadata": { "name": "c", "namespace": "n" }, "spec": { "controllerName": "a.b/c" },
    });
    let manifests = Manifests::collect([file("c.json", &class.to_string())], &[]);
    assert!(manifests.objects.contains(&ObjectKey::new(Kind::GatewayClass, "", "c")));
}

#[test]
fn supplied_endpoints_are_parsed() {
    let supplied: SuppliedEndpoints = "shop/cart:80=127.0.0.1:1,[::1]:2".parse().unwrap();
    assert_eq!((supplied.port, supplied.addresses.len()), (Some(80), 2));
    for wrong in
        ["", "shop/cart", "cart=1.2.3.4:5", "shop/cart:x=1.2.3.4:5", "shop/cart=1.2.3.4", "/cart=1.2.3.4:5"]
    {
        assert!(wrong.parse::<SuppliedEndpoints>().is_err(), "{wrong}");
    }
}

#[test]
fn items_of_a_list_are_placed_where_they_begin() {
    let list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n  data:\n    t: |\n      - apiVersion: v1\n\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: b}\nmetadata: {}\n";
    let lines =
        |file: FileObjects| file.objects.iter().map(|(place, _)| place.location.line).collect::<Vec<_>>();
    assert_eq!(lines(file("l.yaml", list)), [4, 11]);
    let items = ["a", "b"].map(
        |name| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": {} }),
    );
    let list = json!({ "apiVersion": "v1", "items": items, "kind": "List" });
    assert_eq!(lines(file("l.json", &serde_json::to_string_pretty(&list).unwrap())), [4, 12]);
    assert_eq!(lines(file("l.json", &list.to_string())), [1, 1]);
}

/// Random histories of files: whatever was there before, the manifests are those of the files that are there now.
#[test]
fn after_any_history_the_manifests_are_those_of_the_files() {
    let mut rng = SmallRng::seed_from_u64(40);
    let supplied: [SuppliedEndpoints; 1] = ["default/s0=127.0.0.1:1".parse().unwrap()];
    for _ in 0..50 {
        let mut manifests = Manifests::default();
        let mut files: BTreeMap<FilePosition, FileObjects> = BTreeMap::new();
        for _ in 0..20 {
            let changes = (0..rng.random_range(1..4)).map(|_| {
                let name = format!("{}.yaml", rng.random_range(0..6));
                let position = FilePosition { argument: 0, path: Path::new(&name).into() };
                let text: String = (0..rng.random_range(0..4)).map(|_| random_document(&mut rng)).collect();
                let content = rng.random_bool(0.7).then(|| file(&name, &text));
                (position, content)
            });
            let changes: BTreeMap<FilePosition, Option<FileObjects>> = changes.collect();
            for (position, content) in &changes {
                match content {
                    Some(content) => files.insert(position.clone(), content.clone()),
                    None => files.remove(position),
                };
            }
            let changes = changes.into_iter().map(|(position, content)| (position, content.map(Arc::new)));
            manifests.update(changes, &supplied);
            let fresh = Manifests::collect(files.values().cloned(), &supplied);
            let sorted = |manifests: &Manifests| {
                let mut findings = manifests.findings();
                findings.sort();
                findings
            };
            assert_eq!(sorted(&manifests), sorted(&fresh));
            assert_eq!(manifests.count(), fresh.count());
            assert_eq!(format!("{:?}", manifests.objects), format!("{:?}", fresh.objects));
            for key in fresh.definitions.keys() {
                assert_eq!(manifests.location(key), fresh.location(key), "{key}");
                let (Some(one), Some(other)) = (manifests.given.get(key), fresh.given.get(key)) else {
                    panic!("{key}")
                };
                let (Object::Service(one), Object::Service(other)) = (one, other) else { continue };
                assert!(Arc::ptr_eq(&one, &other), "{key}");
            }
        }
    }
}

/// A Service, an EndpointSlice of one, an object of an unknown kind, or a problem.
fn random_document(rng: &mut SmallRng) -> String {
    let number = rng.random_range(0..4);
    match rng.random_range(0..6) {
        0 => format!("apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: d{number}}}\n---\n"),
        1 => "kind: [\n---\n".to_owned(),
        2 => format!(
            "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: e{number}, labels: {{kubernetes.io/service-name: s{number}}}}}\naddressType: IPv4\nendpoints: [{{addresses: [10.0.0.1]}}]\nports: [{{port: 80}}]\n---\n"
        ),
        _ => format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: s{number}}}\nspec: {{ports: [{{port: 80}}]}}\n---\n"
        ),
    }
}
