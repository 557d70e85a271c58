//! Other owners are served and the replica is ready although one owner cannot be published after a start.

use super::*;
use crate::controller::engine::start::READY_TIMEOUT;

const WEB: &str = "/pingsix/infra/web";
const BLOG: &str = "/pingsix/infra/blog";

fn blog() -> Value {
    let mut gateway = gateway();
    gateway["metadata"]["name"] = json!("blog");
    gateway["spec"]["listeners"] = json!([
        {"name": "http", "port": 80, "protocol": "HTTP"},
        {"name": "https", "port": 443, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "never"}]}},
    ]);
    gateway
}

fn blog_key() -> ObjectKey {
    ObjectKey::new(Kind::Gateway, "infra", "blog")
}

/// After everything is read, the Gateway `infra/blog` among it, whose Secret is not answered for.
fn started() -> Rig {
    let mut rig = Rig::new();
    for kind in Kind::ALL {
        if !matches!(kind, Kind::Secret | Kind::ConfigMap) {
            rig.tell(*kind, watcher::Event::Init);
        }
    }
    let objects = [(Kind::GatewayClass, class()), (Kind::Gateway, gateway()), (Kind::Gateway, blog())];
    for (kind, object) in objects {
        rig.tell(kind, watcher::Event::InitApply(object));
    }
    for kind in Kind::ALL {
        if !matches!(kind, Kind::Secret | Kind::ConfigMap) {
            rig.tell(*kind, watcher::Event::InitDone);
        }
    }
    rig
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_owner_delays_no_neighbour_and_readiness_only_briefly() {
    let mut rig = started();
    let feed = rig.feed();
    assert!(rig.engine.ingest.is_known && feed.is_open());
    rig.during(Duration::from_secs(1)).await;
    assert!(feed.held(WEB).is_some(), "the neighbour is published at once");
    assert_eq!(feed.held(BLOG), None, "its readers keep what they have");
    assert!(!rig.is_ready());
    let report = rig.health.readiness().text;
    assert!(report.contains("1 objects that are referred to have not been read yet"), "{report}");
    assert!(!report.contains("never"), "readiness names no object: {report}");
    // Tenants keep adding names.
    let mut version = 1;
    while !rig.is_ready() {
        version += 1;
        assert!(version < 32, "{}", rig.health.readiness().text);
        let mut changed = blog();
        changed["metadata"]["resourceVersion"] = json!(version.to_string());
        changed["spec"]["listeners"][1]["tls"]["certificateRefs"][0]["name"] =
            json!(format!("never-{version}"));
        rig.apply(Kind::Gateway, changed);
        rig.during(READY_TIMEOUT / 30).await;
    }
    assert_eq!(feed.held(BLOG), None);
    assert!(!rig.engine.report.is_complete, "nothing is taken back of whom nothing is known");
    assert!(rig.wanted(&blog_key()).is_none());
    assert!(rig.progress.borrow().awaited.is_empty());

    // In the end the owner is published, without the references that have no answer.
    rig.during(Duration::from_secs(90)).await;
    assert!(feed.held(BLOG).is_some() && rig.engine.report.is_complete);
    let Some(Wanted::Gateway { verdict, .. }) = rig.wanted(&blog_key()) else {
        panic!("nothing is said of it")
    };
    let resolved = |index: usize| {
        let condition = verdict.listeners[index].conditions.get(ConditionType::ResolvedRefs).unwrap();
        (condition.status, condition.reason)
    };
    assert_eq!(resolved(0), (ConditionStatus::True, Reason::ResolvedRefs));
    assert_eq!(resolved(1), (ConditionStatus::False, Reason::Pending));
}

#[tokio::test(start_paused = true)]
async fn while_the_api_server_is_away_nothing_fails_closed() {
    let mut rig = started();
    let feed = rig.feed();
    let message = "no connection".to_owned();
    let away = Availability::Unreachable { message };
    rig.hear(Input::Availability { kind: Kind::Service, availability: away });
    rig.during(Duration::from_hours(1)).await;
    assert!(rig.is_ready() && feed.held(WEB).is_some());
    assert_eq!(feed.held(BLOG), None);
    rig.hear(Input::Availability { kind: Kind::Service, availability: Availability::Watching });
    rig.during(Duration::from_secs(80)).await;
    assert_eq!(feed.held(BLOG), None);
    rig.during(Duration::from_secs(20)).await;
    assert!(feed.held(BLOG).is_some());
}
