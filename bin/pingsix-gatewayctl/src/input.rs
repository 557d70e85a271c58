//! The manifests of a command: files, or the objects of a cluster.

use std::io::Write;

use crate::arguments::{Input, SuppliedEndpoints};
#[cfg(feature = "cluster")]
use crate::cluster;
use crate::manifest::{self, Manifests};

/// Reads the input of a command once.
///
/// # Errors
///
/// When a path cannot be read, or a cluster does not answer, or there is no manifest at all.
pub(crate) fn load(
    input: &Input,
    supplied: &[SuppliedEndpoints],
    #[cfg_attr(not(feature = "cluster"), expect(unused_variables, reason = "files need no notes"))]
    notes: &mut dyn Write,
) -> anyhow::Result<Manifests> {
    match input {
        Input::Files(paths) => manifest::load(paths, supplied),
        #[cfg(feature = "cluster")]
        Input::Cluster(arguments) => cluster::load(arguments, supplied, notes),
    }
}
