//! Queries over items, `POST docs` with a query.

use http::HeaderValue;
use protocol::headers as name;
use protocol::partition::EpkRange;
use protocol::status::{Status, SubStatus};
use sql::{QueryContext, RowOrigin, Statement, SupportedFeatures};

use super::partition_response::{PartitionResponse, check_session};
use super::query_body::{QueryText, read_query};
use super::scope::{Target, authorized_scope, key_range, target};
use super::{as_of, partition_key, query_plan};
use crate::handlers::ItemRequest;
use crate::request::RequestHeaders;
use crate::response::{Reply, ServiceError};
use clock::Stopwatch;
use engine::charge::{self, QueryWork};
use engine::query::{
    Continuation, ContinuationToken, IndexMetrics, PageBody, QueryOutcome, QueryRequest, RunError, Scope,
    check_order_by,
};
use engine::store::ContainerSchema;

/// Rows per page when the client does not set a page size.
const PAGE_ROWS_DEFAULT: usize = 1000;

/// Runs a query over a logical partition, a partition key range, or all partitions if nothing needs merging.
pub(super) fn query(request: &ItemRequest<'_>) -> Result<Reply, ServiceError> {
    request.call.check_query_length()?;
    let stopwatch = Stopwatch::start();
    request.call.headers.check_continuation_limit()?;
    let schema = request.container.store.schema();
    let QueryText { text, parameters, resume } = read_query(request)?;
    let statement = Statement::prepare(&text, &parameters, &schema.sql).map_err(query_plan::sql_error)?;
    check_order_by(statement.access_path(), &schema)
        .map_err(|error| ServiceError::bad_request(error.to_string()))?;
    let compiled = stopwatch.elapsed();
    let from = match continuation(request)? {
        // Aggregates and sorted results cannot continue after an item.
        Some(ContinuationToken::Service(_)) if statement.needs_merge() => None,
        Some(ContinuationToken::Service(item)) => Some(Continuation::after(item)),
        Some(ContinuationToken::Own(place)) => Some(place),
        None => None,
    };
    let scope = scope_of(request, &schema, &statement)?;
    let scope = match &from {
        Some(from) => scope_after_split(request, &schema, &statement, scope, from)?,
        None => scope,
    };
    let scope = as_of::apply(request, scope)?;
    let headers = request.call.headers;
    for partition in &scope.partitions {
        check_session(&request.call, partition, &partition.progress())?;
    }
    request.admit_page(&scope, from.as_ref())?;
    let rows_max = headers.page_size()?.limit(PAGE_ROWS_DEFAULT);
    let mut page = PageBody::new(&request.container.system.rid, rows_max);
    if RequestHeaders::flag(headers.exclude_system_properties, name::EXCLUDE_SYSTEM_PROPERTIES)? {
        page = page.without_system_properties();
    }
    let now = request.call.now;
    let context = QueryContext { now: now.0, random_seed: now.0 as u64, ..QueryContext::default() };
    let run = QueryRequest {
        statement: &statement,
        scope: scope.clone(),
        context,
        now: request.now_seconds(),
        from,
        resume,
        backwards: false,
        limit: request.call.evaluation.run_limit(),
    };
    run.check_token().map_err(|error| ServiceError::bad_request(error.to_string()))?;
    run.check_resume_filter().map_err(|error| ServiceError::bad_request(error.to_string()))?;
    let unusual_tie_order = run.unusual_tie_order();
    request.call.interrupt_if(run.may_take_long())?;
    let outcome = run.run(&mut page).map_err(run_error)?;
    let ran = stopwatch.elapsed() - compiled;
    let cost = charge::query(outcome.work);
    let mut reply = page_reply(request, &scope, page, &outcome).charge(cost);
    charge_partitions(request, &scope, &outcome, cost);
    if let Some(backwards) = unusual_tie_order {
        let info = format!("{{\"reverseRidEnabled\":false,\"reverseIndexScan\":{backwards}}}");
        reply = reply.header(name::QUERY_EXECUTION_INFO, ascii(info));
    }
    if RequestHeaders::flag(headers.optimistic_direct_execute, name::OPTIMISTIC_DIRECT_EXECUTE)? {
        reply = reply.header(name::REQUIRES_DISTRIBUTION, HeaderValue::from_static("False"));
    }
    if RequestHeaders::flag(headers.populate_query_metrics, name::POPULATE_QUERY_METRICS)? {
        reply = reply.header(name::QUERY_METRICS, ascii(outcome.metrics.to_header(compiled, ran)));
    }
    let index_metrics = || IndexMetrics::of(&statement, &schema);
    if RequestHeaders::flag(headers.populate_index_metrics, name::POPULATE_INDEX_METRICS)? {
        reply = reply.header(name::INDEX_UTILIZATION, ascii(index_metrics().to_header()));
    } else if RequestHeaders::flag(headers.populate_index_metrics_v2, name::POPULATE_INDEX_METRICS_V2)? {
        reply = reply.header(name::INDEX_UTILIZATION, ascii(index_metrics().to_header_v2()));
    }
    Ok(reply)
}

/// The error of a run without a page, or the interruption of one that may do more elsewhere.
pub(super) fn run_error(error: RunError) -> ServiceError {
    match error {
        RunError::Sql(error) => query_plan::sql_error(error),
        RunError::Interrupted => ServiceError::interrupted(),
    }
}

/// The scope of a query, or the error that tells the client to merge the results itself.
fn scope_of(
    request: &ItemRequest<'_>,
    schema: &ContainerSchema,
    statement: &Statement,
) -> Result<Scope, ServiceError> {
    let everywhere = match target(request, schema)? {
        Target::Key(scope) | Target::Range(scope) => return Ok(scope),
        Target::Everywhere(scope) => scope,
    };
    let pinned = match statement.partition_key_filter(&schema.partition_key) {
        sql::PartitionKeyFilter::Points(keys) if keys.len() == 1 => {
            Some(authorized_scope(request, partition_key::range_of(&keys[0], schema))?)
        }
        // A prefix of a hierarchical key needs no header either, as long as one partition has all of it.
        sql::PartitionKeyFilter::Prefixes(keys) if keys.len() == 1 => {
            let scope = authorized_scope(request, partition_key::range_of(&keys[0], schema))?;
            (scope.partitions.len() == 1).then_some(scope)
        }
        _ => None,
    };
    if let Some(scope) = pinned {
        if statement.has_aggregate_without_value() {
            return Err(ServiceError::bad_request(
                "Cross partition query only supports 'VALUE <AggregateFunc>' for aggregates.",
            ));
        }
        return Ok(scope);
    }
    check_cross_partition(request.call.headers)?;
    if statement.has_from() && statement.needs_merge() {
        // The error contains the query plan for all features; the next request is checked against it.
        let plan = query_plan::plan_text(schema, statement, &SupportedFeatures::all())?;
        return Err(ServiceError::new(
            Status::BAD_REQUEST,
            "The provided cross partition query can not be directly partition_response by the gateway. \
             This is a first chance (internal) exception that all newer clients will know how to handle gracefully.",
        )
        .with_sub_status(SubStatus::CROSS_PARTITION_QUERY_NOT_SERVABLE)
        .with_additional_error_info(plan));
    }
    Ok(everywhere)
}

/// The scope of a continued query when its partition was split since.
///
/// A query whose result spans its original range (OFFSET, LIMIT and TOP, DISTINCT, GROUP BY and everything
/// that continues by row count) is continued over all of that range by the child that inherited its start; the
/// other child has no rows. For any other query each child returns its own rows.
fn scope_after_split(
    request: &ItemRequest<'_>,
    schema: &ContainerSchema,
    statement: &Statement,
    scope: Scope,
    from: &Continuation,
) -> Result<Scope, ServiceError> {
    let one_for_all = from.returned_rows().is_some()
        || statement.is_limited()
        || statement.row_origin() != RowOrigin::Documents;
    let mut begun = from.range();
    // A token of a query over more than this key continues within the key only.
    if let Some(key) = key_range(request, schema)? {
        begun = begun.intersect(&key).unwrap_or_else(|| scope.within.clone());
    }
    if !one_for_all || begun == scope.within || !begun.covers(&scope.within) {
        return Ok(scope);
    }
    if begun.min != scope.within.min {
        let nothing = EpkRange::new(scope.within.min.clone(), scope.within.min.clone());
        return Ok(Scope { within: nothing, ..scope });
    }
    authorized_scope(request, begun)
}

/// Rejects a cross-partition query whose header does not enable it.
pub(crate) fn check_cross_partition(headers: &RequestHeaders<'_>) -> Result<(), ServiceError> {
    if RequestHeaders::flag(headers.enable_cross_partition_query, name::ENABLE_CROSS_PARTITION)? {
        return Ok(());
    }
    Err(ServiceError::bad_request(format!(
        "Cross partition query is required but disabled. Please set {} to true, specify {}, or revise your query to avoid this exception.",
        name::ENABLE_CROSS_PARTITION,
        name::PARTITION_KEY
    )))
}

/// The continuation token of a query, if there is one.
fn continuation(request: &ItemRequest<'_>) -> Result<Option<ContinuationToken>, ServiceError> {
    let text = RequestHeaders::text(request.call.headers.continuation, name::CONTINUATION)?;
    let Some(text) = text else { return Ok(None) };
    ContinuationToken::parse(text, request.container.rid)
        .map_err(|error| ServiceError::bad_request(error.to_string()))
}

/// The continuation token of a feed, whose items come in their own order.
pub(super) fn feed_continuation(request: &ItemRequest<'_>) -> Result<Option<Continuation>, ServiceError> {
    Ok(continuation(request)?.map(|place| match place {
        ContinuationToken::Own(place) => place,
        ContinuationToken::Service(item) => Continuation::after(item),
    }))
}

/// Charges each of several partitions its part of `cost`. A single partition is charged with the reply.
pub(super) fn charge_partitions(request: &ItemRequest<'_>, scope: &Scope, outcome: &QueryOutcome, cost: f64) {
    if scope.partitions.len() == 1 {
        return;
    }
    let weight = |work: &QueryWork| charge::query(*work);
    let sum: f64 = outcome.work_by_partition.iter().map(|(_, work)| weight(work)).sum();
    for (at, work) in &outcome.work_by_partition {
        request.charge_partition(&scope.partitions[*at], cost * weight(work) / sum);
    }
}

/// The reply with a page; its charge is still to be set.
pub(super) fn page_reply(
    request: &ItemRequest<'_>,
    scope: &Scope,
    page: PageBody,
    outcome: &QueryOutcome,
) -> Reply {
    let partition = &scope.partitions[outcome.partition];
    let partition_response = PartitionResponse::new(request.container, partition, partition.progress());
    let count = page.count();
    let mut reply = Reply::ok(page.finish().into()).header(name::ITEM_COUNT, HeaderValue::from(count));
    if let Some(continuation) = &outcome.continuation {
        let headers = request.call.headers;
        let is_routed = headers.partition_key.is_some()
            || headers.partition_key_range_id.is_some()
            || headers.start_epk.is_some()
            || headers.end_epk.is_some();
        let text = if is_routed { continuation.to_text() } else { continuation.to_gateway_text() };
        reply = reply.header(name::CONTINUATION, ascii(text));
    }
    partition_response.add_headers(reply)
}

fn ascii(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("tokens and metrics are printable ASCII")
}
