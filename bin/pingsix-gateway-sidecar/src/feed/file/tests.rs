use std::fs;

use super::*;

const ROUTE: &str = "stream_routes: [{id: r, server_port: 5432}]\n";

fn reader(file: &std::path::Path) -> FileReader {
    FileReader::new(file.to_owned(), None).unwrap()
}

async fn keys(reader: &mut FileReader) -> Result<(i64, Vec<String>), &'static str> {
    let changed = tokio::time::timeout(Duration::from_secs(30), reader.changed()).await.expect("it changes");
    let documents = changed.map_err(|error| error.category())?;
    Ok((documents.revision, documents.by_key.keys().cloned().collect()))
}

fn route(id: &str) -> Vec<String> {
    vec![format!("stream_routes/{id}")]
}

#[tokio::test]
async fn a_file_is_read_again_when_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("streams.yaml");
    let mut reader = reader(&file);
    assert_eq!(keys(&mut reader).await, Err("file_read"), "it is not there yet");
    fs::write(&file, ROUTE).unwrap();
    assert_eq!(keys(&mut reader).await, Ok((1, route("r"))));
    // A file that is replaced by a rename, as kubelets and editors do.
    let next = folder.path().join("next");
    fs::write(&next, ROUTE.replace("id: r", "id: q")).unwrap();
    fs::rename(&next, &file).unwrap();
    assert_eq!(keys(&mut reader).await, Ok((2, route("q"))));
    fs::write(&file, "hunter2: [").unwrap();
    assert_eq!(keys(&mut reader).await, Err("file_format"));
    assert_eq!(reader.documents.by_key.len(), 1, "the last documents stay");
    // The former documents again are no change.
    fs::write(&file, ROUTE.replace("id: r", "id: q")).unwrap();
    let waiting = tokio::time::timeout(Duration::from_millis(2_500), reader.changed()).await;
    assert!(waiting.is_err());
    fs::write(&file, "stream_routes: []\n").unwrap();
    assert_eq!(keys(&mut reader).await, Ok((3, vec![])));
}

#[tokio::test]
async fn a_file_without_signs_of_a_change_is_read_again_after_sighup() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("streams.yaml");
    fs::write(&file, ROUTE).unwrap();
    let mut reader = reader(&file);
    assert_eq!(keys(&mut reader).await, Ok((1, route("r"))));
    // The same length, file and time.
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    fs::write(&file, ROUTE.replace("id: r", "id: q")).unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(2_500), reader.changed()).await.is_err());
    let own = std::process::id().to_string();
    assert!(std::process::Command::new("kill").args(["-HUP", &own]).status().unwrap().success());
    assert_eq!(keys(&mut reader).await, Ok((2, route("q"))));
}
