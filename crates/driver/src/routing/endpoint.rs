//! The endpoint that a region, or the whole account, is reached at.

use std::fmt;
use std::sync::Arc;

use azure_core::http::Url;

use super::last_response::LastResponse;
use super::latencies::Latencies;
use crate::region::{Region, normalized};

/// Whether an endpoint belongs to one region or to the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndpointKind {
    /// The account's own name, which leads to the hub region.
    Global,
    /// The endpoint of one region.
    Regional,
}

/// Where requests are sent: a URL, the region behind it, and what is asked often, ready made. Cheap to clone.
#[derive(Clone)]
pub struct Endpoint(Arc<Parts>);

struct Parts {
    region: Region,
    url: Url,
    authority: String,
    kind: EndpointKind,
    latencies: Latencies,
    last_response: LastResponse,
}

impl Endpoint {
    /// The endpoint of one region.
    pub fn regional(region: Region, url: Url) -> Endpoint {
        Endpoint::new(region, url, EndpointKind::Regional)
    }

    /// The account's own endpoint. Its region is not known until the account has been asked, and is called
    /// `hub` until then.
    pub fn global(url: Url) -> Endpoint {
        Endpoint::new(Region::new("hub"), url, EndpointKind::Global)
    }

    fn new(region: Region, url: Url, kind: EndpointKind) -> Endpoint {
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or_default();
        let authority = format!("{host}:{port}");
        let (latencies, last_response) = (Latencies::default(), LastResponse::default());
        Endpoint(Arc::new(Parts { region, url, authority, kind, latencies, last_response }))
    }

    /// Where the service keeps the endpoint of one region of an account, by the account's own endpoint: the
    /// region's name is added to the account's. None where names are not the service's.
    pub fn of_region(&self, region: &Region) -> Option<Endpoint> {
        const CLOUDS: [&str; 3] = ["documents.azure.com", "documents.azure.cn", "documents.azure.us"];
        let (account, cloud) = self.0.url.host_str()?.split_once('.')?;
        if !CLOUDS.contains(&cloud) {
            return None;
        }
        let mut host = format!("{account}-");
        host.extend(normalized(region.as_str()).map(char::from));
        host.push('.');
        host.push_str(cloud);
        let mut url = self.0.url.clone();
        url.set_host(Some(&host)).ok()?;
        Some(Endpoint::regional(region.clone(), url))
    }

    /// The region behind it.
    pub fn region(&self) -> &Region {
        &self.0.region
    }

    /// Its URL, with a trailing slash.
    pub fn url(&self) -> &Url {
        &self.0.url
    }

    /// Host and port: what connections are kept by.
    pub fn authority(&self) -> &str {
        &self.0.authority
    }

    /// How fast it has been lately.
    pub(crate) fn latencies(&self) -> &Latencies {
        &self.0.latencies
    }

    /// When it last responded to anything.
    pub(crate) fn last_response(&self) -> &LastResponse {
        &self.0.last_response
    }

    /// Whether it belongs to one region or to the account.
    pub fn kind(&self) -> EndpointKind {
        self.0.kind
    }
}

impl PartialEq for Endpoint {
    fn eq(&self, other: &Endpoint) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.region == other.0.region && self.0.url == other.0.url && self.0.kind == other.0.kind)
    }
}

impl Eq for Endpoint {}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.0.region, self.0.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_names_the_endpoints_of_regions_after_the_account() {
        for (url, region, expected) in [
            (
                "https://acc.documents.azure.com/",
                "West US 2",
                Some("https://acc-westus2.documents.azure.com/"),
            ),
            (
                "https://acc.documents.azure.cn:443/",
                "China East",
                Some("https://acc-chinaeast.documents.azure.cn/"),
            ),
            ("http://localhost:8081/", "West US", None),
            ("https://acc.example.com/", "West US", None),
        ] {
            let global = Endpoint::global(Url::parse(url).expect("a URL"));
            let found = global.of_region(&Region::new(region));
            assert_eq!(found.as_ref().map(|endpoint| endpoint.url().as_str()), expected, "{url}");
        }
    }

    #[test]
    fn the_port_is_part_of_the_authority_even_when_it_goes_without_saying() {
        for (url, authority) in
            [("https://a.example/", "a.example:443"), ("http://localhost:8081/", "localhost:8081")]
        {
            assert_eq!(Endpoint::global(Url::parse(url).expect("a URL")).authority(), authority);
        }
    }
}
