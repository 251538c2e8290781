//! The body of a query: `{"query":…,"parameters":[…]}`, and from the .NET SDK a `resumeFilter`.
//!
//! A member that is not understood is refused: a query that is only half obeyed returns wrong rows.

use protocol::resource_id::ItemRid;
use smol_str::SmolStr;
use sql::Value;
use sql::value::Number;

use crate::handlers::ItemRequest;
use crate::response::ServiceError;
use engine::items::Ordinal;
use engine::query::{ResumeFilter, ResumeValue};

/// The longest query text, in bytes.
const QUERY_BYTES_MAX: usize = 512 * 1024;

/// The text and the parameters of a query, and where it resumes.
pub(super) struct QueryText {
    pub(super) text: String,
    pub(super) parameters: Vec<(SmolStr, Value)>,
    /// Where a client that merges several ranges left off.
    pub(super) resume: Option<ResumeFilter>,
}

/// Parses the query in a request body.
pub(super) fn read_query(request: &ItemRequest<'_>) -> Result<QueryText, ServiceError> {
    let payload = sql::value::parse(&request.call.body).map_err(|error| invalid(&error.to_string()))?;
    check_members(&payload, &["query", "parameters", "resumeFilter"])?;
    let text =
        payload.member("query").as_str().ok_or_else(|| invalid("it needs a member 'query' with the text"))?;
    if text.len() > QUERY_BYTES_MAX {
        return Err(invalid("the text is longer than 512 KB"));
    }
    let mut parameters = Vec::new();
    for parameter in payload.member("parameters").as_array().unwrap_or_default() {
        let name =
            parameter.member("name").as_str().ok_or_else(|| invalid("each parameter needs a 'name'"))?;
        let name = if name.starts_with('@') { SmolStr::new(name) } else { SmolStr::from(format!("@{name}")) };
        parameters.push((name, parameter.member("value").clone()));
    }
    let resume = match payload.member("resumeFilter") {
        Value::Undefined | Value::Null => None,
        filter => Some(read_resume_filter(filter, request)?),
    };
    Ok(QueryText { text: text.to_owned(), parameters, resume })
}

/// Parses a resume filter, `{"value":[…],"rid":…,"exclude":…}`.
fn read_resume_filter(filter: &Value, request: &ItemRequest<'_>) -> Result<ResumeFilter, ServiceError> {
    check_members(filter, &["value", "rid", "exclude"])?;
    let values =
        filter.member("value").as_array().ok_or_else(|| invalid("a resumeFilter needs a 'value'"))?;
    let values = values.iter().map(read_resume_value).collect::<Option<Vec<_>>>();
    let values = values.ok_or_else(|| invalid("the 'value' of the resumeFilter has an unknown form"))?;
    let item = match filter.member("rid") {
        Value::Undefined | Value::Null => None,
        rid => {
            let rid = rid.as_str().and_then(|rid| rid.parse::<ItemRid>().ok());
            let rid = rid.filter(|rid| rid.container == request.container.rid);
            let rid = rid.ok_or_else(|| invalid("the 'rid' of the resumeFilter is not of this container"))?;
            Some(Ordinal(rid.ordinal))
        }
    };
    let exclude = match filter.member("exclude") {
        Value::Undefined | Value::Null => false,
        Value::Bool(exclude) => *exclude,
        _ => return Err(invalid("the 'exclude' of the resumeFilter is not a boolean")),
    };
    Ok(ResumeFilter { values, item, exclude })
}

/// One ORDER BY value: a scalar, `[]` for undefined, or the distinct hash of an array or object.
fn read_resume_value(value: &Value) -> Option<ResumeValue> {
    match value {
        Value::Array(elements) => elements.is_empty().then_some(ResumeValue::Whole(Value::Undefined)),
        Value::Object(members) => {
            let half = |name: &str| match members.get(name) {
                // The halves are unsigned; some versions write them with a sign.
                Some(Value::Number(Number::Int(half))) => Some(u128::from(half.cast_unsigned())),
                Some(Value::Number(Number::UInt(half))) => Some(u128::from(*half)),
                _ => None,
            };
            let hash = half("high")? << 64 | half("low")?;
            match members.get("type")?.as_str()? {
                "array" => Some(ResumeValue::ArrayHash(hash)),
                "object" => Some(ResumeValue::ObjectHash(hash)),
                _ => None,
            }
        }
        Value::Undefined | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Some(ResumeValue::Whole(value.clone()))
        }
    }
}

/// Rejects a body that is not an object, or has a member that is not understood.
fn check_members(object: &Value, known: &[&str]) -> Result<(), ServiceError> {
    let members = object.as_object().ok_or_else(|| invalid("it is not an object"))?;
    match members
        .iter()
        .find(|(name, value)| !known.contains(&name.as_str()) && !matches!(value, Value::Null))
    {
        Some((name, _)) => Err(invalid(&format!("the member '{name}' is not supported"))),
        None => Ok(()),
    }
}

fn invalid(reason: &str) -> ServiceError {
    ServiceError::bad_request(format!("The query payload is invalid: {reason}"))
}
