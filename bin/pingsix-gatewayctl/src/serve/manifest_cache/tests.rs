use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use pingsix_translate::snapshot::Object;
use pingsix_translate::{Kind, ObjectKey};

use super::*;
use crate::manifest::find;

fn write(path: &Path, name: &str) {
    let service = format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{ports: [{{port: 80}}]}}\n"
    );
    fs::write(path, service).unwrap();
}

fn service(manifests: &Manifests, name: &str) -> Option<Object> {
    manifests.objects.get(&ObjectKey::new(Kind::Service, "default", name))
}

/// Whether two loads have the very same object.
fn is_same(one: Option<Object>, other: Option<Object>) -> bool {
    match (one, other) {
        (Some(Object::Service(one)), Some(Object::Service(other))) => std::sync::Arc::ptr_eq(&one, &other),
        _ => panic!("a Service is missing"),
    }
}

#[test]
fn unchanged_files_are_not_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let (one, other) = (directory.path().join("one.yaml"), directory.path().join("other.yaml"));
    write(&one, "one");
    write(&other, "other");
    let found = || Found::Ok(find(&[directory.path().to_owned()]).unwrap());
    let mut cache = ManifestCache::new(Vec::new());
    let first = cache.load(&found());
    // A state is not trusted until no later write can leave it the same.
    let second = cache.load(&found());
    assert!(!is_same(service(&first, "one"), service(&second, "one")));

    let settled = SystemTime::now() + Duration::from_secs(5);
    cache.load_at(&found(), settled);
    let before = cache.load_at(&found(), settled);
    write(&other, "another");
    let after = cache.load_at(&found(), settled);
    assert!(is_same(service(&before, "one"), service(&after, "one")));
    assert!(service(&after, "other").is_none() && service(&after, "another").is_some());
    fs::remove_file(&one).unwrap();
    assert!(service(&cache.load_at(&found(), settled), "one").is_none());
}
