//! Sessions that are handed on: a reader elsewhere sees what a writer has seen.

use emulator::regions::Lag;
use perihelion_driver::CosmosDriver;
use perihelion_driver::change_feed::{ChangeFeedOptions, ChangeFeedStart};
use perihelion_driver::query::QueryOptions;
use perihelion_driver::session::SessionScope;
use serde_json::{Value, json};

use crate::change_feed::drain;
use crate::lab::{DEADLINE, EAST, Lab, NORTH, WEST, run, within};

const ITEMS: u64 = 12;

/// An account whose other regions are an hour behind, with items that one driver wrote, and its session.
async fn lagging() -> (Lab, String) {
    let lab = Lab::start_with(|config| config.lag = "1h".parse::<Lag>().expect("a lag")).await;
    let writer = lab.driver();
    for number in 0..ITEMS {
        run(&writer, &lab.create_item(&format!("i{number}"))).await.expect("made");
    }
    let container = writer.container(&lab.container).await.expect("known");
    let token = container.session().token(SessionScope::Unknown).expect("it wrote");
    assert!(token.split(',').count() > 1, "of several partitions: {token}");
    (lab, token)
}

/// A driver that has seen nothing and reads where nothing has arrived.
fn reader(lab: &Lab) -> CosmosDriver {
    lab.driver_preferring(&[NORTH, EAST, WEST])
}

async fn found(lab: &Lab, options: &QueryOptions) -> Vec<String> {
    let body = json!({"query": "SELECT VALUE c.id FROM c ORDER BY c.id"}).to_string();
    let mut pages =
        reader(lab).query(&lab.container, body, options, &within(DEADLINE)).await.expect("planned");
    let mut ids = Vec::new();
    while let Some(page) = pages.next_page().await.expect("a page") {
        ids.extend(page.rows.iter().map(|row| serde_json::from_slice::<String>(row).expect("text")));
    }
    ids
}

async fn told(lab: &Lab, options: ChangeFeedOptions) -> Vec<Value> {
    let options = options.with_start(ChangeFeedStart::Beginning);
    let feed = reader(lab).change_feed(&lab.container, options, &within(DEADLINE)).await;
    drain(&mut feed.expect("a feed")).await
}

#[tokio::test]
async fn a_query_sees_what_the_session_it_is_given_has_seen() {
    let (lab, token) = lagging().await;
    assert!(found(&lab, &QueryOptions::new()).await.is_empty(), "it asks a region that is behind");
    let seen = found(&lab, &QueryOptions::new().with_session_token(token)).await;
    assert_eq!(seen.len() as u64, ITEMS);
}

#[tokio::test]
async fn a_session_of_one_partition_asks_nothing_of_the_others() {
    let (lab, token) = lagging().await;
    let (first, _) = token.split_once(',').expect("several");
    let seen = found(&lab, &QueryOptions::new().with_session_token(first)).await.len() as u64;
    assert!((1..ITEMS).contains(&seen), "{seen}");
}

#[tokio::test]
async fn a_change_feed_tells_what_the_session_it_is_given_has_seen() {
    let (lab, token) = lagging().await;
    assert!(told(&lab, ChangeFeedOptions::new()).await.is_empty(), "it asks a region that is behind");
    let seen = told(&lab, ChangeFeedOptions::new().with_session_token(token)).await;
    assert_eq!(seen.len() as u64, ITEMS);
}
