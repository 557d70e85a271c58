//! `migrate --replay`: requests asked of the model of the original and of the output.

use std::fs;

use serde_json::Value;

use crate::migrate::root;
use crate::support::{Manifests, Run, command};

/// An Ingress whose regular expression takes longer names, which the output takes for other paths.
fn ingress(annotations: &str) -> String {
    format!(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: cart\n  namespace: shop\n  annotations: \
         {{ {annotations} }}\nspec:\n  ingressClassName: nginx\n  rules:\n  - host: a.example\n    http: {{ paths: \
         [{{ path: /cart, pathType: Prefix, backend: {{ service: {{ name: cart, port: {{ number: 80 }} }} }} }}] }}\n"
    )
}

const REWRITE: &str = "nginx.ingress.kubernetes.io/rewrite-target: /";

/// A snippet, whose effect no model knows.
const SNIPPET: &str = "nginx.ingress.kubernetes.io/configuration-snippet: allow all;";

fn replay(input: &str, requests: &str, arguments: &[&str]) -> Run {
    let files = Manifests::new(&[("input.yaml", input), ("requests.txt", requests)]);
    let output = command()
        .current_dir(files.path())
        .args(["migrate", "input.yaml", "--replay", "requests.txt"])
        .args(arguments)
        .output()
        .unwrap();
    Run {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn requests_with_the_same_answers_are_counted_and_not_shown() {
    let run =
        replay(&ingress(REWRITE), "curl http://a.example/cart/1\ncurl http://a.example/\n", &[]).exits(0);
    assert_eq!(run.out, "2 requests: 0 answered otherwise, 2 as before, 0 with an unknown former answer\n");
}

#[test]
fn a_request_with_another_answer_is_shown_with_both() {
    // ingress-nginx ignores the case of letters in regular expressions.
    let run = replay(&ingress(REWRITE), "curl http://a.example/CART\ncurl http://a.example/CART\n", &[]);
    run.exits(1)
        .prints("GET http://a.example/CART with Accept (2 requests)\n")
        .prints("  before  Service shop/cart port 80 gets / for a.example, by Ingress shop/cart spec.rules[0].http.paths[0]\n")
        .prints("  after   404\n")
        .prints("2 requests: 2 answered otherwise, 0 as before, 0 with an unknown former answer\n");
    let json = replay(&ingress(REWRITE), "curl http://a.example/CART\n", &["--report", "json"]).exits(1);
    let report: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(report["differences"][0]["before"]["backends"][0]["service"], "shop/cart");
    assert_eq!(report["differences"][0]["after"]["status"], 404);
    assert_eq!(report["counts"]["different"], 1);
    replay(&ingress(REWRITE), "curl http://a.example/CART\n", &["--report", "markdown"])
        .exits(1)
        .prints("| GET http://a.example/CART with Accept |");
}

#[test]
fn an_unknown_former_answer_is_counted_with_its_reason() {
    replay(&ingress(SNIPPET), "curl http://a.example/cart\n", &[])
        .exits(0)
        .prints("  unknown  1 request: nginx.ingress.kubernetes.io/configuration-snippet is not modelled");
}

#[test]
fn logs_name_their_host_or_get_one() {
    let line = "192.0.2.1 - - [29/Nov/2026:08:00:00 +0000] \"GET /cart HTTP/1.1\" 200 1 \"-\" \"-\"";
    let input = ingress(REWRITE);
    replay(&input, line, &["--replay-host", "http://a.example"]).exits(0).prints("1 as before");
    replay(&input, &format!("a.example:80 {line}"), &[]).exits(0).prints("1 as before");
    let of_ingress = format!("{line} 80 0.001 [shop-cart-80] [] 10.0.0.1:8080 1 0.001 200 id");
    replay(&input, &of_ingress, &[]).exits(0).prints("1 as before");
    replay(&input, line, &[]).exits(2).prints_error("line 1: the line names no host");
    replay(&input, line, &["--replay-host", "ftp://a.example"]).exits(2);
}

#[test]
fn lines_that_are_no_requests_are_named_and_skipped() {
    let text = "curl http://a.example/cart\nhello\ncurl -u me http://a.example/\n";
    replay(&ingress(REWRITE), text, &[])
        .exits(0)
        .prints("  skipped  line 2: ")
        .prints("  skipped  line 3: The option -u of curl");
    replay(&ingress(REWRITE), "hello\n", &[]).exits(2).prints_error("has no request");
    replay(&ingress(REWRITE), "", &[]).exits(2);
    replay(&ingress(REWRITE), "{}", &[]).exits(2).prints_error("no HAR");
}

#[test]
fn the_requests_of_the_migrations_can_be_replayed() {
    let input = fs::read_to_string(root().join("nginx-guide/input.yaml")).unwrap();
    let requests = fs::read_to_string(root().join("nginx-guide/access.log")).unwrap();
    replay(&input, &requests, &[]).exits(0).prints("0 answered otherwise");
}
