//! Events for problems.

use jiff::Timestamp;
use pingsix_translate::FieldPath;
use pingsix_translate::status::{Problem, Severity};

use super::*;
use crate::clock::Clock;

struct EventTest {
    rig: Rig,
    board: EventBoard,
    lead: watch::Sender<Option<Instant>>,
}

impl EventTest {
    fn new() -> Self {
        let test = Self::following();
        test.lead.send_replace(Some(Instant::now() + secs(1_000_000)));
        test
    }

    fn following() -> Self {
        let mut rig = Rig::following();
        rig.put(CART, route("cart", 1));
        let board = EventBoard::default();
        let (lead, leadership) = watch::channel(None);
        let start = Instant::now();
        let now = move || Timestamp::UNIX_EPOCH + start.elapsed();
        let options =
            EventOptions { clock: Clock::new(now), ..EventOptions::new("example.com/a/b", "pod-1") };
        let writer = EventWriter::new(rig.api.client(), rig.readers.clone(), board.clone(), options);
        let running = writer.run(Leadership::of(leadership));
        tokio::spawn(rig.stop.clone().run_until_cancelled_owned(running));
        Self { rig, board, lead }
    }

    /// Advances the time of a server that deletes Events an hour after their last write.
    async fn pass(&self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            sleep(secs(60)).await;
            for path in self.rig.api.paths().iter().filter(|path| path.contains("/events/")) {
                let (collection, name) = path.rsplit_once('/').unwrap();
                let writes = self.rig.api.seen(|seen| {
                    seen.writes()
                        && (seen.path == *path
                            || seen.path == collection && seen.body["metadata"]["name"] == name)
                });
                if writes.last().unwrap().at.elapsed() >= secs(3600) {
                    self.rig.api.delete(path);
                }
            }
        }
    }

    fn events(&self) -> Vec<Value> {
        let paths = self.rig.api.paths();
        let paths = paths.iter().filter(|path| path.contains("/events/"));
        paths.map(|path| self.rig.api.get(path).unwrap()).collect()
    }
}

fn problem(message: &str) -> Problem {
    Problem {
        object: Arc::new(route_key("cart")),
        field: FieldPath::new("spec").child("rules").index(2),
        severity: Severity::Error,
        reason: Reason::UnsupportedValue,
        message: message.to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_problem_is_reported_once_on_the_object_at_fault() {
    let test = EventTest::new();
    test.board.set(&web(), vec![problem("No.")]);
    sleep(secs(1)).await;
    let events = test.events();
    assert_eq!(events.len(), 1);
    let event = &events[0];
    assert_eq!(event["note"], "spec.rules[2]: No.");
    assert_eq!(event["reason"], "UnsupportedValue");
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["action"], "Translate");
    assert_eq!(event["reportingController"], "example.com/a-b");
    assert_eq!(event["reportingInstance"], "pod-1");
    assert_eq!(event["metadata"]["namespace"], "shop");
    let regarding = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "name": "cart", "namespace": "shop",
        "uid": "uid-cart",
    });
    assert_eq!(event["regarding"], regarding);
    // The same owner and another one set the problem again.
    test.board.set(&web(), vec![problem("No.")]);
    test.board.set(&ObjectKey::new(Kind::Gateway, "infra", "other"), vec![problem("No.")]);
    test.board.set(&web(), Vec::new());
    sleep(secs(60)).await;
    assert_eq!(test.rig.api.seen(RecordedRequest::writes).len(), 1);
    assert_eq!(test.board.len(), 1);
    test.board.set(&web(), vec![problem("No."), problem("Nor this.")]);
    sleep(secs(1)).await;
    assert_eq!(test.events().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_problem_that_comes_back_is_counted() {
    let test = EventTest::new();
    for _ in 0..3 {
        test.board.set(&web(), vec![problem("No.")]);
        sleep(secs(60)).await;
        test.board.set(&web(), Vec::new());
        sleep(secs(60)).await;
    }
    let events = test.events();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["series"]["count"], 3);
    assert!(events[0]["series"]["lastObservedTime"].is_string());
}

#[tokio::test(start_paused = true)]
async fn many_problems_of_an_object_are_reported_slowly_and_ended_ones_never() {
    let test = EventTest::new();
    let problems: Vec<Problem> = (0..100).map(|index| problem(&format!("{index:03}"))).collect();
    test.board.set(&web(), problems.clone());
    sleep(secs(5)).await;
    assert_eq!(test.events().len(), 10);
    sleep(secs(60)).await;
    let count = test.events().len();
    assert!((15..=17).contains(&count), "{count}");
    test.board.set(&web(), problems[..20].to_vec());
    sleep(secs(600)).await;
    assert_eq!(test.events().len(), 20);
}

#[tokio::test(start_paused = true)]
async fn only_the_leader_tells_and_it_tells_what_stands_then() {
    let test = EventTest::following();
    test.board.set(&web(), vec![problem("Over.")]);
    sleep(secs(60)).await;
    test.board.set(&web(), vec![problem("No.")]);
    sleep(secs(60)).await;
    assert!(test.rig.api.seen(|_| true).is_empty());
    test.lead.send_replace(Some(Instant::now() + secs(10)));
    sleep(secs(1)).await;
    let notes: Vec<Value> = test.events().into_iter().map(|mut event| event["note"].take()).collect();
    assert_eq!(notes, ["spec.rules[2]: No."]);
    sleep(secs(60)).await;
    test.board.set(&web(), vec![problem("Later.")]);
    sleep(secs(60)).await;
    assert_eq!(test.events().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_transient_failure_is_retried_and_a_forbidden_event_is_dropped() {
    let test = EventTest::new();
    test.rig.api.script(|_| Fate::Failed(503));
    test.board.set(&web(), vec![problem("No.")]);
    sleep(secs(60)).await;
    test.rig.api.script(|_| Fate::Served);
    sleep(secs(60)).await;
    assert_eq!(test.events().len(), 1);
    test.rig.api.script(|_| Fate::Failed(403));
    let before = test.rig.api.seen(RecordedRequest::writes).len();
    test.board.set(&web(), vec![problem("Nor this.")]);
    sleep(secs(600)).await;
    assert_eq!(test.rig.api.seen(RecordedRequest::writes).len(), before + 1);
}

#[tokio::test(start_paused = true)]
async fn a_lasting_problem_is_renewed_before_the_server_deletes_its_event() {
    let test = EventTest::new();
    test.board.set(&web(), vec![problem("No.")]);
    test.pass(secs(60)).await;
    for half_hours in 1..20 {
        test.pass(secs(1800)).await;
        let events = test.events();
        assert_eq!(events.len(), 1, "after {half_hours} half hours");
        assert_eq!(events[0]["series"]["count"], half_hours + 1);
        let seen = events[0]["series"]["lastObservedTime"].as_str().unwrap().parse::<Timestamp>().unwrap();
        assert_eq!(seen.as_second(), half_hours * 1800);
    }
    // An ended problem is not renewed, so the server deletes its Event.
    test.board.set(&web(), Vec::new());
    let writes = test.rig.api.seen(RecordedRequest::writes).len();
    test.pass(secs(7200)).await;
    assert_eq!(test.rig.api.seen(RecordedRequest::writes).len(), writes);
    assert!(test.events().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_event_that_was_forgotten_all_the_same_is_made_anew() {
    let test = EventTest::new();
    test.board.set(&web(), vec![problem("No.")]);
    test.pass(secs(600)).await;
    let paths = test.rig.api.paths();
    test.rig.api.delete(paths.iter().find(|path| path.contains("/events/")).unwrap());
    test.pass(secs(1800)).await;
    let events = test.events();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].get("series"), None, "it is a new one");
}

#[tokio::test(start_paused = true)]
async fn a_follower_renews_nothing_and_a_new_leader_renews_lasting_problems() {
    let test = EventTest::new();
    test.board.set(&web(), vec![problem("No."), problem("Over.")]);
    sleep(secs(60)).await;
    test.lead.send_replace(None);
    let seen = test.rig.api.seen(|_| true).len();
    sleep(secs(7200)).await;
    assert_eq!(test.rig.api.seen(|_| true).len(), seen);
    test.board.set(&web(), vec![problem("No.")]);
    test.lead.send_replace(Some(Instant::now() + secs(1_000_000)));
    sleep(secs(1)).await;
    let renewed: Vec<Value> = test.events().into_iter().filter(|event| !event["series"].is_null()).collect();
    assert_eq!(renewed.len(), 1);
    assert_eq!(renewed[0]["note"], "spec.rules[2]: No.");
}

#[tokio::test(start_paused = true)]
async fn renewals_of_many_problems_have_a_bounded_rate_and_new_ones_come_first() {
    const OBJECTS: usize = 1000;
    let mut test = EventTest::new();
    let mut problems = Vec::new();
    for index in 0..OBJECTS {
        let name = format!("r{index}");
        test.rig.api.put(&route_path(&name), route(&name, 1));
        problems.push(Problem { object: Arc::new(route_key(&name)), ..problem("No.") });
    }
    // One of them has so many that they could keep it busy.
    problems.extend((0..100).map(|index| problem(&format!("{index:03}"))));
    test.rig.watch();
    test.board.set(&web(), problems.clone());
    sleep(secs(1780)).await;
    let before = test.rig.api.seen(RecordedRequest::writes).len();
    assert_eq!(before, OBJECTS + 100);
    problems.push(problem("News."));
    sleep(secs(22)).await;
    test.board.set(&web(), problems);
    sleep(secs(15)).await;
    assert!(test.events().iter().any(|event| event["note"] == "spec.rules[2]: News."));
    sleep(secs(1740)).await;
    let writes = test.rig.api.seen(RecordedRequest::writes);
    let renewals: Vec<Instant> = writes[before..].iter().map(|seen| seen.at).collect();
    assert!(renewals.len() > OBJECTS, "{}", renewals.len());
    assert!(renewals.windows(51).all(|some| some[50] - some[0] >= ms(990)), "more than fifty in a second");
}

#[tokio::test(start_paused = true)]
async fn limits_are_no_warnings_and_notes_fit() {
    let test = EventTest::new();
    let limit =
        Problem { severity: Severity::Warning, reason: Reason::Limited, ..problem(&"\u{e9}".repeat(2000)) };
    let warning = Problem { severity: Severity::Warning, reason: Reason::NoEndpoints, ..problem("None.") };
    test.board.set(&web(), vec![limit, warning]);
    sleep(secs(1)).await;
    let events = test.events();
    assert_eq!(events.len(), 2);
    let of = |reason: &str| events.iter().find(|event| event["reason"] == reason).unwrap();
    assert_eq!(of("Limited")["type"], "Normal");
    assert_eq!(of("NoEndpoints")["type"], "Warning");
    let note = of("Limited")["note"].as_str().unwrap();
    assert!(note.len() <= 1024 && note.len() > 1000 && note.ends_with(" ..."));
}

#[tokio::test(start_paused = true)]
async fn objects_without_a_namespace_and_with_the_longest_name_get_events() {
    let mut test = EventTest::new();
    let name = format!("{}.{}", "x".repeat(235), "y".repeat(17));
    let path = format!("/apis/gateway.networking.k8s.io/v1/gatewayclasses/{name}");
    let class = json!({"metadata": {"name": name, "uid": "u"}, "spec": {"controllerName": OURS}});
    test.rig.put(&path, class);
    let key = ObjectKey::new(Kind::GatewayClass, "", name);
    let problem = Problem { object: Arc::new(key.clone()), ..problem("No.") };
    test.board.set(&key, vec![problem]);
    sleep(secs(1)).await;
    let events = test.events();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["metadata"]["namespace"], "default");
    let name = events[0]["metadata"]["name"].as_str().unwrap();
    assert!(name.len() <= 253 && !name.contains(".."), "{name}");
}
