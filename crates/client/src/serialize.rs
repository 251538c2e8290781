//! JSON serialization of request bodies and deserialization of response bodies with serde.

use bytes::Bytes;
use driver::{Error, ErrorKind};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Result;

/// Serializes a request body.
pub(crate) fn to_body(value: &(impl Serialize + ?Sized)) -> Result<Bytes> {
    match serde_json::to_vec(value) {
        Ok(body) => Ok(Bytes::from(body)),
        Err(error) => Err(Error::new(ErrorKind::BadRequest, format!("the value has no JSON form: {error}"))
            .with_source(error)),
    }
}

/// Deserializes a response body into a `T`.
pub(crate) fn from_body<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| deserialize_error::<T>(body, error))
}

/// The error for a body that is no `T`: names the type, the property and its value.
#[cold]
fn deserialize_error<T: DeserializeOwned>(body: &[u8], error: serde_json::Error) -> Error {
    let name = short_name(std::any::type_name::<T>());
    let kind = if error.is_data() { ErrorKind::Mismatch } else { ErrorKind::BadResponse };
    // Finding the path of the property takes a second pass over the body, which only an error pays for.
    let at = match serde_path_to_error::deserialize::<_, T>(&mut serde_json::Deserializer::from_slice(body)) {
        Err(error) if error.path().iter().next().is_some() => format!(" at `{}`", error.path()),
        _ => String::new(),
    };
    Error::new(kind, format!("the response does not fit into {name}{at}: {error}")).with_source(error)
}

/// A type's name without the paths before it: `Option<Order>` for `core::option::Option<shop::Order>`.
fn short_name(name: &str) -> String {
    let mut short = String::with_capacity(name.len());
    for part in name.split_inclusive(['<', '>', ',', ' ', '(', ')', '[', ']', '&']) {
        short.push_str(part.rsplit("::").next().unwrap_or(part));
    }
    short
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read by serde")]
    struct Order {
        lines: Vec<Line>,
        state: State,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read by serde")]
    struct Line {
        price: f64,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum State {
        Open,
        Paid,
    }

    #[test]
    fn a_value_that_does_not_fit_is_named_with_its_path() {
        for (body, kind, message) in [
            (
                r#"{"lines":[{"price":1},{"price":"2"}],"state":"open"}"#,
                ErrorKind::Mismatch,
                "at `lines[1].price`",
            ),
            (r#"{"lines":[],"state":"paid!"}"#, ErrorKind::Mismatch, "unknown variant `paid!`"),
            (r#"{"lines":[]}"#, ErrorKind::Mismatch, "missing field `state`"),
            ("[1]", ErrorKind::Mismatch, "into Order"),
            (r#"{"lines":["#, ErrorKind::BadResponse, "EOF"),
            ("<html>", ErrorKind::BadResponse, "into Order"),
        ] {
            let error = from_body::<Order>(body.as_bytes()).expect_err(body);
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.message().contains(message), "{error}");
        }
    }

    #[test]
    fn type_names_are_shown_without_their_paths() {
        for (long, short) in [
            ("shop::orders::Order", "Order"),
            ("core::option::Option<shop::Order>", "Option<Order>"),
            ("alloc::vec::Vec<(shop::A, b::B)>", "Vec<(A, B)>"),
            ("u32", "u32"),
        ] {
            assert_eq!(short_name(long), short);
        }
    }
}
