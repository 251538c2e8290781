//! Queries and the change feed.

use std::num::NonZeroU32;

use futures::TryStreamExt;
use perihelion::{Account, ChangeFeedStart, ContainerClient, CosmosClient, ErrorKind, Query};

use crate::{Order, TestAccount};

/// Thirty orders of ten customers, totals 0 to 29.
async fn fill(orders: &ContainerClient) {
    for total in 0..30 {
        let customer = format!("customer-{}", total % 10);
        let order = Order { id: format!("o-{total}"), customer: customer.clone(), total: f64::from(total) };
        orders.create_item(&customer, &order).await.expect("created");
    }
}

fn totals(orders: &[Order]) -> Vec<f64> {
    orders.iter().map(|order| order.total).collect()
}

#[tokio::test]
async fn a_cross_partition_query_streams_rows_in_order() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    fill(&orders).await;
    let query = Query::new("SELECT * FROM c WHERE c.total >= @least ORDER BY c.total DESC")
        .with_parameter("@least", 27);
    let rows: Vec<Order> = orders.query_items::<Order>(query).stream().try_collect().await.expect("rows");
    assert_eq!(totals(&rows), [29.0, 28.0, 27.0]);
    let one_at_a_time = std::num::NonZeroUsize::MIN;
    let count: Vec<u32> = orders
        .query_items::<u32>("SELECT VALUE COUNT(1) FROM c")
        .parallel_max(one_at_a_time)
        .stream()
        .try_collect()
        .await
        .expect("one");
    assert_eq!(count, [30]);
}

#[tokio::test]
async fn a_query_is_paged_and_continues_from_a_continuation() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    fill(&orders).await;
    let query = || {
        let rows = NonZeroU32::new(7).expect("not zero");
        orders.query_items::<Order>("SELECT * FROM c ORDER BY c.total").page_size(rows)
    };
    let mut pages = query().pages().await.expect("planned");
    let first = pages.next_page().await.expect("a page").expect("there are rows");
    assert_eq!((first.items.len(), first.charge > 0.0), (7, true));
    let continuation = pages.continuation().expect("there is more");
    let mut seen = totals(&first.items);
    let mut pages = query().continuation(&continuation).pages().await.expect("planned");
    while let Some(page) = pages.next_page().await.expect("a page") {
        seen.extend(totals(&page.items));
    }
    assert_eq!(seen, (0..30).map(f64::from).collect::<Vec<_>>());
    let other = orders.query_items::<Order>("SELECT * FROM c").continuation(continuation).pages().await;
    assert_eq!(other.expect_err("of another query").kind(), ErrorKind::BadRequest);
}

#[tokio::test]
async fn a_query_can_be_limited_to_one_partition_key() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    fill(&orders).await;
    let query = orders.query_items::<Order>("SELECT * FROM c ORDER BY c.total").partition_key("customer-3");
    let rows: Vec<Order> = query.stream().try_collect().await.expect("rows");
    assert_eq!(totals(&rows), [3.0, 13.0, 23.0]);
    let wrong = orders.query_items::<Order>("SELECT * FROM c").partition_key(("a", "b")).pages().await;
    assert_eq!(wrong.expect_err("one component is enough").kind(), ErrorKind::BadRequest);
    let range = orders.feed_ranges().await.expect("known").remove(0);
    let both = orders.query_items::<Order>("SELECT * FROM c").partition_key("a").range(range.clone()).pages();
    let feed = orders.change_feed::<Order>().range(range).partition_key("a").start();
    for error in [both.await.expect_err("one of them"), feed.await.expect_err("one of them")] {
        assert_eq!(error.kind(), ErrorKind::BadRequest);
        assert!(error.to_string().contains("leave out the feed range"), "{error}");
    }
}

#[tokio::test]
async fn a_query_with_an_error_says_where_it_is() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    let error = orders.query_items::<Order>("SELECT * FORM c").pages().await.expect_err("not SQL");
    assert_eq!(error.kind(), ErrorKind::BadRequest);
    assert!(error.message().contains("FORM"), "{error}");
}

#[tokio::test]
async fn changes_are_read_from_the_beginning_or_from_a_continuation() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    fill(&orders).await;
    let mut feed =
        orders.change_feed::<Order>().from(ChangeFeedStart::Beginning).start().await.expect("started");
    let mut seen = Vec::new();
    loop {
        let page = feed.next_page().await.expect("a page");
        if page.caught_up {
            break;
        }
        seen.extend(totals(&page.items));
    }
    seen.sort_by(f64::total_cmp);
    assert_eq!(seen, (0..30).map(f64::from).collect::<Vec<_>>());

    let continuation = feed.continuation();
    let late = Order { id: "late".into(), customer: "customer-1".into(), total: 99.0 };
    orders.create_item("customer-1", &late).await.expect("created");
    let mut feed = orders.change_feed::<Order>().continuation(continuation).start().await.expect("started");
    assert_eq!(feed.next_page().await.expect("a page").items, [late]);
    assert!(feed.next_page().await.expect("a page").caught_up);
}

#[tokio::test]
async fn the_feed_ranges_of_a_container_cover_it() {
    let account = TestAccount::start().await;
    let orders = account.wide_orders().await;
    fill(&orders).await;
    let ranges = orders.feed_ranges().await.expect("known");
    assert!(ranges.len() > 1, "{ranges:?}");
    let (mut rows, mut changes) = (Vec::new(), Vec::new());
    for range in ranges {
        let part: Vec<Order> = orders
            .query_items("SELECT * FROM c")
            .range(range.clone())
            .stream()
            .try_collect()
            .await
            .expect("rows");
        rows.extend(totals(&part));
        let feed = orders.change_feed::<Order>().from(ChangeFeedStart::Beginning).range(range);
        let mut feed = feed.start().await.expect("started");
        loop {
            let page = feed.next_page().await.expect("a page");
            if page.caught_up {
                break;
            }
            changes.extend(totals(&page.items));
        }
    }
    for mut seen in [rows, changes] {
        seen.sort_by(f64::total_cmp);
        assert_eq!(seen, (0..30).map(f64::from).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_session_token_is_passed_to_queries_and_feeds_of_another_client() {
    let account = TestAccount::start_with(|config| config.lag = "1h".parse().expect("a lag")).await;
    let orders = account.wide_orders().await;
    assert_eq!(orders.session_token().await.expect("known"), None, "nothing seen yet");
    fill(&orders).await;
    let token = orders.session_token().await.expect("known").expect("thirty writes");
    let account = Account::from_connection_string(&account.running.connection_string()).expect("valid");
    let reader = CosmosClient::builder(account).preferred_regions(["North Europe"]).build().expect("valid");
    let orders = reader.database("shop").container("orders");
    let count = || orders.query_items::<u32>("SELECT VALUE COUNT(1) FROM c");
    let behind: Vec<u32> = count().stream().try_collect().await.expect("one");
    let seen: Vec<u32> = count().session_token(&token).stream().try_collect().await.expect("one");
    assert_eq!((behind, seen), (vec![0], vec![30]));
    let feed = orders.change_feed::<Order>().from(ChangeFeedStart::Beginning).session_token(&token);
    let page = feed.start().await.expect("started").next_page().await.expect("a page");
    assert!(!page.items.is_empty() && !page.diagnostics.is_empty(), "{page:?}");
}

#[tokio::test]
async fn the_changes_of_one_partition_key_are_read() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    fill(&orders).await;
    let feed = orders.change_feed::<Order>().from(ChangeFeedStart::Beginning).partition_key("customer-3");
    let page = feed.start().await.expect("started").next_page().await.expect("a page");
    assert_eq!(totals(&page.items), [3.0, 13.0, 23.0]);
}
