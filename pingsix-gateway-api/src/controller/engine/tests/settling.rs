//! The statuses of Gateways while their instances are elsewhere, or have not come back yet.

use tokio::time::sleep;

use super::*;
use crate::delivery::Instances;

/// The Gateway as its status says that it is programmed, or that it is not.
fn told(version: u32, is_programmed: &str) -> Value {
    let mut gateway = gateway();
    gateway["metadata"]["resourceVersion"] = json!(version.to_string());
    gateway["status"] = json!({"conditions": [{"type": "Programmed", "status": is_programmed}]});
    gateway
}

fn another_route(index: u32) -> Value {
    let mut route = route(index);
    route["metadata"]["name"] = json!(format!("cart-{index}"));
    route
}

impl Rig {
    fn is_spoken_of(&self) -> bool {
        self.engine.report.status.contains(&web())
    }

    /// Whether the Gateway is programmed, and the number of attached routes of its listener.
    fn said(&self) -> (bool, i32) {
        let Some(Wanted::Gateway { verdict, .. }) = self.wanted(&web()) else { panic!("nothing is said") };
        let programmed = verdict.conditions.get(ConditionType::Programmed).unwrap();
        (programmed.status == ConditionStatus::True, verdict.listeners[0].attached_routes)
    }
}

#[tokio::test(start_paused = true)]
async fn a_follower_writes_no_outdated_status_once_it_leads() {
    let mut rig = Rig::publishing_to(&[Place::Shared]).read();
    let (lead, leadership) = watch::channel(None);
    rig.engine.shared.leadership = Leadership::of(leadership);
    rig.lead(false);
    rig.settle();
    rig.engine.handle(Message::Tick);
    assert_eq!((rig.is_spoken_of(), rig.said()), (true, (false, 1)), "nobody has published it");
    // The leader has, and what this replica thinks of it is out of date from then on.
    rig.apply(Kind::Gateway, told(2, "True"));
    assert!(!rig.is_spoken_of());
    rig.apply(Kind::HttpRoute, another_route(2));
    rig.settle();
    assert!(!rig.is_spoken_of());
    // When the leader takes it back, there is something to say again, and it is the newest.
    rig.apply(Kind::Gateway, told(3, "False"));
    assert_eq!((rig.is_spoken_of(), rig.said()), (true, (false, 2)));
    rig.apply(Kind::Gateway, told(4, "True"));
    rig.apply(Kind::HttpRoute, another_route(3));
    rig.settle();
    assert!(!rig.is_spoken_of());
    lead.send_replace(Some(Instant::now() + Duration::from_hours(1)));
    rig.engine.handle(Message::Tick);
    assert!(!rig.is_spoken_of());
    rig.lead(true);
    rig.engine.handle(Message::Leads(true));
    rig.settle();
    assert_eq!((rig.is_spoken_of(), rig.said()), (true, (true, 3)));
}

#[tokio::test(start_paused = true)]
async fn a_status_is_withheld_while_instances_return_and_written_afterwards() {
    let mut rig = Rig::ready();
    rig.engine.handle(Message::Tick);
    assert_eq!(rig.said(), (true, 1));
    rig.apply(Kind::Gateway, told(2, "True"));
    assert!(rig.is_spoken_of(), "it is as its status says");
    let planes = rig.engine.shared.reconciler.data_planes(&web());
    rig.engine.observe(&planes[0], Instances::Connected(0));
    assert!(!rig.is_spoken_of());
    sleep(Duration::from_secs(9)).await;
    rig.engine.handle(Message::Tick);
    assert!(!rig.is_spoken_of());
    sleep(Duration::from_secs(2)).await;
    rig.engine.handle(Message::Tick);
    assert_eq!((rig.is_spoken_of(), rig.said()), (true, (false, 1)));
}
