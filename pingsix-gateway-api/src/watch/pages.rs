//! The next page of a list, requested while the last one is decoded.
//!
//! kube-runtime's watcher requests a page only after its consumer has taken all objects of the page before. So the API
//! server rests while we decode, and we rest while it encodes. The token of the next page is in the page before, so
//! it can be requested early.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use kube::core::ListMeta;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio_util::task::AbortOnDropHandle;

/// The parameter with the token of a page.
const CONTINUE: &str = "continue";

/// The pages of the lists of one watch. At most one page is read ahead.
#[derive(Clone)]
pub(super) struct Pages {
    client: Client,
    next: Arc<Mutex<Option<NextPage>>>,
}

/// A page that is requested, but not asked for yet.
struct NextPage {
    token: String,
    response: AbortOnDropHandle<Result<Response<Bytes>, kube::Error>>,
}

/// The part of a list that is necessary for its next page.
#[derive(Deserialize)]
struct Page {
    metadata: ListMeta,
}

impl Pages {
    pub(super) fn new(client: Client) -> Self {
        Self { client, next: Arc::default() }
    }

    /// The response to a request for a page. Requests the page after it.
    ///
    /// # Errors
    ///
    /// The error of the request, which may have been sent before this call.
    pub(super) async fn get(&self, request: Request<Body>) -> Result<Response<Bytes>, kube::Error> {
        let uri = request.uri().clone();
        let token = parameters(&uri).find(|(name, _)| name == CONTINUE).map(|(_, token)| token);
        let next = self.next.lock().take().filter(|next| token.as_deref() == Some(&*next.token));
        let response = match next {
            Some(next) => next.response.await.map_err(|ended| kube::Error::Service(ended.into()))?,
            None => read(&self.client, request).await,
        }?;
        if let Some(token) = next_token(response.body())
            && let Some(request) = next_request(&uri, &token)
        {
            let client = self.client.clone();
            let response = AbortOnDropHandle::new(tokio::spawn(async move { read(&client, request).await }));
            *self.next.lock() = Some(NextPage { token, response });
        }
        Ok(response)
    }
}

fn parameters(uri: &Uri) -> form_urlencoded::Parse<'_> {
    form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes())
}

/// The token of the page after this one; `None` after the last one.
fn next_token(body: &[u8]) -> Option<String> {
    let page: Page = serde_json::from_slice(body).ok()?;
    page.metadata.continue_.filter(|token| !token.is_empty())
}

/// The request for the page with a token, with the other parameters of the page before.
fn next_request(uri: &Uri, token: &str) -> Option<Request<Body>> {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(parameters(uri).filter(|(name, _)| name != CONTINUE));
    query.append_pair(CONTINUE, token);
    let next = format!("{}?{}", uri.path(), query.finish());
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = next.parse().ok()?;
    Some(request)
}

async fn read(client: &Client, request: Request<Body>) -> Result<Response<Bytes>, kube::Error> {
    let (head, body) = client.send(request).await?.into_parts();
    Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "eyJ2IjoibWV0YSJ9+/=&limit=1";

    #[test]
    fn the_next_request_differs_in_its_token_alone() {
        let uri: Uri = "/api/v1/services?&labelSelector=a%3Db&limit=500&continue=old".parse().unwrap();
        let request = next_request(&uri, TOKEN).unwrap();
        assert_eq!(request.uri().path(), "/api/v1/services");
        let pairs: Vec<_> = parameters(request.uri()).collect();
        let wanted = [("labelSelector", "a=b"), ("limit", "500"), ("continue", TOKEN)];
        assert_eq!(pairs, wanted.map(|(name, value)| (name.into(), value.into())));
    }

    #[test]
    fn only_a_list_with_more_objects_has_a_token() {
        let page = |metadata: &str| format!(r#"{{"items":[{{"metadata":{{}}}}],"metadata":{metadata}}}"#);
        let token = |metadata: &str| next_token(page(metadata).as_bytes());
        assert_eq!(token(r#"{"continue":"abc","resourceVersion":"7"}"#), Some("abc".to_owned()));
        assert_eq!(token(r#"{"continue":"","resourceVersion":"7"}"#), None);
        assert_eq!(token(r#"{"resourceVersion":"7"}"#), None);
        assert_eq!(next_token(b"no JSON"), None);
        assert_eq!(next_token(br#"{"kind":"Status","code":410}"#), None);
    }
}
