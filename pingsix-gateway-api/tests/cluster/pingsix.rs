//! From an object at the API server to the response of a real PingSIX, and from its status page back to a condition.

use pingsix_gateway_api::delivery::status_page::{StatusClient, StatusUrl};
use pingsix_translate::{DataPlaneKey, Kind, ObjectName};

use crate::test_env::pingsix::{self, Ports};
use crate::test_env::shop::{GATEWAY, redirect};
use crate::test_env::{TestEnv, options};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_pingsix_serves_the_objects_and_programmed_tells_its_page() {
    const TEST: &str = "a_real_pingsix_serves_the_objects_and_programmed_tells_its_page";
    let Some(binary) = pingsix::binary(TEST) else { return };
    let Some(test_env) = TestEnv::start().await else { return };
    test_env.apply(GATEWAY).await;
    test_env.apply(&redirect("one.example")).await;

    let (feed, _stop) = test_env.serve_feed().await;
    let ports = Ports::new(&test_env.cluster, feed);
    let (traffic, status) = (ports.traffic, ports.status);

    let (responder, _responds) = pingsix::responder().await;
    let mut options = options();
    options.translation.responder = Some(responder);
    let plane = DataPlaneKey::Gateway { gateway: ObjectName::new("default", "web"), port: None };
    let page: StatusUrl = format!("http://127.0.0.1:{status}/status/config").parse().unwrap();
    options.status_pages.insert(plane, [page.clone()].into());
    let running = test_env.ready(options).await;
    // No instance is connected yet.
    test_env.wait_for_condition(Kind::Gateway, "default", "web", "", "Programmed=False/Pending").await;

    let process = ports.run(&test_env.cluster, binary).await;
    let log = process.log();
    let leads_to = |host: &'static str| {
        move |head: &str| {
            head.starts_with("http/1.1 302") && head.contains(&format!("location: http://{host}/shoes"))
        }
    };
    pingsix::until(traffic, "cart.example", "/shoes", &log, leads_to("one.example")).await;
    test_env.wait_for_condition(Kind::Gateway, "default", "web", "", "Programmed=True/Programmed").await;
    // The page is that of the version which the project supports.
    assert_eq!(StatusClient::new(None).read(&page).await.unwrap().difference, None);

    test_env.apply(&redirect("two.example")).await;
    pingsix::until(traffic, "cart.example", "/shoes", &log, leads_to("two.example")).await;

    // A deleted owner takes over no later change.
    process.kill().await.unwrap();
    test_env.wait_for_condition(Kind::Gateway, "default", "web", "", "Programmed=False/Pending").await;
    test_env.apply(&redirect("three.example")).await;
    process.start().await.unwrap();
    pingsix::until(traffic, "cart.example", "/shoes", &log, leads_to("three.example")).await;
    test_env.wait_for_condition(Kind::Gateway, "default", "web", "", "Programmed=True/Programmed").await;

    let routes = test_env.objects(Kind::HttpRoute, "default");
    routes.delete("cart", &kube::api::DeleteParams::default()).await.unwrap();
    pingsix::until(traffic, "cart.example", "/shoes", &log, |head| head.starts_with("http/1.1 404")).await;
    test_env.wait_for_condition(Kind::Gateway, "default", "web", "", "Programmed=True/Programmed").await;
    running.stop().await;
    process.kill().await.unwrap();
}
