//! Where `serve` remembers its revisions.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The file for a server at `listen`, whose folder is made: the one asked for, or one per address in the user's
/// state folder. `None` when there is to be none, or no folder for it; the embedded server then warns.
pub(super) fn state_file(asked: Option<&Path>, listen: SocketAddr) -> Option<PathBuf> {
    match asked {
        Some(path) if path == Path::new("none") => None,
        Some(path) => Some(path.to_owned()),
        // A port that is different each time has no past.
        None if listen.port() == 0 => None,
        None => {
            let folder = user_state(env::var_os("XDG_STATE_HOME"), env::var_os("HOME"))?;
            fs::create_dir_all(&folder).ok()?;
            Some(folder.join(format!("revisions-{}", listen.to_string().replace([':', '[', ']'], "_"))))
        }
    }
}

/// The XDG base directory for state, or its default below the home folder.
fn user_state(state_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |value: Option<OsString>| value.map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(state_home)
        .or_else(|| absolute(home).map(|home| home.join(".local/state")))
        .map(|folder| folder.join("pingsix-gatewayctl"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_folder_follows_the_xdg_base_directories() {
        let folder =
            |state: Option<&str>, home: Option<&str>| user_state(state.map(Into::into), home.map(Into::into));
        assert_eq!(folder(Some("/s"), Some("/h")), Some("/s/pingsix-gatewayctl".into()));
        assert_eq!(folder(Some("relative"), Some("/h")), Some("/h/.local/state/pingsix-gatewayctl".into()));
        assert_eq!(folder(None, None), None);
    }

    #[test]
    fn none_is_no_file_and_neither_is_a_port_to_be_chosen() {
        let listen = SocketAddr::from(([127, 0, 0, 1], 2379));
        assert_eq!(state_file(Some(Path::new("none")), listen), None);
        assert_eq!(state_file(Some(Path::new("/f")), listen), Some("/f".into()));
        assert_eq!(state_file(None, SocketAddr::from(([127, 0, 0, 1], 0))), None);
    }
}
