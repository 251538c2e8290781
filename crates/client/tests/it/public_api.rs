//! Every type in a public signature of the crate can be named through the crate, without a dependency of its own.

use std::sync::Arc;

use perihelion::connections::{
    BoxFuture, HttpClientConfig, ResponseHeaders, Transport, TransportFactory, TransportRequest,
    TransportResponse, azure_core,
};
use perihelion::{
    Account, BulkItemResponse, BulkOptions, BulkSummary, Bytes, CosmosClient, CosmosDriver, CosmosRuntime,
    DeadLetter, Diagnostics, DriverOptions, Error, ItemResponse, OperationOptions, PartitionKey, RawResponse,
    Result, Status, StoredProcessor, Stream, SubStatus,
};

/// Compiles only if every type has a name in the crate.
#[test]
fn types_of_other_crates_have_a_name_in_this_one() {
    fn driver(client: &CosmosClient) -> &CosmosDriver {
        client.driver()
    }
    fn raw(response: &ItemResponse<()>) -> &RawResponse {
        response.raw()
    }
    fn attempts(diagnostics: &Diagnostics) -> &[perihelion::driver::diagnostics::AttemptRecord] {
        diagnostics.attempts()
    }
    fn change(letter: &DeadLetter) -> &Bytes {
        &letter.change
    }
    fn stream(client: &CosmosClient) -> impl Stream<Item = Result<perihelion::DatabaseProperties>> {
        client.list_databases().stream()
    }
    async fn create<T: perihelion::Serialize>(
        orders: &perihelion::ContainerClient,
        key: PartitionKey,
        item: &T,
    ) -> Result<Status> {
        Ok(orders.create_item(key, item).await?.status())
    }
    fn read<T: perihelion::DeserializeOwned>(response: &BulkItemResponse) -> Result<Option<T>> {
        response.value()
    }
    fn sub_status(error: &Error) -> SubStatus {
        error.sub_status()
    }
    async fn processors(leases: &perihelion::ContainerClient) -> Result<Vec<StoredProcessor>> {
        leases.list_processors().await
    }
    /// A transport of the application, with nothing but names of this crate.
    #[derive(Debug)]
    struct Nowhere;
    impl Transport for Nowhere {
        fn send<'a>(
            &'a self,
            _: &'a TransportRequest<'a>,
        ) -> BoxFuture<'a, azure_core::Result<TransportResponse>> {
            let headers = ResponseHeaders::default();
            Box::pin(async move { Ok(TransportResponse::new(Status(404), headers, Bytes::new())) })
        }
    }
    impl TransportFactory for Nowhere {
        fn create(&self, _: &HttpClientConfig) -> Arc<dyn Transport> {
            Arc::new(Nowhere)
        }
    }
    fn over(transport: Nowhere, account: Account) -> Result<CosmosClient> {
        let runtime: CosmosRuntime = CosmosClient::runtime().transport(Arc::new(transport)).build()?;
        CosmosClient::builder(account).runtime(&runtime).build()
    }
    let _over = over;
    let _named = (driver, raw, attempts, change, stream, sub_status, read::<()>, processors);
    let _create = create::<()>;
    let _bulk: fn() -> BulkOptions = BulkOptions::new;
    let _driver: fn() -> DriverOptions = DriverOptions::new;
    let _operation: fn() -> OperationOptions = OperationOptions::new;
    let _summary: fn(&perihelion::BulkResults) -> BulkSummary = perihelion::BulkResults::summary;
}
