//! Requests for lists and objects, each bounded in time and in bytes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::bail;
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use kube::Client;
use kube::client::Body;
use pingsix_translate::ObjectKey;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::connection::Connection;
use super::request_error::{RequestError, in_words};
use super::resource::Resource;
use crate::arguments::ClusterArguments;

/// The most objects in a page.
const MAX_OBJECTS_PER_PAGE: usize = 500;
/// The most bytes of a page. A page that has more is requested again with half of the objects; one object never has as
/// much, because etcd stores at most some MiB.
const MAX_PAGE_BYTES: usize = 64 << 20;
/// The most objects of all lists.
const MAX_OBJECTS: usize = 1_000_000;
/// The most bytes of all answers.
const MAX_TOTAL_BYTES: usize = 1 << 30;
/// The most bytes of an error.
const MAX_ERROR_BYTES: usize = 1 << 20;
/// The most attempts at a list whose next page expires.
const MAX_LIST_ATTEMPTS: usize = 3;
/// Requests at the same time.
const MAX_CONCURRENT_REQUESTS: usize = 8;

/// Reads from an API server.
pub(super) struct Reader {
    client: Client,
    limit: Duration,
    /// Empty for all namespaces.
    namespaces: Vec<String>,
    objects: AtomicUsize,
    bytes: AtomicUsize,
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    metadata: ListMetadata,
    #[serde(default)]
    items: Option<Vec<Map<String, Value>>>,
}

#[derive(Default, Deserialize)]
struct ListMetadata {
    #[serde(default, rename = "continue")]
    next: Option<String>,
}

impl Reader {
    pub(super) fn new(connection: Connection, arguments: &ClusterArguments) -> Self {
        let mut namespaces = arguments.namespaces.clone();
        namespaces.sort_unstable();
        namespaces.dedup();
        Self {
            client: connection.client,
            limit: arguments.timeout(),
            namespaces,
            objects: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        }
    }

    /// The chosen namespaces; empty for all.
    pub(super) fn namespaces(&self) -> &[String] {
        &self.namespaces
    }

    /// The objects of these kinds in the chosen namespaces, each kind with its label selector.
    pub(super) async fn list(&self, resources: Vec<(&Resource, Option<&str>)>) -> anyhow::Result<Vec<Value>> {
        let mut lists = Vec::new();
        for (resource, selector) in resources {
            if resource.is_namespaced && !self.namespaces.is_empty() {
                let namespaces = self.namespaces.iter();
                lists.extend(namespaces.map(|namespace| (resource, Some(namespace.as_str()), selector)));
            } else {
                lists.push((resource, None, selector));
            }
        }
        let lists = stream::iter(lists)
            .map(|(resource, namespace, selector)| self.list_one(resource, namespace, selector));
        let lists: Vec<Vec<Value>> = lists.buffered(MAX_CONCURRENT_REQUESTS).try_collect().await?;
        Ok(lists.into_iter().flatten().collect())
    }

    /// Whether an object is in a chosen namespace.
    pub(super) fn is_chosen(&self, key: &ObjectKey) -> bool {
        self.namespaces.is_empty()
            || self.namespaces.iter().any(|namespace| **namespace == *key.name.namespace)
    }

    /// The existing ones of these objects, of any namespace.
    pub(super) async fn get(&self, wanted: Vec<(&Resource, &ObjectKey)>) -> anyhow::Result<Vec<Value>> {
        let objects = stream::iter(wanted).map(|(resource, key)| async move {
            self.get_one(resource, key).await.map_err(|error| error.about("get", &key.to_string()))
        });
        let objects: Vec<Option<Value>> = objects.buffered(MAX_CONCURRENT_REQUESTS).try_collect().await?;
        Ok(objects.into_iter().flatten().collect())
    }

    async fn list_one(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        selector: Option<&str>,
    ) -> anyhow::Result<Vec<Value>> {
        let place = namespace.map(|namespace| format!(" in namespace {namespace}")).unwrap_or_default();
        let what = format!("{}{place}", resource.kind);
        for _ in 0..MAX_LIST_ATTEMPTS {
            match self.pages(resource, namespace, selector).await {
                Ok(objects) => {
                    if self.objects.fetch_add(objects.len(), Ordering::Relaxed) + objects.len() > MAX_OBJECTS
                    {
                        bail!(
                            "the cluster has more than {MAX_OBJECTS} objects; choose some by --namespace or --selector"
                        );
                    }
                    return Ok(objects);
                }
                Err(error) if error.is(StatusCode::GONE) => {}
                Err(error) => return Err(error.about("list", &what)),
            }
        }
        bail!("cannot list {what}: the pages of the list expire before they are read")
    }

    /// All pages of a list.
    async fn pages(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        selector: Option<&str>,
    ) -> Result<Vec<Value>, RequestError> {
        let path = resource.path(namespace, None);
        let (mut objects, mut page, mut next) = (Vec::new(), MAX_OBJECTS_PER_PAGE, None::<String>);
        loop {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.append_pair("limit", &page.to_string());
            if let Some(selector) = selector {
                query.append_pair("labelSelector", selector);
            }
            if let Some(token) = &next {
                query.append_pair("continue", token);
            }
            let list: List = match self.read(&format!("{path}?{}", query.finish())).await {
                Err(RequestError::TooLong) if page > 1 => {
                    page /= 2;
                    continue;
                }
                answer => answer?,
            };
            let items = list.items.unwrap_or_default();
            objects.extend(items.into_iter().map(|item| as_manifest(resource, item)));
            next = list.metadata.next.filter(|token| !token.is_empty());
            // The bound of all lists is a bound of this one, too.
            if next.is_none() || objects.len() > MAX_OBJECTS {
                return Ok(objects);
            }
        }
    }

    /// An object of any namespace; `None` if it does not exist.
    pub(super) async fn get_one(
        &self,
        resource: &Resource,
        key: &ObjectKey,
    ) -> Result<Option<Value>, RequestError> {
        let (namespace, name) = (&*key.name.namespace, &*key.name.name);
        if !is_path_segment(namespace) || !is_path_segment(name) {
            return Ok(None);
        }
        match self.read::<Map<String, Value>>(&resource.path(Some(namespace), Some(name))).await {
            Ok(object) => Ok(Some(as_manifest(resource, object))),
            Err(error) if error.is(StatusCode::NOT_FOUND) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The answer to a GET request.
    pub(super) async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, RequestError> {
        let body = timeout(self.limit, self.request(path))
            .await
            .map_err(|_| RequestError::Timeout(self.limit))??;
        if self.bytes.fetch_add(body.len(), Ordering::Relaxed) + body.len() > MAX_TOTAL_BYTES {
            let message = "the objects have too many bytes; choose some by --namespace or --selector";
            return Err(RequestError::Broken(message.to_owned()));
        }
        // The error of the decoder may quote the answer, which may be a Secret.
        serde_json::from_slice(&body)
            .map_err(|_| RequestError::Broken("the answer is not of an API server".to_owned()))
    }

    async fn request(&self, path: &str) -> Result<Bytes, RequestError> {
        let broken = |error: &kube::Error| RequestError::Broken(in_words(error));
        let request = Request::get(path)
            .header(http::header::ACCEPT, "application/json")
            .body(Body::empty())
            .map_err(|error| broken(&kube::Error::HttpError(error)))?;
        let (head, body) = self.client.send(request).await.map_err(|error| broken(&error))?.into_parts();
        let limit = if head.status.is_success() { MAX_PAGE_BYTES } else { MAX_ERROR_BYTES };
        let body = Limited::new(body, limit).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                return RequestError::TooLong;
            }
            RequestError::Broken("the connection broke during the answer".to_owned())
        })?;
        let body = body.to_bytes();
        if head.status.is_success() { Ok(body) } else { Err(RequestError::of_answer(head.status, &body)) }
    }
}

/// Whether the text is one segment of a path, as names of Kubernetes are. A reference may have any text.
fn is_path_segment(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    !text.is_empty() && text.len() <= 253 && text.bytes().all(is_plain) && !matches!(text, "." | "..")
}

/// Adds the type, which items of a list may lack, and drops the largest unused field.
fn as_manifest(resource: &Resource, mut object: Map<String, Value>) -> Value {
    object.insert("apiVersion".to_owned(), json!(resource.api_version));
    object.insert("kind".to_owned(), json!(resource.kind));
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_become_paths() {
        for name in ["cart", "cart.v1", "a-b"] {
            assert!(is_path_segment(name), "{name}");
        }
        for text in ["", ".", "..", "a/b", "a?b", "a%2fb", "a b", "ü"] {
            assert!(!is_path_segment(text), "{text}");
        }
    }
}
