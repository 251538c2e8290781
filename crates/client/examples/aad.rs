//! Signs in with Microsoft Entra ID instead of a key.
//!
//! ```text
//! peri up                                     # or PERI_CONNECTION_STRING of a real account
//! cargo run -p perihelion --example aad
//! ```
//!
//! A program for a real account takes a credential of the crate `azure_identity`, and none of its own:
//! `CosmosClient::from_credential(endpoint, DeveloperToolsCredential::new(None)?)`.

use std::sync::Arc;
use std::time::Duration;

use perihelion::credentials::{AccessToken, OffsetDateTime, TokenCredential, TokenRequestOptions};
use perihelion::{CosmosClient, Result};
use shop::{Order, order};

mod shop;

/// Gives tokens that only an emulator takes: well-formed, and signed by nobody.
#[derive(Debug)]
struct AnybodyAtHome;

#[async_trait::async_trait]
impl TokenCredential for AnybodyAtHome {
    async fn get_token(
        &self,
        _scopes: &[&str],
        _options: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        // {"alg":"none"}.{"oid":"1"}.sig
        let token = "eyJhbGciOiJub25lIn0.eyJvaWQiOiIxIn0.c2ln";
        Ok(AccessToken::new(token, OffsetDateTime::now_utc() + Duration::from_secs(3600)))
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    run(&shop::connect()?).await
}

#[expect(clippy::print_stdout, reason = "an example is there to be read")]
pub(crate) async fn run(owner: &CosmosClient) -> Result<()> {
    // Principals may work with items; containers are made by whoever owns the account.
    shop::orders(owner).await?;

    // Tokens are asked for when they are needed, kept, and replaced before they expire.
    let client = CosmosClient::from_credential(&owner.endpoint(), Arc::new(AnybodyAtHome))?;
    let orders = client.database("shop").container("orders");
    orders.upsert_item("ada", &order("o-9", "ada", 1.0)).await?;
    println!("{:?}", orders.read_item::<Order>("ada", "o-9").await?.value());
    Ok(())
}
