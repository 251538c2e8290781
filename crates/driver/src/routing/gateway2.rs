//! The Gateway 2.0 endpoints that an account's properties name.

use azure_core::http::Url;
use protocol::account::{AccountProperties, Location};

use super::endpoint::Endpoint;
use crate::region::Region;

/// Where the account has Gateway 2.0 endpoints. They speak RNTBD over HTTP/2, on ports of their own, and take
/// items only. The driver knows of them and shows them; it sends nothing there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gateway2 {
    /// Where items are written.
    pub writable: Vec<Endpoint>,
    /// Where items are read.
    pub readable: Vec<Endpoint>,
}

impl Gateway2 {
    /// Reads the locations from the account's properties; those that are not a name and a URL are left out.
    pub fn of(account: &AccountProperties) -> Gateway2 {
        let locations = |field: &str| {
            let entries = account.other.get(field).and_then(|value| value.as_array()).into_iter().flatten();
            entries.filter_map(|entry| endpoint(serde_json::from_value(entry.clone()).ok()?)).collect()
        };
        Gateway2 {
            writable: locations("thinClientWritableLocations"),
            readable: locations("thinClientReadableLocations"),
        }
    }

    /// Whether the account has any.
    pub fn is_offered(&self) -> bool {
        !self.readable.is_empty() || !self.writable.is_empty()
    }
}

fn endpoint(location: Location) -> Option<Endpoint> {
    if location.name.is_empty() {
        return None;
    }
    let url = Url::parse(&location.database_account_endpoint).ok()?;
    Some(Endpoint::regional(Region::new(&location.name), url))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn gateway_2_locations_are_recognised_whatever_else_the_account_says() {
        let mut account = json!({ "_self": "", "id": "a", "_rid": "a.example" });
        let read = |account: &serde_json::Value| -> Gateway2 {
            Gateway2::of(&serde_json::from_value(account.clone()).expect("an account"))
        };
        assert!(!read(&account).is_offered());
        account["thinClientReadableLocations"] = json!([
            { "name": "West US", "databaseAccountEndpoint": "https://a-westus.example:10250/" },
            { "name": "", "databaseAccountEndpoint": "https://a.example:10250/" },
            { "name": "East US", "databaseAccountEndpoint": "not a URL" },
            "neither name nor URL",
        ]);
        account["thinClientWritableLocations"] = json!("not a list");
        let found = read(&account);
        assert!(found.is_offered() && found.writable.is_empty());
        let [west] = &found.readable[..] else { panic!("{found:?}") };
        assert_eq!((west.region(), west.authority()), (&Region::new("westus"), "a-westus.example:10250"));
    }
}
