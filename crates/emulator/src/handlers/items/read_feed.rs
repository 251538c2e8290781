//! Reading all items, `GET docs`, page by page.

use std::sync::LazyLock;

use protocol::headers as name;
use sql::{QueryContext, Statement};

use super::partition_response::check_session;
use super::scope::target;
use super::{as_of, query};
use crate::handlers::ItemRequest;
use crate::request::RequestHeaders;
use crate::response::{Reply, ServiceError};
use engine::charge;
use engine::query::{PageBody, QueryRequest, RunLimit};

/// Items per page when the client does not set a page size.
const PAGE_ITEMS_DEFAULT: usize = 100;

/// The query that a feed runs: every item, unchanged.
static EVERYTHING: LazyLock<Statement> = LazyLock::new(|| {
    Statement::prepare("SELECT * FROM c", &[], &sql::QuerySchema::default())
        .expect("the simplest of queries is valid")
});

/// Returns a page of items and, if there are more, a continuation token.
pub(super) fn read_feed(request: &ItemRequest<'_>) -> Result<Reply, ServiceError> {
    let headers = request.call.headers;
    headers.check_continuation_limit()?;
    let schema = request.container.store.schema();
    let scope = as_of::apply(request, target(request, &schema)?.scope())?;
    for partition in &scope.partitions {
        check_session(&request.call, partition, &partition.progress())?;
    }
    let from = query::feed_continuation(request)?;
    request.admit_page(&scope, from.as_ref())?;
    let mut page =
        PageBody::new(&request.container.system.rid, headers.page_size()?.limit(PAGE_ITEMS_DEFAULT));
    if RequestHeaders::flag(headers.exclude_system_properties, name::EXCLUDE_SYSTEM_PROPERTIES)? {
        page = page.without_system_properties();
    }
    let context = QueryContext { now: request.call.now.0, ..QueryContext::default() };
    let run = QueryRequest {
        statement: &EVERYTHING,
        scope: scope.clone(),
        context,
        now: request.now_seconds(),
        from,
        resume: None,
        backwards: headers.is_reversed()?,
        limit: RunLimit::none(),
    };
    let outcome = run.run(&mut page).map_err(query::run_error)?;
    let cost = charge::feed(page.count(), page.bytes());
    query::charge_partitions(request, &scope, &outcome, cost);
    Ok(query::page_reply(request, &scope, page, &outcome).charge(cost))
}
