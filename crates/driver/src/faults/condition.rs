//! Which requests a rule is about. Pure.
//!
//! In: a request as the client sees it. Out: whether a condition holds. Below sharding there are no
//! operations any more, only verbs, paths and headers, so what was wanted is read back from those.

use crate::transport::TransportRequest;
use azure_core::http::Method;
use protocol::headers as names;
use protocol::resource_path::{ResourcePath, ResourceType};

use crate::operation::OperationKind;
use crate::routing::Region;

/// What is looked at: what a request wants, of what, where.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen<'a> {
    /// What is wanted.
    pub operation: OperationKind,
    /// Of what.
    pub resource: ResourceType,
    /// In which database and container; the latter may be missing, or both.
    pub database: Option<String>,
    /// See `database`.
    pub container: Option<String>,
    /// Host and port it goes to.
    pub authority: &'a str,
    /// The region behind them, if known.
    pub region: Option<Region>,
    /// Which of the factory's clients carries it, counted from 0.
    pub client: u64,
}

impl<'a> Seen<'a> {
    /// Reads a request; `None` for one that is not of the service's API.
    pub fn of(
        request: &TransportRequest<'_>,
        authority: &'a str,
        region: Option<Region>,
        client: u64,
    ) -> Option<Seen<'a>> {
        let path = ResourcePath::parse(request.path).ok()?;
        Some(Seen {
            operation: operation(request, &path),
            resource: path.resource_type(),
            database: path.database().map(str::to_owned),
            container: path.container().map(str::to_owned),
            authority,
            region,
            client,
        })
    }
}

fn operation(request: &TransportRequest<'_>, path: &ResourcePath<'_>) -> OperationKind {
    let says = |name| request.headers.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    match request.method {
        Method::Get | Method::Head if path.is_feed() => OperationKind::ReadFeed,
        Method::Get | Method::Head => OperationKind::Read,
        Method::Put => OperationKind::Replace,
        Method::Patch => OperationKind::Patch,
        Method::Delete => OperationKind::Delete,
        Method::Post if says(names::IS_QUERY_PLAN_REQUEST) => OperationKind::QueryPlan,
        Method::Post if says(names::IS_QUERY) => OperationKind::Query,
        Method::Post if says(names::IS_BATCH_REQUEST) => OperationKind::Batch,
        Method::Post if says(names::IS_UPSERT) => OperationKind::Upsert,
        Method::Post if path.is_feed() => OperationKind::Create,
        // A verb of tomorrow runs something, for all that is known here.
        _ => OperationKind::Execute,
    }
}

/// Which requests are meant; what is not said matches everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultCondition {
    operations: Vec<OperationKind>,
    resource: Option<ResourceType>,
    region: Option<Region>,
    container: Option<(String, String)>,
    endpoint: Option<String>,
    client: Option<u64>,
}

impl FaultCondition {
    /// Every request.
    pub fn any() -> FaultCondition {
        FaultCondition::default()
    }

    /// Only this kind of operation; said twice, either.
    #[must_use]
    pub fn operation(mut self, operation: OperationKind) -> FaultCondition {
        self.operations.push(operation);
        self
    }

    /// Only what is done to this kind of resource: items, containers, ranges.
    #[must_use]
    pub fn resource(self, resource: ResourceType) -> FaultCondition {
        FaultCondition { resource: Some(resource), ..self }
    }

    /// Only in this region.
    #[must_use]
    pub fn region(self, region: impl Into<Region>) -> FaultCondition {
        FaultCondition { region: Some(region.into()), ..self }
    }

    /// Only in this container, by names.
    #[must_use]
    pub fn container(self, database: &str, container: &str) -> FaultCondition {
        FaultCondition { container: Some((database.to_owned(), container.to_owned())), ..self }
    }

    /// Only at this host and port: `host:port`.
    #[must_use]
    pub fn endpoint(self, authority: &str) -> FaultCondition {
        FaultCondition { endpoint: Some(authority.to_ascii_lowercase()), ..self }
    }

    /// Only over this client of the factory, counted from 0: one shard, where each has a client of its own.
    #[must_use]
    pub fn client(self, number: u64) -> FaultCondition {
        FaultCondition { client: Some(number), ..self }
    }

    /// Whether a request is meant.
    pub fn holds(&self, seen: &Seen<'_>) -> bool {
        let FaultCondition { operations, resource, region, container, endpoint, client } = self;
        (operations.is_empty() || operations.contains(&seen.operation))
            && resource.is_none_or(|resource| resource == seen.resource)
            && region.as_ref().is_none_or(|region| seen.region.as_ref() == Some(region))
            && container.as_ref().is_none_or(|(database, container)| {
                seen.database.as_ref() == Some(database) && seen.container.as_ref() == Some(container)
            })
            && endpoint.as_ref().is_none_or(|endpoint| endpoint == seen.authority)
            && client.is_none_or(|client| client == seen.client)
    }
}

#[cfg(test)]
mod tests {
    use azure_core::http::Url;
    use bytes::Bytes;

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
    fn what_was_wanted_is_read_back_from_the_request() {
        use OperationKind as Kind;
        use ResourceType as Type;
        let cases: &[(Method, &str, &[&'static str], Kind, Type)] = &[
            (Method::Get, "/", &[], Kind::Read, Type::Account),
            (Method::Get, "/dbs/d/colls/c", &[], Kind::Read, Type::Container),
            (Method::Get, "/dbs/d/colls/c/pkranges", &[], Kind::ReadFeed, Type::PartitionKeyRange),
            (Method::Get, "/dbs/d/colls/c/docs/1", &[], Kind::Read, Type::Item),
            (Method::Get, "/dbs/d/colls/c/docs", &[], Kind::ReadFeed, Type::Item),
            (Method::Post, "/dbs/d/colls/c/docs", &[], Kind::Create, Type::Item),
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
            let seen = Seen::of(&request, "one.example:443", None, 0).expect(path);
            assert_eq!(
                (seen.operation, seen.resource),
                (*operation, *resource),
                "{method:?} {path} {flags:?}"
            );
        }
    }

    #[test]
    fn a_condition_holds_when_all_it_says_does() {
        let endpoint = one();
        let request = request(&endpoint, Method::Get, "dbs/my%20db/colls/c/docs/1", &[]);
        let seen = Seen::of(&request, "one.example:443", Some(Region::new("West US")), 3).expect("a path");
        let any = FaultCondition::any;
        for (condition, holds) in [
            (any(), true),
            (any().operation(OperationKind::Read), true),
            (any().operation(OperationKind::Create), false),
            (any().operation(OperationKind::Create).operation(OperationKind::Read), true),
            (any().resource(ResourceType::Item), true),
            (any().resource(ResourceType::Container), false),
            (any().region("westus"), true),
            (any().region("East US"), false),
            (any().container("my db", "c"), true),
            (any().container("my db", "other"), false),
            (any().endpoint("One.example:443"), true),
            (any().endpoint("one.example:8081"), false),
            (any().client(3), true),
            (any().client(0), false),
            (any().region("West US").container("my db", "c").client(1), false),
        ] {
            assert_eq!(condition.holds(&seen), holds, "{condition:?}");
        }
        let nowhere = Seen { region: None, ..seen };
        assert!(!any().region("West US").holds(&nowhere), "an unknown region is none");
    }
}
