//! Authorization: who sent a request, by its signature or token.
//!
//! Input: the account key, the method, path and headers of the request, and the times. Output: a
//! [`Principal`], or 401 (unknown sender) or 403 (token not valid now). Pure. What the principal may do is
//! decided where the resource is known: see the `check_…` methods of [`Principal`].

use std::time::{Duration, SystemTime};

use http::{HeaderValue, Method};
use protocol::authorization::{AccountKey, AuthorizationToken, AuthorizationTokenError, verify};
use protocol::resource_path::ResourcePath;
use protocol::status::{Status, SubStatus};

use super::headers::RequestHeaders;
use super::http_date;
use super::resource_token::Grant;
use crate::response::ServiceError;
use clock::{ClockReading, Ticks};

/// How far a client's clock may be off.
const CLOCK_SKEW_MAX: Duration = Duration::from_secs(15 * 60);
/// How far the clock of Microsoft Entra ID may be off.
const DIRECTORY_SKEW_MAX: Duration = Duration::from_secs(5 * 60);

/// The sender of a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Principal {
    /// The sender has the account key or an Entra ID token: may do everything.
    Owner,
    /// The sender has a resource token.
    TokenHolder(Box<Grant>),
}

/// Authenticates the sender of a request. A valid master-key request costs one HMAC.
pub(crate) fn authorize(
    key: &AccountKey,
    method: &Method,
    path: &ResourcePath<'_>,
    headers: &RequestHeaders<'_>,
    times: ClockReading,
) -> Result<Principal, ServiceError> {
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
            if let Err(payload) = verify(key, &signature, method.as_str(), path, signed) {
                return Err(unauthorized(format!(
                    "The input authorization token can't serve the request. The wrong key is being used or \
                     the expected payload is not built as per the protocol. For more info: \
                     https://aka.ms/cosmosdb-tsg-unauthorized. Server used the following payload to sign: \
                     '{payload}'"
                )));
            }
            // By the wall clock: clients do not know about an account time that was moved.
            dates.check(times.wall_clock)?;
            Ok(Principal::Owner)
        }
        AuthorizationToken::Aad { jwt } => {
            check_jwt(&jwt, times.wall_clock)?;
            Ok(Principal::Owner)
        }
        AuthorizationToken::Resource { token } => {
            let grant = Grant::verify(&token, key).ok_or_else(|| {
                unauthorized("The resource token was not issued by this account, or it was changed.")
            })?;
            if times.account.seconds() >= grant.expires_at {
                let start = http_date::from_seconds(grant.issued_at);
                let expiry = http_date::from_seconds(grant.expires_at);
                return Err(outside_validity(start, expiry, times.account));
            }
            Ok(Principal::TokenHolder(Box::new(grant)))
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
        let signed_at = http_date::parse(text).ok_or_else(bad_date)?;
        let skew = match now.to_system_time().duration_since(signed_at) {
            Ok(past) => past,
            Err(future) => future.duration(),
        };
        if skew > CLOCK_SKEW_MAX {
            // A date at either end of the calendar has no moment so long before or after it.
            let start = signed_at.checked_sub(CLOCK_SKEW_MAX).unwrap_or(signed_at);
            let end = signed_at.checked_add(CLOCK_SKEW_MAX).unwrap_or(signed_at);
            return Err(outside_validity(start, end, now));
        }
        Ok(())
    }
}

/// Checks an Entra ID token: header and claims have to be JSON objects, and it has to be valid now, by the
/// wall clock. Its signature is not checked: any tenant may sign in.
fn check_jwt(jwt: &str, now: Ticks) -> Result<(), ServiceError> {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let object = |part: &str| {
        let bytes = URL_SAFE_NO_PAD.decode(part.trim_end_matches('=')).ok()?;
        serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&bytes).ok()
    };
    let mut parts = jwt.split('.');
    let (header, claims) = (parts.next().and_then(object), parts.next().and_then(object));
    let (Some(_), Some(claims)) = (header, claims) else {
        return Err(malformed_token(AuthorizationTokenError::BadJwt));
    };
    let moment = |claim: &str| claims.get(claim).and_then(serde_json::Value::as_i64);
    let leeway = DIRECTORY_SKEW_MAX.as_secs().cast_signed();
    if moment("exp").is_some_and(|end| end.saturating_add(leeway) <= now.seconds()) {
        return Err(unauthorized("The AAD token is expired. Get a new one and retry.")
            .with_sub_status(SubStatus::AAD_TOKEN_EXPIRED));
    }
    if moment("nbf").is_some_and(|start| start.saturating_sub(leeway) > now.seconds()) {
        return Err(unauthorized("The AAD token is not valid yet.")
            .with_sub_status(SubStatus::AAD_TOKEN_NOT_YET_VALID));
    }
    Ok(())
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
    let date = http_date::format;
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
