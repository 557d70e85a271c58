//! The pages of `serve --view`: the model from the newest translation and the etcd server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use pingsix_gateway_api::About;
use pingsix_gateway_api::view::{
    self, DataPlaneView, FindingLevel, Model, OwnerView, PlaneDocuments, question,
};
use pingsix_sink::{EmbeddedEtcd, Scope};
use pingsix_translate::status::{Delivery, with_delivery};
use pingsix_translate::{DataPlaneKey, Kind, Object, ObjectKey, Objects, Options, StreamPlane};
use tokio::sync::watch;

use super::publisher::Publication;
use crate::arguments::ServeArguments;
use crate::finding::{Finding, Level};
use crate::plane::Translated;

/// The sources of the pages.
pub(super) struct Pages {
    pub(super) latest: watch::Receiver<Arc<Translated>>,
    pub(super) publications: watch::Receiver<BTreeMap<DataPlaneKey, Publication>>,
    pub(super) etcd: EmbeddedEtcd,
    pub(super) options: Options,
    /// The arguments with which other commands read the same objects.
    pub(super) input: Vec<String>,
}

/// The arguments with which other commands read the same objects.
pub(super) fn input(arguments: &ServeArguments) -> Vec<String> {
    let paths = arguments.paths.iter().map(|path| path.to_string_lossy().into_owned());
    let endpoints = &arguments.translation.endpoints;
    let endpoints = endpoints.iter().flat_map(|supplied| ["--endpoints".to_owned(), supplied.to_string()]);
    paths.chain(endpoints).collect()
}

impl Pages {
    /// The answer to a request.
    pub(super) fn respond<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        let answer = match question(request) {
            Ok(question) => question.answer(&self.model()),
            Err(answer) => *answer,
        };
        answer.map(|body| Full::new(Bytes::from(body)))
    }

    fn model(&self) -> Model {
        let translated = self.latest.borrow().clone();
        let publications = self.publications.borrow().clone();
        let objects = all(&translated.objects);
        let mut model = Model::new(self.options.clone(), self.input.clone(), objects);
        model.add_findings(translated.findings.iter().map(finding));
        let desired: BTreeSet<&DataPlaneKey> = translated.output.desired().map(|(key, _)| key).collect();
        for (owner, verdicts) in &translated.output.owners {
            let data_planes: BTreeMap<DataPlaneKey, DataPlaneView> = documents(&translated, owner)
                .map(|(key, documents)| {
                    // A former publication says nothing about documents that are refused.
                    let publication = publications.get(&key).filter(|_| desired.contains(&key));
                    let view = self.data_plane(&key, documents, publication);
                    (key, view)
                })
                .collect();
            let deliveries =
                data_planes.iter().map(|(key, view)| (key.clone(), view.delivery.clone())).collect();
            let verdicts = with_delivery((**verdicts).clone(), &deliveries);
            model.add_owner(owner.clone(), OwnerView { verdicts, data_planes });
        }
        model
    }

    fn data_plane(
        &self,
        key: &DataPlaneKey,
        documents: PlaneDocuments,
        publication: Option<&Publication>,
    ) -> DataPlaneView {
        let scope = Scope::new(key.prefix(&self.options.root)).ok();
        let connections = scope.map(|scope| self.etcd.readers_of(&scope));
        let delivery = match publication {
            Some(Publication { error: Some(error), .. }) => Delivery::Pending(format!("{error}.")),
            Some(Publication { revision: Some(_), .. }) if connections.is_some_and(|count| count > 0) => {
                Delivery::Delivered
            }
            Some(Publication { revision: Some(_), .. }) => {
                Delivery::Pending("No PingSIX instance is connected.".to_owned())
            }
            Some(Publication { revision: None, .. }) | None => {
                Delivery::Pending("The configuration is not published.".to_owned())
            }
        };
        DataPlaneView {
            documents,
            revision: publication.and_then(|publication| publication.revision),
            delivery,
            instances: Vec::new(),
            connections,
        }
    }
}

/// The objects of the kinds that pages show.
fn all(objects: &Objects) -> impl Iterator<Item = Object> {
    Model::kinds().flat_map(|kind: Kind| objects.of_kind(kind))
}

/// The documents of an owner's data planes.
fn documents<'t>(
    translated: &'t Translated,
    owner: &'t ObjectKey,
) -> impl Iterator<Item = (DataPlaneKey, PlaneDocuments)> + 't {
    let planes =
        translated.output.planes.iter().filter(|(key, _)| key.owner() == *owner).map(|(key, plane)| {
            let plane = plane.to_explain(key);
            let (config, provenance) = (plane.config.clone(), plane.provenance.clone());
            (key.clone(), PlaneDocuments::Requests { config, provenance })
        });
    let streams =
        translated.output.streams.iter().filter(|(key, _)| key.owner() == *owner).map(|(key, streams)| {
            let StreamPlane { config, provenance, size } = &streams.plane;
            let config = streams.bridged.as_ref().map_or(config, |bridged| &bridged.config).clone();
            let plane = StreamPlane { config, provenance: provenance.clone(), size: *size };
            (key.clone(), PlaneDocuments::Streams(Arc::new(plane)))
        });
    planes.chain(streams)
}

fn finding(finding: &Finding) -> view::Finding {
    let Finding { place, object, field, severity, message, .. } = finding;
    view::Finding {
        level: match severity {
            Level::Error => FindingLevel::Error,
            Level::Warning => FindingLevel::Warning,
            Level::Info => FindingLevel::Info,
        },
        object: object.clone(),
        key: object.replacen(' ', "/", 1).parse::<About>().ok().map(|About(key)| key),
        place: place.as_ref().map(ToString::to_string).unwrap_or_default(),
        field: field.clone(),
        message: message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use pingsix_gateway_api::view::translation_options;

    use crate::arguments::{Arguments, Command};

    #[test]
    fn the_options_of_a_command_line_are_those_of_the_translation() {
        let written = "--layout per-port --controller-name a.test/b --root /x --responder off --budget-bytes 5 \
                       --budget-entries 6 --budget-namespace-share 7 --stream";
        let served = |words: &[&str]| {
            let words = ["pingsix-gatewayctl", "serve", "manifests"].iter().chain(words);
            let Command::Serve(arguments) = Arguments::try_parse_from(words).unwrap().command else {
                panic!()
            };
            arguments.translation.options()
        };
        let options = served(&written.split_whitespace().collect::<Vec<_>>());
        let words = translation_options(&options);
        assert_eq!(words, written.split_whitespace().collect::<Vec<_>>());
        assert!(translation_options(&served(&[])).is_empty());
    }
}
