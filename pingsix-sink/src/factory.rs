//! The part of a sink in the [registry](crate::target): its URLs and its constructor.

mod credential;
mod error;
mod parameters;

use std::fmt;

use crate::desired::{DocumentSet, Scope};
use crate::dyn_sink::DynSink;

pub(crate) use credential::Credential;
pub use credential::ServerCredentials;
pub use error::{CredentialPart, OpenError, TargetError};
pub(crate) use parameters::{Parameters, Query, decoded, encoded};

/// Reads an environment variable.
pub(crate) type Env<'a> = &'a (dyn Fn(&str) -> Option<String> + Sync);

/// A parsed URL of one sink, which opens the sink.
pub(crate) trait SinkFactory: Sized {
    /// The schemes of the URLs, such as `etcd://`.
    const SCHEMES: &'static [&'static str];

    /// The label in metrics, such as `etcd`.
    const KIND: &'static str;

    /// Whether the sink is a server with [`ServerCredentials`] in place of parameters.
    const IS_SERVER: bool = false;

    /// Parses the part of a URL between scheme and parameters, and takes the parameters of the sink.
    ///
    /// # Errors
    /// [`TargetError`] names the part or the parameter.
    fn parse(
        scheme: &'static str,
        location: &str,
        parameters: &mut Parameters<'_>,
    ) -> Result<Self, TargetError>;

    /// Writes the URL up to its parameters, and adds the parameters to `query`.
    ///
    /// # Errors
    /// Those of the formatter.
    fn write(&self, f: &mut fmt::Formatter<'_>, query: &mut Query) -> fmt::Result;

    /// Opens the sink. A server connects with the first publication.
    fn open(&self, env: Env<'_>) -> impl Future<Output = Result<DynSink, OpenError>> + Send;

    /// Reads the published documents of a scope, and writes nothing.
    fn read(
        &self,
        scope: &Scope,
        env: Env<'_>,
    ) -> impl Future<Output = Result<DocumentSet, OpenError>> + Send;

    /// Whether the target holds one scope alone.
    fn is_for_one_scope(&self) -> bool {
        false
    }
}
