//! `peri import` and `peri export` against a running account.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::binary::{Home, text};
use crate::lab::Lab;

/// Everything a file might change on its way: numbers, text that looks like something else, order,
/// depth, absence.
fn items() -> Vec<Value> {
    let mut items = vec![
        json!({"id": "1", "pk": "a", "n": 1, "text": "plain, with \"quotes\"\nand lines"}),
        json!({"id": "2", "pk": "a", "n": -0.5, "text": "42", "none": null}),
        json!({"id": "3", "pk": 7, "n": 9_007_199_254_740_993_i64, "text": "", "deep": {"a": [1, {"b": "true"}]}}),
        json!({"id": "007", "pk": true, "text": "null", "list": []}),
        json!({"id": "é \u{1F600}", "pk": "ü", "text": " spaces "}),
        json!({"id": "no key"}),
        json!({"id": "null key", "pk": null}),
    ];
    items.extend((0..200).map(|n| json!({"id": format!("item {n}"), "pk": format!("k{n}"), "n": n})));
    items
}

fn by_id(items: &[Value]) -> BTreeMap<String, Value> {
    items.iter().map(|item| (item["id"].as_str().expect("an id").to_owned(), item.clone())).collect()
}

fn lines(items: &[Value]) -> String {
    items.iter().map(|item| format!("{item}\n")).collect()
}

fn three_partitions() -> Lab {
    Lab::with(&["--partitions", "3"])
}

/// The items of a container, as `peri export` prints them.
fn exported(lab: &Lab, container: &str) -> BTreeMap<String, Value> {
    let output = lab.expect(0, &["export", container]);
    let lines = text(&output.stdout).lines();
    by_id(&lines.map(|line| serde_json::from_str(line).expect("JSON")).collect::<Vec<Value>>())
}

const CREATE: [&str; 3] = ["--create", "--partition-key", "/pk"];

#[test]
fn items_survive_every_format() {
    let lab = three_partitions();
    let expected = by_id(&items());
    lab.write("first.ndjson", &lines(&items()));
    let imported = lab.expect(0, &[&["import", "d/first", "first.ndjson"][..], &CREATE].concat());
    assert!(text(&imported.stderr).contains("imported 207 items into d/first"));
    assert_eq!(exported(&lab, "d/first"), expected);
    for format in ["json", "ndjson", "csv"] {
        let (file, container) = (format!("copy.{format}"), format!("d/{format}"));
        let copied = lab.expect(0, &["export", "d/first", &file]);
        assert!(text(&copied.stderr).contains("exported 207 items of d/first"));
        lab.expect(0, &[&["import", &container, &file][..], &CREATE].concat());
        assert_eq!(exported(&lab, &container), expected, "{format}");
        // Twice is as good as once.
        lab.expect(0, &["import", &container, &file]);
        assert_eq!(exported(&lab, &container).len(), expected.len(), "{format}");
    }
    let list: Vec<Value> = serde_json::from_str(&lab.read("copy.json")).unwrap();
    assert_eq!(by_id(&list), expected);
    assert!(!lab.read("copy.ndjson").contains("_rid"));
    let kept = lab.expect(0, &["export", "d/first", "--system-properties"]);
    assert!(text(&kept.stdout).lines().all(|line| line.contains("\"_etag\"")));
}

#[test]
fn an_https_account_is_trusted_if_the_system_trusts_it() {
    let lab = three_partitions();
    lab.write("one.json", "{\"id\":\"1\",\"pk\":\"a\"}");
    lab.expect(0, &["cert", "--out", "ca.pem"]);
    let (endpoint, key) = (&lab.up.account()["endpoint"], &lab.up.account()["key"]);
    let endpoint = endpoint.as_str().expect("text").replace("http://", "https://");
    let secure = format!("AccountEndpoint={endpoint};AccountKey={};", key.as_str().expect("text"));
    let import = [&["import", "d/c", "one.json", "--connection-string", &secure][..], &CREATE].concat();
    let run_trusting = |home: &Home| {
        let authority = home.path().join("ca.pem");
        lab.home.peri(&import).env("SSL_CERT_FILE", authority).output().expect("the program runs")
    };
    let trusted = run_trusting(&lab.home);
    assert_eq!(trusted.status.code(), Some(0), "{}", text(&trusted.stderr));
    assert!(text(&trusted.stderr).contains("imported 1 item into d/c"));
    let elsewhere = Home::new();
    assert!(elsewhere.run(&["cert", "--out", "ca.pem"]).status.success());
    let stranger = run_trusting(&elsewhere);
    assert_eq!(stranger.status.code(), Some(5));
    assert!(text(&stranger.stderr).contains("certificate"), "{}", text(&stranger.stderr));
}

#[test]
fn a_hierarchical_key_and_an_odd_name_are_fine() {
    let lab = three_partitions();
    lab.write(
        "items",
        "[{\"id\":\"1\",\"tenant\":\"t\",\"user\":{\"id\":5}},{\"id\":\"2\",\"tenant\":\"t\"}]",
    );
    let arguments = ["import", "my db/ünïcode & more", "items", "--format", "json", "--create"];
    lab.expect(0, &[&arguments[..], &["--partition-key", "/tenant,/user/id"]].concat());
    assert_eq!(exported(&lab, "my db/ünïcode & more").len(), 2);
}

#[test]
fn a_bad_item_is_named_and_the_others_go_on_or_not() {
    let lab = three_partitions();
    let file = "{\"id\":\"1\",\"pk\":\"a\"}\n{oops}\n\n{\"pk\":\"no id\"}\n{\"id\":\"a/b\",\"pk\":\"a\"}\n{\"id\":\"2\",\"pk\":\"a\"}\n";
    lab.write("bad.ndjson", file);
    let skipped =
        lab.expect(7, &[&["import", "d/c", "bad.ndjson", "--on-error", "skip"][..], &CREATE].concat());
    let said = text(&skipped.stderr);
    for part in [
        "bad.ndjson:2: not JSON",
        "bad.ndjson:4: it has no 'id'",
        "bad.ndjson:5: 400",
        "not imported: 3 items",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(exported(&lab, "d/c").into_keys().collect::<Vec<_>>(), ["1", "2"]);
    let many = format!("{{oops}}\n{}", lines(&items()));
    lab.write("stop.ndjson", &many);
    let stop = ["import", "d/stop", "stop.ndjson", "--concurrency", "1"];
    let stopped = lab.expect(7, &[&stop[..], &CREATE].concat());
    assert!(text(&stopped.stderr).contains("what follows was left out"), "{}", text(&stopped.stderr));
    assert!(exported(&lab, "d/stop").is_empty());
}

#[test]
fn csv_has_the_columns_that_are_asked_for() {
    let lab = three_partitions();
    lab.write("c.csv", "id,pk,price,name\n1,a,9.50,\"Lamp, blue\"\n2,b,,42\n");
    lab.expect(0, &[&["import", "d/c", "c.csv"][..], &CREATE].concat());
    let blue = lab.expect(0, &["export", "d/c", "--query", "SELECT * FROM c WHERE c.price > 9"]);
    assert_eq!(text(&blue.stdout), "{\"id\":\"1\",\"pk\":\"a\",\"price\":9.5,\"name\":\"Lamp, blue\"}\n");
    lab.expect(0, &["export", "d/c", "out.csv", "--columns", "name,id"]);
    let mut rows: Vec<String> = lab.read("out.csv").lines().map(str::to_owned).collect();
    rows.sort();
    assert_eq!(rows, ["\"Lamp, blue\",1", "42,2", "name,id"]);
}

#[test]
fn items_are_exported_in_the_order_that_is_asked_for() {
    let lab = three_partitions();
    lab.write("items.ndjson", &lines(&items()));
    lab.expect(0, &[&["import", "d/c", "items.ndjson"][..], &CREATE].concat());
    let query = "SELECT VALUE {\"id\": c.id} FROM c WHERE STARTSWITH(c.id, 'item 1') ORDER BY c.n DESC";
    let output = lab.expect(0, &["export", "d/c", "--query", query]);
    let ids: Vec<String> = text(&output.stdout)
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).expect("JSON")["id"].as_str().expect("text").to_owned()
        })
        .collect();
    let numbers = (100..200).rev().chain((10..20).rev()).chain([1]);
    assert_eq!(ids, numbers.map(|n| format!("item {n}")).collect::<Vec<_>>());
}

#[test]
fn what_cannot_be_done_says_so_and_leaves_nothing_behind() {
    let lab = three_partitions();
    lab.write("one.json", "[{\"id\":\"1\",\"pk\":\"a\"}]");
    lab.write("broken.json", "[{\"id\":\"1\",\"pk\":\"a\"}, {\"id\":");
    for (code, arguments, said) in [
        (6, &["import", "d/none", "one.json"][..], "--create"),
        (6, &["export", "d/none", "out.json"], "no container d/none"),
        (6, &["export", "d/c", "out.json", "--query", "SELECT * frm c"], "400"),
        (2, &["import", "d/c", "one.txt"], "--format"),
        (2, &["export", "d/c", "out.txt"], "--format"),
        (2, &["import", "none", "one.json"], "DATABASE/CONTAINER"),
        (2, &["import", "d/c", "one.json", "--create"], "--partition-key"),
        (2, &["import", "d/c", "one.json", "--connection-string", "Endpoint=sb://x"], "connection string"),
        (1, &["import", "d/c", "missing.json"], "missing.json"),
        (1, &["export", "d/c", "no/such/folder/out.json"], "out.json"),
        (7, &["import", "d/c", "broken.json"], "broken.json:1"),
    ] {
        lab.expect(0, &[&["import", "d/c", "one.json"][..], &CREATE].concat());
        let output = lab.expect(code, arguments);
        assert!(text(&output.stderr).contains(said), "{arguments:?}: {}", text(&output.stderr));
    }
    let key = lab.up.account()["key"].as_str().unwrap();
    let nobody = format!("AccountEndpoint=http://127.0.0.1:1/;AccountKey={key};");
    lab.expect(5, &["export", "d/c", "--connection-string", &nobody]);
    let endpoint = lab.up.account()["endpoint"].as_str().unwrap();
    let stranger = format!("AccountEndpoint={endpoint};AccountKey=d3Jvbmc=;");
    let refused = lab.expect(6, &["export", "d/c", "--connection-string", &stranger]);
    assert!(text(&refused.stderr).contains("check the key"));
    let left: Vec<String> = std::fs::read_dir(lab.home.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("out"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_quote_that_is_not_closed_is_named_with_its_line() {
    let lab = three_partitions();
    lab.write("open.csv", "id,pk,text\n1,a,fine\n2,b,\"never closed\n3,c,lost\n");
    let import = [&["import", "d/c", "open.csv", "--on-error", "skip"][..], &CREATE].concat();
    let said = lab.expect(7, &import);
    let said = text(&said.stderr);
    assert!(said.contains("open.csv:3: the quote that is opened in line 3 is not closed"), "{said}");
    assert_eq!(exported(&lab, "d/c").into_keys().collect::<Vec<_>>(), ["1"]);
}

#[test]
fn items_arrive_although_partitions_split_and_merge_and_requests_are_throttled() {
    use std::io::Write as _;
    let lab = three_partitions();
    lab.client().make_container();
    let all = items();
    let (first, rest) = all.split_at(100);
    let mut importing = lab.command(&["import", "d/c", "-", "--format", "ndjson"]);
    let mut importing = importing
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut file = importing.stdin.take().expect("piped");
    file.write_all(lines(first).as_bytes()).expect("it reads");
    file.flush().expect("it reads");
    while exported(&lab, "d/c").len() < first.len() {}
    // It knows of three ranges, and none of them is left.
    lab.says(&["partition", "merge", "d/c", "0", "1"]);
    lab.says(&["partition", "split", "d/c", "2"]);
    lab.says(&["fault", "status", "429", "--sub-status", "3200", "--retry-after", "5ms", "--count", "3"]);
    file.write_all(lines(rest).as_bytes()).expect("it reads");
    drop(file);
    let output = importing.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(exported(&lab, "d/c"), by_id(&all));
    let asked: Value = serde_json::from_str(&lab.says(&["requests", "--json", "--limit", "1000"])).unwrap();
    let statuses: Vec<&Value> =
        asked["requests"].as_array().unwrap().iter().map(|one| &one["status"]).collect();
    assert!(statuses.contains(&&json!(410)) && statuses.contains(&&json!(429)), "{statuses:?}");
}

#[test]
fn items_go_where_the_account_writes() {
    let lab = Lab::with(&["--lag", "0ms"]);
    lab.write("one.json", "[{\"id\":\"1\",\"pk\":\"a\"}]");
    lab.says(&["region", "failover", "eastus"]);
    lab.expect(0, &[&["import", "d/c", "one.json"][..], &CREATE].concat());
    assert_eq!(exported(&lab, "d/c").len(), 1);
}
