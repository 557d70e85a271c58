//! Policies, and requests with the status that answers them. Tests with and without an API server share them.

use pingsix_translate::pingsix::Request;
use serde_json::{Value, json};

pub(crate) const HOST: &str = "shop.example";

/// The secret with which [`good_token`] is signed.
pub(crate) const SIGNING: &str = "a secret of thirty-two characters";

/// The API key of Secret `keys`.
pub(crate) const KEY: &str = "k1";

/// The number of requests that [`three_a_minute`] lets pass.
pub(crate) const LIMIT: &str = "3";

/// A request, and the status of its answer.
pub(crate) type Expectation = (Request, u16);

pub(crate) fn get(path: &str) -> Request {
    Request::get(HOST, path)
}

pub(crate) fn with_key(path: &str, key: &str) -> Request {
    get(path).header("apikey", key)
}

/// The request of a client that takes compressed answers.
pub(crate) fn zipped(request: Request) -> Request {
    request.header("accept-encoding", "gzip")
}

/// The fields of a SecurityPolicy that asks for a key of this Secret.
pub(crate) fn keys_of(secret: &Value) -> Value {
    json!({ "apiKeyAuth": { "credentialRefs": [secret], "sanitize": true } })
}

/// The fields of a SecurityPolicy that asks for a token with a signature of Secret `tokens`.
pub(crate) fn tokens() -> Value {
    json!({ "jwt": {
        "issuer": "https://login.example", "audience": "shop", "algorithm": "HS256", "secretRef": { "name": "tokens" },
    } })
}

/// The same fields with an algorithm that PingSIX lacks.
pub(crate) fn tokens_of_another_algorithm() -> Value {
    let mut fields = tokens();
    fields["jwt"]["algorithm"] = json!("HS384");
    fields
}

/// The fields of a TrafficPolicy that lets three requests of a client pass in a minute.
pub(crate) fn three_a_minute() -> Value {
    json!({ "rateLimit": { "local": { "limit": { "requests": 3, "unit": "Minute" } } } })
}

/// The fields of a TrafficPolicy that compresses answers.
pub(crate) fn gzip() -> Value {
    json!({ "compression": [{ "type": "Gzip" }] })
}

/// A token of HS256 with these claims and this signature.
fn token(claims: &str, signature: &str) -> Request {
    let token = format!("Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.{claims}.{signature}");
    get("/orders").header("authorization", &token)
}

/// A token with `iss`, `aud`, `sub` and a time in 2100.
pub(crate) fn good_token() -> Request {
    token(
        "eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGUiLCJhdWQiOiJzaG9wIiwic3ViIjoiYWxpY2UiLCJleHAiOjQxMDI0NDQ4MDB9",
        "HWRnSNJnF1xyqnCXZ49FWhFTX_flkEmHZvMPihIas6U",
    )
}

/// The good token without `iss`, without `exp`, for another audience, of the year 2020, and with another signature.
fn bad_tokens() -> [Request; 5] {
    [
        token(
            "eyJhdWQiOiJzaG9wIiwic3ViIjoiYWxpY2UiLCJleHAiOjQxMDI0NDQ4MDB9",
            "oI_-GtC3-eReEUYLYABHkcRqBUPBigb5sh_YvHOg78o",
        ),
        token(
            "eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGUiLCJhdWQiOiJzaG9wIiwic3ViIjoiYWxpY2UifQ",
            "pmn-jTGn5hz6ouzLmvsYVnqKshAh8oCroVel0m2htjs",
        ),
        token(
            "eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGUiLCJhdWQiOiJiYW5rIiwic3ViIjoiYWxpY2UiLCJleHAiOjQxMDI0NDQ4MDB9",
            "6kDFDTJDRtvQAlF6y6D38nL3ogs8x_xDNcYluZF5unA",
        ),
        token(
            "eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGUiLCJhdWQiOiJzaG9wIiwic3ViIjoiYWxpY2UiLCJleHAiOjE2MDAwMDAwMDB9",
            "qx-IDZACdJ735PgSCQ2JUB7MlvLlyLpHtgD6RqIu-v8",
        ),
        token(
            "eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGUiLCJhdWQiOiJzaG9wIiwic3ViIjoiYWxpY2UiLCJleHAiOjQxMDI0NDQ4MDB9",
            "-wnZ24gdVEBYlMXqbfhzGTn7t5YvpdgS9icv3ArxEsQ",
        ),
    ]
}

/// The answers under a policy of [`tokens`] for `/orders`.
pub(crate) fn answers_to_tokens() -> Vec<Expectation> {
    let mut expected = vec![(get("/orders"), 401), (good_token(), 200)];
    expected.extend(bad_tokens().map(|bad| (bad, 401)));
    expected
}

/// SecurityPolicies of a Gateway and of its route for `/orders`, with the answers under both.
pub(crate) struct Inheritance {
    pub(crate) of_gateway: Value,
    pub(crate) of_route: Option<Value>,
    pub(crate) expected: Vec<Expectation>,
}

/// A policy of the Gateway alone, then one of the route as well, then overrides of the Gateway.
pub(crate) fn inheritance() -> [Inheritance; 3] {
    let keys = || Some(keys_of(&json!({ "name": "keys" })));
    let mut overrides = tokens();
    overrides["strategy"] = json!("Overrides");
    [
        Inheritance {
            of_gateway: tokens(),
            of_route: None,
            expected: vec![(get("/orders"), 401), (good_token(), 200)],
        },
        Inheritance {
            of_gateway: tokens(),
            of_route: keys(),
            expected: vec![
                (with_key("/orders", KEY), 200),
                (good_token(), 401),
                (get("/orders"), 401),
                (with_key("/help", KEY), 401),
            ],
        },
        Inheritance {
            of_gateway: overrides,
            of_route: keys(),
            expected: vec![(with_key("/orders", KEY), 401), (good_token(), 200), (get("/orders"), 401)],
        },
    ]
}

/// The path of a request, its status and the rest of the limit, under one policy of [`three_a_minute`] for both routes.
pub(crate) const SHARED_COUNT: [(&str, u16, &str); 5] = [
    ("/orders", 200, "2"),
    ("/orders", 200, "1"),
    ("/help", 200, "0"),
    ("/orders", 429, "0"),
    ("/help", 429, "0"),
];

/// The match of a younger route for some requests of route `orders`.
pub(crate) fn younger_match() -> Value {
    json!({ "path": { "type": "PathPrefix", "value": "/orders" }, "headers": [{ "name": "x", "value": "1" }] })
}

/// The answers if route `orders` asks for a key, and a younger route of [`younger_match`] has another policy.
pub(crate) fn answers_under_different_policies() -> [Expectation; 4] {
    [
        (with_key("/orders", KEY), 200),
        (get("/orders"), 401),
        (with_key("/orders", KEY).header("x", "1"), 500),
        (get("/orders").header("x", "1"), 401),
    ]
}

/// The answers if both routes ask for a key by one policy.
pub(crate) fn answers_under_one_policy() -> [Expectation; 4] {
    [
        (with_key("/orders", KEY), 200),
        (get("/orders"), 401),
        (with_key("/orders", KEY).header("x", "1"), 200),
        (get("/orders").header("x", "1"), 401),
    ]
}

/// The fields of a BackendTrafficPolicy that sends the requests of a user to one endpoint.
pub(crate) fn one_endpoint_by_user() -> Value {
    json!({ "loadBalancer": { "type": "ConsistentHash", "consistentHash": { "type": "Header", "name": "X-User" } } })
}

/// The fields of a BackendTrafficPolicy that PingSIX cannot honour.
pub(crate) fn least_request() -> Value {
    json!({ "loadBalancer": { "type": "LeastRequest" } })
}
