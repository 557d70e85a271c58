//! The URLs of the pages, and the refusal of all other requests. The length of each parameter is bounded.

use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use pingsix_sink::hosts::{ASK_LOCALLY, is_local};
use pingsix_translate::ObjectKey;

use super::address::ROOT;
use super::form::{Form, MAX_FIELD_BYTES};
use super::pages::routes::RouteFilter;
use super::part::{DEFAULT_ROWS, Part};
use super::{Model, cut, page, pages, pasted};
use crate::about::About;

/// The largest number of rows that a URL may ask for.
const MAX_ROWS: usize = 200;

/// The longest search, and the longest name of an object, in bytes.
const MAX_SEARCH_BYTES: usize = 200;
const MAX_NAME_BYTES: usize = 400;

/// The policy for browsers: nothing is loaded from elsewhere, no page frames these pages, and forms lead here.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
const ICON: &str = include_str!("icon.svg");

/// A page that a browser requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question(pub(super) Asked);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Overview(Part),
    DataPlanes(Part),
    Findings(Part),
    Routes(RouteFilter, Part),
    Object(ObjectKey, Part),
    Explain(Form),
}

/// The page for a request.
///
/// # Errors
///
/// The complete answer, for a request that needs no model: a file, a redirect, or a refusal.
pub fn question<B>(request: &Request<B>) -> Result<Question, Box<Response<String>>> {
    if !is_local(request) {
        return Err(text(StatusCode::MISDIRECTED_REQUEST, ASK_LOCALLY.to_owned()));
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut answer =
            text(StatusCode::METHOD_NOT_ALLOWED, "the pages change nothing; use GET\n".to_owned());
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Err(answer);
    }
    let mut parameters = Parameters::parse(request.uri().query().unwrap_or_default());
    let asked = match request.uri().path() {
        "/view" => parameters.part().map(Asked::Overview),
        "/view/data-planes" => parameters.part().map(Asked::DataPlanes),
        "/view/findings" => parameters.part().map(Asked::Findings),
        "/view/routes" => {
            parameters.route_filter().and_then(|filter| Ok(Asked::Routes(filter, parameters.part()?)))
        }
        "/view/object" => parameters.about().and_then(|key| Ok(Asked::Object(key, parameters.part()?))),
        "/view/explain" => match parameters.form() {
            Ok((form, None)) => Ok(Asked::Explain(form)),
            // The address of the answer has the parts of the request, so that the reader can share and change it.
            Ok((_, Some(location))) => return Err(redirect(&location)),
            Err(error) => Err(error),
        },
        "/" | "/view/" => return Err(redirect(ROOT)),
        "/view/style.css" => return Err(file("text/css; charset=utf-8", STYLE)),
        "/view/script.js" => return Err(file("text/javascript; charset=utf-8", SCRIPT)),
        "/view/icon.svg" => return Err(file("image/svg+xml", ICON)),
        _ => {
            return Err(html(
                StatusCode::NOT_FOUND,
                page::error_page("No such page", "There is no such page."),
            ));
        }
    };
    let checked = asked.and_then(|asked| parameters.end().map(|()| Question(asked)));
    checked.map_err(|error| html(StatusCode::BAD_REQUEST, page::error_page("Unusable address", &error)))
}

impl Question {
    /// The page.
    pub fn answer(&self, model: &Model) -> Response<String> {
        let (status, text) = match &self.0 {
            Asked::Overview(part) => (StatusCode::OK, pages::overview::page(model, *part)),
            Asked::DataPlanes(part) => (StatusCode::OK, pages::data_planes::page(model, *part)),
            Asked::Findings(part) => (StatusCode::OK, pages::findings::page(model, *part)),
            Asked::Routes(filter, part) => (StatusCode::OK, pages::routes::page(model, filter, *part)),
            Asked::Object(key, part) => {
                let missing =
                    || page::error_page("Not found", &format!("{key} does not exist, or has no page."));
                let page = pages::object(model, key, *part);
                page.map_or_else(|| (StatusCode::NOT_FOUND, missing()), |page| (StatusCode::OK, page))
            }
            Asked::Explain(form) => pages::explain::page(model, form),
        };
        *html(status, text)
    }
}

/// The parameters of a URL. Each is taken once, and none may remain.
struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// The parameters, without empty ones, which a form sends for empty fields.
    fn parse(query: &str) -> Self {
        let pairs = form_urlencoded::parse(query.as_bytes()).into_owned();
        Self(pairs.filter(|(_, value)| !value.trim().is_empty()).collect())
    }

    fn take(&mut self, name: &str, limit: usize) -> Result<Option<String>, String> {
        let Some(at) = self.0.iter().position(|(known, _)| known == name) else { return Ok(None) };
        let (_, value) = self.0.remove(at);
        if value.len() > limit {
            return Err(format!("The parameter \"{name}\" has more than {limit} bytes."));
        }
        Ok(Some(value))
    }

    fn number(&mut self, name: &str, max: usize) -> Result<Option<usize>, String> {
        let Some(text) = self.take(name, 20)? else { return Ok(None) };
        let number = text.parse().ok().filter(|number| (1..=max).contains(number));
        number.map(Some).ok_or_else(|| format!("The parameter \"{name}\" is no number from 1 to {max}."))
    }

    fn flag(&mut self, name: &str) -> Result<bool, String> {
        match self.take(name, 20)?.as_deref() {
            None => Ok(false),
            Some("yes") => Ok(true),
            Some(_) => Err(format!("The parameter \"{name}\" has one value: yes.")),
        }
    }

    fn key(&mut self, name: &str) -> Result<Option<ObjectKey>, String> {
        let Some(text) = self.take(name, MAX_NAME_BYTES)? else { return Ok(None) };
        text.parse::<About>()
            .map(|About(key)| Some(key))
            .map_err(|expected| format!("The parameter \"{name}\" names no object: {expected}."))
    }

    fn about(&mut self) -> Result<ObjectKey, String> {
        self.key("about")?.ok_or_else(|| "The parameter \"about\" is missing.".to_owned())
    }

    fn part(&mut self) -> Result<Part, String> {
        // No list has as many rows.
        let page = self.number("page", 1_000_000)?.unwrap_or(1);
        let rows = self.number("rows", MAX_ROWS)?.unwrap_or(DEFAULT_ROWS);
        Ok(Part { page, rows })
    }

    fn route_filter(&mut self) -> Result<RouteFilter, String> {
        let search = self.take("search", MAX_SEARCH_BYTES)?.unwrap_or_default();
        Ok(RouteFilter {
            search: search.trim().to_lowercase(),
            owner: self.key("owner")?,
            only_problems: self.flag("only-problems")?,
        })
    }

    /// The form of the page of explanations, and its address if the form comes from a pasted text.
    fn form(&mut self) -> Result<(Form, Option<String>), String> {
        let pasted = self.take("paste", MAX_FIELD_BYTES)?;
        let mut form = Form {
            method: self.take("method", 40)?.unwrap_or_else(|| "GET".to_owned()).trim().to_owned(),
            url: self.take("url", MAX_FIELD_BYTES)?.unwrap_or_default().trim().to_owned(),
            headers: self.take("headers", MAX_FIELD_BYTES)?.unwrap_or_default(),
            port: self.take("port", 20)?.unwrap_or_default().trim().to_owned(),
            server_name: self.take("server-name", MAX_NAME_BYTES)?.unwrap_or_default().trim().to_owned(),
            http2: self.flag("http2")?,
            owner: self.key("owner")?,
            pasted: String::new(),
            error: None,
        };
        let Some(text) = pasted else { return Ok((form, None)) };
        match pasted::parse(&text) {
            Ok(read) => {
                let form = Form { owner: form.owner, ..read };
                let location = form.address();
                Ok((form, Some(location)))
            }
            Err(error) => {
                form.error = Some(error);
                form.pasted = text;
                Ok((form, None))
            }
        }
    }

    fn end(&self) -> Result<(), String> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => {
                Err(format!("The page has no parameter \"{0}\", or \"{0}\" is there twice.", cut(name)))
            }
        }
    }
}

fn respond(status: StatusCode, content_type: &'static str, body: String) -> Box<Response<String>> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers: [(HeaderName, &'static str); 6] = [
        (CONTENT_TYPE, content_type),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Box::new(response)
}

fn html(status: StatusCode, page: String) -> Box<Response<String>> {
    respond(status, "text/html; charset=utf-8", page)
}

fn text(status: StatusCode, text: String) -> Box<Response<String>> {
    respond(status, "text/plain; charset=utf-8", text)
}

fn file(content_type: &'static str, content: &str) -> Box<Response<String>> {
    respond(StatusCode::OK, content_type, content.to_owned())
}

fn redirect(location: &str) -> Box<Response<String>> {
    let mut response = text(StatusCode::SEE_OTHER, format!("see {location}\n"));
    // Addresses of pages are percent-encoded, so they are always valid values.
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}
