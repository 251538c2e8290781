//! How many idle connections the pool keeps, and for how long: by default five per host and thirty seconds.
//!
//! A [`PoolConfig`] is always valid: [`PoolConfigBuilder::build`] rejects invalid values with a message that says what
//! to use instead.

use std::collections::HashMap;
use std::time::Duration;

use crate::origin::Origin;

/// The default number of idle connections per host.
pub const MAX_PER_HOST_DEFAULT: usize = 5;
/// The highest number of idle connections per host that a configuration may have.
pub const MAX_PER_HOST_LIMIT: usize = 65_536;
/// The default time that a connection may be idle.
pub const MAX_IDLE_TIME_DEFAULT: Duration = Duration::from_secs(30);
/// The default number of hosts that the pool keeps.
pub const MAX_HOSTS_DEFAULT: usize = 1_024;

/// How many idle connections the pool keeps, and for how long.
#[derive(Clone, Debug, Default)]
pub struct PoolConfig {
    limits: HostOverride,
    per_host: HashMap<String, HostOverride>,
    max_hosts: Option<usize>,
}

/// The limits of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The highest number of idle connections.
    pub max_per_host: usize,
    /// How long a connection may be idle.
    pub max_idle_time: Duration,
}

/// The limits of one host that differ from the default. `None` stands for the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostOverride {
    /// The highest number of idle connections.
    pub max_per_host: Option<usize>,
    /// How long a connection may be idle.
    pub max_idle_time: Option<Duration>,
}

impl PoolConfig {
    /// Creates a builder with the default values.
    pub fn builder() -> PoolConfigBuilder {
        PoolConfigBuilder::default()
    }

    /// The limits of hosts without an override.
    pub fn limits(&self) -> Limits {
        Limits {
            max_per_host: self.limits.max_per_host.unwrap_or(MAX_PER_HOST_DEFAULT),
            max_idle_time: self.limits.max_idle_time.unwrap_or(MAX_IDLE_TIME_DEFAULT),
        }
    }

    /// The limits of one host: the override for host and port, else the one for the host, else the default.
    /// The pool calls it once per host.
    pub fn limits_for(&self, origin: &Origin) -> Limits {
        let with_port = format!("{}:{}", origin.host(), origin.port());
        let found = self.per_host.get(&with_port).or_else(|| self.per_host.get(origin.host()));
        let (other, limits) = (found.copied().unwrap_or_default(), self.limits());
        Limits {
            max_per_host: other.max_per_host.unwrap_or(limits.max_per_host),
            max_idle_time: other.max_idle_time.unwrap_or(limits.max_idle_time),
        }
    }

    /// Takes each value that was not set from `defaults`.
    ///
    /// ```
    /// use perihelion_http::pool::PoolConfig;
    ///
    /// let defaults = PoolConfig::builder().max_per_host(1000).max_hosts(10).build()?;
    /// let config = PoolConfig::builder().max_hosts(20).build()?.or(&defaults);
    /// assert_eq!((config.limits().max_per_host, config.max_hosts()), (1000, 20));
    /// # Ok::<(), perihelion_http::pool::PoolConfigError>(())
    /// ```
    #[must_use]
    pub fn or(mut self, defaults: &PoolConfig) -> PoolConfig {
        self.limits.max_per_host = self.limits.max_per_host.or(defaults.limits.max_per_host);
        self.limits.max_idle_time = self.limits.max_idle_time.or(defaults.limits.max_idle_time);
        self.max_hosts = self.max_hosts.or(defaults.max_hosts);
        for (host, limits) in &defaults.per_host {
            self.per_host.entry(host.clone()).or_insert(*limits);
        }
        self
    }

    /// The number of hosts above which the pool removes hosts that are not used.
    pub fn max_hosts(&self) -> usize {
        self.max_hosts.unwrap_or(MAX_HOSTS_DEFAULT)
    }
}

/// Builds a [`PoolConfig`].
///
/// ```
/// use std::time::Duration;
/// use perihelion_http::pool::{HostOverride, PoolConfig};
///
/// let config = PoolConfig::builder()
///     .max_per_host(8)
///     .for_host("account.documents.azure.com", HostOverride { max_per_host: Some(64), ..Default::default() })
///     .for_host("localhost:8081", HostOverride {
///         max_idle_time: Some(Duration::from_secs(5)),
///         ..Default::default()
///     })
///     .build()?;
/// # Ok::<(), perihelion_http::pool::PoolConfigError>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until it builds"]
pub struct PoolConfigBuilder {
    config: PoolConfig,
    overrides: Vec<(String, HostOverride)>,
}

impl PoolConfigBuilder {
    /// Sets the highest number of idle connections per host. Connections in use do not count.
    pub fn max_per_host(mut self, connections: usize) -> PoolConfigBuilder {
        self.config.limits.max_per_host = Some(connections);
        self
    }

    /// Sets how long a connection may be idle before it is closed.
    pub fn max_idle_time(mut self, time: Duration) -> PoolConfigBuilder {
        self.config.limits.max_idle_time = Some(time);
        self
    }

    /// Overrides the limits of `host`, which is `name` for all its ports or `name:port` for one of them, in any case. The
    /// last override of a host applies.
    pub fn for_host(mut self, host: &str, limits: HostOverride) -> PoolConfigBuilder {
        self.overrides.push((host.to_ascii_lowercase(), limits));
        self
    }

    /// Sets the number of hosts to keep. Above it, an unused host is removed when another one is added.
    pub fn max_hosts(mut self, hosts: usize) -> PoolConfigBuilder {
        self.config.max_hosts = Some(hosts);
        self
    }

    /// Validates the values and returns the configuration.
    pub fn build(self) -> Result<PoolConfig, PoolConfigError> {
        let PoolConfigBuilder { mut config, overrides } = self;
        check_connections(config.limits().max_per_host, "every host")?;
        check_idle_time(config.limits().max_idle_time, "every host")?;
        if config.max_hosts() == 0 {
            return Err(PoolConfigError::NoHosts);
        }
        for (host, limits) in overrides {
            check_host(&host)?;
            limits.max_per_host.map_or(Ok(()), |connections| check_connections(connections, &host))?;
            limits.max_idle_time.map_or(Ok(()), |time| check_idle_time(time, &host))?;
            config.per_host.insert(host, limits);
        }
        Ok(config)
    }
}

fn check_connections(connections: usize, host: &str) -> Result<(), PoolConfigError> {
    let host = || host.to_owned();
    match connections {
        0 => Err(PoolConfigError::NoConnections { host: host() }),
        1..=MAX_PER_HOST_LIMIT => Ok(()),
        _ => Err(PoolConfigError::TooManyConnections { host: host(), connections }),
    }
}

fn check_idle_time(time: Duration, host: &str) -> Result<(), PoolConfigError> {
    if time.is_zero() { Err(PoolConfigError::NoIdleTime { host: host.to_owned() }) } else { Ok(()) }
}

/// Checks that `host` is a name, with a port or without, and not a URL.
fn check_host(host: &str) -> Result<(), PoolConfigError> {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    let is_name = !name.is_empty()
        && !name.contains(['/', '@', '?', '#'])
        && !name.contains(char::is_whitespace)
        && (!name.contains(':') || name.starts_with('[') && name.ends_with(']'));
    if is_name && port.is_none_or(|port| port.parse::<u16>().is_ok()) {
        Ok(())
    } else {
        Err(PoolConfigError::BadHost { host: host.to_owned() })
    }
}

/// The reason why a pool configuration is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolConfigError {
    /// The limit is zero, so no connection could ever be reused.
    #[error("no idle connection is allowed for {host}: allow at least one, or send `connection: close`")]
    NoConnections {
        /// The host that the limit was set for.
        host: String,
    },
    /// The limit is higher than the number of sockets of a process.
    #[error("{connections} idle connections for {host} are too many: allow at most {MAX_PER_HOST_LIMIT}")]
    TooManyConnections {
        /// The host that the limit was set for.
        host: String,
        /// The limit that was set.
        connections: usize,
    },
    /// The idle time is zero, so every connection would expire at once.
    #[error("an idle time of zero for {host} expires every connection at once: set a longer time")]
    NoIdleTime {
        /// The host that the limit was set for.
        host: String,
    },
    /// The number of hosts is zero.
    #[error("the pool may keep no host: allow at least one")]
    NoHosts,
    /// The host of an override is empty, or a URL.
    #[error("'{host}' is not a host: write `name`, `name:port`, or an IPv6 address in brackets")]
    BadHost {
        /// The text that was given as host.
        host: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::Scheme;

    const SECOND: Duration = Duration::from_secs(1);

    fn connections(max_per_host: usize) -> HostOverride {
        HostOverride { max_per_host: Some(max_per_host), ..HostOverride::default() }
    }

    #[test]
    fn the_default_is_five_per_host_for_thirty_seconds() {
        let limits = PoolConfig::default().limits();
        assert_eq!((limits.max_per_host, limits.max_idle_time), (5, Duration::from_secs(30)));
    }

    #[test]
    fn the_most_specific_override_applies_and_the_rest_is_default() {
        let time = HostOverride { max_idle_time: Some(SECOND), ..HostOverride::default() };
        let config = PoolConfig::builder()
            .max_per_host(2)
            .for_host("One.example", connections(7))
            .for_host("one.EXAMPLE:81", time)
            .for_host("two.example", connections(3))
            .for_host("two.example", connections(4))
            .for_host("[::1]", connections(6))
            .build()
            .expect("it is valid");
        let cases = [
            ("one.example", 80, (7, MAX_IDLE_TIME_DEFAULT)),
            ("ONE.example", 81, (2, SECOND)),
            ("two.example", 80, (4, MAX_IDLE_TIME_DEFAULT)),
            ("three.example", 80, (2, MAX_IDLE_TIME_DEFAULT)),
            ("[::1]", 80, (6, MAX_IDLE_TIME_DEFAULT)),
        ];
        for (host, port, expected) in cases {
            let limits = config.limits_for(&Origin::new(Scheme::Https, host, port));
            assert_eq!((limits.max_per_host, limits.max_idle_time), expected, "{host}:{port}");
        }
    }

    #[test]
    fn invalid_values_are_rejected_with_a_hint() {
        let builder = PoolConfig::builder;
        let none = HostOverride::default();
        let cases = [
            (builder().max_per_host(0), "allow at least one"),
            (builder().max_per_host(MAX_PER_HOST_LIMIT + 1), "allow at most 65536"),
            (builder().max_idle_time(Duration::ZERO), "set a longer time"),
            (builder().max_hosts(0), "allow at least one"),
            (builder().for_host("one", connections(0)), "for one: allow at least one"),
            (builder().for_host("", none), "is not a host"),
            (builder().for_host(":80", none), "is not a host"),
            (builder().for_host("http://one", none), "is not a host"),
            (builder().for_host("one:port", none), "is not a host"),
            (builder().for_host("one two", none), "is not a host"),
            (builder().for_host("::1", none), "is not a host"),
        ];
        for (builder, expected) in cases {
            let error = builder.clone().build().expect_err("it is invalid").to_string();
            assert!(error.contains(expected), "{builder:?}: {error}");
        }
    }
}
