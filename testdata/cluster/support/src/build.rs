//! Where `tools/build-cluster` put what the sources of today become.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use sha2::{Digest, Sha256};

/// The environment variable that names another place for builds than `target/cluster`.
const CACHE: &str = "PINGSIX_CLUSTER_CACHE";

/// The programs and definitions of the test cluster.
#[derive(Clone, Debug)]
pub(crate) struct Build(PathBuf);

/// The test cluster is not built: a test that needs it cannot run.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotBuilt(String);

impl Build {
    pub(crate) fn find() -> Result<Self, NotBuilt> {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let cache = env::var_os(CACHE)
            .map_or_else(|| repository.join("target/cluster"), |cache| repository.join(cache));
        Self::find_in(&cache, &repository)
    }

    pub(crate) fn find_in(cache: &Path, repository: &Path) -> Result<Self, NotBuilt> {
        let name = fingerprint(repository).map_err(|error| {
            NotBuilt(format!("the sources of the test cluster in testdata/cluster cannot be read: {error}"))
        })?;
        let built = cache.join(name);
        if built.is_dir() {
            return Ok(Self(built));
        }
        let others = fs::read_dir(cache).is_ok_and(|mut entries| entries.next().is_some());
        Err(NotBuilt(if others {
            "the test cluster was built from other sources than these; `just cluster` builds it".to_owned()
        } else {
            "the test cluster is not built; `just cluster` does that".to_owned()
        }))
    }

    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.0.join("bin").join(name)
    }

    pub(crate) fn crds(&self, channel: &str) -> PathBuf {
        self.0.join("crds").join(channel)
    }
}

/// The name of a build: what `sha256sum FILE... | sha256sum | cut -c1-16` says in `tools/build-cluster`.
fn fingerprint(repository: &Path) -> io::Result<String> {
    let module = Path::new("testdata/cluster");
    let mut files = vec![
        module.join("go.mod"),
        module.join("go.sum"),
        module.join("crds.go"),
        PathBuf::from("tools/build-cluster"),
    ];
    collect(repository, &module.join("cmd"), &mut files)?;
    // As the C locale sorts: by bytes, the slash among them, where paths compare by component.
    files.sort_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
    let mut sums = String::new();
    for file in files {
        let _ = writeln!(sums, "{}  {}", hex(&fs::read(repository.join(&file))?), file.display());
    }
    Ok(hex(sums.as_bytes()).chars().take(16).collect())
}

fn collect(repository: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(repository.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            collect(repository, &path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
    }

    #[test]
    fn a_build_is_found_under_the_fingerprint_of_its_sources() {
        let cache = tempfile::tempdir().unwrap();
        let name = fingerprint(&repository()).unwrap();
        fs::create_dir(cache.path().join(&name)).unwrap();
        let found = Build::find_in(cache.path(), &repository()).unwrap();
        assert_eq!(found.program("etcd"), cache.path().join(name).join("bin/etcd"));
    }

    #[test]
    fn a_missing_build_says_what_to_do() {
        let cache = tempfile::tempdir().unwrap();
        let reason = Build::find_in(cache.path(), &repository()).unwrap_err().to_string();
        assert_eq!(reason, "the test cluster is not built; `just cluster` does that");
        let absent = Build::find_in(&cache.path().join("absent"), &repository()).unwrap_err().to_string();
        assert_eq!(absent, reason);
    }

    #[test]
    fn a_build_of_other_sources_is_not_used() {
        let cache = tempfile::tempdir().unwrap();
        fs::create_dir(cache.path().join("0123456789abcdef")).unwrap();
        let reason = Build::find_in(cache.path(), &repository()).unwrap_err().to_string();
        assert_eq!(
            reason,
            "the test cluster was built from other sources than these; `just cluster` builds it"
        );
    }

    #[test]
    fn script_and_crate_agree_on_the_fingerprint() {
        let cache = tempfile::tempdir().unwrap();
        fs::create_dir(cache.path().join(fingerprint(&repository()).unwrap())).unwrap();
        // An existing build is named and not made anew.
        let output = std::process::Command::new(repository().join("tools/build-cluster"))
            .env(CACHE, cache.path())
            .env("PATH", "/usr/bin:/bin")
            .output()
            .unwrap();
        let found = Build::find_in(cache.path(), &repository()).unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim_end(), found.0.display().to_string());
    }
}
