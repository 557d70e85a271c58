//! The sources of values, their precedence, and the messages on invalid values.
//!
//! Variables belong to the whole process: `tests/cli` tests them.

use std::fmt::Write as _;
use std::path::Path;

use pingsix_sink::Target;

use super::*;

fn read(arguments: &[&str]) -> Result<Configuration, Vec<String>> {
    let arguments = ["pingsix-gateway-controller"].iter().chain(arguments).map(OsString::from);
    match Settings::read(arguments) {
        Ok(settings) => Ok(settings.configuration),
        Err(SettingsError::Keys(errors)) => Err(errors.iter().map(ToString::to_string).collect()),
        Err(SettingsError::Usage(error)) => panic!("{error}"),
    }
}

/// With a file of this content; `FILE` stands for its name in errors.
fn read_file(content: &str, arguments: &[&str]) -> Result<Configuration, Vec<String>> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.yaml");
    std::fs::write(&path, content).unwrap();
    let path = path.to_str().unwrap();
    let config = format!("--config={path}");
    let arguments: Vec<&str> = arguments.iter().copied().chain([config.as_str()]).collect();
    read(&arguments).map_err(|errors| errors.into_iter().map(|error| error.replace(path, "FILE")).collect())
}

fn keys() -> Vec<Arg> {
    command().get_arguments().filter(|arg| is_key(arg) && arg.get_id() != "config").cloned().collect()
}

#[test]
fn the_defaults_can_be_used() {
    let configuration = read(&[]).unwrap();
    // The program opens the sinks that parameters name; a library may not.
    let translation = pingsix_translate::Options { attached_sinks: true, ..Default::default() };
    assert_eq!(configuration.translation(), translation);
    assert_eq!(configuration.pace(), pingsix_gateway_api::reconcile::Pace::default());
    assert!(configuration.status_pages().is_empty() && configuration.feed.tls.server().is_none());
    command().debug_assert();
}

#[test]
fn flag_and_variable_follow_from_the_path_of_a_key() {
    for arg in keys() {
        let id = arg.get_id().as_str();
        assert_eq!(arg.get_long().unwrap(), id.replace('.', "-"));
        let variable = arg.get_env().unwrap().to_str().unwrap();
        assert_eq!(variable, format!("PINGSIX_GATEWAY_{}", id.replace(['.', '-'], "_").to_uppercase()));
        // The variables that Kubernetes sets for Services whose names begin with pingsix-gateway.
        let of_a_service = variable.contains("_PORT") || variable.contains("_SERVICE_HOST");
        assert!(!of_a_service, "a Service could set {variable}");
        assert!(arg.get_help().is_some(), "{id} has no help");
    }
}

/// Another value than the default, for each key that any program has.
const EVERY_KEY: &str = "\
controller-name: example.com/gateways
layout: perPort
root: /other
responder: 127.0.0.1:8089
stream: true
route-names: true
budget: {bytes: 2048, entries: 7, namespace-share: 25}
backends: {refuse: [192.0.2.0/24, 'fd00:1::/64'], loopback: true}
watch: {namespaces: [shop, web], selector: team=shop, secrets: all}
publish: {address: [192.0.2.1, shop.example.com]}
sink: ['etcd://127.0.0.1:1,127.0.0.1:2', 'infra/web:80=embedded:']
status: {url: ['infra/web:80=http://127.0.0.1:7085'], api-key-file: /key}
feed:
  address: 0.0.0.0:2380
  allow-plaintext: true
  authority: {service: feed, lifetime: 1000h, certificate-lifetime: 24h, overlap: 1h}
  tls: {cert: /tls.crt, key: /tls.key, client-ca: /ca.crt}
  state-file: /state
  clients-file: /clients
  connection-limit: 10
  stream-limit: 5
data-plane: {image: 'pingsix:2', sidecar-image: 'sidecar:2'}
leader: {elect: false, namespace: infra, lease: gateways, duration: 30s, renew-deadline: 20s, retry: 3s}
pace: {rest-factor: 5, longest-rest: 2s, first-retry: 200ms, longest-retry: 1m}
kube: {config: /kubeconfig, context: test}
health: {address: '127.0.0.1:8082', stuck-after: 2m}
debug: {address: off}
log: {format: json, filter: 'info,pingsix_sink=debug'}
shutdown-grace: 20s
";

/// Another value than the default, for each key that this program has.
fn every_key() -> String {
    let traces = if cfg!(feature = "otel") { "otlp: {endpoint: 'http://127.0.0.1:4317/'}\n" } else { "" };
    format!("{EVERY_KEY}{traces}")
}

#[test]
fn the_printed_configuration_is_the_one_in_force() {
    let configuration = read_file(&every_key(), &[]).unwrap();
    let printed = serde_saphyr::to_string(&configuration).unwrap();
    assert_eq!(read_file(&printed, &[]).unwrap(), configuration, "{printed}");
    let given = file::parse(&printed).unwrap();
    let default = file::parse(&serde_saphyr::to_string(&read(&[]).unwrap()).unwrap()).unwrap();
    for arg in keys() {
        let id = arg.get_id().as_str();
        // Each excludes another, or needs one that does.
        if ["publish.service", "feed.endpoint"].contains(&id)
            || ["secret", "names", "clients"].iter().any(|key| id == format!("feed.authority.{key}"))
        {
            continue;
        }
        if id == "otlp.endpoint" && !cfg!(feature = "otel") {
            continue;
        }
        assert!(given.contains_key(id), "{id} is not printed");
        assert_ne!(given.get(id), default.get(id), "{id} has its default here, which shows nothing");
    }
}

#[test]
fn every_key_can_be_a_flag() {
    let mut flags: Vec<String> = Vec::new();
    for (key, value) in file::parse(&every_key()).unwrap() {
        let flag = key.replace('.', "-");
        match value {
            file::Value::One(text) => flags.push(format!("--{flag}={text}")),
            file::Value::List(texts) => flags.extend(texts.iter().map(|text| format!("--{flag}={text}"))),
        }
    }
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    assert_eq!(read(&flags), read_file(&every_key(), &[]));
}

#[test]
fn a_flag_counts_more_than_the_file() {
    let file = "root: /file\nbudget: {bytes: 2048}\nwatch: {namespaces: [shop, web]}\nstream: true\n";
    let configuration =
        read_file(file, &["--root", "/flag", "--watch-namespaces", "a,b", "--stream=false", "--route-names"]);
    let configuration = configuration.unwrap();
    assert_eq!(configuration.root, "/flag");
    assert_eq!(configuration.budget.bytes, 2048);
    assert_eq!(configuration.watch.namespaces, ["a", "b"], "lists are replaced, not joined");
    assert!(!configuration.stream && configuration.route_names);
}

#[test]
fn values_become_options() {
    let configuration =
        read_file(&every_key(), &["--status-url=IngressClass/public=http://[::1]:1"]).unwrap();
    let options = configuration.translation();
    assert_eq!(options.layout, pingsix_translate::Layout::PerPort);
    assert_eq!(options.responder.unwrap().to_string(), "127.0.0.1:8089");
    assert_eq!((options.budget.bytes, options.budget.matcher_entries), (2048, 7));
    assert_eq!(options.namespace_share, 25);
    let refused: Vec<String> = options.backend_addresses.refused.iter().map(ToString::to_string).collect();
    assert_eq!(
        (refused.join(" ").as_str(), options.backend_addresses.loopback),
        ("192.0.2.0/24 fd00:1::/64", true)
    );
    let pages: Vec<_> = configuration
        .status_pages()
        .into_iter()
        .map(|(plane, urls)| format!("{plane} {}", urls.first().unwrap()))
        .collect();
    assert_eq!(pages, ["IngressClass/public http://[::1]:1/status/config"], "the flag replaces the list");
    assert!(configuration.feed.tls.server().is_some());
    assert_eq!(configuration.pace().first_retry, std::time::Duration::from_millis(200));
}

#[test]
fn every_value_that_cannot_be_used_is_named_as_it_was_given() {
    let cases: &[(&str, &str)] = &[
        ("--controller-name=gateways", "is not a domain, a slash and a path"),
        ("--controller-name=Example.com/a", "is not a domain, a slash and a path"),
        ("--layout=one", "expected shared or perPort"),
        ("--root=pingsix", "scope \"pingsix\" is not valid"),
        ("--responder=localhost:80", "expected an IP address with a port, or off"),
        ("--responder=0.0.0.0:80", "is no address that PingSIX can connect to"),
        ("--stream=perhaps", "expected true or false"),
        ("--route-names=1", "expected true or false"),
        ("--budget-bytes=4MiB", "expected a whole number"),
        ("--budget-bytes=4194305", "greater than 4194304"),
        ("--budget-entries=0", "lower than 1"),
        ("--budget-namespace-share=0", "lower than 1"),
        ("--budget-namespace-share=101", "greater than 100"),
        ("--backends-refuse=192.0.2.1", "is no network"),
        ("--backends-loopback=1", "expected true or false"),
        ("--watch-namespaces=Shop", "is not a name as Kubernetes has them"),
        ("--watch-selector=", "is not a label selector"),
        ("--watch-secrets=some", "expected by-name or all"),
        ("--publish-address=http://a", "is neither an IP address nor a host name"),
        ("--publish-address=::", "is no address that clients can connect to"),
        ("--publish-service=pingsix", "expected NAMESPACE/NAME"),
        ("--status-url=http://127.0.0.1:7085", "expected DATAPLANE=URL"),
        ("--status-api-key-file=/key", "needs status.url as well"),
        ("--feed-endpoint=feed:2379", "expected http://HOST:PORT or https://HOST:PORT"),
        ("--data-plane-image=a b", "is not the name of an image"),
        ("--data-plane-sidecar-image=a b", "is not the name of an image"),
        ("--feed-address=:2379", "expected an IP address with a port"),
        ("--feed-address=192.0.2.1:2379", "can be reached from other machines"),
        ("--feed-allow-plaintext=x", "expected true or false"),
        ("--feed-authority-secret=Feed", "is not a name as Kubernetes has them"),
        ("--feed-authority-service=a.b", "is not a name as Kubernetes has them"),
        ("--feed-authority-names=feed.example.com", "needs feed.authority.secret as well"),
        ("--feed-authority-clients=infra/web=edge", "needs feed.authority.secret as well"),
        ("--feed-authority-clients=web=edge", "expected DATAPLANE=SECRET"),
        ("--feed-authority-lifetime=1h", "is shorter than six times feed.authority.certificate-lifetime"),
        ("--feed-authority-lifetime=900000h", "is longer than 100 years"),
        ("--feed-authority-certificate-lifetime=0s", "is not between 1 s"),
        ("--feed-authority-overlap=200h", "is not between 0 s and 604800 s"),
        ("--feed-tls-cert=/tls.crt", "needs feed.tls.key as well"),
        ("--feed-tls-key=/tls.key", "needs feed.tls.cert as well"),
        ("--feed-tls-client-ca=/ca.crt", "needs feed.tls.cert as well"),
        ("--feed-state-file=", "is no value"),
        ("--sink=127.0.0.1:2379", "the URL cannot be used: a target begins with one of embedded:, etcd://"),
        ("--sink=stdout:", "begins with one of embedded:"),
        ("--sink=etcds://127.0.0.1:2379", "ca"),
        ("--feed-clients-file=", "is no value"),
        ("--feed-clients-file=/clients", "needs feed.tls.client-ca or feed.authority.secret as well"),
        ("--feed-connection-limit=0", "lower than 1"),
        ("--feed-stream-limit=-1", "expected a whole number"),
        ("--leader-elect=yes", "expected true or false"),
        ("--leader-namespace=infra/web", "is not a name as Kubernetes has them"),
        ("--leader-lease=Lease", "is not a name as Kubernetes has them"),
        ("--leader-duration=15500ms", "is not a number of whole seconds"),
        ("--leader-renew-deadline=15s", "is not shorter than leader.duration, which is 12s"),
        ("--leader-retry=9s", "shorter than leader.renew-deadline, which is 8s"),
        ("--pace-rest-factor=-1", "expected a whole number"),
        ("--pace-longest-rest=1h", "is not between 0 s and 600 s"),
        ("--pace-first-retry=0s", "is no time at all"),
        ("--pace-longest-retry=10ms", "is shorter than pace.first-retry, which is 100ms"),
        ("--kube-config=", "is no value"),
        ("--kube-context=", "is empty"),
        ("--health-address=8080", "expected an IP address with a port"),
        ("--health-address=127.0.0.1:2379", "is taken by feed.address, which is 127.0.0.1:2379"),
        ("--health-stuck-after=1s", "is not between 5 s and 3600 s"),
        ("--debug-address=on", "expected an IP address with a port, or off"),
        ("--debug-address=127.0.0.1:8080", "is taken by health.address, which is 0.0.0.0:8080"),
        ("--log-format=xml", "expected text or json"),
        ("--log-filter=info,a=loud", "is not a level"),
        ("--otlp-endpoint=collector:4317", "expected http://HOST:PORT or https://HOST:PORT"),
        ("--shutdown-grace=10", "expected a time with units"),
    ];
    for (flag, message) in cases {
        let errors = read(&[flag]).unwrap_err();
        let (name, value) = flag.split_once('=').unwrap();
        let [error] = errors.as_slice() else { panic!("{flag}: {errors:?}") };
        assert!(error.starts_with(&format!("{name}: \"{value}\"")), "{error}");
        assert!(error.contains(message), "{flag}: {error}");
    }
    for arg in keys() {
        let flag = format!("--{}=", arg.get_long().unwrap());
        assert!(cases.iter().any(|(case, _)| case.starts_with(&flag)), "{flag} is never wrong here");
    }
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let file = "feed:\n  address: 0.0.0.0:2379\n  tsl: {cert: a}\nbudgets: 3\nleader: {retry: often}\nroot: [/a]\n\
                watch: {namespaces: [shop, WEB]}\n";
    assert_eq!(
        read_file(file, &["--layout=one", "--debug-address=0.0.0.0:2379"]).unwrap_err(),
        [
            "--debug-address: \"0.0.0.0:2379\" is taken by feed.address, which is 0.0.0.0:2379",
            "--layout: \"one\": expected shared or perPort",
            "budgets in FILE: there is no such key",
            "feed.address in FILE: \"0.0.0.0:2379\" can be reached from other machines, and private keys would pass in \
             plaintext: use a loopback address, feed.authority.secret, feed.tls.cert and feed.tls.key, or feed.allow-plaintext",
            "feed.tsl.cert in FILE: there is no such key; is feed.tls.cert meant?",
            "leader.retry in FILE: \"often\": expected a time with units, such as 500ms, 15s or 1m 30s",
            "root in FILE: is a list, and should be one value",
            "watch.namespaces in FILE: \"WEB\" is not a name as Kubernetes has them: lower case letters, digits and \
             dashes",
        ]
    );
}

#[test]
fn a_variable_that_is_no_option_is_named() {
    let names = [
        "PINGSIX_GATEWAY_WATCH_SECRET",
        "PINGSIX_GATEWAY_NOTHING",
        "PINGSIX_GATEWAY_ROOT",
        "PINGSIX_GATEWAY_FEED_SERVICE_HOST",
        "PINGSIX_GATEWAY_FEED_SERVICE_PORT_FEED",
        "PINGSIX_GATEWAY_FEED_PORT_2379_TCP_ADDR",
        "PINGSIX_GATEWAYS",
    ];
    let errors = unknown_variables(names.into_iter().map(str::to_owned), &command());
    assert_eq!(
        errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "PINGSIX_GATEWAY_WATCH_SECRET: there is no such option; is PINGSIX_GATEWAY_WATCH_SECRETS meant?",
            "PINGSIX_GATEWAY_NOTHING: there is no such option",
        ]
    );
}

#[test]
fn a_default_that_does_not_go_with_what_is_given_is_named_by_its_key() {
    assert_eq!(
        read(&["--leader-duration=5s"]).unwrap_err(),
        ["leader.renew-deadline: is not shorter than leader.duration, which is 5s"]
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let errors = read(&["--config=/nowhere/config.yaml"]).unwrap_err();
    assert!(errors[0].starts_with("/nowhere/config.yaml: cannot be read: "), "{errors:?}");
    let errors = read_file("config: other.yaml\n", &[]).unwrap_err();
    assert_eq!(errors, ["config in FILE: there is no such key"], "files do not name files");
}

#[test]
fn the_feed_may_leave_the_machine_with_tls_or_on_request() {
    for arguments in [
        &["--feed-address=0.0.0.0:2379", "--feed-allow-plaintext"][..],
        &["--feed-address=0.0.0.0:2379", "--feed-tls-cert=a", "--feed-tls-key=b"],
        &["--feed-address=0.0.0.0:2379", "--feed-authority-secret=feed-authority"],
        &["--feed-address=[::ffff:127.0.0.1]:2379"],
    ] {
        assert!(read(arguments).is_ok(), "{arguments:?}");
    }
    let errors = read(&["--publish-address=192.0.2.1", "--publish-service=a/b"]).unwrap_err();
    assert_eq!(errors, ["--publish-service: \"a/b\" excludes publish.address, which is given as well"]);
}

#[test]
fn the_feed_proves_itself_with_files_or_with_the_authority() {
    let errors = read_file(
        "feed: {tls: {cert: /tls.crt, client-ca: /ca.crt}}",
        &["--feed-authority-secret=feed-authority", "--feed-tls-key=/tls.key"],
    );
    assert_eq!(
        errors.unwrap_err(),
        [
            "--feed-tls-key: \"/tls.key\" excludes feed.authority.secret, which is given as well",
            "feed.tls.cert in FILE: \"/tls.crt\" excludes feed.authority.secret, which is given as well",
            "feed.tls.client-ca in FILE: \"/ca.crt\" excludes feed.authority.secret, which is given as well",
        ]
    );
}

#[test]
fn names_and_clients_of_the_authority_are_those_of_hosts_and_of_secrets() {
    let read = |flag: &str| read(&["--feed-authority-secret=authority", flag]);
    let authority = |flag: &str| read(flag).unwrap().feed.authority;
    assert_eq!(authority("--feed-authority-names=192.0.2.1,feed.example.com").names.len(), 2);
    let clients = "--feed-authority-clients=infra/web=edge,stream/infra/web=infra/authority";
    assert_eq!(authority(clients).clients.len(), 2);
    for (flag, message) in [
        ("--feed-authority-names=a_b", "is neither an IP address nor a host name"),
        ("--feed-authority-clients=infra/web=Infra/edge", "is not a name as Kubernetes has them"),
        (
            "--feed-authority-clients=infra/web=authority",
            "names the Secret of the authority, which is feed.authority.secret",
        ),
    ] {
        let errors = read(flag).unwrap_err();
        let (name, value) = flag.split_once('=').unwrap();
        let expected = format!("{name}: \"{value}\" {message}");
        assert!(matches!(&errors[..], [error] if error.starts_with(&expected)), "{flag}: {errors:?}");
    }
}

#[test]
fn an_endpoint_leads_to_a_feed_that_data_planes_can_use() {
    const HTTPS: &str = "--feed-endpoint=https://a:1,https://b:1";
    const HTTP: &str = "--feed-endpoint=http://a:1";
    const RESPONDER: &str = "--responder=127.0.0.1:8089";
    const AUTHORITY: &str = "--feed-authority-secret=feed-authority";
    for arguments in [
        &[HTTPS, RESPONDER, AUTHORITY][..],
        &[HTTP, "--responder=[::1]:8089"],
        &[HTTP, RESPONDER, "--sink=file:/a/", "--sink=infra/web=embedded:"],
    ] {
        let configuration = read(arguments).unwrap();
        let printed = serde_saphyr::to_string(&configuration).unwrap();
        assert_eq!(read_file(&printed, &[]).unwrap(), configuration, "{printed}");
    }
    let no_responder = "--feed-endpoint: \"http://a:1\" needs a responder in each Pod, so an address of loopback: responder is";
    let no_authority = "needs feed.authority.secret as well, for the certificates of data planes".to_owned();
    for (arguments, expected) in [
        (&[HTTP][..], vec![format!("{no_responder} off")]),
        (&[HTTP, "--responder=192.0.2.1:80"], vec![format!("{no_responder} 192.0.2.1:80")]),
        (
            &[HTTPS, RESPONDER],
            ["https://a:1", "https://b:1"]
                .map(|url| format!("--feed-endpoint: \"{url}\" {no_authority}"))
                .to_vec(),
        ),
        (
            &[HTTPS, RESPONDER, "--feed-tls-cert=/tls.crt", "--feed-tls-key=/tls.key"],
            ["https://a:1", "https://b:1"]
                .map(|url| format!("--feed-endpoint: \"{url}\" {no_authority}"))
                .to_vec(),
        ),
        (
            &[HTTP, RESPONDER, AUTHORITY],
            vec![
                "--feed-endpoint: \"http://a:1\" excludes feed.authority.secret, with which the feed has TLS"
                    .to_owned(),
            ],
        ),
        (
            &[HTTP, RESPONDER, "--feed-tls-cert=/tls.crt", "--feed-tls-key=/tls.key"],
            vec![
                "--feed-endpoint: \"http://a:1\" excludes feed.tls.cert, with which the feed has TLS".to_owned(),
            ],
        ),
        (
            &["--feed-endpoint=https://a:1,http://b:1", RESPONDER, AUTHORITY],
            vec![
                "--feed-endpoint: \"http://b:1\" differs in its scheme from the first, and the feed has one"
                    .to_owned(),
            ],
        ),
        (
            &[HTTP, RESPONDER, "--sink=file:/a/"],
            vec![
                "--feed-endpoint: \"http://a:1\" leads to a feed that nothing is published to: no sink is embedded:"
                    .to_owned(),
            ],
        ),
    ] {
        assert_eq!(read(arguments).unwrap_err(), expected, "{arguments:?}");
    }
}

#[test]
fn sinks_are_chosen_by_data_plane() {
    let chosen = |file: &str| {
        let sinks = read_file(file, &[]).unwrap().sinks();
        let shown =
            |targets: &[Target]| targets.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let chosen = sinks.chosen.iter().map(|(plane, targets)| format!("{plane}: {}", shown(targets)));
        (shown(&sinks.others), chosen.collect::<Vec<_>>())
    };
    assert_eq!(chosen(""), ("embedded:".to_owned(), Vec::new()));
    assert_eq!(
        chosen("sink: {infra/web: ['etcd://127.0.0.1:1', 'file:/a/'], default: 'file:/b/'}"),
        ("file:/b/".to_owned(), vec!["infra/web: etcd://127.0.0.1:1 file:/a/".to_owned()])
    );
    assert_eq!(
        chosen("sink: ['infra/web=file:/a']"),
        ("embedded:".to_owned(), vec!["infra/web: file:/a".to_owned()]),
        "the others are served as ever"
    );
}

#[test]
fn sinks_that_clash_are_named() {
    let file = "sink: ['file:/a', 'infra/web=file:/a', 'infra/blog=file:/b/', 'infra/blog=file:/b/', 'x/y=file:/b/']\n\
                status: {url: ['infra/blog=http://127.0.0.1:1']}\n";
    assert_eq!(
        read_file(file, &["--layout=one"]).unwrap_err(),
        [
            "--layout: \"one\": expected shared or perPort",
            "sink in FILE: \"infra/blog=file:/b/\" is there twice",
            "sink in FILE: \"infra/web=file:/a\" is for one data plane, and another has it as well",
            "status.url in FILE: \"infra/blog=http://127.0.0.1:1\" confirms nothing: the data plane is published to a file \
             (sink), which PingSIX reads when it starts",
        ]
    );
}

#[test]
fn a_password_in_a_value_is_not_repeated() {
    for sink in [
        "etcd://me:canary@127.0.0.1:1",
        "etcd://127.0.0.1:1?password=canary",
        "infra/web=admin+http://a:1?key=canary",
    ] {
        let errors = read(&["--sink", sink]).unwrap_err();
        assert!(errors[0].starts_with("--sink: ") && !errors[0].contains("canary"), "{errors:?}");
    }
    let errors = read(&["--status-url=infra/web=http://me:canary@127.0.0.1:7085"]).unwrap_err();
    assert!(!errors[0].contains("canary"), "{errors:?}");
}

#[test]
fn a_collector_needs_a_program_with_traces() {
    let collector = Some("http://127.0.0.1:4317".parse().unwrap());
    let error = crate::rules::built_with("otel", false)(&collector, &()).unwrap_err();
    assert_eq!(error.to_string(), "needs a program that was built with the cargo feature otel");
    assert!(crate::rules::built_with("otel", true)(&collector, &()).is_ok());
    assert!(crate::rules::built_with("otel", false)(&None, &()).is_ok());
}

#[cfg(not(feature = "otel"))]
#[test]
fn traces_are_for_a_program_that_has_them() {
    assert_eq!(
        read(&["--otlp-endpoint=http://127.0.0.1:4317"]).unwrap_err(),
        [
            "--otlp-endpoint: \"http://127.0.0.1:4317\" needs a program that was built with the cargo feature otel"
        ]
    );
}

#[test]
fn the_documentation_has_every_key() {
    let mut expected = String::new();
    for arg in keys() {
        let default = arg
            .get_default_values()
            .first()
            .map_or(String::new(), |value| format!("`{}`", value.to_string_lossy()));
        let help = arg.get_long_help().or_else(|| arg.get_help()).unwrap().to_string();
        let meaning = help.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
        let meaning = meaning.trim_end_matches('.');
        writeln!(expected, "| `{}` | {default} | {meaning} |", arg.get_id()).unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/operations.md");
    let document = std::fs::read_to_string(path).unwrap();
    assert!(document.contains(&expected), "docs/reference/operations.md should have these rows:\n{expected}");
}
