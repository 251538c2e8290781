//! What operators see of a provider: turns, activities, lost locks, the outbox and request units, as instruments of
//! OpenTelemetry.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Gauge, Histogram, MeterProvider};

use crate::clock::Millis;

/// What a lock was on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LockKind {
    Turn,
    Activity,
}

/// Records what happens, if somebody wants to know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Telemetry {
    instruments: Option<std::sync::Arc<Instruments>>,
}

#[derive(Debug)]
struct Instruments {
    turns: Histogram<f64>,
    activities: Histogram<f64>,
    locks_lost: Counter<u64>,
    outbox_age: Histogram<f64>,
    charge: Counter<f64>,
    ready: Gauge<u64>,
}

impl Telemetry {
    /// Telemetry that records through the instruments of a meter provider.
    pub(crate) fn of_provider(provider: &dyn MeterProvider) -> Telemetry {
        /// The bounds of the histograms of durations, in seconds.
        const BOUNDARIES: [f64; 10] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 300.0];
        let meter = provider.meter(env!("CARGO_PKG_NAME"));
        let seconds = |name: &'static str, description: &'static str| {
            let histogram = meter.f64_histogram(name).with_unit("s").with_description(description);
            histogram.with_boundaries(BOUNDARIES.to_vec()).build()
        };
        let instruments = Instruments {
            turns: seconds(
                "perihelion.durable.turn.duration",
                "From the lock on an instance to the commit of its turn",
            ),
            activities: seconds(
                "perihelion.durable.activity.duration",
                "From the lock on an activity to its end",
            ),
            locks_lost: meter
                .u64_counter("perihelion.durable.locks_lost")
                .with_unit("{lock}")
                .with_description("Turns and activities that ended without their lock")
                .build(),
            outbox_age: seconds(
                "perihelion.durable.outbox.age",
                "Age of messages to other instances when they are delivered",
            ),
            charge: meter
                .f64_counter("perihelion.durable.request_charge")
                .with_unit("{request_unit}")
                .with_description("Request units of the provider")
                .build(),
            ready: meter
                .u64_gauge("perihelion.durable.queue.ready")
                .with_unit("{item}")
                .with_description("Instances and activities that this process knows to be waiting")
                .build(),
        };
        Telemetry { instruments: Some(std::sync::Arc::new(instruments)) }
    }
}

impl Telemetry {
    /// A turn was committed after this time.
    pub(crate) fn turn_committed(&self, time: Millis) {
        self.record(|instruments| instruments.turns.record(time / 1000.0, &[]));
    }

    /// An activity ended after this time.
    pub(crate) fn activity_ended(&self, time: Millis) {
        self.record(|instruments| instruments.activities.record(time / 1000.0, &[]));
    }

    /// A turn or an activity ended without its lock.
    pub(crate) fn lock_lost(&self, kind: LockKind) {
        let kind = match kind {
            LockKind::Turn => "turn",
            LockKind::Activity => "activity",
        };
        tracing::warn!(kind, "a lock was lost before its holder was done");
        self.record(|instruments| {
            instruments.locks_lost.add(1, &[KeyValue::new("perihelion.durable.lock", kind)])
        });
    }

    /// A message to another instance was delivered at this age.
    pub(crate) fn delivered(&self, age: Millis) {
        self.record(|instruments| instruments.outbox_age.record(age.max(0.0) / 1000.0, &[]));
    }

    /// A request was charged.
    pub(crate) fn charged(&self, charge: f64) {
        self.record(|instruments| instruments.charge.add(charge, &[]));
    }

    /// So many instances and activities are known to be waiting.
    pub(crate) fn waiting(&self, instances: usize, activities: usize) {
        self.record(|instruments| {
            let of = |queue: &'static str| [KeyValue::new("perihelion.durable.queue", queue)];
            instruments.ready.record(instances as u64, &of("instances"));
            instruments.ready.record(activities as u64, &of("activities"));
        });
    }

    fn record(&self, record: impl FnOnce(&Instruments)) {
        if let Some(instruments) = &self.instruments {
            record(instruments);
        }
    }
}
