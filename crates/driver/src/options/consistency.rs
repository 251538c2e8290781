//! Options of read consistency and session tokens.

/// The consistency strategy of reads, as `x-ms-cosmos-read-consistency-strategy` spells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReadConsistencyStrategy {
    /// The account's default consistency.
    #[default]
    Default,
    /// The data of any replica.
    Eventual,
    /// At least the data that this client has seen.
    Session,
    /// The newest data that a region has committed.
    LatestCommitted,
    /// The newest data that all regions have committed; for accounts with strong consistency.
    GlobalStrong,
}

impl ReadConsistencyStrategy {
    /// The value of the header; none for the account's default.
    pub fn header_value(self) -> Option<&'static str> {
        match self {
            ReadConsistencyStrategy::Default => None,
            ReadConsistencyStrategy::Eventual => Some("Eventual"),
            ReadConsistencyStrategy::Session => Some("Session"),
            ReadConsistencyStrategy::LatestCommitted => Some("LatestCommitted"),
            ReadConsistencyStrategy::GlobalStrong => Some("GlobalStrong"),
        }
    }

    /// Reads a name, whatever its case.
    pub fn parse(text: &str) -> Option<ReadConsistencyStrategy> {
        let all = [
            (ReadConsistencyStrategy::Default, "Default"),
            (ReadConsistencyStrategy::Eventual, "Eventual"),
            (ReadConsistencyStrategy::Session, "Session"),
            (ReadConsistencyStrategy::LatestCommitted, "LatestCommitted"),
            (ReadConsistencyStrategy::GlobalStrong, "GlobalStrong"),
        ];
        all.into_iter().find(|(_, name)| name.eq_ignore_ascii_case(text)).map(|(strategy, _)| strategy)
    }
}

/// Options of consistency; unset ones come from the next layer.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ConsistencyOptions {
    /// Overrides [`ConsistencySettings::read_strategy`] if it is set.
    pub read_strategy: Option<ReadConsistencyStrategy>,
    /// Overrides [`ConsistencySettings::track_sessions`] if it is set.
    pub track_sessions: Option<bool>,
}

/// The resolved settings of consistency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsistencySettings {
    /// The strategy of reads. Default: the account's.
    pub read_strategy: ReadConsistencyStrategy,
    /// Whether the driver remembers what it has seen and asks for at least that. A session token
    /// given with an operation is sent either way. Default: yes.
    pub track_sessions: bool,
}

impl Default for ConsistencySettings {
    fn default() -> ConsistencySettings {
        ConsistencySettings { read_strategy: ReadConsistencyStrategy::Default, track_sessions: true }
    }
}

impl ConsistencyOptions {
    /// Options that set nothing.
    pub fn new() -> ConsistencyOptions {
        ConsistencyOptions::default()
    }

    /// Sets the value of [`ConsistencySettings::read_strategy`].
    #[must_use]
    pub fn with_read_strategy(self, strategy: ReadConsistencyStrategy) -> ConsistencyOptions {
        ConsistencyOptions { read_strategy: Some(strategy), ..self }
    }

    /// Sets the value of [`ConsistencySettings::track_sessions`].
    #[must_use]
    pub fn with_track_sessions(self, track: bool) -> ConsistencyOptions {
        ConsistencyOptions { track_sessions: Some(track), ..self }
    }

    /// Fills unset options from `fallback`.
    #[must_use]
    pub fn or(self, fallback: &ConsistencyOptions) -> ConsistencyOptions {
        ConsistencyOptions {
            read_strategy: self.read_strategy.or(fallback.read_strategy),
            track_sessions: self.track_sessions.or(fallback.track_sessions),
        }
    }

    pub(super) fn resolve(&self) -> ConsistencySettings {
        let default = ConsistencySettings::default();
        ConsistencySettings {
            read_strategy: self.read_strategy.unwrap_or(default.read_strategy),
            track_sessions: self.track_sessions.unwrap_or(default.track_sessions),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_is_read_as_it_is_written() {
        for strategy in [
            ReadConsistencyStrategy::Eventual,
            ReadConsistencyStrategy::Session,
            ReadConsistencyStrategy::LatestCommitted,
            ReadConsistencyStrategy::GlobalStrong,
        ] {
            let text = strategy.header_value().expect("sent");
            assert_eq!(ReadConsistencyStrategy::parse(&text.to_lowercase()), Some(strategy));
        }
        assert_eq!(ReadConsistencyStrategy::parse("default"), Some(ReadConsistencyStrategy::Default));
        assert_eq!(ReadConsistencyStrategy::Default.header_value(), None);
        assert_eq!(ReadConsistencyStrategy::parse("strong"), None);
    }
}
