//! Principals of Microsoft Entra ID.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use perihelion::credentials::{self, AccessToken, OffsetDateTime, TokenCredential, TokenRequestOptions};
use perihelion::{Account, CosmosClient, ErrorKind};
use serde_json::json;

use crate::{Lab, Order, order};

/// Hands out tokens that the directory says expire at these times, one after the other; the last one stays.
#[derive(Debug)]
struct Directory {
    expiries: Vec<u64>,
    /// The scope of each request.
    asked: Mutex<Vec<String>>,
}

const LONG_AGO: u64 = 1_000_000_000;
const FAR_AHEAD: u64 = 100_000_000_000;

impl Directory {
    fn new(expiries: &[u64]) -> Arc<Directory> {
        Arc::new(Directory { expiries: expiries.to_vec(), asked: Mutex::default() })
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").clone()
    }
}

#[async_trait::async_trait]
impl TokenCredential for Directory {
    async fn get_token(
        &self,
        scopes: &[&str],
        _: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        let mut asked = self.asked.lock().expect("no panic");
        let Some(expiry) = self.expiries.get(asked.len()).or(self.expiries.last()) else {
            asked.push(scopes[0].to_owned());
            let message = "AADSTS700016: the application was not found";
            return Err(credentials::Error::with_message(credentials::ErrorKind::Credential, message));
        };
        asked.push(scopes[0].to_owned());
        let claims = URL_SAFE_NO_PAD.encode(json!({"exp": expiry, "n": asked.len()}).to_string());
        // What the credential believes: its clock may be wrong.
        let expires_on = OffsetDateTime::now_utc() + Duration::from_secs(3600);
        Ok(AccessToken::new(format!("eyJhbGciOiJub25lIn0.{claims}.c2ln"), expires_on))
    }
}

fn endpoint(lab: &Lab) -> String {
    lab.client.driver().account().hub().url().to_string()
}

fn as_principal(lab: &Lab, directory: &Arc<Directory>) -> CosmosClient {
    CosmosClient::from_credential(&endpoint(lab), Arc::clone(directory) as Arc<dyn TokenCredential>)
        .expect("a client")
}

#[tokio::test]
async fn a_principal_asks_for_one_token_of_the_account_and_works_with_it() {
    let lab = Lab::start().await;
    lab.orders().await;
    let directory = Directory::new(&[FAR_AHEAD]);
    let orders = as_principal(&lab, &directory).database("shop").container("orders");
    let together = (0..10).map(|n| {
        let orders = &orders;
        async move { orders.upsert_item("ada", &order(&n.to_string(), 1.0)).await }
    });
    futures::future::try_join_all(together).await.expect("all written");
    assert_eq!(orders.read_item::<Order>("ada", "7").await.expect("read").value().id, "7");
    assert_eq!(directory.asked(), ["http://localhost/.default"]);
}

#[tokio::test]
async fn a_token_the_service_calls_expired_is_replaced_and_nobody_notices() {
    let lab = Lab::start().await;
    lab.orders().await;
    let directory = Directory::new(&[LONG_AGO, FAR_AHEAD]);
    let orders = as_principal(&lab, &directory).database("shop").container("orders");
    orders.create_item("ada", &order("1", 1.0)).await.expect("written with the second token");
    assert_eq!(directory.asked().len(), 2);
}

#[tokio::test]
async fn tokens_that_are_refused_again_end_in_an_error_that_says_to_look_at_the_clock() {
    let lab = Lab::start().await;
    let directory = Directory::new(&[LONG_AGO]);
    let error = as_principal(&lab, &directory).database("shop").read().await.expect_err("refused twice");
    assert_eq!(error.kind(), ErrorKind::Unauthenticated);
    assert_eq!(error.sub_status().0, 5006, "{error}");
    assert!(error.to_string().contains("clock of this machine"), "{error}");
    assert_eq!(directory.asked().len(), 2, "replaced once");
}

#[tokio::test]
async fn a_credential_without_a_token_says_why_in_its_own_words() {
    let lab = Lab::start().await;
    lab.client.create_database("shop").await.expect("made");
    let directory = Directory::new(&[]);
    let error = as_principal(&lab, &directory).database("shop").read().await.expect_err("nobody signed in");
    assert_eq!(error.kind(), ErrorKind::Unauthenticated, "{error}");
    assert!(error.message().contains("AADSTS700016"), "{error}");
    assert_eq!(directory.asked(), ["http://localhost/.default", "https://cosmos.azure.com/.default"]);
}

#[tokio::test]
async fn a_scope_can_be_named() {
    let lab = Lab::start().await;
    lab.client.create_database("shop").await.expect("made");
    let directory = Directory::new(&[FAR_AHEAD]);
    let account = Account::with_credential(&endpoint(&lab), Arc::clone(&directory) as _)
        .expect("an account")
        .with_scope("https://cosmos.example/.default");
    let client = CosmosClient::builder(account).build().expect("a client");
    client.database("shop").read().await.expect("read");
    assert_eq!(directory.asked(), ["https://cosmos.example/.default"]);
}
