use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::build::NotBuilt;

/// A hint about clusters without all controllers.
const AGGREGATED: &str = "; roles that collect others, such as view, need clusterrole-aggregation-controller";

/// An error of a test cluster.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The programs are missing.
    #[error(transparent)]
    NotBuilt(#[from] NotBuilt),
    /// A file or a process of the cluster could not be handled.
    #[error("{what}")]
    Io {
        /// The failed operation.
        what: String,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// No certificate could be made for the API server.
    #[error("no certificate for the API server")]
    Certificate(#[from] rcgen::Error),
    /// A process ended that should run.
    #[error("{process} ended; the end of its log:\n{log}")]
    Ended {
        /// The name of the process.
        process: &'static str,
        /// The last lines it wrote.
        log: String,
    },
    /// A process runs and does not become ready.
    #[error("{process} was not ready after {}s; the end of its log:\n{log}", after.as_secs())]
    NotReady {
        /// The name of the process.
        process: &'static str,
        /// The time limit.
        after: Duration,
        /// The last lines it wrote.
        log: String,
    },
    /// A process does not run that would have to.
    #[error("{process} does not run")]
    NotRunning {
        /// The name of the process.
        process: &'static str,
    },
    /// The supervisor of a process did not carry out a request.
    #[error("the supervisor of {process} answered {answer:?}")]
    Supervisor {
        /// The name of the process.
        process: &'static str,
        /// The output of the supervisor, possibly empty.
        answer: String,
    },
    /// No [`Builder::user`](crate::Builder::user) declares this user.
    #[error("no user {name:?} was declared when the cluster was built")]
    UnknownUser {
        /// The name that was asked for.
        name: String,
    },
    /// A role that is to be bound has no rules.
    #[error("the {kind} {name} allows nothing{}", if *kind == "cluster role" { AGGREGATED } else { "" })]
    NoRules {
        /// The kind of the role.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// A file of manifests could not be read.
    #[error("{from} holds no manifest that can be applied: {why}")]
    Manifest {
        /// The file, or another source of the manifests.
        from: String,
        /// The error.
        why: String,
    },
    /// The API server refused a request of the cluster's own.
    #[error("could not {what}")]
    Api {
        /// The failed operation.
        what: String,
        /// The answer.
        #[source]
        source: Box<kube::Error>,
    },
    /// A condition that was waited for did not come.
    #[error("{what} after {}s", after.as_secs())]
    TimedOut {
        /// The present state.
        what: String,
        /// The duration of the wait.
        after: Duration,
    },
}

impl Error {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what: what.into(), source }
    }

    pub(crate) fn writing(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let path = PathBuf::from(path);
        move |source| Self::Io { what: format!("could not write {}", path.display()), source }
    }

    pub(crate) fn api(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        move |source| Self::Api { what: what.into(), source: Box::new(source) }
    }
}
