//! The authentications: API keys, basic auth, JSON Web Tokens, or none on purpose.

use super::Reader;
use crate::crd::{ApiKeyAuth, BasicAuth, ExtractFrom, Jwt, SecurityPolicySpec};
use crate::model::{Capability, FieldPath, Refusal};
use crate::pingsix::Plugins;
use crate::pingsix::plugin::{self, JwtAlgorithm, JwtAuth, KeyAuth, PluginConfig as _};
use crate::policy::inherited::FieldValue;
use crate::references::entry;

/// An authentication. These count as one field, because PingSIX would demand all that are set.
#[derive(Debug, PartialEq)]
pub(super) enum Authentication {
    Anonymous,
    ApiKey(KeyAuth),
    Basic(plugin::BasicAuth),
    Jwt(Box<JwtAuth>),
}

impl FieldValue for Authentication {
    fn plugin_names(&self) -> &'static [&'static str] {
        match self {
            Self::Anonymous => &[],
            Self::ApiKey(_) => &[KeyAuth::NAME],
            Self::Basic(_) => &[plugin::BasicAuth::NAME],
            Self::Jwt(_) => &[JwtAuth::NAME],
        }
    }

    fn add_to(&self, plugins: &mut Plugins) {
        match self {
            Self::Anonymous => {}
            Self::ApiKey(config) => plugins.insert(config),
            Self::Basic(config) => plugins.insert(config),
            Self::Jwt(config) => plugins.insert(&**config),
        }
    }
}

/// The type of a Secret with a user and a password.
const BASIC_AUTH_SECRET: &str = "kubernetes.io/basic-auth";

/// The name of a cookie that no request can have: PingSIX ends names at the first `=`. A policy takes no token from a cookie,
/// and PingSIX would read a nameless cookie for an empty name.
const NO_COOKIE: &str = "=";

impl Reader<'_> {
    pub(super) fn authentication(
        &mut self,
        spec: &SecurityPolicySpec,
        at: &FieldPath,
    ) -> Option<Authentication> {
        let set = [
            ("apiKeyAuth", spec.api_key_auth.is_some()),
            ("basicAuth", spec.basic_auth.is_some()),
            ("jwt", spec.jwt.is_some()),
            ("anonymous", spec.anonymous.is_some()),
        ];
        let set: Vec<&str> = set.into_iter().filter_map(|(name, is_set)| is_set.then_some(name)).collect();
        if let [first, second, ..] = set.as_slice() {
            self.refuse(
                at.child(second),
                format!("A policy has one authentication, and {first} is set, too."),
            );
            return None;
        }
        if let Some(auth) = &spec.api_key_auth {
            return Some(Authentication::ApiKey(self.api_key(auth, &at.child("apiKeyAuth"))));
        }
        if let Some(auth) = &spec.basic_auth {
            return self.basic(auth, &at.child("basicAuth")).map(Authentication::Basic);
        }
        if let Some(jwt) = &spec.jwt {
            return self.jwt(jwt, &at.child("jwt")).map(Box::new).map(Authentication::Jwt);
        }
        spec.anonymous.map(|_| Authentication::Anonymous)
    }

    fn api_key(&mut self, auth: &ApiKeyAuth, at: &FieldPath) -> KeyAuth {
        let mut keys: Vec<String> = Vec::new();
        let at_refs = at.child("credentialRefs");
        if auth.credential_refs.is_empty() {
            self.refuse(at_refs.clone(), "No Secret with keys is given.");
        }
        for (index, reference) in auth.credential_refs.iter().enumerate() {
            let at = at_refs.index(index);
            let Some(secret) = self.secret(reference, &at) else { continue };
            let data = secret.data.iter().flat_map(|data| data.keys());
            let names = data.chain(secret.string_data.iter().flat_map(|data| data.keys()));
            let before = keys.len();
            for name in names {
                match entry(secret, name) {
                    Ok(key) if key.bytes().all(|byte| byte.is_ascii_graphic()) => keys.push(key.to_owned()),
                    Ok(_) => {
                        let message = format!(
                            "Entry {name} of the Secret has characters that no key in a request can have."
                        );
                        self.refuse(at.clone(), message);
                    }
                    Err(message) => self.refuse(at.clone(), message),
                }
            }
            if keys.len() == before {
                self.refuse(at, "The Secret has no key.");
            }
        }
        keys.sort_unstable();
        keys.dedup();
        let CredentialLocation { header, query } =
            self.credential_location(auth.extract_from.as_ref(), &at.child("extractFrom"), "apikey");
        KeyAuth { header, query, key: None, keys, hide_credentials: auth.sanitize.unwrap_or(self.sanitizes) }
    }

    fn basic(&mut self, auth: &BasicAuth, at: &FieldPath) -> Option<plugin::BasicAuth> {
        let at = at.child("secretRef");
        let secret = self.secret(&auth.secret_ref, &at)?;
        let kind = secret.type_.as_deref().unwrap_or_default();
        if kind != BASIC_AUTH_SECRET {
            self.refuse(at, format!("The Secret has to be of type {BASIC_AUTH_SECRET}, not \"{kind}\"."));
            return None;
        }
        let (username, password) = match (entry(secret, "username"), entry(secret, "password")) {
            (Ok(username), Ok(password)) => (username.to_owned(), password.to_owned()),
            (Err(message), _) | (_, Err(message)) => {
                self.refuse(at, message);
                return None;
            }
        };
        if username.contains(':') {
            self.refuse(at, "The user name has a colon, which ends user names in requests.");
            return None;
        }
        Some(plugin::BasicAuth {
            username,
            password,
            hide_credentials: auth.sanitize.unwrap_or(self.sanitizes),
        })
    }

    fn jwt(&mut self, jwt: &Jwt, at: &FieldPath) -> Option<JwtAuth> {
        let (algorithm, is_shared) = match jwt.algorithm.as_str() {
            "HS256" => (JwtAlgorithm::HS256, true),
            "HS512" => (JwtAlgorithm::HS512, true),
            "RS256" => (JwtAlgorithm::RS256, false),
            "RS384" => (JwtAlgorithm::RS384, false),
            "RS512" => (JwtAlgorithm::RS512, false),
            "ES256" => (JwtAlgorithm::ES256, false),
            "ES384" => (JwtAlgorithm::ES384, false),
            other => {
                self.refusals.push(Capability::TokenAlgorithm.refuse_with(at.child("algorithm"), &[other]));
                return None;
            }
        };
        let (secret, public_key) = match (&jwt.secret_ref, &jwt.public_key_ref, is_shared) {
            (Some(reference), None, true) => {
                (Some(self.entry_of(reference, "key", &at.child("secretRef"))?), None)
            }
            (None, Some(reference), false) => {
                (None, Some(self.public_key(reference, &at.child("publicKeyRef"))?))
            }
            (_, _, is_shared) => {
                let field = if is_shared { "secretRef" } else { "publicKeyRef" };
                self.refuse(at.clone(), format!("{} needs {field}, and nothing else.", jwt.algorithm));
                return None;
            }
        };
        let mut required_claims: Vec<String> = jwt.required_claims.clone();
        for (index, claim) in jwt.required_claims.iter().enumerate() {
            if !JwtAuth::CLAIMS.contains(&claim.as_str()) {
                let at = at.child("requiredClaims").index(index);
                self.refusals
                    .push(Capability::RequiredClaim.refuse_with(at, &[claim, &JwtAuth::CLAIMS.join(", ")]));
            }
        }
        // PingSIX compares these claims where a token has them, and takes tokens without them.
        required_claims.extend(jwt.issuer.iter().map(|_| "iss".to_owned()));
        required_claims.extend(jwt.audience.iter().map(|_| "aud".to_owned()));
        required_claims.sort_unstable();
        required_claims.dedup();
        let CredentialLocation { header, query } =
            self.credential_location(jwt.extract_from.as_ref(), &at.child("extractFrom"), "authorization");
        Some(JwtAuth {
            header,
            query,
            cookie: NO_COOKIE.to_owned(),
            hide_credentials: jwt.sanitize.unwrap_or(self.sanitizes),
            secret,
            public_key,
            algorithm,
            lifetime_grace_period: u64::from(jwt.clock_skew),
            iss: jwt.issuer.clone(),
            aud: jwt.audience.clone(),
            required_claims,
            ..JwtAuth::default()
        })
    }

    fn credential_location(
        &mut self,
        from: Option<&ExtractFrom>,
        at: &FieldPath,
        default: &str,
    ) -> CredentialLocation {
        let Some(ExtractFrom { headers, params }) = from else {
            return CredentialLocation { header: default.to_owned(), query: String::new() };
        };
        if headers.len() > 1 || params.len() > 1 {
            self.refusals.push(Capability::CredentialPlaces.refuse(at.clone()));
        }
        if headers.is_empty() && params.is_empty() {
            self.refuse(at.clone(), "The field needs a header or a query parameter.");
        }
        if let Some(header) =
            headers.first().filter(|name| http::HeaderName::from_bytes(name.as_bytes()).is_err())
        {
            self.refuse(at.child("headers").index(0), format!("\"{header}\" is not a header name."));
        }
        if params.first().is_some_and(String::is_empty) {
            self.refuse(at.child("params").index(0), "The name of a query parameter is empty.");
        }
        let first = |names: &[String]| names.first().cloned().unwrap_or_default();
        CredentialLocation { header: first(headers), query: first(params) }
    }
}

/// The differences between the author's intent and what PingSIX does. `sanitizes` is the default of `sanitize`.
pub(super) fn limitations(spec: &SecurityPolicySpec, sanitizes: bool) -> Vec<Refusal> {
    let at = FieldPath::new("spec");
    let mut limitations = Vec::new();
    if spec.jwt.as_ref().is_some_and(|jwt| jwt.audience.is_none()) {
        limitations.push(Capability::AnyAudience.limit(at.child("jwt").child("audience")));
    }
    let (keys, jwt) = (spec.api_key_auth.as_ref(), spec.jwt.as_ref());
    for (field, from, sanitize) in [
        ("apiKeyAuth", keys.and_then(|auth| auth.extract_from.as_ref()), keys.and_then(|auth| auth.sanitize)),
        ("jwt", jwt.and_then(|jwt| jwt.extract_from.as_ref()), jwt.and_then(|jwt| jwt.sanitize)),
    ] {
        if sanitize.unwrap_or(sanitizes) && from.is_some_and(|from| !from.params.is_empty()) {
            let at = at.child(field).child("extractFrom").child("params");
            limitations.push(Capability::HostBesideSanitize.limit(at));
        }
    }
    limitations
}

/// The location of a credential in requests. An empty name stands for no location.
struct CredentialLocation {
    header: String,
    query: String,
}
