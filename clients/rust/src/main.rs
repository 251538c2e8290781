//! Exercises a Cosmos DB account through `azure_data_cosmos`.
//!
//! Usage: `perihelion-client-rust ENDPOINT KEY [WORD]`. With WORD, only the scenarios whose name
//! contains it. Prints one line per scenario and a total; exits with 1 when one failed.
//!
//! Over https the server's certificate is made up on the spot. Set
//! `AZURE_COSMOS_EMULATOR_SERVER_CERT_VALIDATION_DISABLED=true`, which the SDK obeys for localhost only.

mod harness;
mod scenarios;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let endpoint = arguments.next().expect("the first argument is the endpoint");
    let key = arguments.next().expect("the second argument is the key");
    let only = arguments.next().unwrap_or_default();
    harness::run(&endpoint, &key, &only, scenarios::all()).await
}
