//! What is wrong, out of the service's own text. Pure.
//!
//! In: the body of a response, or a message within one. Out: one line for a person. The service wraps what it means in
//! JSON, in text, or in one within the other, and adds what only its support can use; what is not understood is kept.

use serde::Deserialize;

/// The message in an error body: `{"code": …, "message": …}`.
pub(super) fn service_message(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Body {
        #[serde(default)]
        message: Option<String>,
        #[serde(default)]
        code: Option<serde_json::Value>,
    }
    let body: Body = serde_json::from_slice(body).ok()?;
    let text = body.message.or_else(|| body.code.map(|code| code.to_string()))?;
    let text = service_text(&text);
    (!text.is_empty()).then_some(text)
}

/// The first part of a message, whose rest is for support, in one line.
pub(crate) fn service_text(message: &str) -> String {
    let first = message.split("\r\nActivityId:").next().unwrap_or(message).trim();
    let text = listed_errors(first).unwrap_or_else(|| first.to_owned());
    text.replace("\r\n", " ").replace('\n', "\\n")
}

/// The messages of `Message: {"Errors": ["…"]}`, and of `{"errors": [{"code": …, "message": …, "location": …}]}`,
/// which is how the service reports errors of queries.
fn listed_errors(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Listed {
        #[serde(alias = "Errors")]
        errors: Vec<Entry>,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Entry {
        Text(String),
        Located { code: String, message: String, location: Option<Location> },
        Plain { message: String },
    }
    #[derive(Deserialize)]
    struct Location {
        start: u64,
        end: u64,
    }
    let json = text.strip_prefix("Message:").unwrap_or(text).trim();
    let Listed { errors } = serde_json::from_str(json).ok()?;
    if errors.is_empty() {
        return None;
    }
    let text = errors.into_iter().map(|entry| match entry {
        Entry::Text(message) | Entry::Plain { message } => message,
        Entry::Located { code, message, location: None } => format!("{message} ({code})"),
        Entry::Located { code, message, location: Some(Location { start, end }) } => {
            format!("{message} ({code}, characters {start} to {end})")
        }
    });
    Some(text.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_become_one_line_and_unknown_ones_stay() {
        for (message, expected) in [
            ("Message: {\"Errors\":[\"gone\"]}\r\nActivityId: 1, Request URI: x", "gone"),
            (r#"Message: {"Errors":["one","two"]}"#, "one; two"),
            (
                r#"{"errors":[{"severity":"Error","location":{"start":9,"end":13},"code":"SC1001","message":"near 'x'"}]}"#,
                "near 'x' (SC1001, characters 9 to 13)",
            ),
            (r#"{"errors":[{"code":"SC2","message":"no"},{"message":"bare"}]}"#, "no (SC2); bare"),
            ("signed 'get\n\n'", "signed 'get\\n\\n'"),
            (r#"Message: {"Errors":[7]}"#, r#"Message: {"Errors":[7]}"#),
            (r#"Message: {"Errors":[]}"#, r#"Message: {"Errors":[]}"#),
            ("Message: {}", "Message: {}"),
            ("Message: none", "Message: none"),
        ] {
            assert_eq!(service_text(message), expected);
            let body = serde_json::json!({"code": "BadRequest", "message": message}).to_string();
            assert_eq!(service_message(body.as_bytes()).as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_body_without_a_message_has_none() {
        assert_eq!(service_message(br#"{"code":"NotFound"}"#).as_deref(), Some("\"NotFound\""));
        for body in [&b""[..], b"<html>", b"[]", b"{}", br#"{"message":""}"#] {
            assert_eq!(service_message(body), None, "{}", String::from_utf8_lossy(body));
        }
    }
}
