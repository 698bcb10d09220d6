//! Which address means what.

use hyper::{Method, StatusCode};

use crate::reply::Refusal;

/// What a request asks for; numbers are checked to be numbers, not to exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Page,
    ViewerFile,
    OpenApi,
    ReportSchema,
    Models,
    Model,
    ModelEvents,
    CancelModel,
    Explain,
    Rerun,
    Reports,
    Report,
    Averages,
    Sample,
    Jobs,
    StartJob,
    Job,
    JobEvents,
    CancelJob,
    #[cfg(test)]
    Panic,
}

/// Method, path as `docs/openapi.json` writes it, meaning.
pub(crate) const ROUTES: &[(Method, &str, Route)] = &[
    (Method::GET, "/", Route::Page),
    (Method::GET, "/api/openapi.json", Route::OpenApi),
    (Method::GET, "/api/report.schema.json", Route::ReportSchema),
    (Method::GET, "/api/models", Route::Models),
    (Method::GET, "/api/models/{id}", Route::Model),
    (Method::GET, "/api/models/{id}/events", Route::ModelEvents),
    (Method::DELETE, "/api/models/{id}/explanation", Route::CancelModel),
    (Method::POST, "/api/models/{id}/explain", Route::Explain),
    (Method::POST, "/api/models/{id}/rerun", Route::Rerun),
    (Method::GET, "/api/reports", Route::Reports),
    (Method::GET, "/api/reports/{id}", Route::Report),
    (Method::GET, "/api/reports/{id}/averages", Route::Averages),
    (Method::GET, "/api/reports/{id}/samples/{number}", Route::Sample),
    (Method::GET, "/api/jobs", Route::Jobs),
    (Method::POST, "/api/jobs", Route::StartJob),
    (Method::GET, "/api/jobs/{id}", Route::Job),
    (Method::GET, "/api/jobs/{id}/events", Route::JobEvents),
    (Method::DELETE, "/api/jobs/{id}", Route::CancelJob),
    (Method::GET, "/{file}", Route::ViewerFile),
    #[cfg(test)]
    (Method::GET, "/api/panic", Route::Panic),
];

/// A route with what stands in the place of its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found<'a> {
    pub(crate) route: Route,
    pub(crate) values: Vec<&'a str>,
}

impl Found<'_> {
    /// A number in the path.
    pub(crate) fn number(&self, place: usize) -> Result<usize, Refusal> {
        let text = self.values.get(place).copied().unwrap_or_default();
        let is_plain = !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| is_plain).ok_or_else(|| Refusal::nothing("there is nothing under this name: ids are numbers"))
    }
}

/// Finds the route; `HEAD` is `GET` without the body.
pub(crate) fn find<'a>(method: &Method, path: &'a str) -> Result<Found<'a>, Refusal> {
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let mut others = Vec::new();
    for (own_method, pattern, route) in ROUTES {
        let Some(values) = values(pattern, path) else { continue };
        if own_method == method {
            return Ok(Found { route: *route, values });
        }
        others.push(own_method.as_str());
    }
    if others.is_empty() {
        return Err(Refusal::nothing("there is nothing here; /api/openapi.json lists what there is"));
    }
    Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, format!("this takes {}, not this method", others.join(", "))))
}

/// What stands in the place of the names of a pattern; `None` if the path is another.
fn values<'a>(pattern: &str, path: &'a str) -> Option<Vec<&'a str>> {
    let (mut patterns, mut pieces) = (pattern.split('/'), path.split('/'));
    let mut values = Vec::new();
    loop {
        match (patterns.next(), pieces.next()) {
            (None, None) => return Some(values),
            (Some(pattern), Some(piece)) if pattern.starts_with('{') && !piece.is_empty() => values.push(piece),
            (Some(pattern), Some(piece)) if pattern == piece => {}
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_find_their_routes() {
        let found = |method, path| find(&method, path).map(|found| (found.route, found.values.join(",")));
        assert_eq!(found(Method::GET, "/"), Ok((Route::Page, String::new())));
        assert_eq!(found(Method::HEAD, "/api/reports/3/samples/12"), Ok((Route::Sample, "3,12".into())));
        assert_eq!(found(Method::DELETE, "/api/jobs/1"), Ok((Route::CancelJob, "1".into())));
        assert_eq!(found(Method::GET, "/style.css"), Ok((Route::ViewerFile, "style.css".into())));
        let status = |method, path| find(&method, path).expect_err(path).status.as_u16();
        assert_eq!(status(Method::PUT, "/api/jobs"), 405);
        for path in ["/api/models/1/", "/api//models", "//", "/a/b", "/api/models/1/explain/x"] {
            assert_eq!(status(Method::GET, path), 404, "{path}");
        }
    }

    #[test]
    fn only_plain_numbers_are_numbers() {
        let number = |text: &str| Found { route: Route::Report, values: vec![text] }.number(0).ok();
        assert_eq!((number("0"), number("12")), (Some(0), Some(12)));
        for text in ["", "-1", "+1", "1.0", "..", "%2e", "99999999999999999999", "1a"] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
