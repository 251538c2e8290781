//! The options of sharding: how many connections an endpoint may have, and when one is evicted.
//!
//! In: what the caller wants. Out: the same, checked once ([`ShardingConfig::validate`]), so that nothing
//! below has to doubt it.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;
use std::time::Duration;

use thiserror::Error;

use crate::options::ShardingVariables;

/// What an HTTP/2 connection of the service takes at once; a client that is given more makes requests
/// wait for each other.
pub const SERVICE_STREAMS_MAX: u32 = 20;

/// The least that [`ShardingConfig::max_clients_per_endpoint`] is by default. Twice the number of cores
/// alone would leave a small machine with four connections: 80 requests at a time, however idle it is.
const CLIENTS_MAX_DEFAULT_AT_LEAST: u32 = 32;

/// How the requests to one HTTP/2 endpoint are spread over connections.
///
/// Ignored where the gateway speaks HTTP/1.1 only: a connection then carries one request at a time, and
/// the client's own pool is all that is needed.
///
/// ```
/// use perihelion_driver::ShardingConfig;
///
/// let mut sharding = ShardingConfig::default();
/// sharding.max_clients_per_endpoint = 64;
/// assert!(sharding.validate().is_ok());
///
/// sharding.max_streams_per_client = 100;
/// let rejected = sharding.validate().expect_err("the service takes 20");
/// assert!(rejected.to_string().contains("max_streams_per_client"));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ShardingConfig {
    /// Requests in flight on one client and endpoint before another client is used. At most 20; 16 by
    /// default, which leaves room for streams that are just being closed.
    pub max_streams_per_client: u32,
    /// Clients an endpoint may use. Twice the number of cores by default, and at least 32.
    pub max_clients_per_endpoint: u32,
    /// Clients an endpoint keeps when nothing is asked of it. 1 by default.
    pub min_clients_per_endpoint: u32,
    /// The share of an endpoint's clients that gets new requests while there is room on them, so that the
    /// others drain and can be closed: more than 0, at most 1. 0.5 by default, and only where it starts
    /// from when [`load_spread`](ShardingConfig::load_spread) is adaptive.
    pub load_spread_ratio: f64,
    /// Whether the share follows the traffic. Adaptive by default.
    pub load_spread: LoadSpread,
    /// Failures in a row that make a client suspect. 5 by default.
    pub consecutive_failure_threshold: u32,
    /// How long after its last success a failing client is kept all the same. 2 s by default.
    pub eviction_grace_period: Duration,
    /// How long a client above the minimum may be without requests before it is closed. 60 s by default.
    pub idle_client_timeout: Duration,
    /// Time between two looks at every client. 10 s by default.
    pub health_check_interval: Duration,
    /// Load, as a share of `max_streams_per_client`, above which another client is made ready before it is
    /// needed: more than 0, at most 1. 0.75 by default.
    pub scale_up_threshold_ratio: f64,
    /// How long requests may wait on a client without a response to any of them before the connection is
    /// taken for dead. 10 s by default; no less than the longest a single request is let run.
    pub read_hang_threshold: Duration,
    /// A success this recent ends every doubt about a client. 1 s by default.
    pub recent_success_window: Duration,
    /// The share of the machine's processors this process may use before slow responses are blamed on itself
    /// and no client is evicted: more than 0, at most 1. 0.9 by default.
    pub eviction_cpu_limit: f64,
}

/// Whether [`ShardingConfig::load_spread_ratio`] follows the traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadSpread {
    /// Steady traffic gathers on few clients, traffic in bursts is spread over many.
    #[default]
    Adaptive,
    /// Always the configured share.
    Fixed,
}

impl Default for ShardingConfig {
    fn default() -> ShardingConfig {
        let cores = available_parallelism().map_or(0, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX));
        ShardingConfig {
            max_streams_per_client: 16,
            max_clients_per_endpoint: cores.saturating_mul(2).max(CLIENTS_MAX_DEFAULT_AT_LEAST),
            min_clients_per_endpoint: 1,
            load_spread_ratio: 0.5,
            load_spread: LoadSpread::Adaptive,
            consecutive_failure_threshold: 5,
            eviction_grace_period: Duration::from_secs(2),
            idle_client_timeout: Duration::from_secs(60),
            health_check_interval: Duration::from_secs(10),
            scale_up_threshold_ratio: 0.75,
            read_hang_threshold: Duration::from_secs(10),
            recent_success_window: Duration::from_secs(1),
            eviction_cpu_limit: 0.9,
        }
    }
}

impl ShardingConfig {
    /// The defaults, with what the environment says in their place.
    pub fn from_environment(variables: &ShardingVariables) -> ShardingConfig {
        let default = ShardingConfig::default();
        let count = |variable: Option<NonZeroUsize>, default| {
            variable.map_or(default, |value| u32::try_from(value.get()).unwrap_or(u32::MAX))
        };
        ShardingConfig {
            max_streams_per_client: count(variables.max_streams_per_client, default.max_streams_per_client),
            max_clients_per_endpoint: count(
                variables.max_clients_per_endpoint,
                default.max_clients_per_endpoint,
            ),
            idle_client_timeout: variables.idle_client_timeout.unwrap_or(default.idle_client_timeout),
            ..default
        }
    }

    /// Checks that every value is valid; the error names the field and its range.
    pub fn validate(&self) -> Result<(), InvalidSharding> {
        let counts = [
            ("max_streams_per_client", self.max_streams_per_client),
            ("max_clients_per_endpoint", self.max_clients_per_endpoint),
            ("min_clients_per_endpoint", self.min_clients_per_endpoint),
            ("consecutive_failure_threshold", self.consecutive_failure_threshold),
        ];
        let shares = [
            ("load_spread_ratio", self.load_spread_ratio),
            ("scale_up_threshold_ratio", self.scale_up_threshold_ratio),
            ("eviction_cpu_limit", self.eviction_cpu_limit),
        ];
        let times = [
            ("idle_client_timeout", self.idle_client_timeout),
            ("health_check_interval", self.health_check_interval),
            ("read_hang_threshold", self.read_hang_threshold),
        ];
        if let Some((field, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return Err(InvalidSharding::Zero { field });
        }
        // Written so that NaN is rejected as well.
        if let Some((field, value)) = shares.into_iter().find(|(_, share)| !(*share > 0.0 && *share <= 1.0)) {
            return Err(InvalidSharding::NotAShare { field, value });
        }
        if let Some((field, _)) = times.into_iter().find(|(_, time)| time.is_zero()) {
            return Err(InvalidSharding::Zero { field });
        }
        if self.max_streams_per_client > SERVICE_STREAMS_MAX {
            return Err(InvalidSharding::TooManyStreams { value: self.max_streams_per_client });
        }
        if self.min_clients_per_endpoint > self.max_clients_per_endpoint {
            return Err(InvalidSharding::MoreThanTheMaximum {
                min: self.min_clients_per_endpoint,
                max: self.max_clients_per_endpoint,
            });
        }
        Ok(())
    }
}

/// Why a [`ShardingConfig`] is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum InvalidSharding {
    /// A count or a time that must not be zero.
    #[error("{field} must be more than zero")]
    Zero {
        /// The name of the field.
        field: &'static str,
    },
    /// A share outside its range.
    #[error("{field} is {value}; it must be more than 0 and at most 1")]
    NotAShare {
        /// The name of the field.
        field: &'static str,
        /// The value of the field.
        value: f64,
    },
    /// More streams than a connection of the service takes.
    #[error(
        "max_streams_per_client is {value}; the service takes {SERVICE_STREAMS_MAX} per connection, so use at most that"
    )]
    TooManyStreams {
        /// The value of the field.
        value: u32,
    },
    /// The minimum is above the maximum.
    #[error("min_clients_per_endpoint is {min}; lower it to max_clients_per_endpoint, {max}, or raise that")]
    MoreThanTheMaximum {
        /// The value of `min_clients_per_endpoint`.
        min: u32,
        /// The value of `max_clients_per_endpoint`.
        max: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_leave_room_below_the_services_limit() {
        let config = ShardingConfig::default();
        assert_eq!(config.validate(), Ok(()));
        assert!(config.max_streams_per_client < SERVICE_STREAMS_MAX);
        assert!(config.max_clients_per_endpoint >= 32, "small machines too");
    }

    #[test]
    fn the_environment_stands_above_the_defaults() {
        let mut variables = ShardingVariables::default();
        assert_eq!(ShardingConfig::from_environment(&variables), ShardingConfig::default());
        variables.max_streams_per_client = NonZeroUsize::new(8);
        variables.max_clients_per_endpoint = NonZeroUsize::new(usize::MAX);
        variables.idle_client_timeout = Some(Duration::from_secs(7));
        let config = ShardingConfig::from_environment(&variables);
        assert_eq!((config.max_streams_per_client, config.max_clients_per_endpoint), (8, u32::MAX));
        assert_eq!(config.idle_client_timeout, Duration::from_secs(7));
    }

    #[test]
    fn an_invalid_value_is_an_error_that_names_its_field() {
        type Change = fn(&mut ShardingConfig);
        let cases: &[(Change, &str)] = &[
            (|c| c.max_streams_per_client = 0, "max_streams_per_client"),
            (|c| c.max_streams_per_client = 21, "max_streams_per_client"),
            (|c| c.max_clients_per_endpoint = 0, "max_clients_per_endpoint"),
            (|c| c.min_clients_per_endpoint = 0, "min_clients_per_endpoint"),
            (|c| c.min_clients_per_endpoint = c.max_clients_per_endpoint + 1, "min_clients_per_endpoint"),
            (|c| c.load_spread_ratio = 0.0, "load_spread_ratio"),
            (|c| c.load_spread_ratio = 1.01, "load_spread_ratio"),
            (|c| c.load_spread_ratio = f64::NAN, "load_spread_ratio"),
            (|c| c.scale_up_threshold_ratio = -0.5, "scale_up_threshold_ratio"),
            (|c| c.eviction_cpu_limit = 90.0, "eviction_cpu_limit"),
            (|c| c.consecutive_failure_threshold = 0, "consecutive_failure_threshold"),
            (|c| c.idle_client_timeout = Duration::ZERO, "idle_client_timeout"),
            (|c| c.health_check_interval = Duration::ZERO, "health_check_interval"),
            (|c| c.read_hang_threshold = Duration::ZERO, "read_hang_threshold"),
        ];
        for (change, field) in cases {
            let mut config = ShardingConfig::default();
            change(&mut config);
            let error = config.validate().expect_err(field);
            assert!(error.to_string().contains(field), "{error}");
        }
    }
}
