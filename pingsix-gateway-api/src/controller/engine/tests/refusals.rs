//! Publications that PingSIX refuses.

use pingsix_sink::{Revision, Scope};
use pingsix_translate::status::{ConditionStatus, ConditionType};

use super::*;
use crate::acceptance::Reception;
use crate::delivery::Instances;
use crate::delivery::status_page::StatusPage;

pub(super) fn plane() -> DataPlaneKey {
    DataPlaneKey::Gateway { gateway: pingsix_translate::ObjectName::new("infra", "web"), port: None }
}

pub(super) fn new(index: usize) -> ObjectKey {
    ObjectKey::new(Kind::HttpRoute, "infra", &*format!("new-{index}"))
}

pub(super) fn new_route(index: usize, path: &str, generation: u32) -> Value {
    json!({
        "metadata": {
            "name": format!("new-{index}"), "namespace": "infra", "resourceVersion": generation.to_string(),
            "generation": generation,
        },
        "spec": {
            "parentRefs": [{"name": "web"}], "hostnames": [format!("new-{index}.example")],
            "rules": [{
                "matches": [{"path": {"value": path}}], "backendRefs": [{"name": "backend", "port": 80}],
            }],
        },
    })
}

impl Rig {
    pub(super) fn is_refused(&self) -> bool {
        self.engine.shared.reconciler.acceptance(&web()).unwrap().refusal().is_some()
    }

    /// The published documents, as one text.
    pub(super) fn text(&self) -> String {
        let scope = Scope::new("/pingsix/infra/web").unwrap();
        let documents = self.feed().sink.documents(&scope).unwrap();
        let texts = documents.iter().map(|document| String::from_utf8_lossy(&document.value).into_owned());
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Has readers take or refuse the publication, and takes the steps that follow; at most one publication.
    pub(super) fn react(&mut self, accepted: &mut Option<Revision>, is_good: impl Fn(&str) -> bool) {
        let revision = self.engine.shared.deliveries.revision(&plane());
        let mut refused = None;
        if is_good(&self.text()) {
            *accepted = revision;
        } else {
            refused = revision.map(|revision| (revision, "it is bad".into()));
        }
        self.engine.record_reception(&plane(), Some(Reception { accepted: *accepted, refused }));
        if let Some(owner) = self.engine.ingest.queue.pop(Instant::now() + Duration::from_mins(1)) {
            self.engine.reconcile(&owner);
            self.engine.advance();
        }
    }

    /// The same of one that shows a status page, which is looked at twice between two beats.
    async fn react_on_page(&mut self, accepted: &mut Option<Revision>, is_good: impl Fn(&str) -> bool) {
        let revision = self.engine.shared.deliveries.revision(&plane());
        let is_taken = is_good(&self.text());
        if is_taken {
            *accepted = revision;
        }
        let page = StatusPage {
            published_revision: accepted.map_or(0, Revision::get),
            observed_revision: revision.map_or(0, Revision::get),
            error_kind: (!is_taken).then(|| "candidate_invalid".to_owned()),
            last_error: (!is_taken).then(|| "it is bad".to_owned()),
            ..StatusPage::default()
        };
        for _ in 0..2 {
            let pages = [("http://127.0.0.1:7085".parse().unwrap(), Ok(page.clone()))];
            self.engine.observe(&plane(), Instances::Pages(pages.into()));
            tokio::time::advance(MAX_TICK_INTERVAL / 2).await;
        }
        self.settle();
        self.engine.handle(Message::Tick);
        self.settle();
    }

    /// The route that PingSIX refuses, among others.
    pub(super) fn add_routes(&mut self) {
        self.apply(
            Kind::Service,
            json!({
                "metadata": {"name": "backend", "namespace": "infra", "resourceVersion": "1"},
                "spec": {"ports": [{"port": 80}]},
            }),
        );
        self.apply(
            Kind::EndpointSlice,
            json!({
                "metadata": {
                    "name": "backend", "namespace": "infra", "resourceVersion": "1",
                    "labels": {"kubernetes.io/service-name": "backend"},
                },
                "addressType": "IPv4", "ports": [{"port": 8080}], "endpoints": [{"addresses": ["10.0.0.1"]}],
            }),
        );
        for index in 0..8 {
            self.apply(Kind::HttpRoute, new_route(index, "/fine", 1));
        }
        self.settle();
    }

    pub(super) fn programmed_reason(&self) -> (ConditionStatus, String) {
        let Some(Wanted::Gateway { verdict, .. }) = self.wanted(&web()) else { panic!("nothing is said") };
        let condition = verdict.conditions.get(ConditionType::Programmed).unwrap().clone();
        (condition.status, condition.message)
    }
}

/// PingSIX refuses every document of the fifth route, except one that answers an error.
pub(super) fn is_good(text: &str) -> bool {
    text.lines().all(|line| {
        !line.contains("new-5.example") || line.contains("fault-injection") || line.contains("status-500")
    })
}

#[tokio::test(start_paused = true)]
async fn a_refused_object_is_found_and_statuses_are_true_all_the_time() {
    let mut rig = Rig::ready();
    let mut accepted = None;
    rig.react(&mut accepted, |_| true);
    assert!(rig.engine.shared.reconciler.acceptance(&web()).unwrap().refusal().is_none());
    rig.add_routes();
    rig.react(&mut accepted, is_good);
    let (status, message) = rig.programmed_reason();
    assert_eq!(status, ConditionStatus::False);
    assert!(message.contains("The controller is searching for the refused object."), "{message}");
    let verdict = |rig: &Rig, index| {
        let Some(Wanted::Route(verdict)) = rig.wanted(&new(index)) else { panic!("nothing is said of it") };
        let condition = verdict.parents[0].conditions.get(ConditionType::Accepted).unwrap();
        (condition.status, condition.reason)
    };
    let mut trials = 0;
    while rig.engine.shared.reconciler.acceptance(&web()).unwrap().refusal().is_some() {
        trials += 1;
        assert!(trials < 10);
        assert_eq!(rig.programmed_reason().0, ConditionStatus::False);
        assert_eq!(verdict(&rig, 3), (ConditionStatus::True, Reason::Accepted), "trials do not show");
        rig.react(&mut accepted, is_good);
    }
    rig.settle();
    let metric: usize = rig.metric(r#"pingsix_gateway_trials_total{cause="search"}"#).parse().unwrap();
    assert!((1..=4).contains(&metric), "{metric}");
    assert_eq!(verdict(&rig, 5).1, Reason::Quarantined);
    assert_eq!(verdict(&rig, 3), (ConditionStatus::True, Reason::Accepted));
    assert!(rig.text().contains("new-7.example") && rig.text().contains("new-5.example"));
    rig.engine.handle(Message::Tick);
    assert_eq!(rig.metric(r#"pingsix_gateway_problems{severity="error",reason="Quarantined"}"#), "1");
    // The object changes, and is released.
    rig.apply(Kind::HttpRoute, new_route(5, "/other", 2));
    rig.settle();
    assert_eq!(verdict(&rig, 5).0, ConditionStatus::True);
}

#[tokio::test(start_paused = true)]
async fn a_follower_finds_the_objects_that_its_own_readers_refuse() {
    let mut rig = Rig::ready_with(&[Place::Replica, Place::Shared]);
    rig.lead(false);
    let mut accepted = None;
    rig.react_on_page(&mut accepted, |_| true).await;
    rig.add_routes();
    rig.react_on_page(&mut accepted, is_good).await;
    assert!(rig.is_refused());
    let mut trials = 0;
    while rig.is_refused() {
        trials += 1;
        assert!(trials < 10);
        rig.react_on_page(&mut accepted, is_good).await;
    }
    assert!(rig.text().contains("new-7.example") && is_good(&rig.text()), "{}", rig.text());
}

#[tokio::test(start_paused = true)]
async fn a_follower_tries_nothing_out_on_readers_of_a_shared_target() {
    for places in [[Place::Shared, Place::Replica], [Place::Shared; 2]] {
        let mut rig = Rig::ready_with(&places);
        let mut accepted = None;
        rig.react_on_page(&mut accepted, |_| true).await;
        rig.add_routes();
        rig.lead(false);
        let before = rig.text();
        for _ in 0..5 {
            rig.react_on_page(&mut accepted, is_good).await;
            assert!(!rig.is_refused());
            assert_eq!(rig.text(), before);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_shows_in_no_status() {
    let mut rig = Rig::ready();
    let mut accepted = None;
    rig.react_on_page(&mut accepted, |_| true).await;
    rig.add_routes();
    rig.react_on_page(&mut accepted, is_good).await;
    let mut seconds = 0;
    while rig.is_refused() || rig.programmed_reason().0 != ConditionStatus::True {
        seconds += 1;
        assert!(seconds < 20, "{:?}", rig.programmed_reason());
        rig.react_on_page(&mut accepted, is_good).await;
    }
    let counted = |rig: &Rig, cause| -> usize {
        rig.metric(&format!("pingsix_gateway_trials_total{{cause=\"{cause}\"}}")).parse().unwrap()
    };
    let searched = counted(&rig, "search");
    assert!(searched > 0 && counted(&rig, "retry") == 0);
    let mut tries = 0;
    for _ in 0..400 {
        rig.react_on_page(&mut accepted, is_good).await;
        tries += usize::from(!is_good(&rig.text()));
        assert_eq!(rig.programmed_reason().0, ConditionStatus::True, "{}", rig.programmed_reason().1);
    }
    assert_eq!(tries, 1, "after five minutes");
    assert!(counted(&rig, "search") == searched && counted(&rig, "retry") > 0);
    // PingSIX accepts the unchanged object.
    for _ in 0..700 {
        rig.react_on_page(&mut accepted, |_| true).await;
    }
    assert!(!is_good(&rig.text()) && !rig.is_refused());
    let Some(Wanted::Route(verdict)) = rig.wanted(&new(5)) else { panic!("nothing is said of it") };
    let condition = verdict.parents[0].conditions.get(ConditionType::Accepted).unwrap();
    assert_eq!(condition.reason, Reason::Accepted);
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_search_ends_and_changes_meanwhile_are_published() {
    let mut rig = Rig::ready();
    let mut accepted = None;
    rig.react(&mut accepted, |_| true);
    rig.add_routes();
    rig.react(&mut accepted, is_good);
    assert!(rig.is_refused());
    // PingSIX reads from another replica now.
    rig.engine.record_reception(&plane(), None);
    rig.apply(Kind::HttpRoute, new_route(8, "/fine", 1));
    let mut seconds = 0;
    while rig.is_refused() {
        seconds += 1;
        assert!(seconds < 20);
        tokio::time::advance(MAX_TICK_INTERVAL).await;
        rig.engine.handle(Message::Tick);
        rig.settle();
    }
    rig.settle();
    for index in 0..9 {
        assert!(rig.text().contains(&format!("new-{index}.example")), "{index}");
    }
    let Some(Wanted::Route(verdict)) = rig.wanted(&new(8)) else { panic!("nothing is said of it") };
    let condition = verdict.parents[0].conditions.get(ConditionType::Accepted).unwrap();
    assert_eq!(condition.reason, Reason::Accepted);
}
