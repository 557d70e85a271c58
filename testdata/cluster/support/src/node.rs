//! The node of a cluster: see `testdata/cluster/cmd/node`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A node that runs Pods as processes: which program or OCI archive stands for which image.
///
/// Containers of other images count as running, and have no program.
#[derive(Clone, Debug, Default)]
pub struct Node {
    images: Vec<(String, PathBuf)>,
}

impl Node {
    /// A node without a program.
    pub fn new() -> Self {
        Self::default()
    }

    /// The file of all images whose name contains this; of several names that fit, the longest counts, and of several
    /// files of one name the last.
    ///
    /// A program starts with the arguments of the container, among the folders of the machine. With a `command`, the same
    /// program starts, and its name is the first part of the command. A file `*.tar` is an OCI archive: containers have the
    /// content of the image and nothing else, and start its entry point or their `command`.
    #[must_use]
    pub fn image(mut self, name: &str, file: impl Into<PathBuf>) -> Self {
        self.images.push((name.to_owned(), file.into()));
        self
    }

    pub(crate) fn arguments(&self, kubeconfig: &Path, folder: &Path) -> Vec<OsString> {
        let mut arguments =
            vec!["--kubeconfig".into(), kubeconfig.into(), "--folder".into(), folder.as_os_str().to_owned()];
        for (name, file) in &self.images {
            let mut image = OsString::from(name);
            image.push("=");
            image.push(file);
            arguments.extend(["--image".into(), image]);
        }
        arguments
    }
}
