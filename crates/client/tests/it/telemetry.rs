//! The example of telemetry against a collector that decodes what it is sent.
//!
//! The tests use the exporters of `examples/telemetry.rs` itself, over sockets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{Metric, number_data_point};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use perihelion::faults::{FaultInjector, FaultRule, OperationKind};
use perihelion::{Account, CosmosClient};
use prost::Message;

use crate::TestAccount;
use crate::canned_server::{CannedServer, response};

#[allow(dead_code, reason = "its main, and items of the shop that it does not use")]
#[path = "../../examples/telemetry.rs"]
mod example;

/// A collector: what it was sent, decoded.
struct Collector {
    server: CannedServer,
    received: Arc<Mutex<Received>>,
}

#[derive(Clone, Default)]
struct Received {
    spans: Vec<Span>,
    /// The newest state of each metric: sums are cumulative.
    metrics: BTreeMap<String, Metric>,
}

/// One series of a histogram.
struct HistogramPoint {
    about: BTreeMap<String, String>,
    count: u64,
    sum: f64,
    bounds: Vec<f64>,
}

impl Collector {
    async fn start() -> Collector {
        let received = Arc::new(Mutex::new(Received::default()));
        let collected = Arc::clone(&received);
        let server = CannedServer::start_with_bodies(move |line, body| {
            let mut received = collected.lock().expect("no test panics here");
            match line.split(' ').nth(1) {
                Some("/v1/traces") => received.add_spans(body),
                Some("/v1/metrics") => received.add_metrics(body),
                _ => return response("404 Not Found", "", ""),
            }
            response("200 OK", "content-type: application/x-protobuf\r\n", "")
        });
        Collector { server: server.await, received }
    }

    /// Runs `work` with a client whose spans and metrics are sent here, and returns what arrived. The client is dropped
    /// before the last of it is sent if `work` drops it.
    async fn collect(
        &self,
        account: &TestAccount,
        work: impl AsyncFnOnce(CosmosClient, &FaultInjector),
    ) -> Received {
        let telemetry = example::Telemetry::to_collector(self.server.endpoint()).expect("valid");
        let faults = FaultInjector::new(7);
        let connection =
            Account::from_connection_string(&account.running.connection_string()).expect("valid");
        let client = CosmosClient::builder(connection)
            .faults(&faults)
            .application("shop")
            .meter_provider(&telemetry.metrics)
            .build()
            .expect("valid");
        let listening = tracing::subscriber::set_default(telemetry.subscriber());
        work(client, &faults).await;
        drop(listening);
        telemetry.shut_down().await.expect("everything is sent");
        self.received.lock().expect("no test panics here").clone()
    }
}

impl Received {
    fn add_spans(&mut self, body: &[u8]) {
        let request = ExportTraceServiceRequest::decode(body).expect("protobuf");
        let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
        self.spans.extend(scopes.flat_map(|scope| scope.spans));
    }

    fn add_metrics(&mut self, body: &[u8]) {
        let request = ExportMetricsServiceRequest::decode(body).expect("protobuf");
        let scopes = request.resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
        for scope in scopes {
            assert_eq!(scope.scope.expect("a scope").name, "perihelion");
            self.metrics.extend(scope.metrics.into_iter().map(|metric| (metric.name.clone(), metric)));
        }
    }

    /// The spans of one name, oldest first.
    fn named(&self, name: &str) -> Vec<&Span> {
        let mut spans: Vec<&Span> = self.spans.iter().filter(|span| span.name == name).collect();
        spans.sort_by_key(|span| span.start_time_unix_nano);
        spans
    }

    /// The spans directly below another one, oldest first.
    fn children(&self, parent: &Span) -> Vec<&Span> {
        let is_child =
            |span: &&Span| span.parent_span_id == parent.span_id && span.trace_id == parent.trace_id;
        let mut spans: Vec<&Span> = self.spans.iter().filter(is_child).collect();
        spans.sort_by_key(|span| span.start_time_unix_nano);
        spans
    }

    /// The points of a histogram.
    fn histogram(&self, name: &str) -> Vec<HistogramPoint> {
        let Some(Data::Histogram(histogram)) = &self.metrics[name].data else {
            panic!("{name} is no histogram")
        };
        let points = histogram.data_points.iter();
        points
            .map(|point| {
                assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count);
                let sum = point.sum.expect("a sum");
                HistogramPoint {
                    about: attributes(&point.attributes),
                    count: point.count,
                    sum,
                    bounds: point.explicit_bounds.clone(),
                }
            })
            .collect()
    }

    /// The points of a counter or a gauge, by their attributes.
    fn numbers(&self, name: &str) -> Vec<(BTreeMap<String, String>, i64)> {
        let points = match &self.metrics[name].data {
            Some(Data::Sum(sum)) => &sum.data_points,
            Some(Data::Gauge(gauge)) => &gauge.data_points,
            other => panic!("{name}: {other:?}"),
        };
        let number = |value: &Option<number_data_point::Value>| match value {
            Some(number_data_point::Value::AsInt(number)) => *number,
            other => panic!("{name}: {other:?}"),
        };
        points.iter().map(|point| (attributes(&point.attributes), number(&point.value))).collect()
    }
}

fn attributes(pairs: &[KeyValue]) -> BTreeMap<String, String> {
    pairs.iter().map(|pair| (pair.key.clone(), text(pair.value.as_ref()))).collect()
}

/// A value as text; a list as its texts with commas between.
fn text(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::DoubleValue(number)) => number.to_string(),
        Some(Value::BoolValue(value)) => value.to_string(),
        Some(Value::ArrayValue(list)) => {
            list.values.iter().map(|value| text(Some(value))).collect::<Vec<_>>().join(",")
        }
        other => panic!("{other:?}"),
    }
}

/// An attribute of a span.
fn attribute(span: &Span, name: &str) -> Option<String> {
    attributes(&span.attributes).remove(name)
}

#[tokio::test]
async fn the_example_sends_spans_and_metrics_to_a_collector() {
    let (account, collector) = (TestAccount::start().await, Collector::start().await);
    let received = collector
        .collect(&account, async |client, _| example::run(&client).await.expect("the example runs"))
        .await;
    for name in [
        "create_database",
        "create_container shop",
        "upsert_item orders",
        "read_item orders",
        "query_items orders",
    ] {
        assert!(!received.named(name).is_empty(), "no span {name}: {:?}", names(&received));
    }
    let read = received.named("read_item orders")[0];
    assert_eq!((read.kind(), read.parent_span_id.is_empty()), (SpanKind::Client, true));
    assert!(read.status.as_ref().is_none_or(|status| status.code() == StatusCode::Unset));
    let seen = attributes(&read.attributes);
    for (name, value) in [
        ("db.system.name", "azure.cosmosdb"),
        ("db.operation.name", "read_item"),
        ("db.namespace", "shop"),
        ("db.collection.name", "orders"),
        ("db.response.status_code", "200"),
        ("azure.cosmosdb.response.sub_status_code", "0"),
        ("azure.cosmosdb.connection.mode", "gateway"),
        ("azure.cosmosdb.consistency.level", "Session"),
        ("azure.cosmosdb.operation.contacted_regions", "[\"West US\"]"),
        ("azure.resource_provider.namespace", "Microsoft.DocumentDB"),
        ("perihelion.attempts", "1"),
    ] {
        assert_eq!(seen.get(name).map(String::as_str), Some(value), "{name} in {seen:?}");
    }
    assert!(
        seen["user_agent.original"].starts_with("perihelion/")
            && seen["user_agent.original"].ends_with(" shop")
    );
    assert!(seen["azure.cosmosdb.operation.request_charge"].parse::<f64>().expect("a number") > 0.0);
    assert_eq!(
        attribute(received.named("query_items orders")[0], "db.response.returned_rows").as_deref(),
        Some("1")
    );

    // The request of the attempt is a span of the HTTP client.
    let [attempt] = received.children(read)[..] else { panic!("one attempt") };
    assert_eq!((attempt.name.as_str(), attempt.kind()), ("attempt West US", SpanKind::Internal));
    assert_eq!(attribute(attempt, "perihelion.attempt.outcome").as_deref(), Some("response"));
    let [request] = received.children(attempt)[..] else { panic!("one request") };
    assert_eq!(request.name, "http.request");
    // The requests to the collector are not spans.
    let attempts = received.spans.iter().filter(|span| span.name.starts_with("attempt ")).count();
    assert_eq!(received.named("http.request").len(), attempts);
}

#[tokio::test]
async fn failovers_throttling_and_errors_are_in_spans_and_metrics() {
    let (account, collector) = (TestAccount::start().await, Collector::start().await);
    account.orders().await;
    let received = collector
        .collect(&account, async |client, faults| {
            let orders = client.database("shop").container("orders");
            orders.create_item("ada", &crate::order("o-1", 1.0)).await.expect("created");
            let throttle = FaultRule::throttle(Duration::from_millis(1)).on(OperationKind::Read);
            faults.add(throttle.in_container("shop", "orders").named("busy").times(2)).expect("a rule");
            orders.read_item::<crate::Order>("ada", "o-1").await.expect("read in the end");
            let down = FaultRule::status(503, 0).on(OperationKind::Read).in_region("West US");
            faults.add(down.in_container("shop", "orders").named("down").times(1)).expect("a rule");
            orders.read_item::<crate::Order>("ada", "o-1").await.expect("read in another region");
            orders.read_item::<crate::Order>("ada", "o-2").await.expect_err("there is none");
        })
        .await;
    let reads = received.named("read_item orders");
    let [throttled, failed_over, missing] = reads[..] else { panic!("three reads: {:?}", names(&received)) };

    let attempts = received.children(throttled);
    let statuses: Vec<_> = attempts.iter().map(|span| attribute(span, "db.response.status_code")).collect();
    assert_eq!(statuses, ["429", "429", "200"].map(|status| Some(status.to_owned())));
    let resent: Vec<_> = attempts.iter().map(|span| attribute(span, "http.request.resend_count")).collect();
    assert_eq!(resent, [None, Some("1".to_owned()), Some("2".to_owned())]);
    assert_eq!(attribute(throttled, "perihelion.throttled").as_deref(), Some("2"));
    let warnings: Vec<&str> = throttled.events.iter().map(|event| event.name.as_str()).collect();
    assert!(warnings.contains(&"request throttled"), "{warnings:?}");

    let attempts = received.children(failed_over);
    let [first, second] = attempts[..] else { panic!("two attempts") };
    assert_eq!(attribute(first, "perihelion.region").as_deref(), Some("West US"));
    assert_eq!(attribute(first, "error.type").as_deref(), Some("503"));
    assert_eq!(first.status.as_ref().map(|status| status.code()), Some(StatusCode::Error));
    let elsewhere = attribute(second, "perihelion.region").expect("a region");
    assert_ne!(elsewhere, "West US");
    assert_eq!(attribute(second, "perihelion.attempt.context").as_deref(), Some("failover"));
    assert_eq!(attribute(failed_over, "perihelion.failovers").as_deref(), Some("1"));
    let contacted = attribute(failed_over, "azure.cosmosdb.operation.contacted_regions");
    assert_eq!(contacted, Some(format!("[\"West US\", \"{elsewhere}\"]")));
    assert!(failed_over.status.as_ref().is_none_or(|status| status.code() == StatusCode::Unset));

    assert_eq!(attribute(missing, "error.type").as_deref(), Some("404"));
    assert_eq!(missing.status.as_ref().map(|status| status.code()), Some(StatusCode::Error));

    let counted = |name: &str| received.numbers(name).iter().map(|(_, count)| count).sum::<i64>();
    assert_eq!(counted("perihelion.client.throttled"), 2);
    assert_eq!(counted("perihelion.client.failovers"), 1);
    assert_eq!(counted("perihelion.client.retries"), 3);
    let durations = received.histogram("db.client.operation.duration");
    let reads: Vec<_> =
        durations.iter().filter(|point| point.about["db.operation.name"] == "read_item").collect();
    assert_eq!(reads.iter().map(|point| point.count).sum::<u64>(), 3);
    let failed = reads.iter().find(|point| point.about.contains_key("error.type")).expect("one failed");
    let [error, status] = ["error.type", "db.response.status_code"].map(|name| failed.about[name].as_str());
    assert_eq!((error, status), ("404", "404"));
    let regions = reads.iter().map(|point| &point.about["azure.cosmosdb.operation.contacted_regions"]);
    assert!(regions.into_iter().any(|regions| *regions == format!("West US,{elsewhere}")));
}

#[tokio::test]
async fn the_metrics_are_those_of_the_page() {
    let (account, collector) = (TestAccount::start().await, Collector::start().await);
    account.orders().await;
    let mut existing = None;
    let received = collector
        .collect(&account, async |client, faults| {
            let orders = client.database("shop").container("orders");
            orders.create_item("ada", &crate::order("o-1", 1.0)).await.expect("created");
            // Something of everything: throttled, slow and hedged, failed and in another region.
            faults.add(FaultRule::throttle(Duration::from_millis(1)).named("busy").times(1)).expect("a rule");
            orders.read_item::<crate::Order>("ada", "o-1").await.expect("read in the end");
            faults.clear();
            let down = FaultRule::status(503, 0).on(OperationKind::Read).in_region("West US");
            faults.add(down.named("down").times(1)).expect("a rule");
            orders.read_item::<crate::Order>("ada", "o-1").await.expect("read in another region");
            faults.clear();
            let slow = FaultRule::delay(Duration::from_secs(20)).on(OperationKind::Read).in_region("West US");
            faults.add(slow.named("slow")).expect("a rule");
            orders.read_item::<crate::Order>("ada", "o-1").await.expect("read by a hedged attempt");
            faults.clear();
            example::run(&client).await.expect("the example runs");
            // The gauges of a client are read, and it is active, as long as it exists.
            existing = Some(client);
        })
        .await;
    drop(existing);
    let page = include_str!("../../../../docs/telemetry.md");
    let table = page.split_once("| metric | instrument | unit |").expect("a table").1;
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let listed: BTreeSet<[String; 3]> = rows
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            [cells[0], cells[1], cells[2]].map(|cell| cell.trim_matches('`').to_owned())
        })
        .collect();
    let kind = |metric: &Metric| match &metric.data {
        Some(Data::Histogram(_)) => "histogram",
        Some(Data::Gauge(_)) => "gauge",
        Some(Data::Sum(sum)) if sum.is_monotonic => "counter",
        Some(Data::Sum(_)) => "up-down counter",
        other => panic!("{other:?}"),
    };
    let sent: BTreeSet<[String; 3]> = received
        .metrics
        .values()
        .map(|metric| [metric.name.clone(), kind(metric).to_owned(), metric.unit.clone()])
        .collect();
    assert_eq!(sent, listed);

    let charge = &received.histogram("azure.cosmosdb.client.operation.request_charge")[0];
    assert!(charge.sum > 0.0);
    assert_eq!(charge.bounds, [1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0]);
    let rows = received.histogram("db.client.response.returned_rows");
    assert!(rows.iter().any(|point| point.about["db.operation.name"] == "query_items" && point.sum == 1.0));
    assert_eq!(received.numbers("azure.cosmosdb.client.active_instance.count")[0].1, 1);
    let regions: BTreeSet<String> = received
        .numbers("perihelion.client.region.unavailable")
        .into_iter()
        .map(|(about, _)| about["perihelion.region"].clone())
        .collect();
    assert_eq!(regions, ["East US", "North Europe", "West US"].map(str::to_owned).into());
}

#[tokio::test]
async fn a_client_that_is_dropped_is_no_longer_active() {
    let (account, collector) = (TestAccount::start().await, Collector::start().await);
    let received = collector
        .collect(&account, async |client, _| {
            client.create_database("shop").await.expect("created");
        })
        .await;
    assert_eq!(received.numbers("azure.cosmosdb.client.active_instance.count")[0].1, 0);
}

fn names(received: &Received) -> BTreeSet<&str> {
    received.spans.iter().map(|span| span.name.as_str()).collect()
}
