//! Authorization: who sent a request, by its signature or token.
//!
//! Input: the keys of the account and the tokens that it accepts, the method, path and headers of the request, and
//! the times. Output: a [`Principal`], or 401 (unknown sender) or 403 (token not valid now). Pure. What the
//! principal may do is decided in `rights` and, where the resource is known, by the methods of `resource_token`.

use std::cell::Cell;
use std::time::{Duration, SystemTime};

use http::{HeaderValue, Method};
use protocol::authorization::{AccountKey, AuthorizationToken, AuthorizationTokenError, verify};
use protocol::resource_path::ResourcePath;
use protocol::status::{Status, SubStatus};

use super::headers::RequestHeaders;
use super::resource_token::Grant;
use super::sas_token::SasToken;
use crate::access::{AccessControl, JwtError};
use crate::response::ServiceError;
use clock::{ClockReading, Ticks};
use engine::account::Account;

/// The last second that a date in an error message can name, in the year 9999.
const DATE_SECONDS_MAX: u64 = 253_402_300_799;
/// How far a client's clock may be off.
const CLOCK_SKEW_MAX: Duration = Duration::from_secs(15 * 60);

/// The sender of a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Principal {
    /// The sender has a key of the account: may do everything.
    Owner,
    /// The sender has a read-only key of the account.
    Reader,
    /// The sender has a token of Microsoft Entra ID: may use items and read what describes them.
    EntraUser,
    /// The sender has a resource token.
    TokenHolder(Box<Grant>),
}

/// Authenticates the sender of a request. A request signed with the primary key costs one HMAC.
pub(crate) fn authorize(
    account: &Account,
    access: &AccessControl,
    method: &Method,
    path: &ResourcePath<'_>,
    headers: &RequestHeaders<'_>,
    times: ClockReading,
) -> Result<Principal, ServiceError> {
    let key = &account.key;
    let Some(authorization) = headers.authorization.filter(|value| !value.is_empty()) else {
        let message =
            "Required Header authorization is missing. Ensure a valid Authorization token is passed.";
        return Err(unauthorized(message).with_sub_status(SubStatus::AUTHORIZATION_HEADER_MISSING));
    };
    let text = authorization.to_str().map_err(|_| malformed_token(AuthorizationTokenError::NotText))?;
    match AuthorizationToken::parse(text).map_err(malformed_token)? {
        AuthorizationToken::Master { signature } => {
            let dates = SigningDates::read(headers)?;
            let signed = (dates.ms_date, dates.http_date);
            let signed_by = |key: &AccountKey| verify(key, &signature, method.as_str(), path, signed);
            let principal = match signed_by(key) {
                Ok(()) => Principal::Owner,
                Err(_) if access.keys.secondary.iter().any(|key| signed_by(key).is_ok()) => Principal::Owner,
                Err(_) if access.keys.read_only.iter().any(|key| signed_by(key).is_ok()) => Principal::Reader,
                Err(payload) => {
                    return Err(wrong_key(&format!(
                        "Server used the following payload to sign: '{payload}'"
                    )));
                }
            };
            // By the wall clock: clients do not know about an account time that was moved.
            dates.check(times.wall_clock)?;
            Ok(principal)
        }
        AuthorizationToken::Aad { jwt } => {
            access.entra.check(&jwt, times.wall_clock).map_err(refused_jwt)?;
            Ok(Principal::EntraUser)
        }
        AuthorizationToken::Resource { token } => {
            let grant = Grant::verify(&token, key).ok_or_else(|| {
                unauthorized("The resource token was not issued by this account, or it was changed.")
            })?;
            if times.account.seconds() >= grant.expires_at {
                let start = SystemTime::UNIX_EPOCH + Duration::from_secs(grant.issued_at.unsigned_abs());
                let expiry = SystemTime::UNIX_EPOCH + Duration::from_secs(grant.expires_at.unsigned_abs());
                return Err(outside_validity(start, expiry, times.account));
            }
            Ok(Principal::TokenHolder(Box::new(grant)))
        }
        AuthorizationToken::Sas { signature, payload } => {
            let token = SasToken::verify(&payload, &signature, key, &access.keys).ok_or_else(|| {
                unauthorized("The shared access signature was not made with a key of this account.")
            })?;
            // By the wall clock, which the client that made it lives by.
            let now = times.wall_clock.seconds();
            let skew = CLOCK_SKEW_MAX.as_secs().cast_signed();
            if now >= token.expires_at || now < token.starts_at.saturating_sub(skew) {
                let moment = |at: i64| {
                    SystemTime::UNIX_EPOCH + Duration::from_secs(at.unsigned_abs().min(DATE_SECONDS_MAX))
                };
                return Err(outside_validity(
                    moment(token.starts_at),
                    moment(token.expires_at),
                    times.wall_clock,
                ));
            }
            Ok(Principal::TokenHolder(Box::new(Grant::of_sas(token, &account.catalog.snapshot()))))
        }
    }
}

/// The dates that a request was signed with.
struct SigningDates<'a> {
    ms_date: &'a str,
    http_date: &'a str,
}

impl<'a> SigningDates<'a> {
    fn read(headers: &RequestHeaders<'a>) -> Result<SigningDates<'a>, ServiceError> {
        let text = |value: Option<&'a HeaderValue>| match value {
            None => Ok(""),
            Some(value) => value.to_str().map_err(|_| bad_date()),
        };
        let dates = SigningDates { ms_date: text(headers.ms_date)?, http_date: text(headers.http_date)? };
        if dates.ms_date.is_empty() && dates.http_date.is_empty() {
            return Err(unauthorized("Neither the x-ms-date nor the date header is present in the request."));
        }
        Ok(dates)
    }

    /// Rejects a signature that is too old or in the future.
    fn check(&self, now: Ticks) -> Result<(), ServiceError> {
        let text = if self.ms_date.is_empty() { self.http_date } else { self.ms_date };
        let signed_at = parse_date(text).ok_or_else(bad_date)?;
        let skew = match now.to_system_time().duration_since(signed_at) {
            Ok(past) => past,
            Err(future) => future.duration(),
        };
        if skew > CLOCK_SKEW_MAX {
            return Err(outside_validity(signed_at - CLOCK_SKEW_MAX, signed_at + CLOCK_SKEW_MAX, now));
        }
        Ok(())
    }
}

/// Parses an HTTP date. Clients send the same text in all requests of a second, so each thread caches the
/// last one.
fn parse_date(text: &str) -> Option<SystemTime> {
    /// The only form that clients send: `Sun, 15 Nov 2026 19:23:36 GMT`.
    const LENGTH: usize = 29;
    thread_local! {
        static LAST: Cell<([u8; LENGTH], SystemTime)> = const { Cell::new(([0; LENGTH], SystemTime::UNIX_EPOCH)) };
    }
    let usual = <[u8; LENGTH]>::try_from(text.as_bytes()).ok();
    let (last, moment) = LAST.get();
    if usual == Some(last) {
        return Some(moment);
    }
    let moment = httpdate::parse_http_date(text).ok()?;
    if let Some(usual) = usual {
        LAST.set((usual, moment));
    }
    Some(moment)
}

fn refused_jwt(error: JwtError) -> ServiceError {
    let sub_status = match error {
        JwtError::Malformed => return malformed_token(AuthorizationTokenError::BadJwt),
        JwtError::Off => SubStatus::AAD_AUTH_DISABLED,
        JwtError::BadSignature => SubStatus::AAD_TOKEN_INVALID_SIGNATURE,
        JwtError::NoExpiry => SubStatus::AAD_TOKEN_FIRST,
        JwtError::NotYetValid => SubStatus::AAD_TOKEN_NOT_YET_VALID,
        JwtError::Expired => SubStatus::AAD_TOKEN_EXPIRED,
    };
    unauthorized(format!("The AAD token was refused: {error}.")).with_sub_status(sub_status)
}

/// 401: no key of the account that allows the request signed it.
pub(super) fn wrong_key(details: &str) -> ServiceError {
    unauthorized(format!(
        "The input authorization token can't serve the request. The wrong key is being used or the expected \
         payload is not built as per the protocol. For more info: \
         https://aka.ms/cosmosdb-tsg-unauthorized. {details}"
    ))
}

fn unauthorized(message: impl Into<String>) -> ServiceError {
    ServiceError::new(Status::UNAUTHORIZED, message)
}

fn malformed_token(cause: AuthorizationTokenError) -> ServiceError {
    let sub_status = match cause {
        AuthorizationTokenError::BadJwt => SubStatus::AAD_TOKEN_FIRST,
        _ => SubStatus::AUTHORIZATION_TOKEN_MALFORMED,
    };
    unauthorized(format!("The input authorization token is not in the expected format: {cause}."))
        .with_sub_status(sub_status)
}

fn bad_date() -> ServiceError {
    unauthorized("The input date header is invalid format. Please pass in RFC 1123 style date format.")
}

fn outside_validity(start: SystemTime, expiry: SystemTime, now: Ticks) -> ServiceError {
    let date = httpdate::fmt_http_date;
    ServiceError::new(
        Status::FORBIDDEN,
        format!(
            "The authorization token is not valid at the current time. Please create another token and retry \
             (token start time: {}, token expiry time: {}, current server time: {}).",
            date(start),
            date(expiry),
            date(now.to_system_time()),
        ),
    )
}
