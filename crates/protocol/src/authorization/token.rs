//! Parsing and writing the `authorization` header.
//!
//! Input: the header in the encoding of any client. Output: an [`AuthorizationToken`]. Verifying it is left
//! to the caller.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use thiserror::Error;

use super::key::Signature;

/// The token in the `authorization` header, by type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorizationToken {
    /// A signature made with an account key.
    Master {
        /// The signature of the request.
        signature: Signature,
    },
    /// A token issued by Microsoft Entra ID.
    Aad {
        /// The JSON web token as it was sent.
        jwt: String,
    },
    /// A resource token, issued with a permission.
    Resource {
        /// The whole decoded token, which equals the permission's `_token`.
        token: String,
    },
    /// A shared access signature: rights that the holder of an account key wrote down and signed.
    Sas {
        /// The signature of the payload.
        signature: Signature,
        /// The rights, as base64 text, which is what is signed.
        payload: String,
    },
}

/// The error of a malformed `authorization` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AuthorizationTokenError {
    /// The header does not decode to text.
    #[error("the authorization token is not valid URL-encoded text")]
    NotText,
    /// The type, the version or the signature is missing.
    #[error("the authorization token must have the parts type, ver and sig")]
    MissingPart,
    /// The token type is unknown.
    #[error("the authorization token's type is none of master, resource, sas and aad")]
    UnknownType,
    /// The token version is unknown.
    #[error("the authorization token's version is not 1.0")]
    UnknownVersion,
    /// The signature is not 256 bits in base64.
    #[error("the authorization token's signature is not the base64 form of 256 bits")]
    BadSignature,
    /// The JSON web token does not have three parts.
    #[error("the authorization token's signature is not a JSON web token of three parts")]
    BadJwt,
}

impl AuthorizationToken {
    /// Parses the header in any encoding in use: everything escaped, only the necessary characters, or
    /// nothing.
    ///
    /// Cost: linear; a signed request allocates only if its encoding is an unusual one.
    pub fn parse(header: &str) -> Result<AuthorizationToken, AuthorizationTokenError> {
        let header = header.trim();
        if let Some(signature) = usual_signature(header) {
            return Ok(AuthorizationToken::Master { signature });
        }
        let text = percent_decode_str(header).decode_utf8().map_err(|_| AuthorizationTokenError::NotText)?;
        let (mut kind, mut version, mut signature) = (None, None, None);
        // The signature comes last and may contain the separator of the others.
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
        } else if kind.eq_ignore_ascii_case("sas") {
            let (signature, payload) =
                signature.split_once(';').ok_or(AuthorizationTokenError::MissingPart)?;
            let signature = Signature::from_base64(&plus_for_space(signature))
                .ok_or(AuthorizationTokenError::BadSignature)?;
            let payload = plus_for_space(payload.trim_end_matches(';')).into_owned();
            Ok(AuthorizationToken::Sas { signature, payload })
        } else {
            Err(AuthorizationTokenError::UnknownType)
        }
    }
}

/// The beginning of the header in nearly every request, as the clients write it.
const USUAL_STARTS: [&str; 3] =
    ["type%3Dmaster%26ver%3D1.0%26sig%3D", "type%3dmaster%26ver%3d1.0%26sig%3d", "type=master&ver=1.0&sig="];

/// The signature of a header that starts with one of [`USUAL_STARTS`] and continues with 44 base64
/// characters. `None` leaves all other headers to the general parser.
///
/// By hand because every request passes here: decoding and splitting the whole header costs ten times as
/// much as comparing its beginning and decoding the signature in place.
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

/// Restores the `+` of base64, which some form decoders turn into a space.
fn plus_for_space(text: &str) -> Cow<'_, str> {
    if text.contains(' ') { Cow::Owned(text.replace(' ', "+")) } else { Cow::Borrowed(text) }
}

/// The `authorization` header of a request signed with an account key.
///
/// By hand because every request passes here: only three base64 characters need an escape.
pub(super) fn master_header(signature: Signature) -> String {
    let base64 = signature.to_base64();
    // Enough capacity for a signature of which half is escaped; a rare longer one grows the string.
    let mut header = String::with_capacity(USUAL_STARTS[0].len() + 2 * base64.len());
    header.push_str(USUAL_STARTS[0]);
    let mut rest = base64.as_str();
    // Whole runs of plain characters are copied, which is cheaper than handling each character.
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
