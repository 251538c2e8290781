//! The text of the `authorization` header.
//!
//! In: the header as any client encodes it. Out: a [`AuthorizationToken`]. Whether it is right is another
//! question.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use thiserror::Error;

use super::key::Signature;

/// What the header carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorizationToken {
    /// Signed with an account key.
    Master {
        /// The signature.
        signature: Signature,
    },
    /// Issued by Microsoft Entra ID.
    Aad {
        /// The JSON web token, as it came.
        jwt: String,
    },
    /// Issued with a permission.
    Resource {
        /// The whole token, decoded: the permission's `_token`.
        token: String,
    },
}

/// Why a header is not a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AuthorizationTokenError {
    /// It does not decode to text.
    #[error("the authorization token is not valid URL-encoded text")]
    NotText,
    /// It lacks one of its three parts.
    #[error("the authorization token must have the parts type, ver and sig")]
    MissingPart,
    /// A type nobody issues.
    #[error("the authorization token's type is none of master, resource and aad")]
    UnknownType,
    /// A version of a format unknown here.
    #[error("the authorization token's version is not 1.0")]
    UnknownVersion,
    /// The signature cannot be one.
    #[error("the authorization token's signature is not the base64 form of 256 bits")]
    BadSignature,
    /// The JSON web token cannot be one.
    #[error("the authorization token's signature is not a JSON web token of three parts")]
    BadJwt,
}

impl AuthorizationToken {
    /// Reads the header. All encodings in use are taken: everything escaped, only what must be,
    /// nothing at all.
    ///
    /// Cost: linear; a signed request allocates only when its encoding is an unusual one.
    pub fn parse(header: &str) -> Result<AuthorizationToken, AuthorizationTokenError> {
        let header = header.trim();
        if let Some(signature) = usual_signature(header) {
            return Ok(AuthorizationToken::Master { signature });
        }
        let text = percent_decode_str(header).decode_utf8().map_err(|_| AuthorizationTokenError::NotText)?;
        let (mut kind, mut version, mut signature) = (None, None, None);
        // The signature comes last and may contain what separates the others.
        for part in text.splitn(3, '&') {
            let (name, value) = part.split_once('=').ok_or(AuthorizationTokenError::MissingPart)?;
            match name {
                "type" => kind = Some(value),
                "ver" => version = Some(value),
                "sig" => signature = Some(value),
                _ => return Err(AuthorizationTokenError::MissingPart),
            }
        }
        let missing = AuthorizationTokenError::MissingPart;
        let (kind, version, signature) =
            (kind.ok_or(missing)?, version.ok_or(missing)?, signature.ok_or(missing)?);
        if !matches!(version, "1.0" | "1") {
            return Err(AuthorizationTokenError::UnknownVersion);
        }
        if kind.eq_ignore_ascii_case("master") {
            let signature = Signature::from_base64(&plus_for_space(signature))
                .ok_or(AuthorizationTokenError::BadSignature)?;
            Ok(AuthorizationToken::Master { signature })
        } else if kind.eq_ignore_ascii_case("aad") {
            if signature.split('.').filter(|part| !part.is_empty()).count() != 3 {
                return Err(AuthorizationTokenError::BadJwt);
            }
            Ok(AuthorizationToken::Aad { jwt: signature.to_owned() })
        } else if kind.eq_ignore_ascii_case("resource") {
            if signature.is_empty() {
                return Err(AuthorizationTokenError::MissingPart);
            }
            Ok(AuthorizationToken::Resource { token: plus_for_space(&text).into_owned() })
        } else {
            Err(AuthorizationTokenError::UnknownType)
        }
    }
}

/// What stands before the signature in nearly every request, in the spellings of the clients.
const USUAL_STARTS: [&str; 3] =
    ["type%3Dmaster%26ver%3D1.0%26sig%3D", "type%3dmaster%26ver%3d1.0%26sig%3d", "type=master&ver=1.0&sig="];

/// The signature of a header that begins as usual and goes on with 44 characters of base64; `None`
/// leaves anything else, right or wrong, to the whole grammar.
///
/// Every request passes here. Decoding the whole header and splitting it costs ten times as much as
/// comparing its start and decoding the signature in place.
fn usual_signature(header: &str) -> Option<Signature> {
    let mut rest = USUAL_STARTS.iter().find_map(|start| header.strip_prefix(start))?.as_bytes();
    let mut base64 = [0; 44];
    let mut places = &mut base64[..];
    // Runs of plain characters, with an escape after all but the last.
    loop {
        let run = rest.iter().position(|byte| *byte == b'%').unwrap_or(rest.len());
        let (plain, escape) = rest.split_at(run);
        places.split_off_mut(..run)?.copy_from_slice(plain);
        rest = match escape {
            [] => break,
            [_, high, low, rest @ ..] => {
                *places.split_off_first_mut()? = hex_digit(*high)? << 4 | hex_digit(*low)?;
                rest
            }
            _ => return None,
        };
    }
    if places.is_empty() { Signature::from_base64_bytes(&base64) } else { None }
}

fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// Some form decoders turn the `+` of base64 into a space.
fn plus_for_space(text: &str) -> Cow<'_, str> {
    if text.contains(' ') { Cow::Owned(text.replace(' ', "+")) } else { Cow::Borrowed(text) }
}

/// The header of a request signed with an account key.
///
/// Every request passes here, so it is put together by hand: of what base64 is made of, three characters
/// need an escape.
pub(super) fn master_header(signature: Signature) -> String {
    let base64 = signature.to_base64();
    // Room for a signature half of which is escaped; more would be a rare one, and grows.
    let mut header = String::with_capacity(USUAL_STARTS[0].len() + 2 * base64.len());
    header.push_str(USUAL_STARTS[0]);
    let mut rest = base64.as_str();
    // Runs of plain characters: copying one is cheaper than looking at each of its characters twice.
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'+' | b'/' | b'=')) {
        let (plain, escaped) = rest.split_at(at);
        header.push_str(plain);
        header.push_str(match escaped.as_bytes()[0] {
            b'+' => "%2B",
            b'/' => "%2F",
            _ => "%3D",
        });
        rest = &escaped[1..];
    }
    header.push_str(rest);
    header
}
