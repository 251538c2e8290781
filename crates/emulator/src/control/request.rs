//! A request to the control port, as its route reads it: path segments, query parameters, body.

use std::collections::BTreeMap;
use std::str::FromStr;

use bytes::Bytes;
use http::StatusCode;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::ControlError;

/// The longest request body of the control port.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// The most query parameters of a request.
const PARAMETERS_MAX: usize = 32;

/// A body without members.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EmptyBody {}

/// One request to the control port.
#[derive(Debug)]
pub(super) struct ControlRequest {
    segments: Vec<String>,
    parameters: BTreeMap<String, String>,
    body: Bytes,
}

impl ControlRequest {
    /// Parses a request; rejects what no route accepts.
    pub(super) fn new(
        segments: Vec<String>,
        query: Option<&str>,
        body: Bytes,
    ) -> Result<ControlRequest, ControlError> {
        if body.len() > BODY_BYTES_MAX {
            let message = format!("the body may have {BODY_BYTES_MAX} bytes, this one has {}", body.len());
            return Err(ControlError::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message));
        }
        Ok(ControlRequest { segments, parameters: parse_query(query.unwrap_or_default())?, body })
    }

    /// The value of the route's `index`-th `{…}` segment.
    pub(super) fn segment(&self, index: usize) -> &str {
        &self.segments[index]
    }

    /// The body parsed as `T`; an empty one counts as `{}`.
    ///
    /// `T` should deny unknown fields: a misspelt option must not be ignored.
    pub(super) fn body<T: DeserializeOwned>(&self) -> Result<T, ControlError> {
        let text: &[u8] = if self.body.trim_ascii().is_empty() { b"{}" } else { &self.body };
        serde_json::from_slice(text).map_err(|error| {
            ControlError::bad_request(format!("the body is not what this route takes: {error}"))
        })
    }

    /// Rejects query parameters that are not in `known`.
    pub(super) fn allow_parameters(&self, known: &[&str]) -> Result<(), ControlError> {
        match self.parameters.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Err(ControlError::bad_request(format!(
                    "unknown parameter '{name}'; this route takes: {known}"
                )))
            }
        }
    }

    /// The text of a query parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// The value of a query parameter; if it cannot be parsed, the error has the reason that `T` gives.
    pub(super) fn parse_parameter<T: FromStr<Err: std::fmt::Display>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, ControlError> {
        let Some(text) = self.parameter(name) else { return Ok(None) };
        match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(ControlError::bad_request(format!("parameter '{name}': {error} ('{text}')"))),
        }
    }
}

/// Parses `a=1&b=West%20US`; of a repeated name the last counts.
fn parse_query(query: &str) -> Result<BTreeMap<String, String>, ControlError> {
    let decode = |text: &str| {
        let spaced = text.replace('+', " ");
        let decoded = percent_decode_str(&spaced).decode_utf8().map(std::borrow::Cow::into_owned);
        decoded.map_err(|_| ControlError::bad_request("a parameter is not UTF-8"))
    };
    let mut found = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        found.insert(decode(name)?, decode(value)?);
        if found.len() > PARAMETERS_MAX {
            return Err(ControlError::bad_request(format!("more than {PARAMETERS_MAX} parameters")));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control_request(query: &str, body: &'static str) -> ControlRequest {
        ControlRequest::new(Vec::new(), Some(query), Bytes::from_static(body.as_bytes())).unwrap()
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Body {
        #[serde(default)]
        by: Option<u32>,
    }

    #[test]
    fn parameters_are_decoded_and_parsed() {
        let request = control_request("limit=5&region=West%20US&name=a+b&flag", "");
        assert_eq!(request.parse_parameter("limit").unwrap(), Some(5));
        assert_eq!(request.parameter("region"), Some("West US"));
        assert_eq!(request.parameter("name"), Some("a b"));
        assert_eq!(request.parameter("flag"), Some(""));
        assert_eq!(request.parse_parameter::<u32>("absent").unwrap(), None);
        assert!(request.parse_parameter::<u32>("region").unwrap_err().to_string().contains("region"));
        assert!(request.allow_parameters(&["limit", "region", "name", "flag"]).is_ok());
        assert!(
            request
                .allow_parameters(&["limit", "region", "name"])
                .unwrap_err()
                .to_string()
                .contains("'flag'")
        );
    }

    #[test]
    fn a_body_is_json_without_unknown_members_or_empty() {
        assert_eq!(control_request("", r#"{"by":3}"#).body::<Body>().unwrap(), Body { by: Some(3) });
        assert_eq!(control_request("", " \n").body::<Body>().unwrap(), Body { by: None });
        for bad in [r#"{"bye":3}"#, "[1", r#"{"by":"x"}"#, "3"] {
            let error = control_request("", bad).body::<Body>().unwrap_err();
            assert_eq!(error.status(), 400, "{bad}");
        }
    }

    #[test]
    fn too_long_bodies_and_too_many_parameters_are_rejected() {
        let big = ControlRequest::new(Vec::new(), None, Bytes::from(vec![b' '; BODY_BYTES_MAX + 1]));
        assert_eq!(big.unwrap_err().status(), 413);
        let many: Vec<String> = (0..=PARAMETERS_MAX).map(|n| format!("p{n}=")).collect();
        assert_eq!(parse_query(&many.join("&")).unwrap_err().status(), 400);
        assert_eq!(parse_query("a=%ff").unwrap_err().status(), 400);
    }
}
