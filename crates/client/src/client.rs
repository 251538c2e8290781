//! The client of an account: creates and lists databases, and hands out their clients.

use driver::CosmosDriver;
use driver::operation::{Operation, OperationKind, Target};
use protocol::database::DatabaseProperties;
use serde::Serialize;

use crate::Throughput;
use crate::call::{Call, CompoundCall, read_or_create};
use crate::container::ContainerClient;
use crate::database::DatabaseClient;
use crate::list::List;
use crate::response::Response;
use crate::serialize::to_body;
use crate::throughput::with_throughput;

/// The client of a Cosmos DB account. Cheap to clone; clones share connections, caches and the state of the regions.
#[derive(Clone, Debug)]
pub struct CosmosClient {
    pub(crate) driver: CosmosDriver,
}

impl CosmosClient {
    /// The client of one of its databases. Sends nothing; a database that does not exist fails when it is used.
    pub fn database(&self, id: &str) -> DatabaseClient {
        DatabaseClient::new(self.driver.clone(), id)
    }

    /// Creates a database without a shared throughput.
    pub fn create_database(&self, id: &str) -> Call<Response<DatabaseProperties>> {
        self.create_database_inner(id, None)
    }

    /// Creates a database whose containers share a throughput.
    pub fn create_database_with(
        &self,
        id: &str,
        throughput: &Throughput,
    ) -> Call<Response<DatabaseProperties>> {
        self.create_database_inner(id, Some(throughput))
    }

    /// Reads the database with this id, and creates it if it does not exist.
    pub fn create_database_if_missing(&self, id: &str) -> CompoundCall<Response<DatabaseProperties>> {
        let database = self.database(id);
        read_or_create(move || database.read(), self.create_database(id))
    }

    /// Lists the databases of the account.
    pub fn list_databases(&self) -> List<DatabaseProperties> {
        List::new(&self.driver, Target::databases(), "Databases")
    }

    fn create_database_inner(
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
            with_throughput(operation, throughput)
        });
        Call::new(&self.driver, operation, Response::read)
    }

    /// The endpoint of the account, as it was configured.
    pub fn endpoint(&self) -> String {
        self.driver.account().global().url().to_string()
    }

    /// Reads the metadata of the account and of these containers, so that the first operations on them need not wait for
    /// it.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use perihelion::{CosmosClient, Result};
    /// # async fn run(client: CosmosClient) -> Result<()> {
    /// let orders = client.database("shop").container("orders");
    /// client.warm_up(&[&orders]).timeout(Duration::from_secs(5)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn warm_up(&self, containers: &[&ContainerClient]) -> CompoundCall<()> {
        let names: Vec<_> = containers.iter().map(|container| container.name().clone()).collect();
        let driver = self.driver.clone();
        CompoundCall::new(&self.driver, async move |deadline| {
            driver.warm_up(&names, &deadline.options()?).await
        })
    }

    /// The driver of this client, for operations that the client has no typed method for.
    pub fn driver(&self) -> &CosmosDriver {
        &self.driver
    }
}
