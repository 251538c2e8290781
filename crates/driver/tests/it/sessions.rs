//! Session tokens that are passed on: a reader in another process sees what the writer has seen.

use emulator::regions::Lag;
use perihelion_driver::CosmosDriver;
use perihelion_driver::SessionScope;
use perihelion_driver::change_feed::{ChangeFeedOptions, ChangeFeedStart};
use perihelion_driver::query::QueryOptions;
use serde_json::{Value, json};

use crate::change_feed::drain;
use crate::test_account::{DEADLINE, EAST, NORTH, TestAccount, WEST, run, within};

const ITEMS: u64 = 12;

/// An account whose other regions are an hour behind, with items that one driver wrote, and its session.
async fn lagging() -> (TestAccount, String) {
    let test_account =
        TestAccount::start_with(|config| config.lag = "1h".parse::<Lag>().expect("a lag")).await;
    let writer = test_account.driver();
    for number in 0..ITEMS {
        run(&writer, &test_account.create_item(&format!("i{number}"))).await.expect("made");
    }
    let container = writer.container(&test_account.container, &Default::default()).await.expect("known");
    let token = container.session().token(SessionScope::Unknown).expect("it wrote");
    assert!(token.split(',').count() > 1, "of several partitions: {token}");
    (test_account, token)
}

/// A driver that has seen nothing and reads where nothing has arrived.
fn reader(test_account: &TestAccount) -> CosmosDriver {
    test_account.driver_preferring(&[NORTH, EAST, WEST])
}

async fn found(test_account: &TestAccount, options: &QueryOptions) -> Vec<String> {
    let body = json!({"query": "SELECT VALUE c.id FROM c ORDER BY c.id"}).to_string();
    let mut pages = reader(test_account)
        .query(&test_account.container, body, options, &within(DEADLINE))
        .await
        .expect("planned");
    let mut ids = Vec::new();
    while let Some(page) = pages.next_page().await.expect("a page") {
        ids.extend(page.rows.iter().map(|row| serde_json::from_slice::<String>(row).expect("text")));
    }
    ids
}

async fn delivered(test_account: &TestAccount, options: ChangeFeedOptions) -> Vec<Value> {
    let options = options.with_start(ChangeFeedStart::Beginning);
    let feed = reader(test_account).change_feed(&test_account.container, options, &within(DEADLINE)).await;
    drain(&mut feed.expect("a feed")).await
}

#[tokio::test]
async fn a_query_sees_what_the_session_it_is_given_has_seen() {
    let (test_account, token) = lagging().await;
    assert!(found(&test_account, &QueryOptions::new()).await.is_empty(), "it asks a region that is behind");
    let seen = found(&test_account, &QueryOptions::new().with_session_token(token)).await;
    assert_eq!(seen.len() as u64, ITEMS);
}

#[tokio::test]
async fn a_session_of_one_partition_asks_nothing_of_the_others() {
    let (test_account, token) = lagging().await;
    let (first, _) = token.split_once(',').expect("several");
    let seen = found(&test_account, &QueryOptions::new().with_session_token(first)).await.len() as u64;
    assert!((1..ITEMS).contains(&seen), "{seen}");
}

#[tokio::test]
async fn a_change_feed_tells_what_the_session_it_is_given_has_seen() {
    let (test_account, token) = lagging().await;
    assert!(
        delivered(&test_account, ChangeFeedOptions::new()).await.is_empty(),
        "it asks a region that is behind"
    );
    let seen = delivered(&test_account, ChangeFeedOptions::new().with_session_token(token)).await;
    assert_eq!(seen.len() as u64, ITEMS);
}
