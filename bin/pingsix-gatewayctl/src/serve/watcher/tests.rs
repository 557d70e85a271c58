use std::os::unix::fs::symlink;

use super::*;

/// The files of directories, looked at by the paths of events.
struct Looks {
    directory: tempfile::TempDir,
    found: Found,
}

impl Looks {
    fn new(names: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in names {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let found = Found::new(vec![directory.path().to_owned()]).unwrap();
        Self { directory, found }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The changed files according to an event; `None` if all files are to be looked at.
    fn at(&mut self, name: &str) -> Option<Vec<String>> {
        let (path, mut told, mut changed) = (self.path(name), BTreeSet::new(), BTreeSet::new());
        self.found.look_at(&path, &mut told, &mut changed).then(|| self.names(&told | &changed))
    }

    fn at_all(&mut self) -> Vec<String> {
        let mut changed = BTreeSet::new();
        self.found.look_at_all(&mut changed);
        self.names(changed)
    }

    fn names(&self, positions: BTreeSet<FilePosition>) -> Vec<String> {
        let below = |position: FilePosition| {
            position.path.strip_prefix(self.directory.path()).unwrap().display().to_string()
        };
        positions.into_iter().map(below).collect()
    }
}

#[test]
fn an_event_costs_a_look_at_its_file() {
    let mut looks = Looks::new(&["a.yaml", "b.yaml", "sub/c.yaml"]);
    // Without an event, the change of the other file goes unnoticed.
    fs::write(looks.path("a.yaml"), "more").unwrap();
    fs::write(looks.path("b.yaml"), "more").unwrap();
    assert_eq!(looks.at("a.yaml").unwrap(), ["a.yaml"]);
    assert_eq!(looks.at_all(), ["b.yaml"]);
    fs::write(looks.path("sub/d.json"), "").unwrap();
    assert_eq!(looks.at("sub/d.json").unwrap(), ["sub/d.json"]);
    assert!(looks.at_all().is_empty());
    fs::remove_file(looks.path("sub/c.yaml")).unwrap();
    assert_eq!(looks.at("sub/c.yaml").unwrap(), ["sub/c.yaml"]);
    // An editor writes a file of its own, and gives it the name.
    fs::write(looks.path(".a.yaml.swp"), "new").unwrap();
    assert!(looks.at(".a.yaml.swp").unwrap().is_empty());
    fs::rename(looks.path(".a.yaml.swp"), looks.path("a.yaml")).unwrap();
    assert!(looks.at(".a.yaml.swp").unwrap().is_empty());
    assert_eq!(looks.at("a.yaml").unwrap(), ["a.yaml"]);
    fs::write(looks.path("notes.txt"), "").unwrap();
    assert!(looks.at("notes.txt").unwrap().is_empty());
    assert!(looks.at_all().is_empty());
}

#[test]
fn events_of_directories_and_links_take_a_look_at_everything() {
    let mut looks = Looks::new(&["a.yaml", "sub/b.yaml"]);
    fs::create_dir(looks.path("new")).unwrap();
    fs::write(looks.path("new/c.yaml"), "").unwrap();
    assert!(looks.at("new").is_none());
    assert_eq!(looks.at_all(), ["new/c.yaml"]);
    fs::rename(looks.path("sub"), looks.path("other")).unwrap();
    assert!(looks.at("sub").is_none() && looks.at("other").is_none());
    assert_eq!(looks.at_all(), ["other/b.yaml", "sub/b.yaml"]);
    let root = looks.directory.path().to_owned();
    assert!(!looks.found.look_at(&root, &mut BTreeSet::new(), &mut BTreeSet::new()));
    symlink(looks.path("a.yaml"), looks.path("link.yaml")).unwrap();
    assert!(looks.at("link.yaml").is_none());
    assert_eq!(looks.at_all(), ["link.yaml"]);
    // A link changes where its target does.
    assert!(looks.at(".hidden").is_none());
}

#[test]
fn named_files_have_the_events_of_their_names() {
    let looks = Looks::new(&["a.yaml", "b.txt"]);
    let named = looks.path("b.txt");
    let mut found = Found::new(vec![named.clone()]).unwrap();
    let (mut told, mut changed) = (BTreeSet::new(), BTreeSet::new());
    assert!(found.look_at(&looks.path("a.yaml"), &mut told, &mut changed) && told.is_empty());
    assert!(found.look_at(&named, &mut told, &mut changed) && told.len() == 1 && changed.is_empty());
    fs::write(&named, "more").unwrap();
    assert!(found.look_at(&named, &mut told, &mut changed) && changed.len() == 1);
    assert!(!found.look_at(looks.directory.path(), &mut told, &mut changed));
    fs::remove_file(&named).unwrap();
    assert!(!found.look_at(&named, &mut told, &mut changed));
    assert!(found.look_at_all(&mut changed) && found.error.is_some());
    // The files of overlapping paths have the events of one of them.
    let mut both = Found::new(vec![looks.directory.path().to_owned(), looks.path("a.yaml")]).unwrap();
    assert!(!both.look_at(&looks.path("a.yaml"), &mut told, &mut changed));
}
