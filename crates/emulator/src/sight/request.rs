//! One request, written down.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use protocol::headers as name;
use smol_str::SmolStr;

use super::text::Text;
use crate::faults::TouchedBy;
use crate::regions::RegionId;
use crate::server::Conduct;

/// Bytes of a user agent that are kept.
const AGENT_KEPT: usize = 256;

/// What is remembered of a request until it is answered.
#[derive(Debug)]
pub(crate) struct Arrival {
    uptime: Duration,
    method: Method,
    path: Text,
    user_agent: Arc<str>,
}

/// In the extensions of an answer: what the gateway knows better than its headers say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// What was asked for.
    pub(crate) operation: &'static str,
    pub(crate) sub_status: u32,
    pub(crate) charge: f64,
}

/// A request and its answer.
#[derive(Clone, Debug)]
pub(crate) struct Sighting {
    /// Counts all requests of the account, from 1.
    pub(crate) number: u64,
    /// When it was answered.
    pub(crate) uptime: Duration,
    pub(crate) took: Duration,
    pub(crate) region: RegionId,
    pub(crate) method: Method,
    /// `unknown` when it was refused before anybody looked.
    pub(crate) operation: &'static str,
    /// Zero when the connection was closed instead.
    pub(crate) status: u16,
    pub(crate) sub_status: u32,
    pub(crate) charge: f64,
    /// The fault rules that touched it, in order.
    pub(crate) rules: Box<[SmolStr]>,
    /// Which partition answered.
    pub(crate) range: Option<u32>,
    pub(crate) user_agent: Arc<str>,
    path: Text,
    /// `dbs/{database}/colls/{container}` where a partition answered, otherwise nothing.
    container: Text,
    activity: Text,
}

impl Outcome {
    /// What the headers of an answer say, where the gateway's own word is missing.
    pub(crate) fn of_refusal(operation: &'static str, headers: &HeaderMap) -> Outcome {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        Outcome {
            operation,
            sub_status: text(name::SUB_STATUS).parse().unwrap_or_default(),
            charge: text(name::REQUEST_CHARGE).parse().unwrap_or_default(),
        }
    }
}

impl Arrival {
    pub(super) fn of(request: &Request<Bytes>, uptime: Duration) -> Arrival {
        Arrival {
            uptime,
            method: request.method().clone(),
            path: Text::new(request.uri().path()),
            user_agent: user_agent(request.headers()),
        }
    }
}

impl Sighting {
    pub(super) fn of(
        region: RegionId,
        arrival: Arrival,
        response: &Response<Bytes>,
        uptime: Duration,
    ) -> Sighting {
        let headers = response.headers();
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let extensions = response.extensions();
        let outcome = extensions.get().copied().unwrap_or_else(|| Outcome::of_refusal("unknown", headers));
        let status = match extensions.get() {
            Some(Conduct::Close) => 0,
            _ => response.status().as_u16(),
        };
        Sighting {
            number: 0,
            uptime,
            took: uptime.saturating_sub(arrival.uptime),
            region,
            method: arrival.method,
            operation: outcome.operation,
            status,
            sub_status: outcome.sub_status,
            charge: outcome.charge,
            range: text(name::PARTITION_KEY_RANGE_ID).parse().ok(),
            user_agent: arrival.user_agent,
            path: arrival.path,
            container: Text::new(text(name::ALT_CONTENT_PATH)),
            activity: Text::new(text(name::ACTIVITY_ID)),
            rules: extensions.get().map(|TouchedBy(rules)| rules.as_slice().into()).unwrap_or_default(),
        }
    }

    pub(crate) fn path(&self) -> &str {
        self.path.as_str()
    }

    pub(crate) fn activity(&self) -> &str {
        self.activity.as_str()
    }

    /// `dbs/{database}/colls/{container}` of the partition that answered.
    pub(crate) fn served_by(&self) -> Option<&str> {
        Some(self.container.as_str()).filter(|path| !path.is_empty())
    }
}

/// Clients say the same in each request, so each thread remembers the last one it read.
fn user_agent(headers: &HeaderMap) -> Arc<str> {
    thread_local! {
        static LAST: RefCell<Arc<str>> = RefCell::new(Arc::from(""));
    }
    let value = headers.get(name::USER_AGENT).map(|value| value.as_bytes()).unwrap_or_default();
    let value = &value[..value.len().min(AGENT_KEPT)];
    LAST.with_borrow_mut(|last| {
        if last.as_bytes() != value {
            *last = String::from_utf8_lossy(value).into();
        }
        Arc::clone(last)
    })
}
