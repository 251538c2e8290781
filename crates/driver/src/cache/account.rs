//! The cache of the account's properties.

use std::future::Future;
use std::sync::Arc;

use protocol::account::AccountProperties;

use super::single_flight::SingleFlight;
use crate::error::{Error, ErrorKind};

/// The newest properties of the account.
#[derive(Debug)]
pub(crate) struct AccountCache(SingleFlight<(), Arc<AccountProperties>>);

impl Default for AccountCache {
    fn default() -> AccountCache {
        AccountCache(SingleFlight::new(1))
    }
}

impl AccountCache {
    /// A cache without properties.
    pub(crate) fn new() -> AccountCache {
        AccountCache::default()
    }

    /// The cached properties, if there are any.
    pub(crate) fn peek(&self) -> Option<Arc<AccountProperties>> {
        self.0.peek(&())
    }

    /// The properties; fetched if they are not cached.
    pub(crate) async fn get<F>(&self, fetch: impl FnOnce() -> F) -> Result<Arc<AccountProperties>, Error>
    where
        F: Future<Output = Result<Arc<AccountProperties>, Error>> + Send + 'static,
    {
        self.0.get(&(), fetch).await
    }

    /// Properties newer than `known`, which a response contradicted; those that a concurrent call fetched count.
    pub(crate) async fn refresh<F>(
        &self,
        known: &Arc<AccountProperties>,
        fetch: impl FnOnce() -> F,
    ) -> Result<Arc<AccountProperties>, Error>
    where
        F: Future<Output = Result<Arc<AccountProperties>, Error>> + Send + 'static,
    {
        self.0.refresh(&(), |current| Arc::ptr_eq(current, known), fetch).await
    }
}

/// Reads the response to `GET /`. An account without a region to read from is no account.
pub(crate) fn parse_account(body: &[u8]) -> Result<AccountProperties, Error> {
    let account: AccountProperties = serde_json::from_slice(body)
        .map_err(|error| Error::new(ErrorKind::BadResponse, error.to_string()))?;
    if account.readable_locations.is_empty() {
        return Err(Error::new(ErrorKind::BadResponse, "the account names no region to read from"));
    }
    Ok(account)
}

#[cfg(test)]
mod tests {
    use futures::future::ready;

    use super::*;

    const BODY: &str = r#"{"_self":"","id":"a","_rid":"a.example","readableLocations":
        [{"name":"West US","databaseAccountEndpoint":"https://a-westus.example/"}],"newer":{"x":1}}"#;

    #[test]
    fn an_account_response_is_recognised() {
        assert_eq!(parse_account(BODY.as_bytes()).expect("an account").readable_locations.len(), 1);
        for body in ["", "{}", "<html>", r#"{"_self":"","id":"a","_rid":"r","readableLocations":[]}"#] {
            assert_eq!(parse_account(body.as_bytes()).expect_err(body).kind(), ErrorKind::BadResponse);
        }
    }

    #[tokio::test]
    async fn concurrent_operations_refresh_the_account_once_after_a_failover() {
        let cache = AccountCache::new();
        let account = Arc::new(parse_account(BODY.as_bytes()).expect("an account"));
        let first = cache.get(|| ready(Ok(Arc::clone(&account)))).await.expect("asked");
        let newer = Arc::new((*account).clone());
        let second = cache.refresh(&first, || ready(Ok(Arc::clone(&newer)))).await.expect("asked");
        assert!(Arc::ptr_eq(&second, &newer));
        let third = cache
            .refresh(&first, || async { Err(Error::new(ErrorKind::Unavailable, "not asked")) })
            .await
            .expect("cached");
        assert!(Arc::ptr_eq(&third, &newer));
        assert!(cache.peek().is_some_and(|current| Arc::ptr_eq(&current, &newer)));
    }
}
