//! The only place that knows serde.

use bytes::Bytes;
use driver::{Error, ErrorKind};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Result;

/// What is sent.
pub(crate) fn to_body(value: &(impl Serialize + ?Sized)) -> Result<Bytes> {
    match serde_json::to_vec(value) {
        Ok(body) => Ok(Bytes::from(body)),
        Err(error) => Err(Error::new(ErrorKind::BadRequest, format!("the value has no JSON form: {error}"))
            .with_source(error)),
    }
}

/// What came back, as a `T`.
pub(crate) fn from_body<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| {
        let name = std::any::type_name::<T>();
        Error::new(ErrorKind::BadResponse, format!("the answer is not a {name}: {error}")).with_source(error)
    })
}
