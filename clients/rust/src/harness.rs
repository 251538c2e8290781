//! What every scenario stands on: an account, checks, and a report.
//!
//! A scenario is an async function of one argument, an [`Account`]. It gets a database of its own,
//! which is deleted afterwards, so scenarios neither see nor disturb one another.

use std::{fmt::Debug, num::NonZeroU32, process::ExitCode, sync::Arc, time::Duration};

use azure_core::credentials::Secret;
use azure_data_cosmos::{
    AccountReference, CosmosClient, CosmosError, DatabaseClient, FeedScope, Query, RoutingStrategy,
    clients::ContainerClient,
    models::{ContainerProperties, ItemResponse, PartitionKeyDefinition, ThroughputProperties},
    options::{
        ContentResponseOnWrite, CreateContainerOptions, ItemWriteOptions, MaxItemCountHint, OperationOptions,
    },
};
use futures::{TryStreamExt, future::BoxFuture};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const PER_SCENARIO: Duration = Duration::from_secs(90);

pub type Failure = Box<dyn std::error::Error + Send + Sync>;
pub type Outcome = Result<(), Failure>;

/// A named scenario, ready to run.
pub struct Scenario {
    pub name: &'static str,
    pub run: fn(Arc<Account>) -> BoxFuture<'static, Outcome>,
}

/// The account under test, as one scenario sees it.
pub struct Account {
    pub endpoint: String,
    pub key: String,
    pub client: CosmosClient,
    pub database: DatabaseClient,
}

impl Account {
    async fn begin(endpoint: &str, key: &str) -> Result<Self, Failure> {
        let client = connect(endpoint, key).await?;
        let id = name("db");
        client.create_database(&id, None).await?;
        let database = client.database_client(id);
        Ok(Self { endpoint: endpoint.to_owned(), key: key.to_owned(), client, database })
    }

    /// A second client, which knows nothing of what the first one has learned.
    pub async fn other_client(&self) -> Result<CosmosClient, Failure> {
        Ok(connect(&self.endpoint, &self.key).await?)
    }

    /// A fresh container with the partition key `/pk` in one physical partition.
    pub async fn container(&self) -> Result<ContainerClient, Failure> {
        self.create("/pk".into(), 400, |properties| properties).await
    }

    /// A fresh container that spans several physical partitions.
    pub async fn several_partitions(&self) -> Result<ContainerClient, Failure> {
        self.several_partitions_with(|properties| properties).await
    }

    /// A fresh container that spans several physical partitions, as `define` wants it.
    pub async fn several_partitions_with(
        &self,
        define: impl FnOnce(ContainerProperties) -> ContainerProperties,
    ) -> Result<ContainerClient, Failure> {
        let container = self.create("/pk".into(), 30_000, define).await?;
        let ranges = container.read_feed_ranges(None).await?;
        assert!(ranges.len() >= 3, "30,000 RU/s gave only {} physical partitions", ranges.len());
        Ok(container)
    }

    /// A fresh container as `define` wants it.
    pub async fn create(
        &self,
        partition_key: PartitionKeyDefinition,
        throughput: u64,
        define: impl FnOnce(ContainerProperties) -> ContainerProperties,
    ) -> Result<ContainerClient, Failure> {
        let id = name("c");
        let properties = define(ContainerProperties::new(id.clone(), partition_key));
        let options =
            CreateContainerOptions::default().with_throughput(ThroughputProperties::manual(throughput));
        self.database.create_container(properties, Some(options)).await?;
        Ok(self.database.container_client(id, None).await?)
    }
}

pub async fn connect(endpoint: &str, key: &str) -> azure_data_cosmos::Result<CosmosClient> {
    let endpoint = endpoint.parse().expect("the endpoint is a URL");
    let account = AccountReference::with_authentication_key(endpoint, Secret::from(key.to_owned()));
    CosmosClient::builder().build(account, RoutingStrategy::ProximityTo("West US".into())).await
}

/// A name nothing else uses.
pub fn name(prefix: &str) -> String {
    format!("{prefix}-{}", uuid::Uuid::new_v4().simple())
}

pub fn item(id: impl ToString, pk: impl Into<Value>, n: i64) -> Value {
    json!({"id": id.to_string(), "pk": pk.into(), "n": n})
}

/// Options of a write that answers with the whole item.
pub fn with_content() -> Option<ItemWriteOptions> {
    let mut operation = OperationOptions::default();
    operation.content_response_on_write = Some(ContentResponseOnWrite::Enabled);
    Some(ItemWriteOptions::default().with_operation_options(operation))
}

pub fn pages_of(count: u32) -> MaxItemCountHint {
    MaxItemCountHint::Limit(NonZeroU32::new(count).expect("a page holds at least one item"))
}

/// Every row of a query.
pub async fn rows<T>(
    container: &ContainerClient,
    query: impl Into<Query>,
    scope: FeedScope,
) -> Result<Vec<T>, Failure>
where
    T: DeserializeOwned + Send + 'static,
{
    Ok(container.query_items::<T>(query, scope, None).await?.try_collect().await?)
}

pub fn body(response: ItemResponse) -> Result<Value, Failure> {
    Ok(response.into_model()?)
}

/// The error of a call that has to be refused with `status`.
pub fn fails<T>(status: u16, result: Result<T, CosmosError>) -> CosmosError {
    match result {
        Ok(_) => panic!("expected {status}, but it succeeded"),
        Err(error) => {
            assert_eq!(u16::from(error.status().status_code()), status, "{error}");
            error
        }
    }
}

pub fn sorted<T: Ord>(mut values: Vec<T>) -> Vec<T> {
    values.sort();
    values
}

/// Panics unless `actual` is `expected`, naming `what` was compared.
pub fn equal<T: PartialEq + Debug>(actual: T, expected: T, what: &str) {
    assert_eq!(actual, expected, "{what}");
}

pub async fn run(endpoint: &str, key: &str, only: &str, scenarios: Vec<Scenario>) -> ExitCode {
    // A failed assertion is a line, not a backtrace.
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let (mut passed, mut failed) = (0, 0);
    for scenario in scenarios {
        if !scenario.name.contains(only) {
            continue;
        }
        let started = tokio::time::Instant::now();
        match run_one(endpoint, key, scenario.run).await {
            Ok(()) => {
                passed += 1;
                println!("ok   {} ({} ms)", scenario.name, started.elapsed().as_millis());
            }
            Err(failure) => {
                failed += 1;
                println!("FAIL {}: {failure}", scenario.name);
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed > 0 || passed == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

async fn run_one(
    endpoint: &str,
    key: &str,
    scenario: fn(Arc<Account>) -> BoxFuture<'static, Outcome>,
) -> Outcome {
    let account = Arc::new(Account::begin(endpoint, key).await?);
    // A task of its own, so that a failed assertion ends the scenario and not the program.
    let task = tokio::spawn(scenario(Arc::clone(&account)));
    let abort = task.abort_handle();
    let outcome = match tokio::time::timeout(PER_SCENARIO, task).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(panic)) => Err(panic.to_string().into()),
        Err(_) => {
            abort.abort();
            Err(format!("still running after {PER_SCENARIO:?}").into())
        }
    };
    account.database.delete(None).await?;
    outcome
}
