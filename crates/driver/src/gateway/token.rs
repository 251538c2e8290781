//! A principal's token: asked for once however many need it, and replaced before it expires.
//!
//! In: a credential, the account it is for, and the time. Out: the header of a token that is good, or word that
//! one has to be waited for. Which requests carry it is `authorization`'s business.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use azure_core::credentials::{AccessToken, TokenCredential};
use azure_core::error::ErrorKind;
use azure_core::http::Url;

use super::headers::escaped;
use crate::background::Background;
use crate::clock::Clock;

/// How long a credential may take in the background. Operations wait for it until their own deadlines.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(60);

/// How long before its expiry a token is replaced.
const REFRESH_AHEAD: Duration = Duration::from_secs(5 * 60);
/// How long a failed request for a token speaks for others, and how long after a token that the service rejected
/// its successor is not replaced when it is rejected, too.
const FAILURE_CACHE_TIME: Duration = Duration::from_secs(1);
/// What principals that may not ask for an account's own scope ask for instead: the service as a whole, in the
/// public cloud. Accounts of other clouds have host names of their own, and so scopes of their own.
const SERVICE_SCOPE: &str = "https://cosmos.azure.com/.default";

/// The cached token of a Microsoft Entra principal.
pub(super) struct CachedToken {
    state: Arc<TokenState>,
    /// Ends what is in progress when the owner goes.
    background: Background,
}

struct TokenState {
    credential: Arc<dyn TokenCredential>,
    /// The scopes to request, one after another, until one is granted.
    scopes: Vec<String>,
    current: ArcSwapOption<Token>,
    /// Held by who asks for a token.
    request_lock: futures::lock::Mutex<Option<FailedRequest>>,
    refreshing: AtomicBool,
    /// When the service last rejected a token.
    last_rejected: Mutex<Option<SystemTime>>,
}

struct Token {
    header: Arc<str>,
    expires_at: SystemTime,
    refresh_at: SystemTime,
}

/// The last response was no.
struct FailedRequest {
    at: SystemTime,
    message: String,
}

impl CachedToken {
    /// For the account at `endpoint`, with a scope of its own or the one that is said.
    pub(super) fn new(
        credential: Arc<dyn TokenCredential>,
        scope: Option<String>,
        endpoint: &Url,
    ) -> CachedToken {
        let state = TokenState {
            credential,
            scopes: scope.map_or_else(|| scopes_of(endpoint), |scope| vec![scope]),
            current: ArcSwapOption::empty(),
            request_lock: futures::lock::Mutex::new(None),
            refreshing: AtomicBool::new(false),
            last_rejected: Mutex::new(None),
        };
        CachedToken { state: Arc::new(state), background: Background::new() }
    }

    /// The header, while the token is good. One that is about to expire is replaced in the background.
    pub(super) fn header(&self, clock: &Clock) -> Option<Arc<str>> {
        let now = clock.time_of_day();
        let current = self.state.current.load();
        let token = current.as_ref().filter(|token| now < token.expires_at)?;
        if now >= token.refresh_at && !self.state.refreshing.swap(true, Ordering::AcqRel) {
            self.refresh_ahead(clock.clone());
        }
        Some(Arc::clone(&token.header))
    }

    /// Ends when there is a token.
    pub(super) async fn ready(&self, clock: &Clock) -> azure_core::Result<()> {
        self.state.request_token(clock).await
    }

    /// Takes in that the service rejected the token of this header. Says whether there is, or will be, another
    /// one to try: not if the one before it was rejected a moment ago.
    pub(super) fn rejected(&self, header: &str, clock: &Clock) -> bool {
        let now = clock.time_of_day();
        let mut last_rejected = crate::sync::lock(&self.state.last_rejected);
        if self.state.current.load().as_ref().is_none_or(|token| *token.header != *header) {
            return true;
        }
        if last_rejected
            .is_some_and(|at| now.duration_since(at).is_ok_and(|since| since < FAILURE_CACHE_TIME))
        {
            return false;
        }
        *last_rejected = Some(now);
        self.state.current.store(None);
        true
    }

    fn refresh_ahead(&self, clock: Clock) {
        let refreshing = Refreshing(Arc::clone(&self.state));
        self.background.spawn(async move {
            let deadline = clock.after(REFRESH_TIMEOUT);
            match clock.within(Some(deadline), refreshing.0.request_token(&clock)).await {
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    tracing::warn!(%error, "could not replace the token ahead of its expiry");
                }
                None => tracing::warn!("the credential gave no new token within {REFRESH_TIMEOUT:?}"),
            }
        });
    }
}

/// A refresh in progress. However it ends, with the runtime it runs on included, the next call may start another.
struct Refreshing(Arc<TokenState>);

impl Drop for Refreshing {
    fn drop(&mut self) {
        self.0.refreshing.store(false, Ordering::Release);
    }
}

impl TokenState {
    /// Requests a token, unless a concurrent call just did.
    async fn request_token(&self, clock: &Clock) -> azure_core::Result<()> {
        let mut failed = self.request_lock.lock().await;
        let now = clock.time_of_day();
        if let Some(token) = &*self.current.load()
            && now < token.refresh_at
        {
            return Ok(());
        }
        if let Some(FailedRequest { at, message }) = &*failed
            && now.duration_since(*at).is_ok_and(|since| since < FAILURE_CACHE_TIME)
        {
            return Err(azure_core::Error::with_message(ErrorKind::Credential, message.clone()));
        }
        match self.token(clock).await {
            Ok(token) => {
                *failed = None;
                self.current.store(Some(Arc::new(token)));
                Ok(())
            }
            Err(error) => {
                let message = format!("no token for the account; check the credential and its role: {error}");
                *failed = Some(FailedRequest { at: clock.time_of_day(), message: message.clone() });
                Err(azure_core::Error::with_error(ErrorKind::Credential, error, message))
            }
        }
    }

    /// A token of the first scope that is granted.
    async fn token(&self, clock: &Clock) -> azure_core::Result<Token> {
        let mut first_error = None;
        for scope in &self.scopes {
            match self.credential.get_token(&[scope.as_str()], None).await {
                Ok(token) => return Token::new(&token, clock.time_of_day()),
                // The first is about this account, and says more.
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        Err(first_error.expect("there is a scope to ask for"))
    }
}

impl Token {
    fn new(token: &AccessToken, now: SystemTime) -> azure_core::Result<Token> {
        let expires_at = SystemTime::from(token.expires_on);
        // Asking again would bring the same.
        if expires_at <= now {
            let message = format!(
                "the credential gave a token that expired at {}, and it is {} here; check the clock of this machine",
                httpdate::fmt_http_date(expires_at),
                httpdate::fmt_http_date(now)
            );
            return Err(azure_core::Error::with_message(ErrorKind::Credential, message));
        }
        let header = escaped(&format!("type=aad&ver=1.0&sig={}", token.token.secret())).into();
        Ok(Token { header, expires_at, refresh_at: refresh_at(now, expires_at) })
    }
}

/// The scopes to ask for: the account's own, which is right in every cloud, and the service's.
fn scopes_of(endpoint: &Url) -> Vec<String> {
    let own = format!("{}://{}/.default", endpoint.scheme(), endpoint.host_str().unwrap_or_default());
    vec![own, SERVICE_SCOPE.to_owned()]
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

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::atomic::AtomicUsize;

    use azure_core::credentials::TokenRequestOptions;
    use azure_core::time::OffsetDateTime;

    use super::*;
    use crate::clock::ManualTime;

    /// Issues numbered tokens that live for `life`, once the test lets it.
    #[derive(Debug)]
    struct Issuer {
        clock: Clock,
        life: Duration,
        requests: AtomicUsize,
        fails: AtomicBool,
        gate: tokio::sync::Semaphore,
    }

    impl Issuer {
        fn new(time: &ManualTime, life: Duration) -> Arc<Issuer> {
            Arc::new(Issuer {
                clock: time.clock(),
                life,
                requests: AtomicUsize::new(0),
                fails: AtomicBool::new(false),
                gate: tokio::sync::Semaphore::new(1000),
            })
        }

        fn request_count(&self) -> usize {
            self.requests.load(Ordering::Relaxed)
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
                let number = self.requests.fetch_add(1, Ordering::Relaxed);
                assert!(scopes[0] == "https://one.example/.default" || self.fails.load(Ordering::Relaxed));
                if self.fails.load(Ordering::Relaxed) {
                    return Err(azure_core::Error::with_message(ErrorKind::Credential, "no role"));
                }
                let expires = OffsetDateTime::from(self.clock.time_of_day() + self.life);
                Ok(AccessToken::new(format!("head.body.{number}"), expires))
            })
        }
    }

    fn with_issuer(issuer: &Arc<Issuer>) -> CachedToken {
        let endpoint = Url::parse("https://one.example:8443/").expect("a URL");
        CachedToken::new(Arc::clone(issuer) as Arc<dyn TokenCredential>, None, &endpoint)
    }

    /// As a request does it.
    async fn header(cached: &CachedToken, time: &ManualTime) -> azure_core::Result<String> {
        let clock = time.clock();
        loop {
            match cached.header(&clock) {
                Some(header) => return Ok(header.as_ref().to_owned()),
                None => cached.ready(&clock).await?,
            }
        }
    }

    async fn token(cached: &CachedToken, time: &ManualTime) -> String {
        let header = header(cached, time).await.expect("a token");
        header.strip_prefix("type%3Daad%26ver%3D1.0%26sig%3Dhead.body.").expect("its form").to_owned()
    }

    #[tokio::test]
    async fn concurrent_operations_share_one_token_request() {
        let time = ManualTime::new();
        let issuer = Issuer::new(&time, Duration::from_secs(3600));
        let cached = with_issuer(&issuer);
        let all = futures::future::join_all((0..20).map(|_| token(&cached, &time))).await;
        assert!(all.iter().all(|token| token == "0"));
        assert_eq!(issuer.request_count(), 1);
    }

    #[tokio::test]
    async fn a_token_is_replaced_in_the_background_before_it_expires() {
        let time = ManualTime::new();
        let issuer = Issuer::new(&time, Duration::from_secs(3600));
        let cached = with_issuer(&issuer);
        assert_eq!(token(&cached, &time).await, "0");
        time.advance(Duration::from_secs(3299));
        assert_eq!(token(&cached, &time).await, "0");
        assert_eq!(issuer.request_count(), 1, "more than five minutes are left");
        time.advance(Duration::from_secs(2));
        assert_eq!(token(&cached, &time).await, "0", "no request waits for the new one");
        while token(&cached, &time).await == "0" {
            tokio::task::yield_now().await;
        }
        assert_eq!(issuer.request_count(), 2);
    }

    #[test]
    fn a_replacement_that_ends_with_its_runtime_is_begun_again_under_the_next() {
        let time = ManualTime::new();
        let issuer = Issuer::new(&time, Duration::from_secs(3600));
        let cached = with_issuer(&issuer);
        let on_new_runtime = || tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        on_new_runtime().block_on(async {
            assert_eq!(token(&cached, &time).await, "0");
            time.advance(Duration::from_secs(3301));
            // Begins to replace the token, and the runtime ends before it is done.
            assert!(cached.header(&time.clock()).is_some());
        });
        assert_eq!(issuer.request_count(), 1);
        on_new_runtime().block_on(async {
            while token(&cached, &time).await == "0" {
                tokio::task::yield_now().await;
            }
        });
        assert_eq!(issuer.request_count(), 2);
    }

    #[tokio::test]
    async fn an_expired_token_is_not_used() {
        let time = ManualTime::new();
        let issuer = Issuer::new(&time, Duration::from_secs(60));
        let cached = with_issuer(&issuer);
        assert_eq!(token(&cached, &time).await, "0");
        time.advance(Duration::from_secs(61));
        assert_eq!(token(&cached, &time).await, "1");
    }

    #[tokio::test]
    async fn a_failed_token_request_is_shared_for_a_second() {
        let time = ManualTime::new();
        let issuer = Issuer::new(&time, Duration::from_secs(60));
        issuer.fails.store(true, Ordering::Relaxed);
        let cached = with_issuer(&issuer);
        let error = header(&cached, &time).await.expect_err("failed");
        assert!(error.to_string().contains("check the credential"), "{error}");
        assert_eq!(*error.kind(), ErrorKind::Credential);
        let again = header(&cached, &time).await.expect_err("failed");
        assert!(again.to_string().contains("no role"), "{again}");
        assert_eq!(issuer.request_count(), 2, "the account's scope and the service's, once each");
        issuer.fails.store(false, Ordering::Relaxed);
        time.advance(Duration::from_secs(1));
        assert_eq!(token(&cached, &time).await, "2");
    }

    #[tokio::test]
    async fn a_dropped_token_request_does_not_block_the_next() {
        let time = ManualTime::new();
        let issuer = Issuer::new(&time, Duration::from_secs(60));
        let cached = with_issuer(&issuer);
        issuer.gate.forget_permits(1000);
        {
            let mut first = std::pin::pin!(token(&cached, &time));
            assert!(futures::poll!(first.as_mut()).is_pending());
        }
        issuer.gate.add_permits(1);
        assert_eq!(token(&cached, &time).await, "0");
    }

    #[tokio::test]
    async fn a_token_that_the_service_rejects_is_replaced_once() {
        let time = ManualTime::new();
        let issuer = Issuer::new(&time, Duration::from_secs(3600));
        let cached = with_issuer(&issuer);
        let first = header(&cached, &time).await.expect("a token");
        for _ in 0..3 {
            assert!(cached.rejected(&first, &time.clock()), "all that were failed with it try the next one");
        }
        let second = header(&cached, &time).await.expect("another");
        assert_ne!(first, second);
        assert!(cached.rejected(&first, &time.clock()), "there is another one by now");
        assert!(!cached.rejected(&second, &time.clock()), "a third one would be failed, too");
        assert_eq!(issuer.request_count(), 2);
        time.advance(FAILURE_CACHE_TIME);
        assert!(cached.rejected(&second, &time.clock()));
        assert_eq!(token(&cached, &time).await, "2");
    }

    #[tokio::test]
    async fn an_expired_token_is_an_error_that_mentions_the_clock() {
        let time = ManualTime::new();
        let cached = with_issuer(&Issuer::new(&time, Duration::ZERO));
        let error = header(&cached, &time).await.expect_err("of no use");
        assert!(error.to_string().contains("check the clock of this machine"), "{error}");
    }

    #[test]
    fn scopes_follow_the_cloud_of_the_account() {
        for (endpoint, own) in [
            ("https://a.documents.azure.com:443/", "https://a.documents.azure.com/.default"),
            ("https://a.documents.azure.us/", "https://a.documents.azure.us/.default"),
            ("https://a.documents.azure.cn/", "https://a.documents.azure.cn/.default"),
            ("http://127.0.0.1:8081/", "http://127.0.0.1/.default"),
        ] {
            let scopes = scopes_of(&Url::parse(endpoint).expect("a URL"));
            assert_eq!(scopes, [own, "https://cosmos.azure.com/.default"]);
        }
    }
}
