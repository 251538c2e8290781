//! The page about telemetry says what the code does: `docs/telemetry.md` against the metadata of spans and events.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use azure_core::http::Url;
use bytes::Bytes;
use perihelion_http::trace::{RequestTrace, Sent};
use protocol::partition::PartitionKey;
use protocol::partition_range::RangeId;
use protocol::status::{Status, SubStatus};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

use super::operation_span::ClientIdentity;
use super::{AttemptSpan, OperationSpan, events};
use crate::clock::Clock;
use crate::diagnostics::{Diagnostics, ExecutionContext, SendRecord};
use crate::error::{Error, ErrorKind};
use crate::operation::{Access, ContainerName, Operation, ResponseHeaders};
use crate::region::Region;
use crate::response::Response;
use crate::routing::{
    AccountState, BreakerState, ContainerIdentity, Diversion, DiversionCause, Endpoint, PartitionId,
    PartitionRegion, Unavailable,
};

const PAGE: &str = include_str!("../../../../docs/telemetry.md");

/// The metadata of the spans and events that were emitted.
#[derive(Clone, Default)]
struct Emitted(Arc<Mutex<Vec<Row>>>);

/// A span or an event: its name or message, its level, its target, and its fields.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    name: String,
    level: String,
    target: String,
    fields: BTreeSet<String>,
}

impl Row {
    fn of(name: &str, metadata: &Metadata<'_>) -> Row {
        let fields = metadata.fields().iter().map(|field| field.name().to_owned());
        Row {
            name: name.to_owned(),
            level: metadata.level().to_string(),
            target: metadata.target().to_owned(),
            fields: fields.filter(|name| name != "message").collect(),
        }
    }
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

impl Subscriber for Emitted {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let metadata = attributes.metadata();
        crate::sync::lock(&self.0).push(Row::of(metadata.name(), metadata));
        span::Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        crate::sync::lock(&self.0).push(Row::of(&message.0, event.metadata()));
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// The spans and events of `work`.
fn emitted_by(work: impl FnOnce()) -> BTreeSet<Row> {
    let emitted = Emitted::default();
    tracing::subscriber::with_default(emitted.clone(), work);
    let rows = crate::sync::lock(&emitted.0);
    rows.iter().filter(|row| row.target.starts_with("perihelion::")).cloned().collect()
}

fn endpoint() -> Endpoint {
    Endpoint::regional(Region::new("West US"), Url::parse("https://west.example/").expect("a URL"))
}

fn read() -> Operation {
    Operation::read_item(&ContainerName::new("shop", "orders"), PartitionKey::single("ada"), "1")
}

fn operation_span() -> OperationSpan {
    let identity = ClientIdentity::new(endpoint(), "id", "perihelion/1");
    OperationSpan::start(&read(), &identity, || "Session").expect("somebody listens")
}

fn attempt_span() -> AttemptSpan {
    AttemptSpan::start(ExecutionContext::Initial, &endpoint(), 0, || None).expect("somebody listens")
}

fn record(status: Option<u16>) -> SendRecord {
    SendRecord {
        started: Clock::machine().now(),
        took: Duration::from_millis(1),
        status: status.map(|status| (Status(status), SubStatus::NONE)),
        charge: 1.0,
        sent: Sent::Sent,
        shard: None,
        waited: Duration::ZERO,
        exchange: RequestTrace::default(),
    }
}

/// Emits every span and every event once at least.
fn everything() {
    let done = Response::new(Status::OK, ResponseHeaders::default(), Bytes::new(), Diagnostics::default());
    let ready = |result| {
        let work = std::future::ready(result);
        drop(futures::executor::block_on(operation_span().around(&read(), work)));
    };
    ready(Ok(done));
    ready(Err(Error::new(ErrorKind::Unavailable, "no region")));
    drop(operation_span());
    attempt_span().end(&record(Some(200)));
    attempt_span().end(&record(None));
    drop(attempt_span());
    let status = (Status::TOO_MANY_REQUESTS, SubStatus(3200));
    for retries in [1, 2] {
        events::throttled(&endpoint(), status, retries, Duration::from_millis(5));
    }
    let region = Region::new("West US");
    events::retrying(&region, "another region: 503", Duration::ZERO);
    let cause = DiversionCause::RegionUnavailable(Unavailable::All);
    events::diverted(&region, &Diversion { region: Region::new("East US"), cause });
    events::region_unavailable(&region, Unavailable::All);
    events::region_available(&region);
    events::regions_changed(&AccountState::unknown(endpoint()));
    let container = ContainerIdentity { name: ContainerName::new("shop", "orders"), rid: "rid".to_owned() };
    let partition = PartitionId { container: Arc::new(container), range: RangeId(0) };
    let key = PartitionRegion { partition, region, access: Access::Read };
    let now = Clock::machine().now();
    let open = BreakerState::Open { since: now, probed_at: now };
    let states = [BreakerState::Closed, open, BreakerState::HalfOpen, BreakerState::Closed];
    for pair in states.windows(2) {
        events::breaker_changed(&key, pair[0], pair[1]);
    }
}

/// The rows of the table below a heading, cell by cell.
fn table(heading: &str) -> Vec<Vec<&'static str>> {
    let below = PAGE.split_once(&format!("\n{heading}\n")).expect("a heading").1;
    let rows = below.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    rows.take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

fn code(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_page_lists_every_attribute_of_every_span() {
    let emitted = emitted_by(everything);
    for (heading, name, level) in
        [("### `operation`", "operation", "INFO"), ("### `attempt`", "attempt", "DEBUG")]
    {
        let span = emitted.iter().find(|row| row.name == name).expect("a span");
        assert_eq!((span.level.as_str(), span.target.as_str()), (level, &*format!("perihelion::{name}")));
        let listed: BTreeSet<String> = table(heading).iter().flat_map(|row| code(row[0])).collect();
        assert_eq!(listed, span.fields, "{name}");
    }
}

#[test]
fn the_page_lists_every_event() {
    let spans = ["operation", "attempt"];
    let emitted: BTreeSet<Row> =
        emitted_by(everything).into_iter().filter(|row| !spans.contains(&row.name.as_str())).collect();
    let word = |cell: &str| cell.trim_matches('`').to_owned();
    let listed: BTreeSet<Row> = table("## Events")
        .iter()
        .map(|row| Row {
            name: word(row[0]),
            level: word(row[1]),
            target: word(row[2]),
            fields: code(row[3]),
        })
        .collect();
    assert_eq!(listed, emitted);
}

#[test]
fn with_nobody_listening_there_is_no_span() {
    let identity = ClientIdentity::new(endpoint(), "id", "perihelion/1");
    tracing::subscriber::with_default(tracing::subscriber::NoSubscriber::new(), || {
        assert!(OperationSpan::start(&read(), &identity, || panic!("nobody asks")).is_none());
        assert!(AttemptSpan::start(ExecutionContext::Initial, &endpoint(), 0, || None).is_none());
    });
}
