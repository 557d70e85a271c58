//! The annotations of each dialect, one by one.

use super::rewrite::PathPattern;
use super::*;
use crate::crd::{FilterPath, FilterPathType};

fn read(annotations: &[(&str, &str)]) -> IngressAnnotations {
    read_in(AnnotationDialect::IngressNginx, annotations)
}

fn read_in(dialect: AnnotationDialect, annotations: &[(&str, &str)]) -> IngressAnnotations {
    let named = |(name, value): &(&str, &str)| {
        let name =
            if name.contains('/') { (*name).to_owned() } else { format!("{}/{name}", dialect.domain()) };
        (name, (*value).to_owned())
    };
    let annotations: BTreeMap<String, String> = annotations.iter().map(named).collect();
    IngressAnnotations::read("shop", Some(&annotations), &[dialect])
}

fn messages(read: &IngressAnnotations) -> Vec<String> {
    let key = Arc::new(ObjectKey::new(Kind::Ingress, "infra", "web"));
    let brief = |problem: Problem| problem.message.replace(CLOSED, " CLOSED");
    read.problems_of(&key).into_iter().map(brief).collect()
}

#[test]
fn every_annotation_is_in_one_concern() {
    for dialect in AnnotationDialect::ALL {
        let names: Vec<&str> =
            concerns(dialect).iter().flat_map(|concern| concern.annotations).map(|one| one.name).collect();
        let mut distinct = names.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), names.len(), "{dialect:?}");
    }
}

#[test]
fn annotations_have_an_effect_only_in_a_dialect_of_the_class() {
    let annotations =
        BTreeMap::from([("nginx.ingress.kubernetes.io/auth-url".to_owned(), "http://a".to_owned())]);
    for dialects in [&[][..], &[AnnotationDialect::Apisix]] {
        let read = IngressAnnotations::read("shop", Some(&annotations), dialects);
        assert!(!read.is_closed() && messages(&read).is_empty());
    }
}

#[test]
fn an_unusable_protecting_annotation_closes_the_ingress() {
    let closing = [
        ("auth-url", "http://auth.example.com"),
        ("auth-type", "digest"),
        ("auth-tls-secret", "infra/ca"),
        ("configuration-snippet", "deny all;"),
        ("server-snippet", "deny all;"),
        ("enable-modsecurity", "true"),
        ("whitelist-source-range", "10.0.0.0/8\u{0}"),
        ("whitelist-source-range", ""),
        ("allowlist-source-range", " "),
        ("denylist-source-range", ","),
        ("denylist-source-range", "10.0.0.0/33"),
    ];
    for (name, value) in closing {
        let read = read(&[(name, value)]);
        assert!(read.is_closed(), "{name}");
        let [message] = messages(&read).try_into().unwrap();
        assert!(message.starts_with(&format!("nginx.ingress.kubernetes.io/{name}: ")), "{message}");
        assert!(message.ends_with(" CLOSED"), "{message}");
    }
    for (name, value) in
        [("enable-modsecurity", "false"), ("satisfy", "all"), ("auth-tls-verify-client", "off")]
    {
        assert_eq!(messages(&read(&[(name, value)])), [""; 0], "{name}");
    }
}

/// Blank values that the other controllers ignore.
#[test]
fn a_blank_value_that_asks_for_nothing_has_no_problem() {
    let blank = [
        "auth-secret",
        "auth-secret-type",
        "auth-snippet",
        "auth-tls-match-cn",
        "auth-tls-secret",
        "auth-type",
        "auth-url",
        "configuration-snippet",
        "enable-modsecurity",
        "modsecurity-snippet",
        "satisfy",
        "server-snippet",
        "stream-snippet",
    ];
    for (name, value) in blank.iter().flat_map(|name| ["", " ", "\n"].map(|value| (*name, value))) {
        assert_eq!(messages(&read(&[(name, value)])), [""; 0], "{name}");
    }
    for name in ["auth-type", "auth-uri", "enable-csrf", "plugin-config-name"] {
        assert_eq!(messages(&read_in(AnnotationDialect::Apisix, &[(name, "")])), [""; 0], "{name}");
    }
}

/// A list of clients or methods without an entry admits nobody, whichever controller the annotation is of.
#[test]
fn a_list_without_entries_closes_the_ingress() {
    let lists =
        ["allowlist-source-range", "blocklist-source-range", "http-allow-methods", "http-block-methods"];
    for (name, value) in lists.iter().flat_map(|name| ["", " ", ",", " , "].map(|value| (*name, value))) {
        let read = read_in(AnnotationDialect::Apisix, &[(name, value)]);
        let expected = format!("k8s.apisix.apache.org/{name}: The list has no entries. CLOSED");
        assert_eq!(messages(&read), [expected], "{value:?}");
    }
    // ingress-nginx ignores a blank one of the two names beside the other.
    for (blank, other) in [
        ("allowlist-source-range", "whitelist-source-range"),
        ("whitelist-source-range", "allowlist-source-range"),
    ] {
        let read = read(&[(blank, ""), (other, "10.0.0.0/8")]);
        assert_eq!(read.security.authorization.unwrap().allow, ["10.0.0.0/8"]);
    }
}

#[test]
fn truth_values_are_those_of_the_other_controller() {
    use AnnotationDialect::{Apisix, IngressNginx};
    for text in ["1", "t", "T", "true", "TRUE", "True"] {
        assert!(read(&[("enable-cors", text)]).security.cors.is_some(), "{text}");
        assert!(read(&[("canary", text)]).canary.is_some(), "{text}");
        assert!(read(&[("force-ssl-redirect", text)]).https.without_tls, "{text}");
        assert!(read(&[("enable-modsecurity", text)]).is_closed(), "{text}");
        let is_true = text == "true";
        assert_eq!(read_in(Apisix, &[("enable-cors", text)]).security.cors.is_some(), is_true, "{text}");
        assert!(read_in(Apisix, &[("enable-csrf", text)]).is_closed(), "{text}");
    }
    for text in ["0", "f", "F", "false", "FALSE", "False"] {
        for name in
            ["enable-modsecurity", "enable-owasp-core-rules", "ssl-passthrough", "enable-opentelemetry"]
        {
            assert_eq!(messages(&read(&[(name, text)])), [""; 0], "{name} {text}");
        }
        assert!(!read(&[("ssl-redirect", text)]).https.with_tls, "{text}");
        assert_eq!(read_in(Apisix, &[("enable-csrf", text)]).is_closed(), text != "false", "{text}");
    }
    for text in ["yes", "on", "TrUe", "tRUE", "01", "-1"] {
        assert!(read(&[("enable-modsecurity", text)]).is_closed(), "{text}");
        for dialect in [IngressNginx, Apisix] {
            let read = read_in(dialect, &[("enable-cors", text)]);
            assert!(read.security.cors.is_none() && messages(&read).len() == 1, "{text}");
        }
        let read = read(&[("ssl-redirect", text)]);
        assert!(read.https.with_tls && messages(&read).len() == 1, "{text}");
    }
    let with_newline = read(&[("canary", "true\n"), ("enable-modsecurity", "false\n")]);
    assert!(with_newline.canary.is_some() && !with_newline.is_closed());
    assert!(with_newline.problems().iter().all(|problem| problem.is_honoured));
}

#[test]
fn enumerations_are_compared_as_ingress_nginx_does() {
    for text in ["Any", "ALL", "all", "none"] {
        assert_eq!(messages(&read(&[("satisfy", text)])), [""; 0], "{text}");
    }
    let addresses = ("whitelist-source-range", "10.0.0.0/8");
    assert!(
        read(&[("satisfy", " any\n"), addresses, ("auth-type", "basic"), ("auth-secret", "user")])
            .is_closed()
    );
    assert_eq!(messages(&read(&[("affinity", "Cookie")])), [""; 0]);
    assert!(read(&[("auth-type", "Basic"), ("auth-secret", "user")]).is_closed());
    assert_eq!(read(&[("backend-protocol", "gRPC")]).backend_protocol, BackendProtocol::Grpc);
}

#[test]
fn a_list_may_have_an_item_in_each_line() {
    let read = read(&[
        ("whitelist-source-range", "10.0.0.0/8,\n  192.0.2.1,\r\n\t198.51.100.0/24\n"),
        ("server-alias", "a.test,\nb.test,\n"),
        ("rewrite-target", "/x\n"),
    ]);
    let allow = &read.security.authorization.as_ref().unwrap().allow;
    assert_eq!(allow, &["10.0.0.0/8", "192.0.2.1", "198.51.100.0/24"]);
    assert_eq!(read.aliases.iter().map(Hostname::as_str).collect::<Vec<_>>(), ["a.test", "b.test"]);
    assert!(!read.is_closed() && read.rewriting.is_some());
    for list in ["10.0.0.0/8\n192.0.2.1", "10.0.0.0/8,\u{0}", "10.0.0.0/8,1\u{7f}92.0.2.1"] {
        assert!(super::tests::read(&[("whitelist-source-range", list)]).is_closed(), "{list:?}");
    }
    assert_eq!(super::tests::read(&[("x-forwarded-prefix", "/a,\nx: y")]).filters, []);
}

#[test]
fn a_list_of_networks_with_an_empty_item_closes_the_ingress_of_nginx() {
    for list in ["10.0.0.0/8,", ",10.0.0.0/8", "10.0.0.0/8, ,192.0.2.1", ",", ""] {
        for name in ["whitelist-source-range", "denylist-source-range"] {
            assert!(read(&[(name, list)]).is_closed(), "{name} {list}");
        }
    }
    assert!(!read_in(AnnotationDialect::Apisix, &[("allowlist-source-range", "10.0.0.0/8,")]).is_closed());
}

#[test]
fn the_secret_of_users_may_be_named_with_the_namespace_of_the_ingress() {
    let secret = |name: &str| {
        let read = read(&[("auth-type", "basic"), ("auth-secret", name)]);
        let basic_auth = read.security.basic_auth.as_ref();
        basic_auth.map(|basic_auth| basic_auth.secret_ref.name.clone()).filter(|_| !read.is_closed())
    };
    assert_eq!(secret("users").as_deref(), Some("users"));
    assert_eq!(secret("shop/users").as_deref(), Some("users"));
    assert_eq!((secret("other/users"), secret("shop/a/users"), secret("/users")), (None, None, None));
}

#[test]
fn another_form_of_the_secret_of_users_closes_the_ingress() {
    for (form, is_closed) in [("auth-file", false), ("auth-map", false), ("", false), ("file", true)] {
        let read = read(&[("auth-type", "basic"), ("auth-secret", "users"), ("auth-secret-type", form)]);
        assert_eq!(read.is_closed(), is_closed, "{form}");
    }
}

#[test]
fn either_of_addresses_and_credentials_closes_only_an_ingress_with_both() {
    let addresses = ("whitelist-source-range", "10.0.0.0/8");
    let users = [("auth-type", "basic"), ("auth-secret", "users")];
    let with = |more: &[(&str, &str)]| read(&[&[("satisfy", "any")][..], more].concat()).is_closed();
    assert!(!with(&[]) && !with(&[addresses]) && !with(&users));
    assert!(with(&[addresses, users[0], users[1]]));
    assert!(!read(&[addresses, users[0], users[1], ("satisfy", "all")]).is_closed());
}

#[test]
fn a_value_that_the_other_controller_ignores_loses_nothing() {
    for (name, value) in [
        ("proxy-read-timeout", "60s"),
        ("proxy-connect-timeout", "1h"),
        ("limit-rps", "10r/s"),
        ("ssl-redirect", "no"),
        ("enable-cors", "yes"),
        ("enable-opentelemetry", "on"),
        ("ssl-passthrough", "yes"),
        ("backend-protocol", "HTTP2"),
        ("app-root", "app"),
        ("no-such-annotation", "x"),
    ] {
        let read = read(&[(name, value)]);
        assert!(!read.is_closed(), "{name}");
        assert!(
            read.problems().len() == 1 && read.problems().iter().all(|problem| problem.is_ignored),
            "{name}"
        );
    }
    for (name, value) in [
        ("proxy-read-timeout", "0"),
        ("limit-rps", "-1"),
        ("backend-protocol", "FCGI"),
        ("enable-modsecurity", "yes"),
        ("app-root", "/app?a=b"),
    ] {
        assert!(read(&[(name, value)]).problems().iter().all(|problem| !problem.is_ignored), "{name}");
    }
    // The controller of APISIX gives up all settings of upstreams then.
    for name in ["upstream-read-timeout", "upstream-retries", "upstream-scheme"] {
        let read = read_in(AnnotationDialect::Apisix, &[(name, "many")]);
        assert!(read.problems().iter().all(|problem| !problem.is_ignored), "{name}");
    }
}

#[test]
fn a_time_beyond_the_longest_of_pingsix_is_the_longest() {
    let read = read(&[("proxy-read-timeout", "3600000"), ("proxy-send-timeout", "86400")]);
    let timeout = read.backend_traffic.timeout.unwrap();
    assert_eq!((timeout.read.as_deref(), timeout.send.as_deref()), (Some("86400s"), Some("86400s")));
    assert!(read.problems.len() == 1 && read.problems[0].is_honoured);
}

#[test]
fn the_prefix_of_a_path_is_sent_beside_a_rewrite_alone() {
    assert_eq!(read(&[("x-forwarded-prefix", "/app")]).filters, []);
    let read = read(&[("x-forwarded-prefix", "/app"), ("rewrite-target", "/$2")]);
    assert_eq!(read.filters.len(), 1);
}

#[test]
fn headers_for_websockets_need_no_filter() {
    let snippet = |text: &str| read(&[("configuration-snippet", text)]);
    let read = snippet(
        "proxy_set_header Upgrade $http_upgrade;\nproxy_set_header Connection \"upgrade\";\n\
         proxy_set_header connection $connection_upgrade;",
    );
    assert!(!read.is_closed() && read.filters.is_empty(), "{:?}", messages(&read));
    assert_eq!(read.directives.iter().map(|one| one.is_exact).collect::<Vec<_>>(), [true, false, true]);
    assert!(snippet("proxy_set_header Upgrade $http_other;").is_closed());
}

#[test]
fn a_challenge_is_a_single_element_of_base64url() {
    for path in ["/.well-known/acme-challenge/x", "/.well-known/acme-challenge/Ab9-_xyz"] {
        assert!(is_challenge(path), "{path}");
    }
    for path in [
        "/.well-known/acme-challenge",
        "/.well-known/acme-challenge/",
        "/.well-known/acme-challenge-x/a",
        "/.well-known/acme-challenge/a/b",
        "/.well-known/acme-challenge/a/",
        "/.well-known/acme-challenge/..",
        "/.well-known/acme-challenge/a.b",
        "/.well-known/acme-challenge/a%2f",
        "/.well-known/acme-challenge/(.*)",
        "/x/.well-known/acme-challenge/a",
        "/.well-known//acme-challenge/a",
    ] {
        assert!(!is_challenge(path), "{path}");
    }
}

#[test]
fn an_ingress_may_give_up_annotations_by_name() {
    for ignored in ["nginx.ingress.kubernetes.io/auth-url", "affinity, auth-url"] {
        let read = read(&[("auth-url", "http://a"), ("pingsix.io/ignored-annotations", ignored)]);
        assert!(!read.is_closed() && messages(&read).is_empty(), "{ignored}");
    }
    let read = read(&[("auth-url", "http://a"), ("pingsix.io/ignored-annotations", "auth-ur")]);
    assert!(read.is_closed());
}

#[test]
fn an_unusable_tuning_annotation_gives_a_warning() {
    let read = read(&[
        ("affinity", "cookie"),
        ("session-cookie-name", "a"),
        ("no-such", "x"),
        ("enable-cors", "yes"),
    ]);
    assert!(!read.is_closed());
    let messages = messages(&read);
    assert_eq!(
        messages,
        [
            "nginx.ingress.kubernetes.io/affinity: PingSIX has no sessions; upstream-hash-by with a cookie of the \
             application comes close.",
            "nginx.ingress.kubernetes.io/no-such: This annotation is unknown and has no effect.",
            "nginx.ingress.kubernetes.io/enable-cors: \"yes\" is neither true nor false.",
        ]
    );
}

#[test]
fn thousands_of_annotations_have_a_few_problems() {
    let names: Vec<String> = (0..3_000).map(|index| format!("no-such-{index}")).collect();
    let mut annotations: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
    annotations.push(("server-snippet", "x"));
    let messages = messages(&read(&annotations));
    assert_eq!(messages.len(), LISTED + 1);
    assert!(messages[0].ends_with("CLOSED"), "{messages:?}");
    assert_eq!(
        messages[LISTED],
        "2985 more annotations of the Ingress are not honoured as they are written."
    );
}

#[test]
fn addresses_become_the_authorization_of_a_policy() {
    let authorization = |annotations: &[(&str, &str)]| {
        let authorization = read(annotations).security.authorization.unwrap();
        (authorization.allow, authorization.deny)
    };
    let allowed = vec!["10.0.0.0/8".to_owned(), "192.0.2.1".to_owned()];
    let list = "10.0.0.0/8, 192.0.2.1";
    assert_eq!(authorization(&[("whitelist-source-range", list)]), (allowed.clone(), Vec::new()));
    assert_eq!(authorization(&[("allowlist-source-range", list)]), (allowed.clone(), Vec::new()));
    assert_eq!(authorization(&[("denylist-source-range", list)]), (Vec::new(), allowed));
    // Go's ParseCIDR drops the bits of the host.
    let masked = vec!["193.243.131.0/24".to_owned(), "2001:db8::/32".to_owned()];
    let list = "193.243.131.172/24, 2001:db8::7/32";
    assert_eq!(authorization(&[("whitelist-source-range", list)]), (masked.clone(), Vec::new()));
    assert_eq!(authorization(&[("denylist-source-range", list)]), (Vec::new(), masked.clone()));
    let of_apisix = read_in(AnnotationDialect::Apisix, &[("blocklist-source-range", list)]);
    assert_eq!(of_apisix.security.authorization.unwrap().deny, masked);
    assert!(read(&[("allowlist-source-range", list), ("whitelist-source-range", "10.0.0.0/8")]).is_closed());
}

#[test]
fn cors_has_the_defaults_of_ingress_nginx() {
    assert_eq!(read(&[("cors-allow-origin", "https://a.test")]).security.cors, None);
    let cors = read(&[("enable-cors", "true")]).security.cors.unwrap();
    assert_eq!(cors.allow_origins, ["*"]);
    assert_eq!(cors.allow_methods, ["GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"]);
    assert!(cors.allow_credentials && cors.allow_headers.len() == 9);
    assert_eq!(cors.max_age, Some(1_728_000));
    let cors = read(&[
        ("enable-cors", "true"),
        ("cors-allow-origin", "https://a.test, https://*.b.test"),
        ("cors-allow-credentials", "false"),
        ("cors-max-age", "60"),
    ]);
    let cors = cors.security.cors.unwrap();
    assert_eq!(cors.allow_origins, ["https://a.test", "https://*.b.test"]);
    assert!(!cors.allow_credentials);
    assert_eq!(cors.max_age, Some(60));
}

#[test]
fn a_limit_answers_503_as_ingress_nginx_does() {
    let limited = read(&[("limit-rpm", "30")]);
    let local = limited.traffic.rate_limit.unwrap().local;
    assert_eq!((local.limit.requests, local.reject_code, local.quota_headers), (30, 503, false));
    assert_eq!(messages(&read(&[("limit-rpm", "30")])).len(), 1);
    assert_eq!(read(&[("limit-rps", "0")]).traffic.rate_limit, None);
    assert_eq!(read(&[("limit-rps", "many")]).traffic.rate_limit, None);
}

#[test]
fn timeouts_and_tries_are_those_of_connections() {
    let read = read(&[
        ("proxy-connect-timeout", "3"),
        ("proxy-read-timeout", "120"),
        ("proxy-next-upstream-tries", "2"),
    ]);
    let timeout = read.backend_traffic.timeout.unwrap();
    assert_eq!(
        (timeout.connect.as_deref(), timeout.send, timeout.read.as_deref()),
        (Some("3s"), None, Some("120s"))
    );
    assert_eq!(read.backend_traffic.retry.unwrap().num_retries, Some(1));
}

#[test]
fn a_hash_is_of_one_variable() {
    let hash = |text| {
        let hash = read(&[("upstream-hash-by", text)]).backend_traffic.load_balancer?.consistent_hash?;
        Some((format!("{:?}", hash.r#type), hash.name.unwrap_or_default()))
    };
    let some = |kind: &str, name: &str| Some((kind.to_owned(), name.to_owned()));
    assert_eq!(hash("$request_uri"), some("Uri", ""));
    assert_eq!(hash("${remote_addr}"), some("SourceIp", ""));
    assert_eq!(hash("$http_x_user"), some("Header", "x-user"));
    assert_eq!(hash("$arg_id"), some("QueryParam", "id"));
    assert_eq!(hash("$cookie_session"), some("Cookie", "session"));
    for text in ["$request_uri$host", "request_uri", "$http_", "$cookie_a b", "$uri"] {
        assert_eq!(hash(text), None, "{text}");
    }
}

#[test]
fn a_redirect_has_the_parts_of_its_url() {
    let redirect = |name, url| {
        let read = read(&[(name, url)]);
        let redirect = read.filters.first()?.request_redirect.clone()?;
        let path = redirect.path?.replace_full_path?;
        Some((redirect.hostname, redirect.port, path, redirect.status_code))
    };
    let host = |name: &str| Some(name.to_owned());
    assert_eq!(
        redirect("permanent-redirect", "https://www.example.com/new"),
        Some((host("www.example.com"), None, "/new".to_owned(), Some(301)))
    );
    assert_eq!(
        redirect("temporal-redirect", "http://example.com:8080"),
        Some((host("example.com"), Some(8080), "/".to_owned(), Some(302)))
    );
    for url in [
        "https://$arg_a/",
        "ftp://a.test/",
        "https://a.test/?b=c",
        "a.test",
        "https://u@a.test/",
        "https://a.test/$",
    ] {
        assert_eq!(redirect("permanent-redirect", url), None, "{url}");
        for read in [
            read(&[("permanent-redirect", url)]),
            read(&[("temporal-redirect", url)]),
            apisix(&[("http-redirect", url)]),
        ] {
            assert!(read.is_closed(), "{url}");
        }
    }
}

/// A redirect with the variables of the request: the scheme, the host, the port, the path and the messages.
fn parts(url: &str) -> (String, Vec<String>) {
    let read = read(&[("permanent-redirect", url)]);
    let redirect = read.filters.first().map(|filter| filter.request_redirect.clone().unwrap());
    let Some(redirect) = redirect else { return (String::new(), messages(&read)) };
    let path = redirect.path.map_or_else(|| "keep".to_owned(), |path| path.replace_full_path.unwrap());
    let scheme = redirect.scheme.map(|scheme| format!("{scheme:?}"));
    let text = format!("{scheme:?} {:?} {:?} {path}", redirect.hostname, redirect.port);
    (text.replace("Some(\"", "").replace("\")", ""), messages(&read))
}

#[test]
fn a_redirect_keeps_the_parts_of_the_request_that_its_variables_name() {
    for (url, expected) in [
        ("https://a.test$request_uri", "Https a.test None keep"),
        ("http://A.test:81${request_uri}", "Http a.test Some(81) keep"),
        ("$scheme://a.test$request_uri", "None a.test None keep"),
        ("https://$host$request_uri", "Https None None keep"),
        ("https://${http_host}$uri$is_args$args", "Https None None keep"),
        ("https://a.test/b$is_args$args", "Https a.test None /b"),
        ("https://a.test/b?$query_string", "Https a.test None /b"),
    ] {
        assert_eq!(parts(url), (expected.to_owned(), Vec::new()), "{url}");
    }
    for (url, expected) in [("https://a.test$uri", "keep"), ("https://a.test", "/"), ("/b", "/b")] {
        let (text, messages) = parts(url);
        assert!(text.ends_with(expected), "{url}: {text}");
        assert_eq!(
            messages,
            ["nginx.ingress.kubernetes.io/permanent-redirect: The query of a request is kept."],
            "{url}"
        );
    }
    for url in [
        "https://$hostname/",
        "https://a.test/b$request_uri",
        "https://a.$host/",
        "https://a.test$request_uri?$args",
        "https://a_b.test/",
    ] {
        assert_eq!(parts(url).0, "", "{url}");
    }
}

#[test]
fn a_temporary_redirect_has_no_code_of_a_permanent_one() {
    for (name, code, expected) in [
        ("temporal-redirect", "308", 302),
        ("temporal-redirect", "307", 307),
        ("permanent-redirect", "308", 308),
        ("permanent-redirect", "404", 301),
    ] {
        let read = read(&[(name, "https://a.test$request_uri"), (&format!("{name}-code"), code)]);
        let redirect = read.filters[0].request_redirect.clone().unwrap();
        assert_eq!(redirect.status_code, Some(expected), "{name} {code}");
    }
    assert!(
        read(&[("permanent-redirect", "https://a.test/"), ("permanent-redirect-code", "304")]).is_closed()
    );
}

#[test]
fn a_rewrite_to_a_url_is_a_redirect() {
    let redirect = |target: &str, path: &str| {
        let read = read(&[("rewrite-target", target)]);
        assert!(read.redirects() && read.redirects_hosts, "{target}");
        let PathPattern { rewrite, limitation, .. } = read.rewriting.unwrap().read(path)?;
        let Some(PathChange::Redirect(filter)) = rewrite else { panic!("{target} is no redirect") };
        let redirect = filter.request_redirect.unwrap();
        assert_eq!(redirect.status_code, Some(302));
        let path = redirect.path.map_or_else(
            || "keep".to_owned(),
            |path| {
                path.replace_full_path
                    .or(path.replace_prefix_match.map(|prefix| format!("{prefix}*")))
                    .unwrap()
            },
        );
        Ok::<_, &str>((path, limitation.is_some()))
    };
    for (target, path, expected, is_limited) in [
        ("https://a.test/$1", "/(.*)", "keep", false),
        ("https://a.test/$1", "/", "/", false),
        ("https://a.test$request_uri", "/old", "keep", true),
        ("https://a.test/old/$2", "/old(/|$)(.*)", "keep", false),
        ("https://a.test/$2", "/old(/|$)(.*)", "/*", false),
        ("https://a.test/new$1$2", "/old(/|$)(.*)", "/new*", false),
        ("https://a.test/new/$2", "/old(/|$)(.*)", "/new*", true),
        ("https://a.test/$3", "/old(/|$)(.*)", "/", false),
        ("$scheme://$host/new", "/old", "/new", true),
    ] {
        assert_eq!(redirect(target, path), Ok((expected.to_owned(), is_limited)), "{target} {path}");
    }
    for (target, path) in [
        ("https://a.test/$1/x", "/old/(.*)"),
        ("https://a.test/$2$1", "/old(/|$)(.*)"),
        ("https://a.test/x?$1", "/(.*)"),
    ] {
        assert!(redirect(target, path).is_err(), "{target} {path}");
    }
    for target in ["https://$1.test/", "http://", "$scheme"] {
        assert!(read(&[("rewrite-target", target)]).is_closed(), "{target}");
    }
}

/// The filters of a snippet in short, or the problem.
fn snippet(text: &str) -> Result<String, String> {
    let read = read(&[("configuration-snippet", text)]);
    if let Some(problem) = read.problems().iter().find(|problem| problem.purpose == Purpose::Protects) {
        return Err(problem.message.clone());
    }
    let mut brief = Vec::new();
    for filter in &read.filters {
        if let Some(redirect) = &filter.request_redirect {
            let path = redirect.path.as_ref().and_then(|path| path.replace_full_path.as_deref());
            brief.push(format!("{} {}", redirect.status_code.unwrap(), path.unwrap_or("keep")));
        }
        if let Some(request) = &filter.request_header_modifier {
            brief.extend(
                request.set.iter().flatten().map(|header| format!(">{}={}", header.name, header.value)),
            );
            brief.extend(request.remove.iter().flatten().map(|name| format!(">-{name}")));
        }
        if let Some(response) = &filter.response_header_modifier {
            brief.extend(
                response.set.iter().flatten().map(|header| format!("{}={}", header.name, header.value)),
            );
            brief.extend(
                response.add.iter().flatten().map(|header| format!("{}+{}", header.name, header.value)),
            );
            brief.extend(response.remove.iter().flatten().map(|name| format!("-{name}")));
        }
    }
    Ok(brief.join(" "))
}

#[test]
fn a_snippet_of_known_directives_becomes_filters() {
    for (text, expected) in [
        ("more_set_headers \"X-A: b\" 'X-C:d';", "X-A=b X-C=d"),
        ("more_set_headers 'X-A: b'; more_set_headers 'x-a: c';", "X-A=c"),
        ("more_set_headers 'X-A:';more_clear_headers X-B;", "-X-A -X-B"),
        ("add_header X-A \"b c\" always;", "X-A+b c"),
        ("add_header X-A b; proxy_hide_header x-a;", "X-A=b"),
        ("proxy_hide_header X-A;\nadd_header X-A b;", "X-A=b"),
        ("add_header X-A '';", ""),
        ("proxy_set_header X-A b; proxy_set_header X-C \"\";", ">X-A=b >-X-C"),
        ("return 301 https://a.test$request_uri;", "301 keep"),
        ("return https://a.test/b;", "302 /b"),
        ("rewrite ^/(.*)$ https://a.test/$1 permanent;", "301 keep"),
        ("rewrite (.*) https://a.test$1;", "302 keep"),
        ("rewrite ^ https://a.test$request_uri? redirect;", "302 keep"),
        ("rewrite ^.*$ /b redirect;", "302 /b"),
        ("add_header X-A b; return 302 https://a.test/;", "302 /"),
        ("# a comment\n", ""),
    ] {
        assert_eq!(snippet(text), Ok(expected.to_owned()), "{text}");
    }
}

#[test]
fn a_snippet_with_another_directive_closes_the_ingress_and_names_its_line() {
    for (text, line, label) in [
        ("deny all;", 1, "deny"),
        ("add_header X-A b;\n\nset $a b;", 3, "set"),
        ("if ($a) { return 403; }", 1, "if"),
        ("add_header X-A $host;", 1, "add_header X-A"),
        ("more_set_headers 'X-A: ${host}';", 1, "more_set_headers X-A"),
        ("more_set_headers -s 404 'X-A: b';", 1, "more_set_headers -s 404 X-A"),
        ("more_clear_headers 'X-*';", 1, "more_clear_headers"),
        ("proxy_set_header Host a;", 1, "proxy_set_header Host"),
        ("add_header X-A b;\nadd_header x-a c;", 2, "add_header x-a"),
        ("more_set_headers 'X-A: b';\nadd_header X-A b;", 2, "add_header X-A"),
        ("return 403;", 1, "return"),
        ("return 200 'hunter2';", 1, "return"),
        ("rewrite ^/a/(.*)$ /b/$1 permanent;", 1, "rewrite"),
        ("rewrite ^/(.*)$ /b/$1 break;", 1, "rewrite"),
        ("rewrite ^/$ https://a.test/ permanent;", 1, "rewrite"),
        ("rewrite ^/(.*)$ https://a.test/b/$1 permanent;", 1, "rewrite"),
        ("return 301 https://a.test/; return 302 https://b.test/;", 1, "return"),
    ] {
        let problem = snippet(text).unwrap_err();
        let expected = format!("Line {line}: PingSIX has no counterpart of {label}: ");
        assert!(problem.starts_with(&expected) && !problem.contains("hunter2"), "{text}: {problem}");
    }
    assert_eq!(snippet("a b"), Err("Line 1 is no directive of nginx.".to_owned()));
    assert!(snippet(&"proxy_hide_header X;".repeat(65)).unwrap_err().contains("more than 64"));
}

#[test]
fn a_body_may_be_larger_than_its_limit_and_a_lowered_limit_is_lost() {
    for (value, is_lost, count) in [
        ("0", false, 0),
        ("1m", false, 1),
        ("2G", false, 1),
        ("1023k", true, 1),
        ("8MB", false, 1),
        ("", false, 0),
    ] {
        let read = read(&[("proxy-body-size", value)]);
        assert_eq!(read.problems().len(), count, "{value}");
        assert_eq!(read.problems().iter().any(|problem| !problem.is_honoured), is_lost, "{value}");
        assert!(!read.is_closed());
    }
}

#[test]
fn regular_expressions_that_stand_for_a_prefix_are_read() {
    let pattern = |target: &str, path: &str| -> Result<(String, String), &'static str> {
        let read = read(&[("rewrite-target", target)]);
        let PathPattern { path, rewrite, .. } = read.rewriting.unwrap().read(path)?;
        let rewrite = match rewrite {
            None => String::new(),
            Some(PathChange::Full(path)) => path,
            Some(PathChange::Regex(path)) => format!("{} {}", path.pattern, path.substitution),
            Some(PathChange::Redirect(_)) => panic!("a path is no redirect"),
        };
        Ok((path, rewrite))
    };
    let is = |path: &str, rewrite: &str| Ok((path.to_owned(), rewrite.to_owned()));
    assert_eq!(pattern("/", "/app"), is("/app", "/"));
    // A path that is the target itself is no rewrite.
    assert_eq!(pattern("/app", "/app"), is("/app", ""));
    assert_eq!(pattern("/", ""), is("/", ""));
    assert_eq!(pattern("/", "/(.*)"), is("/", "/"));
    assert_eq!(pattern("/$2", "/app(/|$)(.*)"), is("/app", "^/app(?:(/)(.*))?$ /$2"));
    assert_eq!(pattern("/v1/$1", "/app/(.*)"), is("/app", "^/app(?:/(.*))?$ /v1/$1"));
    assert_eq!(pattern("/$1", "/app/?(.*)"), is("/app", "^/app(?:/(.*)|([^/].*))?$ /$1$2"));
    assert_eq!(pattern("/v1$1", "/app(/.*)?"), is("/app", "^/app(?:(/.*)|[^/].*)?$ /v1$1"));
    assert_eq!(pattern("/$1", "/(.*)"), is("/", "^(?:/(.*))?$ /$1"));
    assert_eq!(pattern("/x$3", "/app(/|$)(.*)"), is("/app", "/x"));
    assert_eq!(pattern("/$1", "/a.b/(.*)"), is("/a.b", "^/a\\.b(?:/(.*))?$ /$1"));
    for path in ["/(a|b)/(.*)", "/app/[0-9]+", "/app/(.*)/x", "app/(.*)"] {
        assert!(pattern("/$1", path).is_err(), "{path}");
    }
    for target in ["x", "/$host", "/a?b=$1", "/a b"] {
        let read = read(&[("rewrite-target", target)]);
        assert!(read.rewriting.is_some() && !read.is_closed() && messages(&read).len() == 1, "{target}");
    }
}

fn apisix(annotations: &[(&str, &str)]) -> IngressAnnotations {
    read_in(AnnotationDialect::Apisix, annotations)
}

#[test]
fn an_unusable_protecting_annotation_of_apisix_closes_the_ingress() {
    let closing = [
        ("auth-type", "keyAuth"),
        ("auth-uri", "http://auth.example.com"),
        ("enable-csrf", "true"),
        ("plugin-config-name", "limits"),
        ("svc-namespace", "other"),
        ("http-allow-methods", "GET,get"),
    ];
    for (name, value) in closing {
        let read = apisix(&[(name, value)]);
        assert!(read.is_closed(), "{name}");
        let [message] = messages(&read).try_into().unwrap();
        assert!(message.starts_with(&format!("k8s.apisix.apache.org/{name}: ")), "{message}");
    }
    for (name, value) in [("auth-type", ""), ("enable-csrf", "false"), ("enable-websocket", "true")] {
        assert_eq!(messages(&apisix(&[(name, value)])), [""; 0], "{name}");
    }
}

#[test]
fn addresses_of_two_dialects_close_the_ingress() {
    let annotations = AnnotationDialect::ALL
        .map(|dialect| (format!("{}/allowlist-source-range", dialect.domain()), "10.0.0.0/8".to_owned()));
    let read = IngressAnnotations::read("shop", Some(&BTreeMap::from(annotations)), &AnnotationDialect::ALL);
    assert!(read.is_closed(), "{:?}", messages(&read));
}

#[test]
fn a_key_in_an_annotation_is_never_repeated() {
    let read = apisix(&[("enable-csrf", "true"), ("csrf-key", "hunter2")]);
    assert!(read.is_closed());
    assert!(!format!("{:?} {:?}", messages(&read), read).contains("hunter2"));
}

#[test]
fn apisix_looks_at_blocked_methods_only_if_none_are_allowed() {
    let both = apisix(&[("http-allow-methods", "GET, HEAD,GET"), ("http-block-methods", "PUT")]);
    assert_eq!(both.methods, Some(AllowedMethods::Only(vec!["GET", "HEAD"])));
    let blocked = apisix(&[("http-block-methods", "PUT,DELETE")]);
    assert_eq!(blocked.methods, Some(AllowedMethods::AllBut(vec!["PUT", "DELETE"])));
    assert_eq!(apisix(&[]).methods, None);
}

#[test]
fn apisix_prefers_the_target_to_the_regular_expression() {
    let regex = ("rewrite-target-regex", "^/app/(.*)");
    let template = ("rewrite-target-regex-template", "/$1");
    assert_eq!(
        apisix(&[("rewrite-target", "/v1"), regex, template]).path_change,
        Some(PathChange::Full("/v1".to_owned()))
    );
    let path = FilterPath {
        kind: FilterPathType::ReplaceRegexMatch,
        pattern: "^/((?:.*?/)??)app/(.*)$".to_owned(),
        substitution: "/$1$2".to_owned(),
    };
    let anywhere = ("rewrite-target-regex", "/app/(.*)");
    assert_eq!(apisix(&[anywhere, template]).path_change, Some(PathChange::Regex(path)));
    // An expression that takes in the whole path needs no groups around it.
    for (written, pattern) in [
        ("^/app/(.*)", "^/app/(.*)$"),
        ("^/app/(.+)", "^/app/(.+)$"),
        ("^/app(?:/(.*))", "^/app(?:/(.*))$"),
        ("^/app/([a-z]+)", "^(?:/app/([a-z]+))(.*)$"),
        ("^/app/(.*?)", "^(?:/app/(.*?))(.*)$"),
        ("^/app/(.*)x", "^(?:/app/(.*)x)(.*)$"),
        ("^/app/(.*)|^/b(.*)", "^(?:^/app/(.*)|^/b(.*))(.*)$"),
    ] {
        let read = apisix(&[("rewrite-target-regex", written), template]);
        let Some(PathChange::Regex(path)) = read.path_change else { panic!("{written}") };
        assert_eq!(path.pattern, pattern, "{written}");
    }
    for (written, template) in [("[a-z]/(.*)", "/$1"), ("/a/(.*)", "/1$1"), ("(/a|b)", "/$1"), ("/a", "/$1")]
    {
        let read = apisix(&[("rewrite-target-regex", written), ("rewrite-target-regex-template", template)]);
        assert!(read.path_change.is_none() && messages(&read).len() == 1, "{written}");
    }
    // One of the two alone has no meaning.
    assert_eq!(apisix(&[regex]).path_change, None);
    for target in ["/$host", "v1", "/a?b=c", "/a b"] {
        let read = apisix(&[("rewrite-target", target)]);
        assert!(read.path_change.is_none() && messages(&read).len() == 1, "{target}");
    }
}

#[test]
fn a_regular_expression_replaces_its_first_match_as_in_apisix() {
    let groups = regex::Regex::new(r"\$(\d+)").unwrap();
    for (pattern, template) in [
        ("^/api/(.*)", "/backend/$1"),
        ("^/api/(.*)$", "/backend/$1"),
        ("^/api", "/backend"),
        ("/api/(.*)", "/backend/$1"),
        ("/api", "/backend"),
        ("\\/a(p+)i", "/backend/$1"),
        ("api/", "/backend/"),
        ("^(/api|/v)([0-9]?)", "/$2$1"),
        ("^/api|^/v", "/backend"),
        ("/a(?:pi)?(.*?)", "/$1x"),
    ] {
        let original = regex::Regex::new(pattern).unwrap();
        let FilterPath { pattern: whole, substitution, .. } =
            super::rewrite::regex_uri(pattern, template).unwrap();
        assert!(substitution.starts_with('/'), "{substitution}");
        let whole_pattern = regex::Regex::new(&whole).unwrap();
        // `$1x` of `regex` is the group with the name `1x`.
        let braced = |text: &str| groups.replace_all(text, "$${$1}").into_owned();
        for path in [
            "/",
            "/api",
            "/api/",
            "/api/b/c",
            "/x/api/b",
            "/x/api/api/b",
            "//api/v1",
            "/v1/api",
            "/appi",
            "/a",
        ] {
            let expected = original.replace(path, braced(template));
            assert_eq!(
                whole_pattern.replace(path, braced(&substitution)),
                expected,
                "{pattern}: {path}: {whole}"
            );
        }
    }
}

#[test]
fn an_unusable_value_of_one_annotation_leaves_the_others() {
    // The default of ingress-nginx counts, also beside an annotation without an effect.
    assert!(read(&[("ssl-redirect", "yes")]).https.with_tls);
    assert!(read(&[("proxy-buffering", "on")]).https.with_tls);
    let read = read(&[("use-regex", "true"), ("rewrite-target", "x")]);
    assert!(read.rewriting.unwrap().read("/app(/|$)(.*)").unwrap().rewrite.is_none());
    let regex = ("rewrite-target-regex", "^/app/([a-z]+)$");
    for template in ["/$2", "/$99999999999999999999", "x"] {
        let read = apisix(&[regex, ("rewrite-target-regex-template", template)]);
        assert!(read.path_change.is_none() && messages(&read).len() == 1, "{template}");
    }
    // A regular expression that matches whole paths stays as it is.
    let read = apisix(&[("rewrite-target", "v1"), regex, ("rewrite-target-regex-template", "/x/$1")]);
    let Some(PathChange::Regex(path)) = read.path_change else { panic!("{:?}", read.path_change) };
    assert_eq!((&*path.pattern, &*path.substitution), (regex.1, "/x/$1"));
    let long = "a".repeat(1001);
    assert!(
        apisix(&[("rewrite-target-regex", &long), ("rewrite-target-regex-template", "/x")])
            .path_change
            .is_none()
    );
}

#[test]
fn statuses_of_responses_are_those_that_apisix_accepts() {
    let read = |status| {
        apisix(&[("enable-response-rewrite", "true"), ("response-rewrite-status-code", status)])
            .response_status
    };
    assert_eq!(["200", "404", "598"].map(read), [Some(200), Some(404), Some(598)]);
    assert_eq!(["", "0", "199", "599", "-1", "4 04", "65736"].map(read), [None; 7]);
}

#[test]
fn seconds_of_apisix_may_have_their_unit() {
    let read = apisix(&[
        ("upstream-connect-timeout", "5s"),
        ("upstream-read-timeout", "60"),
        ("upstream-send-timeout", "1m"),
        ("upstream-retries", "3"),
    ]);
    let BackendTrafficPolicySpec { timeout, retry, .. } = read.backend_traffic.clone();
    let timeout = timeout.unwrap();
    assert_eq!(
        (timeout.connect.as_deref(), timeout.read.as_deref(), timeout.send),
        (Some("5s"), Some("60s"), None)
    );
    assert_eq!(retry.unwrap().num_retries, Some(3));
    assert_eq!(messages(&read).len(), 2);
}

#[test]
fn headers_of_responses_are_changed_only_if_apisix_is_told_so() {
    let set = ("response-rewrite-set-header", "X-Api: v1 , broken,X-User:$remote_user");
    assert!(apisix(&[set]).filters.is_empty());
    let read = apisix(&[("enable-response-rewrite", "true"), set]);
    let [filter] = &read.filters[..] else { panic!("{:?}", read.filters) };
    let set = filter.response_header_modifier.as_ref().unwrap().set.as_ref().unwrap();
    let set: Vec<_> = set.iter().map(|header| (header.name.as_str(), header.value.as_str())).collect();
    assert_eq!(set, [("X-Api", "v1")]);
    assert_eq!(messages(&read).len(), 2);
}

/// The rows of the page about annotations.
#[test]
fn the_page_about_annotations_has_all_of_them() {
    const PAGE: &str = include_str!("../../../docs/reference/annotations.md");
    const HEADING: &str = "## Annotations of the APISIX Ingress controller";
    let (nginx, apisix) = PAGE.split_once(HEADING).unwrap();
    for (dialect, section) in [(AnnotationDialect::IngressNginx, nginx), (AnnotationDialect::Apisix, apisix)]
    {
        let expected = page_rows(dialect);
        let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
        assert_eq!(rows, expected, "the rows have to be\n{}", expected.join("\n"));
    }
}

fn page_rows(dialect: AnnotationDialect) -> Vec<String> {
    let mut expected = Vec::new();
    for concern in concerns(dialect) {
        for Annotation { name, purpose, support, has_lines: _ } in concern.annotations {
            let purpose = match purpose {
                Purpose::Protects => "protects",
                Purpose::Tunes => "tunes",
            };
            let support = match support {
                Support::Exact => "yes".to_owned(),
                Support::Limited(difference) => format!("limited: {difference}"),
                Support::Impossible { unless, lacks } => {
                    let (word, values) = match *unless {
                        Unless::Values(values) => ("except", values),
                        Unless::AllBut(values) => ("for", values),
                        Unless::Is(true) => ("except", &["true"][..]),
                        Unless::Is(false) => ("except", &["false"][..]),
                    };
                    let values = values.iter().filter(|value| !value.is_empty());
                    let values: Vec<String> = values.map(|value| format!("`{value}`")).collect();
                    let unless = if values.is_empty() {
                        String::new()
                    } else {
                        format!(" {word} {}", values.join(", "))
                    };
                    format!("no{unless}: {lacks}")
                }
                Support::NoEffect => "nothing to do".to_owned(),
            };
            expected.push(format!("| `{name}` | {purpose} | {support} |"));
        }
    }
    expected.sort();
    expected
}
