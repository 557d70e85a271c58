//! Programs of Debian packages.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A program, if it is installed. Otherwise its package is named, once.
pub(crate) fn find(name: &str, package: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Servers are often not on the path of users.
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    let found = folders.map(|folder| folder.join(name)).find(|file| file.is_file());
    if found.is_none() {
        missing(&format!("{name} (Debian package {package})"));
    }
    found
}

/// nginx with its stream module.
pub(crate) fn nginx() -> Option<PathBuf> {
    let nginx = find("nginx", "nginx")?;
    if Path::new("/usr/lib/nginx/modules/ngx_stream_module.so").is_file() {
        return Some(nginx);
    }
    missing("the stream module of nginx (Debian package libnginx-mod-stream)");
    None
}

/// The PingSIX that `PINGSIX_BIN` names.
pub(crate) fn pingsix() -> Option<PathBuf> {
    let named = std::env::var_os("PINGSIX_BIN").map(PathBuf::from).filter(|file| file.is_file());
    if named.is_none() {
        missing("PingSIX (PINGSIX_BIN names its program)");
    }
    named
}

fn missing(what: &str) {
    static NAMED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if NAMED.lock().unwrap().insert(what.to_owned()) {
        eprintln!("NOT MEASURED: without {what}, some figures are left out");
    }
}
