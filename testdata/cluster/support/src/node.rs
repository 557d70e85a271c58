//! The node of a cluster: see `testdata/cluster/cmd/node`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A node that runs Pods as processes: which program stands for which image.
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

    /// The program of all images whose name contains this; of several that fit, the longest counts.
    ///
    /// The program starts with the arguments of the container. With a `command`, the same program starts, and its name is the
    /// first part of the command.
    #[must_use]
    pub fn image(mut self, name: &str, program: impl Into<PathBuf>) -> Self {
        self.images.push((name.to_owned(), program.into()));
        self
    }

    pub(crate) fn arguments(&self, kubeconfig: &Path, folder: &Path) -> Vec<OsString> {
        let mut arguments =
            vec!["--kubeconfig".into(), kubeconfig.into(), "--folder".into(), folder.as_os_str().to_owned()];
        for (name, program) in &self.images {
            let mut image = OsString::from(name);
            image.push("=");
            image.push(program);
            arguments.extend(["--image".into(), image]);
        }
        arguments
    }
}
