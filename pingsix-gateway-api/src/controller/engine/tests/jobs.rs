//! Translations beside the task that owns the picture. No test waits for a real time: translations are held until their
//! release.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

use parking_lot::Mutex;

use super::publishing::{BLOG, WEB, blog, changed_gateway, second};
use super::refusals::is_good;
use super::*;
use crate::reconcile::Job;

/// Translations of an owner that wait to be let go, all of them when this is dropped.
struct HeldTranslations {
    let_go: Sender<()>,
    begun: Arc<AtomicUsize>,
}

impl HeldTranslations {
    fn let_go(&self) {
        self.let_go.send(()).unwrap();
    }

    fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }
}

impl Rig {
    /// With two Gateways, of which this one was changed, and its translation is held.
    fn translating(gateway: &ObjectKey) -> (Self, HeldTranslations) {
        let mut rig = Self::with_blog();
        let held = rig.hold_translations(gateway.clone());
        rig.apply(Kind::Gateway, changed_gateway(&gateway.name.name, 2));
        rig.take_turns();
        (rig, held)
    }

    /// Holds the translations of an owner.
    fn hold_translations(&mut self, owner: ObjectKey) -> HeldTranslations {
        let (let_go, may_go) = channel();
        let (begun, may_go) = (Arc::new(AtomicUsize::new(0)), Mutex::new(may_go));
        let count = Arc::clone(&begun);
        self.engine.ingest.jobs.run = Arc::new(move |job: Job| {
            if *job.owner() == owner {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = may_go.lock().recv();
            }
            job.run()
        });
        HeldTranslations { let_go, begun }
    }

    /// Gives turns to all that are due and have room.
    fn take_turns(&mut self) {
        loop {
            let before = self.engine.ingest.queue.len();
            let turn = self.engine.ingest.take_turn(&mut self.engine.shared);
            self.engine.handle_all(turn.into_iter().collect());
            if self.engine.ingest.queue.len() == before {
                return;
            }
        }
    }

    /// Hears of the end of a translation. Returns whose.
    async fn finish_job(&mut self) -> ObjectKey {
        let ended = self.engine.ingest.jobs.ended().await;
        let owner = ended.owner.clone();
        self.engine.handle(Message::Translated(Box::new(ended)));
        self.engine.advance();
        owner
    }

    /// Lets translations come to their ends until none is left.
    async fn work(&mut self) {
        self.take_turns();
        while self.engine.ingest.jobs.len() > 0 {
            self.finish_job().await;
            self.take_turns();
        }
    }

    fn holds(&self, scope: &str, text: &str) -> bool {
        let documents = self.feed().sink.documents(&Scope::new(scope).unwrap()).unwrap();
        documents.iter().any(|document| String::from_utf8_lossy(&document.value).contains(text))
    }

    fn generation(&self, gateway: &ObjectKey) -> i64 {
        let Some(Wanted::Gateway { verdict, .. }) = self.wanted(gateway) else { panic!("nothing is said") };
        verdict.generation
    }

    fn begun(&self, scope: &str) -> usize {
        self.feed().begun().into_iter().filter(|(begun, _)| begun == scope).count()
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn a_heavy_owner_is_translated_with_a_lower_priority() {
    /// Each translation takes a second.
    static TIME: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let mut rig = Rig::with_blog();
    rig.engine.ingest.jobs.processor_time = || Duration::from_secs(TIME.fetch_add(1, Ordering::SeqCst));
    let (sender, priorities) = channel();
    let sender = Mutex::new(sender);
    rig.engine.ingest.jobs.run = Arc::new(move |job: Job| {
        sender.lock().send(rustix::process::getpriority_process(None).unwrap()).unwrap();
        job.run()
    });
    for version in 2..4 {
        rig.apply(Kind::Gateway, changed_gateway(&blog().name.name, version));
        rig.work().await;
        // The rest is over, and the debt is not.
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!(rig.generation(&blog()), 3);
    let [light, heavy] = priorities.try_iter().collect::<Vec<_>>()[..] else { panic!("two translations") };
    assert_eq!(heavy, (light + 5).min(19));
}

#[tokio::test(start_paused = true)]
async fn while_one_gateway_is_translated_others_are_published_and_told() {
    let (mut rig, held) = Rig::translating(&web());
    for version in 2..5 {
        rig.apply(Kind::Gateway, changed_gateway("blog", version));
        rig.take_turns();
        assert_eq!(rig.finish_job().await, blog());
        assert!(rig.holds(BLOG, &format!("v{version}.example")));
        assert_eq!(rig.generation(&blog()), i64::from(version));
        assert!(rig.is_programmed(&blog()));
    }
    assert_eq!(rig.metric("pingsix_gateway_translations_running"), "1");
    assert!(!rig.holds(WEB, "v2.example") && rig.generation(&web()) == 1);
    held.let_go();
    assert_eq!(rig.finish_job().await, web());
    assert!(rig.holds(WEB, "v2.example") && rig.generation(&web()) == 2);
    assert_eq!((rig.metric("pingsix_gateway_translations_running").as_str(), held.begun()), ("0", 1));
}

#[tokio::test(start_paused = true)]
async fn changes_during_a_translation_cause_one_more_with_all_of_them() {
    let (mut rig, held) = Rig::translating(&web());
    let before = rig.begun(WEB);
    for version in 3..9 {
        rig.apply(Kind::Gateway, changed_gateway("web", version));
        rig.apply(Kind::HttpRoute, route(version));
        rig.take_turns();
    }
    assert!(!rig.engine.ingest.queue.contains(&web()), "never two of one owner");
    held.let_go();
    rig.finish_job().await;
    assert!(rig.holds(WEB, "v2.example"), "in order");
    assert_eq!(held.begun(), 1);
    held.let_go();
    rig.work().await;
    assert!(rig.holds(WEB, "v8.example"));
    assert_eq!((held.begun(), rig.begun(WEB) - before, rig.generation(&web())), (2, 2, 8));
    assert!(rig.engine.ingest.queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_translation_of_a_deleted_owner_is_not_published() {
    let (mut rig, held) = Rig::translating(&blog());
    rig.tell(Kind::Gateway, watcher::Event::Delete(second()));
    held.let_go();
    let before = rig.begun(BLOG);
    rig.work().await;
    assert_eq!((rig.feed().held(BLOG), rig.begun(BLOG) - before), (Some(0), 1));
    assert!(rig.engine.publish.withdrawals.is_empty() && rig.engine.ingest.queue.is_empty());
    // One that comes back meanwhile is there.
    rig.apply(Kind::Gateway, second());
    rig.take_turns();
    rig.tell(Kind::Gateway, watcher::Event::Delete(second()));
    rig.apply(Kind::Gateway, changed_gateway("blog", 7));
    drop(held);
    rig.work().await;
    assert!(rig.holds(BLOG, "v7.example"));
}

#[tokio::test(start_paused = true)]
async fn a_translation_that_panics_is_counted_and_leaves_the_last_publication() {
    let mut rig = Rig::with_blog();
    let left = Arc::new(AtomicUsize::new(2));
    let tries = Arc::clone(&left);
    rig.engine.ingest.jobs.run = Arc::new(move |job: Job| {
        let is_bad = *job.owner() == web();
        assert!(
            !is_bad
                || tries
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
                    .is_err()
        );
        job.run()
    });
    let text = rig.text();
    rig.apply(Kind::Gateway, changed_gateway("web", 2));
    rig.apply(Kind::Gateway, changed_gateway("blog", 2));
    rig.work().await;
    assert_eq!(rig.text(), text);
    assert!(rig.holds(BLOG, "v2.example") && rig.is_programmed(&blog()));
    let told = rig.programmed(&web());
    assert!(told.contains("a fault of the controller"), "{told}");
    let panicked = r#"pingsix_gateway_reconciliations_total{kind="Gateway",outcome="panicked"}"#;
    assert_eq!(rig.metric(panicked), "1");
    // The retry starts without state of the panicked translation; a change does not wait for the retry.
    let due = rig.engine.ingest.queue.next_due().unwrap();
    assert_eq!(due - Instant::now(), Duration::from_millis(100));
    rig.apply(Kind::Gateway, changed_gateway("web", 3));
    rig.work().await;
    assert_eq!((rig.metric(panicked).as_str(), left.load(Ordering::SeqCst)), ("2", 0));
    tokio::time::advance(Duration::from_secs(1)).await;
    rig.work().await;
    assert!(rig.holds(WEB, "v3.example") && rig.is_programmed(&web()));
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_no_translation_and_withdraws_deleted_gateways() {
    let (mut rig, held) = Rig::translating(&blog());
    rig.apply(Kind::Gateway, changed_gateway("web", 2));
    rig.tell(Kind::Gateway, watcher::Event::Delete(second()));
    let from = Instant::now();
    rig.engine.drain().await.unwrap();
    assert_eq!((from.elapsed(), rig.feed().held(BLOG)), (Duration::ZERO, Some(0)));
    assert!(!rig.holds(WEB, "v2.example"), "what has not begun is left to the next process");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn an_outdated_trial_is_not_published() {
    let mut rig = Rig::ready();
    rig.add_routes();
    let mut accepted = None;
    // The base is taken; then one route is at fault.
    rig.react(&mut accepted, |_| true);
    for index in 0..8 {
        rig.apply(Kind::HttpRoute, super::refusals::new_route(index, "/other", 2));
    }
    rig.settle();
    let plane = super::refusals::plane();
    let refused =
        rig.engine.shared.deliveries.revision(&plane).map(|revision| (revision, "it is bad".into()));
    rig.engine.record_reception(&plane, Some(crate::acceptance::Reception { accepted, refused }));
    let has_trial = |rig: &Rig| rig.engine.shared.reconciler.acceptance(&web()).unwrap().trial().is_some();
    assert!(has_trial(&rig) && !is_good(&rig.text()));
    let held = rig.hold_translations(web());
    tokio::time::advance(Duration::from_secs(5)).await;
    rig.take_turns();
    let before = rig.begun(WEB);
    // The job ends meanwhile.
    assert!(rig.engine.shared.reconciler.give_up(&web()));
    held.let_go();
    rig.finish_job().await;
    assert_eq!(rig.begun(WEB), before);
    tokio::time::advance(Duration::from_secs(5)).await;
    drop(held);
    rig.work().await;
    assert_eq!(rig.begun(WEB), before + 1);
    assert!(!has_trial(&rig) && rig.engine.ingest.queue.is_empty());
}
