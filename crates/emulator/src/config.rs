//! What a caller may say about an emulator before it starts.
//!
//! [`EmulatorConfig::default`] suits tests: any free port, the well-known key, an authority that
//! lives as long as the process. `peri up` fills in the ports people expect.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;
use std::str::FromStr;

use protocol::account::ConsistencyLevel;
use protocol::authorization::{AccountKey, AccountKeyError, EMULATOR_KEY};

use crate::charge::RequestUnits;
use crate::clock::Clock;
use crate::disk::DataDir;
use crate::error::StartError;
use crate::regions::Lag;
use crate::server::{AuthoritySource, Limits};
use crate::sight::REQUESTS_KEPT_DEFAULT;

/// The key every official emulator and test suite uses.
pub const WELL_KNOWN_KEY: &str = EMULATOR_KEY;

/// What a physical partition of the service holds.
pub const PARTITION_BYTES_MAX: u64 = 50 * 1024 * 1024 * 1024;

/// Settings of one emulator. Start from [`Default`] and change what matters.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EmulatorConfig {
    /// Which addresses to listen on.
    pub bind: Bind,
    /// Port of the first region, the others follow; 0 means any for each.
    pub port: u16,
    /// Port of health and control; 0 means any.
    pub control_port: u16,
    /// Account key, in base64.
    pub key: String,
    /// Physical partitions of every new container; decided by its throughput when absent.
    pub partitions: Option<NonZeroU32>,
    /// Bytes a physical partition holds before it is split.
    pub partition_bytes_max: u64,
    /// Whether request units are counted, and whether they run out.
    pub request_units: RequestUnits,
    /// Names of the regions, as clients see them; the first one writes.
    pub regions: Vec<String>,
    /// Whether every region takes writes.
    pub multi_write: bool,
    /// Whether the writes of a single partition may move to another region.
    pub partition_failover: bool,
    /// What a read may miss unless it asks for less.
    pub consistency: ConsistencyLevel,
    /// How long commits take from one region to another.
    pub lag: Lag,
    /// Where the account is kept; in memory only when absent.
    pub data: Option<DataDir>,
    /// Which certificate authority stands behind https.
    pub authority: AuthoritySource,
    /// Bounds on what clients may do to the sockets.
    pub limits: Limits,
    /// How many of the last requests the control port can show.
    pub requests_kept: usize,
    /// What time it is.
    pub clock: Clock,
}

impl Default for EmulatorConfig {
    fn default() -> EmulatorConfig {
        EmulatorConfig {
            bind: Bind::Loopback,
            port: 0,
            control_port: 0,
            key: WELL_KNOWN_KEY.to_owned(),
            partitions: None,
            partition_bytes_max: PARTITION_BYTES_MAX,
            request_units: RequestUnits::default(),
            regions: vec!["West US".to_owned()],
            multi_write: false,
            partition_failover: false,
            consistency: ConsistencyLevel::Session,
            lag: Lag::NONE,
            data: None,
            authority: AuthoritySource::default(),
            limits: Limits::default(),
            requests_kept: REQUESTS_KEPT_DEFAULT,
            clock: Clock::system(),
        }
    }
}

impl EmulatorConfig {
    /// The key clients sign with, or why that cannot be one.
    pub(crate) fn account_key(&self) -> Result<AccountKey, StartError> {
        self.key
            .parse()
            .map_err(|error: AccountKeyError| StartError::InvalidKey { reason: error.to_string() })
    }
}

/// Which addresses the listeners take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bind {
    /// `127.0.0.1` and `::1`: both of the addresses `localhost` may resolve to.
    Loopback,
    /// One address; unspecified (`0.0.0.0`, `::`) means every interface.
    Address(IpAddr),
}

impl Bind {
    /// The address that must work; a failure here is a failure to start.
    pub(crate) fn primary(self) -> IpAddr {
        match self {
            Bind::Loopback => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Bind::Address(address) => address,
        }
    }

    /// The address that is taken too when it can be had.
    pub(crate) fn secondary(self) -> Option<IpAddr> {
        const EVERY_IPV4: Bind = Bind::Address(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        match self {
            // Here too, clients on this machine say `localhost` and may mean `::1`.
            Bind::Loopback | EVERY_IPV4 => Some(IpAddr::V6(Ipv6Addr::LOCALHOST)),
            Bind::Address(_) => None,
        }
    }

    /// The host a client on this machine puts into a URL.
    pub fn host(self) -> String {
        match self {
            Bind::Loopback => "localhost".to_owned(),
            Bind::Address(address) if address.is_loopback() || address.is_unspecified() => {
                "localhost".to_owned()
            }
            Bind::Address(IpAddr::V4(address)) => address.to_string(),
            Bind::Address(IpAddr::V6(address)) => format!("[{address}]"),
        }
    }
}

impl FromStr for Bind {
    type Err = String;

    fn from_str(text: &str) -> Result<Bind, String> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        match bare.parse::<IpAddr>() {
            _ if bare.eq_ignore_ascii_case("localhost") => Ok(Bind::Loopback),
            Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)) => Ok(Bind::Loopback),
            Ok(address) => Ok(Bind::Address(address)),
            Err(_) => Err(format!(
                "expected an IP address or localhost, found '{text}' (0.0.0.0 listens on every interface)"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bind_address_says_where_to_listen_and_what_to_call_it() {
        let cases = [
            ("localhost", "127.0.0.1", Some("::1"), "localhost"),
            ("LOCALHOST", "127.0.0.1", Some("::1"), "localhost"),
            ("127.0.0.1", "127.0.0.1", Some("::1"), "localhost"),
            ("0.0.0.0", "0.0.0.0", Some("::1"), "localhost"),
            ("::", "::", None, "localhost"),
            ("[::1]", "::1", None, "localhost"),
            ("192.168.1.7", "192.168.1.7", None, "192.168.1.7"),
            ("fd00::7", "fd00::7", None, "[fd00::7]"),
        ];
        for (text, primary, secondary, host) in cases {
            let bind: Bind = text.parse().unwrap();
            assert_eq!(bind.primary().to_string(), primary, "{text}");
            assert_eq!(bind.secondary().map(|address| address.to_string()).as_deref(), secondary, "{text}");
            assert_eq!(bind.host(), host, "{text}");
        }
    }

    #[test]
    fn a_name_that_is_no_address_is_refused_with_a_hint() {
        let error = "example.com".parse::<Bind>().unwrap_err();
        assert!(error.contains("example.com") && error.contains("0.0.0.0"), "{error}");
    }

    #[test]
    fn a_key_that_is_not_base64_is_refused_before_anything_starts() {
        let with_key = |key: &str| EmulatorConfig { key: key.to_owned(), ..EmulatorConfig::default() };
        assert!(with_key(WELL_KNOWN_KEY).account_key().is_ok());
        for key in ["", "not base64!", "abc"] {
            assert!(matches!(with_key(key).account_key(), Err(StartError::InvalidKey { .. })), "{key:?}");
        }
    }
}
