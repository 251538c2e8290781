//! The table of paths, verbs and headers.

use http::HeaderMap;

use super::*;

type Headers<'a> = &'a [(&'static str, &'static str)];

fn routed(method: &Method, path: &str, headers: Headers<'_>) -> Result<String, u16> {
    let map: HeaderMap =
        headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
    let path = ResourcePath::parse(path).map_err(|_| 404_u16)?;
    match route(method, &path, &RequestHeaders::scan(&map)) {
        Ok(operation) => Ok(format!("{operation:?}")),
        Err(error) => Err(error.status.0),
    }
}

#[track_caller]
fn check(method: Method, path: &str, headers: Headers<'_>, expected: &str) {
    assert_eq!(routed(&method, path, headers).as_deref(), Ok(expected), "{method} {path} {headers:?}");
}

#[test]
fn every_path_and_verb_leads_to_its_operation() {
    const QUERY: Headers<'_> = &[("x-ms-documentdb-isquery", "True")];
    const UPSERT: Headers<'_> = &[("x-ms-documentdb-is-upsert", "true")];
    let ids = r#"ContainerIds { database: "d", container: "c" }"#;
    let user = r#"UserIds { database: "d", user: "u" }"#;
    check(Method::GET, "/", &[], "ReadAccount");
    check(Method::GET, "/dbs", &[], "Databases(List)");
    check(Method::POST, "/dbs", &[], "Databases(Create)");
    check(Method::POST, "/dbs/", QUERY, "Databases(Query)");
    check(Method::GET, "/dbs/d/", &[], r#"Database("d", Read)"#);
    check(Method::DELETE, "/dbs/d", &[], r#"Database("d", Delete)"#);
    check(Method::GET, "/dbs/d/colls", &[], r#"Containers("d", List)"#);
    check(Method::POST, "/dbs/d/colls/", &[], r#"Containers("d", Create)"#);
    check(Method::POST, "/dbs/d/colls", QUERY, r#"Containers("d", Query)"#);
    check(Method::GET, "/dbs/d/colls/c", &[], &format!("Container({ids}, Read)"));
    check(Method::PUT, "/dbs/d/colls/c", &[], &format!("Container({ids}, Replace)"));
    check(Method::DELETE, "/dbs/d/colls/c/", &[], &format!("Container({ids}, Delete)"));
    check(Method::GET, "/dbs/d/colls/c/pkranges", &[], &format!("PartitionRanges({ids})"));
    check(Method::GET, "/dbs/d/colls/c/conflicts", &[], &format!("Conflicts({ids}, List)"));
    check(Method::DELETE, "/dbs/d/colls/c/conflicts/x", &[], &format!(r#"Conflicts({ids}, Delete("x"))"#));
    check(Method::GET, "/offers", &[], "Offers(List)");
    check(Method::POST, "/offers", QUERY, "Offers(Query)");
    check(Method::GET, "/offers/abcd", &[], r#"Offer("abcd", Read)"#);
    check(Method::PUT, "/offers/abcd/", &[], r#"Offer("abcd", Replace)"#);
    check(Method::POST, "/dbs/d/users", UPSERT, r#"Users("d", Upsert)"#);
    check(Method::PUT, "/dbs/d/users/u", &[], &format!("User({user}, Replace)"));
    check(Method::POST, "/dbs/d/users/u/permissions", &[], &format!("Permissions({user}, Create)"));
    check(
        Method::DELETE,
        "/dbs/d/users/u/permissions/p",
        &[],
        &format!(r#"Permission({user}, "p", Delete)"#),
    );
}

#[test]
fn a_post_to_items_is_what_its_headers_say_and_a_plan_first() {
    let plan = ("x-ms-cosmos-is-query-plan-request", "True");
    let query = ("x-ms-documentdb-isquery", "true");
    let cases: [(Headers<'_>, &str); 9] = [
        (&[], "Create"),
        (&[("x-ms-documentdb-is-upsert", "True")], "Upsert"),
        (&[("x-ms-documentdb-is-upsert", "False")], "Create"),
        (&[query], "Query"),
        (&[("content-type", "application/query+json; charset=utf-8")], "Query"),
        (&[plan, ("content-type", "application/json")], "QueryPlan"),
        (&[query, plan], "QueryPlan"),
        (&[("x-ms-cosmos-is-batch-request", "true"), ("x-ms-documentdb-is-upsert", "true")], "Batch"),
        // Features alone ask for nothing: one SDK sends them with every query.
        (&[query, ("x-ms-cosmos-supported-query-features", "OrderBy")], "Query"),
    ];
    for (headers, expected) in cases {
        let expected = format!(r#"Items(ContainerIds {{ database: "d", container: "c" }}, {expected})"#);
        check(Method::POST, "/dbs/d/colls/c/docs/", headers, &expected);
    }
}

#[test]
fn items_are_read_changed_and_fed() {
    let a_im: Headers<'_> = &[("a-im", "Incremental Feed")];
    for (method, path, headers, expected) in [
        (Method::GET, "docs/i", &[] as Headers<'_>, r#"Read("i")"#),
        (Method::GET, "docs/a%20b%2Fc+d", &[], r#"Read("a b/c+d")"#),
        (Method::PUT, "docs/i", &[], r#"Replace("i")"#),
        (Method::PATCH, "docs/i", &[], r#"Patch("i")"#),
        (Method::DELETE, "docs/i/", &[], r#"Delete("i")"#),
        (Method::GET, "docs", &[], "ReadFeed"),
        (Method::GET, "docs/", a_im, "ChangeFeed"),
        (Method::POST, "operations/partitionkeydelete", &[], "DeletePartition"),
    ] {
        let expected = format!(r#"Items(ContainerIds {{ database: "d", container: "c" }}, {expected})"#);
        check(method, &format!("/dbs/d/colls/c/{path}"), headers, &expected);
    }
}

#[test]
fn wrong_verbs_are_405_and_wrong_paths_404() {
    for (method, path, status) in [
        (Method::POST, "/", 405),
        (Method::PATCH, "/dbs", 405),
        (Method::PUT, "/dbs/d", 405),
        (Method::POST, "/dbs/d", 405),
        (Method::PATCH, "/dbs/d/colls/c", 405),
        (Method::PUT, "/dbs/d/colls/c/docs", 405),
        (Method::POST, "/dbs/d/colls/c/docs/i", 405),
        (Method::POST, "/dbs/d/colls/c/pkranges", 405),
        (Method::POST, "/dbs/d/colls/c/conflicts", 405),
        (Method::PUT, "/dbs/d/colls/c/conflicts/x", 405),
        (Method::GET, "/dbs/d/colls/c/operations/partitionkeydelete", 405),
        (Method::POST, "/offers", 405),
        (Method::DELETE, "/offers/abcd", 405),
        (Method::HEAD, "/dbs", 405),
        (Method::GET, "/dbs/d/colls/c/pkranges/0", 404),
        (Method::POST, "/dbs/d/colls/c/operations/other", 404),
        (Method::POST, "/dbs/d/colls/c/operations", 404),
        (Method::GET, "/nothing", 404),
        (Method::GET, "/dbs/d/docs", 404),
    ] {
        assert_eq!(routed(&method, path, &[]), Err(status), "{method} {path}");
    }
}

#[test]
fn an_invalid_boolean_header_is_rejected() {
    for header in [
        "x-ms-documentdb-isquery",
        "x-ms-documentdb-is-upsert",
        "x-ms-cosmos-is-batch-request",
        "x-ms-cosmos-is-query-plan-request",
    ] {
        let headers = [(header, "maybe")];
        assert_eq!(routed(&Method::POST, "/dbs/d/colls/c/docs", &headers), Err(400), "{header}");
    }
}
