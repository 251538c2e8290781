//! The account, as a Rust program sees it.

use driver::operation::{Operation, OperationKind, Target};
use driver::{Account, CosmosDriver};
use protocol::database::DatabaseProperties;
use serde::Serialize;

use crate::call::Call;
use crate::client_builder::CosmosClientBuilder;
use crate::database::DatabaseClient;
use crate::response::Response;
use crate::serialize::to_body;
use crate::{Result, Throughput, throughput};

/// A Cosmos DB account. Cheap to clone; clones share connections, caches and what is known of the regions.
#[derive(Clone, Debug)]
pub struct CosmosClient {
    pub(crate) driver: CosmosDriver,
}

impl CosmosClient {
    /// The account of a connection string, `AccountEndpoint=…;AccountKey=…`, with defaults for the rest.
    /// Nothing is sent before the first operation.
    pub fn from_connection_string(text: &str) -> Result<CosmosClient> {
        CosmosClient::builder(Account::from_connection_string(text)?).build()
    }

    /// The account at `endpoint`, with an account key as the portal shows it.
    pub fn with_key(endpoint: &str, key: &str) -> Result<CosmosClient> {
        CosmosClient::builder(Account::with_key(endpoint, key)?).build()
    }

    /// A client with options of its own.
    pub fn builder(account: Account) -> CosmosClientBuilder {
        CosmosClientBuilder::new(account)
    }

    /// One of its databases. Asks nobody: whether it exists shows when it is used.
    pub fn database(&self, id: &str) -> DatabaseClient {
        DatabaseClient::new(self.clone(), id)
    }

    /// Makes a database.
    pub fn create_database(&self, id: &str) -> Call<Response<DatabaseProperties>> {
        self.create_database_of(id, None)
    }

    /// Makes a database whose containers share a throughput.
    pub fn create_database_with(
        &self,
        id: &str,
        throughput: &Throughput,
    ) -> Call<Response<DatabaseProperties>> {
        self.create_database_of(id, Some(throughput))
    }

    fn create_database_of(
        &self,
        id: &str,
        throughput: Option<&Throughput>,
    ) -> Call<Response<DatabaseProperties>> {
        #[derive(Serialize)]
        struct NewDatabase<'a> {
            id: &'a str,
        }
        let operation = to_body(&NewDatabase { id }).map(|body| {
            let operation = Operation::new(OperationKind::Create, Target::databases()).with_body(body);
            throughput::of_new(operation, throughput)
        });
        Call::new(&self.driver, operation, Response::read)
    }

    /// The driver below, for what has no typed form.
    pub fn driver(&self) -> &CosmosDriver {
        &self.driver
    }
}
