//! Closed lists of condition types and reasons: the only source of those strings.

use std::fmt;

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// Every value, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word as it stands in a status.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// Condition types.
    ConditionType {
        /// The object is valid and will be used.
        Accepted = "Accepted",
        /// Two listeners cannot be told apart.
        Conflicted = "Conflicted",
        /// Clients without a valid certificate are to be let in.
        InsecureFrontendValidationMode = "InsecureFrontendValidationMode",
        /// The object is served, with differences from its spec.
        Limited = "pingsix.io/Limited",
        /// Clients may use one connection for hosts of several listeners.
        OverlappingTlsConfig = "OverlappingTLSConfig",
        /// Policies with wider targets override fields of a policy.
        Overridden = "pingsix.io/Overridden",
        /// Some rules of a route are refused, the others are served.
        PartiallyInvalid = "PartiallyInvalid",
        /// Policies apply to the object.
        PolicyAffected = "pingsix.io/PolicyAffected",
        /// The data plane serves the object.
        Programmed = "Programmed",
        /// Every reference leads somewhere we may use.
        ResolvedRefs = "ResolvedRefs",
        /// The installed CRDs are of a version we know.
        SupportedVersion = "SupportedVersion",
    }
}

words! {
    /// Reasons of conditions and problems.
    Reason {
        /// All requested parts are accepted.
        Accepted = "Accepted",
        /// There is no address yet.
        AddressNotAssigned = "AddressNotAssigned",
        /// An address cannot be had.
        AddressNotUsable = "AddressNotUsable",
        /// A backendRef names a Service or port that does not exist, or an extensionRef a filter.
        BackendNotFound = "BackendNotFound",
        /// The configuration of the data plane has no room for the rule.
        BudgetExceeded = "BudgetExceeded",
        /// The Gateway demands less of its clients than the API recommends.
        ConfigurationChanged = "ConfigurationChanged",
        /// Another policy targets the same and takes precedence.
        Conflicted = "Conflicted",
        /// Two listeners share port and hostname.
        HostnameConflict = "HostnameConflict",
        /// The host belongs to another namespace.
        HostNotOwned = "HostNotOwned",
        /// Ingresses of another namespace name the host too, or hosts that it covers or is covered by.
        HostShared = "HostShared",
        /// The object cannot be used as it is.
        Invalid = "Invalid",
        /// A certificate authority is not read from a ConfigMap.
        InvalidCaCertificateKind = "InvalidCACertificateKind",
        /// A CA certificate cannot be used.
        InvalidCaCertificateRef = "InvalidCACertificateRef",
        /// A certificate cannot be used.
        InvalidCertificateRef = "InvalidCertificateRef",
        /// The certificate for backends cannot be used.
        InvalidClientCertificateRef = "InvalidClientCertificateRef",
        /// A reference names a kind that cannot be used there.
        InvalidKind = "InvalidKind",
        /// Parameters are missing or wrong.
        InvalidParameters = "InvalidParameters",
        /// A listener allows kinds of routes its protocol cannot carry.
        InvalidRouteKinds = "InvalidRouteKinds",
        /// PingSIX serves the part, with a difference from its spec.
        Limited = "Limited",
        /// References of listeners are not resolved.
        ListenersNotResolved = "ListenersNotResolved",
        /// Some or all listeners of a Gateway are not valid.
        ListenersNotValid = "ListenersNotValid",
        /// A rule has no backend that takes requests.
        NoBackends = "NoBackends",
        /// No conflict.
        NoConflicts = "NoConflicts",
        /// A Service has no endpoint that could take traffic.
        NoEndpoints = "NoEndpoints",
        /// No hostname of the route is served by the listeners it names.
        NoMatchingListenerHostname = "NoMatchingListenerHostname",
        /// The parentRef selects no listener.
        NoMatchingParent = "NoMatchingParent",
        /// A process or object for the data planes is missing.
        NoResources = "NoResources",
        /// CA certificates are referred to, and none of them can be used.
        NoValidCaCertificate = "NoValidCACertificate",
        /// The Gateway does not allow the ListenerSet.
        NotAllowed = "NotAllowed",
        /// The listeners do not allow the route's kind or namespace.
        NotAllowedByListeners = "NotAllowedByListeners",
        /// A certificate of one listener is valid for hosts of another.
        OverlappingCertificates = "OverlappingCertificates",
        /// Listeners with TLS share hosts.
        OverlappingHostnames = "OverlappingHostnames",
        /// A policy with a wider target overrides the field.
        Overridden = "Overridden",
        /// The Gateway is not accepted.
        ParentNotAccepted = "ParentNotAccepted",
        /// The Gateway serves nothing.
        ParentNotProgrammed = "ParentNotProgrammed",
        /// Delivery is in progress or unknown, or the existence of a referenced object is unknown.
        Pending = "Pending",
        /// Policies apply to the object.
        PolicyAffected = "PolicyAffected",
        /// A port that no listener can have.
        PortUnavailable = "PortUnavailable",
        /// The data plane confirmed the configuration.
        Programmed = "Programmed",
        /// Listeners of different protocols share a port.
        ProtocolConflict = "ProtocolConflict",
        /// PingSIX would refuse the documents of the object, so they are not sent.
        Quarantined = "Quarantined",
        /// A policy refers to an object that does not exist.
        RefNotFound = "RefNotFound",
        /// A reference into another namespace is not granted.
        RefNotPermitted = "RefNotPermitted",
        /// Every reference is resolved.
        ResolvedRefs = "ResolvedRefs",
        /// Something equal of an older object comes first, or something more specific.
        Shadowed = "Shadowed",
        /// A namespace has its share of a data plane's budget, and there is no room for more.
        ShareExceeded = "ShareExceeded",
        /// A namespace has most of its share of a data plane's budget.
        ShareNearlyUsed = "ShareNearlyUsed",
        /// The installed CRDs are of a version we know.
        SupportedVersion = "SupportedVersion",
        /// A policy targets something that does not exist.
        TargetNotFound = "TargetNotFound",
        /// A type of address we do not know.
        UnsupportedAddress = "UnsupportedAddress",
        /// Annotations that another controller would obey.
        UnsupportedAnnotation = "UnsupportedAnnotation",
        /// A protocol the data plane does not speak.
        UnsupportedProtocol = "UnsupportedProtocol",
        /// A value that cannot be honoured.
        UnsupportedValue = "UnsupportedValue",
        /// The installed CRDs are of a version we do not know.
        UnsupportedVersion = "UnsupportedVersion",
    }
}
