//! The attributes of a request that rules look at, read from the request as it is sent.
//!
//! Below sharding there are no operations any more, only methods, paths and headers, so the operation is read
//! back from those. Pure.

use azure_core::http::Method;
use faults::{OperationKind, RequestAttributes, ResourceKind};
use protocol::headers as names;
use protocol::resource_path::{ResourcePath, ResourceType};
use serde_json::Value;

use crate::transport::TransportRequest;

/// What a request says about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SentRequest {
    method: &'static str,
    operation: Option<OperationKind>,
    resource: Option<ResourceKind>,
    database: Option<String>,
    container: Option<String>,
    partition_key: Option<Value>,
}

impl SentRequest {
    /// Reads a request. What is not of the service's API stays unknown.
    pub(super) fn read(request: &TransportRequest<'_>) -> SentRequest {
        let method = request.method.as_str();
        let Ok(path) = ResourcePath::parse(request.path) else {
            return SentRequest { method, ..SentRequest::default() };
        };
        let key = request.headers.get(names::PARTITION_KEY);
        SentRequest {
            method,
            operation: Some(operation(request, &path)),
            resource: Some(ResourceKind::from(path.resource_type())),
            database: path.database().map(str::to_owned),
            container: path.container().map(str::to_owned),
            partition_key: key.and_then(|key| serde_json::from_str(key).ok()),
        }
    }

    /// The attributes of the request on its way to an endpoint, in a region if that is known, over a shard.
    pub(super) fn attributes<'a>(
        &'a self,
        endpoint: &'a str,
        region: Option<&'a str>,
        shard: u64,
    ) -> RequestAttributes<'a> {
        RequestAttributes {
            region,
            method: self.method,
            operation: self.operation,
            resource: self.resource,
            database: self.database.as_deref(),
            container: self.container.as_deref(),
            partition_key: self.partition_key.as_ref(),
            partition_key_range: None,
            endpoint: Some(endpoint),
            shard: Some(shard),
        }
    }
}

fn operation(request: &TransportRequest<'_>, path: &ResourcePath<'_>) -> OperationKind {
    let is_set = |name| request.headers.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    match request.method {
        Method::Get | Method::Head if path.is_feed() => match request.headers.get(names::A_IM) {
            Some(_) => OperationKind::ChangeFeed,
            None => OperationKind::ReadFeed,
        },
        Method::Get | Method::Head => OperationKind::Read,
        Method::Put => OperationKind::Replace,
        Method::Patch => OperationKind::Patch,
        Method::Delete => OperationKind::Delete,
        Method::Post if path.resource_type() == ResourceType::Operation => OperationKind::DeletePartition,
        Method::Post if is_set(names::IS_QUERY_PLAN_REQUEST) => OperationKind::QueryPlan,
        Method::Post if is_set(names::IS_QUERY) => OperationKind::Query,
        Method::Post if is_set(names::IS_BATCH_REQUEST) => OperationKind::Batch,
        Method::Post if is_set(names::IS_UPSERT) => OperationKind::Upsert,
        Method::Post if path.is_feed() => OperationKind::Create,
        // What is left is the execution of a stored procedure.
        _ => OperationKind::Execute,
    }
}

#[cfg(test)]
mod tests {
    use azure_core::http::Url;
    use bytes::Bytes;
    use faults::FaultRule;

    use super::*;
    use crate::transport::HeaderList;

    static NOTHING: Bytes = Bytes::new();

    fn one() -> Url {
        Url::parse("https://one.example/").expect("a URL")
    }

    fn request<'a>(
        endpoint: &'a Url,
        method: Method,
        path: &'a str,
        flags: &[&'static str],
    ) -> TransportRequest<'a> {
        let mut headers = HeaderList::new();
        flags.iter().for_each(|flag| headers.set_fixed(flag, "True"));
        TransportRequest { endpoint, path, method, headers, body: &NOTHING }
    }

    #[test]
    fn the_operation_and_the_resource_are_read_back_from_the_request() {
        use OperationKind as Kind;
        use ResourceKind as Type;
        let cases: &[(Method, &str, &[&'static str], Kind, Type)] = &[
            (Method::Get, "/", &[], Kind::Read, Type::Account),
            (Method::Get, "/dbs/d/colls/c", &[], Kind::Read, Type::Container),
            (Method::Get, "/dbs/d/colls/c/pkranges", &[], Kind::ReadFeed, Type::PartitionKeyRange),
            (Method::Get, "/dbs/d/colls/c/docs/1", &[], Kind::Read, Type::Item),
            (Method::Get, "/dbs/d/colls/c/docs", &[], Kind::ReadFeed, Type::Item),
            (Method::Get, "/dbs/d/colls/c/docs", &[names::A_IM], Kind::ChangeFeed, Type::Item),
            (Method::Post, "/dbs/d/colls/c/docs", &[], Kind::Create, Type::Item),
            (
                Method::Post,
                "/dbs/d/colls/c/operations/partitionkeydelete",
                &[],
                Kind::DeletePartition,
                Type::Other,
            ),
            (Method::Post, "/dbs/d/colls/c/docs", &[names::IS_UPSERT], Kind::Upsert, Type::Item),
            (Method::Post, "/dbs/d/colls/c/docs", &[names::IS_QUERY], Kind::Query, Type::Item),
            (Method::Post, "/dbs/d/colls/c/docs", &[names::IS_BATCH_REQUEST], Kind::Batch, Type::Item),
            (
                Method::Post,
                "/dbs/d/colls/c/docs",
                &[names::IS_QUERY, names::IS_QUERY_PLAN_REQUEST],
                Kind::QueryPlan,
                Type::Item,
            ),
            (Method::Put, "/dbs/d/colls/c/docs/1", &[], Kind::Replace, Type::Item),
            (Method::Patch, "/dbs/d/colls/c/docs/1", &[], Kind::Patch, Type::Item),
            (Method::Delete, "/dbs/d/colls/c/docs/1", &[], Kind::Delete, Type::Item),
            (Method::Post, "/dbs/d/colls/c/sprocs/s", &[], Kind::Execute, Type::StoredProcedure),
        ];
        for (method, path, flags, operation, resource) in cases {
            let endpoint = one();
            let request = request(&endpoint, *method, path, flags);
            let sent = SentRequest::read(&request);
            assert_eq!(
                (sent.operation, sent.resource),
                (Some(*operation), Some(*resource)),
                "{method:?} {path} {flags:?}"
            );
        }
    }

    #[test]
    fn a_rule_matches_when_all_it_says_about_the_request_does() {
        let endpoint = one();
        let mut request = request(&endpoint, Method::Get, "dbs/my%20db/colls/c/docs/1", &[]);
        request.headers.set(names::PARTITION_KEY, r#"["p1"]"#);
        let sent = SentRequest::read(&request);
        let attributes = sent.attributes("one.example:443", Some("West US"), 3);
        let any = || FaultRule::status(503, 0);
        for (rule, matches) in [
            (any(), true),
            (any().on(OperationKind::Read), true),
            (any().on(OperationKind::Create), false),
            (any().on(OperationKind::Create).on(OperationKind::Read), true),
            (any().on_resource(ResourceKind::Item), true),
            (any().on_resource(ResourceKind::Container), false),
            (any().in_region("westus"), true),
            (any().in_region("East US"), false),
            (any().in_container("my db", "c"), true),
            (any().in_container("my db", "other"), false),
            (any().at_endpoint("One.example:443"), true),
            (any().at_endpoint("one.example:8081"), false),
            (any().on_shard(3), true),
            (any().on_shard(0), false),
            (any().in_region("West US").in_container("my db", "c").on_shard(1), false),
            (FaultRule::from_json(br#"{"match": {"partitionKey": "p1"}}"#).expect("a rule"), true),
            (FaultRule::from_json(br#"{"match": {"partitionKey": "p2"}}"#).expect("a rule"), false),
        ] {
            assert_eq!(rule.filter.matches(&attributes), matches, "{rule:?}");
        }
        let nowhere = RequestAttributes { region: None, ..attributes };
        assert!(!any().in_region("West US").filter.matches(&nowhere), "an unknown region is none");
    }

    #[test]
    fn of_a_request_outside_the_api_only_the_method_is_known() {
        let endpoint = one();
        let sent = SentRequest::read(&request(&endpoint, Method::Get, "no/such/path/in/the/api", &[]));
        assert_eq!(sent, SentRequest { method: "GET", ..SentRequest::default() });
    }
}
