use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use pingsix_translate::snapshot::Object;
use pingsix_translate::{Kind, ObjectKey};

use super::*;

fn write(path: &Path, name: &str) {
    let service = format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{ports: [{{port: 80}}]}}\n"
    );
    fs::write(path, service).unwrap();
}

fn service(cache: &ManifestCache, name: &str) -> Option<Object> {
    cache.manifests().objects.get(&ObjectKey::new(Kind::Service, "default", name))
}

/// Whether two loads have the very same object.
fn is_same(one: Option<Object>, other: Option<Object>) -> bool {
    match (one, other) {
        (Some(Object::Service(one)), Some(Object::Service(other))) => Arc::ptr_eq(&one, &other),
        _ => panic!("a Service is missing"),
    }
}

fn found(directory: &tempfile::TempDir) -> Found {
    Found::new(vec![directory.path().to_owned()]).unwrap()
}

fn all(found: &Found) -> BTreeSet<FilePosition> {
    found.files.files.keys().cloned().collect()
}

#[test]
fn of_many_files_the_changed_one_is_read() {
    let directory = tempfile::tempdir().unwrap();
    for number in 0..100 {
        write(&directory.path().join(format!("{number}.yaml")), &format!("s{number}"));
    }
    let mut cache = ManifestCache::new(Vec::new());
    let before = found(&directory);
    let settled = SystemTime::now() + Duration::from_secs(5);
    assert_eq!(cache.load_at(&before, all(&before), settled), 100);
    let (one, other) = (service(&cache, "s1"), service(&cache, "s2"));

    write(&directory.path().join("1.yaml"), "new");
    write(&directory.path().join("2.yaml"), "unnoticed");
    let now = found(&directory);
    let one_file = all(&now).into_iter().filter(|position| position.path.ends_with("1.yaml")).collect();
    assert_eq!(cache.load_at(&now, one_file, settled), 1);
    assert!(one.is_some() && service(&cache, "s1").is_none() && service(&cache, "new").is_some());
    assert!(is_same(service(&cache, "s2"), other));

    fs::remove_file(directory.path().join("3.yaml")).unwrap();
    let later = found(&directory);
    assert_eq!(cache.load_at(&later, later.files.changes(&now.files), settled), 1);
    assert!(service(&cache, "s3").is_none() && service(&cache, "s4").is_some());
}

#[test]
fn a_state_is_trusted_once_every_later_write_changes_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("one.yaml");
    write(&path, "one");
    let found = found(&directory);
    let mut cache = ManifestCache::new(Vec::new());
    assert_eq!(cache.load(&found, all(&found)), 1);
    let first = service(&cache, "one");
    // The file is read again, and its objects stay, because its text is the same.
    assert_eq!(cache.load(&found, BTreeSet::new()), 0);
    assert!(is_same(first, service(&cache, "one")));
    write(&path, "two");
    assert_eq!(cache.load(&found, BTreeSet::new()), 1);
    assert!(service(&cache, "two").is_some());
    let settled = SystemTime::now() + Duration::from_secs(5);
    assert_eq!(cache.load_at(&found, BTreeSet::new(), settled), 0);
    write(&path, "three");
    assert_eq!(cache.load_at(&found, BTreeSet::new(), settled), 0);
    assert!(service(&cache, "two").is_some());
}
