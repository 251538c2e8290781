//! The published crate `azure_data_cosmos_driver`, with its own HTTP client and its defaults.
//!
//! HTTP/2 is what it uses by default; `is_http2_allowed` is off for HTTP/1.1. It takes the certificate of an
//! emulator without looking, so its connections are cheaper to make; that is not measured.

use std::sync::Arc;

use azure_core::http::Url;
use azure_data_cosmos_driver::models::{
    AccountReference, ContainerReference, CosmosOperation, ItemReference, PartitionKey,
};
use azure_data_cosmos_driver::options::{
    BinaryEncodingOptions, ConnectionPoolOptions, ContentResponseOnWrite, DriverOptions, OperationOptions,
    OperationOptionsBuilder, ServerCertificateValidation,
};
use azure_data_cosmos_driver::{CosmosDriver, CosmosDriverRuntime};

use super::Wire;
use crate::item;
use crate::peri::{DATABASE, Peri};

/// A driver that has met the account.
pub async fn driver(wire: Wire, peri: &Peri) -> Result<Arc<CosmosDriver>, String> {
    let pool = ConnectionPoolOptions::builder()
        .with_is_http2_allowed(wire == Wire::Http2)
        .with_server_certificate_validation(ServerCertificateValidation::RequiredUnlessEmulator)
        .build()
        .map_err(|error| error.to_string())?;
    let runtime = CosmosDriverRuntime::builder().with_connection_pool(pool).build().await;
    let runtime = runtime.map_err(|error| error.to_string())?;
    let url = Url::parse(&peri.endpoint).map_err(|error| error.to_string())?;
    let account = AccountReference::with_account_key(url, peri.key.clone());
    runtime.create_driver(DriverOptions::builder(account).build()).await.map_err(|error| error.to_string())
}

/// What makes it do the same work as the others: text on the wire, and the item that was made in the answer.
pub fn options() -> OperationOptions {
    OperationOptionsBuilder::new()
        .with_content_response_on_write(ContentResponseOnWrite::Enabled)
        .with_binary_encoding(BinaryEncodingOptions::new().with_enabled(false))
        .build()
}

/// The driver, on one container.
#[derive(Clone, Debug)]
pub struct Published {
    driver: Arc<CosmosDriver>,
    container: ContainerReference,
    options: OperationOptions,
}

impl Published {
    /// A driver that has met the account and the container.
    pub async fn new(wire: Wire, peri: &Peri, container: &str) -> Result<Published, String> {
        Published::on(driver(wire, peri).await?, container).await
    }

    /// A driver that there is already, when it has met the container.
    pub async fn on(driver: Arc<CosmosDriver>, container: &str) -> Result<Published, String> {
        let container = driver
            .resolve_container(DATABASE, container, OperationOptions::default())
            .await
            .map_err(|error| error.to_string())?;
        Ok(Published { driver, container, options: options() })
    }

    /// Reads an item; the length of the answer.
    pub async fn read(&self, number: u64) -> Result<usize, String> {
        self.execute(CosmosOperation::read_item(self.item(number))).await
    }

    /// Makes an item; the length of the answer.
    pub async fn create(&self, number: u64, body: Vec<u8>) -> Result<usize, String> {
        self.execute(CosmosOperation::create_item(self.item(number)).with_body(body)).await
    }

    fn item(&self, number: u64) -> ItemReference {
        ItemReference::from_name(&self.container, PartitionKey::from(item::key(number)), item::id(number))
    }

    async fn execute(&self, operation: CosmosOperation) -> Result<usize, String> {
        let response = self.driver.execute_singleton_operation(operation, self.options.clone()).await;
        let body = response.map_err(|error| error.to_string())?.into_body();
        Ok(body.single().map_err(|error| error.to_string())?.len())
    }
}
