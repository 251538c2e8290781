//! Principals of Microsoft Entra ID.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use perihelion::credentials::{self, AccessToken, OffsetDateTime, TokenCredential, TokenRequestOptions};
use perihelion::{Account, CosmosClient, ErrorKind};
use serde_json::json;

use crate::{Order, TestAccount, order};

/// A credential whose tokens expire at these times, one after the other; the last one is repeated.
#[derive(Debug)]
struct Directory {
    expiries: Vec<u64>,
    /// The scope of each token request.
    scopes: Mutex<Vec<String>>,
}

const LONG_AGO: u64 = 1_000_000_000;
const FAR_AHEAD: u64 = 100_000_000_000;

impl Directory {
    fn new(expiries: &[u64]) -> Arc<Directory> {
        Arc::new(Directory { expiries: expiries.to_vec(), scopes: Mutex::default() })
    }

    fn requested_scopes(&self) -> Vec<String> {
        self.scopes.lock().expect("no panic").clone()
    }
}

#[async_trait::async_trait]
impl TokenCredential for Directory {
    async fn get_token(
        &self,
        scopes: &[&str],
        _: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        let mut requested = self.scopes.lock().expect("no panic");
        let Some(expiry) = self.expiries.get(requested.len()).or(self.expiries.last()) else {
            requested.push(scopes[0].to_owned());
            let message = "AADSTS700016: the application was not found";
            return Err(credentials::Error::with_message(credentials::ErrorKind::Credential, message));
        };
        requested.push(scopes[0].to_owned());
        let claims = URL_SAFE_NO_PAD.encode(json!({"exp": expiry, "n": requested.len()}).to_string());
        // The credential's own idea of the expiry, which a wrong clock makes wrong.
        let expires_on = OffsetDateTime::now_utc() + Duration::from_secs(3600);
        Ok(AccessToken::new(format!("eyJhbGciOiJub25lIn0.{claims}.c2ln"), expires_on))
    }
}

fn endpoint(account: &TestAccount) -> String {
    account.client.driver().account().hub().url().to_string()
}

fn as_principal(account: &TestAccount, directory: &Arc<Directory>) -> CosmosClient {
    CosmosClient::from_credential(&endpoint(account), Arc::clone(directory) as Arc<dyn TokenCredential>)
        .expect("a client")
}

#[tokio::test]
async fn a_principal_requests_one_token_for_many_operations() {
    let account = TestAccount::start().await;
    account.orders().await;
    let directory = Directory::new(&[FAR_AHEAD]);
    let orders = as_principal(&account, &directory).database("shop").container("orders");
    let together = (0..10).map(|n| {
        let orders = &orders;
        async move { orders.upsert_item("ada", &order(&n.to_string(), 1.0)).await }
    });
    futures::future::try_join_all(together).await.expect("all written");
    assert_eq!(orders.read_item::<Order>("ada", "7").await.expect("read").value().id, "7");
    assert_eq!(directory.requested_scopes(), ["http://localhost/.default"]);
}

#[tokio::test]
async fn a_token_that_the_service_rejects_as_expired_is_replaced() {
    let account = TestAccount::start().await;
    account.orders().await;
    let directory = Directory::new(&[LONG_AGO, FAR_AHEAD]);
    let orders = as_principal(&account, &directory).database("shop").container("orders");
    orders.create_item("ada", &order("1", 1.0)).await.expect("written with the second token");
    assert_eq!(directory.requested_scopes().len(), 2);
}

#[tokio::test]
async fn tokens_that_are_rejected_again_fail_with_a_hint_to_check_the_clock() {
    let account = TestAccount::start().await;
    let directory = Directory::new(&[LONG_AGO]);
    let error = as_principal(&account, &directory).database("shop").read().await.expect_err("rejected twice");
    assert_eq!(error.kind(), ErrorKind::Unauthenticated);
    assert_eq!(error.sub_status().0, 5006, "{error}");
    assert!(error.to_string().contains("clock of this machine"), "{error}");
    assert_eq!(directory.requested_scopes().len(), 2, "replaced once");
}

#[tokio::test]
async fn an_error_of_the_credential_is_in_the_message() {
    let account = TestAccount::start().await;
    account.client.create_database("shop").await.expect("created");
    let directory = Directory::new(&[]);
    let error = as_principal(&account, &directory).database("shop").read().await.expect_err("no token");
    assert_eq!(error.kind(), ErrorKind::Unauthenticated, "{error}");
    assert!(error.message().contains("AADSTS700016"), "{error}");
    assert_eq!(
        directory.requested_scopes(),
        ["http://localhost/.default", "https://cosmos.azure.com/.default"]
    );
}

#[tokio::test]
async fn a_token_scope_can_be_set() {
    let account = TestAccount::start().await;
    account.client.create_database("shop").await.expect("created");
    let directory = Directory::new(&[FAR_AHEAD]);
    let account = Account::with_credential(&endpoint(&account), Arc::clone(&directory) as _)
        .expect("an account")
        .with_scope("https://cosmos.example/.default");
    let client = CosmosClient::builder(account).build().expect("a client");
    client.database("shop").read().await.expect("read");
    assert_eq!(directory.requested_scopes(), ["https://cosmos.example/.default"]);
}
