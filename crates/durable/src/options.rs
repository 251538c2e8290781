//! Options of the provider, and where they come from.

use std::time::Duration;

use opentelemetry::metrics::MeterProvider;
use perihelion::Throughput;

use crate::telemetry::Telemetry;

/// Options of a [`CosmosProvider`](crate::CosmosProvider).
///
/// ```
/// use perihelion_durable::ProviderOptions;
///
/// let options = ProviderOptions::new().database("shop").container("workflows");
/// ```
#[derive(Clone, Debug)]
pub struct ProviderOptions {
    pub(crate) database: String,
    pub(crate) container: String,
    pub(crate) throughput: Option<Throughput>,
    pub(crate) reconciler_interval: Duration,
    pub(crate) reconciler_age: Duration,
    pub(crate) poll_interval: Duration,
    pub(crate) poll_interval_max: Duration,
    pub(crate) history_cache_bytes: usize,
    pub(crate) prefetch: bool,
    pub(crate) retention: Option<Duration>,
    pub(crate) telemetry: Telemetry,
}

impl Default for ProviderOptions {
    fn default() -> ProviderOptions {
        ProviderOptions {
            database: "duroxide".to_owned(),
            container: "duroxide".to_owned(),
            throughput: None,
            reconciler_interval: Duration::from_secs(2),
            reconciler_age: Duration::from_secs(2),
            poll_interval: Duration::from_millis(250),
            poll_interval_max: Duration::from_secs(5),
            history_cache_bytes: 64 << 20,
            prefetch: true,
            retention: None,
            telemetry: Telemetry::default(),
        }
    }
}

impl ProviderOptions {
    /// The defaults: database `duroxide`, container `duroxide`.
    pub fn new() -> ProviderOptions {
        ProviderOptions::default()
    }

    /// The defaults, with the names in `COSMOSDB_DATABASE` and `COSMOSDB_CONTAINER` where these are set.
    pub fn from_env() -> ProviderOptions {
        let mut options = ProviderOptions::default();
        if let Ok(database) = std::env::var("COSMOSDB_DATABASE") {
            options.database = database;
        }
        if let Ok(container) = std::env::var("COSMOSDB_CONTAINER") {
            options.container = container;
        }
        options
    }

    /// Sets the database, which is created if it does not exist. Default: `duroxide`.
    #[must_use]
    pub fn database(mut self, id: impl Into<String>) -> ProviderOptions {
        self.database = id.into();
        self
    }

    /// Sets the container, which is created if it does not exist. Default: `duroxide`.
    #[must_use]
    pub fn container(mut self, id: impl Into<String>) -> ProviderOptions {
        self.container = id.into();
        self
    }

    /// Sets the throughput that the container is created with. Default: that of its database, or of the account.
    #[must_use]
    pub fn throughput(mut self, throughput: Throughput) -> ProviderOptions {
        self.throughput = Some(throughput);
        self
    }

    /// Sets how often messages to other instances that were left behind are looked for. Default: 2 seconds.
    #[must_use]
    pub fn reconciler_interval(mut self, interval: Duration) -> ProviderOptions {
        self.reconciler_interval = interval.max(Duration::from_millis(10));
        self
    }

    /// Sets how old a message to another instance must be before it counts as left behind. Default: 2 seconds.
    #[must_use]
    pub fn reconciler_age(mut self, age: Duration) -> ProviderOptions {
        self.reconciler_age = age;
        self
    }

    /// Sets how often the container is searched for work of other processes: at first, and after a long time without
    /// any. Default: 250 milliseconds and 5 seconds. Work of this process needs no search.
    #[must_use]
    pub fn poll_intervals(mut self, first: Duration, longest: Duration) -> ProviderOptions {
        self.poll_interval = first.max(Duration::from_millis(10));
        self.poll_interval_max = longest.max(self.poll_interval);
        self
    }

    /// Sets how much memory histories of instances may take that were processed here, so that their next turn need not
    /// read them again. 0 turns this off. Default: 64 MiB.
    #[must_use]
    pub fn history_cache_bytes(mut self, bytes: usize) -> ProviderOptions {
        self.history_cache_bytes = bytes;
        self
    }

    /// Sets whether activities are locked for the workers of this process before these ask, as far as the workers keep up.
    /// Default: yes.
    #[must_use]
    pub fn prefetch(mut self, prefetch: bool) -> ProviderOptions {
        self.prefetch = prefetch;
        self
    }

    /// Removes instances some time after they have ended, with their descendants, as long as a process with this option runs.
    /// Default: they stay until they are deleted.
    #[must_use]
    pub fn retention(mut self, time: Duration) -> ProviderOptions {
        self.retention = Some(time);
        self
    }

    /// Records turns, activities, lost locks, the outbox and request units through instruments of this meter provider.
    /// Default: nothing is recorded. Spans and events of `tracing` need no option.
    #[must_use]
    pub fn meter_provider(mut self, provider: &dyn MeterProvider) -> ProviderOptions {
        self.telemetry = Telemetry::of_provider(provider);
        self
    }
}
