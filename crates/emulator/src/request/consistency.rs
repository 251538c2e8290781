//! The consistency level and priority of a request.
//!
//! Input: the headers that request a level or a priority, and the account's default. Output: the level, or
//! 400: a request may weaken the account's level, never strengthen it, and unknown values are rejected.

use http::HeaderValue;
use protocol::account::ConsistencyLevel;
use protocol::headers as name;

use super::headers::{RequestHeaders, invalid_value};
use crate::response::ServiceError;
use engine::charge::Priority;

/// The consistency level of a request. Rejects levels and priorities that the account does not support.
pub(crate) fn level(
    headers: &RequestHeaders<'_>,
    account: ConsistencyLevel,
) -> Result<ConsistencyLevel, ServiceError> {
    let mut level = account;
    if let Some(value) = headers.consistency_level {
        let requested = value.to_str().ok().and_then(|word| word.parse::<ConsistencyLevel>().ok());
        let requested = requested.ok_or_else(|| invalid_value(name::CONSISTENCY_LEVEL, value))?;
        if !requested.is_allowed_by(account) {
            return Err(too_strong(requested.name(), account));
        }
        level = requested;
    }
    if let Some(value) = headers.read_consistency_strategy {
        level = level_of_strategy(value, account)?.unwrap_or(level);
    }
    match headers.priority_level {
        Some(value) if !is_one_of(value, &["High", "Low"]) => Err(invalid_value(name::PRIORITY_LEVEL, value)),
        _ => Ok(level),
    }
}

/// The priority of a request whose headers have been checked.
pub(crate) fn priority(headers: &RequestHeaders<'_>) -> Priority {
    match headers.priority_level {
        Some(value) if is_one_of(value, &["Low"]) => Priority::Low,
        _ => Priority::High,
    }
}

/// The consistency level of a read strategy. The latest committed version is the one of the serving region.
fn level_of_strategy(
    value: &HeaderValue,
    account: ConsistencyLevel,
) -> Result<Option<ConsistencyLevel>, ServiceError> {
    if is_one_of(value, &["Default", "LatestCommitted"]) {
        return Ok(None);
    }
    for level in [ConsistencyLevel::Eventual, ConsistencyLevel::Session] {
        if is_one_of(value, &[level.name()]) {
            return Ok(Some(level));
        }
    }
    if !is_one_of(value, &["GlobalStrong"]) {
        return Err(invalid_value(name::READ_CONSISTENCY_STRATEGY, value));
    }
    match account {
        ConsistencyLevel::Strong => Ok(Some(account)),
        _ => Err(too_strong("GlobalStrong", account)),
    }
}

fn is_one_of(value: &HeaderValue, words: &[&str]) -> bool {
    words.iter().any(|word| value.as_bytes().eq_ignore_ascii_case(word.as_bytes()))
}

fn too_strong(requested: &str, account: ConsistencyLevel) -> ServiceError {
    ServiceError::bad_request(format!(
        "The requested consistency level '{requested}' is stronger than the consistency level '{}' that this account \
         is configured with. A request can weaken the consistency level, not strengthen it.",
        account.name()
    ))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn level_or_status(header: &'static str, value: &'static str) -> Option<u16> {
        let mut map = HeaderMap::new();
        map.insert(header, HeaderValue::from_static(value));
        level(&RequestHeaders::scan(&map), ConsistencyLevel::Session).err().map(|error| error.status.0)
    }

    #[test]
    fn a_request_may_weaken_the_account_s_level_and_not_strengthen_it() {
        for (level, expected) in [
            ("Strong", Some(400)),
            ("BoundedStaleness", Some(400)),
            ("Session", None),
            ("session", None),
            ("ConsistentPrefix", None),
            ("Eventual", None),
            ("Whenever", Some(400)),
        ] {
            assert_eq!(level_or_status(name::CONSISTENCY_LEVEL, level), expected, "{level}");
        }
    }

    #[test]
    fn unknown_strategies_and_priorities_are_rejected() {
        for (header, value, expected) in [
            (name::READ_CONSISTENCY_STRATEGY, "LatestCommitted", None),
            (name::READ_CONSISTENCY_STRATEGY, "GlobalStrong", Some(400)),
            (name::READ_CONSISTENCY_STRATEGY, "Other", Some(400)),
            (name::PRIORITY_LEVEL, "High", None),
            (name::PRIORITY_LEVEL, "low", None),
            (name::PRIORITY_LEVEL, "Medium", Some(400)),
        ] {
            assert_eq!(level_or_status(header, value), expected, "{header}: {value}");
        }
    }
}
