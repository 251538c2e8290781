//! The JSON line that `peri up --json` prints when the account is ready. Its names are stable: later versions only add
//! properties.

use std::fmt;

use emulator::{RegionEndpoint, RunningEmulator};
use serde::Serialize;

/// Endpoints and keys of a running account, for scripts.
#[derive(Debug, Serialize)]
pub(crate) struct ReadyLine {
    ready: bool,
    account: Account,
    control: Control,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Account {
    endpoint: String,
    key: String,
    connection_string: String,
    regions: Vec<Region>,
}

#[derive(Debug, Serialize)]
struct Region {
    name: String,
    endpoint: String,
    write: bool,
}

#[derive(Debug, Serialize)]
struct Control {
    endpoint: String,
    /// The token that requests need, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl From<RegionEndpoint> for Region {
    fn from(region: RegionEndpoint) -> Region {
        Region { name: region.name, endpoint: region.endpoint, write: region.writes }
    }
}

impl ReadyLine {
    pub(crate) fn of(running: &RunningEmulator) -> ReadyLine {
        ReadyLine {
            ready: true,
            account: Account {
                endpoint: running.endpoint(),
                key: running.key().to_owned(),
                connection_string: running.connection_string(),
                regions: running.regions().into_iter().map(Region::from).collect(),
            },
            control: Control {
                endpoint: running.control_endpoint(),
                token: running.control_token().map(str::to_owned),
            },
        }
    }
}

impl fmt::Display for ReadyLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}
