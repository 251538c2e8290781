//! What the responses since the page before say together: session token, query metrics, index metrics.

use protocol::headers as names;
use protocol::query::{IndexMetrics, QueryMetrics};

use crate::operation::ResponseHeaders;
use crate::session::{ContainerSession, SessionScope};

/// The session token and metrics of several responses.
#[derive(Debug, Default)]
pub(crate) struct ResponseTotals {
    session: ContainerSession,
    query_metrics: Option<QueryMetrics>,
    index_metrics: Option<IndexMetrics>,
}

impl ResponseTotals {
    /// Adds the headers of one response.
    pub(crate) fn add(&mut self, headers: &ResponseHeaders) {
        if let Some(token) = headers.get(names::SESSION_TOKEN) {
            self.session.record(token);
        }
        if let Some(metrics) = headers.get(names::QUERY_METRICS).and_then(QueryMetrics::parse) {
            self.query_metrics = Some(self.query_metrics.map_or(metrics, |known| known.merged(metrics)));
        }
        if let Some(metrics) = headers.get(names::INDEX_UTILIZATION).and_then(IndexMetrics::parse) {
            self.index_metrics = Some(match self.index_metrics.take() {
                Some(known) => known.merged(metrics),
                None => metrics,
            });
        }
    }

    /// The session token of all partitions that responded.
    pub(crate) fn session_token(&self) -> Option<String> {
        self.session.token(SessionScope::Unknown)
    }

    /// The session token and the metrics; the next page begins anew.
    pub(crate) fn take(&mut self) -> (Option<String>, Option<QueryMetrics>, Option<IndexMetrics>) {
        let all = std::mem::take(self);
        (all.session_token(), all.query_metrics, all.index_metrics)
    }
}
