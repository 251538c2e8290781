//! Settings, one concern per file.
//!
//! Options may be unset ([`OperationOptions`], [`DriverOptions`]); the settings that the pipeline uses are complete
//! ([`OperationSettings`], [`DriverSettings`]). Layers are resolved in one place: the options of the operation
//! first, then those of the driver, the runtime and the environment ([`environment`]), and the defaults last. A
//! driver resolves its options once, when it is made; an operation without options uses the driver's settings.

pub mod circuit_breaker;
pub mod consistency;
pub mod environment;
pub mod headers;
pub mod hedging;
mod invalid;
pub mod regions;
pub mod retry;
pub mod timeouts;

use std::borrow::Cow;

pub use circuit_breaker::{CircuitBreakerConfig, CircuitBreakerOptions};
pub use consistency::{ConsistencyOptions, ConsistencySettings, ReadConsistencyStrategy};
pub use environment::{EnvironmentOptions, InvalidVariable, ShardingVariables};
pub use headers::{CustomHeader, HeaderOptions, HeaderSettings, Priority};
pub use hedging::{HedgingOptions, HedgingSettings, HedgingThreshold};
pub(crate) use hedging::{THRESHOLD_CEILING, THRESHOLD_FLOOR};
pub use invalid::InvalidOption;
pub use regions::{RegionOptions, RegionSettings};
pub use retry::{RetryOptions, RetryPolicy};
pub use timeouts::{TimeoutOptions, TimeoutSettings};

/// Options of one operation, or of all operations of a driver or a runtime.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct OperationOptions {
    /// The options of retries.
    pub retry: RetryOptions,
    /// The options of hedging.
    pub hedging: HedgingOptions,
    /// The options of timeouts.
    pub timeouts: TimeoutOptions,
    /// Options of preferred and excluded regions.
    pub regions: RegionOptions,
    /// Options of consistency and sessions.
    pub consistency: ConsistencyOptions,
    /// Options of priority, throughput bucket and further headers.
    pub headers: HeaderOptions,
}

impl OperationOptions {
    /// Options that set nothing.
    pub fn new() -> OperationOptions {
        OperationOptions::default()
    }

    /// Sets the options of retries.
    #[must_use]
    pub fn with_retry(self, retry: RetryOptions) -> OperationOptions {
        OperationOptions { retry, ..self }
    }

    /// Sets the options of hedging.
    #[must_use]
    pub fn with_hedging(self, hedging: HedgingOptions) -> OperationOptions {
        OperationOptions { hedging, ..self }
    }

    /// Sets the options of timeouts.
    #[must_use]
    pub fn with_timeouts(self, timeouts: TimeoutOptions) -> OperationOptions {
        OperationOptions { timeouts, ..self }
    }

    /// Sets the options of regions.
    #[must_use]
    pub fn with_regions(self, regions: RegionOptions) -> OperationOptions {
        OperationOptions { regions, ..self }
    }

    /// Sets the options of consistency.
    #[must_use]
    pub fn with_consistency(self, consistency: ConsistencyOptions) -> OperationOptions {
        OperationOptions { consistency, ..self }
    }

    /// Sets the options of request headers.
    #[must_use]
    pub fn with_headers(self, headers: HeaderOptions) -> OperationOptions {
        OperationOptions { headers, ..self }
    }

    /// Whether no option is set.
    pub fn is_empty(&self) -> bool {
        *self == OperationOptions::default()
    }

    /// Fills unset options from `fallback`.
    #[must_use]
    pub fn or(self, fallback: &OperationOptions) -> OperationOptions {
        OperationOptions {
            retry: self.retry.or(&fallback.retry),
            hedging: self.hedging.or(&fallback.hedging),
            timeouts: self.timeouts.or(&fallback.timeouts),
            regions: self.regions.or(&fallback.regions),
            consistency: self.consistency.or(&fallback.consistency),
            headers: self.headers.or(&fallback.headers),
        }
    }

    fn resolve(&self) -> Result<OperationSettings, InvalidOption> {
        Ok(OperationSettings {
            retry: self.retry.resolve()?,
            hedging: self.hedging.resolve()?,
            timeouts: self.timeouts.resolve()?,
            regions: self.regions.resolve(),
            consistency: self.consistency.resolve(),
            headers: self.headers.resolve()?,
        })
    }
}

/// Options of a driver, or of all drivers of a runtime.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct DriverOptions {
    /// The default options of its operations.
    pub operation: OperationOptions,
    /// Options of the circuit breakers.
    pub circuit_breaker: CircuitBreakerOptions,
}

impl DriverOptions {
    /// Options that set nothing.
    pub fn new() -> DriverOptions {
        DriverOptions::default()
    }

    /// Sets the default options of operations.
    #[must_use]
    pub fn with_operation(self, operation: OperationOptions) -> DriverOptions {
        DriverOptions { operation, ..self }
    }

    /// Sets the options of the circuit breakers.
    #[must_use]
    pub fn with_circuit_breaker(self, circuit_breaker: CircuitBreakerOptions) -> DriverOptions {
        DriverOptions { circuit_breaker, ..self }
    }

    /// Fills unset options from `fallback`.
    #[must_use]
    pub fn or(self, fallback: &DriverOptions) -> DriverOptions {
        DriverOptions {
            operation: self.operation.or(&fallback.operation),
            circuit_breaker: self.circuit_breaker.or(&fallback.circuit_breaker),
        }
    }
}

/// The resolved settings of an operation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OperationSettings {
    /// The settings of retries.
    pub retry: RetryPolicy,
    /// The options of hedging.
    pub hedging: HedgingSettings,
    /// The options of timeouts.
    pub timeouts: TimeoutSettings,
    /// Options of preferred and excluded regions.
    pub regions: RegionSettings,
    /// Options of consistency and sessions.
    pub consistency: ConsistencySettings,
    /// The priority, throughput bucket and further headers.
    pub headers: HeaderSettings,
}

impl Default for OperationSettings {
    fn default() -> OperationSettings {
        OperationOptions::default().resolve().expect("the defaults are valid; a test says so")
    }
}

/// The resolved settings of a driver.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DriverSettings {
    /// The settings of operations without options of their own.
    pub operation: OperationSettings,
    /// Options of the circuit breakers.
    pub circuit_breaker: CircuitBreakerConfig,
    /// The options before they were resolved: the layers below those of an operation.
    layers: OperationOptions,
}

impl Default for DriverSettings {
    fn default() -> DriverSettings {
        let nothing = DriverOptions::default();
        let environment = EnvironmentOptions::default();
        DriverSettings::resolve(nothing.clone(), &nothing, &environment)
            .expect("the defaults are valid; a test says so")
    }
}

impl DriverSettings {
    /// Resolves the layers of a driver. An invalid option is an error that names it.
    pub fn resolve(
        driver: DriverOptions,
        runtime: &DriverOptions,
        environment: &EnvironmentOptions,
    ) -> Result<DriverSettings, InvalidOption> {
        let options = driver.or(runtime).or(&environment.driver);
        if options.operation.timeouts.deadline.is_some() {
            let reason =
                "belongs to an operation: after it, a driver could do nothing; set timeouts.end_to_end";
            return Err(InvalidOption::new("timeouts.deadline", reason));
        }
        Ok(DriverSettings {
            operation: options.operation.resolve()?,
            circuit_breaker: options.circuit_breaker.resolve()?,
            layers: options.operation,
        })
    }

    /// The settings of one operation. Borrowed, and free, for an operation without options of its own.
    pub fn for_operation(
        &self,
        operation: Option<&OperationOptions>,
    ) -> Result<Cow<'_, OperationSettings>, InvalidOption> {
        match operation {
            // The order of regions belongs to the account's state, which all operations of a driver share.
            Some(own) if own.regions.preferred.is_some() => Err(InvalidOption::new(
                "regions.preferred",
                "it is an option of clients, not of single operations; exclude regions instead, or build \
                 another client"
                    .to_owned(),
            )),
            Some(own) if !own.is_empty() => own.clone().or(&self.layers).resolve().map(Cow::Owned),
            _ => Ok(Cow::Borrowed(&self.operation)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn deadline(seconds: u64) -> OperationOptions {
        let timeouts = TimeoutOptions::new().with_end_to_end(Duration::from_secs(seconds));
        OperationOptions::new().with_timeouts(timeouts)
    }

    #[test]
    fn an_operation_cannot_prefer_regions() {
        let regions = RegionOptions::new().with_preferred(["East US"]);
        let options = OperationOptions::new().with_regions(regions);
        let error = DriverSettings::default().for_operation(Some(&options)).expect_err("no silent loss");
        assert!(error.to_string().contains("regions.preferred"), "{error}");
    }

    fn driver(options: Option<OperationOptions>) -> DriverOptions {
        DriverOptions::new().with_operation(options.unwrap_or_default())
    }

    #[test]
    fn the_defaults_are_valid() {
        let settings = DriverSettings::default();
        assert_eq!(settings.operation, OperationSettings::default());
        assert!(settings.operation.hedging.enabled);
    }

    #[test]
    fn the_innermost_layer_that_sets_an_option_wins() {
        let default = TimeoutSettings::default().end_to_end.as_secs();
        // operation, driver, runtime, environment, expected
        for (operation, own, runtime, environment, expected) in [
            (Some(1), Some(2), Some(3), Some(4), 1),
            (None, Some(2), Some(3), Some(4), 2),
            (None, None, Some(3), Some(4), 3),
            (None, None, None, Some(4), 4),
            (None, None, None, None, default),
            (Some(1), None, None, None, 1),
        ] {
            let environment =
                EnvironmentOptions { driver: driver(environment.map(deadline)), ..Default::default() };
            let settings = DriverSettings::resolve(
                driver(own.map(deadline)),
                &driver(runtime.map(deadline)),
                &environment,
            )
            .expect("valid");
            let operation = operation.map(deadline);
            let resolved = settings.for_operation(operation.as_ref()).expect("valid");
            assert_eq!(resolved.timeouts.end_to_end, Duration::from_secs(expected), "{operation:?} {own:?}");
        }
    }

    #[test]
    fn an_operation_overrides_single_options_of_the_driver() {
        let hedging = HedgingOptions::new().with_enabled(false);
        let own = driver(Some(OperationOptions::new().with_hedging(hedging)));
        let settings =
            DriverSettings::resolve(own, &driver(None), &EnvironmentOptions::default()).expect("valid");
        let operation = deadline(1);
        let resolved = settings.for_operation(Some(&operation)).expect("valid");
        assert!(!resolved.hedging.enabled);
        assert_eq!(resolved.timeouts.end_to_end, Duration::from_secs(1));
    }

    #[test]
    fn empty_options_copy_nothing() {
        let settings = DriverSettings::default();
        let nothing = OperationOptions::new();
        for operation in [None, Some(&nothing)] {
            assert!(matches!(settings.for_operation(operation), Ok(Cow::Borrowed(_))));
        }
    }

    #[test]
    fn invalid_options_are_named() {
        let settings = DriverSettings::default();
        let error = settings.for_operation(Some(&deadline(0))).expect_err("no time at all");
        assert!(error.to_string().contains("timeouts.end_to_end"), "{error}");
    }
}
