//! Master-key signatures, as the official clients make them.
//!
//! Written apart from the product on purpose: the generator checks the product's verification with a
//! second implementation, and the comparison needs no crate of the product to build.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The key every local Cosmos server accepts.
pub(crate) const WELL_KNOWN_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// An account key, ready to sign.
#[derive(Clone)]
pub(crate) struct Key(Hmac<Sha256>);

impl Key {
    /// Reads the base64 text of an account key.
    pub(crate) fn parse(text: &str) -> Result<Key, String> {
        let bytes =
            STANDARD.decode(text).map_err(|error| format!("the account key is not base64: {error}"))?;
        let mac =
            Hmac::new_from_slice(&bytes).map_err(|error| format!("the account key does not fit: {error}"))?;
        Ok(Key(mac))
    }

    /// The value of the `authorization` header for one request.
    pub(crate) fn authorization(&self, verb: &str, kind: &str, link: &str, date: &str) -> String {
        let signed = format!("{}\n{kind}\n{link}\n{}\n\n", verb.to_lowercase(), date.to_lowercase());
        let mut mac = self.0.clone();
        mac.update(signed.as_bytes());
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        let escaped = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        format!("type%3Dmaster%26ver%3D1.0%26sig%3D{escaped}")
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, WELL_KNOWN_KEY};

    #[test]
    fn the_token_is_escaped_as_a_whole_and_depends_on_every_part() {
        let key = Key::parse(WELL_KNOWN_KEY).expect("the well-known key");
        let date = "Thu, 27 Apr 2017 00:51:12 GMT";
        let token = key.authorization("GET", "dbs", "dbs/ToDoList", date);
        assert!(token.starts_with("type%3Dmaster%26ver%3D1.0%26sig%3D"), "{token}");
        assert!(!token.contains(['=', '/', '+', '&']), "{token}");
        for other in [
            key.authorization("POST", "dbs", "dbs/ToDoList", date),
            key.authorization("GET", "colls", "dbs/ToDoList", date),
            key.authorization("GET", "dbs", "dbs/todolist", date),
            key.authorization("GET", "dbs", "dbs/ToDoList", "Thu, 27 Apr 2017 00:51:13 GMT"),
        ] {
            assert_ne!(token, other);
        }
    }

    #[test]
    fn the_documented_example_has_the_documented_signature() {
        let key = "dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/t4bQtVNw==";
        let key = Key::parse(key).expect("the key of the example");
        let token = key.authorization("GET", "dbs", "dbs/ToDoList", "Thu, 27 Apr 2017 00:51:12 GMT");
        assert!(token.ends_with("sig%3Dc09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu%2Bc%2Bc%3D"), "{token}");
    }

    #[test]
    fn a_key_that_is_not_base64_is_refused() {
        assert!(Key::parse("not a key").is_err());
    }
}
