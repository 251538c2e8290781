//! `peri query` against a running account.

use serde_json::{Value, json};

use crate::binary::text;
use crate::test_account::TestAccount;

fn filled() -> TestAccount {
    let account = TestAccount::with(&["--partitions", "3"]);
    let items: String = (0..30)
        .map(|n| format!("{}\n", json!({"id": format!("{n}"), "pk": format!("k{}", n % 5), "n": n})))
        .collect();
    account.write("items.ndjson", &items);
    account.expect(0, &["import", "d/c", "items.ndjson", "--create", "--partition-key", "/pk"]);
    account
}

fn rows(account: &TestAccount, arguments: &[&str]) -> Vec<Value> {
    let output = account.expect(0, &[&["query", "d/c"], arguments].concat());
    let charge = text(&output.stderr).trim_end();
    assert!(charge.ends_with(" RU") && charge.contains("item"), "{charge}");
    text(&output.stdout).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn rows_of_all_partitions_are_lines_of_json() {
    let account = filled();
    let ordered = rows(&account, &["SELECT VALUE c.n FROM c WHERE c.n < 4 ORDER BY c.n DESC"]);
    assert_eq!(ordered, [3, 2, 1, 0]);
    assert_eq!(rows(&account, &["SELECT VALUE COUNT(1) FROM c"]), [30]);
    assert_eq!(rows(&account, &["SELECT c.id FROM c WHERE c.n = 7", "--json"]), [json!({"id": "7"})]);
}

#[test]
fn parameters_and_a_partition_key_narrow_it() {
    let account = filled();
    let found = rows(
        &account,
        &[
            "SELECT VALUE c.n FROM c WHERE c.n < @most AND c.pk != @other ORDER BY c.n",
            "--parameter",
            "most=12",
            "-p",
            "@other=k4",
            "--partition-key",
            "k1",
        ],
    );
    assert_eq!(found, [1, 6, 11]);
}

#[test]
fn a_bad_query_and_a_missing_container_are_refused_with_the_reason() {
    let account = filled();
    let bad = account.expect(6, &["query", "d/c", "SELECT * frm c"]);
    assert!(text(&bad.stderr).contains("400"), "{}", text(&bad.stderr));
    let missing = account.expect(6, &["query", "d/none", "SELECT * FROM c"]);
    assert!(text(&missing.stderr).contains("404"), "{}", text(&missing.stderr));
    account.expect(2, &["query", "d/c", "SELECT * FROM c", "--parameter", "no-value"]);
}
