//! `migrate` of Ingresses with annotations, beyond the goldens.

use std::fmt::Write as _;
use std::fs;

use crate::migrate::root;
use crate::support::run_with;

/// An Ingress with an annotation of ingress-nginx.
fn ingress(annotation: &str, value: &str) -> String {
    ingress_of(("nginx", "nginx.ingress.kubernetes.io"), annotation, value)
}

/// An Ingress with an annotation of APISIX.
fn apisix_ingress(annotation: &str, value: &str) -> String {
    ingress_of(("apisix", "k8s.apisix.apache.org"), annotation, value)
}

fn ingress_of((class, domain): (&str, &str), annotation: &str, value: &str) -> String {
    format!(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: cart\n  namespace: shop\n  annotations:\n    \
         {domain}/{annotation}: {value}\nspec:\n  ingressClassName: {class}\n  rules:\n  - host: a.example\n    \
         http: {{ paths: [{{ path: /cart, pathType: Prefix, backend: {{ service: {{ name: cart, port: {{ number: 80 }} }} }} }}] }}\n"
    )
}

#[test]
fn an_ingress_whose_protection_would_be_lost_is_closed_until_it_is_named() {
    let input = ingress("auth-url", "http://auth.example");
    let closed = run_with(&input, ["migrate", "-"])
        .exits(1)
        .prints("statusCode: 503\n")
        .prints_error("Withheld: ")
        .prints_error("--allow-weaker Ingress/shop/cart");
    assert!(!closed.out.contains("backendRefs"), "{}", closed.out);
    run_with(&input, ["migrate", "-", "--allow-weaker", "Ingress/shop/cart"])
        .exits(0)
        .prints("backendRefs")
        .prints_error("Weaker: ");
    let other = run_with(&input, ["migrate", "-", "--allow-weaker", "Ingress/shop/carts"]).exits(1);
    assert!(!other.out.contains("backendRefs"), "{}", other.out);
}

#[test]
fn an_ingress_that_tunes_in_an_impossible_way_is_served() {
    run_with(&ingress("mirror-target", "http://mirror.example"), ["migrate", "-"])
        .exits(1)
        .prints("backendRefs")
        .prints_error("  nginx.ingress.kubernetes.io/mirror-target: ");
}

#[test]
fn an_ingress_with_a_policy_of_its_own_is_closed() {
    let policy = "---\napiVersion: pingsix.io/v1alpha1\nkind: SecurityPolicy\nmetadata: { name: keys, namespace: shop }\n\
                  spec:\n  targetRefs: [{ group: networking.k8s.io, kind: Ingress, name: cart }]\n  \
                  authorization: { allow: [192.0.2.0/24] }\n";
    let input = format!("{}{policy}", ingress("rewrite-target", "/"));
    let run = run_with(&input, ["migrate", "-"]).exits(1).prints("statusCode: 503\n");
    assert!(!run.out.contains("backendRefs"), "{}", run.out);
    run.prints_error("SecurityPolicy shop/keys is for the Ingress");
}

#[test]
fn an_unknown_field_of_an_ingress_closes_it() {
    for (from, to) in [
        ("  ingressClassName: nginx\n", "  ingressClassName: nginx\n  owner: me\n"),
        ("pathType: Prefix,", "pathType: Prefix, clients: [a],"),
    ] {
        let run = run_with(&ingress("rewrite-target", "/").replace(from, to), ["migrate", "-"]).exits(1);
        assert!(!run.out.contains("backendRefs"), "{to}: {}", run.out);
        run.prints_error("The field is not understood");
    }
}

#[test]
fn ingresses_that_keep_their_annotations_stay_as_they_are() {
    let input = fs::read_to_string(root().join("nginx-keep-ingress/output.yaml")).unwrap();
    let run = run_with(&input, ["migrate", "-"]).exits(0);
    assert_eq!(run.out, input);
}

#[test]
fn another_class_can_keep_ingresses() {
    let input = ingress("rewrite-target", "/");
    run_with(&input, ["migrate", "-", "--keep-ingress", "--ingress-class", "edge"])
        .exits(0)
        .prints("  name: edge\n")
        .prints("  ingressClassName: edge\n")
        .prints("  name: cart-pingsix\n");
}

#[test]
fn a_policy_for_an_ingress_that_would_not_hold_for_its_copy_keeps_it_from_being_copied() {
    let policy = "---\napiVersion: pingsix.io/v1alpha1\nkind: SecurityPolicy\nmetadata: { name: keys, namespace: shop }\n\
                  spec:\n  targetRefs: [{ group: networking.k8s.io, kind: Ingress, name: cart }]\n  \
                  authorization: { allow: [192.0.2.0/24] }\n";
    for ingress in [ingress("rewrite-target", "/"), apisix_ingress("rewrite-target", "/")] {
        let run = run_with(&format!("{ingress}{policy}"), ["migrate", "-", "--keep-ingress"]).exits(1);
        assert!(!run.out.contains("name: cart-pingsix"), "{}", run.out);
        run.prints_error("The Ingress is not copied, because the class would serve it.");
    }
}

#[test]
fn an_ingress_of_apisix_is_closed_until_it_is_named() {
    for (annotation, value) in [
        ("auth-uri", "http://auth.example"),
        ("auth-type", "keyAuth"),
        ("plugin-config-name", "nowhere"),
        ("enable-csrf", "\"true\""),
        ("svc-namespace", "../x"),
    ] {
        let input = apisix_ingress(annotation, value);
        let closed = run_with(&input, ["migrate", "-"]).exits(1).prints("statusCode: 503\n");
        assert!(!closed.out.contains("backendRefs"), "{annotation}: {}", closed.out);
        run_with(&input, ["migrate", "-", "--allow-weaker", "Ingress/shop/cart"])
            .exits(0)
            .prints("backendRefs")
            .prints_error("Weaker: ");
    }
}

#[test]
fn annotations_of_apisix_that_are_given_up_ask_for_nothing() {
    let input = apisix_ingress(
        "auth-uri",
        "http://auth.example\n    k8s.apisix.apache.org/auth-type: keyAuth\n    \
         pingsix.io/ignored-annotations: auth-uri,auth-type",
    );
    run_with(&input, ["migrate", "-"]).exits(0).prints("backendRefs");
}

#[test]
fn keys_in_annotations_are_in_secrets_alone() {
    for (annotation, value) in [
        ("csrf-key", "hunter2\n    k8s.apisix.apache.org/enable-csrf: \"true\""),
        ("key-auth-key", "hunter2\n    k8s.apisix.apache.org/auth-type: keyAuth"),
        (
            "basic-auth-password",
            "hunter2\n    k8s.apisix.apache.org/basic-auth-username: a\n    k8s.apisix.apache.org/auth-type: basicAuth",
        ),
    ] {
        let run = run_with(&apisix_ingress(annotation, value), ["migrate", "-"]).exits(0);
        assert!(!run.err.contains("hunter2") && !run.out.contains("hunter2"), "{annotation}: {}", run.err);
        run.prints("kind: Secret\n").prints("aHVudGVyMg==");
    }
}

#[test]
fn a_certificate_that_clients_need_closes_an_ingress_of_the_host() {
    let tls = "---\napiVersion: apisix.apache.org/v2\nkind: ApisixTls\nmetadata: { name: a, namespace: shop }\nspec:\n  \
               hosts: [a.example]\n  secret: { name: a, namespace: shop }\n  client: { caSecret: { name: ca, namespace: shop } }\n";
    let input = format!("{}{tls}", apisix_ingress("rewrite-target", "/"));
    let run = run_with(&input, ["migrate", "-"]).exits(1);
    assert!(!run.out.contains("backendRefs"), "{}", run.out);
    run.prints_error("The clients of a host need certificates");
}

#[test]
fn values_of_annotations_do_no_harm() {
    let names = [
        "rewrite-target",
        "use-regex",
        "app-root",
        "canary",
        "canary-weight",
        "canary-by-header",
        "enable-cors",
        "cors-allow-origin",
        "cors-max-age",
        "whitelist-source-range",
        "limit-rps",
        "auth-type",
        "auth-secret",
        "permanent-redirect",
        "permanent-redirect-code",
        "backend-protocol",
        "upstream-hash-by",
        "upstream-vhost",
        "x-forwarded-prefix",
        "proxy-read-timeout",
        "ssl-redirect",
        "force-ssl-redirect",
        "configuration-snippet",
    ];
    let of_apisix = [
        "use-regex",
        "rewrite-target",
        "rewrite-target-regex",
        "http-allow-methods",
        "http-redirect",
        "http-to-https",
        "enable-response-rewrite",
        "response-rewrite-set-header",
        "allowlist-source-range",
        "upstream-scheme",
        "upstream-retries",
        "upstream-read-timeout",
        "auth-type",
        "enable-csrf",
        "plugin-config-name",
        "svc-namespace",
    ];
    let names = names.into_iter().map(|name| ("nginx", "nginx.ingress.kubernetes.io", name));
    let of_apisix = of_apisix.into_iter().map(|name| ("apisix", "k8s.apisix.apache.org", name));
    let names: Vec<_> = names.chain(of_apisix).collect();
    let values = [
        "\"\"",
        "\"true\"",
        "\"-1\"",
        "\"99999999999999999999\"",
        "\"/$1$2$9\"",
        "\"$host\"",
        "\"a\\r\\nb: c\"",
        "\"*\"",
        "\"/\\u0000\"",
        "\"::/0\"",
        "\"https://a.example/{x}\"",
        "\"((((\"",
        "7",
        "[]",
        "{}",
        "null",
    ];
    for value in values {
        // An Ingress for each annotation: a value that is refused costs its own Ingress.
        let documents = names.iter().enumerate().map(|(index, (class, domain, name))| {
            ingress_of((class, domain), name, value).replacen(
                "name: cart\n",
                &format!("name: cart-{index}\n"),
                1,
            )
        });
        let input = documents.collect::<Vec<_>>().join("---\n");
        for keep in [None, Some("--keep-ingress")] {
            let run = run_with(&input, ["migrate", "-"].into_iter().chain(keep));
            assert!(matches!(run.code, 0 | 1), "{value}: {} {}", run.code, run.err);
            assert!(!run.err.contains(['\r', '\0']), "{value}");
            assert!(run.err.contains(&format!("({} objects)", names.len())), "{value}: {}", run.err);
        }
    }
}

#[test]
fn fields_of_wrong_types_do_no_harm() {
    for value in ["7", "[]", "{}", "true", "null", "\"\"", "[[]]", "[{}]", "[null]", "-1"] {
        for field in ["rules", "tls", "defaultBackend", "ingressClassName"] {
            let input = format!(
                "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{ name: x, namespace: ns, annotations: \
                 {{ nginx.ingress.kubernetes.io/use-regex: \"true\" }} }}\nspec: {{ {field}: {value} }}\n"
            );
            let run = run_with(&input, ["migrate", "-"]);
            assert!(matches!(run.code, 0 | 1), "{field}: {value}: {} {}", run.code, run.err);
        }
        for field in ["host", "http"] {
            let input = format!(
                "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{ name: x, namespace: ns }}\n\
                 spec: {{ ingressClassName: nginx, rules: [{{ {field}: {value} }}] }}\n"
            );
            let run = run_with(&input, ["migrate", "-"]);
            assert!(matches!(run.code, 0 | 1), "{field}: {value}: {} {}", run.code, run.err);
        }
    }
}

#[test]
fn many_ingresses_of_one_host_are_converted_within_bounds() {
    let mut input = String::new();
    for number in 0..1_000 {
        let annotation = if number % 2 == 0 { "canary: \"true\"" } else { "proxy-read-timeout: \"7\"" };
        let _ = write!(
            input,
            "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{ name: x{number}, namespace: ns, annotations: \
             {{ nginx.ingress.kubernetes.io/{annotation} }} }}\nspec: {{ rules: [{{ host: a.example, http: {{ paths: \
             [{{ path: /{}, pathType: Prefix, backend: {{ service: {{ name: s, port: {{ number: 80 }} }} }} }}] }} }}] }}\n",
            number / 4
        );
    }
    run_with(&input, ["migrate", "-"]).exits(0).prints_error("(1000 objects)");
}
