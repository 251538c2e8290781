//! Spans and events of operations, as a subscriber receives them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use emulator::faults::{DownMode, FaultRule, OperationKind as Asked};
use perihelion_driver::options::{
    CircuitBreakerOptions, DriverOptions, HedgingOptions, HedgingThreshold, OperationOptions,
};
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Id, span};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use crate::test_account::{TestAccount, WEST, run, within, without_hedging};

/// A span as it is when it is closed.
#[derive(Clone, Debug, Default)]
struct RecordedSpan {
    name: &'static str,
    parent: Option<u64>,
    fields: BTreeMap<&'static str, String>,
    /// The names of all fields, recorded or not.
    names: BTreeSet<&'static str>,
}

/// An event: its level, its message, and the text of its fields.
#[derive(Clone, Debug)]
struct RecordedEvent {
    level: tracing::Level,
    message: String,
    fields: BTreeMap<&'static str, String>,
}

/// The spans and events of the driver while it exists, on this thread.
struct Recording {
    state: Arc<Mutex<State>>,
    _listening: DefaultGuard,
}

#[derive(Default)]
struct State {
    spans: BTreeMap<u64, RecordedSpan>,
    closed: Vec<u64>,
    events: Vec<RecordedEvent>,
}

struct Recorder(Arc<Mutex<State>>);

impl Recording {
    fn start() -> Recording {
        let state = Arc::new(Mutex::new(State::default()));
        // What `RUST_LOG=perihelion=debug` asks for.
        let layer = Recorder(Arc::clone(&state)).with_filter(EnvFilter::new("perihelion=debug"));
        let subscriber = tracing_subscriber::registry().with(layer);
        Recording { state, _listening: tracing::subscriber::set_default(subscriber) }
    }

    fn spans(&self, name: &str) -> Vec<(u64, RecordedSpan)> {
        let state = self.state.lock().expect("no panic");
        let all = state.spans.iter().filter(|(_, span)| span.name == name);
        all.map(|(id, span)| (*id, span.clone())).collect()
    }

    /// The last operation of a name, and its attempts.
    fn operation(&self, name: &str) -> (RecordedSpan, Vec<RecordedSpan>) {
        let mut operations = self.spans("operation").into_iter();
        let (id, operation) =
            operations.rfind(|(_, span)| span.fields["db.operation.name"] == name).expect("an operation");
        let attempts = self.spans("attempt").into_iter().map(|(_, span)| span);
        (operation, attempts.filter(|span| span.parent == Some(id)).collect())
    }

    fn events(&self, message: &str) -> Vec<RecordedEvent> {
        let state = self.state.lock().expect("no panic");
        state.events.iter().filter(|event| event.message == message).cloned().collect()
    }

    fn are_all_closed(&self, name: &str) -> bool {
        let state = self.state.lock().expect("no panic");
        let mut named = state.spans.iter().filter(|(_, span)| span.name == name);
        named.all(|(id, _)| state.closed.contains(id))
    }
}

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recorder {
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = BTreeMap::new();
        attributes.record(&mut Fields(&mut fields));
        let parent = context.span(id).and_then(|span| span.parent()).map(|span| span.id().into_u64());
        let names = attributes.metadata().fields().iter().map(|field| field.name()).collect();
        let span = RecordedSpan { name: attributes.metadata().name(), parent, fields, names };
        self.0.lock().expect("no panic").spans.insert(id.into_u64(), span);
    }

    fn on_record(&self, id: &Id, values: &span::Record<'_>, _: Context<'_, S>) {
        if let Some(span) = self.0.lock().expect("no panic").spans.get_mut(&id.into_u64()) {
            values.record(&mut Fields(&mut span.fields));
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = BTreeMap::new();
        event.record(&mut Fields(&mut fields));
        let message = fields.remove("message").unwrap_or_default();
        let event = RecordedEvent { level: *event.metadata().level(), message, fields };
        self.0.lock().expect("no panic").events.push(event);
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        self.0.lock().expect("no panic").closed.push(id.into_u64());
    }
}

fn hedging_after(threshold: Duration) -> DriverOptions {
    let threshold = HedgingThreshold::after(threshold).expect("within the gates");
    let hedging = HedgingOptions::new().with_threshold(threshold);
    DriverOptions::new().with_operation(OperationOptions::new().with_hedging(hedging))
}

#[tokio::test]
async fn a_hedged_read_has_a_span_for_each_attempt_and_the_slow_one_is_abandoned() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver_with(hedging_after(Duration::from_millis(50)));
    run(&driver, &test_account.create_item("a")).await.expect("made");
    let slow = FaultRule::delay(Duration::from_secs(15)).on(Asked::Read).in_region(WEST);
    test_account.running.faults().add(slow).expect("a rule");
    let recording = Recording::start();
    run(&driver, &test_account.read("a")).await.expect("read");
    let (operation, attempts) = recording.operation("read_item");
    assert_eq!(operation.fields["perihelion.hedges"], "1", "{operation:?}");
    assert!(!operation.fields.contains_key("error.type"), "{operation:?}");
    let outcomes: Vec<[&str; 2]> = attempts
        .iter()
        .map(|attempt| {
            ["perihelion.attempt.context", "perihelion.attempt.outcome"].map(|name| &*attempt.fields[name])
        })
        .collect();
    assert_eq!(outcomes, [["initial", "abandoned"], ["hedging", "response"]]);
    assert_eq!(recording.events("request abandoned").len(), 1);
    assert!(recording.are_all_closed("operation") && recording.are_all_closed("attempt"));
}

#[tokio::test]
async fn a_dropped_operation_is_recorded_as_cancelled() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver_with(without_hedging());
    run(&driver, &test_account.create_item("a")).await.expect("made");
    let slow = FaultRule::delay(Duration::from_secs(15)).on(Asked::Read);
    test_account.running.faults().add(slow).expect("a rule");
    let recording = Recording::start();
    let read = test_account.read("a");
    let started = async {
        while recording.events("request started").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        result = run(&driver, &read) => panic!("slow: {result:?}"),
        () = started => {}
    }
    let (operation, attempts) = recording.operation("read_item");
    assert_eq!(operation.fields["error.type"], "cancelled");
    assert_eq!(attempts[0].fields["perihelion.attempt.outcome"], "abandoned");
    assert_eq!(recording.events("operation cancelled").len(), 1);
    assert!(recording.are_all_closed("operation") && recording.are_all_closed("attempt"));
}

#[tokio::test]
async fn a_breaker_that_opens_is_a_warning_and_its_recovery_an_event() {
    let test_account = TestAccount::start().await;
    let breaker = CircuitBreakerOptions::new().with_unavailability_probe_delay(Duration::from_millis(100));
    let driver = test_account.driver_with(without_hedging().with_circuit_breaker(breaker));
    run(&driver, &test_account.create_item("a")).await.expect("made");
    let recording = Recording::start();
    let rule = FaultRule::status(503, 0).on(Asked::Read).in_region(WEST);
    let rule = test_account.running.faults().add(rule).expect("a rule");
    for _ in 0..4 {
        run(&driver, &test_account.read("a")).await.expect("read in another region");
    }
    let opened = recording.events("circuit breaker opened");
    let [opened] = &opened[..] else { panic!("once: {opened:?}") };
    assert_eq!((opened.level, opened.fields["region"].as_str()), (tracing::Level::WARN, WEST));
    assert_eq!(
        (opened.fields["container"].as_str(), opened.fields["access"].as_str()),
        ("dbs/d/colls/c", "read")
    );
    let diverted = recording.events("attempt goes to another region");
    let [.., diverted] = &diverted[..] else { panic!("later reads avoid the region") };
    assert_eq!(diverted.fields["avoided"], WEST);
    assert!(diverted.fields["cause"].contains("breaker"), "{diverted:?}");
    test_account.running.faults().remove(&rule).expect("removed");
    let recovered = async {
        while recording.events("circuit breaker closed").is_empty() {
            run(&driver, &test_account.read("a")).await.expect("read");
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), recovered).await.expect("its traffic comes back");
    assert_eq!(recording.events("circuit breaker half open").len(), 1);
    assert_eq!(recording.events("circuit breaker closed")[0].level, tracing::Level::INFO);
    let reasons = recording.events("attempt is followed by another");
    assert!(reasons.iter().all(|event| !event.fields["reason"].is_empty()) && reasons.len() >= 2);
}

#[tokio::test]
async fn a_region_that_is_left_is_a_warning_once_and_its_return_an_event() {
    let test_account = TestAccount::start().await;
    let breaker = CircuitBreakerOptions::new().with_unavailability_probe_delay(Duration::from_millis(100));
    let driver = test_account.driver_with(without_hedging().with_circuit_breaker(breaker));
    run(&driver, &test_account.create_item("a")).await.expect("made");
    let recording = Recording::start();
    test_account.running.region(WEST).expect("a region").down(DownMode::Refused).expect("down");
    for _ in 0..4 {
        run(&driver, &test_account.read("a")).await.expect("read in another region");
    }
    let left = recording.events("region marked unavailable");
    let [left] = &left[..] else { panic!("once: {left:?}") };
    assert_eq!((left.level, left.fields["region"].as_str()), (tracing::Level::WARN, WEST));
    assert_eq!(left.fields["what"], "reads and writes");
    test_account.running.region(WEST).expect("a region").up().expect("up");
    let back = async {
        while recording.events("region gets requests again").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), back).await.expect("a probe finds it");
    assert_eq!(recording.events("region gets requests again")[0].fields["region"], WEST);
}

#[tokio::test]
async fn the_page_lists_the_spans_of_the_http_client() {
    let test_account = TestAccount::start().await;
    let recording = Recording::start();
    let driver = test_account.driver();
    run(&driver, &test_account.create_item("a")).await.expect("made");
    let page = include_str!("../../../../docs/telemetry.md");
    for name in ["http.request", "http.connect"] {
        let (_, below) = page.split_once(&format!("\n### `{name}`\n")).expect("a heading");
        let rows = below.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
        let rows = rows.take_while(|line| line.starts_with('|'));
        let listed: BTreeSet<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
        assert_eq!(recording.spans(name)[0].1.names, listed, "{name}");
    }
    let attempts: BTreeSet<u64> = recording.spans("attempt").into_iter().map(|(id, _)| id).collect();
    let requests = recording.spans("http.request");
    assert!(requests.iter().all(|(_, span)| span.parent.is_some_and(|parent| attempts.contains(&parent))));
}

/// A writer whose text the test reads.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_log_at_debug_has_every_step_of_a_call_and_no_secret() {
    let test_account = TestAccount::start().await;
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new("perihelion=debug"))
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let listening = tracing::subscriber::set_default(subscriber);
    let driver = test_account.driver_with(without_hedging());
    run(&driver, &test_account.upsert("secret-key", 4711)).await.expect("written");
    let busy = FaultRule::throttle(Duration::from_millis(1)).on(Asked::Read).times(1);
    test_account.running.faults().add(busy).expect("a rule");
    run(&driver, &test_account.read("secret-key")).await.expect("read");
    driver
        .execute_operation(&test_account.read("missing"), &within(Duration::from_secs(5)))
        .await
        .expect_err("none");
    drop(listening);
    let log = String::from_utf8(lines.0.lock().expect("no panic").clone()).expect("text");
    for part in [
        "account has these regions",
        "request started",
        "connection=new HTTP/1.1 connection",
        "connected after",
        "WARN",
        "request throttled",
        "status=429",
        "response received status=200",
        "operation succeeded summary=read_item in",
        "operation failed error=",
        "perihelion.attempt.context=\"initial\"",
    ] {
        assert!(log.contains(part), "no {part:?} in:\n{log}");
    }
    let key = protocol::authorization::EMULATOR_KEY;
    for secret in [key, "4711", "type=master", "type%3Dmaster", "\"pk\"", "[\"secret-key\"]"] {
        assert!(!log.contains(secret), "{secret:?} in:\n{log}");
    }
}
