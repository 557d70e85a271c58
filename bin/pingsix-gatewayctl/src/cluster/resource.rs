//! A kind that an API server serves.

/// A kind in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resource {
    pub(super) kind: String,
    /// `v1`, or group and version.
    pub(super) api_version: String,
    /// The path of its version: `/api/v1` or `/apis/GROUP/VERSION`.
    pub(super) root: String,
    /// The plural, for example `httproutes`.
    pub(super) plural: String,
    pub(super) is_namespaced: bool,
}

impl Resource {
    /// The path of a list, or of an object.
    pub(super) fn path(&self, namespace: Option<&str>, name: Option<&str>) -> String {
        let namespace = namespace.map(|namespace| format!("/namespaces/{namespace}")).unwrap_or_default();
        let name = name.map(|name| format!("/{name}")).unwrap_or_default();
        format!("{}{namespace}/{}{name}", self.root, self.plural)
    }
}
