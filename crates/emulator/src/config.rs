//! The settings of an emulator.
//!
//! [`EmulatorConfig::default`] suits tests: any free port, the well-known key, a certificate authority that
//! lives as long as the process. `peri up` sets the usual ports.

use std::num::NonZeroU32;

use protocol::account::ConsistencyLevel;
use protocol::authorization::{AccountKey, AccountKeyError, EMULATOR_KEY};

use clock::Clock;
use engine::charge::RequestUnitMode;
use engine::disk::DataDir;
use engine::regions::Lag;
use server::{AuthoritySource, Bind, Limits};

use crate::access::{AccessControl, AccountKeys, EntraTokens, HostNames};
use crate::error::StartError;
use crate::request_log::REQUEST_LOG_CAPACITY_DEFAULT;

/// The account key that every official emulator and test suite uses.
pub const WELL_KNOWN_KEY: &str = EMULATOR_KEY;

/// Bytes that a physical partition of the service holds.
pub const PARTITION_BYTES_MAX: u64 = 50 * 1024 * 1024 * 1024;

/// Settings of one emulator. Start from [`Default`] and change what matters.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EmulatorConfig {
    /// Which addresses to listen on.
    pub bind: Bind,
    /// Port of the first region; the other regions use the next ones. 0 means any port for each.
    pub port: u16,
    /// The control port; 0 means any.
    pub control_port: u16,
    /// The account key, in base64.
    pub key: String,
    /// A second key with the same rights, in base64.
    pub secondary_key: Option<String>,
    /// Keys that allow reading only, in base64.
    pub read_only_keys: Vec<String>,
    /// Which tokens of Microsoft Entra ID are accepted. When absent: any that has not expired if only this machine
    /// can connect, none otherwise.
    pub entra: Option<EntraTokens>,
    /// Host names that requests may be addressed to, beside `localhost` and the addresses of `bind`. One that begins
    /// with a dot stands for all names that end with it.
    pub allowed_hosts: Vec<String>,
    /// The token that requests to the control port need; none when absent.
    pub control_token: Option<String>,
    /// Physical partitions of every new container; decided by its throughput when absent.
    pub partitions: Option<NonZeroU32>,
    /// Bytes a physical partition holds before it is split.
    pub partition_bytes_max: u64,
    /// Whether request units are counted, and whether requests are throttled.
    pub request_units: RequestUnitMode,
    /// Names of the regions, as clients see them; the first one is the write region.
    pub regions: Vec<String>,
    /// Whether every region accepts writes.
    pub multi_write: bool,
    /// Whether the writes of a single partition may move to another region.
    pub partition_failover: bool,
    /// The default consistency level of the account.
    pub consistency: ConsistencyLevel,
    /// The replication lag between regions.
    pub lag: Lag,
    /// The directory that stores the account; in memory only when absent.
    pub data: Option<DataDir>,
    /// Which certificate authority signs the TLS certificate.
    pub authority: AuthoritySource,
    /// Limits on connections, sizes and timeouts.
    pub limits: Limits,
    /// How many requests the request log holds, for the control port.
    pub request_log_capacity: usize,
    /// The clock that the account lives by.
    pub clock: Clock,
}

impl Default for EmulatorConfig {
    fn default() -> EmulatorConfig {
        EmulatorConfig {
            bind: Bind::Loopback,
            port: 0,
            control_port: 0,
            key: WELL_KNOWN_KEY.to_owned(),
            secondary_key: None,
            read_only_keys: Vec::new(),
            entra: None,
            allowed_hosts: Vec::new(),
            control_token: None,
            partitions: None,
            partition_bytes_max: PARTITION_BYTES_MAX,
            request_units: RequestUnitMode::default(),
            regions: vec!["West US".to_owned()],
            multi_write: false,
            partition_failover: false,
            consistency: ConsistencyLevel::Session,
            lag: Lag::NONE,
            data: None,
            authority: AuthoritySource::default(),
            limits: Limits::default(),
            request_log_capacity: REQUEST_LOG_CAPACITY_DEFAULT,
            clock: Clock::system(),
        }
    }
}

impl EmulatorConfig {
    /// Parses the key that clients sign with.
    pub(crate) fn account_key(&self) -> Result<AccountKey, StartError> {
        parse_key(&self.key)
    }

    /// Who may reach the account: host names, further keys, and tokens of Microsoft Entra ID.
    pub(crate) fn access_control(&self) -> Result<AccessControl, StartError> {
        let mut host_names = HostNames::of_bind(self.bind);
        self.allowed_hosts.iter().for_each(|name| host_names.allow(name));
        let default_entra = || match self.bind.is_loopback() {
            true => EntraTokens::Accept,
            false => EntraTokens::Off,
        };
        Ok(AccessControl {
            host_names,
            keys: AccountKeys {
                secondary: self.secondary_key.as_deref().map(parse_key).transpose()?,
                read_only: self.read_only_keys.iter().map(|key| parse_key(key)).collect::<Result<_, _>>()?,
            },
            entra: self.entra.clone().unwrap_or_else(default_entra),
        })
    }
}

fn parse_key(key: &str) -> Result<AccountKey, StartError> {
    key.parse().map_err(|error: AccountKeyError| StartError::InvalidKey { reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_not_base64_is_refused_before_anything_starts() {
        let with_key = |key: &str| EmulatorConfig { key: key.to_owned(), ..EmulatorConfig::default() };
        assert!(with_key(WELL_KNOWN_KEY).account_key().is_ok());
        for key in ["", "not base64!", "abc"] {
            assert!(matches!(with_key(key).account_key(), Err(StartError::InvalidKey { .. })), "{key:?}");
        }
    }
}
