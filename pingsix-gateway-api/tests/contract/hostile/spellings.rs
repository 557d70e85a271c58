//! The ways to spell a request, each under a name by which the list of known limits knows it.

mod address;
mod credential;
mod host;
mod path;

use std::sync::LazyLock;

use super::attack::{Draft, Scene};

/// One way to spell a request.
pub(super) struct Spelling {
    pub(super) name: &'static str,
    /// Changes a request, or leaves one as it is to which the spelling does not apply.
    pub(super) apply: fn(&mut Draft, &Scene<'_>),
}

impl std::fmt::Debug for Spelling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// All spellings.
pub(super) static SPELLINGS: LazyLock<Vec<Spelling>> = LazyLock::new(|| {
    let all = [path::SPELLINGS, host::SPELLINGS, address::SPELLINGS, credential::SPELLINGS].concat();
    all.into_iter().map(|(name, apply)| Spelling { name, apply }).collect()
});

/// A name and the change, as the files of spellings list them.
type Named = (&'static str, fn(&mut Draft, &Scene<'_>));

/// One of several variants.
fn one<T: Copy>(of: &[T], scene: &Scene<'_>) -> T {
    of[scene.roll % of.len()]
}
