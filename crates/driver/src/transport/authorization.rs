//! Key or token → the headers that say who asks.
//!
//! A key signs each request, which costs one hash: the key was mixed in when it was read, and the date is
//! written once per second. A token of Microsoft Entra ID is kept, and replaced before it expires, by one
//! request however many wait for it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::{ArcSwap, ArcSwapOption};
use azure_core::credentials::TokenCredential;
use azure_core::error::ErrorKind;
use azure_core::http::headers::{HeaderName, HeaderValue, Headers};
use futures::lock::Mutex;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use protocol::authorization::{self, Key};
use protocol::headers as names;

use super::request::AuthorizationContext;
use crate::background::Background;
use crate::clock::Clock;

/// Who asks.
#[derive(Clone)]
pub enum Credential {
    /// An account key.
    Key(Key),
    /// A principal of Microsoft Entra ID.
    Token(Arc<dyn TokenCredential>),
    /// A permission's token, as it was issued.
    Resource(String),
}

/// Never the secret.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Credential::Key(_) => "Key(..)",
            Credential::Token(_) => "Token(..)",
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
    Key(Key),
    Token(CachedToken),
    /// The whole header.
    Fixed(HeaderValue),
}

impl Authorizer {
    /// For an account at `endpoint` (`https://host`), which a principal's token is asked for.
    pub fn new(credential: Credential, endpoint: &str, clock: Clock) -> Authorizer {
        let credential = match credential {
            Credential::Key(key) => Prepared::Key(key),
            Credential::Token(credential) => Prepared::Token(CachedToken::new(credential, endpoint)),
            Credential::Resource(token) => Prepared::Fixed(HeaderValue::from(escaped(&token))),
        };
        Authorizer { credential, date: DateStamp::default(), clock }
    }

    /// Dates and signs one request. `false` when there is no token yet, or it has expired: then one has to
    /// be waited for, with [`Authorizer::ready`].
    ///
    /// Cost: with a key two strings and one hash of about a hundred bytes.
    pub fn authorize(&self, headers: &mut Headers, context: &AuthorizationContext<'_>) -> bool {
        const X_DATE: HeaderName = HeaderName::from_static(names::X_DATE);
        const AUTHORIZATION: HeaderName = HeaderName::from_static(names::AUTHORIZATION);
        let date = self.date.at(self.clock.time_of_day());
        let authorization = match &self.credential {
            Prepared::Key(key) => {
                let AuthorizationContext { verb, resource_type, link } = *context;
                HeaderValue::from(authorization::sign(key, verb, resource_type, link, &date.text))
            }
            Prepared::Token(token) => match token.header(&self.clock) {
                Some(header) => header,
                None => return false,
            },
            Prepared::Fixed(header) => header.clone(),
        };
        headers.insert(X_DATE, HeaderValue::from(date.text.clone()));
        headers.insert(AUTHORIZATION, authorization);
        true
    }

    /// Ends when there is something to sign with.
    pub async fn ready(&self) -> azure_core::Result<()> {
        match &self.credential {
            Prepared::Token(token) => token.state.ask(&self.clock).await,
            Prepared::Key(_) | Prepared::Fixed(_) => Ok(()),
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

/// How long before its expiry a token is replaced.
const REFRESH_AHEAD: Duration = Duration::from_secs(5 * 60);
/// After a failed request for a token, how long others take its word for it.
const FAILURE_KEPT: Duration = Duration::from_secs(1);

/// A principal's token.
struct CachedToken {
    state: Arc<TokenState>,
    /// Ends what is under way when the owner goes.
    background: Background,
}

struct TokenState {
    credential: Arc<dyn TokenCredential>,
    /// The account's own scope, and the one of the service for those who may not use that.
    scopes: [String; 2],
    current: ArcSwapOption<Token>,
    /// Held by who asks for a token.
    asking: Mutex<Option<Refused>>,
    refreshing: AtomicBool,
}

struct Token {
    header: HeaderValue,
    expires_at: SystemTime,
    refresh_at: SystemTime,
}

/// The last answer was no.
struct Refused {
    at: SystemTime,
    why: String,
}

impl CachedToken {
    fn new(credential: Arc<dyn TokenCredential>, endpoint: &str) -> CachedToken {
        let own = format!("{}/.default", endpoint.trim_end_matches('/'));
        let state = TokenState {
            credential,
            scopes: [own, "https://cosmos.azure.com/.default".to_owned()],
            current: ArcSwapOption::empty(),
            asking: Mutex::new(None),
            refreshing: AtomicBool::new(false),
        };
        CachedToken { state: Arc::new(state), background: Background::new() }
    }

    /// The header, while the token is good. One that is about to expire is replaced in the background.
    fn header(&self, clock: &Clock) -> Option<HeaderValue> {
        let now = clock.time_of_day();
        let current = self.state.current.load();
        let token = current.as_ref().filter(|token| now < token.expires_at)?;
        if now >= token.refresh_at && !self.state.refreshing.swap(true, Ordering::AcqRel) {
            self.refresh_ahead(clock.clone());
        }
        Some(token.header.clone())
    }

    fn refresh_ahead(&self, clock: Clock) {
        let state = Arc::clone(&self.state);
        self.background.spawn(async move {
            if let Err(error) = state.ask(&clock).await {
                tracing::warn!(%error, "could not replace the token ahead of its expiry");
            }
            state.refreshing.store(false, Ordering::Release);
        });
    }
}

impl TokenState {
    /// Asks for a token, unless somebody else just did.
    async fn ask(&self, clock: &Clock) -> azure_core::Result<()> {
        let mut refused = self.asking.lock().await;
        let now = clock.time_of_day();
        if let Some(token) = &*self.current.load()
            && now < token.refresh_at
        {
            return Ok(());
        }
        if let Some(Refused { at, why }) = &*refused
            && now.duration_since(*at).is_ok_and(|since| since < FAILURE_KEPT)
        {
            return Err(azure_core::Error::with_message(ErrorKind::Credential, why.clone()));
        }
        match self.token().await {
            Ok(token) => {
                *refused = None;
                let header =
                    HeaderValue::from(escaped(&format!("type=aad&ver=1.0&sig={}", token.token.secret())));
                let expires_at = SystemTime::from(token.expires_on);
                let refresh_at = refresh_at(now, expires_at);
                self.current.store(Some(Arc::new(Token { header, expires_at, refresh_at })));
                Ok(())
            }
            Err(error) => {
                let at = clock.time_of_day();
                *refused = Some(Refused { at, why: format!("no token: {error}") });
                Err(error.with_context("no token for the account; check the credential and its role"))
            }
        }
    }

    async fn token(&self) -> azure_core::Result<azure_core::credentials::AccessToken> {
        let [own, service] = &self.scopes;
        match self.credential.get_token(&[own.as_str()], None).await {
            Ok(token) => Ok(token),
            Err(error) => match self.credential.get_token(&[service.as_str()], None).await {
                Ok(token) => Ok(token),
                // The first is about this account, and says more.
                Err(_) => Err(error),
            },
        }
    }
}

/// Five minutes before the end, or half-way for a token that lives for less than ten.
fn refresh_at(now: SystemTime, expires_at: SystemTime) -> SystemTime {
    let life = expires_at.duration_since(now).unwrap_or_default();
    expires_at - REFRESH_AHEAD.min(life / 2)
}

impl fmt::Debug for CachedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CachedToken(..)")
    }
}

/// What needs no escape in a token.
const TOKEN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

fn escaped(token: &str) -> String {
    utf8_percent_encode(token, TOKEN).to_string()
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::atomic::AtomicUsize;

    use azure_core::credentials::{AccessToken, TokenRequestOptions};
    use azure_core::time::OffsetDateTime;
    use protocol::authorization::EMULATOR_KEY;

    use super::*;
    use crate::clock::ManualTime;
    use crate::operation::header;

    const CONTEXT: AuthorizationContext<'static> =
        AuthorizationContext { verb: "get", resource_type: "docs", link: "dbs/d/colls/c/docs/1" };

    async fn authorized(authorizer: &Authorizer) -> azure_core::Result<(String, String)> {
        let mut headers = Headers::new();
        while !authorizer.authorize(&mut headers, &CONTEXT) {
            authorizer.ready().await?;
        }
        let of = |name| header(&headers, name).expect(name).to_owned();
        Ok((of("x-ms-date"), of("authorization")))
    }

    #[tokio::test]
    async fn a_key_signs_verb_type_link_and_the_date_that_is_sent() {
        let time = ManualTime::new();
        let key = Key::from_base64(EMULATOR_KEY).expect("a key");
        let authorizer = Authorizer::new(Credential::Key(key.clone()), "https://one.example", time.clock());
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
        let authorizer = Authorizer::new(token, "https://one.example", ManualTime::new().clock());
        let (_, sent) = authorized(&authorizer).await.expect("authorized");
        assert_eq!(sent, "type%3Dresource%26ver%3D1%26sig%3Da%2Bb%2Fc%3D%3D%3Bd%3B");
    }

    /// Issues numbered tokens that live for `life`, once the test lets it.
    #[derive(Debug)]
    struct Issuer {
        clock: Clock,
        life: Duration,
        asked: AtomicUsize,
        fails: AtomicBool,
        gate: tokio::sync::Semaphore,
    }

    impl Issuer {
        fn new(time: &ManualTime, life: Duration) -> Arc<Issuer> {
            Arc::new(Issuer {
                clock: time.clock(),
                life,
                asked: AtomicUsize::new(0),
                fails: AtomicBool::new(false),
                gate: tokio::sync::Semaphore::new(1000),
            })
        }

        fn asked(&self) -> usize {
            self.asked.load(Ordering::Relaxed)
        }
    }

    impl TokenCredential for Issuer {
        fn get_token<'a, 'b, 'c, 'd, 'e>(
            &'a self,
            scopes: &'b [&'c str],
            _: Option<TokenRequestOptions<'d>>,
        ) -> Pin<Box<dyn Future<Output = azure_core::Result<AccessToken>> + Send + 'e>>
        where
            'a: 'e,
            'b: 'e,
            'c: 'e,
            'd: 'e,
            Self: 'e,
        {
            Box::pin(async move {
                self.gate.acquire().await.expect("open").forget();
                let number = self.asked.fetch_add(1, Ordering::Relaxed);
                assert!(scopes[0] == "https://one.example/.default" || self.fails.load(Ordering::Relaxed));
                if self.fails.load(Ordering::Relaxed) {
                    return Err(azure_core::Error::with_message(ErrorKind::Credential, "no role"));
                }
                let expires = OffsetDateTime::from(self.clock.time_of_day() + self.life);
                Ok(AccessToken::new(format!("head.body.{number}"), expires))
            })
        }
    }

    fn with_issuer(issuer: &Arc<Issuer>, time: &ManualTime) -> Authorizer {
        let credential = Credential::Token(Arc::clone(issuer) as Arc<dyn TokenCredential>);
        Authorizer::new(credential, "https://one.example/", time.clock())
    }

    async fn token(authorizer: &Authorizer) -> String {
        let (_, header) = authorized(authorizer).await.expect("a token");
        header.strip_prefix("type%3Daad%26ver%3D1.0%26sig%3Dhead.body.").expect("its form").to_owned()
    }

    #[tokio::test]
    async fn a_token_is_asked_for_once_however_many_need_it() {
        let time = ManualTime::new();
        let issuer = Issuer::new(&time, Duration::from_secs(3600));
        let authorizer = with_issuer(&issuer, &time);
        let all = futures::future::join_all((0..20).map(|_| token(&authorizer))).await;
        assert!(all.iter().all(|token| token == "0"));
        assert_eq!(issuer.asked(), 1);
    }

    #[tokio::test]
    async fn a_token_is_replaced_in_the_background_before_it_expires() {
        let time = ManualTime::new();
        let issuer = Issuer::new(&time, Duration::from_secs(3600));
        let authorizer = with_issuer(&issuer, &time);
        assert_eq!(token(&authorizer).await, "0");
        time.advance(Duration::from_secs(3299));
        assert_eq!(token(&authorizer).await, "0");
        assert_eq!(issuer.asked(), 1, "more than five minutes are left");
        time.advance(Duration::from_secs(2));
        assert_eq!(token(&authorizer).await, "0", "nobody waits for the new one");
        while token(&authorizer).await == "0" {
            tokio::task::yield_now().await;
        }
        assert_eq!(issuer.asked(), 2);
    }

    #[tokio::test]
    async fn an_expired_token_is_not_used() {
        let time = ManualTime::new();
        let issuer = Issuer::new(&time, Duration::from_secs(60));
        let authorizer = with_issuer(&issuer, &time);
        assert_eq!(token(&authorizer).await, "0");
        time.advance(Duration::from_secs(61));
        assert_eq!(token(&authorizer).await, "1");
    }

    #[tokio::test]
    async fn a_refusal_is_shared_for_a_second_and_says_what_to_do() {
        let time = ManualTime::new();
        let issuer = Issuer::new(&time, Duration::from_secs(60));
        issuer.fails.store(true, Ordering::Relaxed);
        let authorizer = with_issuer(&issuer, &time);
        let error = authorized(&authorizer).await.expect_err("refused");
        assert!(error.to_string().contains("check the credential"), "{error}");
        assert_eq!(*error.kind(), ErrorKind::Credential);
        let again = authorized(&authorizer).await.expect_err("refused");
        assert!(again.to_string().contains("no role"), "{again}");
        assert_eq!(issuer.asked(), 2, "the account's scope and the service's, once each");
        issuer.fails.store(false, Ordering::Relaxed);
        time.advance(Duration::from_secs(1));
        assert_eq!(token(&authorizer).await, "2");
    }

    #[tokio::test]
    async fn a_call_that_is_dropped_while_it_asks_leaves_the_way_free() {
        let time = ManualTime::new();
        let issuer = Issuer::new(&time, Duration::from_secs(60));
        let authorizer = with_issuer(&issuer, &time);
        issuer.gate.forget_permits(1000);
        {
            let mut first = std::pin::pin!(token(&authorizer));
            assert!(futures::poll!(first.as_mut()).is_pending());
        }
        issuer.gate.add_permits(1);
        assert_eq!(token(&authorizer).await, "0");
    }
}
