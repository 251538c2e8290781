//! Errors of the service: status, sub-status and message.
//!
//! Output: a [`Reply`] whose body is the JSON object that every client parses (`code`, `message`, and
//! `additionalErrorInfo` where a query plan is returned). The gateway appends the activity id to the message.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use protocol::container::{DefinitionError, ReplaceError};
use protocol::headers as name;
use protocol::resource::ErrorBody;
use protocol::status::{Status, SubStatus};
use sql::SqlError;

use super::reply::Reply;
use crate::request_log::ServingPartition;

/// An error, with the status and message of the real service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServiceError {
    /// The HTTP status of the response.
    pub(crate) status: Status,
    /// `x-ms-substatus`, for when the status alone does not say what to do next.
    pub(crate) sub_status: SubStatus,
    /// What went wrong, for a human reader.
    pub(crate) message: String,
    /// The query plan, as text, of a query that the client has to merge itself.
    pub(crate) additional_error_info: Option<String>,
    /// The value of `x-ms-retry-after-ms`, for 429.
    pub(crate) retry_after: Option<Duration>,
    /// The request charge, where it is not the 1 RU of most errors.
    pub(crate) charge: Option<f64>,
    /// Whether this is no response at all: the request is to be handled again where it may evaluate more.
    pub(crate) is_interruption: bool,
    /// Headers of the error response, such as the session token of a 404. Boxed, because most errors have
    /// none and a result should stay small.
    pub(crate) headers: Option<Box<HeaderMap>>,
}

impl ServiceError {
    /// An error of the gateway, whose message is plain text.
    pub(crate) fn new(status: Status, message: impl Into<String>) -> ServiceError {
        ServiceError {
            status,
            sub_status: SubStatus::NONE,
            message: message.into(),
            additional_error_info: None,
            retry_after: None,
            charge: None,
            is_interruption: false,
            headers: None,
        }
    }

    /// The interruption of a request that evaluates more than it may where it runs.
    pub(crate) fn interrupted() -> ServiceError {
        ServiceError { is_interruption: true, ..ServiceError::new(Status::SERVICE_UNAVAILABLE, "") }
    }

    /// An error of the backend, whose message is a JSON list of errors.
    pub(crate) fn backend(status: Status, message: &str) -> ServiceError {
        let list = serde_json::json!({ "Errors": [message] });
        ServiceError::new(status, format!("Message: {list}"))
    }

    /// 400 with no sub-status.
    pub(crate) fn bad_request(message: impl AsRef<str>) -> ServiceError {
        ServiceError::backend(Status::BAD_REQUEST, message.as_ref())
    }

    /// 404: the resource itself is missing.
    pub(crate) fn not_found() -> ServiceError {
        ServiceError::backend(
            Status::NOT_FOUND,
            "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found",
        )
    }

    /// 404 of the gateway, which looks up offers by itself.
    pub(crate) fn entity_not_found() -> ServiceError {
        ServiceError::new(
            Status::NOT_FOUND,
            "Entity with the specified id does not exist in the system. More info: \
             https://aka.ms/cosmosdb-tsg-not-found",
        )
    }

    /// 404/1003: the parent of the resource is missing.
    pub(crate) fn owner_not_found() -> ServiceError {
        ServiceError::backend(Status::NOT_FOUND, "Owner resource does not exist")
            .with_sub_status(SubStatus::OWNER_RESOURCE_NOT_FOUND)
    }

    /// 409: a resource with this id (or another unique name) exists already.
    pub(crate) fn conflict() -> ServiceError {
        ServiceError::backend(
            Status::CONFLICT,
            "Resource with specified id, name, or unique index already exists.",
        )
    }

    /// 412: an `If-Match` did not match.
    pub(crate) fn precondition_failed() -> ServiceError {
        ServiceError::backend(Status::PRECONDITION_FAILED, "One of the specified pre-condition is not met.")
    }

    /// 405: the path exists, the method is not supported on it.
    pub(crate) fn method_not_allowed(method: &http::Method, path: &str) -> ServiceError {
        ServiceError::new(
            Status::METHOD_NOT_ALLOWED,
            format!("The requested verb {method} is not supported on {path}."),
        )
    }

    /// Sets the sub-status of the error.
    pub(crate) fn with_sub_status(mut self, sub_status: SubStatus) -> ServiceError {
        self.sub_status = sub_status;
        self
    }

    /// Attaches a query plan.
    pub(crate) fn with_additional_error_info(mut self, info: String) -> ServiceError {
        self.additional_error_info = Some(info);
        self
    }

    /// Sets the request charge.
    pub(crate) fn with_charge(mut self, request_units: f64) -> ServiceError {
        self.charge = Some(request_units);
        self
    }

    /// Adds a response header.
    pub(crate) fn with_header(mut self, name: &'static str, value: HeaderValue) -> ServiceError {
        let headers = self.headers.get_or_insert_default();
        headers.insert(HeaderName::from_static(name), value);
        self
    }

    /// Converts the error into a reply. `activity` and `uri` are appended to the message, so that a user's
    /// log identifies the request.
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
            reply.partition = ServingPartition::from_headers(&headers);
            reply.headers.extend(*headers);
            if self.status == Status::NOT_FOUND {
                // What does not exist has no parent.
                reply.headers.remove(name::CONTENT_PATH);
                reply.headers.remove(name::ALT_CONTENT_PATH);
            }
        }
        reply
    }
}

impl From<DefinitionError> for ServiceError {
    fn from(invalid: DefinitionError) -> ServiceError {
        ServiceError::bad_request(invalid.message)
    }
}

impl From<ReplaceError> for ServiceError {
    fn from(error: ReplaceError) -> ServiceError {
        match error {
            ReplaceError::Invalid(invalid) => invalid.into(),
            ReplaceError::UniqueKeysChanged => ServiceError::backend(Status::FORBIDDEN, &error.to_string()),
        }
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

    fn reply_and_body(error: ServiceError) -> (Reply, serde_json::Value) {
        let reply = error.into_reply("an-id", "/dbs");
        let body = serde_json::from_slice(&reply.body).unwrap();
        (reply, body)
    }

    #[test]
    fn an_error_has_a_code_and_a_message_that_identifies_the_request() {
        let (reply, body) = reply_and_body(ServiceError::owner_not_found());
        assert_eq!((reply.status, reply.sub_status.0, reply.charge), (Status::NOT_FOUND, 1003, 1.0));
        assert_eq!(body["code"], "NotFound");
        let expected = "Message: {\"Errors\":[\"Owner resource does not exist\"]}\r\n\
                        ActivityId: an-id, Request URI: /dbs";
        assert_eq!(body["message"], expected);
        assert_eq!(body.get("additionalErrorInfo"), None);
    }

    #[test]
    fn a_query_plan_is_text_beside_the_message() {
        let error = ServiceError::bad_request("merge it").with_additional_error_info("{}".to_owned());
        assert_eq!(reply_and_body(error).1["additionalErrorInfo"], "{}");
    }

    #[test]
    fn a_throttled_response_has_its_retry_after_in_milliseconds() {
        let error = ServiceError {
            retry_after: Some(Duration::from_millis(1_500)),
            ..ServiceError::new(Status::TOO_MANY_REQUESTS, "slow down")
        };
        assert_eq!(reply_and_body(error).0.headers[name::RETRY_AFTER_MS], "1500");
    }

    #[test]
    fn an_error_keeps_its_own_headers_and_charge() {
        let error = ServiceError::not_found()
            .with_charge(1.25)
            .with_header(name::SESSION_TOKEN, HeaderValue::from_static("0:-1#5"));
        let (reply, _) = reply_and_body(error);
        assert_eq!(reply.charge, 1.25);
        assert_eq!(reply.headers[name::SESSION_TOKEN], "0:-1#5");
    }
}
