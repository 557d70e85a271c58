//! `crds`: the definitions of our own kinds, for `kubectl apply -f -`.

use pingsix_translate::crd::definitions;

use crate::yaml::encode;
use crate::{Exit, Streams};

pub(crate) fn run(streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    for (index, definition) in definitions().iter().enumerate() {
        if index > 0 {
            writeln!(streams.out, "---")?;
        }
        write!(streams.out, "{}", encode(&serde_json::to_value(definition)?)?)?;
    }
    Ok(Exit::Success)
}
