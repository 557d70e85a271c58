//! Sample requests: their expectations, and the result of the router model.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// An entry of `requests.yaml`. Expectations that are left out are not compared.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sample {
    /// Method and URL.
    request: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    http2: bool,
    /// The server name of the TLS handshake, if it is another than the host.
    server_name: Option<String>,
    /// The Gateway that is asked, when there are several.
    gateway: Option<String>,
    /// The IngressClass that is asked, likewise.
    ingress_class: Option<String>,
    /// The match that decides.
    rule: Option<String>,
    /// Services with their weights; a status with the weight of its share.
    backends: Option<BTreeMap<String, u64>>,
    /// The addresses of the backends.
    endpoints: Option<Vec<String>>,
    /// An answer without a backend. Beside backends, the status of their responses, which the model does not cover.
    status: Option<u64>,
    /// The reason of a 404.
    cause: Option<String>,
    /// The target of a redirect.
    location: Option<String>,
    /// Whether a CORS preflight is allowed.
    preflight: Option<bool>,
    /// The request has no listener or no data plane. Its other expectations are for a PingSIX with the port open.
    #[serde(default)]
    closed: bool,
    /// The request at the backend: the target, the host, and headers; an empty text is none.
    #[serde(default)]
    sees: BTreeMap<String, String>,
    /// Response headers the client gets. The model does not cover them: the contract test asks the real PingSIX.
    #[serde(default, rename = "gets")]
    _gets: BTreeMap<String, String>,
    /// The status with which a policy refuses the request on its way to the backends, likewise.
    #[serde(default, rename = "refused")]
    _refused: Option<u64>,
    /// The number of requests that a limit admits before it refuses one, likewise.
    #[serde(default, rename = "after")]
    _after: usize,
    /// The Secret whose certificate is shown, likewise.
    #[serde(default, rename = "certificate")]
    _certificate: Option<String>,
}

/// The problems of the answers to sample requests; `explain` takes the arguments behind the manifests, and returns the
/// output of the program.
pub(crate) fn check(text: &str, explain: &dyn Fn(&[String]) -> String) -> Vec<String> {
    let samples: Vec<Sample> = match serde_saphyr::from_str(text) {
        Ok(samples) => samples,
        Err(error) => return vec![format!("requests.yaml: {error}")],
    };
    samples.iter().flat_map(|sample| sample.problems(explain)).collect()
}

/// Whether PingSIX adds a header by itself.
fn is_of_pingsix(name: &str) -> bool {
    name.starts_with("x-forwarded-") || name == "x-request-id"
}

impl Sample {
    fn problems(&self, explain: &dyn Fn(&[String]) -> String) -> Vec<String> {
        let (method, url) = self.request.split_once(' ').unwrap();
        let mut arguments = vec![method.to_owned(), url.to_owned(), "-o".to_owned(), "json".to_owned()];
        arguments.extend(
            self.headers.iter().flat_map(|(name, value)| ["-H".to_owned(), format!("{name}: {value}")]),
        );
        arguments.extend(self.http2.then(|| "--http2".to_owned()));
        let name = self.server_name.iter();
        arguments.extend(name.flat_map(|name| ["--server-name".to_owned(), name.clone()]));
        let class = self.ingress_class.iter();
        arguments.extend(class.flat_map(|name| ["--ingress-class".to_owned(), name.clone()]));
        arguments.extend(self.gateway.iter().flat_map(|name| ["--gateway".to_owned(), name.clone()]));
        let explanations: Value = serde_json::from_str(&explain(&arguments)).unwrap();
        let found = explanations.as_array().unwrap();
        if self.closed {
            // A data plane may be there and have no listener that the request could arrive at.
            let open = found.iter().find(|explanation| explanation["answer"]["kind"] != "closed");
            if let Some(explanation) = open {
                return vec![format!("{}: it is answered: {explanation}", self.request)];
            }
            if self.status.is_none() && self.backends.is_none() {
                let open = found.iter().find(|explanation| !explanation["answer"]["ifOpen"].is_null());
                let describe = |explanation| format!("{}: it may be answered: {explanation}", self.request);
                return open.map(describe).into_iter().collect();
            }
        }
        let [explanation] = found.as_slice() else {
            return vec![format!("{}: {} data planes may be meant", self.request, found.len())];
        };
        let problems = self.compare(explanation);
        if problems.is_empty() {
            return problems;
        }
        let Self { request, headers, .. } = self;
        let (answer, steps) = (&explanation["answer"], &explanation["steps"]);
        vec![format!("{request} {headers:?}: {}\n  answer {answer}\n  steps {steps}", problems.join("; "))]
    }

    /// A part of the request at the backend, as the model sends it.
    fn seen(&self, name: &str, sent: &Value) -> String {
        if matches!(name, "target" | "host") {
            return sent[name].as_str().unwrap_or_default().to_owned();
        }
        let changes = sent["headers"].as_array().into_iter().flatten();
        let found = changes.clone().find(|change| change["name"] == name);
        match found.map(|change| change["values"].as_array().cloned().unwrap_or_default()) {
            // The value of a secret is not shown.
            Some(values) if values.iter().any(|value| value == "<redacted>") => self.sees[name].clone(),
            Some(values) => values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
            None => {
                let own = self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
                own.map(|(_, value)| value.clone()).unwrap_or_default()
            }
        }
    }

    fn compare(&self, explanation: &Value) -> Vec<String> {
        let answer = &explanation["answer"];
        let answer = if self.closed { &answer["ifOpen"] } else { answer };
        let mut problems = Vec::new();
        let mut expect = |what: &str, wanted: Value, found: Value| {
            if wanted != found {
                problems.push(format!("{what} is {found}, not {wanted}"));
            }
        };
        let is_not_found = answer["kind"] == "notFound";
        let status = if is_not_found { 404.into() } else { answer["status"].clone() };
        match (&self.status, &self.backends) {
            (Some(wanted), None) => expect("the status", (*wanted).into(), status),
            (_, Some(wanted)) => {
                let backends = answer["backends"].as_array().cloned().unwrap_or_default();
                let shares = backends.iter().map(|backend| {
                    let name = backend["service"].as_str().map(str::to_owned);
                    (name.unwrap_or_else(|| backend["status"].to_string()), backend["weight"].clone())
                });
                expect("the share of backends", serde_json::json!(wanted), shares.collect());
            }
            _ if self.preflight.is_some() => {}
            _ => expect("the expectation", "either a status or backends".into(), Value::Null),
        }
        if let Some(wanted) = &self.rule {
            let steps = explanation["steps"].as_array().cloned().unwrap_or_default();
            let decisive = steps.iter().find(|step| step["result"] == "decides").map(|step| {
                let source = &step["source"];
                let text = |field: &str| source[field].as_str().unwrap_or_default();
                Value::from(format!("{} {}", text("object"), text("field")))
            });
            expect("the rule", wanted.as_str().into(), decisive.unwrap_or_default());
        }
        if let Some(wanted) = &self.endpoints {
            let backends = answer["backends"].as_array().cloned().unwrap_or_default();
            let addresses = backends.iter().filter_map(|backend| backend["endpoints"].as_object());
            let addresses: Vec<&String> = addresses.flat_map(|endpoints| endpoints.keys()).collect();
            expect("the list of endpoints", serde_json::json!(wanted), serde_json::json!(addresses));
        }
        let sends = answer["backends"].as_array().into_iter().flatten().map(|backend| &backend["sends"]);
        if let Some(sent) = sends.into_iter().find(|sent| !sent.is_null()) {
            for (name, wanted) in self.sees.iter().filter(|(name, _)| !is_of_pingsix(name)) {
                let found = self.seen(name, sent);
                expect(&format!("the {name} at the backend"), wanted.as_str().into(), found.into());
            }
        }
        if is_not_found || self.cause.is_some() {
            expect("the cause", serde_json::json!(self.cause), answer["cause"].clone());
        }
        if self.location.is_some() || answer["kind"] == "redirect" {
            expect("the location", serde_json::json!(self.location), answer["location"].clone());
        }
        if self.preflight.is_some() || answer["kind"] == "preflight" {
            expect("the preflight", serde_json::json!(self.preflight), answer["allowed"].clone());
        }
        problems
    }
}
