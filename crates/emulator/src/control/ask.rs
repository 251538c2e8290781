//! What a route sees of a request: its `{…}` segments, its parameters, its body.

use std::collections::BTreeMap;
use std::str::FromStr;

use bytes::Bytes;
use http::StatusCode;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Problem;

/// No request to the control port has more to say.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// No route has more parameters.
const PARAMETERS_MAX: usize = 32;

/// A body that says nothing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// One request, as its route sees it.
#[derive(Debug)]
pub(super) struct Ask {
    segments: Vec<String>,
    parameters: BTreeMap<String, String>,
    body: Bytes,
}

impl Ask {
    /// Takes a request apart; refuses what no route could mean.
    pub(super) fn new(segments: Vec<String>, query: Option<&str>, body: Bytes) -> Result<Ask, Problem> {
        if body.len() > BODY_BYTES_MAX {
            let message = format!("the body may have {BODY_BYTES_MAX} bytes, this one has {}", body.len());
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message));
        }
        Ok(Ask { segments, parameters: parameters(query.unwrap_or_default())?, body })
    }

    /// What the `index`-th `{…}` segment of the route stands for.
    pub(super) fn segment(&self, index: usize) -> &str {
        &self.segments[index]
    }

    /// The body as `T`; an empty one counts as `{}`.
    ///
    /// `T` should deny unknown fields: a misspelt option must not be ignored.
    pub(super) fn body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let text: &[u8] = if self.body.trim_ascii().is_empty() { b"{}" } else { &self.body };
        serde_json::from_slice(text)
            .map_err(|error| Problem::bad_request(format!("the body is not what this route takes: {error}")))
    }

    /// Refuses parameters that the route does not know, of which `known` is the list.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), Problem> {
        match self.parameters.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Err(Problem::bad_request(format!("unknown parameter '{name}'; this route takes: {known}")))
            }
        }
    }

    /// A parameter's text.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// A parameter's value; what cannot be read as one is refused by the reason `T` gives.
    pub(super) fn parsed<T: FromStr<Err: std::fmt::Display>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, Problem> {
        let Some(text) = self.parameter(name) else { return Ok(None) };
        match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(Problem::bad_request(format!("parameter '{name}': {error} ('{text}')"))),
        }
    }
}

/// Reads `a=1&b=West%20US`; of a repeated name the last counts.
fn parameters(query: &str) -> Result<BTreeMap<String, String>, Problem> {
    let decode = |text: &str| {
        let spaced = text.replace('+', " ");
        let decoded = percent_decode_str(&spaced).decode_utf8().map(std::borrow::Cow::into_owned);
        decoded.map_err(|_| Problem::bad_request("a parameter is not UTF-8"))
    };
    let mut found = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        found.insert(decode(name)?, decode(value)?);
        if found.len() > PARAMETERS_MAX {
            return Err(Problem::bad_request(format!("more than {PARAMETERS_MAX} parameters")));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(query: &str, body: &'static str) -> Ask {
        Ask::new(Vec::new(), Some(query), Bytes::from_static(body.as_bytes())).unwrap()
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Body {
        #[serde(default)]
        by: Option<u32>,
    }

    #[test]
    fn parameters_are_decoded_and_read() {
        let ask = ask("limit=5&region=West%20US&name=a+b&flag", "");
        assert_eq!(ask.parsed("limit").unwrap(), Some(5));
        assert_eq!(ask.parameter("region"), Some("West US"));
        assert_eq!(ask.parameter("name"), Some("a b"));
        assert_eq!(ask.parameter("flag"), Some(""));
        assert_eq!(ask.parsed::<u32>("absent").unwrap(), None);
        assert!(ask.parsed::<u32>("region").unwrap_err().to_string().contains("region"));
        assert!(ask.only(&["limit", "region", "name", "flag"]).is_ok());
        assert!(ask.only(&["limit", "region", "name"]).unwrap_err().to_string().contains("'flag'"));
    }

    #[test]
    fn a_body_is_json_without_unknown_members_or_nothing() {
        assert_eq!(ask("", r#"{"by":3}"#).body::<Body>().unwrap(), Body { by: Some(3) });
        assert_eq!(ask("", " \n").body::<Body>().unwrap(), Body { by: None });
        for bad in [r#"{"bye":3}"#, "[1", r#"{"by":"x"}"#, "3"] {
            let error = ask("", bad).body::<Body>().unwrap_err();
            assert_eq!(error.status(), 400, "{bad}");
        }
    }

    #[test]
    fn what_is_too_much_is_refused() {
        let big = Ask::new(Vec::new(), None, Bytes::from(vec![b' '; BODY_BYTES_MAX + 1]));
        assert_eq!(big.unwrap_err().status(), 413);
        let many: Vec<String> = (0..=PARAMETERS_MAX).map(|n| format!("p{n}=")).collect();
        assert_eq!(parameters(&many.join("&")).unwrap_err().status(), 400);
        assert_eq!(parameters("a=%ff").unwrap_err().status(), 400);
    }
}
