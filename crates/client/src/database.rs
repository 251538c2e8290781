//! The client of one database: operations on the database itself, and on the list of its containers.

use driver::CosmosDriver;
use driver::operation::{Operation, OperationKind, Target};
use protocol::container::ContainerProperties;
use protocol::database::DatabaseProperties;

use crate::Throughput;
use crate::call::{Call, CompoundCall, read_or_create};
use crate::container::ContainerClient;
use crate::list::List;
use crate::response::Response;
use crate::serialize::to_body;
use crate::throughput::{read_throughput, replace_throughput, with_throughput};

/// The client of one database. Cheap to clone.
#[derive(Clone, Debug)]
pub struct DatabaseClient {
    driver: CosmosDriver,
    id: String,
}

impl DatabaseClient {
    pub(crate) fn new(driver: CosmosDriver, id: &str) -> DatabaseClient {
        DatabaseClient { driver, id: id.to_owned() }
    }

    /// The id of the database.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The client of one of its containers. Sends nothing; a container that does not exist fails when it is used.
    pub fn container(&self, id: &str) -> ContainerClient {
        ContainerClient::new(self.driver.clone(), &self.id, id)
    }

    /// Reads the properties of the database.
    pub fn read(&self) -> Call<Response<DatabaseProperties>> {
        let operation = Operation::new(OperationKind::Read, Target::database(&self.id));
        Call::new(&self.driver, Ok(operation), Response::read)
    }

    /// Deletes the database and all its containers.
    pub fn delete(&self) -> Call<Response<()>> {
        let operation = Operation::new(OperationKind::Delete, Target::database(&self.id));
        Call::new(&self.driver, Ok(operation), Response::without_body)
    }

    /// Creates a container without a throughput of its own.
    pub fn create_container(&self, properties: &ContainerProperties) -> Call<Response<ContainerProperties>> {
        self.create_container_inner(properties, None)
    }

    /// Creates a container with a throughput of its own.
    pub fn create_container_with(
        &self,
        properties: &ContainerProperties,
        throughput: &Throughput,
    ) -> Call<Response<ContainerProperties>> {
        self.create_container_inner(properties, Some(throughput))
    }

    /// Reads the container with this id, and creates it if it does not exist. A container that exists stays unchanged,
    /// even if its properties differ: compare the response.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use perihelion::{ContainerProperties, DatabaseClient, PartitionKeyDefinition, Result};
    /// # async fn run(shop: DatabaseClient) -> Result<()> {
    /// let key = PartitionKeyDefinition::hash("/customer")?;
    /// let orders = ContainerProperties::new("orders", key);
    /// shop.create_container_if_missing(&orders).timeout(Duration::from_secs(10)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn create_container_if_missing(
        &self,
        properties: &ContainerProperties,
    ) -> CompoundCall<Response<ContainerProperties>> {
        let container = self.container(&properties.id);
        read_or_create(move || container.read(), self.create_container(properties))
    }

    /// Lists the containers of the database.
    pub fn list_containers(&self) -> List<ContainerProperties> {
        List::new(&self.driver, Target::containers(&self.id), "DocumentCollections")
    }

    fn create_container_inner(
        &self,
        properties: &ContainerProperties,
        throughput: Option<&Throughput>,
    ) -> Call<Response<ContainerProperties>> {
        let operation = to_body(properties).map(|body| {
            let target = Target::containers(&self.id);
            with_throughput(Operation::new(OperationKind::Create, target).with_body(body), throughput)
        });
        Call::new(&self.driver, operation, Response::read)
    }

    /// Reads the throughput that the containers of the database share; none if it has none.
    pub fn throughput(&self) -> CompoundCall<Response<Option<Throughput>>> {
        read_throughput(&self.driver, Target::database(&self.id))
    }

    /// Replaces the throughput that the containers of the database share.
    pub fn set_throughput(&self, throughput: &Throughput) -> CompoundCall<Response<()>> {
        replace_throughput(&self.driver, Target::database(&self.id), throughput)
    }
}
