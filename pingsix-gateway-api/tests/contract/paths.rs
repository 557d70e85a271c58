//! Requests with other spellings of a path that is protected or refused.

use pingsix_translate::Objects;
use pingsix_translate::pingsix::Request;
use serde_json::json;

use crate::client::{Client, Protocol};
use crate::expectations::KEY;
use crate::objects::gateway_and_service;
use crate::policy_env::{PolicyEnv, add_route, protect};
use crate::run::{binary, print_message};

const HOST: &str = "shop.example";

/// An open route for all paths, and route `admin` for another path, both of one Service.
fn world(kind: &str, path: &str) -> Objects {
    let mut objects = gateway_and_service(&json!({ "port": 80 }), 8080);
    add_route(&mut objects, "site", "2026-01-01T00:00:00Z", &json!({ "path": { "value": "/" } }));
    let path = json!({ "path": { "type": kind, "value": path } });
    add_route(&mut objects, "admin", "2026-01-02T00:00:00Z", &path);
    objects
}

/// Asks for paths over HTTP/1.1 and HTTP/2, with and without a key, and compares the statuses of answers.
async fn ask(env: &PolicyEnv, paths: &[&str], [without_key, with_key]: [u16; 2]) {
    for protocol in [Protocol::Http1, Protocol::H2c] {
        for path in paths {
            let request = Request::get(HOST, path);
            let with = request.clone().header("apikey", KEY);
            for (request, status) in [(request, without_key), (with, with_key)] {
                let mut client = Client::new(protocol, env.pingsix.address, None);
                let reply = client.ask(&request).await.unwrap();
                assert_eq!(reply.status, status, "{protocol:?}, {path}: {reply:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_protects_other_spellings_of_a_path_beside_an_open_rule() {
    const TEST: &str = "spelled paths";
    let Some(binary) = binary(TEST) else { return };
    let mut env = PolicyEnv::start(&binary, "/contract/spelled-paths").await;
    let mut objects = world("PathPrefix", "/admin/b%C3%BC");
    // Without protection, each spelling is a path of its own.
    env.publish(&objects).await;
    ask(&env, &["/admin/b%C3%BC", "//admin/b%C3%BC", "/x"], [200, 200]).await;

    protect(&mut objects, "admin");
    env.publish(&objects).await;
    ask(&env, &["/admin/b%C3%BC", "/admin/b%C3%BC/", "/admin/b%C3%BC/x/../y"], [401, 200]).await;
    let spellings = [
        "//admin/b%C3%BC",
        "/./admin/b%C3%BC",
        "/../admin/b%C3%BC",
        "/%2e/admin/b%C3%BC",
        "/.%2E/admin/b%C3%BC",
        "/%2fadmin/b%C3%BC",
        "/\\admin/b%C3%BC",
        "/;/admin/b%C3%BC",
        "/;x/admin/b%C3%BC",
        "/..;/admin/b%C3%BC",
        "/admin//b%C3%BC",
        "/admin/./b%C3%BC/x",
        "/admin/../admin/b%C3%BC",
        "/admin%2fb%C3%BC",
        "/admin%5Cb%C3%BC",
        "/admin;x/b%C3%BC",
        "/%61dmin/b%C3%BC",
        "/adm%69n/b%C3%BC/x",
        "/admin/%62%C3%BC",
        "/admin/b%c3%BC",
        "/admin/b%C3%bc/x",
        "/admin/b%c3%bc",
        "/admin/b%C3%BC;x",
        "/admin/b%C3%BC%2fx",
        "/admin/b%C3%BC%00",
    ];
    ask(&env, &spellings, [400, 400]).await;
    // The known limits.
    ask(&env, &["/x/../admin/b%C3%BC", "/ADMIN/b%C3%BC", "/admin/b%C3%BC.json"], [200, 200]).await;
    ask(
        &env,
        &["/", "/x", "/administrator", "/admin", "/admin/c", "/x/./y", "/x;y", "/admin/b%C3%A4r"],
        [200, 200],
    )
    .await;
    print_message(&format!("{TEST}: {} closed", spellings.len()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_closes_the_literal_prefix_of_a_protected_regular_expression() {
    const TEST: &str = "protected expressions";
    let Some(binary) = binary(TEST) else { return };
    let mut env = PolicyEnv::start(&binary, "/contract/protected-expressions").await;
    let mut objects = world("RegularExpression", "/admin-[0-9]+");
    protect(&mut objects, "admin");
    env.publish(&objects).await;
    ask(&env, &["/admin-1", "/admin-1/x", "/admin-x", "/admin-"], [500, 500]).await;
    ask(&env, &["//admin-1", "/%61dmin-1", "/admin%2d1"], [400, 400]).await;
    ask(&env, &["/", "/admin", "/adminx"], [200, 200]).await;
    print_message(&format!("{TEST}: closed"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_answers_every_spelling_of_a_refused_path_with_an_error() {
    const TEST: &str = "refused paths";
    let Some(binary) = binary(TEST) else { return };
    let mut env = PolicyEnv::start(&binary, "/contract/refused-paths").await;
    for (path, closed, open) in [
        ("/u/{id}", ["/u/{id}", "/u/%7Bid%7D", "/u/%7bid}/x", "/u"], ["/", "/ux"]),
        ("/b\u{fc}ro", ["/b%C3%BCro", "/b%c3%bcro", "/b%C3%bcro/x", "/b%c3%BCro/"], ["/b%C3%BC", "/bro"]),
        ("/a|b", ["/a|b", "/a%7Cb", "/a%7cb", "/a|b/x"], ["/a", "/a|bc"]),
    ] {
        env.publish(&world("PathPrefix", path)).await;
        ask(&env, &closed, [500, 500]).await;
        ask(&env, &open, [200, 200]).await;
    }
    print_message(&format!("{TEST}: closed"));
}
