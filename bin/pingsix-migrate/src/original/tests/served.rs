//! The ways to serve Ingresses: their translations, and the sentences about the Ingresses.

use std::collections::BTreeMap;
use std::sync::Arc;

use pingsix_gateway_api::explain::BriefAnswer;
use pingsix_translate::{BackendAddresses, Kind, ObjectKey, Options};
use serde_json::{Value, json};

use super::generate::Dialect;
use crate::answer::Answers;
use crate::choices::Choices;
use crate::convert::{self, Converted};
use crate::input::Input;
use crate::origins::{Origins, Traced};
use crate::report::{Place, ReportFormat};
use crate::source::Sources;
use crate::translated::Translated;
use crate::{asked, judge};

/// The ways to serve Ingresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// `migrate`.
    Routes,
    /// `migrate --keep-ingress`.
    Kept,
    /// A class that reads the annotations.
    Class,
}

impl Way {
    pub(super) const ALL: [Self; 3] = [Self::Routes, Self::Kept, Self::Class];

    pub(super) fn serve(self, objects: &[Value], dialect: Dialect) -> Served {
        match self {
            Self::Routes => migrated(objects, false),
            Self::Kept => migrated(objects, true),
            Self::Class => in_a_class(objects, dialect),
        }
    }
}

/// A sentence that an Ingress is not served as before.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) place: Place,
    pub(super) reason: String,
}

/// The translation of a case.
pub(super) struct Served {
    written: Vec<(ObjectKey, Arc<Value>)>,
    origins: Origins,
    translated: Translated,
    pub(super) said: Vec<Said>,
}

impl Served {
    pub(super) fn ready(&self) -> Ready<'_> {
        Ready {
            answers: self.translated.answers(),
            traced: Traced::new(&self.origins, &self.written),
            keys: self.written.iter().map(|(key, _)| (key.to_string(), key)).collect(),
        }
    }
}

/// A translation that answers requests.
pub(super) struct Ready<'s> {
    pub(super) answers: Answers<'s>,
    traced: Traced<'s>,
    keys: BTreeMap<String, &'s ObjectKey>,
}

impl Ready<'_> {
    /// The paths of the Ingresses behind an answer.
    pub(super) fn places(&self, brief: &BriefAnswer<'_>) -> Vec<Place> {
        let source = brief.source.as_ref();
        let places =
            source.and_then(|source| Some(self.traced.places(self.keys.get(&source.object)?, &source.field)));
        places.unwrap_or_default()
    }
}

/// As `pingsix-gatewayctl` has them.
fn options() -> Options {
    Options {
        responder: "127.0.0.1:8089".parse().ok(),
        attached_sinks: true,
        backend_addresses: BackendAddresses { loopback: true, ..BackendAddresses::default() },
        ..Options::default()
    }
}

fn migrated(objects: &[Value], keep_ingress: bool) -> Served {
    let Input { sources, report, .. } = Input::of_values(objects.to_vec()).unwrap();
    let asked = asked::asked(&sources);
    let Converted { objects: written, origins, mut report, account } =
        convert::convert(sources, &Choices { keep_ingress, ..Choices::default() }, report);
    account.complete(&written, &mut report);
    let translated = Translated::new(&written, true, options());
    judge::judge(&asked, &written, &origins, &translated, &mut report);
    let report: Value = serde_json::from_str(&report.render(ReportFormat::Json, true)).unwrap();
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let entries = report["entries"].as_array().unwrap().iter();
    let said = entries.filter(|entry| entry["verdict"] != "exact").map(|entry| Said {
        place: Place { object: text(entry, "object").into(), field: text(entry, "field") },
        reason: text(entry, "reason"),
    });
    Served { translated, said: said.collect(), written, origins }
}

/// The Ingresses as they are, in a class of ours.
fn in_a_class(objects: &[Value], dialect: Dialect) -> Served {
    let mut objects = objects.to_vec();
    for object in objects.iter_mut().filter(|object| object["kind"] == "Ingress") {
        object["spec"]["ingressClassName"] = json!("pingsix");
    }
    let parameters = json!({
        "apiGroup": "pingsix.io", "kind": "PingsixProxy", "name": "proxy", "namespace": "shop", "scope": "Namespace",
    });
    objects.push(json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": { "name": "pingsix" },
        "spec": { "controller": "pingsix.io/gateway-controller", "parameters": parameters },
    }));
    objects.push(json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": "PingsixProxy", "metadata": { "namespace": "shop", "name": "proxy" },
        "spec": { "attached": { "layout": "PerPort" }, "ingress": { "annotations": [dialect.domain()] } },
    }));
    let Input { sources, .. } = Input::of_values(objects).unwrap();
    let Sources { kept, created, .. } = &sources;
    let mut written: Vec<_> = kept.clone().into_iter().collect();
    let mut origins = Origins::default();
    for (key, object) in &mut written {
        if let Some(created) = created.get(key) {
            Arc::make_mut(object)["metadata"]["creationTimestamp"] = json!(created);
        }
        if key.kind == Kind::Ingress {
            origins.note_copy(key.clone(), key);
        }
    }
    let translated = Translated::new(&written, true, options());
    let said = translated.output.findings.iter().map(|finding| {
        let mut field = finding.field.clone();
        // The sentence begins with the name of the annotation.
        if field == "metadata.annotations"
            && let Some((name, _)) = finding.message.split_once(':')
        {
            field = format!("{field}[{name}]");
        }
        let place = Place { object: finding.object.to_string().into(), field };
        Said { place, reason: finding.reason.to_owned() }
    });
    Served { said: said.collect(), translated, written, origins }
}
