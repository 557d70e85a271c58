//! Publications that take their time, or are not made.

use tokio::time::{sleep, timeout};

use super::*;
use crate::acceptance::{AcceptanceOutcome, Reception};

const SLOW_PUBLICATION: Duration = Duration::from_secs(5);
pub(super) const WEB: &str = "/pingsix/infra/web";
pub(super) const BLOG: &str = "/pingsix/infra/blog";

pub(super) fn blog() -> ObjectKey {
    ObjectKey::new(Kind::Gateway, "infra", "blog")
}

impl Rig {
    /// With a second Gateway, which has a route as well.
    pub(super) fn with_blog() -> Self {
        Self::ready().and_blog()
    }

    fn and_blog(self) -> Self {
        let mut rig = self;
        rig.apply(Kind::Gateway, second());
        let mut post = route(1);
        post["metadata"]["name"] = json!("post");
        post["spec"]["parentRefs"] = json!([{"name": "blog"}]);
        rig.apply(Kind::HttpRoute, post);
        rig.settle();
        rig
    }
}

impl Rig {
    /// For a time, reconciles due owners, takes in results of publications, and ticks.
    pub(super) async fn during(&mut self, time: Duration) {
        let until = Instant::now() + time;
        loop {
            while let Some(owner) = self.engine.ingest.queue.pop(Instant::now()) {
                self.engine.reconcile(&owner);
                self.engine.advance();
            }
            let now = Instant::now();
            if now >= until {
                return;
            }
            let next =
                until.min(self.engine.ingest.queue.next_due().unwrap_or(until)).min(now + MAX_TICK_INTERVAL);
            match timeout(next - now, self.engine.publish.publisher.ended()).await {
                Ok(attempt) => self.engine.handle(Message::Published(attempt.unwrap())),
                Err(_) => self.engine.handle(Message::Tick),
            }
            self.engine.advance();
        }
    }

    /// The `Programmed` condition of a Gateway.
    pub(super) fn programmed(&self, gateway: &ObjectKey) -> String {
        let Some(Wanted::Gateway { verdict, .. }) = self.wanted(gateway) else { return "nothing".to_owned() };
        let conditions = format!("{:?}", verdict.conditions);
        let at = conditions.find("Programmed").unwrap_or_default();
        conditions[at..].to_owned()
    }

    pub(super) fn is_programmed(&self, gateway: &ObjectKey) -> bool {
        self.engine
            .shared
            .deliveries
            .of(&self.engine.shared.reconciler.data_planes(gateway))
            .values()
            .all(|delivery| *delivery == pingsix_translate::status::Delivery::Delivered)
    }
}

pub(super) fn second() -> Value {
    let mut gateway = gateway();
    gateway["metadata"]["name"] = json!("blog");
    gateway
}

/// The Gateway after a change.
pub(super) fn changed_gateway(name: &str, version: u32) -> Value {
    let mut changed = gateway();
    changed["metadata"]["name"] = json!(name);
    changed["metadata"]["resourceVersion"] = json!(version.to_string());
    changed["metadata"]["generation"] = json!(version);
    changed["spec"]["listeners"][0]["hostname"] = json!(format!("v{version}.example"));
    changed
}

#[tokio::test(start_paused = true)]
async fn a_stuck_target_keeps_only_its_own_gateway_from_being_programmed() {
    let mut rig = Rig::with_blog();
    rig.feed().fate(WEB, Fate::Stuck);
    let before = rig.wanted(&web());
    rig.apply(Kind::Gateway, changed_gateway("web", 2));
    rig.apply(Kind::HttpRoute, route(2));
    let from = Instant::now();
    rig.apply(Kind::Gateway, changed_gateway("blog", 2));
    rig.settle();
    assert_eq!(from.elapsed(), Duration::ZERO);
    assert!(rig.is_programmed(&blog()) && !rig.is_programmed(&web()));
    assert_eq!(rig.wanted(&web()), before, "it may be over in a moment");
    rig.during(Duration::from_secs(3)).await;
    let told = rig.programmed(&web());
    assert!(told.contains("The configuration is not published yet."), "{told}");
    // The other Gateway continues, also when all statuses have to be written.
    for version in 3..6 {
        rig.apply(Kind::Gateway, changed_gateway("blog", version));
        rig.apply(Kind::Gateway, changed_gateway("web", version));
        rig.engine.handle(Message::AddressesChanged);
        rig.during(Duration::from_secs(2)).await;
        assert!(rig.is_programmed(&blog()) && !rig.is_programmed(&web()));
        assert!(!rig.programmed(&blog()).contains("not published"), "{}", rig.programmed(&blog()));
    }
    let of_web = rig.feed().begun().into_iter().filter(|(scope, _)| scope == WEB).count();
    assert_eq!(of_web, 2, "the first, and the one that is stuck");
}

#[tokio::test(start_paused = true)]
async fn a_stuck_second_target_is_reported_and_does_not_delay_the_first() {
    let mut rig = Rig::ready_with(&[Place::Replica; 2]);
    rig.feeds[1].fate(WEB, Fate::Stuck);
    for version in 2..5 {
        rig.apply(Kind::Gateway, changed_gateway("web", version));
        rig.settle();
        let held = rig.feed().sink.documents(&Scope::new(WEB).unwrap()).unwrap();
        let host = format!("v{version}.example");
        assert!(held.iter().any(|document| String::from_utf8_lossy(&document.value).contains(&host)));
        rig.during(Duration::from_secs(2)).await;
        assert!(rig.programmed(&web()).contains("The configuration is not published yet."));
    }
    // The acceptance by PingSIX counts all the same.
    let plane = rig.engine.shared.reconciler.data_planes(&web()).remove(0);
    let revision = rig.engine.shared.deliveries.revision(&plane).unwrap();
    let refusal = Reception { accepted: None, refused: Some((revision, "it is bad".into())) };
    assert_ne!(
        rig.engine.shared.reconciler.record_reception(&plane, Some(refusal)),
        AcceptanceOutcome::Nothing
    );
    assert_eq!(rig.feeds[1].begun().len(), 2, "the first, and the one that is stuck");
}

#[tokio::test(start_paused = true)]
async fn documents_left_by_an_earlier_process_are_withdrawn_if_orphaned() {
    use crate::controller::orphans::Orphan;

    let mut rig = Rig::with_blog();
    let gateway = |name: &str, port| DataPlaneKey::Gateway {
        gateway: pingsix_translate::ObjectName::new("infra", name),
        port,
    };
    let orphan = |data_plane, is_gone| Orphan { data_plane, is_gone, at: None };
    let before = rig.feed().begun().len();
    rig.engine.handle(Message::Withdraw(vec![
        // The data plane is served, independent of reports.
        orphan(gateway("web", None), true),
        // In another layout.
        orphan(gateway("blog", Some(8443)), false),
        // The Gateway exists, with another class.
        orphan(gateway("elsewhere", None), false),
        orphan(gateway("gone", None), true),
        orphan(gateway("gone", Some(80)), true),
        orphan(DataPlaneKey::Ingress { class: "gone".into(), port: None }, true),
        orphan(DataPlaneKey::Ingress { class: "gone".into(), port: Some(443) }, true),
    ]));
    rig.settle();
    let begun: BTreeSet<(String, usize)> = rig.feed().begun().split_off(before).into_iter().collect();
    let gone = [
        "/pingsix-ingress/gone",
        "/pingsix-ingress/gone:443",
        "/pingsix/infra/gone",
        "/pingsix/infra/gone:80",
    ];
    assert_eq!(begun, gone.map(|scope| (scope.to_owned(), 0)).into());
    assert!(rig.engine.publish.withdrawals.is_empty(), "they are forgotten");
    assert_eq!(rig.engine.shared.deliveries.data_planes().count(), 2);

    // One that fails is tried again.
    rig.feed().fate("/pingsix/infra/late", Fate::Failing(Duration::from_millis(10)));
    rig.engine.handle(Message::Withdraw(vec![orphan(gateway("late", None), true)]));
    rig.during(Duration::from_secs(1)).await;
    assert_eq!(rig.engine.publish.withdrawals.len(), 1);
    rig.feed().fate("/pingsix/infra/late", Fate::Quick);
    rig.during(Duration::from_secs(5)).await;
    assert!(rig.engine.publish.withdrawals.is_empty());
    assert_eq!(rig.feed().held("/pingsix/infra/late"), Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_scope_that_a_foreign_writer_changed_is_published_again() {
    let mut rig = Rig::with_blog();
    let before = rig.feed().begun().len();
    rig.engine.handle(Message::Drifted(Scope::new(BLOG).unwrap()));
    rig.engine.handle(Message::Drifted(Scope::new("/pingsix/infra/unknown").unwrap()));
    rig.settle();
    let begun = rig.feed().begun().split_off(before);
    assert_eq!(begun.into_iter().map(|(scope, _)| scope).collect::<Vec<_>>(), [BLOG]);
}

#[tokio::test(start_paused = true)]
async fn everything_published_before_marks_begin_is_published_again() {
    let mut rig = Rig::with_blog();
    let before = rig.feed().begun().len();
    rig.engine.handle(Message::Reconsider);
    rig.settle();
    let begun = rig.feed().begun().split_off(before);
    let scopes: BTreeSet<String> = begun.into_iter().map(|(scope, _)| scope).collect();
    assert_eq!(scopes, [BLOG, WEB].map(str::to_owned).into());
}

#[tokio::test(start_paused = true)]
async fn a_slow_target_gets_the_newest_and_statuses_do_not_turn_to_and_fro() {
    let mut rig = Rig::ready();
    let moment = Duration::from_millis(300);
    rig.feed().fate(WEB, Fate::Slow(moment));
    let before = rig.wanted(&web());
    rig.apply(Kind::Gateway, changed_gateway("web", 2));
    rig.settle();
    rig.apply(Kind::Gateway, changed_gateway("web", 3));
    rig.apply(Kind::ListenerSet, listener_set(0));
    rig.settle();
    rig.during(moment + moment / 2).await;
    assert!(!rig.is_programmed(&web()), "the first is published, and it is not the newest");
    assert_eq!(rig.wanted(&web()), before);
    rig.during(moment).await;
    assert!(rig.is_programmed(&web()));
    let Some(Wanted::Gateway { verdict, .. }) = rig.wanted(&web()) else { panic!() };
    assert_eq!(verdict.generation, 3);
    assert!(!rig.programmed(&web()).contains("not published"));
    assert!(rig.engine.publish.pending.is_empty());
    assert_eq!(
        rig.metric(r#"pingsix_gateway_reconciliations_total{kind="Gateway",outcome="superseded"}"#),
        "1"
    );
}

#[tokio::test(start_paused = true)]
async fn changes_are_live_when_they_are_published() {
    let mut rig = Rig::ready();
    let counted = |rig: &Rig| {
        (
            rig.metric("pingsix_gateway_event_to_live_seconds_count"),
            rig.metric("pingsix_gateway_event_to_live_seconds_sum"),
        )
    };
    rig.apply(Kind::HttpRoute, route(2));
    rig.settle();
    let (before, sum) = counted(&rig);
    assert_eq!((before.as_str(), sum.as_str()), ("2", "0.0"));
    rig.feed().fate(WEB, Fate::Failing(SLOW_PUBLICATION / 2));
    rig.apply(Kind::HttpRoute, route(3));
    rig.during(SLOW_PUBLICATION).await;
    assert_eq!(counted(&rig).0, "2");
    rig.feed().fate(WEB, Fate::Slow(SLOW_PUBLICATION));
    rig.during(SLOW_PUBLICATION * 4).await;
    let (count, sum) = counted(&rig);
    assert_eq!(count, "3");
    assert!(sum.parse::<f64>().unwrap() >= (SLOW_PUBLICATION + SLOW_PUBLICATION / 2).as_secs_f64(), "{sum}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_publication_is_retried_at_growing_intervals_and_reported() {
    let mut rig = Rig::with_blog();
    rig.feed().fate(WEB, Fate::Failing(Duration::from_millis(1)));
    let tries = |rig: &Rig| rig.feed().begun().into_iter().filter(|(scope, _)| scope == WEB).count();
    let before = tries(&rig);
    rig.apply(Kind::Gateway, changed_gateway("web", 2));
    rig.during(Duration::from_secs(2)).await;
    assert!((4..7).contains(&(tries(&rig) - before)), "{}", tries(&rig) - before);
    let told = rig.programmed(&web());
    assert!(told.contains("The configuration cannot be published: "), "{told}");
    rig.during(Duration::from_mins(10)).await;
    let before = tries(&rig);
    rig.during(Duration::from_mins(1)).await;
    assert!((1..=3).contains(&(tries(&rig) - before)), "{}", tries(&rig) - before);
    rig.feed().fate(WEB, Fate::Quick);
    rig.during(Duration::from_mins(1)).await;
    let told = rig.programmed(&web());
    assert!(rig.is_programmed(&web()) && !told.contains("cannot be published"), "{told}");
    // A later failure is the first.
    rig.feed().fate(WEB, Fate::Failing(Duration::ZERO));
    rig.apply(Kind::Gateway, changed_gateway("web", 3));
    let before = tries(&rig);
    rig.during(Duration::from_secs(1)).await;
    assert!(tries(&rig) - before >= 3);
}

#[tokio::test(start_paused = true)]
async fn a_refused_publication_is_reported_and_not_tried_again() {
    let mut rig = Rig::ready();
    rig.feed().fate(WEB, Fate::Refused);
    rig.apply(Kind::Gateway, changed_gateway("web", 2));
    let before = rig.feed().begun().len();
    rig.during(Duration::from_mins(10)).await;
    assert_eq!(rig.feed().begun().len(), before + 1);
    assert!(rig.programmed(&web()).contains("cannot be published"), "{}", rig.programmed(&web()));
}

#[tokio::test(start_paused = true)]
async fn a_withdrawal_is_remembered_until_it_is_made() {
    let mut rig = Rig::with_blog();
    for fate in [Fate::Failing(Duration::ZERO), Fate::Failing(SLOW_PUBLICATION)] {
        rig.feed().fate(BLOG, fate);
        assert_ne!(rig.feed().held(BLOG), Some(0));
        rig.tell(Kind::Gateway, watcher::Event::Delete(second()));
        rig.during(Duration::from_mins(1)).await;
        assert_ne!(rig.feed().held(BLOG), Some(0));
        assert_eq!(rig.engine.publish.withdrawals.len(), 1);
        assert_eq!(rig.engine.shared.deliveries.data_planes().count(), 2);
        rig.feed().fate(BLOG, Fate::Quick);
        rig.during(Duration::from_mins(1)).await;
        assert_eq!(rig.feed().held(BLOG), Some(0));
        assert!(rig.engine.publish.withdrawals.is_empty() && rig.engine.publish.pending.is_empty());
        assert_eq!(rig.engine.shared.deliveries.data_planes().count(), 1);
        assert!(!rig.engine.ingest.queue.contains(&blog()));
        rig.apply(Kind::Gateway, second());
        rig.settle();
    }
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_comes_back_during_its_withdrawal_is_published() {
    let mut rig = Rig::with_blog();
    let held = rig.feed().held(BLOG);
    assert_ne!(held, Some(0));
    rig.feed().fate(BLOG, Fate::Slow(SLOW_PUBLICATION));
    rig.tell(Kind::Gateway, watcher::Event::Delete(second()));
    rig.during(SLOW_PUBLICATION / 2).await;
    rig.apply(Kind::Gateway, second());
    rig.during(SLOW_PUBLICATION).await;
    assert_eq!(rig.feed().held(BLOG), Some(0));
    rig.during(SLOW_PUBLICATION).await;
    assert_eq!(rig.feed().held(BLOG), held);
    assert!(rig.is_programmed(&blog()) && rig.engine.publish.withdrawals.is_empty());
}

#[tokio::test(start_paused = true)]
async fn readiness_waits_for_what_the_feed_is_given_however_long_that_takes() {
    let mut rig = Rig::known();
    rig.feed().fate(WEB, Fate::Failing(SLOW_PUBLICATION));
    rig.during(SLOW_PUBLICATION * 3).await;
    assert!(!rig.is_ready() && rig.feed().is_open());
    rig.feed().fate(WEB, Fate::Slow(SLOW_PUBLICATION));
    rig.during(SLOW_PUBLICATION / 2).await;
    // A later owner delays no other one.
    rig.feed().fate(BLOG, Fate::Stuck);
    rig.apply(Kind::Gateway, second());
    rig.during(SLOW_PUBLICATION / 2).await;
    assert!(!rig.is_ready() && rig.feed().is_open());
    rig.during(SLOW_PUBLICATION).await;
    assert!(rig.is_ready() && rig.feed().is_open());
}

#[tokio::test(start_paused = true)]
async fn a_publication_that_is_under_way_ends_before_the_controller_stops() {
    let mut rig = Rig::with_blog();
    rig.feed().fate(WEB, Fate::Slow(SLOW_PUBLICATION / 4));
    rig.apply(Kind::HttpRoute, route(2));
    rig.settle();
    let mut other = route(3);
    other["spec"]["hostnames"] = json!(["other.example"]);
    rig.apply(Kind::HttpRoute, other);
    rig.settle();
    // Its end was seen, and not yet dealt with.
    rig.feed().fate(BLOG, Fate::Slow(SLOW_PUBLICATION / 4));
    rig.tell(Kind::Gateway, watcher::Event::Delete(second()));
    let from = Instant::now();
    rig.engine.drain().await.unwrap();
    assert_eq!(from.elapsed(), SLOW_PUBLICATION / 2);
    assert_eq!(rig.feed().held(BLOG), Some(0));
    assert!(rig.engine.publish.pending.is_empty());
    let served = rig.feed().sink.contents(&pingsix_sink::Scope::new(WEB).unwrap());
    assert!(format!("{served:?}").contains("other.example"), "{served:?}");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_withdrawal_is_tried_before_the_controller_stops() {
    let mut rig = Rig::with_blog();
    rig.feed().fate(BLOG, Fate::Failing(Duration::ZERO));
    rig.tell(Kind::Gateway, watcher::Event::Delete(second()));
    rig.during(Duration::from_mins(10)).await;
    rig.feed().fate(BLOG, Fate::Quick);
    rig.engine.drain().await.unwrap();
    assert_eq!(rig.feed().held(BLOG), Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_stuck_publication_is_given_up_when_the_controller_stops() {
    let mut rig = Rig::ready();
    rig.feed().fate(WEB, Fate::Stuck);
    rig.apply(Kind::Gateway, changed_gateway("web", 2));
    rig.settle();
    let from = Instant::now();
    rig.engine.drain().await.unwrap();
    assert_eq!(from.elapsed(), rig.engine.shared.drain);
    sleep(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_takes_over_publishes_all_that_it_left_to_the_leader() {
    let mut rig = Rig::publishing_to(&[Place::Shared]).read();
    rig.lead(false);
    rig.settle();
    assert!(rig.is_ready() && rig.feed().begun().is_empty(), "one that follows is ready, and writes nothing");
    rig.apply(Kind::Gateway, second());
    rig.settle();
    rig.tell(Kind::Gateway, watcher::Event::Delete(second()));
    rig.settle();
    rig.lead(true);
    rig.engine.handle(Message::Leads(true));
    rig.settle();
    let begun: BTreeSet<String> = rig.feed().begun().into_iter().map(|(scope, _)| scope).collect();
    assert_eq!(begun, BTreeSet::from([WEB.to_owned(), BLOG.to_owned()]), "its end as well");
    assert!(rig.is_programmed(&web()) && rig.engine.publish.withdrawals.is_empty());
    // A replica that leads again has not seen the writes of other leaders.
    let before = rig.feed().begun().len();
    rig.lead(false);
    rig.engine.handle(Message::Leads(false));
    rig.lead(true);
    rig.engine.handle(Message::Leads(true));
    rig.settle();
    assert_eq!(rig.feed().begun().len(), before + 1);
    rig.engine.handle(Message::Leads(false));
    rig.engine.handle(Message::Leads(true));
    rig.settle();
    assert_eq!(rig.feed().begun().len(), before + 1, "what every replica publishes is not concerned");
}

#[tokio::test(start_paused = true)]
async fn changes_during_a_short_loss_of_leadership_are_published_all_the_same() {
    let mut rig = Rig::ready_with(&[Place::Shared]);
    let (lead, leadership) = watch::channel(None);
    rig.engine.shared.leadership = Leadership::of(leadership);
    rig.lead(false);
    rig.apply(Kind::Gateway, changed_gateway("web", 2));
    rig.settle();
    let before = rig.feed().begun().len();
    rig.during(Duration::from_secs(5)).await;
    assert_eq!(rig.feed().begun().len(), before, "another one may lead");
    // The leadership returns before its end was noticed, so neither is reported.
    lead.send_replace(Some(Instant::now() + Duration::from_hours(1)));
    rig.lead(true);
    rig.during(Duration::from_secs(5)).await;
    assert_eq!(rig.feed().begun().len(), before + 1);
    assert!(rig.is_programmed(&web()));
}

#[tokio::test(start_paused = true)]
async fn a_withdrawal_is_remembered_until_all_targets_have_it() {
    let mut rig = Rig::ready_with(&[Place::Replica, Place::Shared]).and_blog();
    rig.lead(false);
    rig.tell(Kind::Gateway, watcher::Event::Delete(second()));
    rig.settle();
    assert_eq!(rig.feed().held(BLOG), Some(0));
    assert_eq!((rig.engine.publish.withdrawals.len(), rig.feed().forgotten()), (1, vec![]));
    rig.lead(true);
    let before = rig.feed().begun().len();
    rig.engine.handle(Message::Leads(true));
    rig.settle();
    assert_eq!(rig.feed().begun().len(), before + 1);
    assert!(rig.engine.publish.withdrawals.is_empty());
    assert_eq!(rig.feed().forgotten(), [Scope::new(BLOG).unwrap()], "nobody has to follow it any more");
}

/// Before anything is read: a feed and a shared sink, the first of which is read.
fn opening_and_other(first_opens: bool) -> Rig {
    Rig::publishing_to(if first_opens {
        &[Place::Replica, Place::Shared]
    } else {
        &[Place::Shared, Place::Replica]
    })
}

#[tokio::test(start_paused = true)]
async fn it_is_ready_whatever_becomes_of_targets_that_are_read_without_the_feed() {
    let fates = [
        Fate::Stuck,
        Fate::Failing(Duration::ZERO),
        Fate::Failing(SLOW_PUBLICATION),
        Fate::Refused,
        Fate::Slow(SLOW_PUBLICATION),
    ];
    for (first_opens, fate) in [true, false].into_iter().flat_map(|first| fates.map(|fate| (first, fate))) {
        let rig = opening_and_other(first_opens);
        let (opening, other) = (usize::from(!first_opens), usize::from(first_opens));
        rig.feeds[other].fate(WEB, fate);
        let mut rig = rig.read();
        rig.settle();
        rig.during(Duration::from_millis(1)).await;
        assert!(rig.is_ready() && rig.feeds[opening].is_open(), "{first_opens} {fate:?}");
        assert_ne!(rig.feeds[opening].held(WEB), None);
        rig.during(Duration::from_secs(3)).await;
        assert!(
            !rig.is_programmed(&web()),
            "{first_opens} {fate:?}: its status says that it is not everywhere"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn readiness_waits_for_the_feed_and_for_no_other_target() {
    for (first_opens, fate) in [true, false].into_iter().flat_map(|first| {
        [Fate::Failing(SLOW_PUBLICATION), Fate::Failing(Duration::ZERO), Fate::Slow(SLOW_PUBLICATION * 100)]
            .map(|fate| (first, fate))
    }) {
        let rig = opening_and_other(first_opens);
        let opening = usize::from(!first_opens);
        rig.feeds[opening].fate(WEB, fate);
        let mut rig = rig.read();
        rig.settle();
        rig.during(SLOW_PUBLICATION * 10).await;
        assert!(!rig.is_ready() && rig.feeds[opening].is_open(), "{first_opens} {fate:?}");
        rig.feeds[opening].fate(WEB, Fate::Quick);
        rig.during(SLOW_PUBLICATION * 100).await;
        assert!(rig.is_ready() && rig.feeds[opening].is_open(), "{first_opens} {fate:?}");
    }
    // A permanent failure does not block readiness.
    let rig = opening_and_other(true);
    rig.feeds[0].fate(WEB, Fate::Refused);
    rig.feeds[1].fate(WEB, Fate::Stuck);
    let mut rig = rig.read();
    rig.settle();
    assert!(rig.is_ready() && rig.feed().is_open());
}

#[tokio::test(start_paused = true)]
async fn a_route_is_not_released_while_another_target_lacks_its_documents() {
    let mut rig = opening_and_other(true);
    rig.feeds[1].fate(WEB, Fate::Stuck);
    let controller = rig.engine.shared.reconciler.options().controller_name.clone();
    let mut told = route(1);
    told["status"] = json!({"parents": [{
        "parentRef": {"name": "web"}, "controllerName": controller, "conditions": [],
    }]});
    let mut stray = told.clone();
    stray["metadata"]["name"] = json!("stray");
    stray["spec"]["parentRefs"] = json!([{"name": "gone"}]);
    for kind in Kind::ALL {
        rig.tell(*kind, watcher::Event::Init);
    }
    for (kind, object) in [
        (Kind::GatewayClass, class()),
        (Kind::Gateway, gateway()),
        (Kind::HttpRoute, told),
        (Kind::HttpRoute, stray),
    ] {
        rig.tell(kind, watcher::Event::InitApply(object));
    }
    for kind in Kind::ALL {
        rig.tell(*kind, watcher::Event::InitDone);
    }
    rig.settle();
    assert!(rig.is_ready());
    assert_ne!(rig.wanted(&cart()), Some(Wanted::Released));
    let stray = ObjectKey::new(Kind::HttpRoute, "infra", "stray");
    assert_eq!(rig.wanted(&stray), Some(Wanted::Released));
    rig.during(Duration::from_secs(3)).await;
    assert!(matches!(rig.wanted(&cart()), Some(Wanted::Route(_))));
}

#[tokio::test(start_paused = true)]
async fn a_refused_withdrawal_is_remembered_and_tried_again_now_and_then() {
    let mut rig = Rig::with_blog();
    rig.feed().fate(BLOG, Fate::Refused);
    let before = rig.feed().begun().len();
    rig.tell(Kind::Gateway, watcher::Event::Delete(second()));
    rig.during(Duration::from_mins(10)).await;
    assert_eq!(rig.feed().begun().len(), before + 1);
    assert_eq!(rig.engine.publish.withdrawals.len(), 1);
    assert!(rig.feed().forgotten().is_empty(), "somebody has to know of it");
    rig.engine.handle(Message::Reconsider);
    rig.settle();
    assert_ne!(rig.feed().held(BLOG), Some(0));
    rig.feed().fate(BLOG, Fate::Quick);
    rig.engine.handle(Message::Reconsider);
    rig.settle();
    assert_eq!(rig.feed().held(BLOG), Some(0));
    assert!(rig.engine.publish.withdrawals.is_empty() && rig.engine.publish.pending.is_empty());
    assert_eq!(rig.feed().forgotten(), [Scope::new(BLOG).unwrap()]);

    // A target without the documents counts as withdrawn.
    rig.apply(Kind::Gateway, second());
    rig.settle();
    rig.feed().fate(BLOG, Fate::Elsewhere);
    rig.tell(Kind::Gateway, watcher::Event::Delete(second()));
    rig.settle();
    assert!(rig.engine.publish.withdrawals.is_empty());
    assert_eq!(rig.engine.shared.deliveries.data_planes().count(), 1);
}
