//! So many point reads by the driver over an HTTP client that answers from memory, and no subscriber: `telemetry-bench 2000`.

#[path = "../../driver/src/memory/answers.rs"]
mod answers;

use std::future::{Future, ready};
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;

use azure_core::http::{AsyncRawResponse, HttpClient, Request, StatusCode};
use bytes::Bytes;
use perihelion_driver::operation::ContainerName;
use perihelion_driver::options::{DriverOptions, OperationOptions};
use perihelion_driver::transport::{AzureCoreAdapter, HttpClientConfig, Transport, TransportFactory};
use perihelion_driver::{Account, CosmosDriver, CosmosRuntime, Operation};
use perihelion_protocol::partition::PartitionKey;
// The feature of this package is one of tracing.
use tracing as _;

const DATABASE: &str = "bench";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("telemetry-bench: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok());
    let count: u64 = count.ok_or("it takes the number of reads")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(async { read(&driver()?, count).await })
}

/// Reads one item, so often.
async fn read(driver: &CosmosDriver, count: u64) -> Result<(), String> {
    let (container, options) = (ContainerName::new(DATABASE, answers::CONTAINER), OperationOptions::new());
    for _ in 0..count {
        let operation = Operation::read_item(&container, PartitionKey::single("k"), "item-1");
        let read = driver.execute_operation(&operation, &options).await;
        let length = read.map_err(|error| error.to_string())?.body().len();
        if length != answers::ITEM.len() {
            return Err(format!("an answer of {length} bytes is not the item"));
        }
    }
    Ok(())
}

fn driver() -> Result<CosmosDriver, String> {
    let account = Account::with_key(answers::ENDPOINT, answers::KEY).map_err(|error| error.to_string())?;
    let runtime = CosmosRuntime::builder(Arc::new(Memory)).build();
    let driver = runtime.and_then(|runtime| runtime.driver(&account, DriverOptions::new()));
    driver.map_err(|error| error.to_string())
}

/// The HTTP client that answers from memory.
#[derive(Debug)]
struct Memory;

impl TransportFactory for Memory {
    fn create(&self, _: &HttpClientConfig) -> Arc<dyn Transport> {
        Arc::new(AzureCoreAdapter::new(Arc::new(Memory)))
    }
}

impl HttpClient for Memory {
    fn execute_request<'a, 'b, 'c>(
        &'a self,
        request: &'b Request,
    ) -> Pin<Box<dyn Future<Output = azure_core::Result<AsyncRawResponse>> + Send + 'c>>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        let conditional = request.headers().get_optional_str(&answers::IF_NONE_MATCH).is_some();
        let answer = answers::answer(request.url().path(), conditional);
        let body = Bytes::from_static(answer.body);
        let response = AsyncRawResponse::from_bytes(StatusCode::from(answer.status), answer.headers, body);
        Box::pin(ready(Ok(response)))
    }
}
