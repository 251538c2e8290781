//! JSON web keys (RFC 7517), and the signatures of JSON web tokens that they verify (RFC 7515).
//!
//! Input: the text of a key set, as an identity provider publishes it; a token. Output: whether one of the keys
//! signed it. The claims of the token are left to `entra`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, EcdsaVerificationAlgorithm, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RsaParameters,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;

/// A set of public keys that sign tokens.
#[derive(Clone, Debug)]
pub struct JsonWebKeys(Vec<JsonWebKey>);

/// Why a text is not a set of keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonWebKeysError {
    /// The text is not JSON of the right form.
    #[error("it is not a set of JSON web keys ({{\"keys\":[…]}}): {0}")]
    NotAKeySet(String),
    /// None of the keys can verify a signature.
    #[error("it has no RSA key and no key of the curves P-256 and P-384 that signs tokens")]
    NoUsableKey,
}

#[derive(Clone, Debug)]
struct JsonWebKey {
    id: Option<String>,
    /// The only algorithm that the key is for; any of its kind when absent.
    algorithm: Option<String>,
    public: PublicKey,
}

#[derive(Clone, Debug)]
enum PublicKey {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// An uncompressed point of a curve.
    Curve {
        name: Curve,
        point: Vec<u8>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Curve {
    P256,
    P384,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<KeyMembers>,
}

#[derive(Deserialize)]
struct KeyMembers {
    kty: String,
    #[serde(rename = "use")]
    purpose: Option<String>,
    kid: Option<String>,
    alg: Option<String>,
    n: Option<String>,
    e: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// The algorithm that a token names, if it is one of those that are verified here.
enum Algorithm {
    Rsa(&'static RsaParameters),
    Curve(Curve, &'static EcdsaVerificationAlgorithm),
}

impl Algorithm {
    fn by_name(name: &str) -> Option<Algorithm> {
        Some(match name {
            "RS256" => Algorithm::Rsa(&RSA_PKCS1_2048_8192_SHA256),
            "RS384" => Algorithm::Rsa(&RSA_PKCS1_2048_8192_SHA384),
            "RS512" => Algorithm::Rsa(&RSA_PKCS1_2048_8192_SHA512),
            "PS256" => Algorithm::Rsa(&RSA_PSS_2048_8192_SHA256),
            "ES256" => Algorithm::Curve(Curve::P256, &ECDSA_P256_SHA256_FIXED),
            "ES384" => Algorithm::Curve(Curve::P384, &ECDSA_P384_SHA384_FIXED),
            _ => return None,
        })
    }
}

impl JsonWebKeys {
    /// Parses a key set. Keys of other kinds, and those for encryption, are left out.
    pub fn parse(text: &[u8]) -> Result<JsonWebKeys, JsonWebKeysError> {
        let set: KeySet =
            serde_json::from_slice(text).map_err(|error| JsonWebKeysError::NotAKeySet(error.to_string()))?;
        let keys: Vec<JsonWebKey> = set.keys.into_iter().filter_map(JsonWebKey::new).collect();
        if keys.is_empty() { Err(JsonWebKeysError::NoUsableKey) } else { Ok(JsonWebKeys(keys)) }
    }

    /// Whether one of the keys made `signature` of `message`. `algorithm` and `key_id` are those that the token
    /// names; a token that names no key may be signed with any.
    pub(super) fn verify(
        &self,
        algorithm: &str,
        key_id: Option<&str>,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        let Some(found) = Algorithm::by_name(algorithm) else { return false };
        let candidates = self.0.iter().filter(|key| {
            key_id.is_none_or(|id| key.id.as_deref() == Some(id))
                && key.algorithm.as_deref().is_none_or(|only| only == algorithm)
        });
        candidates.into_iter().any(|key| key.public.verify(&found, message, signature))
    }
}

impl JsonWebKey {
    fn new(members: KeyMembers) -> Option<JsonWebKey> {
        if members.purpose.as_deref().is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let bytes = |text: Option<String>| URL_SAFE_NO_PAD.decode(text?.trim_end_matches('=')).ok();
        let public = match members.kty.as_str() {
            "RSA" => PublicKey::Rsa { modulus: bytes(members.n)?, exponent: bytes(members.e)? },
            "EC" => {
                let name = match members.crv.as_deref()? {
                    "P-256" => Curve::P256,
                    "P-384" => Curve::P384,
                    _ => return None,
                };
                // SEC 1: 4 stands for a point that is not compressed.
                let point = [vec![4], bytes(members.x)?, bytes(members.y)?].concat();
                PublicKey::Curve { name, point }
            }
            _ => return None,
        };
        Some(JsonWebKey { id: members.kid, algorithm: members.alg, public })
    }
}

impl PublicKey {
    fn verify(&self, algorithm: &Algorithm, message: &[u8], signature: &[u8]) -> bool {
        match (self, algorithm) {
            (PublicKey::Rsa { modulus, exponent }, Algorithm::Rsa(parameters)) => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(parameters, message, signature).is_ok()
            }
            (PublicKey::Curve { name, point }, Algorithm::Curve(curve, verification)) if name == curve => {
                UnparsedPublicKey::new(*verification, point).verify(message, signature).is_ok()
            }
            _ => false,
        }
    }
}
