//! A request while there are fault rules: wait, answer in the service's place, or let it pass and
//! spoil what comes back.
//!
//! In: a request, before anything has been asked of it (a region that is down does not check
//! signatures). Out: an answer that names the rules that touched it, and whose response may carry the
//! [`Conduct`] that `server` is to show in its extensions.

use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue};
use protocol::status::{Status, SubStatus};
use serde_json::json;

use super::activity::activity_id;
use super::facts::Known;
use super::pending::Pending;
use super::{Answer, Gateway, Reply, RequestHeaders, ServiceError, UNKNOWN};
use crate::faults::{ConnectionEffect, FAULT_HEADER, FaultDecision, FaultEffect};
use crate::server::Conduct;

impl Gateway {
    /// Answers while there are rules, whether or not one strikes.
    pub(super) async fn answer_under_faults(
        &self,
        parts: Parts,
        body: Bytes,
        uptime: Duration,
        pending: &mut Pending,
    ) -> Answer {
        let (decision, label) = {
            let headers = RequestHeaders::scan(&parts.headers);
            let known = Known::about(&parts, &headers, &self.account);
            let decision = self.account.faults.decide(known.attributes(&parts), self.region, uptime);
            (decision, known.label.unwrap_or(UNKNOWN))
        };
        if decision.rules.is_empty() {
            return self.answer_in_time(&parts, body, uptime, pending).await;
        }
        // A client that leaves takes this future along, and with it the wait and what would follow.
        pending.waits_for(label, &decision.rules);
        self.wait(decision.request_delay).await;
        let mut answer = match decision.effect.as_deref() {
            Some(effect) if effect.status.is_some() => {
                let (reply, activity) = self.refuse(effect, &decision, &parts);
                self.finish(reply, activity, label, uptime)
            }
            Some(FaultEffect { connection: Some(ConnectionEffect::CloseBefore), .. }) => {
                let activity = activity_id(RequestHeaders::scan(&parts.headers).activity_id);
                self.finish(Reply::no_content().charge(0.0), activity, label, uptime)
            }
            Some(_) | None => self.answer_in_time(&parts, body, self.clock.uptime(), pending).await,
        };
        answer.seen.rules = decision.rules;
        pending.waits(&answer.seen);
        self.wait(decision.response_delay).await;
        let conduct = decision.effect.as_ref().and_then(|effect| effect.connection).and_then(conduct_of);
        if let Some(conduct) = conduct {
            answer.response.extensions_mut().insert(conduct);
        }
        if conduct == Some(Conduct::Close) {
            answer.seen.status = 0;
        }
        answer.ready_at = self.clock.uptime();
        answer
    }

    /// Waits, and is seen to.
    async fn wait(&self, delay: Duration) {
        if !delay.is_zero() {
            let _delayed = self.account.faults.begin_delay();
            self.clock.reached(self.clock.uptime().saturating_add(delay)).await;
        }
    }

    /// The answer a rule gives in the service's place.
    fn refuse(&self, effect: &FaultEffect, decision: &FaultDecision, parts: &Parts) -> (Reply, HeaderValue) {
        let headers = RequestHeaders::scan(&parts.headers);
        let activity = activity_id(headers.activity_id);
        let shown = String::from_utf8_lossy(activity.as_bytes());
        let mut reply = refusal(effect).into_reply(&shown, parts.uri.path());
        if (reply.status, reply.sub_status) == (Status::FORBIDDEN, SubStatus::DATABASE_ACCOUNT_NOT_FOUND) {
            reply = self.not_here(reply, effect);
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

    /// What a region says that the account is leaving: the account, without any regions.
    fn not_here(&self, reply: Reply, effect: &FaultEffect) -> Reply {
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

/// A rule's answer as a refusal.
fn refusal(effect: &FaultEffect) -> ServiceError {
    let status = Status(effect.status.unwrap_or(Status::SERVICE_UNAVAILABLE.0));
    let sub_status = SubStatus(effect.sub_status.unwrap_or(0));
    let message = match &effect.message {
        Some(message) => message.clone(),
        None => usual_message(status).to_owned(),
    };
    let retry_after = effect.response_retry_after();
    ServiceError { retry_after, ..ServiceError::listed(status, &message).with_sub_status(sub_status) }
}

/// What such an answer usually says.
fn usual_message(status: Status) -> &'static str {
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

/// What the server is to do about the connection, if it is not the port's affair.
fn conduct_of(effect: ConnectionEffect) -> Option<Conduct> {
    match effect {
        ConnectionEffect::CloseBefore | ConnectionEffect::CloseAfter => Some(Conduct::Close),
        ConnectionEffect::Stall => Some(Conduct::Stall),
        ConnectionEffect::GoAway => Some(Conduct::GoAway),
        ConnectionEffect::Refuse | ConnectionEffect::BlackHole => None,
        // The account rejects rules with other effects when they are added.
        _ => None,
    }
}
