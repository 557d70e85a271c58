//! A client that records requests.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use tower_service::Service;

use super::rights::Right;

/// The requests, and the forbidden ones. Clones share the record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests(Arc<Mutex<Record>>);

#[derive(Debug, Default)]
struct Record {
    rights: BTreeSet<Right>,
    paths: BTreeSet<String>,
    forbidden: BTreeSet<Right>,
    /// Statuses whose first writing was answered with a conflict.
    conflicted: BTreeSet<String>,
}

impl Requests {
    /// A client that records requests and forwards them. The first status write of each kind meets a conflict, as
    /// with a concurrent writer.
    pub(crate) fn client(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        Client::new(RecordingClient { client, requests: self.clone() }, namespace)
    }

    /// The requests for objects.
    pub(crate) fn rights(&self) -> BTreeSet<Right> {
        self.0.lock().unwrap().rights.clone()
    }

    /// Paths without objects, such as discovery paths.
    pub(crate) fn paths(&self) -> BTreeSet<String> {
        self.0.lock().unwrap().paths.clone()
    }

    /// The requests with the answer 403.
    pub(crate) fn forbidden(&self) -> Vec<String> {
        self.0.lock().unwrap().forbidden.iter().map(Right::to_string).collect()
    }

    /// Records a request; returns whether it meets a conflict.
    fn record(&self, right: Option<&Right>, path: &str) -> bool {
        let mut noted = self.0.lock().unwrap();
        let Some(right) = right else {
            noted.paths.insert(path.to_owned());
            return false;
        };
        noted.rights.insert(right.clone());
        right.resource.ends_with("/status") && noted.conflicted.insert(right.resource.clone())
    }
}

#[derive(Clone)]
struct RecordingClient {
    client: Client,
    requests: Requests,
}

impl Service<Request<Body>> for RecordingClient {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, kube::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { client, requests } = self.clone();
        async move {
            let right = right(&request);
            if requests.record(right.as_ref(), request.uri().path()) {
                return Ok(conflict());
            }
            let response = client.send(request).await?;
            if response.status() == StatusCode::FORBIDDEN {
                // A frequent cause of a failing test.
                println!("forbidden: {right:?}");
                requests.0.lock().unwrap().forbidden.extend(right);
            }
            Ok(response)
        }
        .boxed()
    }
}

fn conflict() -> Response<Body> {
    let status = Status::failure("the object has been modified", "Conflict").with_code(409);
    let body = serde_json::to_vec(&status).unwrap();
    Response::builder().status(StatusCode::CONFLICT).body(Body::from(body)).unwrap()
}

/// The attributes of a request for the API server's authorizer; `None` for a request without an object.
fn right(request: &Request<Body>) -> Option<Right> {
    let segments: Vec<&str> = request.uri().path().split('/').filter(|segment| !segment.is_empty()).collect();
    let (group, rest) = match *segments {
        ["api", _, ref rest @ ..] => ("", rest),
        ["apis", group, _, ref rest @ ..] => (group, rest),
        _ => return None,
    };
    let (namespace, rest) = match *rest {
        ["namespaces", namespace, ref rest @ ..] if !rest.is_empty() => (Some(namespace.to_owned()), rest),
        _ => (None, rest),
    };
    let (resource, name) = match *rest {
        [resource] => (resource.to_owned(), None),
        [resource, name] => (resource.to_owned(), Some(name.to_owned())),
        [resource, name, part] => (format!("{resource}/{part}"), Some(name.to_owned())),
        _ => return None,
    };
    let query = request.uri().query().unwrap_or_default();
    let is_watch = query.split('&').any(|pair| pair == "watch=true" || pair == "watch=1");
    let verb = match (request.method(), &name) {
        (&Method::GET, _) if is_watch => "watch",
        (&Method::GET, None) => "list",
        (&Method::GET, Some(_)) => "get",
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        (&Method::PATCH, _) => "patch",
        (&Method::DELETE, None) => "deletecollection",
        (&Method::DELETE, Some(_)) => "delete",
        (method, _) => panic!("{method} {}", request.uri()),
    };
    // A list or a watch of one object is one of that name to the authorizer.
    let field = query.split('&').find_map(|pair| pair.strip_prefix("fieldSelector=metadata.name%3D"));
    let name = name.or_else(|| field.map(str::to_owned));
    Some(Right { namespace, group: group.to_owned(), resource, verb: verb.to_owned(), name })
}
