//! A mistake of one caller is that caller's error, and changes nothing for the others.

use perihelion_driver::ErrorKind;
use perihelion_driver::operation::{Operation, Precondition};
use protocol::partition::PartitionKey;
use serde_json::json;

use crate::test_account::{TestAccount, WEST, body, regions, run, without_hedging};

/// Operations with text that no header can hold, by the header that would have to.
fn invalid_operations(test_account: &TestAccount) -> Vec<(&'static str, Operation)> {
    let (read, upsert) = (|| test_account.read("a"), || test_account.upsert("a", 2));
    vec![
        ("x-ms-session-token", read().with_session_token("0:-1#7\r\n")),
        ("x-ms-session-token", read().with_session_token("0:-1#7 \u{fc}")),
        ("if-none-match", read().with_precondition(Precondition::IfNoneMatch("\"\n\"".into()))),
        ("if-match", upsert().with_precondition(Precondition::IfMatch("\"\0\"".into()))),
        (
            "x-ms-continuation",
            test_account.query("a", "SELECT * FROM c").with_header("x-ms-continuation", "\u{1}"),
        ),
        ("x-own", upsert().with_header("x-own", "\u{7f}")),
    ]
}

#[tokio::test]
async fn text_that_no_header_can_hold_is_the_callers_error_and_marks_no_region() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver_with(without_hedging());
    for (header, operation) in invalid_operations(&test_account) {
        let error = run(&driver, &operation).await.expect_err(header);
        assert_eq!(error.kind(), ErrorKind::BadRequest, "{header}: {error}");
        assert!(error.message().contains(header), "{error}");
    }
    assert!(!driver.account().is_known(), "not even the account was asked");
    run(&driver, &test_account.create_item("a")).await.expect("made");
    for (header, operation) in invalid_operations(&test_account) {
        let error = run(&driver, &operation).await.expect_err(header);
        assert_eq!(error.kind(), ErrorKind::BadRequest, "{header}: {error}");
        assert!(error.diagnostics().is_none_or(|diagnostics| diagnostics.attempts().is_empty()), "{header}");
        let account = driver.account();
        let down: Vec<_> = account
            .reads()
            .iter()
            .filter(|endpoint| account.is_unavailable(endpoint.region(), true))
            .collect();
        assert!(down.is_empty(), "{header}: {down:?}");
        assert!(driver.partition_state().is_empty(), "{header}");
    }
    let read = run(&driver, &test_account.read("a")).await.expect("read");
    assert_eq!(regions(&read), [WEST]);
}

#[tokio::test]
async fn a_request_that_cannot_be_built_is_the_callers_error_and_marks_no_region() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver_with(without_hedging());
    run(&driver, &test_account.create_item("a")).await.expect("made");
    // Longer than any path can be.
    let error = run(&driver, &test_account.read(&"i".repeat(70_000))).await.expect_err("too long");
    assert_eq!(error.kind(), ErrorKind::BadRequest, "{error}");
    let account = driver.account();
    assert!(account.reads().iter().all(|endpoint| !account.is_unavailable(endpoint.region(), true)));
    let read = run(&driver, &test_account.read("a")).await.expect("read");
    assert_eq!(regions(&read), [WEST]);
}

#[tokio::test]
async fn ids_and_keys_of_every_script_are_written_and_read() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver();
    for id in ["Z\u{fc}rich", "\u{6771}\u{4eac}", "\u{1f6b2} and spaces", "tab\tand line\nend", "100%25"] {
        let item = json!({"id": id, "pk": id, "value": 1}).to_string();
        let create = Operation::create_item(&test_account.container, PartitionKey::single(id), item);
        run(&driver, &create).await.unwrap_or_else(|error| panic!("{id:?}: {error}"));
        let read =
            run(&driver, &test_account.read(id)).await.unwrap_or_else(|error| panic!("{id:?}: {error}"));
        assert_eq!(body(&read)["id"], id);
    }
}
