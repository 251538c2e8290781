//! The published driver over memory, through the door that it has for this (`__internal_mocking`).

use std::sync::Arc;

use azure_core::http::Url;
use azure_data_cosmos_driver::models::AccountReference;
use azure_data_cosmos_driver::options::DriverOptions;
use azure_data_cosmos_driver::test::{
    ConnectionPoolOptions, HttpClientConfig, HttpClientFactory, HttpRequest, HttpResponse, TransportClient,
    TransportError,
};
use azure_data_cosmos_driver::{CosmosDriverRuntime, Result as DriverResult};

use super::answers::{self, CONTAINER, ENDPOINT, KEY};
use crate::subject::Published;

pub(super) async fn driver() -> Result<Published, String> {
    let runtime =
        CosmosDriverRuntime::builder().with_mock_http_client_factory(Arc::new(Memory)).build().await;
    let runtime = runtime.map_err(|error| error.to_string())?;
    let url = Url::parse(ENDPOINT).map_err(|error| error.to_string())?;
    let account = AccountReference::with_account_key(url, KEY);
    let driver = runtime.create_driver(DriverOptions::builder(account).build()).await;
    Published::on(driver.map_err(|error| error.to_string())?, CONTAINER).await
}

#[derive(Debug)]
struct Memory;

impl HttpClientFactory for Memory {
    fn build(
        &self,
        _: &ConnectionPoolOptions,
        _: HttpClientConfig,
    ) -> DriverResult<Arc<dyn TransportClient>> {
        Ok(Arc::new(Memory))
    }
}

#[async_trait::async_trait]
impl TransportClient for Memory {
    async fn send(&self, request: &HttpRequest) -> Result<HttpResponse, TransportError> {
        let conditional = request.headers.get_optional_str(&answers::IF_NONE_MATCH).is_some();
        let answer = answers::answer(request.url.path(), conditional);
        Ok(HttpResponse { status: answer.status, headers: answer.headers, body: answer.body.to_vec() })
    }
}
