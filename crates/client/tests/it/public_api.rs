//! Every type in a public signature of the crate can be named through the crate, without a dependency of its own.

use perihelion::{
    BulkItemResponse, BulkOptions, BulkSummary, Bytes, CosmosClient, CosmosDriver, DeadLetter, Diagnostics,
    DriverOptions, Error, ItemResponse, OperationOptions, PartitionKey, RawResponse, Result, Status,
    StoredProcessor, Stream, SubStatus,
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
    let _named = (driver, raw, attempts, change, stream, sub_status, read::<()>, processors);
    let _create = create::<()>;
    let _bulk: fn() -> BulkOptions = BulkOptions::new;
    let _driver: fn() -> DriverOptions = DriverOptions::new;
    let _operation: fn() -> OperationOptions = OperationOptions::new;
    let _summary: fn(&perihelion::BulkResults) -> BulkSummary = perihelion::BulkResults::summary;
}
