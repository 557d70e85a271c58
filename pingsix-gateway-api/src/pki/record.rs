//! The authorities as the data of a Secret.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use serde::{Deserialize, Serialize};

use super::RecordError;
use super::authority::{Authority, read_certificate};
use super::rotation::{Authorities, Phase, PhaseProgress};

/// The annotation of the Secret that asks for a rotation: each other value asks for another one.
pub const ROTATE: &str = "pingsix.io/rotate";

/// The annotation of the Secret that names the owners of data planes that a rotation waits for. The controller writes it.
pub const WAITS_FOR: &str = "pingsix.io/rotation-waits-for";

/// The authority that signs.
const SIGNING: [&str; 2] = ["tls.crt", "tls.key"];
/// The one that will sign.
const NEXT: [&str; 2] = ["next.crt", "next.key"];
/// The one that signed before.
const PREVIOUS: &str = "previous.crt";
/// The entry with the state of the rotation.
const ROTATION: &str = "rotation.json";
/// All that are to be trusted. Written for people and programs that copy it, and never read.
const BUNDLE: &str = "ca.crt";

/// The record beside certificates and keys.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rotation {
    #[serde(default, rename = "heard", skip_serializing_if = "Option::is_none")]
    last_request: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    introducing: Option<PhaseProgress>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retiring: Option<PhaseProgress>,
}

impl Authorities {
    /// As the data of a Secret. The keys of authorities are among it.
    pub fn to_data(&self) -> BTreeMap<String, ByteString> {
        let mut data = BTreeMap::new();
        let mut put = |name: &str, text: String| {
            data.insert(name.to_owned(), ByteString(text.into_bytes()));
        };
        let mut put_authority = |[of_certificate, of_key]: [&str; 2], authority: &Authority| {
            put(of_certificate, authority.certificate().pem().to_owned());
            put(of_key, authority.key_pem());
        };
        put_authority(SIGNING, self.signing());
        let mut rotation = Rotation {
            last_request: self.last_request().map(str::to_owned),
            introducing: None,
            retiring: None,
        };
        match self.phase() {
            Phase::Settled => {}
            Phase::Introducing { next, progress } => {
                put_authority(NEXT, next);
                rotation.introducing = Some(*progress);
            }
            Phase::Retiring { previous, progress } => {
                put(PREVIOUS, previous.pem().to_owned());
                rotation.retiring = Some(*progress);
            }
        }
        put(BUNDLE, self.bundle());
        put(ROTATION, serde_json::to_string(&rotation).expect("times and texts can be written as JSON"));
        data
    }

    /// Reads the data of a Secret.
    ///
    /// # Errors
    /// [`RecordError`] names the key that is wrong.
    pub fn from_data(data: &BTreeMap<String, ByteString>) -> Result<Self, RecordError> {
        let text = |key: &'static str| {
            let bytes = data.get(key).ok_or(RecordError { key, problem: "is missing" })?;
            std::str::from_utf8(&bytes.0).map_err(|_| RecordError { key, problem: "is not text" })
        };
        let authority = |names: [&'static str; 2]| Authority::read(text(names[0])?, text(names[1])?, names);
        let problem = "does not say where the rotation of authorities is";
        let unclear = RecordError { key: ROTATION, problem };
        let rotation: Rotation = serde_json::from_str(text(ROTATION)?).map_err(|_| unclear)?;
        let signing = authority(SIGNING)?;
        let phase = match (rotation.introducing, rotation.retiring) {
            (None, None) => Phase::Settled,
            (Some(progress), None) => Phase::Introducing { next: authority(NEXT)?, progress },
            (None, Some(progress)) => {
                Phase::Retiring { previous: read_certificate(text(PREVIOUS)?, PREVIOUS)?, progress }
            }
            (Some(_), Some(_)) => return Err(unclear),
        };
        Ok(Self::of(signing, phase, rotation.last_request))
    }
}
