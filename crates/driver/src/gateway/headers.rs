//! The headers that every request to the gateway carries: identification, date and authorization.
//!
//! In: the headers of an operation. Out: the same list, with the client's own headers and a signature or token.
//! Names and most values are constants. A key signs each request, which costs one hash: the key was prepared
//! when it was read, and the date is formatted once per second. Tokens of Microsoft Entra ID are cached by
//! `token`.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use azure_core::credentials::TokenCredential;
use azure_core::http::Url;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use protocol::authorization::{self, AccountKey};
use protocol::headers as names;
use uuid::fmt::Hyphenated;

use super::request::AuthorizationContext;
use super::token::CachedToken;
use crate::clock::Clock;
use crate::routing::Endpoint;
use crate::telemetry::ClientIdentity;
use crate::transport::HeaderList;

/// The version of the REST API that is spoken.
const VERSION: &str = "2020-07-15";

/// The capabilities of this client, as a set of bits: it understands merged partitions.
const CAPABILITIES: &str = "1";

/// The headers that are the same for all requests of a client, and the id of each request.
#[derive(Debug)]
pub(super) struct CommonHeaders {
    user_agent: String,
    client_id: String,
    /// Mixed into every activity id, so that ids of two clients differ even where their random numbers do not.
    seed: u128,
}

impl CommonHeaders {
    /// The headers of one client, whose user agent ends with the name of the `application`, if it has one.
    pub(super) fn new(application: Option<&str>) -> CommonHeaders {
        let agent = concat!("perihelion/", env!("CARGO_PKG_VERSION"));
        let user_agent = match application {
            Some(application) => format!("{agent} {}", printable(application)),
            None => agent.to_owned(),
        };
        let seed = fastrand::u128(..);
        CommonHeaders { user_agent, client_id: uuid_v4(seed).to_string(), seed }
    }

    /// How spans and metrics name the client.
    pub(super) fn identity(&self, endpoint: Endpoint) -> ClientIdentity {
        ClientIdentity::new(endpoint, &self.client_id, &self.user_agent)
    }

    /// Sets the headers that stay the same however often the request is sent, but no content type where the
    /// operation has set one.
    pub(super) fn set_constant(&self, headers: &mut HeaderList, has_body: bool) {
        headers.set_fixed(names::ACCEPT, names::CONTENT_TYPE_JSON);
        headers.set_fixed(names::CACHE_CONTROL, "no-cache");
        headers.set_fixed(names::VERSION, VERSION);
        headers.set_fixed(names::SDK_SUPPORTED_CAPABILITIES, CAPABILITIES);
        // The pipeline retries 449 itself, so that each retry is counted and shown in diagnostics.
        headers.set_fixed(names::NO_RETRY_449, "true");
        headers.set(names::USER_AGENT, &self.user_agent);
        headers.set(names::CLIENT_ID, &self.client_id);
        if has_body && headers.get(names::CONTENT_TYPE).is_none() {
            headers.set_fixed(names::CONTENT_TYPE, names::CONTENT_TYPE_JSON);
        }
    }

    /// Sets a new activity id, which every request has, a repeated one included.
    pub(super) fn set_activity_id(&self, headers: &mut HeaderList) {
        let id = uuid_v4(self.seed ^ fastrand::u128(..));
        headers.set(names::ACTIVITY_ID, id.encode_lower(&mut [0; Hyphenated::LENGTH]));
    }
}

fn uuid_v4(random: u128) -> Hyphenated {
    uuid::Builder::from_random_bytes(random.to_ne_bytes()).into_uuid().hyphenated()
}

/// Replaces what may not stand in a header by `_`.
fn printable(text: &str) -> String {
    text.chars().take(64).map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '_' }).collect()
}

/// How requests are authorized.
#[derive(Clone)]
pub enum Credential {
    /// An account key, which signs each request.
    Key(AccountKey),
    /// A principal of Microsoft Entra ID.
    Token {
        /// The source of its tokens.
        credential: Arc<dyn TokenCredential>,
        /// The scope its tokens are requested for; the account's own scope if none is given.
        scope: Option<String>,
    },
    /// The resource token of a permission, as it was issued.
    Resource(String),
}

/// Shows the kind of credential, never the secret.
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
pub(super) struct Authorizer {
    credential: Prepared,
    date: DateStamp,
    clock: Clock,
}

#[derive(Debug)]
enum Prepared {
    Key(AccountKey),
    Token(CachedToken),
    /// The value of the header, ready to be sent.
    Fixed(String),
}

impl Authorizer {
    /// Authorizes the requests to the account at `endpoint`.
    pub(super) fn new(credential: Credential, endpoint: &Url, clock: Clock) -> Authorizer {
        let credential = match credential {
            Credential::Key(key) => Prepared::Key(key),
            Credential::Token { credential, scope } => {
                Prepared::Token(CachedToken::new(credential, scope, endpoint))
            }
            Credential::Resource(token) => Prepared::Fixed(escaped(&token)),
        };
        Authorizer { credential, date: DateStamp::default(), clock }
    }

    /// Sets the date and the authorization of one request. `false` when there is no token yet, or it has
    /// expired: then the caller waits for one with [`Authorizer::ready`].
    ///
    /// Cost: with a key one string and one hash of about a hundred bytes.
    pub(super) fn authorize(&self, headers: &mut HeaderList, context: &AuthorizationContext<'_>) -> bool {
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

    /// Waits until there is a token to authorize with.
    pub(super) async fn ready(&self) -> azure_core::Result<()> {
        match &self.credential {
            Prepared::Token(token) => token.ready(&self.clock).await,
            Prepared::Key(_) | Prepared::Fixed(_) => Ok(()),
        }
    }

    /// Called after a request with these headers got 401. Returns whether another authorization may be tried: a
    /// token can be replaced, a key cannot.
    pub(super) fn rejected(&self, headers: &HeaderList) -> bool {
        match (&self.credential, headers.get(names::AUTHORIZATION)) {
            (Prepared::Token(token), Some(header)) => token.rejected(header, &self.clock),
            _ => false,
        }
    }
}

/// The date of the current second, as it is signed and sent.
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
        // Two threads that come here in the same second store equal stamps.
        self.0.store(Arc::new(Stamp { second, text: httpdate::fmt_http_date(now) }));
        self.0.load()
    }
}

/// The characters that are escaped in a token.
const TOKEN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

pub(super) fn escaped(token: &str) -> String {
    utf8_percent_encode(token, TOKEN).to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use protocol::authorization::EMULATOR_KEY;

    use super::*;
    use crate::clock::ManualTime;

    fn sent(has_body: bool, own: &[(&'static str, &'static str)]) -> HeaderList {
        let mut headers = HeaderList::new();
        own.iter().for_each(|(name, value)| headers.set(name, value));
        let common = CommonHeaders::new(Some("shop\n1"));
        common.set_constant(&mut headers, has_body);
        common.set_activity_id(&mut headers);
        headers
    }

    #[test]
    fn every_request_names_the_client_the_version_and_an_activity_id() {
        let headers = sent(false, &[]);
        for (name, value) in [
            ("accept", "application/json"),
            ("cache-control", "no-cache"),
            ("x-ms-version", "2020-07-15"),
            ("x-ms-cosmos-sdk-supportedcapabilities", "1"),
            ("x-ms-noretry-449", "true"),
        ] {
            assert_eq!(headers.get(name), Some(value), "{name}");
        }
        let agent = headers.get("user-agent").expect("a user agent");
        assert!(agent.starts_with("perihelion/") && agent.ends_with(" shop_1"), "{agent}");
        assert!(headers.get("x-ms-client-id").is_some());
        assert_eq!(headers.get("content-type"), None, "no body, no type");
    }

    #[test]
    fn a_body_is_json_unless_the_operation_sets_another_type() {
        assert_eq!(sent(true, &[]).get("content-type"), Some("application/json"));
        let query = sent(true, &[("content-type", "application/query+json")]);
        assert_eq!(query.get("content-type"), Some("application/query+json"));
    }

    #[test]
    fn activity_ids_are_distinct_uuids() {
        let common = CommonHeaders::new(None);
        let mut headers = HeaderList::new();
        let ids: HashSet<String> = (0..10_000)
            .map(|_| {
                common.set_activity_id(&mut headers);
                headers.get("x-ms-activity-id").expect("an id").to_owned()
            })
            .collect();
        assert_eq!(ids.len(), 10_000);
        for id in ids {
            assert!(
                id.char_indices().all(|(index, c)| match index {
                    8 | 13 | 18 | 23 => c == '-',
                    14 => c == '4',
                    19 => matches!(c, '8' | '9' | 'a' | 'b'),
                    _ => matches!(c, '0'..='9' | 'a'..='f'),
                }),
                "{id}"
            );
        }
    }

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
    async fn a_key_signs_method_type_link_and_date() {
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
