//! Options of request headers: priority, throughput bucket, and headers that the caller names.

use std::ops::RangeInclusive;
use std::sync::Arc;

use protocol::headers as names;

use super::InvalidOption;

/// The numbers that a throughput bucket of a container can have.
pub const THROUGHPUT_BUCKETS: RangeInclusive<u8> = 1..=5;

/// How many headers one operation may add.
const CUSTOM_HEADERS_MAX: usize = 32;
/// The longest value of a header that a caller adds; the service refuses requests with longer ones.
const CUSTOM_VALUE_BYTES_MAX: usize = 8 * 1024;

/// The priority of a request. When requests exceed the throughput, those of low priority are throttled first, in
/// accounts with priority-based execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Priority {
    /// Throttled after requests of low priority; the account's default unless it was changed.
    High,
    /// Throttled before requests of high priority.
    Low,
}

impl Priority {
    /// The value of `x-ms-cosmos-priority-level`.
    pub fn header_value(self) -> &'static str {
        match self {
            Priority::High => "High",
            Priority::Low => "Low",
        }
    }
}

/// A header that the caller adds to requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomHeader {
    name: String,
    value: String,
}

impl CustomHeader {
    /// The name of the header, in lower case.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value of the header, as it is sent.
    pub fn value(&self) -> &str {
        &self.value
    }
}

/// Options of request headers; unset ones come from the next layer.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct HeaderOptions {
    /// The priority of requests. Default: the account's.
    pub priority: Option<Priority>,
    /// The throughput bucket that requests are charged to. Default: the container's.
    pub throughput_bucket: Option<u8>,
    /// Further headers, each name once.
    custom: Option<Arc<[CustomHeader]>>,
}

/// The resolved settings of request headers.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct HeaderSettings {
    /// The priority of requests; none for the account's default.
    pub priority: Option<Priority>,
    /// The throughput bucket of requests; none for the container's default.
    pub throughput_bucket: Option<u8>,
    /// Further headers, each name once; none if there are none.
    pub(crate) custom: Option<Arc<[CustomHeader]>>,
}

impl HeaderOptions {
    /// Options that set nothing.
    pub fn new() -> HeaderOptions {
        HeaderOptions::default()
    }

    /// Sets the priority of requests.
    #[must_use]
    pub fn with_priority(self, priority: Priority) -> HeaderOptions {
        HeaderOptions { priority: Some(priority), ..self }
    }

    /// Sets the throughput bucket that requests are charged to: a number from 1 to 5.
    #[must_use]
    pub fn with_throughput_bucket(self, bucket: u8) -> HeaderOptions {
        HeaderOptions { throughput_bucket: Some(bucket), ..self }
    }

    /// Adds a header, in place of an earlier one of its name. A name or value that no header may have is an error
    /// of the operation, as is a header that the driver sets itself.
    #[must_use]
    pub fn with_header(self, name: &str, value: impl Into<String>) -> HeaderOptions {
        let header = CustomHeader { name: name.to_ascii_lowercase(), value: value.into() };
        let one = HeaderOptions { custom: Some([header].into()), ..HeaderOptions::default() };
        one.or(&self)
    }

    /// The headers that the caller added, in the order in which their names were first added.
    pub fn custom(&self) -> &[CustomHeader] {
        self.custom.as_deref().unwrap_or_default()
    }

    /// Fills unset options from `fallback`. Headers are filled one by one: those of `fallback` stay unless this has
    /// one of the same name.
    #[must_use]
    pub fn or(self, fallback: &HeaderOptions) -> HeaderOptions {
        let custom = match (self.custom, &fallback.custom) {
            (Some(own), Some(others)) => {
                let own_value = |name: &str| own.iter().find(|header| header.name == name);
                let kept = others.iter().map(|header| own_value(&header.name).unwrap_or(header));
                let new = own.iter().filter(|header| others.iter().all(|other| other.name != header.name));
                Some(kept.chain(new).cloned().collect())
            }
            (own, others) => own.or_else(|| others.clone()),
        };
        HeaderOptions {
            priority: self.priority.or(fallback.priority),
            throughput_bucket: self.throughput_bucket.or(fallback.throughput_bucket),
            custom,
        }
    }

    pub(super) fn resolve(&self) -> Result<HeaderSettings, InvalidOption> {
        if let Some(bucket) = self.throughput_bucket.filter(|bucket| !THROUGHPUT_BUCKETS.contains(bucket)) {
            let problem =
                format!("{bucket} is no bucket: use a number from 1 to 5 that the container defines");
            return Err(InvalidOption::new("headers.throughput_bucket", problem));
        }
        if self.custom().len() > CUSTOM_HEADERS_MAX {
            let problem =
                format!("{} headers are too many: add {CUSTOM_HEADERS_MAX} at most", self.custom().len());
            return Err(InvalidOption::new(CUSTOM, problem));
        }
        self.custom().iter().try_for_each(check)?;
        Ok(HeaderSettings {
            priority: self.priority,
            throughput_bucket: self.throughput_bucket,
            custom: self.custom.clone(),
        })
    }
}

/// The name of the option in errors.
const CUSTOM: &str = "headers.custom";

fn check(header: &CustomHeader) -> Result<(), InvalidOption> {
    let CustomHeader { name, value } = header;
    let invalid = |problem: String| Err(InvalidOption::new(CUSTOM, problem));
    if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
        return invalid(format!("`{}` is no header name: use letters, digits and `-`", name.escape_debug()));
    }
    // Other characters may stand in HTTP, but neither the signature nor the service's gateway agrees on their encoding.
    if let Some(character) = value.chars().find(|c| !(c.is_ascii_graphic() || matches!(c, ' ' | '\t'))) {
        let problem = format!("the value of `{name}` has {character:?}, which no header may hold: encode it");
        return invalid(problem);
    }
    if value.len() > CUSTOM_VALUE_BYTES_MAX {
        return invalid(format!(
            "the value of `{name}` has {} bytes: send {CUSTOM_VALUE_BYTES_MAX} at most",
            value.len()
        ));
    }
    if let Some((_, instead)) = SET_BY_DRIVER.iter().find(|(set, _)| set == name) {
        return invalid(format!("the driver sets `{name}` itself: {instead}"));
    }
    Ok(())
}

/// Headers that the driver sets from what it knows, and what to use instead of adding them.
const SET_BY_DRIVER: [(&str, &str); 35] = {
    const KEY: &str = "give the operation its partition key";
    const RANGE: &str = "limit the query or feed to a feed range";
    const CREDENTIAL: &str = "change the credential of the client";
    const REQUEST: &str = "leave it out";
    const FEED: &str = "set the continuation, mode or start of the feed";
    const ETAG: &str = "set the precondition of the operation";
    [
        (names::ACCEPT, REQUEST),
        (names::ACTIVITY_ID, "read it from the response"),
        (names::ALLOW_TENTATIVE_WRITES, REQUEST),
        (names::AUTHORIZATION, CREDENTIAL),
        (names::A_IM, FEED),
        (names::BATCH_ATOMIC, "execute a batch or a bulk"),
        (names::BATCH_CONTINUE_ON_ERROR, "execute a batch or a bulk"),
        (names::CACHE_CONTROL, REQUEST),
        (names::CLIENT_ID, REQUEST),
        (names::CONTENT_LENGTH, REQUEST),
        (names::CONTENT_TYPE, REQUEST),
        (names::CONTINUATION, FEED),
        (names::DATE, REQUEST),
        (names::END_EPK, RANGE),
        (names::HOST, "connect to another endpoint"),
        (names::IF_MATCH, ETAG),
        (names::IF_MODIFIED_SINCE, FEED),
        (names::IF_NONE_MATCH, ETAG),
        (names::INTENDED_COLLECTION_RID, REQUEST),
        (names::IS_BATCH_REQUEST, "execute a batch or a bulk"),
        (names::IS_QUERY, "run a query"),
        (names::IS_UPSERT, "upsert the item"),
        (names::NO_RETRY_449, REQUEST),
        (names::PARTITION_KEY, KEY),
        (names::PARTITION_KEY_RANGE_ID, RANGE),
        (names::PRIORITY_LEVEL, "set the priority"),
        (names::READ_CONSISTENCY_STRATEGY, "set the read strategy of the consistency options"),
        (names::READ_KEY_TYPE, RANGE),
        (names::SDK_SUPPORTED_CAPABILITIES, REQUEST),
        (names::SESSION_TOKEN, "set the session token of the operation"),
        (names::START_EPK, RANGE),
        (names::THROUGHPUT_BUCKET, "set the throughput bucket"),
        (names::USER_AGENT, "set the application name of the client"),
        (names::VERSION, REQUEST),
        (names::X_DATE, REQUEST),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(options: &HeaderOptions) -> Vec<(&str, &str)> {
        options.custom().iter().map(|header| (header.name(), header.value())).collect()
    }

    #[test]
    fn headers_of_several_layers_are_merged_by_name() {
        let outer =
            HeaderOptions::new().with_priority(Priority::Low).with_header("x-a", "1").with_header("X-B", "2");
        let inner =
            HeaderOptions::new().with_throughput_bucket(3).with_header("x-b", "3").with_header("x-c", "4");
        let merged = inner.or(&outer);
        assert_eq!(pairs(&merged), [("x-a", "1"), ("x-b", "3"), ("x-c", "4")]);
        assert_eq!((merged.priority, merged.throughput_bucket), (Some(Priority::Low), Some(3)));
        assert_eq!(pairs(&HeaderOptions::new().or(&outer)), [("x-a", "1"), ("x-b", "2")]);
    }

    #[test]
    fn headers_that_cannot_be_sent_are_refused_with_advice() {
        let long = "v".repeat(CUSTOM_VALUE_BYTES_MAX + 1);
        for (name, value, part) in [
            ("", "v", "no header name"),
            ("x a", "v", "no header name"),
            ("x-a", "line\nbreak", "encode it"),
            ("x-a", "é", "encode it"),
            ("x-a", long.as_str(), "at most"),
            ("Authorization", "v", "credential of the client"),
            ("x-ms-session-token", "0:-1#1", "set the session token"),
            ("x-ms-documentdb-partitionkey", "[1]", "give the operation its partition key"),
        ] {
            let error = HeaderOptions::new().with_header(name, value).resolve().expect_err(name);
            assert!(error.to_string().contains(part), "{name}: {error}");
        }
        let many =
            (0..33).fold(HeaderOptions::new(), |options, at| options.with_header(&format!("x-{at}"), ""));
        assert!(many.resolve().is_err());
        for (bucket, valid) in [(0, false), (1, true), (5, true), (6, false)] {
            assert_eq!(HeaderOptions::new().with_throughput_bucket(bucket).resolve().is_ok(), valid);
        }
    }
}
