//! Tokens of Microsoft Entra ID: JSON web tokens that stand for a user or a service.
//!
//! Input: a token and the time. Output: whether it is accepted. What its holder may do is decided in `request`.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clock::Ticks;
use serde_json::{Map, Value};

use super::json_web_keys::JsonWebKeys;

/// How far the clock of Microsoft Entra ID may be off.
const DIRECTORY_SKEW_MAX: Duration = Duration::from_secs(5 * 60);

/// Which tokens of Microsoft Entra ID are accepted.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum EntraTokens {
    /// None: requests need an account key or a resource token.
    Off,
    /// Every token that has not expired, whoever signed it.
    #[default]
    Accept,
    /// Those that one of these keys signed and that have not expired.
    Signed(JsonWebKeys),
}

/// Why a token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JwtError {
    #[error("tokens of Microsoft Entra ID are not accepted by this account")]
    Off,
    #[error("the token is not a JSON web token")]
    Malformed,
    #[error("the token is not signed with one of the keys that the account knows")]
    BadSignature,
    #[error("the token has no time of expiry")]
    NoExpiry,
    #[error("the token is expired")]
    Expired,
    #[error("the token is not valid yet")]
    NotYetValid,
}

impl EntraTokens {
    /// Checks a token: its form, its signature where keys are known, and its validity at `now`.
    pub(crate) fn check(&self, jwt: &str, now: Ticks) -> Result<(), JwtError> {
        let (signed, claims) = match self {
            EntraTokens::Off => return Err(JwtError::Off),
            EntraTokens::Accept => (false, read(jwt)?.claims),
            EntraTokens::Signed(keys) => {
                let token = read(jwt)?;
                let text = |member: &str| token.header.get(member).and_then(Value::as_str);
                let algorithm = text("alg").ok_or(JwtError::Malformed)?;
                let signature = decode(token.signature)?;
                if !keys.verify(algorithm, text("kid"), token.signed, &signature) {
                    return Err(JwtError::BadSignature);
                }
                (true, token.claims)
            }
        };
        check_validity(&claims, signed, now)
    }
}

/// The parts of a token.
struct JsonWebToken<'a> {
    header: Map<String, Value>,
    claims: Map<String, Value>,
    /// The bytes that are signed: header and claims as they were sent.
    signed: &'a [u8],
    /// The signature as it was sent.
    signature: &'a str,
}

fn decode(part: &str) -> Result<Vec<u8>, JwtError> {
    URL_SAFE_NO_PAD.decode(part.trim_end_matches('=')).map_err(|_| JwtError::Malformed)
}

fn read(jwt: &str) -> Result<JsonWebToken<'_>, JwtError> {
    let object = |part: &str| serde_json::from_slice(&decode(part)?).map_err(|_| JwtError::Malformed);
    let (signed, signature) = jwt.rsplit_once('.').ok_or(JwtError::Malformed)?;
    let (header, claims) = signed.split_once('.').ok_or(JwtError::Malformed)?;
    Ok(JsonWebToken {
        header: object(header)?,
        claims: object(claims)?,
        signed: signed.as_bytes(),
        signature,
    })
}

/// Checks the times of a token. One whose signature counts must have a time of expiry.
fn check_validity(claims: &Map<String, Value>, signed: bool, now: Ticks) -> Result<(), JwtError> {
    let moment = |claim: &str| claims.get(claim).and_then(Value::as_f64).map(|seconds| seconds as i64);
    let leeway = DIRECTORY_SKEW_MAX.as_secs().cast_signed();
    match moment("exp") {
        None if signed => return Err(JwtError::NoExpiry),
        Some(end) if end.saturating_add(leeway) <= now.seconds() => return Err(JwtError::Expired),
        _ => {}
    }
    if moment("nbf").is_some_and(|start| start.saturating_sub(leeway) > now.seconds()) {
        return Err(JwtError::NotYetValid);
    }
    Ok(())
}
