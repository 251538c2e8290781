//! A client's session: the token it keeps, and what it may no longer miss.

use std::collections::BTreeMap;

use protocol::session_token::{PartitionToken, SessionToken};

/// One client.
#[derive(Debug, Default)]
pub(crate) struct Session {
    token: SessionToken,
    /// By partition key, the LSN the client has seen.
    min_lsns: BTreeMap<String, u64>,
}

impl Session {
    /// What it sends, once it has something.
    pub(crate) fn header(&self) -> Option<String> {
        (!self.token.partitions().is_empty()).then(|| self.token.to_string())
    }

    /// The least LSN that it may be shown of a partition key.
    pub(crate) fn min_lsn(&self, key: &str) -> u64 {
        self.min_lsns.get(key).copied().unwrap_or(0)
    }

    /// Remembers a response about a partition that holds `keys`.
    pub(crate) fn observe<'a>(&mut self, token: &str, lsn: u64, keys: impl Iterator<Item = &'a str>) {
        let token = PartitionToken::parse(token).unwrap();
        self.token.record(token).unwrap();
        for key in keys {
            let min_lsn = self.min_lsns.entry(key.to_owned()).or_default();
            *min_lsn = lsn.max(*min_lsn);
        }
    }
}
