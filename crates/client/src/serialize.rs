//! The only place that knows serde.

use bytes::Bytes;
use driver::{Error, ErrorKind};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Result;

/// What is sent.
pub(crate) fn to_body(value: &(impl Serialize + ?Sized)) -> Result<Bytes> {
    match serde_json::to_vec(value) {
        Ok(body) => Ok(Bytes::from(body)),
        Err(error) => Err(Error::new(ErrorKind::BadRequest, format!("the value has no JSON form: {error}"))
            .with_source(error)),
    }
}

/// What came back, as a `T`.
pub(crate) fn from_body<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| misfit::<T>(body, error))
}

/// Why a body is not a `T`: which property, and what is there.
#[cold]
fn misfit<T: DeserializeOwned>(body: &[u8], error: serde_json::Error) -> Error {
    let name = short_name(std::any::type_name::<T>());
    let kind = if error.is_data() { ErrorKind::Mismatch } else { ErrorKind::BadResponse };
    // Where it is costs a second reading, which nobody pays for who has no error.
    let at = match serde_path_to_error::deserialize::<_, T>(&mut serde_json::Deserializer::from_slice(body)) {
        Err(error) if error.path().iter().next().is_some() => format!(" at `{}`", error.path()),
        _ => String::new(),
    };
    Error::new(kind, format!("the answer does not fit into {name}{at}: {error}")).with_source(error)
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
    fn what_does_not_fit_is_named_with_its_place() {
        for (body, kind, words) in [
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
            assert!(error.message().contains(words), "{error}");
        }
    }

    #[test]
    fn names_are_told_without_their_paths() {
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
