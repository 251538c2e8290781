//! Metrics of a client as instruments of OpenTelemetry. Feature `telemetry`.
//!
//! Give the builder a meter provider, and every operation of the client is recorded: duration, request charge and returned
//! rows as histograms, retries, failovers, hedges and throttled responses as counters, circuit breakers and regions as
//! gauges. Names, units and attributes are those of OpenTelemetry's conventions for Cosmos DB; `docs/telemetry.md` in the
//! repository has the table.
//!
//! ```
//! use perihelion::telemetry::opentelemetry::global;
//! use perihelion::{Account, CosmosClient};
//!
//! let account = Account::from_connection_string("AccountEndpoint=http://localhost:8081/;AccountKey=a2V5")?;
//! let client = CosmosClient::builder(account).meter_provider(&*global::meter_provider()).build()?;
//! # Ok::<(), perihelion::Error>(())
//! ```
//!
//! Spans and events need no feature: see [Following a call](crate#following-a-call).

use std::sync::Arc;

use driver::telemetry::{AttributeValue, OperationEnded, OperationObserver, names};
use driver::{BreakerState, CosmosDriver, Endpoint};
use opentelemetry::metrics::{Counter, Histogram, Meter, MeterProvider, UpDownCounter};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue, Value};

/// The version of OpenTelemetry's interface that the instruments are of.
pub use opentelemetry;

/// The bounds of the histogram of durations, in seconds, as the conventions advise.
const DURATION_BOUNDARIES: [f64; 9] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];
/// The bounds of the histogram of request charges, as the conventions advise.
const CHARGE_BOUNDARIES: [f64; 9] = [1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0];
/// The bounds of the histogram of returned rows, as the conventions advise.
const ROWS_BOUNDARIES: [f64; 13] =
    [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10000.0];

/// The meter of this crate, of a provider.
pub(crate) fn meter(provider: &dyn MeterProvider) -> Meter {
    let scope = InstrumentationScope::builder(env!("CARGO_PKG_NAME")).with_version(env!("CARGO_PKG_VERSION"));
    provider.meter_with_scope(scope.build())
}

/// Records the operations of a driver, and counts it as long as it exists.
pub(crate) fn record_metrics(driver: &CosmosDriver, meter: &Meter) {
    let endpoint = driver.account().global().clone();
    let account = account_attributes(&endpoint);
    observe_state(driver, meter, &account);
    driver.set_observer(Arc::new(ClientInstruments::new(meter, account)));
}

/// The instruments of one client. They live as long as its driver does, which is how active instances are counted.
#[derive(Debug)]
struct ClientInstruments {
    duration: Histogram<f64>,
    request_charge: Histogram<f64>,
    returned_rows: Histogram<u64>,
    retries: Counter<u64>,
    failovers: Counter<u64>,
    hedges: Counter<u64>,
    throttled: Counter<u64>,
    active_instances: UpDownCounter<i64>,
    account: [KeyValue; 2],
}

impl ClientInstruments {
    fn new(meter: &Meter, account: [KeyValue; 2]) -> ClientInstruments {
        let counter = |name: &'static str, unit: &'static str, description: &'static str| {
            meter.u64_counter(name).with_unit(unit).with_description(description).build()
        };
        let active_instances = meter
            .i64_up_down_counter(names::METRIC_ACTIVE_INSTANCES)
            .with_unit("{instance}")
            .with_description("Number of active client instances")
            .build();
        active_instances.add(1, &account);
        ClientInstruments {
            duration: meter
                .f64_histogram(names::METRIC_OPERATION_DURATION)
                .with_unit("s")
                .with_description("Duration of database client operations")
                .with_boundaries(DURATION_BOUNDARIES.to_vec())
                .build(),
            request_charge: meter
                .f64_histogram(names::METRIC_REQUEST_CHARGE)
                .with_unit("{request_unit}")
                .with_description("Request units consumed by the operation")
                .with_boundaries(CHARGE_BOUNDARIES.to_vec())
                .build(),
            returned_rows: meter
                .u64_histogram(names::METRIC_RETURNED_ROWS)
                .with_unit("{row}")
                .with_description("The number of items of a page of a query or feed")
                .with_boundaries(ROWS_BOUNDARIES.to_vec())
                .build(),
            retries: counter(
                names::METRIC_RETRIES,
                "{attempt}",
                "Attempts after the first, hedged ones not counted",
            ),
            failovers: counter(
                names::METRIC_FAILOVERS,
                "{attempt}",
                "Attempts in another region than the one before",
            ),
            hedges: counter(names::METRIC_HEDGES, "{attempt}", "Second attempts beside a slow one"),
            throttled: counter(names::METRIC_THROTTLED, "{response}", "Responses with status 429"),
            active_instances,
            account,
        }
    }
}

impl OperationObserver for ClientInstruments {
    fn operation_ended(&self, ended: &OperationEnded<'_>) {
        let attributes: Vec<KeyValue> = ended
            .attributes()
            .into_iter()
            .map(|(name, value)| KeyValue::new(name, otel_value(value)))
            .collect();
        self.duration.record(ended.elapsed().as_secs_f64(), &attributes);
        if let Some(charge) = ended.request_charge() {
            self.request_charge.record(charge, &attributes);
        }
        if let Some(rows) = ended.returned_rows() {
            self.returned_rows.record(rows, &attributes);
        }
        let totals = ended.totals();
        for (counter, count) in [
            (&self.retries, ended.retries()),
            (&self.failovers, totals.failovers),
            (&self.hedges, totals.hedges),
            (&self.throttled, totals.throttled),
        ] {
            if count > 0 {
                counter.add(count.into(), &attributes);
            }
        }
    }
}

impl Drop for ClientInstruments {
    fn drop(&mut self) {
        self.active_instances.add(-1, &self.account);
    }
}

/// Gauges of the driver's state. Their callbacks outlive the driver, so they do not keep it alive.
fn observe_state(driver: &CosmosDriver, meter: &Meter, account: &[KeyValue; 2]) {
    let about = |account: &[KeyValue; 2], endpoint: &Endpoint| {
        let [address, port] = account.clone();
        [address, port, KeyValue::new(names::REGION, endpoint.region().to_string())]
    };
    let (weak, account_of_breakers) = (driver.downgrade(), account.clone());
    // The handles of gauges may be dropped: the meter keeps their callbacks.
    let _breakers = meter
        .u64_observable_gauge(names::METRIC_BREAKER_OPEN)
        .with_unit("{breaker}")
        .with_description("Circuit breakers that are open in the region")
        .with_callback(move |gauge| {
            let Some(driver) = weak.upgrade() else { return };
            let partitions = driver.partition_state();
            for endpoint in driver.account().reads() {
                let open = partitions.breakers().filter(|(key, breaker)| {
                    &key.region == endpoint.region() && matches!(breaker.state, BreakerState::Open { .. })
                });
                gauge.observe(open.count() as u64, &about(&account_of_breakers, endpoint));
            }
        })
        .build();
    let (weak, account_of_regions) = (driver.downgrade(), account.clone());
    let _regions = meter
        .u64_observable_gauge(names::METRIC_REGION_UNAVAILABLE)
        .with_unit("{region}")
        .with_description("1 while operations avoid the region")
        .with_callback(move |gauge| {
            let Some(driver) = weak.upgrade() else { return };
            let state = driver.account();
            for endpoint in state.reads() {
                let avoided = state.is_unavailable(endpoint.region(), false);
                gauge.observe(avoided.into(), &about(&account_of_regions, endpoint));
            }
        })
        .build();
}

fn account_attributes(endpoint: &Endpoint) -> [KeyValue; 2] {
    let url = endpoint.url();
    let port = url.port_or_known_default().unwrap_or_default();
    [
        KeyValue::new(names::SERVER_ADDRESS, url.host_str().unwrap_or_default().to_owned()),
        KeyValue::new(names::SERVER_PORT, i64::from(port)),
    ]
}

fn otel_value(value: AttributeValue) -> Value {
    match value {
        AttributeValue::Word(word) => word.into(),
        AttributeValue::Text(text) => text.into(),
        AttributeValue::List(texts) => {
            Value::Array(Array::String(texts.into_iter().map(StringValue::from).collect()))
        }
        AttributeValue::Integer(number) => number.into(),
        AttributeValue::Number(number) => number.into(),
        // The list is open for later; whatever comes is shown as it is written.
        other => format!("{other:?}").into(),
    }
}
