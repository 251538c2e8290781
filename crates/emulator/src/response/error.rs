//! Why a request is refused.
//!
//! In: a status, a sub-status and a sentence. Out: a [`Reply`] whose body is the JSON object every
//! client parses (`code`, `message`, and `additionalErrorInfo` where a query plan is handed over).
//! The sentence for a person ends with the activity id, which the gateway adds last.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use protocol::container::DefinitionError;
use protocol::headers as name;
use protocol::resource::ErrorBody;
use protocol::status::{Status, SubStatus};
use sql::SqlError;

use super::reply::Reply;
use crate::sight::Answerer;

/// A refusal, as the service would phrase it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServiceError {
    /// The HTTP status.
    pub(crate) status: Status,
    /// `x-ms-substatus`, for when the status alone does not say what to do next.
    pub(crate) sub_status: SubStatus,
    /// What went wrong, for a person.
    pub(crate) message: String,
    /// The query plan, as text, of a query that the client has to merge itself.
    pub(crate) additional_error_info: Option<String>,
    /// `x-ms-retry-after-ms`.
    pub(crate) retry_after: Option<Duration>,
    /// What the attempt cost, when that is known better than "a refusal costs one".
    pub(crate) charge: Option<f64>,
    /// Headers that belong to the refusal, such as the session token of a 404. Boxed, because most
    /// refusals have none and a result should stay small.
    pub(crate) headers: Option<Box<HeaderMap>>,
}

impl ServiceError {
    /// A refusal in the gateway's own words.
    pub(crate) fn new(status: Status, message: impl Into<String>) -> ServiceError {
        ServiceError {
            status,
            sub_status: SubStatus::NONE,
            message: message.into(),
            additional_error_info: None,
            retry_after: None,
            charge: None,
            headers: None,
        }
    }

    /// A refusal by the storage layer, which wraps its sentence in a list of errors.
    pub(crate) fn listed(status: Status, message: &str) -> ServiceError {
        let list = serde_json::json!({ "Errors": [message] });
        ServiceError::new(status, format!("Message: {list}"))
    }

    /// 400 with no sub-status.
    pub(crate) fn bad_request(message: impl AsRef<str>) -> ServiceError {
        ServiceError::listed(Status::BAD_REQUEST, message.as_ref())
    }

    /// 404: the resource itself is missing.
    pub(crate) fn not_found() -> ServiceError {
        ServiceError::listed(
            Status::NOT_FOUND,
            "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found",
        )
    }

    /// 404/1003: the parent of the resource is missing.
    pub(crate) fn owner_not_found() -> ServiceError {
        ServiceError::listed(Status::NOT_FOUND, "Owner resource does not exist")
            .with_sub_status(SubStatus::OWNER_RESOURCE_NOT_FOUND)
    }

    /// 409: a resource with this id (or another unique name) is there already.
    pub(crate) fn conflict() -> ServiceError {
        ServiceError::listed(
            Status::CONFLICT,
            "Resource with specified id, name, or unique index already exists.",
        )
    }

    /// 412: an `If-Match` did not match.
    pub(crate) fn precondition_failed() -> ServiceError {
        ServiceError::listed(Status::PRECONDITION_FAILED, "One of the specified pre-condition is not met.")
    }

    /// 405: the path exists, the verb does not fit it.
    pub(crate) fn method_not_allowed(method: &http::Method, path: &str) -> ServiceError {
        ServiceError::new(
            Status::METHOD_NOT_ALLOWED,
            format!("The requested verb {method} is not supported on {path}."),
        )
    }

    /// The same refusal, saying more precisely what happened.
    pub(crate) fn with_sub_status(mut self, sub_status: SubStatus) -> ServiceError {
        self.sub_status = sub_status;
        self
    }

    /// The same refusal, handing over a query plan.
    pub(crate) fn with_additional_error_info(mut self, info: String) -> ServiceError {
        self.additional_error_info = Some(info);
        self
    }

    /// The same refusal, with what it cost.
    pub(crate) fn with_charge(mut self, request_units: f64) -> ServiceError {
        self.charge = Some(request_units);
        self
    }

    /// The same refusal, carrying one more header.
    pub(crate) fn with_header(mut self, name: &'static str, value: HeaderValue) -> ServiceError {
        let headers = self.headers.get_or_insert_default();
        headers.insert(HeaderName::from_static(name), value);
        self
    }

    /// The answer to send.
    ///
    /// `activity` and `uri` end the sentence, so that a user's log names the request.
    pub(crate) fn into_reply(self, activity: &str, uri: &str) -> Reply {
        let message = format!("{}\r\nActivityId: {activity}, Request URI: {uri}", self.message);
        let body = ErrorBody {
            additional_error_info: self.additional_error_info,
            ..ErrorBody::new(self.status, message)
        };
        let body = serde_json::to_vec(&body).expect("strings always serialise");
        let mut reply = Reply::new(self.status)
            .sub_status(self.sub_status)
            .charge(self.charge.unwrap_or(1.0))
            .json(Bytes::from(body));
        if let Some(delay) = self.retry_after {
            let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
            reply = reply.header(name::RETRY_AFTER_MS, HeaderValue::from(millis));
        }
        if let Some(headers) = self.headers {
            reply.answerer = Answerer::named_in(&headers);
            reply.headers.extend(*headers);
        }
        reply
    }
}

impl From<DefinitionError> for ServiceError {
    fn from(invalid: DefinitionError) -> ServiceError {
        ServiceError::bad_request(invalid.message)
    }
}

impl From<SqlError> for ServiceError {
    fn from(error: SqlError) -> ServiceError {
        ServiceError::new(Status::BAD_REQUEST, format!("Message: {}", error.errors_json()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(refusal: ServiceError) -> (Reply, serde_json::Value) {
        let reply = refusal.into_reply("an-id", "/dbs");
        let body = serde_json::from_slice(&reply.body).unwrap();
        (reply, body)
    }

    #[test]
    fn a_refusal_is_a_code_and_a_sentence_that_names_the_request() {
        let (reply, body) = sent(ServiceError::owner_not_found());
        assert_eq!((reply.status, reply.sub_status.0, reply.charge), (Status::NOT_FOUND, 1003, 1.0));
        assert_eq!(body["code"], "NotFound");
        let expected = "Message: {\"Errors\":[\"Owner resource does not exist\"]}\r\n\
                        ActivityId: an-id, Request URI: /dbs";
        assert_eq!(body["message"], expected);
        assert_eq!(body.get("additionalErrorInfo"), None);
    }

    #[test]
    fn a_plan_travels_as_text_beside_the_sentence() {
        let refusal = ServiceError::bad_request("merge it").with_additional_error_info("{}".to_owned());
        assert_eq!(sent(refusal).1["additionalErrorInfo"], "{}");
    }

    #[test]
    fn throttled_clients_are_told_when_to_come_back_in_milliseconds() {
        let refusal = ServiceError {
            retry_after: Some(Duration::from_millis(1_500)),
            ..ServiceError::new(Status::TOO_MANY_REQUESTS, "slow down")
        };
        assert_eq!(sent(refusal).0.headers[name::RETRY_AFTER_MS], "1500");
    }

    #[test]
    fn a_refusal_keeps_its_own_headers_and_charge() {
        let refusal = ServiceError::not_found()
            .with_charge(1.25)
            .with_header(name::SESSION_TOKEN, HeaderValue::from_static("0:-1#5"));
        let (reply, _) = sent(refusal);
        assert_eq!(reply.charge, 1.25);
        assert_eq!(reply.headers[name::SESSION_TOKEN], "0:-1#5");
    }
}
