//! The product's driver over memory.

use perihelion_driver::transport::{AzureCoreAdapter, HttpClientConfig, Transport, TransportFactory};
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use azure_core::http::{AsyncRawResponse, HttpClient, Request, StatusCode};
use bytes::Bytes;
use perihelion::{Account, DriverOptions};
use perihelion_driver::CosmosRuntime;
use perihelion_driver::operation::ContainerName;

use super::answers::{self, CONTAINER, ENDPOINT, KEY};
use crate::peri::DATABASE;
use crate::subject::Perihelion;

pub(super) fn driver() -> Result<Perihelion, String> {
    let account = Account::with_key(ENDPOINT, KEY).map_err(|error| error.to_string())?;
    let runtime = CosmosRuntime::builder(Arc::new(Memory)).build();
    let driver = runtime.and_then(|runtime| runtime.driver(&account, DriverOptions::new()));
    let driver = driver.map_err(|error| error.to_string())?;
    Ok(Perihelion::on(driver, ContainerName::new(DATABASE, CONTAINER)))
}

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
