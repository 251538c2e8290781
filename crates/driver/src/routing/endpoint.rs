//! A region and the endpoint it is reached at.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use azure_core::http::Url;

use crate::hedging::threshold::Latencies;

/// A region by its name. `West US`, `west us` and `westus` are one region; it is shown as it was written.
#[derive(Clone)]
pub struct Region {
    name: Arc<str>,
    /// Of the letters that count: equal regions have equal marks, and different ones hardly ever.
    mark: u64,
}

impl Region {
    /// The region of this name.
    pub fn new(name: impl AsRef<str>) -> Region {
        let name: Arc<str> = Arc::from(name.as_ref());
        let mix = |mark: u64, byte: u8| (mark ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let mark = letters(&name).fold(0xcbf2_9ce4_8422_2325, mix);
        Region { name, mark }
    }

    /// The name as it was written.
    pub fn as_str(&self) -> &str {
        &self.name
    }
}

/// What counts of a name: no spaces, no capitals.
fn letters(name: &str) -> impl Iterator<Item = u8> + '_ {
    name.bytes().filter(|byte| *byte != b' ').map(|byte| byte.to_ascii_lowercase())
}

impl PartialEq for Region {
    fn eq(&self, other: &Region) -> bool {
        self.mark == other.mark
            && (Arc::ptr_eq(&self.name, &other.name) || letters(&self.name).eq(letters(&other.name)))
    }
}

impl Eq for Region {}

impl Hash for Region {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.mark);
    }
}

impl From<&str> for Region {
    fn from(name: &str) -> Region {
        Region::new(name)
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.name)
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Whether an endpoint is one region's or the account's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndpointKind {
    /// The account's own name, which leads to the hub region.
    Global,
    /// One region's.
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
        Endpoint(Arc::new(Parts { region, url, authority, kind, latencies: Latencies::default() }))
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
        host.extend(letters(region.as_str()).map(char::from));
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

    /// One region's, or the account's.
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
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_region_is_one_however_it_is_spelled() {
        let mut regions = HashSet::from([Region::new("West US")]);
        for (name, known) in [("westus", true), ("WEST US", true), ("West US 2", false), ("East US", false)] {
            assert_eq!(regions.contains(&Region::new(name)), known, "{name}");
        }
        regions.insert(Region::new("West US 2"));
        assert_eq!(regions.len(), 2);
    }

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
