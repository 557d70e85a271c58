//! `migrate` of Ingresses with annotations, beyond the goldens.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

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
fn an_ingress_is_not_copied_if_its_policy_would_not_hold_for_the_copy() {
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

/// Ingresses with a certificate each, in a namespace of their own, and one for all hosts.
fn tenants(count: usize) -> String {
    let mut input = String::from(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: { name: rest, namespace: edge }\n\
         spec: { ingressClassName: nginx, defaultBackend: { service: { name: rest, port: { number: 80 } } } }\n",
    );
    for number in 0..count {
        let _ = write!(
            input,
            "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{ name: site, namespace: t{number} }}\n\
             spec: {{ ingressClassName: nginx, tls: [{{ hosts: [t{number}.example], secretName: tls }}], rules: [{{ host: \
             t{number}.example, http: {{ paths: [{{ path: /, pathType: Prefix, backend: {{ service: {{ name: site, port: {{ \
             number: 80 }} }} }} }}] }} }}] }}\n"
        );
    }
    input
}

fn documents(stream: &str) -> Vec<Value> {
    serde_saphyr::from_multiple::<Value>(stream).unwrap()
}

fn of_kind<'a>(documents: &'a [Value], kind: &str) -> Vec<&'a Value> {
    documents.iter().filter(|document| document["kind"] == kind).collect()
}

#[test]
fn every_certificate_has_a_listener_and_every_redirect_leads_to_one() {
    let run = run_with(&tenants(300), ["migrate", "-", "--only-converted"]).exits(0);
    let documents = documents(&run.out);
    let holders = || of_kind(&documents, "Gateway").into_iter().chain(of_kind(&documents, "ListenerSet"));
    let counts: Vec<usize> =
        holders().map(|one| one["spec"]["listeners"].as_array().unwrap().len()).collect();
    assert_eq!(counts, [64, 64, 64, 64, 45]);
    // Secrets of other namespaces are granted to the object with the listener.
    let grants = of_kind(&documents, "ReferenceGrant");
    let is_granted = |holder: &Value, namespace: &str| {
        grants.iter().any(|grant| {
            grant["metadata"]["namespace"] == namespace && grant["spec"]["from"][0]["kind"] == holder["kind"]
        })
    };
    let parent_of = |host: &str| {
        let has = |one: &&Value| {
            let mut listeners = one["spec"]["listeners"].as_array().unwrap().iter();
            listeners.any(|listener| listener["hostname"] == host)
        };
        holders().find(has).unwrap()
    };
    for number in 0..300 {
        let (namespace, host) = (format!("t{number}"), format!("t{number}.example"));
        let parent = parent_of(&host);
        assert!(is_granted(parent, &namespace), "{namespace}");
        let routes = of_kind(&documents, "HTTPRoute").into_iter();
        let own: Vec<&Value> = routes.filter(|route| route["metadata"]["namespace"] == *namespace).collect();
        let [serves, redirects] = own.as_slice() else { panic!("{own:?}") };
        let reference = |route: &Value| {
            let parents = route["spec"]["parentRefs"].as_array().unwrap().clone();
            let [parent] = parents.as_slice() else { panic!("{parents:?}") };
            (parent["name"].clone(), parent["port"].clone())
        };
        assert_eq!(reference(serves), (parent["metadata"]["name"].clone(), 443.into()));
        assert_eq!(reference(redirects), ("pingsix".into(), 80.into()));
    }
    // A route for all hosts serves the hosts of all listeners.
    let routes = of_kind(&documents, "HTTPRoute");
    let rest = routes.iter().find(|route| route["metadata"]["name"] == "rest").unwrap();
    assert_eq!(rest["spec"]["parentRefs"].as_array().unwrap().len(), 5);
}

#[test]
fn a_route_has_no_more_parents_than_it_may() {
    let run = run_with(&tenants(2_100), ["migrate", "-", "--only-converted"]).exits(1);
    run.prints_error("A route has at most 32 parents, so it lacks the listeners of 1 ListenerSet.");
}

#[test]
fn a_redirect_to_a_gateway_that_the_input_lacks_is_not_called_exact() {
    let input = ingress("force-ssl-redirect", "\"true\"");
    run_with(&input, ["migrate", "-", "--gateway", "edge/web"])
        .exits(0)
        .prints("scheme: https\n")
        .prints_error(
            "Gateway edge/web is not among the input, so see that it has a listener for HTTPS of a.example.",
        );
    let gateway = "---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: { name: web, namespace: edge }\n\
                   spec: { gatewayClassName: pingsix, listeners: [{ name: http, port: 80, protocol: HTTP, allowedRoutes: ALL }, { \
                   name: https, port: 443, protocol: HTTPS, hostname: HOST, allowedRoutes: ALL, tls: { certificateRefs: [{ \
                   name: tls }] } }] }\n";
    let gateway = gateway.replace("ALL", "{ namespaces: { from: All } }");
    let with = |host: &str| format!("{input}{}", gateway.replace("HOST", host));
    let arguments = ["migrate", "-", "--gateway", "edge/web"];
    run_with(&with("\"*.example\""), arguments).exits(0).prints("scheme: https\n");
    let other = run_with(&with("b.example"), arguments).exits(1);
    assert!(!other.out.contains("scheme: https"), "{}", other.out);
}

#[test]
fn names_of_routes_are_unique_and_within_bounds() {
    let long = format!("{}.{}.{}.example", "a".repeat(63), "b".repeat(63), "c".repeat(63));
    let hosts =
        [format!("x.{long}"), format!("y.{long}"), "a-b.example".to_owned(), "a.b.example".to_owned()];
    let rules = hosts.iter().map(|host| {
        format!(
            "{{ host: {host}, http: {{ paths: [{{ path: /, pathType: Prefix, backend: {{ service: {{ name: s, port: {{ number: \
             80 }} }} }} }}] }} }}"
        )
    });
    let name = "n".repeat(120);
    let input = format!(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{ name: {name}, namespace: shop, annotations: {{ \
         nginx.ingress.kubernetes.io/app-root: /a }} }}\nspec: {{ rules: [{}] }}\n",
        rules.collect::<Vec<_>>().join(", ")
    );
    let documents = documents(&run_with(&input, ["migrate", "-", "--only-converted"]).exits(0).out);
    let routes = of_kind(&documents, "HTTPRoute");
    let names: BTreeSet<&str> =
        routes.iter().map(|route| route["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), hosts.len());
    assert!(names.iter().all(|name| name.len() <= 253), "{names:?}");
}

#[test]
fn an_ingress_of_another_controller_stays_whatever_its_annotations() {
    for (class, annotation) in [
        ("alb", "nginx.ingress.kubernetes.io/auth-url"),
        ("traefik", "nginx.ingress.kubernetes.io/rewrite-target"),
        ("unknown", "nginx.org/basic-auth-secret"),
        ("unknown", "alb.ingress.kubernetes.io/auth-type"),
    ] {
        let input = ingress_of(
            (class, annotation.rsplit_once('/').unwrap().0),
            annotation.rsplit_once('/').unwrap().1,
            "x",
        );
        for keep in [None, Some("--keep-ingress")] {
            let run = run_with(&input, ["migrate", "-"].into_iter().chain(keep)).exits(0);
            let run = run.prints(annotation).prints_error("The Ingress stays as it is.");
            assert_eq!(
                of_kind(&documents(&run.out), "Ingress").len(),
                documents(&run.out).len(),
                "{}",
                run.out
            );
        }
    }
}

/// An input of Ingresses alone leaves their Services, endpoints, Secrets and classes in the cluster.
#[test]
fn an_object_that_the_input_lacks_makes_no_verdict_worse() {
    let ingress = r"
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: shop, namespace: shop }
spec:
  ingressClassName: nginx
  tls: [{ hosts: [shop.example.com], secretName: shop-tls }]
  rules:
  - host: shop.example.com
    http:
      paths:
      - { path: /cart, pathType: Prefix, backend: { service: { name: cart, port: { number: 8080 } } } }
      - { path: /help, pathType: Exact, backend: { service: { name: help, port: { number: 80 } } } }
";
    for arguments in [&["migrate", "-", "--all"][..], &["migrate", "-", "--all", "--keep-ingress"]] {
        run_with(ingress, arguments.iter().copied()).exits(0).prints_error(" 0 impossible (1 object)");
    }
    // A Service of the input is judged as it is.
    let service = "---\napiVersion: v1\nkind: Service\nmetadata: { name: cart, namespace: shop }\n\
                   spec: { type: ExternalName, externalName: cart.example.org, ports: [{ port: 8080 }] }\n";
    for arguments in [&["migrate", "-", "--all"][..], &["migrate", "-", "--all", "--keep-ingress"]] {
        run_with(&format!("{ingress}{service}"), arguments.iter().copied())
            .exits(1)
            .prints_error(
                "  impossible  spec.rules[0].http.paths[0]: GET https://shop.example.com/cart gets 500. ",
            )
            .prints_error(" 1 impossible (2 objects)");
    }
}
