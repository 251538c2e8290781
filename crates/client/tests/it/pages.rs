//! Pages of queries, feeds and lists as streams, and what each page tells about itself.

use std::num::NonZeroU32;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use perihelion::{ChangeFeedStart, ContainerClient, Query};

use crate::{Order, TestAccount};

/// A number of orders of ten customers, totals from 0.
async fn fill(orders: &ContainerClient, count: u32) {
    let order = |total: u32| Order {
        id: format!("o-{total}"),
        customer: format!("customer-{}", total % 10),
        total: f64::from(total),
    };
    let bulk = (0..count).map(order).fold(orders.bulk(), |bulk, order| bulk.create(&order.customer, &order));
    assert_eq!(bulk.await.failed().count(), 0);
}

fn seven() -> NonZeroU32 {
    NonZeroU32::new(7).expect("not zero")
}

#[tokio::test]
async fn pages_of_a_query_are_a_stream_and_keep_what_they_cost() {
    let account = TestAccount::start().await;
    let orders = account.wide_orders().await;
    fill(&orders, 30).await;
    let query = || orders.query_items::<Order>("SELECT * FROM c ORDER BY c.total").page_size(seven());
    let pages: Vec<_> = query().pages().await.expect("planned").try_collect().await.expect("pages");
    let totals: Vec<f64> = pages.iter().flat_map(|page| &page.items).map(|order| order.total).collect();
    assert_eq!(totals, (0..30).map(f64::from).collect::<Vec<_>>());
    let first = &pages[0];
    assert!(first.charge > 0.0 && !first.diagnostics.is_empty(), "{first:?}");
    let token = first.session_token.as_deref().expect("partitions responded");
    assert!(token.split(',').count() > 1, "a token of several partitions: {token}");
    assert!(pages.last().expect("pages").continuation.is_none());
    // The continuation of any page continues after that very page.
    for (index, page) in pages.iter().enumerate().take(pages.len() - 1) {
        let rest = query().continuation(page.continuation.clone().expect("there is more"));
        let rest: Vec<Order> = rest.session_token(token).stream().try_collect().await.expect("rows");
        let expected = pages[index + 1..].iter().flat_map(|page| &page.items);
        assert!(rest.iter().eq(expected), "after page {index}");
    }
}

#[tokio::test]
async fn a_page_survives_a_caller_that_stops_waiting() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    fill(&orders, 30).await;
    let mut pages =
        orders.query_items::<Order>("SELECT * FROM c").page_size(seven()).pages().await.expect("planned");
    let mut seen = Vec::new();
    loop {
        // Polled once and dropped, over and over: the request in progress goes on.
        let page = loop {
            if let Some(page) = futures::FutureExt::now_or_never(pages.next_page()) {
                break page.expect("a page");
            }
            tokio::task::yield_now().await;
        };
        let Some(page) = page else { break };
        seen.extend(page.items.iter().map(|order| order.total));
    }
    seen.sort_by(f64::total_cmp);
    assert_eq!(seen, (0..30).map(f64::from).collect::<Vec<_>>());
}

#[tokio::test]
async fn lists_are_streams_of_pages() {
    let account = TestAccount::start().await;
    for id in ["a", "b", "c"] {
        account.client.create_database(id).await.expect("created");
    }
    let pages: Vec<_> = account.client.list_databases().pages().try_collect().await.expect("pages");
    assert!(pages.iter().all(|page| page.charge() > 0.0 && !page.diagnostics().attempts().is_empty()));
    assert_eq!(pages.iter().map(|page| page.value().len()).sum::<usize>(), 3);
}

#[tokio::test]
async fn changes_are_a_stream_that_waits_for_more() {
    let account = TestAccount::start().await;
    let orders = account.wide_orders().await;
    fill(&orders, 30).await;
    let feed = || {
        let feed = orders.change_feed::<Order>().from(ChangeFeedStart::Beginning);
        feed.poll_interval(Duration::from_millis(20))
    };
    let changes = feed().stream();
    let mut changes = Box::pin(changes);
    let mut seen: Vec<f64> =
        changes.by_ref().take(30).map_ok(|order| order.total).try_collect().await.expect("changes");
    seen.sort_by(f64::total_cmp);
    assert_eq!(seen, (0..30).map(f64::from).collect::<Vec<_>>());
    let late = Order { id: "late".into(), customer: "customer-1".into(), total: 99.0 };
    orders.create_item("customer-1", &late).await.expect("created");
    assert_eq!(changes.next().await.expect("never ends").expect("a change"), late);

    let mut pages = feed().start().await.expect("started");
    let caught_up = |page: &perihelion::ChangesPage<Order>| page.caught_up;
    let mut count = 0;
    let last = loop {
        let page = pages.try_next().await.expect("a page").expect("never ends");
        if caught_up(&page) {
            break page;
        }
        assert!(
            page.charge > 0.0 && !page.diagnostics.is_empty() && page.session_token.is_some(),
            "{page:?}"
        );
        assert_eq!(page.continuation, pages.continuation());
        count += page.items.len();
    };
    assert_eq!(count, 31);
    let later = Order { total: 100.0, ..late };
    orders.upsert_item("customer-1", &later).await.expect("written");
    let rest = orders.change_feed::<Order>().continuation(last.continuation).stream();
    assert_eq!(Box::pin(rest).next().await.expect("never ends").expect("a change"), later);
}

#[tokio::test]
async fn a_stream_ends_with_its_first_error() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    fill(&orders, 3).await;
    let mut rows = Box::pin(orders.query_items::<u32>("SELECT * FROM c").stream());
    assert!(rows.next().await.expect("an error").is_err());
    assert!(rows.next().await.is_none());
}

#[tokio::test]
async fn metrics_of_a_query_are_decoded_and_added_up_over_partitions() {
    let account = TestAccount::start().await;
    let orders = account.wide_orders().await;
    fill(&orders, 30).await;
    let query = || {
        orders
            .query_items::<Order>(Query::new("SELECT * FROM c WHERE c.total >= @n").with_parameter("@n", 10))
    };
    let pages: Vec<_> = query()
        .query_metrics()
        .index_metrics()
        .pages()
        .await
        .expect("planned")
        .try_collect()
        .await
        .expect("pages");
    let metrics: Vec<_> = pages.iter().filter_map(|page| page.query_metrics).collect();
    assert_eq!(metrics.iter().map(|metrics| metrics.output_documents).sum::<u64>(), 20);
    assert!(metrics.iter().all(|metrics| metrics.retrieved_documents >= metrics.output_documents));
    assert!(metrics.iter().any(|metrics| metrics.output_bytes > 0));
    let index = pages.iter().find_map(|page| page.index_metrics.clone()).expect("asked for");
    assert!(index.utilized.iter().any(|index| index.paths == ["/total/?"]), "{index:?}");
    let plain = query().pages().await.expect("planned").next_page().await.expect("a page").expect("rows");
    assert!(plain.query_metrics.is_none() && plain.index_metrics.is_none());
}
