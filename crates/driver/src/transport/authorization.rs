//! Key or token → the headers that say who asks.
//!
//! A key signs each request, which costs one hash: the key was mixed in when it was read, and the date is
//! written once per second. A token of Microsoft Entra ID is kept by `token`.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use azure_core::credentials::TokenCredential;
use azure_core::http::Url;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use protocol::authorization::{self, AccountKey};
use protocol::headers as names;

use super::header_list::HeaderList;
use super::request::AuthorizationContext;
use super::token::CachedToken;
use crate::clock::Clock;

/// Who asks.
#[derive(Clone)]
pub enum Credential {
    /// An account key.
    Key(AccountKey),
    /// A principal of Microsoft Entra ID.
    Token {
        /// Gives its tokens.
        credential: Arc<dyn TokenCredential>,
        /// What it asks for; the account's own scope if nothing is said.
        scope: Option<String>,
    },
    /// A permission's token, as it was issued.
    Resource(String),
}

/// Never the secret.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Credential::Key(_) => "Key(..)",
            Credential::Token { .. } => "Token(..)",
            Credential::Resource(_) => "Resource(..)",
        })
    }
}

/// Adds the date and the signature to requests.
#[derive(Debug)]
pub struct Authorizer {
    credential: Prepared,
    date: DateStamp,
    clock: Clock,
}

#[derive(Debug)]
enum Prepared {
    Key(AccountKey),
    Token(CachedToken),
    /// The whole header.
    Fixed(String),
}

impl Authorizer {
    /// For an account at `endpoint`, which a principal's token is asked for.
    pub fn new(credential: Credential, endpoint: &Url, clock: Clock) -> Authorizer {
        let credential = match credential {
            Credential::Key(key) => Prepared::Key(key),
            Credential::Token { credential, scope } => {
                Prepared::Token(CachedToken::new(credential, scope, endpoint))
            }
            Credential::Resource(token) => Prepared::Fixed(escaped(&token)),
        };
        Authorizer { credential, date: DateStamp::default(), clock }
    }

    /// Dates and signs one request. `false` when there is no token yet, or it has expired: then one has to
    /// be waited for, with [`Authorizer::ready`].
    ///
    /// Cost: with a key one string and one hash of about a hundred bytes.
    pub fn authorize(&self, headers: &mut HeaderList, context: &AuthorizationContext<'_>) -> bool {
        let date = self.date.at(self.clock.time_of_day());
        match &self.credential {
            Prepared::Key(key) => {
                let AuthorizationContext { verb, resource_type, link } = *context;
                let signed = authorization::sign(key, verb, resource_type, link, &date.text);
                headers.set(names::AUTHORIZATION, &signed);
            }
            Prepared::Token(token) => match token.header(&self.clock) {
                Some(header) => headers.set(names::AUTHORIZATION, &header),
                None => return false,
            },
            Prepared::Fixed(header) => headers.set(names::AUTHORIZATION, header),
        }
        headers.set(names::X_DATE, &date.text);
        true
    }

    /// Ends when there is something to sign with.
    pub async fn ready(&self) -> azure_core::Result<()> {
        match &self.credential {
            Prepared::Token(token) => token.ready(&self.clock).await,
            Prepared::Key(_) | Prepared::Fixed(_) => Ok(()),
        }
    }

    /// Takes in that a request with these headers was answered 401. Says whether it can be signed otherwise:
    /// a token can be replaced, a key cannot.
    pub fn refused(&self, headers: &HeaderList) -> bool {
        match (&self.credential, headers.get(names::AUTHORIZATION)) {
            (Prepared::Token(token), Some(header)) => token.refused(header, &self.clock),
            _ => false,
        }
    }
}

/// The date of the present second, as it is signed and sent.
#[derive(Debug, Default)]
struct DateStamp(ArcSwap<Stamp>);

#[derive(Debug, Default)]
struct Stamp {
    second: u64,
    text: String,
}

impl DateStamp {
    fn at(&self, now: SystemTime) -> arc_swap::Guard<Arc<Stamp>> {
        let second = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let stamp = self.0.load();
        if stamp.second == second && !stamp.text.is_empty() {
            return stamp;
        }
        // Two that come here together write the same.
        self.0.store(Arc::new(Stamp { second, text: httpdate::fmt_http_date(now) }));
        self.0.load()
    }
}

/// What needs no escape in a token.
const TOKEN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

pub(super) fn escaped(token: &str) -> String {
    utf8_percent_encode(token, TOKEN).to_string()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use protocol::authorization::EMULATOR_KEY;

    use super::*;
    use crate::clock::ManualTime;

    const CONTEXT: AuthorizationContext<'static> =
        AuthorizationContext { verb: "get", resource_type: "docs", link: "dbs/d/colls/c/docs/1" };

    fn endpoint() -> Url {
        Url::parse("https://one.example").expect("a URL")
    }

    async fn authorized(authorizer: &Authorizer) -> azure_core::Result<(String, String)> {
        let mut headers = HeaderList::new();
        while !authorizer.authorize(&mut headers, &CONTEXT) {
            authorizer.ready().await?;
        }
        let of = |name| headers.get(name).expect(name).to_owned();
        Ok((of("x-ms-date"), of("authorization")))
    }

    #[tokio::test]
    async fn a_key_signs_verb_type_link_and_the_date_that_is_sent() {
        let time = ManualTime::new();
        let key = AccountKey::from_base64(EMULATOR_KEY).expect("a key");
        let authorizer = Authorizer::new(Credential::Key(key.clone()), &endpoint(), time.clock());
        let (date, signature) = authorized(&authorizer).await.expect("signed");
        assert_eq!(date, "Tue, 14 Nov 2023 22:13:20 GMT");
        assert_eq!(signature, authorization::sign(&key, "get", "docs", "dbs/d/colls/c/docs/1", &date));
        time.advance(Duration::from_millis(999));
        assert_eq!(authorized(&authorizer).await.expect("signed").0, date, "the same second");
        time.advance(Duration::from_millis(1));
        let (next, other) = authorized(&authorizer).await.expect("signed");
        assert_eq!(next, "Tue, 14 Nov 2023 22:13:21 GMT");
        assert_ne!(other, signature);
    }

    #[tokio::test]
    async fn a_resource_token_is_sent_as_it_was_issued() {
        let token = Credential::Resource("type=resource&ver=1&sig=a+b/c==;d;".to_owned());
        assert_eq!(format!("{token:?}"), "Resource(..)");
        let authorizer = Authorizer::new(token, &endpoint(), ManualTime::new().clock());
        let (_, sent) = authorized(&authorizer).await.expect("authorized");
        assert_eq!(sent, "type%3Dresource%26ver%3D1%26sig%3Da%2Bb%2Fc%3D%3D%3Bd%3B");
    }
}
