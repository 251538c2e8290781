//! `GET /`: what the account is and where its regions are.
//!
//! Every SDK leaves the endpoint it was given for the ones in this answer, so they have to lead
//! back here by the way the client came.

use protocol::account::{AccountProperties, Location};

use crate::gateway::{Call, Origin, Region, Reply};

/// Reads the account.
pub(crate) fn read(call: &Call<'_>) -> Reply {
    let account = call.account;
    let regions = locations(&account.regions, &call.origin);
    let body = AccountProperties::new(&account.name, regions, account.consistency);
    Reply::ok(serde_json::to_vec(&body).expect("strings and numbers always serialise").into())
}

/// With one region the client's own way in is the best there is. With several, they differ by port.
fn locations(regions: &[Region], origin: &Origin<'_>) -> Vec<Location> {
    let endpoint = |region: &Region| match regions.len() {
        1 => origin.endpoint(),
        _ => origin.endpoint_on(region.port),
    };
    let location =
        |region: &Region| Location { name: region.name.clone(), database_account_endpoint: endpoint(region) };
    regions.iter().map(location).collect()
}
