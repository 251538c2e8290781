//! A client's session: its token, and the LSNs that its reads must reach.

use std::collections::BTreeMap;

use protocol::session_token::{PartitionToken, SessionToken};

/// The session of one client.
#[derive(Debug, Default)]
pub(crate) struct Session {
    token: SessionToken,
    /// The LSN that the client has seen, by partition key.
    min_lsns: BTreeMap<String, u64>,
}

impl Session {
    /// The session token header, if there is a token.
    pub(crate) fn header(&self) -> Option<String> {
        (!self.token.partitions().is_empty()).then(|| self.token.to_string())
    }

    /// The lowest LSN that its reads of a partition key may have.
    pub(crate) fn min_lsn(&self, key: &str) -> u64 {
        self.min_lsns.get(key).copied().unwrap_or(0)
    }

    /// Records a response of the partition that contains `keys`.
    pub(crate) fn observe<'a>(&mut self, token: &str, lsn: u64, keys: impl Iterator<Item = &'a str>) {
        let token = PartitionToken::parse(token).unwrap();
        self.token.record(token).unwrap();
        for key in keys {
            let min_lsn = self.min_lsns.entry(key.to_owned()).or_default();
            *min_lsn = lsn.max(*min_lsn);
        }
    }
}
