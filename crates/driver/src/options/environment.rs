//! The table from environment variables to options.
//!
//! In: a function from a name to its value, so that tests need no process environment. Out: options
//! with gaps, below every other layer. A variable that cannot be read is an error that names it: a
//! setting that is silently ignored is worse than a driver that does not start.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use thiserror::Error;

use super::{DriverOptions, HedgingThreshold, ReadConsistencyStrategy, RegionOptions};

/// The options that environment variables set.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct EnvironmentOptions {
    /// Options of drivers and their operations.
    pub driver: DriverOptions,
    /// Options of HTTP/2 connections.
    pub sharding: ShardingVariables,
}

/// The options of HTTP/2 connections that environment variables set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardingVariables {
    /// Streams on one connection.
    pub max_streams_per_client: Option<NonZeroUsize>,
    /// Connections to one endpoint.
    pub max_clients_per_endpoint: Option<NonZeroUsize>,
    /// How long a connection may be idle.
    pub idle_client_timeout: Option<Duration>,
}

/// A variable with an invalid value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("environment variable {name} is `{value}`: {problem}; correct or unset it")]
pub struct InvalidVariable {
    /// The name of the variable.
    pub name: &'static str,
    /// The value of the variable, truncated.
    pub value: String,
    /// The values that it may have.
    pub problem: String,
}

/// One variable: its name, what it sets, and how.
pub struct Variable {
    /// The name of the variable.
    pub name: &'static str,
    /// The option it sets.
    pub option: &'static str,
    apply: fn(&str, &mut EnvironmentOptions) -> Result<(), String>,
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} → {}", self.name, self.option)
    }
}

/// Every variable the driver reads.
pub const VARIABLES: &[Variable] = &[
    Variable {
        name: "AZURE_COSMOS_MAX_STREAMS_PER_CLIENT",
        option: "sharding.max_streams_per_client",
        apply: |text, options| {
            options.sharding.max_streams_per_client = Some(whole_number(text)?);
            Ok(())
        },
    },
    Variable {
        name: "AZURE_COSMOS_MAX_CLIENTS_PER_ENDPOINT",
        option: "sharding.max_clients_per_endpoint",
        apply: |text, options| {
            options.sharding.max_clients_per_endpoint = Some(whole_number(text)?);
            Ok(())
        },
    },
    Variable {
        name: "AZURE_COSMOS_SHARD_IDLE_TIMEOUT_SECS",
        option: "sharding.idle_client_timeout",
        apply: |text, options| {
            let seconds: NonZeroU32 = whole_number(text)?;
            options.sharding.idle_client_timeout = Some(Duration::from_secs(seconds.get().into()));
            Ok(())
        },
    },
    Variable {
        name: "AZURE_COSMOS_HEDGING_THRESHOLD_MS",
        option: "hedging.threshold",
        apply: |text, options| {
            let after = HedgingThreshold::after(milliseconds(text)?).map_err(|error| error.problem)?;
            options.driver.operation.hedging.threshold = Some(after);
            Ok(())
        },
    },
    Variable {
        name: "AZURE_COSMOS_HEDGING_ENABLED",
        option: "hedging.enabled",
        apply: |text, options| {
            options.driver.operation.hedging.enabled = Some(yes_or_no(text)?);
            Ok(())
        },
    },
    Variable {
        name: "AZURE_COSMOS_CIRCUIT_BREAKER_ENABLED",
        option: "circuit_breaker.enabled",
        apply: |text, options| {
            options.driver.circuit_breaker.enabled = Some(yes_or_no(text)?);
            Ok(())
        },
    },
    Variable {
        name: "AZURE_COSMOS_END_TO_END_TIMEOUT_MS",
        option: "timeouts.end_to_end",
        apply: |text, options| {
            options.driver.operation.timeouts.end_to_end = Some(milliseconds(text)?);
            Ok(())
        },
    },
    Variable {
        name: "AZURE_COSMOS_PREFERRED_REGIONS",
        option: "regions.preferred",
        apply: |text, options| {
            options.driver.operation.regions.preferred = regions(text)?.preferred;
            Ok(())
        },
    },
    Variable {
        name: "AZURE_COSMOS_READ_CONSISTENCY_STRATEGY",
        option: "consistency.read_strategy",
        apply: |text, options| {
            let strategy = ReadConsistencyStrategy::parse(text).ok_or_else(|| {
                "it must be Default, Eventual, Session, LatestCommitted or GlobalStrong".to_owned()
            })?;
            options.driver.operation.consistency.read_strategy = Some(strategy);
            Ok(())
        },
    },
];

impl EnvironmentOptions {
    /// Reads the environment of this process.
    pub fn of_process() -> Result<EnvironmentOptions, InvalidVariable> {
        EnvironmentOptions::read(|name| {
            std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
        })
    }

    /// Reads the variables; those that are missing or empty set nothing.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<EnvironmentOptions, InvalidVariable> {
        let mut options = EnvironmentOptions::default();
        for &Variable { name, apply, .. } in VARIABLES {
            let Some(value) = variable(name) else { continue };
            let text = value.trim();
            if text.is_empty() {
                continue;
            }
            apply(text, &mut options).map_err(|problem| InvalidVariable {
                name,
                value: text.chars().take(64).collect(),
                problem,
            })?;
        }
        Ok(options)
    }
}

fn whole_number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| "it must be a whole number above zero".to_owned())
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    let milliseconds: NonZeroU32 = whole_number(text)?;
    Ok(Duration::from_millis(milliseconds.get().into()))
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err("it must be true or false".to_owned()),
    }
}

fn regions(text: &str) -> Result<RegionOptions, String> {
    let names: Vec<&str> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        return Err("it must be region names between commas, best first".to_owned());
    }
    Ok(RegionOptions::new().with_preferred(names))
}

#[cfg(test)]
mod tests {
    use super::super::{
        CircuitBreakerOptions, ConsistencyOptions, HedgingOptions, OperationOptions, TimeoutOptions,
    };
    use super::*;
    use crate::region::Region;

    fn read(variables: &[(&str, &str)]) -> Result<EnvironmentOptions, InvalidVariable> {
        EnvironmentOptions::read(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn every_variable_sets_its_option() {
        let options = read(&[
            ("AZURE_COSMOS_MAX_STREAMS_PER_CLIENT", "18"),
            ("AZURE_COSMOS_MAX_CLIENTS_PER_ENDPOINT", "40"),
            ("AZURE_COSMOS_SHARD_IDLE_TIMEOUT_SECS", "90"),
            ("AZURE_COSMOS_HEDGING_THRESHOLD_MS", " 250 "),
            ("AZURE_COSMOS_HEDGING_ENABLED", "Yes"),
            ("AZURE_COSMOS_CIRCUIT_BREAKER_ENABLED", "0"),
            ("AZURE_COSMOS_END_TO_END_TIMEOUT_MS", "1500"),
            ("AZURE_COSMOS_PREFERRED_REGIONS", "West US, East US,"),
            ("AZURE_COSMOS_READ_CONSISTENCY_STRATEGY", "session"),
        ])
        .expect("valid");
        assert_eq!(
            options.sharding,
            ShardingVariables {
                max_streams_per_client: NonZeroUsize::new(18),
                max_clients_per_endpoint: NonZeroUsize::new(40),
                idle_client_timeout: Some(Duration::from_secs(90)),
            }
        );
        let threshold = HedgingThreshold::Static(Duration::from_millis(250));
        let operation = OperationOptions {
            hedging: HedgingOptions::new().with_enabled(true).with_threshold(threshold),
            timeouts: TimeoutOptions::new().with_end_to_end(Duration::from_millis(1500)),
            regions: RegionOptions::new().with_preferred([Region::from("West US"), Region::from("East US")]),
            consistency: ConsistencyOptions::new().with_read_strategy(ReadConsistencyStrategy::Session),
            ..OperationOptions::default()
        };
        let circuit_breaker = CircuitBreakerOptions::new().with_enabled(false);
        assert_eq!(options.driver, DriverOptions { operation, circuit_breaker });
    }

    #[test]
    fn the_table_has_the_variables_of_the_specification_and_no_name_twice() {
        let names: std::collections::BTreeSet<&str> =
            VARIABLES.iter().map(|variable| variable.name).collect();
        assert_eq!(names.len(), VARIABLES.len());
        for name in [
            "AZURE_COSMOS_MAX_STREAMS_PER_CLIENT",
            "AZURE_COSMOS_MAX_CLIENTS_PER_ENDPOINT",
            "AZURE_COSMOS_SHARD_IDLE_TIMEOUT_SECS",
            "AZURE_COSMOS_HEDGING_THRESHOLD_MS",
        ] {
            assert!(names.contains(name), "{name}");
        }
    }

    #[test]
    fn the_documentation_lists_every_variable() {
        let page = include_str!("../../../../docs/configuration.md");
        for Variable { name, option, .. } in VARIABLES {
            assert!(page.contains(&format!("| `{name}` | `{option}` |")), "{name}");
        }
    }

    #[test]
    fn missing_and_empty_variables_set_nothing() {
        assert_eq!(read(&[]), Ok(EnvironmentOptions::default()));
        assert_eq!(read(&[("AZURE_COSMOS_HEDGING_ENABLED", "  ")]), Ok(EnvironmentOptions::default()));
    }

    #[test]
    fn a_variable_that_cannot_be_read_is_named() {
        for (name, value) in [
            ("AZURE_COSMOS_MAX_STREAMS_PER_CLIENT", "0"),
            ("AZURE_COSMOS_MAX_CLIENTS_PER_ENDPOINT", "many"),
            ("AZURE_COSMOS_SHARD_IDLE_TIMEOUT_SECS", "-1"),
            ("AZURE_COSMOS_HEDGING_THRESHOLD_MS", "10"),
            ("AZURE_COSMOS_HEDGING_ENABLED", "maybe"),
            ("AZURE_COSMOS_END_TO_END_TIMEOUT_MS", "1s"),
            ("AZURE_COSMOS_PREFERRED_REGIONS", ","),
            ("AZURE_COSMOS_READ_CONSISTENCY_STRATEGY", "strong"),
        ] {
            let error = read(&[(name, value)]).expect_err(name);
            assert_eq!((error.name, error.value.as_str()), (name, value));
        }
    }
}
