//! Items that are patched.

use serde_json::{Value, json};

use super::fixture::{CompatibilityFixture, KEY};
use super::items::fresh;
use super::{Probes, supported};

pub(super) fn probes() -> Probes {
    vec![
        ("patch-add", supported!(patch_add)),
        ("patch-set", supported!(patch_set)),
        ("patch-replace", supported!(patch_replace)),
        ("patch-remove", supported!(patch_remove)),
        ("patch-incr", supported!(patch_incr)),
        ("patch-move", supported!(patch_move)),
        ("patch-condition", supported!(patch_condition)),
        ("patch-forms", supported!(patch_forms)),
        ("patch-limits", supported!(patch_limits)),
        ("patch-forbidden-paths", supported!(patch_forbidden_paths)),
        ("patch-preconditions", supported!(patch_preconditions)),
    ]
}

/// Patches the item of a fresh container; the body that comes back.
async fn patched(fixture: &CompatibilityFixture, operations: Value, status: u16) -> Value {
    let path = fresh(fixture).await + "/1";
    let response =
        fixture.account.patch(&path, &[KEY], json!({"operations": operations})).await.expect(status);
    response.body
}

async fn patch_add(fixture: &CompatibilityFixture) {
    let body = patched(
        fixture,
        json!([{"op": "add", "path": "/tags/0", "value": "w"}, {"op": "add", "path": "/tags/-", "value": "z"},
        {"op": "add", "path": "/o/b", "value": 2}]),
        200,
    )
    .await;
    assert_eq!((&body["tags"], &body["o"]["b"]), (&json!(["w", "x", "z"]), &json!(2)));
    patched(fixture, json!([{"op": "add", "path": "/missing/x", "value": 1}]), 400).await;
}

async fn patch_set(fixture: &CompatibilityFixture) {
    let body = patched(
        fixture,
        json!([{"op": "set", "path": "/tags/0", "value": "w"}, {"op": "set", "path": "/a~1b", "value": 1}]),
        200,
    )
    .await;
    assert_eq!((&body["tags"], &body["a/b"]), (&json!(["w"]), &json!(1)));
}

async fn patch_replace(fixture: &CompatibilityFixture) {
    assert_eq!(patched(fixture, json!([{"op": "replace", "path": "/n", "value": 5}]), 200).await["n"], 5);
    patched(fixture, json!([{"op": "replace", "path": "/missing", "value": 5}]), 400).await;
}

async fn patch_remove(fixture: &CompatibilityFixture) {
    assert_eq!(patched(fixture, json!([{"op": "remove", "path": "/tags/0"}]), 200).await["tags"], json!([]));
    patched(fixture, json!([{"op": "remove", "path": "/missing"}]), 400).await;
}

async fn patch_incr(fixture: &CompatibilityFixture) {
    let body = patched(
        fixture,
        json!([{"op": "incr", "path": "/n", "value": 2}, {"op": "incr", "path": "/new", "value": 0.5}]),
        200,
    )
    .await;
    assert_eq!((&body["n"], &body["new"]), (&json!(3), &json!(0.5)));
    patched(fixture, json!([{"op": "incr", "path": "/tags", "value": 1}]), 400).await;
}

async fn patch_move(fixture: &CompatibilityFixture) {
    let body = patched(fixture, json!([{"op": "move", "from": "/n", "path": "/m"}]), 200).await;
    assert_eq!((&body["n"], &body["m"]), (&Value::Null, &json!(1)));
    patched(fixture, json!([{"op": "move", "from": "/o", "path": "/o/a/b"}]), 400).await;
}

async fn patch_condition(fixture: &CompatibilityFixture) {
    let path = fresh(fixture).await + "/1";
    let patch = |condition: &str| json!({"operations": [{"op": "incr", "path": "/n", "value": 1}], "condition": condition});
    let unmet = fixture.account.patch(&path, &[KEY], patch("from c where c.n > 5")).await.expect(412);
    assert_eq!(unmet.sub_status(), "1110");
    fixture.account.patch(&path, &[KEY], patch("from c where c.n = 1")).await.expect(200);
}

async fn patch_forms(fixture: &CompatibilityFixture) {
    let path = fresh(fixture).await + "/1";
    let operations = json!([{"op": "incr", "path": "/n", "value": 1}]);
    fixture.account.patch(&path, &[KEY], operations.clone()).await.expect(200);
    for content_type in ["application/json-patch+json", "application/json_patch+json", "application/json"] {
        let header = ("content-type", content_type);
        fixture.account.patch(&path, &[KEY, header], json!({"operations": operations})).await.expect(200);
    }
}

async fn patch_limits(fixture: &CompatibilityFixture) {
    let operation = json!({"op": "incr", "path": "/n", "value": 1});
    patched(fixture, json!(vec![operation.clone(); 10]), 200).await;
    patched(fixture, json!(vec![operation; 11]), 400).await;
    patched(fixture, json!([]), 400).await;
}

async fn patch_forbidden_paths(fixture: &CompatibilityFixture) {
    for path in ["/id", "/pk", "/_rid", "/_self", "/_ts", "/_etag"] {
        patched(fixture, json!([{"op": "set", "path": path, "value": "x"}]), 400).await;
    }
}

async fn patch_preconditions(fixture: &CompatibilityFixture) {
    let path = fresh(fixture).await + "/1";
    let operations = json!([{"op": "incr", "path": "/n", "value": 1}]);
    fixture.account.patch(&path, &[KEY, ("if-match", "\"other\"")], operations.clone()).await.expect(412);
    fixture.account.patch(&path, &[KEY, ("prefer", "return=minimal")], operations).await.expect(200);
}
