//! The reasons of verdicts, as codes that programs may rely on.

use serde::Serialize;

macro_rules! reasons {
    ($($name:ident, $description:literal;)+) => {
        /// The cause of a verdict. A code keeps its meaning; later versions may add others.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub(crate) enum Reason {
            $(#[doc = $description] $name,)+
        }

        impl Reason {
            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)+];

            /// The code in a report.
            pub(crate) const fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }

            /// The meaning of the code, for the documentation.
            #[cfg(test)]
            pub(crate) const fn description(self) -> &'static str {
                match self { $(Self::$name => $description,)+ }
            }
        }
    };
}

reasons! {
    AcmeChallenge, "The path is for challenges of ACME, which the original neither redirects nor protects.";
    BodySize, "Requests have other limits of size than before.";
    ClientCertificate, "The original asks clients for certificates, and PingSIX does not.";
    Conflict, "Two settings are for one field, which has one of them.";
    DifferentAnswer, "Clients get another answer: its status, headers or body, or its time in a cache.";
    DifferentConnection, "Connections to backends differ: their endpoints, protocol, timeouts or checks.";
    DifferentCors, "Scripts of other origins are allowed otherwise than before.";
    DifferentCounts, "Requests are counted otherwise for a limit.";
    DifferentCredentials, "Credentials are checked otherwise, or backends do not learn who has them.";
    DifferentMatch, "The rule takes requests by a condition that is near the original one.";
    DifferentPath, "The path takes requests that are near those of the original.";
    DifferentScope, "The setting counts for more or fewer requests than before.";
    Duplicate, "Another object or entry is for the same thing, and counts.";
    ForeignAnnotation, "The annotation belongs to another program.";
    InvalidName, "The name of the object is not one of Kubernetes.";
    InvalidValue, "The value is not one that the field can have.";
    Limitation, "The controller serves the part of the output that the field becomes with a limitation.";
    LostReferent, "The field depends on an object that is not converted as a whole.";
    ManualStep, "The setting has a place in the output that somebody has to fill in.";
    MissingField, "The object lacks a field that it needs.";
    MissingReferent, "The field refers to an object that the input does not have.";
    NoEffect, "The object or field has no effect.";
    NotAccepted, "The controller refuses the part of the output that the field becomes.";
    NotServed, "Requests that the field asks for get an error, or no listener takes their connections.";
    NotWritten, "A part of the object is not written, because of the parts that are impossible.";
    OtherClass, "Another controller serves the object, so it stays as it is.";
    Precedence, "Another rule or object takes the requests first, or their order differs.";
    SameMeaning, "Requests are treated as before.";
    Snippet, "The text is configuration of nginx.";
    TlsWithoutSecret, "There is no certificate for the host.";
    TooMany, "There are more items than an object of the output can have.";
    UnknownField, "The field is not understood, so its effect would be lost.";
    UnknownKind, "The kind, or its version, is not converted.";
    UnsuitableReferent, "The field refers to an object of another kind or form than it needs.";
    UnsupportedAnnotation, "The annotation, or its value, has no counterpart.";
    UnsupportedBackend, "A backend of an HTTPRoute cannot be what the field asks for.";
    UnsupportedCredentials, "PingSIX does not check credentials of this kind.";
    UnsupportedField, "The field has no counterpart.";
    UnsupportedHeader, "Filters cannot change the header.";
    UnsupportedHost, "A route or listener cannot have the host.";
    UnsupportedMatch, "A route cannot have the condition.";
    UnsupportedPath, "A route cannot have the path.";
    UnsupportedPlugin, "PingSIX has no such plugin, or not here.";
    UnsupportedProtocol, "PingSIX does not speak the protocol to backends.";
    UnsupportedRewrite, "A filter cannot rewrite or redirect in this way.";
    UnsupportedVariable, "The value has a variable, and the field has constant values.";
    VerifiedCertificate, "PingSIX verifies the certificate of the backend, which the original does not.";
    WeakerProtection, "The object is written with less protection, because --allow-weaker names it.";
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::Reason;

    #[test]
    fn codes_are_in_alphabetical_order() {
        assert!(Reason::ALL.windows(2).all(|pair| pair[0].as_str() < pair[1].as_str()));
    }

    #[test]
    fn the_generated_table_has_all_codes() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/migration-report.md");
        let text = fs::read_to_string(&page).unwrap();
        let head = "| reason | meaning |\n|---|---|\n";
        let (before, _) = text.split_once(head).unwrap();
        let row = |reason: &Reason| format!("| `{}` | {} |\n", reason.as_str(), reason.description());
        let expected = format!("{before}{head}{}", Reason::ALL.iter().map(row).collect::<Vec<_>>().concat());
        if std::env::var_os("UPDATE_REFERENCE").is_some_and(|value| !value.is_empty()) {
            fs::write(&page, &expected).unwrap();
        }
        let text = fs::read_to_string(&page).unwrap();
        assert!(text == expected, "{} is out of date: UPDATE_REFERENCE=1 writes it anew", page.display());
    }
}
