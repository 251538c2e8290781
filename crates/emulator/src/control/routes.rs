//! The route table of the control port.
//!
//! Input: a method and a path. Output: the route and the values of its `{…}` segments, or an error: 404 lists
//! the routes, 405 the allowed methods. Matching is `matchit`'s, with one router per method, so that a fixed
//! path of one method does not hide a `{…}` path of another.

use std::collections::HashMap;
use std::sync::LazyLock;

use http::{Method, StatusCode};
use matchit::Router;
use percent_encoding::percent_decode_str;

use super::{Control, ControlError, ControlRequest, ControlResult, ROUTE_GROUPS};

/// One route of the control port.
pub(super) struct Route {
    /// The HTTP method; a GET route serves HEAD as well.
    pub(super) method: Method,
    /// The path, such as `/clock/advance`; a segment in braces matches any segment that is not empty.
    pub(super) path: &'static str,
    /// What the route does and takes, in one line.
    pub(super) about: &'static str,
    /// Handles a request. May take long, but must not wait for other tasks.
    pub(super) handle: fn(&Control, &ControlRequest) -> ControlResult,
}

impl Route {
    /// Method and path, such as `GET /clock`.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// All routes, with a router for each method.
struct RouteTable {
    routes: Vec<&'static Route>,
    /// The values are positions in `routes`.
    routers: HashMap<Method, Router<usize>>,
}

static TABLE: LazyLock<RouteTable> = LazyLock::new(|| RouteTable::new(ROUTE_GROUPS));

/// Finds the route of a request and the decoded values of its `{…}` segments.
pub(super) fn find(method: &Method, path: &str) -> Result<(&'static Route, Vec<String>), ControlError> {
    TABLE.find(method, path)
}

impl RouteTable {
    fn new(groups: &[&'static [Route]]) -> RouteTable {
        let routes: Vec<&'static Route> = groups.iter().flat_map(|group| group.iter()).collect();
        let mut routers: HashMap<Method, Router<usize>> = HashMap::new();
        for (position, route) in routes.iter().enumerate() {
            let router = routers.entry(route.method.clone()).or_default();
            router.insert(route.path, position).expect("no two routes of a method have the same path");
        }
        RouteTable { routes, routers }
    }

    fn find(&self, method: &Method, path: &str) -> Result<(&'static Route, Vec<String>), ControlError> {
        // The endpoint that `peri up` prints ends with a slash, and a route begins with one.
        let path = format!("/{}", path.strip_suffix('/').unwrap_or(path).trim_start_matches('/'));
        let served_by = if *method == Method::HEAD { &Method::GET } else { method };
        if let Some((position, segments)) = self.match_path(served_by, &path) {
            return Ok((self.routes[position], segments));
        }
        let others = self.routers.keys().filter_map(|method| self.match_path(method, &path));
        let mut others: Vec<usize> = others.map(|(position, _)| position).collect();
        if others.is_empty() {
            let known: Vec<String> = self.routes.iter().map(|route| route.name()).collect();
            let message = format!("no such route on the control port; there are: {}", known.join(", "));
            return Err(ControlError::new(StatusCode::NOT_FOUND, "NotFound", message));
        }
        others.sort_unstable();
        let allowed = others.iter().flat_map(|position| match self.routes[*position].method.as_str() {
            "GET" => vec!["GET", "HEAD"],
            method => vec![method],
        });
        Err(ControlError::method_not_allowed(&allowed.collect::<Vec<_>>().join(", ")))
    }

    /// The position of the route and its segments; `None` too when a segment is not UTF-8.
    fn match_path(&self, method: &Method, path: &str) -> Option<(usize, Vec<String>)> {
        let found = self.routers.get(method)?.at(path).ok()?;
        let decode = |value: &str| Some(percent_decode_str(value).decode_utf8().ok()?.into_owned());
        let segments = found.params.iter().map(|(_, value)| decode(value)).collect::<Option<_>>()?;
        Some((*found.value, segments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(method: Method, path: &str) -> u16 {
        match find(&method, path) {
            Ok(_) => 200,
            Err(error) => error.status(),
        }
    }

    #[test]
    fn a_route_is_found_by_method_and_path() {
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

    fn nothing(_: &Control, _: &ControlRequest) -> ControlResult {
        unreachable!("the test only looks routes up")
    }

    const ROUTES: &[Route] = &[
        Route { method: Method::GET, path: "/a", about: "", handle: nothing },
        Route { method: Method::GET, path: "/a/{b}", about: "", handle: nothing },
        Route { method: Method::GET, path: "/a/{b}/c/{d}", about: "", handle: nothing },
        Route { method: Method::POST, path: "/a/fixed", about: "", handle: nothing },
    ];

    #[test]
    fn a_segment_in_braces_matches_one_decoded_segment() {
        let cases: [(&str, Option<&[&str]>); 8] = [
            ("/a/West%20US", Some(&["West US"])),
            ("/a/1/c/2/", Some(&["1", "2"])),
            ("/a/fixed", Some(&["fixed"])),
            ("/a/", Some(&[])),
            ("/a", Some(&[])),
            ("/a/b/c", None),
            ("/a/%ff", None),
            ("/a//c/2", None),
        ];
        let table = RouteTable::new(&[ROUTES]);
        for (path, expected) in cases {
            let found = table.find(&Method::GET, path).ok().map(|(_, segments)| segments);
            let expected = expected.map(|all| all.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>());
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn a_fixed_path_of_one_method_does_not_hide_a_pattern_of_another() {
        let table = RouteTable::new(&[ROUTES]);
        assert_eq!(table.find(&Method::GET, "/a/fixed").unwrap().0.path, "/a/{b}");
        assert_eq!(table.find(&Method::POST, "/a/fixed").unwrap().0.path, "/a/fixed");
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
