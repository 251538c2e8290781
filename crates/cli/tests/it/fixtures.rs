//! `peri import` and `peri export` against a running account.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::binary::{TestFolder, text};
use crate::test_account::TestAccount;

/// Items that a file format might change: numbers, text that looks like JSON, order, nesting, missing properties.
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

fn three_partitions() -> TestAccount {
    TestAccount::with(&["--partitions", "3"])
}

/// The items of a container, as `peri export` prints them.
fn exported(account: &TestAccount, container: &str) -> BTreeMap<String, Value> {
    let output = account.expect(0, &["export", container]);
    let lines = text(&output.stdout).lines();
    by_id(&lines.map(|line| serde_json::from_str(line).expect("JSON")).collect::<Vec<Value>>())
}

const CREATE: [&str; 3] = ["--create", "--partition-key", "/pk"];

#[test]
fn items_survive_every_format() {
    let account = three_partitions();
    let expected = by_id(&items());
    account.write("first.ndjson", &lines(&items()));
    let imported = account.expect(0, &[&["import", "d/first", "first.ndjson"][..], &CREATE].concat());
    assert!(text(&imported.stderr).contains("imported 207 items into d/first"));
    assert_eq!(exported(&account, "d/first"), expected);
    for format in ["json", "ndjson", "csv"] {
        let (file, container) = (format!("copy.{format}"), format!("d/{format}"));
        let copied = account.expect(0, &["export", "d/first", &file]);
        assert!(text(&copied.stderr).contains("exported 207 items of d/first"));
        account.expect(0, &[&["import", &container, &file][..], &CREATE].concat());
        assert_eq!(exported(&account, &container), expected, "{format}");
        // Twice is as good as once.
        account.expect(0, &["import", &container, &file]);
        assert_eq!(exported(&account, &container).len(), expected.len(), "{format}");
    }
    let list: Vec<Value> = serde_json::from_str(&account.read("copy.json")).unwrap();
    assert_eq!(by_id(&list), expected);
    assert!(!account.read("copy.ndjson").contains("_rid"));
    let exported = account.expect(0, &["export", "d/first", "--system-properties"]);
    assert!(text(&exported.stdout).lines().all(|line| line.contains("\"_etag\"")));
}

#[test]
fn an_https_account_is_trusted_by_its_user_and_wherever_the_system_trusts_it() {
    let account = three_partitions();
    account.write("one.json", "{\"id\":\"1\",\"pk\":\"a\"}");
    account.expect(0, &["cert", "--out", "ca.pem"]);
    let (endpoint, key) = (&account.up.account()["endpoint"], &account.up.account()["key"]);
    let endpoint = endpoint.as_str().expect("text").replace("http://", "https://");
    let secure = format!("AccountEndpoint={endpoint};AccountKey={};", key.as_str().expect("text"));
    let file = account.folder.path().join("one.json");
    let file = file.to_str().expect("text");
    let import = [&["import", "d/c", file, "--connection-string", &secure][..], &CREATE].concat();
    let run_in = |folder: &TestFolder, system: Option<&TestFolder>| {
        let mut command = folder.peri(&import);
        match system {
            Some(system) => command.env("SSL_CERT_FILE", system.path().join("ca.pem")),
            None => command.env_remove("SSL_CERT_FILE"),
        };
        command.output().expect("the program runs")
    };
    let elsewhere = TestFolder::new();
    for (folder, system) in [(&account.folder, None), (&elsewhere, Some(&account.folder))] {
        let trusted = run_in(folder, system);
        assert_eq!(trusted.status.code(), Some(0), "{}", text(&trusted.stderr));
        assert!(text(&trusted.stderr).contains("imported 1 item into d/c"));
    }
    for (prepare, reason) in
        [(false, "authority.pem does not exist"), (true, "nor is it valid for an authority")]
    {
        if prepare {
            assert!(elsewhere.run(&["cert", "--out", "ca.pem"]).status.success());
        }
        let refused = run_in(&elsewhere, None);
        assert_eq!(refused.status.code(), Some(5));
        for part in ["certificate", reason, "`peri cert`"] {
            assert!(text(&refused.stderr).contains(part), "{part}: {}", text(&refused.stderr));
        }
    }
}

#[test]
fn hierarchical_keys_and_unusual_names_are_imported() {
    let account = three_partitions();
    account.write(
        "items",
        "[{\"id\":\"1\",\"tenant\":\"t\",\"user\":{\"id\":5}},{\"id\":\"2\",\"tenant\":\"t\"}]",
    );
    let arguments = ["import", "my db/ünïcode & more", "items", "--format", "json", "--create"];
    account.expect(0, &[&arguments[..], &["--partition-key", "/tenant,/user/id"]].concat());
    assert_eq!(exported(&account, "my db/ünïcode & more").len(), 2);
}

#[test]
fn an_invalid_item_is_named_and_stops_the_import_or_is_skipped() {
    let account = three_partitions();
    let file = "{\"id\":\"1\",\"pk\":\"a\"}\n{oops}\n\n{\"pk\":\"no id\"}\n{\"id\":\"a\\\\b\",\"pk\":\"a\"}\n{\"id\":\"2\",\"pk\":\"a\"}\n";
    account.write("bad.ndjson", file);
    let skipped =
        account.expect(7, &[&["import", "d/c", "bad.ndjson", "--on-error", "skip"][..], &CREATE].concat());
    let message = text(&skipped.stderr);
    for part in [
        "bad.ndjson:2: not JSON",
        "bad.ndjson:4: it has no 'id'",
        "bad.ndjson:5: 400",
        "not imported: 3 items",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(exported(&account, "d/c").into_keys().collect::<Vec<_>>(), ["1", "2"]);
    let many = format!("{{oops}}\n{}", lines(&items()));
    account.write("stop.ndjson", &many);
    let stop = ["import", "d/stop", "stop.ndjson", "--concurrency", "1"];
    let stopped = account.expect(7, &[&stop[..], &CREATE].concat());
    assert!(text(&stopped.stderr).contains("the rest of the file was not read"), "{}", text(&stopped.stderr));
    assert!(exported(&account, "d/stop").is_empty());
}

#[test]
fn csv_has_the_chosen_columns() {
    let account = three_partitions();
    account.write("c.csv", "id,pk,price,name\n1,a,9.50,\"Lamp, blue\"\n2,b,,42\n");
    account.expect(0, &[&["import", "d/c", "c.csv"][..], &CREATE].concat());
    let blue = account.expect(0, &["export", "d/c", "--query", "SELECT * FROM c WHERE c.price > 9"]);
    assert_eq!(text(&blue.stdout), "{\"id\":\"1\",\"pk\":\"a\",\"price\":9.5,\"name\":\"Lamp, blue\"}\n");
    account.expect(0, &["export", "d/c", "out.csv", "--columns", "name,id"]);
    let mut rows: Vec<String> = account.read("out.csv").lines().map(str::to_owned).collect();
    rows.sort();
    assert_eq!(rows, ["\"Lamp, blue\",1", "42,2", "name,id"]);
}

#[test]
fn items_are_exported_in_the_order_of_the_query() {
    let account = three_partitions();
    account.write("items.ndjson", &lines(&items()));
    account.expect(0, &[&["import", "d/c", "items.ndjson"][..], &CREATE].concat());
    let query = "SELECT VALUE {\"id\": c.id} FROM c WHERE STARTSWITH(c.id, 'item 1') ORDER BY c.n DESC";
    let output = account.expect(0, &["export", "d/c", "--query", query]);
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
fn failed_commands_say_why_and_leave_no_files() {
    let account = three_partitions();
    account.write("one.json", "[{\"id\":\"1\",\"pk\":\"a\"}]");
    account.write("broken.json", "[{\"id\":\"1\",\"pk\":\"a\"}, {\"id\":");
    for (code, arguments, message) in [
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
        account.expect(0, &[&["import", "d/c", "one.json"][..], &CREATE].concat());
        let output = account.expect(code, arguments);
        assert!(text(&output.stderr).contains(message), "{arguments:?}: {}", text(&output.stderr));
    }
    let key = account.up.account()["key"].as_str().unwrap();
    let closed_port = format!("AccountEndpoint=http://127.0.0.1:1/;AccountKey={key};");
    account.expect(5, &["export", "d/c", "--connection-string", &closed_port]);
    let endpoint = account.up.account()["endpoint"].as_str().unwrap();
    let wrong_key = format!("AccountEndpoint={endpoint};AccountKey=d3Jvbmc=;");
    let rejected = account.expect(6, &["export", "d/c", "--connection-string", &wrong_key]);
    assert!(text(&rejected.stderr).contains("check the key"));
    let left: Vec<String> = std::fs::read_dir(account.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("out"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn an_unclosed_quote_is_reported_with_its_line() {
    let account = three_partitions();
    account.write("open.csv", "id,pk,text\n1,a,fine\n2,b,\"never closed\n3,c,lost\n");
    let import = [&["import", "d/c", "open.csv", "--on-error", "skip"][..], &CREATE].concat();
    let message = account.expect(7, &import);
    let message = text(&message.stderr);
    assert!(message.contains("open.csv:3: the quote that is opened in line 3 is not closed"), "{message}");
    assert_eq!(exported(&account, "d/c").into_keys().collect::<Vec<_>>(), ["1"]);
}

#[test]
fn items_are_imported_despite_splits_merges_and_throttling() {
    use std::io::Write as _;
    let account = three_partitions();
    account.client().create_container();
    let all = items();
    let (first, rest) = all.split_at(100);
    let mut importing = account.command(&["import", "d/c", "-", "--format", "ndjson"]);
    let mut importing = importing
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut file = importing.stdin.take().expect("piped");
    file.write_all(lines(first).as_bytes()).expect("it reads");
    file.flush().expect("it reads");
    while exported(&account, "d/c").len() < first.len() {}
    // It knows of three ranges, and none of them is left.
    account.stdout_of(&["partition", "merge", "d/c", "0", "1"]);
    account.stdout_of(&["partition", "split", "d/c", "2"]);
    account.stdout_of(&[
        "fault",
        "status",
        "429",
        "--sub-status",
        "3200",
        "--retry-after",
        "5ms",
        "--count",
        "3",
    ]);
    file.write_all(lines(rest).as_bytes()).expect("it reads");
    drop(file);
    let output = importing.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(exported(&account, "d/c"), by_id(&all));
    let asked: Value =
        serde_json::from_str(&account.stdout_of(&["requests", "--json", "--limit", "1000"])).unwrap();
    let statuses: Vec<&Value> =
        asked["requests"].as_array().unwrap().iter().map(|one| &one["status"]).collect();
    assert!(statuses.contains(&&json!(410)) && statuses.contains(&&json!(429)), "{statuses:?}");
}

#[test]
fn items_are_imported_after_a_failover() {
    let account = TestAccount::with(&["--regions", "2", "--lag", "0ms"]);
    account.write("one.json", "[{\"id\":\"1\",\"pk\":\"a\"}]");
    account.stdout_of(&["region", "failover", "eastus"]);
    account.expect(0, &[&["import", "d/c", "one.json"][..], &CREATE].concat());
    assert_eq!(exported(&account, "d/c").len(), 1);
}

#[test]
fn columns_may_be_separated_by_another_character() {
    let account = three_partitions();
    account.write("items.csv", "id;pk;text\n1;a;\"x;y\"\n2;b;1,5\n");
    account.expect(0, &[&["import", "d/c", "items.csv", "--delimiter", ";"][..], &CREATE].concat());
    let expected =
        [json!({"id": "1", "pk": "a", "text": "x;y"}), json!({"id": "2", "pk": "b", "text": "1,5"})];
    assert_eq!(exported(&account, "d/c"), by_id(&expected));
    account.write("items.tsv", "id\tpk\n3\tc\n");
    account.expect(0, &["import", "d/c", "items.tsv", "--format", "csv", "--delimiter", "tab"]);
    assert_eq!(exported(&account, "d/c").len(), 3);
    account.write("items.ndjson", "{}\n");
    account.expect(2, &["import", "d/c", "items.ndjson", "--delimiter", ";"]);
    account.expect(2, &["import", "d/c", "items.csv", "--delimiter", ";;"]);
}

#[test]
fn items_without_an_id_get_one_if_asked() {
    let account = three_partitions();
    account.write("items.ndjson", "{\"pk\":\"a\",\"n\":1}\n{}\n{\"id\":\"own\",\"pk\":\"b\"}\n");
    account.expect(7, &[&["import", "d/c", "items.ndjson"][..], &CREATE].concat());
    account.expect(0, &["import", "d/c", "items.ndjson", "--generate-ids"]);
    let found = exported(&account, "d/c");
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(found["own"], json!({"id": "own", "pk": "b"}));
    assert!(
        found.values().any(|item| item["n"] == 1 && item["id"].as_str().is_some_and(|id| id.len() == 36))
    );
}

#[test]
fn a_column_that_is_named_twice_is_refused() {
    let account = three_partitions();
    account.write("items.csv", "id,pk,n,n\n1,a,2,3\n");
    let refused = account.expect(1, &[&["import", "d/c", "items.csv"][..], &CREATE].concat());
    assert!(text(&refused.stderr).contains("names the column 'n' twice"), "{}", text(&refused.stderr));
    assert_eq!(exported(&account, "d/c").len(), 0);
}
