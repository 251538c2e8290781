//! The account, as a Rust program sees it.

use std::sync::Arc;

use azure_core::credentials::TokenCredential;
use driver::operation::{Operation, OperationKind, Target};
use driver::{Account, CosmosDriver};
use protocol::database::DatabaseProperties;
use serde::Serialize;

use crate::call::{Call, if_missing};
use crate::client_builder::CosmosClientBuilder;
use crate::container::ContainerClient;
use crate::database::DatabaseClient;
use crate::list::List;
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

    /// The account at `endpoint`, as a principal of Microsoft Entra ID: whatever a credential of
    /// `azure_identity`, or one of your own, signs in as. Tokens are kept, and replaced before they expire.
    ///
    /// They are asked for in the account's own scope, `https://{host}/.default`, which is right in every cloud;
    /// [`Account::with_scope`] names another.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    /// use perihelion::CosmosClient;
    /// use perihelion::credentials::TokenCredential;
    ///
    /// # fn connect(credential: Arc<dyn TokenCredential>) -> perihelion::Result<CosmosClient> {
    /// CosmosClient::from_credential("https://shop.documents.azure.com", credential)
    /// # }
    /// ```
    pub fn from_credential(endpoint: &str, credential: Arc<dyn TokenCredential>) -> Result<CosmosClient> {
        CosmosClient::builder(Account::with_credential(endpoint, credential)?).build()
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

    /// The database of this id; made if it is not there.
    pub async fn create_database_if_missing(&self, id: &str) -> Result<Response<DatabaseProperties>> {
        let database = self.database(id);
        if_missing(|| database.read(), || self.create_database(id)).await
    }

    /// Its databases.
    pub fn list_databases(&self) -> List<DatabaseProperties> {
        List::new(&self.driver, Target::databases(), "Databases")
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

    /// Where the account is, as it was said.
    pub fn endpoint(&self) -> String {
        self.driver.account().global().url().to_string()
    }

    /// Learns the account and these containers, so that the first operations on them need not.
    pub async fn warm_up(&self, containers: &[&ContainerClient]) -> Result<()> {
        let names: Vec<_> = containers.iter().map(|container| container.name().clone()).collect();
        self.driver.warm_up(&names).await
    }

    /// The driver below, for what has no typed form.
    pub fn driver(&self) -> &CosmosDriver {
        &self.driver
    }
}
