//! Plugins without a counterpart.

use super::Effects;
use crate::report::{Place, Reason, Report};

/// The loss without a plugin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loss {
    /// Requests that the plugin refuses would pass.
    Protection,
    /// Requests would get other answers.
    Answer,
    /// Something is missing that no request depends on.
    Comfort,
}

/// The plugins, their losses, and their purposes.
const REFUSED: &[(&str, Loss, &str)] = &[
    ("acl", Loss::Protection, "admits consumers by their labels"),
    ("ai-prompt-guard", Loss::Protection, "refuses requests by their prompts"),
    ("api-breaker", Loss::Comfort, "stops requests to failing backends"),
    ("authz-casbin", Loss::Protection, "authorizes requests"),
    ("authz-casdoor", Loss::Protection, "authorizes requests"),
    ("authz-keycloak", Loss::Protection, "authorizes requests"),
    ("body-transformer", Loss::Answer, "changes bodies"),
    ("cas-auth", Loss::Protection, "authenticates requests"),
    ("chaitin-waf", Loss::Protection, "inspects requests"),
    ("client-control", Loss::Protection, "limits the size of requests"),
    ("consumer-restriction", Loss::Protection, "admits some of the consumers"),
    ("datadog", Loss::Comfort, "sends metrics"),
    ("data-mask", Loss::Protection, "hides data in logs"),
    ("degraphql", Loss::Answer, "changes requests"),
    ("dubbo-proxy", Loss::Answer, "sends requests to Dubbo services"),
    ("echo", Loss::Answer, "replaces answers"),
    ("error-log-logger", Loss::Comfort, "sends logs"),
    ("ext-plugin-post-req", Loss::Protection, "runs a program on requests"),
    ("ext-plugin-post-resp", Loss::Answer, "runs a program on responses"),
    ("ext-plugin-pre-req", Loss::Protection, "runs a program on requests"),
    ("forward-auth", Loss::Protection, "asks another service about requests"),
    ("grpc-transcode", Loss::Answer, "translates requests to gRPC"),
    ("hmac-auth", Loss::Protection, "authenticates requests by signatures"),
    ("http-dubbo", Loss::Answer, "sends requests to Dubbo services"),
    ("http-logger", Loss::Comfort, "sends logs"),
    ("inspect", Loss::Comfort, "helps to debug APISIX"),
    ("jwe-decrypt", Loss::Protection, "authenticates requests by encrypted tokens"),
    ("kafka-logger", Loss::Comfort, "sends logs"),
    ("kafka-proxy", Loss::Answer, "sends requests to Kafka"),
    ("ldap-auth", Loss::Protection, "authenticates users by LDAP"),
    ("limit-conn", Loss::Protection, "limits concurrent requests"),
    ("limit-req", Loss::Protection, "limits the rate of requests by a leaky bucket"),
    ("log-rotate", Loss::Comfort, "rotates logs"),
    ("loki-logger", Loss::Comfort, "sends logs"),
    ("multi-auth", Loss::Protection, "authenticates requests in several ways"),
    ("node-status", Loss::Comfort, "reports the state of APISIX"),
    ("opa", Loss::Protection, "asks a policy engine about requests"),
    ("openid-connect", Loss::Protection, "authenticates users by OpenID Connect"),
    ("opentelemetry", Loss::Comfort, "sends traces"),
    ("proxy-control", Loss::Comfort, "chooses the buffering of requests"),
    ("proxy-mirror", Loss::Comfort, "sends copies of requests to another backend"),
    ("public-api", Loss::Answer, "serves interfaces of APISIX"),
    ("referer-restriction", Loss::Protection, "refuses requests by their Referer"),
    ("request-validation", Loss::Protection, "refuses requests by their content"),
    ("rocketmq-logger", Loss::Comfort, "sends logs"),
    ("saml-auth", Loss::Protection, "authenticates users by SAML"),
    ("server-info", Loss::Comfort, "reports the state of APISIX"),
    ("serverless-post-function", Loss::Protection, "runs code on requests"),
    ("serverless-pre-function", Loss::Protection, "runs code on requests"),
    ("skywalking", Loss::Comfort, "sends traces"),
    ("skywalking-logger", Loss::Comfort, "sends logs"),
    ("sls-logger", Loss::Comfort, "sends logs"),
    ("splunk-hec-logging", Loss::Comfort, "sends logs"),
    ("syslog", Loss::Comfort, "sends logs"),
    ("tcp-logger", Loss::Comfort, "sends logs"),
    ("traffic-label", Loss::Comfort, "marks requests"),
    ("traffic-split", Loss::Answer, "chooses among upstreams; give the rule several backends instead"),
    ("ua-restriction", Loss::Protection, "refuses requests by their User-Agent"),
    ("udp-logger", Loss::Comfort, "sends logs"),
    ("uri-blocker", Loss::Protection, "refuses requests by their path"),
    ("wolf-rbac", Loss::Protection, "authenticates users by wolf"),
    ("workflow", Loss::Protection, "chooses among answers and limits"),
    ("zipkin", Loss::Comfort, "sends traces"),
];

/// Reports a plugin that is not converted.
pub(super) fn refuse(name: &str, place: &Place, effects: &mut Effects, report: &mut Report) {
    let Some((name, loss, purpose)) = REFUSED.iter().find(|(known, ..)| *known == name) else {
        effects.protects = true;
        let message =
            "The plugin is unknown, and it may protect the rule. Remove the plugin if nothing depends on it.";
        return report.blocking(place, Reason::UnsupportedPlugin, message);
    };
    let advice = match loss {
        Loss::Protection | Loss::Answer => "Replace the plugin, or let the backend do this.",
        Loss::Comfort => "Requests are served without it.",
    };
    let message = format!("PingSIX has no {name}, which {purpose}. {advice}");
    match loss {
        Loss::Protection => {
            effects.protects = true;
            report.blocking(place, Reason::UnsupportedPlugin, message);
        }
        Loss::Answer => report.blocking(place, Reason::UnsupportedPlugin, message),
        Loss::Comfort => report.impossible(place, Reason::UnsupportedPlugin, message),
    }
}

#[cfg(test)]
mod tests {
    use super::REFUSED;

    #[test]
    fn plugins_are_in_alphabetical_order() {
        let names: Vec<&str> = REFUSED.iter().map(|(name, ..)| *name).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        // A dash comes before letters in names such as `datadog` and `data-mask`, which are sorted as words here.
        assert_eq!(sorted.len(), names.len());
    }
}
