//! Which route a request means.
//!
//! In: the tables of all groups, a method and a path. Out: the route and what its `{…}` segments
//! stand for, or why there is none: 404 names the routes there are, 405 the methods. Pure.

use http::{Method, StatusCode};
use percent_encoding::percent_decode_str;

use super::{Control, ControlError, ControlRequest, ControlResult};

/// One thing the control port can be asked.
pub(super) struct Route {
    /// GET also answers HEAD.
    pub(super) method: Method,
    /// `/clock/advance`; a segment `{like this}` stands for anything but nothing.
    pub(super) path: &'static str,
    /// What it does and takes, in a line.
    pub(super) about: &'static str,
    /// Answers. May take its time, but waits for nothing but the processor.
    pub(super) handle: fn(&Control, &ControlRequest) -> ControlResult,
}

impl Route {
    /// `GET /clock`.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    fn takes(&self, method: &Method) -> bool {
        self.method == *method || (self.method == Method::GET && *method == Method::HEAD)
    }
}

/// Finds the route for `method` and `path`. Grows with the number of routes, which is a few dozen.
pub(super) fn find<'r>(
    groups: &[&'r [Route]],
    method: &Method,
    path: &str,
) -> Result<(&'r Route, Vec<String>), ControlError> {
    let routes = || groups.iter().flat_map(|group| group.iter());
    let mut allowed = Vec::new();
    for route in routes() {
        let Some(segments) = segments(route.path, path) else { continue };
        if route.takes(method) {
            return Ok((route, segments));
        }
        allowed.push(route.method.as_str());
        if route.method == Method::GET {
            allowed.push("HEAD");
        }
    }
    if allowed.is_empty() {
        let known: Vec<String> = routes().map(Route::name).collect();
        let message = format!("no such route on the control port; there are: {}", known.join(", "));
        return Err(ControlError::new(StatusCode::NOT_FOUND, "NotFound", message));
    }
    Err(ControlError::method_not_allowed(&allowed.join(", ")))
}

/// What the `{…}` segments of `pattern` stand for in `path`; `None` if they differ elsewhere.
fn segments(pattern: &str, path: &str) -> Option<Vec<String>> {
    // The endpoint that `peri up` prints ends with a slash, and a route begins with one.
    let path = path.strip_suffix('/').unwrap_or(path).trim_start_matches('/');
    let mut wanted = pattern.trim_matches('/').split('/');
    let mut given = path.split('/');
    let mut found = Vec::new();
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(found),
            (Some(wanted), Some(given)) if wanted.starts_with('{') && !given.is_empty() => {
                found.push(percent_decode_str(given).decode_utf8().ok()?.into_owned());
            }
            (Some(wanted), Some(given)) if wanted == given => {}
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ROUTE_GROUPS;
    use super::*;

    fn status(method: Method, path: &str) -> u16 {
        match find(ROUTE_GROUPS, &method, path) {
            Ok(_) => 200,
            Err(problem) => problem.status(),
        }
    }

    #[test]
    fn routes_answer_by_method_and_path() {
        let cases = [
            (Method::GET, "/", 200),
            (Method::GET, "/health/ready", 200),
            (Method::HEAD, "/health/ready", 200),
            (Method::GET, "/health/live/", 200),
            (Method::POST, "/health/live", 405),
            (Method::GET, "/clock", 200),
            (Method::POST, "/clock/freeze", 200),
            (Method::GET, "/clock/freeze", 405),
            (Method::GET, "/healthy", 404),
            (Method::GET, "/health/live/now", 404),
            (Method::GET, "//", 200),
            (Method::GET, "//clock", 200),
            (Method::GET, "/health//live", 404),
            (Method::GET, "", 200),
        ];
        for (method, path, expected) in cases {
            assert_eq!(status(method.clone(), path), expected, "{method} {path}");
        }
    }

    #[test]
    fn placeholders_stand_for_one_decoded_segment() {
        let cases: [(&str, &str, Option<&[&str]>); 7] = [
            ("/a/{b}", "/a/West%20US", Some(&["West US"])),
            ("/a/{b}/c/{d}", "/a/1/c/2/", Some(&["1", "2"])),
            ("/a/{b}", "/a/", None),
            ("/a/{b}", "/a", None),
            ("/a/{b}", "/a/b/c", None),
            ("/a/{b}", "/a/%ff", None),
            ("/a", "/a", Some(&[])),
        ];
        for (pattern, path, expected) in cases {
            let found = segments(pattern, path);
            assert_eq!(
                found.as_deref(),
                expected.map(|all| all.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()).as_deref(),
                "{pattern} {path}"
            );
        }
    }

    #[test]
    fn no_two_routes_share_a_name() {
        let mut names: Vec<String> =
            ROUTE_GROUPS.iter().flat_map(|group| group.iter()).map(Route::name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
