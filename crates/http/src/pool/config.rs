//! How many connections wait, and for how long: five per host and thirty seconds, unless told otherwise.
//!
//! A [`PoolConfig`] is what the pool obeys, and cannot be wrong: [`PoolConfigBuilder::build`] refuses what
//! makes no sense and says what to write instead.

use std::collections::HashMap;
use std::time::Duration;

use crate::authority::Authority;

/// Idle connections kept per host unless told otherwise.
pub const MAX_PER_HOST_DEFAULT: usize = 5;
/// The most idle connections per host that a configuration may ask for.
pub const MAX_PER_HOST_LIMIT: usize = 65_536;
/// How long a connection may be idle unless told otherwise.
pub const MAX_IDLE_TIME_DEFAULT: Duration = Duration::from_secs(30);
/// Hosts remembered unless told otherwise.
pub const MAX_HOSTS_DEFAULT: usize = 1_024;

/// How many connections wait, and for how long.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    limits: Limits,
    per_host: HashMap<String, HostOverride>,
    max_hosts: usize,
}

/// What holds for one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Idle connections kept.
    pub max_per_host: usize,
    /// How long one may be idle.
    pub max_idle_time: Duration,
}

/// What is different for one host. Gaps are filled with what holds for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostOverride {
    /// Idle connections kept.
    pub max_per_host: Option<usize>,
    /// How long one may be idle.
    pub max_idle_time: Option<Duration>,
}

impl Default for PoolConfig {
    fn default() -> PoolConfig {
        let limits = Limits { max_per_host: MAX_PER_HOST_DEFAULT, max_idle_time: MAX_IDLE_TIME_DEFAULT };
        PoolConfig { limits, per_host: HashMap::new(), max_hosts: MAX_HOSTS_DEFAULT }
    }
}

impl PoolConfig {
    /// Starts from the defaults.
    pub fn builder() -> PoolConfigBuilder {
        PoolConfigBuilder::default()
    }

    /// What holds for hosts without an override.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// What holds for one host: an override for host and port, else one for the host, else the default.
    /// Asked once per host, when it is first met.
    pub fn limits_of(&self, authority: &Authority) -> Limits {
        let with_port = format!("{}:{}", authority.host(), authority.port());
        let found = self.per_host.get(&with_port).or_else(|| self.per_host.get(authority.host()));
        let other = found.copied().unwrap_or_default();
        Limits {
            max_per_host: other.max_per_host.unwrap_or(self.limits.max_per_host),
            max_idle_time: other.max_idle_time.unwrap_or(self.limits.max_idle_time),
        }
    }

    /// How many hosts are remembered while nobody uses them.
    pub fn max_hosts(&self) -> usize {
        self.max_hosts
    }
}

/// Makes a [`PoolConfig`].
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
    /// How many idle connections to keep per host. Connections in use are not counted.
    pub fn max_per_host(mut self, connections: usize) -> PoolConfigBuilder {
        self.config.limits.max_per_host = connections;
        self
    }

    /// How long a connection may be idle before it is closed instead of used again.
    pub fn max_idle_time(mut self, time: Duration) -> PoolConfigBuilder {
        self.config.limits.max_idle_time = time;
        self
    }

    /// What is different for `host`, which is `name` for all its ports or `name:port` for one of them; the
    /// case of letters does not matter. The last word about a host counts.
    pub fn for_host(mut self, host: &str, different: HostOverride) -> PoolConfigBuilder {
        self.overrides.push((host.to_ascii_lowercase(), different));
        self
    }

    /// How many hosts to remember. Beyond it, one that nobody uses is forgotten when another is met.
    pub fn max_hosts(mut self, hosts: usize) -> PoolConfigBuilder {
        self.config.max_hosts = hosts;
        self
    }

    /// The configuration, if it makes sense.
    pub fn build(self) -> Result<PoolConfig, PoolConfigError> {
        let PoolConfigBuilder { mut config, overrides } = self;
        check_connections(config.limits.max_per_host, "every host")?;
        check_idle_time(config.limits.max_idle_time, "every host")?;
        if config.max_hosts == 0 {
            return Err(PoolConfigError::NoHosts);
        }
        for (host, different) in overrides {
            check_host(&host)?;
            different.max_per_host.map_or(Ok(()), |connections| check_connections(connections, &host))?;
            different.max_idle_time.map_or(Ok(()), |time| check_idle_time(time, &host))?;
            config.per_host.insert(host, different);
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

/// A name, with a port or without; not a URL.
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

/// What is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolConfigError {
    /// No connection would ever be used again.
    #[error("no idle connection is allowed for {host}: allow at least one, or send `connection: close`")]
    NoConnections {
        /// Whom it was meant for.
        host: String,
    },
    /// More sockets than a process has.
    #[error("{connections} idle connections for {host} are too many: allow at most {MAX_PER_HOST_LIMIT}")]
    TooManyConnections {
        /// Whom it was meant for.
        host: String,
        /// How many.
        connections: usize,
    },
    /// Every connection would be too old at once.
    #[error("an idle time of zero for {host} expires every connection at once: allow some time")]
    NoIdleTime {
        /// Whom it was meant for.
        host: String,
    },
    /// No host would be remembered.
    #[error("no host is to be remembered: remember at least one")]
    NoHosts,
    /// A URL, or nothing, in place of a host.
    #[error("'{host}' is not a host: write `name`, `name:port`, or an IPv6 address in brackets")]
    BadHost {
        /// What was written.
        host: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::Scheme;

    const SECOND: Duration = Duration::from_secs(1);

    fn connections(max_per_host: usize) -> HostOverride {
        HostOverride { max_per_host: Some(max_per_host), ..HostOverride::default() }
    }

    #[test]
    fn five_per_host_and_thirty_seconds_unless_told_otherwise() {
        let limits = PoolConfig::default().limits();
        assert_eq!((limits.max_per_host, limits.max_idle_time), (5, Duration::from_secs(30)));
    }

    #[test]
    fn the_most_specific_override_holds_and_its_gaps_are_filled() {
        let time = HostOverride { max_idle_time: Some(SECOND), ..HostOverride::default() };
        let config = PoolConfig::builder()
            .max_per_host(2)
            .for_host("One.example", connections(7))
            .for_host("one.EXAMPLE:81", time)
            .for_host("two.example", connections(3))
            .for_host("two.example", connections(4))
            .for_host("[::1]", connections(6))
            .build()
            .expect("it makes sense");
        let cases = [
            ("one.example", 80, (7, MAX_IDLE_TIME_DEFAULT)),
            ("ONE.example", 81, (2, SECOND)),
            ("two.example", 80, (4, MAX_IDLE_TIME_DEFAULT)),
            ("three.example", 80, (2, MAX_IDLE_TIME_DEFAULT)),
            ("[::1]", 80, (6, MAX_IDLE_TIME_DEFAULT)),
        ];
        for (host, port, expected) in cases {
            let limits = config.limits_of(&Authority::new(Scheme::Https, host, port));
            assert_eq!((limits.max_per_host, limits.max_idle_time), expected, "{host}:{port}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_to_write_instead() {
        let builder = PoolConfig::builder;
        let none = HostOverride::default();
        let cases = [
            (builder().max_per_host(0), "allow at least one"),
            (builder().max_per_host(MAX_PER_HOST_LIMIT + 1), "allow at most 65536"),
            (builder().max_idle_time(Duration::ZERO), "allow some time"),
            (builder().max_hosts(0), "remember at least one"),
            (builder().for_host("one", connections(0)), "for one: allow at least one"),
            (builder().for_host("", none), "is not a host"),
            (builder().for_host(":80", none), "is not a host"),
            (builder().for_host("http://one", none), "is not a host"),
            (builder().for_host("one:port", none), "is not a host"),
            (builder().for_host("one two", none), "is not a host"),
            (builder().for_host("::1", none), "is not a host"),
        ];
        for (builder, expected) in cases {
            let error = builder.clone().build().expect_err("it makes no sense").to_string();
            assert!(error.contains(expected), "{builder:?}: {error}");
        }
    }
}
