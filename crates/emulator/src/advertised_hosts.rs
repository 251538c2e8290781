//! The host names of an account: what clients are told to connect to, and what its certificate names.
//!
//! Without `--advertise` and `--domain` a client is told the host that it used itself: behind a port mapping or
//! in a container the server cannot know its outside address. [`AdvertisedHosts::all`] lists every name that leads
//! to the account.

use engine::regions::Topology;
use server::Bind;

/// The host names of an account and of its regions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdvertisedHosts {
    /// The name that clients on this machine use.
    local: String,
    advertised: Advertised,
}

/// The host names that clients are told to use.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Advertised {
    /// The host that the client used itself.
    AsRequested,
    /// One host for the account and all regions, which differ by port.
    Host(String),
    /// A host for the account and one for each region, below a domain.
    Domain { account: String, domain: String },
}

impl AdvertisedHosts {
    /// The names of an account at `bind`, whose clients are told the host that they used.
    pub fn as_requested(bind: Bind) -> AdvertisedHosts {
        AdvertisedHosts { local: bind.host(), advertised: Advertised::AsRequested }
    }

    /// The names of an account that tells its clients to use `host`.
    #[must_use]
    pub fn with_host(self, host: &str) -> AdvertisedHosts {
        AdvertisedHosts { advertised: Advertised::Host(host.to_owned()), ..self }
    }

    /// The names of an account with a host below `domain` for itself and one for each region.
    #[must_use]
    pub fn with_domain(self, account: &str, domain: &str) -> AdvertisedHosts {
        let domain = domain.trim_matches('.').to_owned();
        AdvertisedHosts { advertised: Advertised::Domain { account: account.to_owned(), domain }, ..self }
    }

    /// The host that clients are told to find the account at; none if that is the one they used.
    pub(crate) fn account(&self) -> Option<String> {
        match &self.advertised {
            Advertised::AsRequested => None,
            Advertised::Host(host) => Some(host.clone()),
            Advertised::Domain { account, domain } => Some(format!("{account}.{domain}")),
        }
    }

    /// The host that clients are told to find a region at; none if that is the one they used.
    pub(crate) fn region(&self, name: &str) -> Option<String> {
        match &self.advertised {
            Advertised::Domain { account, domain } => {
                Some(format!("{account}-{}.{domain}", region_label(name)))
            }
            Advertised::AsRequested | Advertised::Host(_) => self.account(),
        }
    }

    /// The URL of the account, as it is shown to users.
    pub(crate) fn account_url(&self, scheme: &str, port: u16) -> String {
        format!("{scheme}://{}:{port}/", self.account().as_ref().unwrap_or(&self.local))
    }

    /// The URL of a region, as it is shown to users.
    pub(crate) fn region_url(&self, scheme: &str, name: &str, port: u16) -> String {
        format!("{scheme}://{}:{port}/", self.region(name).as_ref().unwrap_or(&self.local))
    }

    /// Every name of the account and its regions: the local one, and those that clients are told. An IPv6
    /// address has brackets.
    pub fn all(&self, topology: &Topology) -> Vec<String> {
        let regions = topology.regions().filter_map(|(_, region)| self.region(&region.name));
        let mut all: Vec<String> =
            [self.local.clone()].into_iter().chain(self.account()).chain(regions).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The names that the certificate needs beside the usual ones. The wildcard is for regions that are added
    /// later.
    pub(crate) fn certificate_names(&self, regions: &[String]) -> Vec<String> {
        let regions = regions.iter().filter_map(|name| self.region(name));
        let wildcard = match &self.advertised {
            Advertised::Domain { domain, .. } => Some(format!("*.{domain}")),
            Advertised::AsRequested | Advertised::Host(_) => None,
        };
        let mut names: Vec<String> = self.account().into_iter().chain(regions).chain(wildcard).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// A region's name as part of a host name: `eastus`.
fn region_label(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}

/// Fails unless `text` can be a host name or, in brackets if it is IPv6, an address.
pub fn parse_host_name(text: &str) -> Result<String, String> {
    let address = text.trim_start_matches('[').trim_end_matches(']');
    match address.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V6(address)) => return Ok(format!("[{address}]")),
        Ok(address) => return Ok(address.to_string()),
        Err(_) => {}
    }
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    match text.len() <= 200 && text.split('.').all(is_label) {
        true => Ok(text.to_ascii_lowercase()),
        false => Err(format!("expected a host name such as cosmos.example.test, found '{text}'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::regions::{Lag, Region};
    use protocol::account::ConsistencyLevel;

    fn topology() -> Topology {
        let regions = ["East US", "West US 2"].map(|name| Region::new(name, 0)).to_vec();
        Topology::new(regions, false, ConsistencyLevel::Session, Lag::NONE).unwrap()
    }

    #[test]
    fn each_way_to_name_hosts_lists_all_of_them() {
        let local = AdvertisedHosts::as_requested(Bind::Loopback);
        let (host, domain) =
            (local.clone().with_host("db.test"), local.clone().with_domain("acct", "doc.test."));
        assert_eq!(local.all(&topology()), ["localhost"]);
        assert_eq!(local.region_url("http", "East US", 1), "http://localhost:1/");
        assert_eq!(host.all(&topology()), ["db.test", "localhost"]);
        assert_eq!(
            domain.all(&topology()),
            ["acct-eastus.doc.test", "acct-westus2.doc.test", "acct.doc.test", "localhost"]
        );
        assert_eq!(domain.account_url("https", 8081), "https://acct.doc.test:8081/");
        assert_eq!(
            domain.certificate_names(&["East US".to_owned()]),
            ["*.doc.test", "acct-eastus.doc.test", "acct.doc.test"]
        );
    }

    #[test]
    fn a_host_name_is_labels_or_an_address() {
        for (text, expected) in [
            ("Documents.example.TEST", Some("documents.example.test")),
            ("192.0.2.7", Some("192.0.2.7")),
            ("fd00::7", Some("[fd00::7]")),
            ("[fd00::7]", Some("[fd00::7]")),
            ("a b", None),
            ("http://host", None),
            ("host:80", None),
            ("-a.test", None),
            ("a..test", None),
            ("", None),
        ] {
            assert_eq!(parse_host_name(text).ok().as_deref(), expected, "{text}");
        }
    }
}
