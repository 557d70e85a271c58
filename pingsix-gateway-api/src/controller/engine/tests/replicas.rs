//! Two replicas, of which data planes read from one.

use pingsix_sink::Revision;
use pingsix_translate::status::{ConditionStatus, ConditionType};

use super::refusals::{is_good, new, new_route, plane};
use super::*;
use crate::delivery::Instances;
use crate::delivery::status_page::{StatusPage, StatusUrl};
use crate::fixture::api_server::ApiServer;
use crate::leader::LeaseOptions;

impl Rig {
    /// A replica without reports of others.
    fn replica(name: &str) -> Self {
        let lease = LeaseOptions::new("home", pingsix_translate::DEFAULT_CONTROLLER_NAME, name);
        let replicas = Replicas::new(ApiServer::default().client(), &lease);
        let with_replicas = |router: SinkRouter| router.with_replicas(Some(replicas));
        let mut rig = Self::routed(&[Place::Replica], with_replicas, Options::default()).read();
        rig.settle();
        rig
    }

    fn replicas(&self) -> Replicas {
        self.engine.shared.sinks.replicas().cloned().unwrap()
    }

    /// Another replica takes in the report of this one, and acts on it.
    fn tell_other(&self, other: &mut Self) {
        self.replicas().deliver(&other.replicas(), true);
        other.engine.handle(Message::ReplicasChanged);
        other.settle();
    }

    fn accepted_reason(&self, route: usize) -> Reason {
        let Some(Wanted::Route(verdict)) = self.wanted(&new(route)) else { panic!("nothing is said of it") };
        verdict.parents[0].conditions.get(ConditionType::Accepted).unwrap().reason
    }

    /// An instance shows this page. It reads from this replica, or from another.
    fn shows(&mut self, page: StatusPage, is_here: bool) {
        let url: StatusUrl = "http://127.0.0.1:7085".parse().unwrap();
        self.engine.shared.fixed_pages.insert(plane(), [url.clone()].into());
        self.engine.handle(Message::Parameters(web()));
        let elsewhere = (!is_here).then_some(Revision::MIN);
        *self.feed().elsewhere.lock() = elsewhere;
        self.engine.handle(Message::Pages(plane(), Instances::Pages([(url, Ok(page))].into())));
    }

    fn is_confirmed(&self) -> bool {
        let (status, message) = self.programmed_reason();
        assert_eq!(status, ConditionStatus::True, "{message}");
        message.starts_with("Every known PingSIX instance")
    }
}

/// The page of an instance that has everything up to a revision that is beyond all there are.
fn at(revision: i64) -> StatusPage {
    StatusPage { published_revision: revision, observed_revision: revision, ..StatusPage::default() }
}

#[tokio::test(start_paused = true)]
async fn a_quarantine_of_a_follower_is_told_to_the_author_by_the_leader() {
    let (mut leader, mut follower) = (Rig::replica("one"), Rig::replica("two"));
    let board = leader.engine.report.events.clone();
    let mut accepted = None;
    follower.react(&mut accepted, |_| true);
    leader.add_routes();
    follower.add_routes();
    let alright = board.len();
    for _ in 0..12 {
        follower.tell_other(&mut leader);
        assert_eq!(leader.accepted_reason(5), Reason::Accepted, "nothing is found yet");
        follower.react(&mut accepted, is_good);
        if !follower.is_refused() {
            break;
        }
    }
    follower.settle();
    assert!(!follower.is_refused() && follower.accepted_reason(5) == Reason::Quarantined);
    follower.tell_other(&mut leader);
    assert_eq!(leader.accepted_reason(5), Reason::Quarantined);
    assert_eq!(leader.accepted_reason(3), Reason::Accepted);
    assert_eq!(board.len(), alright + 1, "there is an Event");
    assert_eq!(leader.text(), follower.text(), "whoever moves is served the same");
    // The quarantines of the follower survive its end, and then the end of the leader.
    follower.replicas().deliver(&leader.replicas(), false);
    leader.engine.handle(Message::ReplicasChanged);
    leader.settle();
    assert_eq!(leader.accepted_reason(5), Reason::Quarantined);
    let mut third = Rig::replica("three");
    third.add_routes();
    leader.tell_other(&mut third);
    assert_eq!(third.accepted_reason(5), Reason::Quarantined);
    // Its author mends it.
    for rig in [&mut leader, &mut third] {
        rig.apply(Kind::HttpRoute, new_route(5, "/other", 2));
        rig.settle();
        assert_eq!(rig.accepted_reason(5), Reason::Accepted);
    }
    leader.tell_other(&mut third);
    assert_eq!(third.accepted_reason(5), Reason::Accepted);
}

#[tokio::test(start_paused = true)]
async fn an_instance_of_another_replica_has_confirmed_what_that_one_says_it_has() {
    let (mut leader, mut follower) = (Rig::replica("one"), Rig::replica("two"));
    // The instance is at the follower, and the follower does not know the revision yet.
    leader.shows(at(7_000), false);
    assert!(!leader.is_confirmed(), "it is delivered");
    follower.shows(at(7_000), true);
    assert!(!leader.is_confirmed(), "nobody has told it");
    follower.tell_other(&mut leader);
    assert!(leader.is_confirmed(), "its page was looked at before");
    leader.shows(at(7_000), false);
    assert!(leader.is_confirmed());
    // The leader sees a change before the follower does: that is no news for a while.
    leader.add_routes();
    follower.tell_other(&mut leader);
    leader.shows(at(7_000), false);
    assert!(leader.is_confirmed());
    tokio::time::advance(Duration::from_secs(9)).await;
    leader.shows(at(7_000), false);
    assert!(leader.is_confirmed());
    tokio::time::advance(Duration::from_secs(2)).await;
    leader.shows(at(7_000), false);
    assert!(!leader.is_confirmed(), "it is still not what is asked for");
    follower.add_routes();
    // Not before the instance has it.
    follower.shows(at(1), true);
    follower.tell_other(&mut leader);
    leader.shows(at(7_000), false);
    assert!(!leader.is_confirmed());
    follower.shows(at(8_000), true);
    follower.tell_other(&mut leader);
    leader.shows(at(8_000), false);
    assert!(leader.is_confirmed());
    // A refusal is reported at once, whichever replica the instance reads from.
    let refused = StatusPage {
        error_kind: Some("candidate_invalid".to_owned()),
        last_error: Some("bad".to_owned()),
        ..at(8_000)
    };
    leader.shows(refused, false);
    assert_eq!(leader.programmed_reason().0, ConditionStatus::False);
}

#[tokio::test(start_paused = true)]
async fn a_report_left_behind_by_an_ended_replica_does_not_count() {
    let (mut leader, mut follower) = (Rig::replica("one"), Rig::replica("two"));
    follower.shows(at(7_000), true);
    follower.tell_other(&mut leader);
    follower.replicas().deliver(&leader.replicas(), false);
    leader.shows(at(7_000), false);
    assert!(!leader.is_confirmed());
}
