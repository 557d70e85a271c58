//! The output, translated as the controller would, with the layout of one data plane for each port.

mod stand_in;

use std::sync::Arc;

use pingsix_gateway_api::Pipeline;
use pingsix_gateway_api::pipeline::Output;
use pingsix_translate::manifest::{Decoded, ManifestProblem, decode_known_fields};
use pingsix_translate::{Kind, Layout, ObjectKey, Objects, Options};
use rayon::prelude::*;
use serde_json::Value;

use super::answer::Answers;

/// The output and its translation.
pub(crate) struct Translated {
    pub(crate) output: Output,
    /// The objects that do not decode.
    pub(crate) problems: Vec<ManifestProblem>,
}

impl Translated {
    /// Translates the objects once. Objects to which they refer and that are missing are taken for usable. `adopts` is
    /// whether Gateways of other controllers are judged as if they had a class of this one.
    pub(crate) fn new(written: &[(ObjectKey, Arc<Value>)], adopts: bool, options: Options) -> Self {
        // Redirects to HTTPS need a data plane for each port, which managed data planes have in any case.
        let options = Options { layout: Layout::PerPort, stream: true, ..options };
        let mut objects = Objects::default();
        let decoded = written.par_iter().map(|(key, value)| {
            let mut value = Value::clone(value);
            if adopts && key.kind == Kind::GatewayClass {
                adopt(&mut value, &options);
            }
            decode_known_fields(value)
        });
        let mut problems = Vec::new();
        for decoded in decoded.collect::<Vec<_>>() {
            match decoded {
                Decoded::Object { object, .. } => {
                    objects.insert(object);
                }
                // An object that does not decode is absent, as in a cluster.
                Decoded::Problem(problem) => problems.push(problem),
                Decoded::Nothing | Decoded::List(_) | Decoded::UnknownKind { .. } => {}
            }
        }
        stand_in::complete(written, &mut objects, &options);
        Self { output: Pipeline::new(options).run(&objects), problems }
    }

    /// The data planes, ready to answer requests.
    pub(crate) fn answers(&self) -> Answers<'_> {
        Answers::of(&self.output)
    }
}

/// Gives a class of another controller to this one, without the parameters that only the other one reads.
fn adopt(class: &mut Value, options: &Options) {
    let Some(Value::Object(spec)) = class.get_mut("spec") else { return };
    let own = Value::String(options.controller_name.clone());
    if spec.get("controllerName") != Some(&own) {
        spec.remove("parametersRef");
        spec.insert("controllerName".to_owned(), own);
    }
}
