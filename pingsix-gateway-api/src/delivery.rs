//! The delivery of publications, the condition for `Programmed`.
//!
//! A sink confirms a publication, and only PingSIX can confirm that it has taken over the documents. An instance with a
//! status page confirms or refuses a revision ([`status_page`]). An instance with a mere connection shows that the
//! publication reaches it. A data plane without an instance is never programmed.

mod lookup;
#[doc(hidden)]
pub mod reception;
pub mod status_page;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use pingsix_sink::Revision;
use pingsix_translate::DataPlaneKey;
use pingsix_translate::status::Delivery;

use status_page::{InstancePages, StatusPage};

/// The longest part of an instance's error message in a status, in characters.
const MAX_ERROR_CHARS: usize = 300;

/// The known instances that read a data plane.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Instances {
    /// Unknown: PingSIX does not read from this sink directly.
    Unknown,
    /// Instances read publications only at their start, and their restarts are not reported.
    AtRestart,
    /// The number of connections; their state is unknown.
    Connected(usize),
    /// The status page of each instance, or the error of its request.
    Pages(InstancePages),
}

/// The delivery of all data planes.
#[derive(Clone, Debug, Default)]
pub struct Deliveries {
    planes: BTreeMap<DataPlaneKey, Progress>,
}

#[derive(Clone, Debug, Default)]
struct Progress {
    /// The revision of the last publication.
    revision: Option<Revision>,
    /// The error of a later publication.
    error: Option<String>,
    /// Whether a later publication is in progress.
    is_under_way: bool,
    instances: Option<Instances>,
    /// The reason for which the publication is incomplete.
    withheld: Option<String>,
    /// The delivery before a publication that is not the desired one, such as a trial.
    kept: Option<Delivery>,
}

impl Deliveries {
    /// A publication has begun. Until it ends, the last publication is outdated.
    pub fn begun(&mut self, data_plane: &DataPlaneKey) {
        self.planes.entry(data_plane.clone()).or_default().is_under_way = true;
    }

    /// The newest publication was made.
    pub fn published(&mut self, data_plane: &DataPlaneKey, revision: Revision) {
        let progress = self.planes.entry(data_plane.clone()).or_default();
        progress.revision = Some(revision);
        progress.error = None;
        progress.is_under_way = false;
    }

    /// The target that the data plane reads from has the newest publication; another target lacks it.
    pub fn reached(&mut self, data_plane: &DataPlaneKey, revision: Revision) {
        self.planes.entry(data_plane.clone()).or_default().revision = Some(revision);
    }

    /// The newest publication has failed; the last one stays.
    pub fn failed(&mut self, data_plane: &DataPlaneKey, why: String) {
        let progress = self.planes.entry(data_plane.clone()).or_default();
        progress.error = Some(why);
        progress.is_under_way = false;
    }

    /// Records the instances. Returns whether the delivery changed.
    pub fn observe(&mut self, data_plane: &DataPlaneKey, instances: Instances) -> bool {
        let before = self.delivery(data_plane);
        // A late answer may be about a removed data plane.
        let Some(progress) = self.planes.get_mut(data_plane) else { return false };
        progress.instances = Some(instances);
        before != self.delivery(data_plane)
    }

    /// The last record of the instances.
    pub fn instances(&self, data_plane: &DataPlaneKey) -> Option<&Instances> {
        self.planes.get(data_plane)?.instances.as_ref()
    }

    /// Sets the reason for which the publication is incomplete, or clears it. Returns whether the delivery changed.
    pub fn withhold(&mut self, data_plane: &DataPlaneKey, why: Option<String>) -> bool {
        let before = self.delivery(data_plane);
        let Some(progress) = self.planes.get_mut(data_plane) else { return false };
        progress.withheld = why;
        before != self.delivery(data_plane)
    }

    /// Begins or ends a trial. Reports of instances about a trial do not concern the desired documents, so the
    /// delivery stays as it was before. Callers do this before the publication.
    pub fn keep(&mut self, data_plane: &DataPlaneKey, is_kept: bool) {
        let delivery = self.delivery(data_plane);
        let Some(progress) = self.planes.get_mut(data_plane) else { return };
        progress.kept = is_kept.then_some(delivery);
    }

    /// Removes a data plane.
    pub fn forget(&mut self, data_plane: &DataPlaneKey) {
        self.planes.remove(data_plane);
    }

    /// The last revision of a data plane.
    pub fn revision(&self, data_plane: &DataPlaneKey) -> Option<Revision> {
        self.planes.get(data_plane)?.revision
    }

    /// The last revision, if it has the desired documents and no other publication runs.
    pub fn settled(&self, data_plane: &DataPlaneKey) -> Option<Revision> {
        let progress = self.planes.get(data_plane)?;
        progress.revision.filter(|_| !progress.is_under_way && progress.error.is_none())
    }

    /// The delivery of each of these data planes.
    pub fn of<'k>(
        &self,
        data_planes: impl IntoIterator<Item = &'k DataPlaneKey>,
    ) -> BTreeMap<DataPlaneKey, Delivery> {
        data_planes.into_iter().map(|data_plane| (data_plane.clone(), self.delivery(data_plane))).collect()
    }

    /// Every data plane with a publication or a failed one.
    pub fn data_planes(&self) -> impl Iterator<Item = &DataPlaneKey> {
        self.planes.keys()
    }

    /// The delivery of a data plane.
    pub fn delivery(&self, data_plane: &DataPlaneKey) -> Delivery {
        let Some(progress) = self.planes.get(data_plane) else {
            return Delivery::Pending("The configuration is not published yet.".to_owned());
        };
        if let Some(kept) = &progress.kept {
            return kept.clone();
        }
        if let Some(error) = &progress.error {
            return Delivery::Pending(format!("The configuration cannot be published: {error}."));
        }
        let Some(revision) = progress.revision.filter(|_| !progress.is_under_way) else {
            return Delivery::Pending("The configuration is not published yet.".to_owned());
        };
        if let Some(why) = &progress.withheld {
            return Delivery::Refused(why.clone());
        }
        match &progress.instances {
            None | Some(Instances::Connected(0)) => {
                Delivery::Pending("No PingSIX instance is connected.".to_owned())
            }
            Some(Instances::AtRestart) => Delivery::Pending(
                "The configuration is published. PingSIX takes it over when it is started again, and nothing tells whether it was."
                    .to_owned(),
            ),
            Some(Instances::Unknown | Instances::Connected(_)) => Delivery::Delivered,
            Some(Instances::Pages(pages)) => by_pages(pages, revision),
        }
    }
}

fn by_pages(pages: &InstancePages, revision: Revision) -> Delivery {
    let refused = pages.iter().find_map(|(url, page)| Some((url, page.as_ref().ok()?.refusal()?)));
    let other_version = pages.iter().find_map(|(url, page)| {
        let difference = page.as_ref().ok()?.difference?;
        Some(format!("The instance at {url} {difference}."))
    });
    if let Some((url, refusal)) = refused {
        let mut message = format!("The PingSIX instance at {url} refuses it: {}.", shortened(refusal));
        append(&mut message, other_version);
        return Delivery::Refused(message);
    }
    let has_published = |page: &StatusPage| {
        if page.is_elsewhere { page.is_confirmed } else { page.published_revision >= revision.get() }
    };
    let confirmed = pages.values().filter(|page| page.as_ref().is_ok_and(has_published)).count();
    // Instances have the same errors, or are about to.
    let error = pages.iter().find_map(|(url, page)| {
        let error = page.as_ref().ok()?.faults.first()?;
        Some(format!("{url} says \"{}\".", shortened(&error.to_string())))
    });
    if confirmed == pages.len() && confirmed > 0 {
        return match (error, other_version) {
            (Some(error), _) => Delivery::ConfirmedInPart(error),
            (None, Some(other_version)) => Delivery::ConfirmedByOtherVersion(other_version),
            (None, None) => Delivery::Confirmed,
        };
    }
    // Revisions of replicas are not comparable. Another replica delivers the same documents, and its report may be
    // late. An instance without a published revision serves nothing.
    let serves_elsewhere =
        |page: &&StatusPage| page.is_elsewhere && !page.is_confirmed && page.published_revision > 0;
    let elsewhere = pages.values().flatten().filter(serves_elsewhere).count();
    if elsewhere > 0 && confirmed + elsewhere == pages.len() {
        return Delivery::Delivered;
    }
    let mut message = format!("{confirmed} of {} PingSIX instances have published it.", pages.len());
    if let Some((url, error)) = pages.iter().find_map(|(url, page)| Some((url, page.as_ref().err()?))) {
        let _ =
            write!(message, " The status page at {url} cannot be read: {}.", shortened(&error.to_string()));
    } else if let Some(error) = error {
        append(&mut message, Some(error));
    }
    append(&mut message, other_version);
    Delivery::Pending(message)
}

fn append(message: &mut String, sentence: Option<String>) {
    if let Some(sentence) = sentence {
        message.push(' ');
        message.push_str(&sentence);
    }
}

/// The first line of an error, cut to the limit of a message, without the full stop.
fn shortened(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default().trim_end_matches('.');
    line.chars().filter(|character| !character.is_control()).take(MAX_ERROR_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use pingsix_translate::ObjectName;

    use super::status_page::{PageDifference, PageError};
    use super::*;

    fn plane() -> DataPlaneKey {
        DataPlaneKey::Gateway { gateway: ObjectName::new("infra", "web"), port: None }
    }

    fn revision(revision: i64) -> Revision {
        Revision::new(revision).unwrap()
    }

    fn pages(pages: &[Result<(i64, Option<&str>), &str>]) -> Instances {
        let page = |(published_revision, error): (i64, Option<&str>)| StatusPage {
            published_revision,
            observed_revision: published_revision,
            error_kind: error.map(|_| "candidate_invalid".to_owned()),
            last_error: error.map(ToOwned::to_owned),
            ..StatusPage::default()
        };
        let url = |index| format!("http://127.0.0.1:{}/status/config", 7000 + index).parse().unwrap();
        let read = pages.iter().map(|read| read.map(page).map_err(|told| PageError::Shown(told.to_owned())));
        Instances::Pages(read.enumerate().map(|(index, read)| (url(index), read)).collect())
    }

    fn after(instances: Option<Instances>) -> Delivery {
        let mut deliveries = Deliveries::default();
        deliveries.published(&plane(), revision(7));
        if let Some(instances) = instances {
            deliveries.observe(&plane(), instances);
        }
        deliveries.delivery(&plane())
    }

    fn pending(message: &str) -> Delivery {
        Delivery::Pending(message.to_owned())
    }

    #[test]
    fn a_data_plane_is_not_programmed_without_an_instance() {
        assert_eq!(
            Deliveries::default().delivery(&plane()),
            pending("The configuration is not published yet.")
        );
        assert_eq!(after(None), pending("No PingSIX instance is connected."));
        assert_eq!(after(Some(Instances::Connected(0))), pending("No PingSIX instance is connected."));
        assert_eq!(after(Some(pages(&[]))), pending("0 of 0 PingSIX instances have published it."));
    }

    #[test]
    fn a_connection_is_a_delivery_and_a_status_page_a_confirmation() {
        assert_eq!(after(Some(Instances::Connected(2))), Delivery::Delivered);
        assert_eq!(after(Some(Instances::Unknown)), Delivery::Delivered);
        let Delivery::Pending(message) = after(Some(Instances::AtRestart)) else { panic!() };
        assert!(message.contains("started again"), "{message}");
        assert_eq!(after(Some(pages(&[Ok((7, None)), Ok((9, None))]))), Delivery::Confirmed);
        assert_eq!(
            after(Some(pages(&[Ok((7, None)), Ok((6, None))]))),
            pending("1 of 2 PingSIX instances have published it.")
        );
        assert_eq!(
            after(Some(pages(&[Ok((7, None)), Err("connection refused.\nat somewhere")]))),
            pending(
                "1 of 2 PingSIX instances have published it. The status page at http://127.0.0.1:7001/status/config cannot \
                 be read: connection refused."
            )
        );
    }

    #[test]
    fn an_instance_of_another_replica_counts_despite_its_other_revisions() {
        let mut read = pages(&[Ok((7, None)), Ok((3, None)), Ok((99, None))]);
        let Instances::Pages(held) = &mut read else { unreachable!() };
        for page in held.values_mut().flatten().filter(|page| page.published_revision != 7) {
            page.is_elsewhere = true;
        }
        assert_eq!(after(Some(read.clone())), Delivery::Delivered);
        // The other replica reports that its instances have the publication.
        let mut told = read.clone();
        let Instances::Pages(held) = &mut told else { unreachable!() };
        held.values_mut().flatten().for_each(|page| page.is_confirmed = page.published_revision == 3);
        assert_eq!(after(Some(told.clone())), Delivery::Delivered, "of one of them");
        let Instances::Pages(held) = &mut told else { unreachable!() };
        held.values_mut().flatten().for_each(|page| page.is_confirmed = page.is_elsewhere);
        assert_eq!(after(Some(told)), Delivery::Confirmed);
        // One of them has read it, and has not published anything yet.
        let Instances::Pages(held) = &mut read else { unreachable!() };
        let last = held.values_mut().next_back().unwrap().as_mut().unwrap();
        let published = std::mem::take(&mut last.published_revision);
        assert_eq!(after(Some(read.clone())), pending("1 of 3 PingSIX instances have published it."));
        let Instances::Pages(held) = &mut read else { unreachable!() };
        held.values_mut().next_back().unwrap().as_mut().unwrap().published_revision = published;
        held.values_mut().flatten().for_each(|page| page.published_revision = 6);
        assert_eq!(after(Some(read)), pending("0 of 3 PingSIX instances have published it."));
    }

    #[test]
    fn a_refusal_by_one_instance_counts_also_if_it_runs_on() {
        let refused = after(Some(pages(&[Ok((7, None)), Ok((7, Some("unknown plugin")))])));
        let message =
            "The PingSIX instance at http://127.0.0.1:7001/status/config refuses it: unknown plugin.";
        assert_eq!(refused, Delivery::Refused(message.to_owned()));
    }

    #[test]
    fn an_instance_of_another_version_is_named_whatever_it_says() {
        let of_other_version = |published, error| {
            let mut read = pages(&[Ok((7, None)), Ok((published, error))]);
            let Instances::Pages(held) = &mut read else { unreachable!() };
            let last = held.values_mut().next_back().unwrap().as_mut().unwrap();
            last.difference = Some(PageDifference::Lacks("error_kind"));
            after(Some(read))
        };
        let note = "The instance at http://127.0.0.1:7001/status/config is not PingSIX 0.1.0 of commit 0b92327: its \
                    status page lacks the field error_kind.";
        assert_eq!(of_other_version(7, None), Delivery::ConfirmedByOtherVersion(note.to_owned()));
        assert_eq!(
            of_other_version(6, None),
            pending(&format!("1 of 2 PingSIX instances have published it. {note}"))
        );
        let refusal =
            "The PingSIX instance at http://127.0.0.1:7001/status/config refuses it: unknown plugin.";
        assert_eq!(
            of_other_version(7, Some("unknown plugin")),
            Delivery::Refused(format!("{refusal} {note}"))
        );
    }

    #[test]
    fn a_failed_publication_is_pending_until_one_is_made() {
        let mut deliveries = Deliveries::default();
        deliveries.published(&plane(), revision(7));
        deliveries.observe(&plane(), Instances::Connected(1));
        deliveries.failed(&plane(), "no revision to publish with".to_owned());
        assert_eq!(
            deliveries.delivery(&plane()),
            pending("The configuration cannot be published: no revision to publish with.")
        );
        deliveries.published(&plane(), revision(8));
        assert_eq!(deliveries.delivery(&plane()), Delivery::Delivered);
    }

    #[test]
    fn a_sidecar_names_what_it_cannot_serve() {
        let page = |published_revision, error: &str| {
            let page = format!(r#"{{"published_revision": {published_revision}, "faults": [{error}]}}"#);
            let url = "http://10.0.0.1:7086/status/config".parse().unwrap();
            Instances::Pages([(url, Ok(serde_json::from_str(&page).unwrap()))].into())
        };
        let port = r#"{"port": 53, "message": "Cannot listen on port 10053."}"#;
        assert_eq!(
            after(Some(page(6, port))),
            pending(
                "0 of 1 PingSIX instances have published it. http://10.0.0.1:7086/status/config says \"port 53: Cannot listen on port 10053\"."
            )
        );
        let document = r#"{"document": "stream_routes/r", "message": "unknown field"}"#;
        let in_part = "http://10.0.0.1:7086/status/config says \"stream_routes/r: unknown field\".";
        assert_eq!(after(Some(page(7, document))), Delivery::ConfirmedInPart(in_part.to_owned()));
    }

    #[test]
    fn a_running_publication_is_pending_and_an_error_stays_until_the_next() {
        let mut deliveries = Deliveries::default();
        deliveries.published(&plane(), revision(7));
        deliveries.observe(&plane(), Instances::Unknown);
        deliveries.begun(&plane());
        assert_eq!(deliveries.delivery(&plane()), pending("The configuration is not published yet."));
        assert_eq!(deliveries.revision(&plane()), Some(revision(7)));
        deliveries.failed(&plane(), "no answer".to_owned());
        let failed = pending("The configuration cannot be published: no answer.");
        assert_eq!(deliveries.delivery(&plane()), failed);
        deliveries.begun(&plane());
        assert_eq!(deliveries.delivery(&plane()), failed);
        deliveries.published(&plane(), revision(8));
        assert_eq!(deliveries.delivery(&plane()), Delivery::Delivered);
    }

    #[test]
    fn only_what_changes_the_delivery_is_news() {
        let mut deliveries = Deliveries::default();
        deliveries.published(&plane(), revision(7));
        assert!(deliveries.observe(&plane(), Instances::Connected(1)));
        assert!(!deliveries.observe(&plane(), Instances::Connected(2)));
        assert!(deliveries.observe(&plane(), pages(&[Ok((7, None))])));
        assert!(!deliveries.observe(&plane(), pages(&[Ok((8, None))])));
    }
}
