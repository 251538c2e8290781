//! The product's driver.

use std::time::Duration;

use perihelion::{CosmosClient, DriverOptions, OperationOptions, PartitionKey};
use perihelion_driver::operation::ContainerName;
use perihelion_driver::{CosmosDriver, Operation};
use perihelion_http::pool::PoolConfig;
use perihelion_http::trace::Protocol;

use super::Wire;
use crate::item;
use crate::peri::{DATABASE, Peri};

/// More than are ever in flight: no connection is closed that could be used again.
const IDLE_MAX: usize = 1000;
const IDLE_TIME: Duration = Duration::from_secs(30);

/// A client of an account. Over HTTP/2 everything is as it is by default; HTTP/1.1 has to be asked for.
pub fn client(wire: Wire, peri: &Peri, options: DriverOptions) -> Result<CosmosClient, String> {
    let pool = PoolConfig::builder().max_per_host(IDLE_MAX).max_idle_time(IDLE_TIME).build();
    let http = perihelion_http::Client::builder()
        .no_proxy()
        .pool(pool.map_err(|error| error.to_string())?)
        .trust_pem(peri.certificate.as_bytes())
        .map_err(|error| error.to_string())?;
    let http = match wire {
        Wire::Http1 => http.protocol(Protocol::Http1),
        Wire::Http2 => http,
    };
    CosmosClient::builder(peri.account()?)
        .http(http)
        .options(options)
        .build()
        .map_err(|error| error.to_string())
}

/// The driver below such a client.
pub fn driver(wire: Wire, peri: &Peri, options: DriverOptions) -> Result<CosmosDriver, String> {
    Ok(client(wire, peri, options)?.driver().clone())
}

/// The driver, on one container.
#[derive(Clone, Debug)]
pub struct Perihelion {
    driver: CosmosDriver,
    container: ContainerName,
    options: OperationOptions,
}

impl Perihelion {
    /// A driver without connections.
    pub fn new(wire: Wire, peri: &Peri, container: &str) -> Result<Perihelion, String> {
        let driver = driver(wire, peri, DriverOptions::new())?;
        Ok(Perihelion::on(driver, ContainerName::new(DATABASE, container)))
    }

    /// A driver that there is already.
    pub fn on(driver: CosmosDriver, container: ContainerName) -> Perihelion {
        Perihelion { driver, container, options: OperationOptions::new() }
    }

    /// Reads an item; the length of the answer.
    pub async fn read(&self, number: u64) -> Result<usize, String> {
        let key = PartitionKey::single(item::key(number).as_str());
        let operation = Operation::read_item(&self.container, key, &item::id(number));
        self.execute(&operation).await
    }

    /// Makes an item; the length of the answer.
    pub async fn create(&self, number: u64, body: Vec<u8>) -> Result<usize, String> {
        let key = PartitionKey::single(item::key(number).as_str());
        self.execute(&Operation::create_item(&self.container, key, body)).await
    }

    async fn execute(&self, operation: &Operation) -> Result<usize, String> {
        let response = self.driver.execute_operation(operation, &self.options).await;
        Ok(response.map_err(|error| error.to_string())?.body().len())
    }
}
