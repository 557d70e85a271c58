//! The manifests of the output as text.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use pingsix_migrate::file_name;
use pingsix_translate::{Kind, ObjectKey};
use rayon::prelude::*;
use serde_json::Value;

use crate::yaml::encode;

/// Writes the objects as one stream of documents.
pub(super) fn write_stream(objects: &[(ObjectKey, Arc<Value>)], out: &mut dyn Write) -> anyhow::Result<()> {
    for (index, text) in texts(objects)?.iter().enumerate() {
        if index > 0 {
            writeln!(out, "---")?;
        }
        write!(out, "{text}")?;
    }
    Ok(())
}

/// The text of each object.
fn texts(objects: &[(ObjectKey, Arc<Value>)]) -> anyhow::Result<Vec<String>> {
    objects.par_iter().map(|(_, value)| encode(value)).collect()
}

/// Writes a file per object. Only the owner can read the files of Secrets.
pub(super) fn write_directory(objects: &[(ObjectKey, Arc<Value>)], directory: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    for ((key, _), text) in objects.iter().zip(texts(objects)?) {
        let path = directory.join(file_name(key));
        let write = || -> std::io::Result<()> {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true);
            #[cfg(unix)]
            if key.kind == Kind::Secret {
                use std::os::unix::fs::OpenOptionsExt as _;
                options.mode(0o600);
            }
            options.open(&path)?.write_all(text.as_bytes())
        };
        write().with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
