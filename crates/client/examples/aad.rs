//! Signs in with Microsoft Entra ID instead of a key.
//!
//! ```text
//! peri up                                     # or COSMOS_CONNECTION_STRING of a real account
//! cargo run -p perihelion --example aad
//! ```
//!
//! A program for a real account uses a credential of the crate `azure_identity` instead of its own:
//! `CosmosClient::from_credential(endpoint, DeveloperToolsCredential::new(None)?)`.

use std::sync::Arc;
use std::time::Duration;

use perihelion::credentials::{AccessToken, OffsetDateTime, TokenCredential, TokenRequestOptions};
use perihelion::{CosmosClient, Result};
use shop::{Order, order};

mod shop;

/// Returns a token that only an emulator accepts: it is well-formed and has no valid signature.
#[derive(Debug)]
struct UnsignedCredential;

#[async_trait::async_trait]
impl TokenCredential for UnsignedCredential {
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

#[expect(clippy::print_stdout, reason = "an example prints its results")]
pub(crate) async fn run(owner: &CosmosClient) -> Result<()> {
    // A principal may read and write items; creating containers takes the account key.
    shop::orders(owner).await?;

    // The client requests a token when it needs one, caches it, and replaces it before it expires.
    let client = CosmosClient::from_credential(&owner.endpoint(), Arc::new(UnsignedCredential))?;
    let orders = client.database("shop").container("orders");
    orders.upsert_item("ada", &order("o-9", "ada", 1.0)).await?;
    println!("{:?}", orders.read_item::<Order>("ada", "o-9").await?.value());
    Ok(())
}
