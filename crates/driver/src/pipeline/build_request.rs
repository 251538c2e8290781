//! Builds the request of an attempt from the operation, its location and the session. Pure.
//!
//! Cost: one list of headers, and a copy of each value that is not known beforehand.

use crate::diagnostics::ExecutionContext;
use crate::gateway::{AttemptProgress, GatewayRequest};
use crate::transport::HeaderList;
use std::time::Instant;

use protocol::headers as names;
use protocol::session_token::SessionToken;

use super::location::Location;
use crate::operation::{Operation, OperationKind, Precondition, Scope};
use crate::options::{HeaderSettings, OperationSettings};
use crate::routing::{AccountState, Endpoint};
use crate::session::{ContainerSession, sends_token};

const TRUE: &str = "true";

/// What the requests of an attempt have in common, whichever region they go to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestBuilder<'a> {
    /// The operation that is attempted.
    pub(crate) operation: &'a Operation,
    /// The settings of the operation.
    pub(crate) settings: &'a OperationSettings,
    /// The container and partition, for operations on data.
    pub(crate) location: Option<&'a Location>,
    /// The snapshot of the account.
    pub(crate) account: &'a AccountState,
    /// The deadline of the operation.
    pub(crate) deadline: Instant,
}

impl<'a> RequestBuilder<'a> {
    /// The request to one endpoint, which records its progress.
    pub(crate) fn request<'b>(
        &self,
        endpoint: &'b Endpoint,
        context: ExecutionContext,
        progress: &'b AttemptProgress,
    ) -> GatewayRequest<'b>
    where
        'a: 'b,
    {
        GatewayRequest {
            operation: self.operation,
            endpoint,
            headers: self.headers(),
            context,
            deadline: self.deadline,
            progress: Some(progress),
        }
    }

    fn headers(&self) -> HeaderList {
        let operation = self.operation;
        let mut headers = HeaderList::new();
        match operation.scope() {
            Scope::Container => {}
            Scope::Key(_) => {
                if let Some(key) = operation.key_header() {
                    headers.set(names::PARTITION_KEY, key);
                }
            }
            Scope::Range(_) | Scope::Partition(_) => {
                if let Some(id) = self.location.and_then(Location::range) {
                    headers.set(names::PARTITION_KEY_RANGE_ID, &id.to_string());
                }
            }
        }
        if let Some(location) = self.location {
            if let Some(bounds) = &location.bounds {
                headers.set_fixed(names::READ_KEY_TYPE, names::READ_KEY_TYPE_RANGE);
                headers.set(names::START_EPK, &bounds.min.to_hex());
                headers.set(names::END_EPK, &bounds.max.to_hex());
            }
            if let Scope::Key(_) = operation.scope() {
                headers.set(names::INTENDED_COLLECTION_RID, location.container.rid());
            }
        }
        if let Some(token) = self.session_token() {
            headers.set(names::SESSION_TOKEN, &token);
        }
        if operation.is_read_only() {
            if let Some(strategy) = self.settings.consistency.read_strategy.header_value() {
                headers.set_fixed(names::READ_CONSISTENCY_STRATEGY, strategy);
            }
        } else if self.account.is_multi_write() {
            headers.set_fixed(names::ALLOW_TENTATIVE_WRITES, TRUE);
        }
        match operation.precondition() {
            Precondition::None => {}
            Precondition::IfMatch(etag) => headers.set(names::IF_MATCH, etag),
            Precondition::IfNoneMatch(etag) => headers.set(names::IF_NONE_MATCH, etag),
        }
        if let Some((name, value)) = header_of_kind(operation.kind()) {
            headers.set_fixed(name, value);
        }
        if let Some(content_type) = content_type(operation) {
            headers.set_fixed(names::CONTENT_TYPE, content_type);
        }
        for (name, value) in operation.headers() {
            headers.set(name, value);
        }
        let HeaderSettings { priority, throughput_bucket, custom, .. } = &self.settings.headers;
        if let Some(priority) = priority {
            headers.set_fixed(names::PRIORITY_LEVEL, priority.header_value());
        }
        if let Some(bucket) = throughput_bucket {
            headers.set(names::THROUGHPUT_BUCKET, &bucket.to_string());
        }
        if let Some(custom) = custom {
            headers.set_custom(custom);
        }
        headers
    }

    /// The caller's session token, or the one of this driver's session.
    fn session_token(&self) -> Option<String> {
        if let Some(token) = self.operation.session_token() {
            return Some(self.token_of_partition(token));
        }
        let (account, consistency) = (self.account, &self.settings.consistency);
        let is_read = self.operation.is_read_only();
        let location = self.location?;
        sends_token(consistency, account.consistency(), is_read, account.is_multi_write())
            .then(|| location.container.session().token(location.session_scope()))?
    }

    /// The part of a token of several partitions that is about the partition of the request: the whole token may
    /// be longer than a header can be. The token stays as it is where the partition is not known, or the token
    /// has no such part or cannot be parsed, which is for the service to reject.
    fn token_of_partition(&self, token: &str) -> String {
        let own = self.location.filter(|_| token.contains(',') && SessionToken::parse(token).is_ok());
        let own = own.and_then(|location| {
            let given = ContainerSession::new();
            given.record(token);
            given.token(location.session_scope())
        });
        own.unwrap_or_else(|| token.to_owned())
    }
}

fn header_of_kind(kind: OperationKind) -> Option<(&'static str, &'static str)> {
    match kind {
        OperationKind::Upsert => Some((names::IS_UPSERT, TRUE)),
        OperationKind::Batch => Some((names::IS_BATCH_REQUEST, TRUE)),
        OperationKind::Query => Some((names::IS_QUERY, TRUE)),
        OperationKind::QueryPlan => Some((names::IS_QUERY_PLAN_REQUEST, TRUE)),
        OperationKind::Create
        | OperationKind::Read
        | OperationKind::ReadFeed
        | OperationKind::Replace
        | OperationKind::Delete
        | OperationKind::Patch
        | OperationKind::Execute => None,
    }
}

fn content_type(operation: &Operation) -> Option<&'static str> {
    match operation.kind() {
        OperationKind::Query | OperationKind::QueryPlan => Some(names::CONTENT_TYPE_QUERY),
        OperationKind::Patch => Some("application/json_patch+json"),
        _ if operation.body().is_empty() => None,
        _ => Some(names::CONTENT_TYPE_JSON),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use protocol::container::PartitionKeyDefinition;
    use protocol::partition::{EffectivePartitionKey, EpkRange, PartitionKey};
    use protocol::partition_range::{PartitionKeyRange, RangeId};
    use protocol::resource_id::{ContainerRid, DatabaseRid};

    use super::*;
    use crate::cache::{Container, ContainerDefinition, RangeFeed, RangePage, read_ranges};
    use crate::clock::Clock;
    use crate::error::Error;
    use crate::operation::{ContainerName, Target};
    use crate::options::{
        ConsistencyOptions, DriverSettings, HeaderOptions, OperationOptions, Priority,
        ReadConsistencyStrategy,
    };
    use crate::routing::test_accounts::account;

    fn location(bounds: Option<EpkRange>) -> Location {
        let partition_key = PartitionKeyDefinition::hash("/pk").expect("a path");
        let definition = ContainerDefinition { rid: "rid==".into(), partition_key };
        let container = Arc::new(Container::new(ContainerName::new("d", "c"), definition));
        container.session().record("0:-1#7");
        let partition = crate::routing::test_partitions::partition(0);
        Location { container, ranges: None, partition: Some(partition), bounds }
    }

    fn sent(operation: &Operation, location: Option<&Location>, multi_write: bool) -> Vec<(String, String)> {
        let writes: &[&str] = if multi_write { &["A", "B"] } else { &["A"] };
        let account = account(writes, &["A", "B"]);
        let settings = OperationSettings::default();
        let deadline = Clock::machine().now();
        let parts = RequestBuilder { operation, settings: &settings, location, account: &account, deadline };
        let progress = AttemptProgress::default();
        let request = parts.request(account.hub(), ExecutionContext::Initial, &progress);
        assert_eq!(request.endpoint.url().as_str(), "http://a.example/");
        let pairs = request.headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut pairs: Vec<_> = pairs.collect();
        pairs.sort();
        pairs
    }

    #[track_caller]
    fn check(
        operation: &Operation,
        location: Option<&Location>,
        multi_write: bool,
        expected: &[(&str, &str)],
    ) {
        let sent = sent(operation, location, multi_write);
        let sent: Vec<_> = sent.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(sent, expected);
    }

    #[test]
    fn requests_carry_what_their_operation_needs_and_nothing_else() {
        let name = ContainerName::new("d", "c");
        let key = || PartitionKey::single("k");
        let here = location(None);
        check(
            &Operation::read_item(&name, key(), "a/b"),
            Some(&here),
            false,
            &[
                ("x-ms-cosmos-intended-collection-rid", "rid=="),
                ("x-ms-documentdb-partitionkey", r#"["k"]"#),
                ("x-ms-session-token", "0:-1#7"),
            ],
        );
        check(
            &Operation::upsert_item(&name, key(), "{}").with_precondition(Precondition::IfMatch("e".into())),
            Some(&here),
            false,
            &[
                ("content-type", "application/json"),
                ("if-match", "e"),
                ("x-ms-cosmos-intended-collection-rid", "rid=="),
                ("x-ms-documentdb-is-upsert", "true"),
                ("x-ms-documentdb-partitionkey", r#"["k"]"#),
            ],
        );
        check(
            &Operation::delete_item(&name, key(), "i"),
            Some(&here),
            true,
            &[
                ("x-ms-cosmos-allow-tentative-writes", "true"),
                ("x-ms-cosmos-intended-collection-rid", "rid=="),
                ("x-ms-documentdb-partitionkey", r#"["k"]"#),
                ("x-ms-session-token", "0:-1#7"),
            ],
        );
        let bounds =
            EpkRange::new(EffectivePartitionKey::MIN, EffectivePartitionKey::from_hex("3F").expect("hex"));
        check(
            &Operation::new(OperationKind::Query, Target::items(&name))
                .with_scope(Scope::Range(bounds.clone()))
                .with_body("{}")
                .with_session_token("0:-1#9")
                .with_header("x-ms-max-item-count", "10"),
            Some(&location(Some(bounds))),
            false,
            &[
                ("content-type", "application/query+json"),
                ("x-ms-documentdb-isquery", "true"),
                ("x-ms-documentdb-partitionkeyrangeid", "0"),
                ("x-ms-end-epk", "3F"),
                ("x-ms-max-item-count", "10"),
                ("x-ms-read-key-type", "EffectivePartitionKeyRange"),
                ("x-ms-session-token", "0:-1#9"),
                ("x-ms-start-epk", ""),
            ],
        );
        check(&Operation::new(OperationKind::ReadFeed, Target::databases()), None, true, &[]);
    }

    /// One partition for the whole EPK space, which was split from range 7.
    struct OneRange;

    impl RangeFeed for OneRange {
        async fn page(&self, _: Option<&str>, _: Option<&str>) -> Result<RangePage, Error> {
            let container = ContainerRid { database: DatabaseRid(1), container: 1 };
            let ranges = vec![PartitionKeyRange {
                parents: vec![RangeId(7)],
                ..PartitionKeyRange::new(container, RangeId(0), EpkRange::FULL)
            }];
            Ok(RangePage::Ranges { ranges, etag: None, continuation: None })
        }
    }

    #[tokio::test]
    async fn of_a_token_of_many_partitions_the_own_part_is_sent() {
        let token = |given: &str, location: Option<&Location>| {
            let name = ContainerName::new("d", "c");
            let read = Operation::read_item(&name, PartitionKey::single("k"), "i").with_session_token(given);
            let sent = sent(&read, location, false);
            sent.into_iter().find(|(name, _)| name == "x-ms-session-token").map(|(_, value)| value)
        };
        let mut here = location(None);
        here.ranges = Some(Arc::new(read_ranges(None, &OneRange).await.expect("one partition")));
        for (given, sent) in [
            ("0:-1#9", "0:-1#9"),
            ("0:-1#9,1:-1#4", "0:-1#9"),
            ("2:-1#3,7:-1#5", "0:-1#5"),
            // Has no part of the partition, or cannot be parsed: the service decides.
            ("2:-1#3,3:-1#5", "2:-1#3,3:-1#5"),
            ("0:-1#9,what", "0:-1#9,what"),
        ] {
            assert_eq!(token(given, Some(&here)).as_deref(), Some(sent), "{given}");
            assert_eq!(token(given, None).as_deref(), Some(given));
        }
    }

    #[test]
    fn the_callers_headers_come_last_and_replace_those_of_the_operation() {
        let driver = DriverSettings::default();
        let own = HeaderOptions::new()
            .with_priority(Priority::Low)
            .with_throughput_bucket(2)
            .with_header("X-Ms-Max-Item-Count", "5")
            .with_header("x-shop", "one");
        let options = OperationOptions::new().with_headers(own);
        let settings = driver.for_operation(Some(&options)).expect("valid");
        let operation = Operation::new(OperationKind::ReadFeed, Target::databases())
            .with_header("x-ms-max-item-count", "10");
        let account = account(&["A"], &["A"]);
        let deadline = Clock::machine().now();
        let parts = RequestBuilder {
            operation: &operation,
            settings: &settings,
            location: None,
            account: &account,
            deadline,
        };
        let headers =
            parts.request(account.hub(), ExecutionContext::Initial, &AttemptProgress::default()).headers;
        let mut sent: Vec<_> = headers.iter().collect();
        sent.sort_unstable();
        assert_eq!(
            sent,
            [
                ("x-ms-cosmos-priority-level", "Low"),
                ("x-ms-cosmos-throughput-bucket", "2"),
                ("x-ms-max-item-count", "5"),
                ("x-shop", "one"),
            ]
        );
    }

    #[test]
    fn a_read_strategy_is_asked_for_by_name_and_needs_no_session() {
        let strategy = ConsistencyOptions::new().with_read_strategy(ReadConsistencyStrategy::LatestCommitted);
        let driver = DriverSettings::default();
        let options = OperationOptions::new().with_consistency(strategy);
        let settings = driver.for_operation(Some(&options)).expect("valid");
        let operation = Operation::read_item(&ContainerName::new("d", "c"), PartitionKey::single("k"), "i");
        let (account, here) = (account(&["A"], &["A"]), location(None));
        let deadline = Clock::machine().now();
        let parts = RequestBuilder {
            operation: &operation,
            settings: &settings,
            location: Some(&here),
            account: &account,
            deadline,
        };
        let progress = AttemptProgress::default();
        let headers = parts.request(account.hub(), ExecutionContext::Initial, &progress).headers;
        let value = |name| headers.get(name);
        assert_eq!(value(names::READ_CONSISTENCY_STRATEGY), Some("LatestCommitted"));
        assert_eq!(value(names::SESSION_TOKEN), None);
    }
}
