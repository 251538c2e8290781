//! Requests while there are fault rules: delays, responses in the service's place, connection faults.
//!
//! Input: a request before anything is checked (a region that is down does not check signatures). Output: a
//! response that names the rules that applied, with the [`ConnectionFault`] for `server` in its extensions.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue};
use protocol::status::{Status, SubStatus};
use serde_json::json;

use super::in_flight::InFlightRequest;
use super::request_description::RequestDescription;
use super::{Gateway, GatewayResponse, UNKNOWN_OPERATION};
use crate::faults::{ConnectionEffect, FAULT_HEADER, FaultDecision, FaultEffect};
use crate::request::RequestHeaders;
use crate::request::activity_id;
use crate::response::{Reply, ServiceError};
use server::ConnectionFault;

impl Gateway {
    /// Responds while there are rules, whether or not one applies.
    pub(super) async fn respond_with_faults(
        self: &Arc<Self>,
        parts: Parts,
        body: Bytes,
        uptime: Duration,
        in_flight: &mut InFlightRequest,
    ) -> GatewayResponse {
        let (decision, label) = {
            let headers = RequestHeaders::scan(&parts.headers);
            let description = RequestDescription::describe(&parts, &headers, &self.account);
            let decision = self.account_faults.decide(description.attributes(&parts), self.region, uptime);
            (decision, description.label.unwrap_or(UNKNOWN_OPERATION))
        };
        if decision.rules.is_empty() {
            return self.respond_when_durable(parts, body, uptime, in_flight).await;
        }
        // A client that disconnects drops this future, and with it the delay and what would follow.
        in_flight.set_injected_faults(label, &decision.rules);
        self.inject_delay(decision.request_delay).await;
        let mut response = match decision.effect.as_deref() {
            Some(effect) if effect.status.is_some() => {
                let (reply, activity) = self.fault_reply(effect, &decision, &parts);
                self.build_response(reply, activity, label, uptime)
            }
            Some(FaultEffect { connection: Some(ConnectionEffect::CloseBefore), .. }) => {
                let activity = activity_id(RequestHeaders::scan(&parts.headers).activity_id);
                self.build_response(Reply::no_content().charge(0.0), activity, label, uptime)
            }
            Some(_) | None => self.respond_when_durable(parts, body, self.clock.uptime(), in_flight).await,
        };
        response.summary.rules = decision.rules;
        in_flight.set_summary(&response.summary);
        self.inject_delay(decision.response_delay).await;
        let fault = decision.effect.as_ref().and_then(|effect| effect.connection).and_then(connection_fault);
        if let Some(fault) = fault {
            response.response.extensions_mut().insert(fault);
        }
        if fault == Some(ConnectionFault::Close) {
            response.summary.status = 0;
        }
        response.ready_at = self.clock.uptime();
        response
    }

    /// Delays the request and counts it as delayed meanwhile.
    async fn inject_delay(&self, delay: Duration) {
        if !delay.is_zero() {
            let _delayed = self.account_faults.begin_delay();
            self.clock.wait_for_uptime(self.clock.uptime().saturating_add(delay)).await;
        }
    }

    /// The reply that a rule gives in the service's place.
    fn fault_reply(
        &self,
        effect: &FaultEffect,
        decision: &FaultDecision,
        parts: &Parts,
    ) -> (Reply, HeaderValue) {
        let headers = RequestHeaders::scan(&parts.headers);
        let activity = activity_id(headers.activity_id);
        let activity_text = String::from_utf8_lossy(activity.as_bytes());
        let mut reply = fault_error(effect).into_reply(&activity_text, parts.uri.path());
        if (reply.status, reply.sub_status) == (Status::FORBIDDEN, SubStatus::DATABASE_ACCOUNT_NOT_FOUND) {
            reply = self.account_not_found(reply, effect);
        }
        for (name, value) in &effect.headers {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                reply.headers.insert(name, value);
            }
        }
        let rule = decision.rules.last().map_or("", |id| id.as_str());
        if let Ok(rule) = HeaderValue::try_from(rule) {
            reply = reply.header(FAULT_HEADER, rule);
        }
        (reply, activity)
    }

    /// The reply of a region that the account is leaving: the account without any regions.
    fn account_not_found(&self, reply: Reply, effect: &FaultEffect) -> Reply {
        let name = &self.account.name;
        let message = match &effect.message {
            Some(message) => message.clone(),
            None => format!("Database Account {name} does not exist"),
        };
        let body = json!({
            "code": reply.status.code_name(),
            "message": message,
            "writableLocations": [],
            "readableLocations": [],
            "id": name,
        });
        reply.json(Bytes::from(body.to_string()))
    }
}

/// The error that a rule's effect describes.
fn fault_error(effect: &FaultEffect) -> ServiceError {
    let status = Status(effect.status.unwrap_or(Status::SERVICE_UNAVAILABLE.0));
    let sub_status = SubStatus(effect.sub_status.unwrap_or(0));
    let message = match &effect.message {
        Some(message) => message.clone(),
        None => default_message(status).to_owned(),
    };
    let retry_after = effect.response_retry_after();
    ServiceError { retry_after, ..ServiceError::backend(status, &message).with_sub_status(sub_status) }
}

/// The service's usual message for a status.
fn default_message(status: Status) -> &'static str {
    match status {
        Status::REQUEST_TIMEOUT => "The request did not complete in time.",
        Status::GONE => "The requested resource is no longer available at the server.",
        Status::TOO_MANY_REQUESTS => "The request rate is too large. Please retry after sometime.",
        Status::RETRY_WITH => "Conflicting request to resource has been attempted. Retry to avoid conflicts.",
        Status::INTERNAL_SERVER_ERROR => "An unknown error occurred while processing this request.",
        Status::SERVICE_UNAVAILABLE => "Service is currently unavailable.",
        _ => "A fault was injected into this request.",
    }
}

/// The connection fault of an effect; `None` for effects that concern the port.
fn connection_fault(effect: ConnectionEffect) -> Option<ConnectionFault> {
    match effect {
        ConnectionEffect::CloseBefore | ConnectionEffect::CloseAfter => Some(ConnectionFault::Close),
        ConnectionEffect::Stall => Some(ConnectionFault::Stall),
        ConnectionEffect::GoAway => Some(ConnectionFault::GoAway),
        ConnectionEffect::Refuse | ConnectionEffect::BlackHole => None,
        // Other effects do not occur: the account rejects their rules when they are added.
        _ => None,
    }
}
