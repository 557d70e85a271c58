//! Every kind of policy against every kind of route.

use super::*;

/// One combination of policy, route and Service.
#[derive(Debug)]
struct Combination<'a> {
    validation: &'a Value,
    targets: &'a Value,
    hostnames: &'a [&'a str],
    listener: Option<&'a str>,
    rewrite: Option<&'a str>,
    protocol: Option<&'a str>,
}

impl Combination<'_> {
    fn objects(&self, certificate: &str) -> Objects {
        let mut objects = gateway(&json!([{
            "name": "http", "port": 80, "protocol": "HTTP", "hostname": self.listener,
        }]));
        add_config_map(&mut objects, "good", &json!({"ca.crt": certificate}));
        add_named_port(&mut objects, self.protocol);
        let rewrite =
            self.rewrite.map(|host| json!({"type": "URLRewrite", "urlRewrite": {"hostname": host}}));
        let rule = json!({
            "filters": rewrite.into_iter().collect::<Value>(), "backendRefs": [{"name": "web", "port": 80}],
        });
        let spec = json!({"parentRefs": [{"name": "public"}], "hostnames": self.hostnames, "rules": [rule]});
        add_route(&mut objects, "web", &spec);
        add_policy(&mut objects, "tls", 0, self.targets, self.validation);
        objects
    }

    /// That connections to the port are verified as the policy says, if there are any. Returns whether there are.
    fn check(&self, certificate: &str) -> bool {
        let translation = translated(&self.objects(certificate));
        let upstreams = upstreams(&translation);
        for upstream in &upstreams {
            assert!(matches!(upstream.scheme, Scheme::Https | Scheme::Grpcs), "{self:?}");
            assert_eq!(upstream.pass_host, PassHost::Rewrite, "{self:?}");
            let host = upstream.upstream_host.as_deref().unwrap();
            assert_eq!(self.validation, &named(host), "{self:?}");
            match self.rewrite {
                Some(rewrite) => assert_eq!(rewrite, host, "{self:?}"),
                // Then the client's Host cannot have been another one.
                None => {
                    for (_, route) in translation.data_planes.values().flat_map(|plane| plane.config.routes())
                    {
                        let served: Vec<&String> = route.host.iter().chain(&route.hosts).collect();
                        assert_eq!(served, [host], "{self:?}");
                    }
                }
            }
        }
        // The status of a policy that counts says whether PingSIX honours it.
        for verdict in translation.verdicts.policies.values() {
            let accepted = verdict.conditions.is_true(ConditionType::Accepted);
            assert_eq!(accepted, !upstreams.is_empty(), "{self:?}");
        }
        !upstreams.is_empty()
    }
}

/// Every kind of policy against every kind of route: a port that a policy targets is spoken to over TLS with the name
/// the policy has verified, or not at all.
#[test]
fn no_combination_leaves_a_targeted_port_in_plaintext_or_unverified() {
    let certificate = certificate();
    let names = json!([{"type": "Hostname", "hostname": HOST}]);
    let validations = [
        system(),
        named("other.test"),
        named("*.test"),
        named("10.0.0.1"),
        named(""),
        custom("good"),
        custom("absent"),
        json!({"hostname": HOST}),
        json!({"hostname": HOST, "wellKnownCACertificates": "Mozilla"}),
        json!({"hostname": HOST, "wellKnownCACertificates": "System", "subjectAltNames": names}),
    ];
    let hostnames: [&[&str]; 6] = [&[], &[HOST], &["other.test"], &["*.test"], &[HOST, "other.test"], &["!"]];
    let mut honoured = 0;
    for validation in &validations {
        for targets in [web(), web_port("main")] {
            for hostnames in hostnames {
                for listener in [None, Some(HOST), Some("*.test"), Some("other.test")] {
                    for rewrite in [None, Some(HOST), Some("other.test")] {
                        for protocol in [None, Some("kubernetes.io/wss"), Some("kubernetes.io/h2c")] {
                            let combination = Combination {
                                validation,
                                targets: &targets,
                                hostnames,
                                listener,
                                rewrite,
                                protocol,
                            };
                            honoured += usize::from(combination.check(&certificate));
                        }
                    }
                }
            }
        }
    }
    assert!(honoured > 100, "{honoured}");
}
