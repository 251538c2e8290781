//! An account: its endpoint and the credential to use there.

use crate::gateway::Credential;
use std::fmt;
use std::sync::Arc;

use azure_core::credentials::TokenCredential;
use azure_core::http::Url;
use protocol::authorization::AccountKey;

use crate::error::{Error, ErrorKind, Result};

/// An account to connect to.
#[derive(Clone)]
pub struct Account {
    endpoint: Url,
    backup_endpoints: Vec<Url>,
    credential: Credential,
}

impl Account {
    /// The account at `endpoint`, accessed with `credential`.
    pub fn new(endpoint: &str, credential: Credential) -> Result<Account> {
        let endpoint = url_of(endpoint)?;
        Ok(Account { endpoint, backup_endpoints: Vec::new(), credential })
    }

    /// The account at `endpoint`, accessed with an account key as the portal shows it.
    pub fn with_key(endpoint: &str, key: &str) -> Result<Account> {
        let key = AccountKey::from_base64(key).map_err(|_| {
            Error::new(ErrorKind::Configuration, "the account key is not base64; copy it whole")
        })?;
        Account::new(endpoint, Credential::Key(key))
    }

    /// The account at `endpoint`, accessed as a principal of Microsoft Entra ID. Its tokens are for the account's own
    /// scope, `https://{host}/.default`, or where that is not granted, the service's.
    pub fn with_credential(endpoint: &str, credential: Arc<dyn TokenCredential>) -> Result<Account> {
        Account::new(endpoint, Credential::Token { credential, scope: None })
    }

    /// Requests tokens for this scope and no other. Has no effect on an account key.
    #[must_use]
    pub fn with_scope(mut self, wanted: impl Into<String>) -> Account {
        if let Credential::Token { scope, .. } = &mut self.credential {
            *scope = Some(wanted.into());
        }
        self
    }

    /// Sets further endpoints for account discovery: those of the account's regions, or private endpoints. The
    /// account's properties are read from them, in this order, when its own endpoint fails or does not respond;
    /// operations then go to the regions that the properties name. Replaces earlier backup endpoints.
    ///
    /// An account of the service with preferred regions needs none: the endpoints of its regions follow from its
    /// own. The credential is sent to backup endpoints, so those of an https account must be https, too.
    ///
    /// ```
    /// use perihelion_driver::Account;
    ///
    /// let account = Account::with_key("https://shop.documents.azure.com", "a2V5")?
    ///     .with_backup_endpoints(["https://shop-eastus.documents.azure.com", "https://shop.internal.example"])?;
    /// assert_eq!(account.backup_endpoints().len(), 2);
    /// # Ok::<(), perihelion_driver::Error>(())
    /// ```
    pub fn with_backup_endpoints<E: AsRef<str>>(
        mut self,
        endpoints: impl IntoIterator<Item = E>,
    ) -> Result<Account> {
        let urls = endpoints.into_iter().map(|endpoint| url_of(endpoint.as_ref()));
        self.backup_endpoints = urls.collect::<Result<_>>()?;
        let in_clear = |url: &&Url| self.endpoint.scheme() == "https" && url.scheme() != "https";
        match self.backup_endpoints.iter().find(in_clear) {
            Some(url) => Err(Error::new(
                ErrorKind::Configuration,
                format!("the backup endpoint `{url}` is not https, as the account's own endpoint is"),
            )),
            None => Ok(self),
        }
    }

    /// The account of a connection string: `AccountEndpoint=https://…;AccountKey=…;`.
    pub fn from_connection_string(text: &str) -> Result<Account> {
        let (mut endpoint, mut key) = (None, None);
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            // Keys end in `=`, so only the first `=` separates name and value.
            match part.split_once('=') {
                Some((name, value)) if name.eq_ignore_ascii_case("AccountEndpoint") => endpoint = Some(value),
                Some((name, value)) if name.eq_ignore_ascii_case("AccountKey") => key = Some(value),
                // Portals and tools add parts of their own.
                _ => {}
            }
        }
        match (endpoint, key) {
            (Some(endpoint), Some(key)) => Account::with_key(endpoint, key),
            (None, _) => {
                Err(Error::new(ErrorKind::Configuration, "the connection string has no AccountEndpoint"))
            }
            (_, None) => Err(Error::new(ErrorKind::Configuration, "the connection string has no AccountKey")),
        }
    }

    /// The account's own endpoint.
    pub fn endpoint(&self) -> &Url {
        &self.endpoint
    }

    /// Further endpoints for account discovery.
    pub fn backup_endpoints(&self) -> &[Url] {
        &self.backup_endpoints
    }

    /// The credential of requests to the account.
    pub fn credential(&self) -> &Credential {
        &self.credential
    }
}

/// The URL of an endpoint, with a trailing slash.
fn url_of(endpoint: &str) -> Result<Url> {
    let invalid = |problem: String| Error::new(ErrorKind::Configuration, problem);
    let url = Url::parse(endpoint.trim())
        .map_err(|error| invalid(format!("the account endpoint `{endpoint}` is not a URL ({error}); one looks like `https://name.documents.azure.com`")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(invalid(format!(
            "the account endpoint `{endpoint}` is not an http or https URL of a host"
        )));
    }
    // Requests use its scheme, host and port. The rest would be ignored silently.
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err(invalid(format!(
            "the account endpoint `{endpoint}` has more than a host and a port; remove everything after them"
        )));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid(format!(
            "the account endpoint of `{}` has a user name or a password; remove them, and give the key or a credential",
            url.host_str().unwrap_or_default()
        )));
    }
    Ok(url)
}

/// Shows the endpoint and the kind of credential, never the secret.
impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Account({}, {:?})", self.endpoint, self.credential)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_string_is_read_in_any_order_and_spelling() {
        for text in [
            "AccountEndpoint=https://a.example:443/;AccountKey=a2V5;",
            "accountkey=a2V5; ACCOUNTENDPOINT=https://a.example/",
            "AccountEndpoint=https://a.example/;AccountKey=a2V5==;Database=d",
        ] {
            match Account::from_connection_string(text) {
                Ok(account) => assert_eq!(account.endpoint().as_str(), "https://a.example/", "{text}"),
                Err(error) => assert!(text.contains("=="), "{text}: {error}"),
            }
        }
    }

    #[test]
    fn a_bad_connection_string_is_an_error_that_names_the_missing_part() {
        for (text, problem) in [
            ("", "no AccountEndpoint"),
            ("AccountEndpoint=https://a.example/", "no AccountKey"),
            ("AccountKey=a2V5", "no AccountEndpoint"),
            ("AccountEndpoint=a.example;AccountKey=a2V5", "is not a URL"),
            ("AccountEndpoint=ftp://a.example;AccountKey=a2V5", "is not an http or https URL"),
            ("AccountEndpoint=https://a.example/;AccountKey=%%%", "is not base64"),
            ("AccountEndpoint=https://a.example/cosmos/;AccountKey=a2V5", "more than a host and a port"),
            ("AccountEndpoint=https://a.example/?x=1;AccountKey=a2V5", "more than a host and a port"),
            ("AccountEndpoint=https://a.example/#x;AccountKey=a2V5", "more than a host and a port"),
            ("AccountEndpoint=https://me:secret@a.example/;AccountKey=a2V5", "has a user name or a password"),
        ] {
            let error = Account::from_connection_string(text).expect_err(text);
            assert_eq!(error.kind(), ErrorKind::Configuration);
            assert!(error.message().contains(problem), "{error}");
            assert!(!error.message().contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_backup_endpoint_is_a_url_and_no_less_private_than_the_accounts_own() {
        let account = |endpoint| Account::with_key(endpoint, "a2V5").expect("valid");
        let backups = ["https://b.example", "https://c.example:444/"];
        let given = account("https://a.example").with_backup_endpoints(backups).expect("valid");
        let shown: Vec<&str> = given.backup_endpoints().iter().map(Url::as_str).collect();
        assert_eq!(shown, ["https://b.example/", "https://c.example:444/"]);
        assert!(account("http://a.example").with_backup_endpoints(["http://b.example"]).is_ok());
        for (endpoint, backup, problem) in [
            ("https://a.example", "b.example", "`b.example` is not a URL"),
            ("https://a.example", "http://b.example", "`http://b.example/` is not https"),
            ("http://a.example", "ftp://b.example", "is not an http or https URL"),
            ("http://a.example", "http://b.example/cosmos", "more than a host and a port"),
        ] {
            let error = account(endpoint).with_backup_endpoints([backup]).expect_err(backup);
            assert_eq!(error.kind(), ErrorKind::Configuration);
            assert!(error.message().contains(problem), "{error}");
        }
    }

    #[test]
    fn secrets_are_never_shown() {
        let account = Account::with_key("https://a.example", "c2VjcmV0").expect("valid");
        assert_eq!(format!("{account:?}"), "Account(https://a.example/, Key(..))");
    }
}
