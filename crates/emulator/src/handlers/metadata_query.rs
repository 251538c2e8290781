//! Queries over databases, containers, offers, users and permissions.
//!
//! Input: the query in the body, and the resources as JSON. Output: one page of rows. The query engine is the
//! one for items, but without an index: these lists are short, and queries over them are rare. A continuation
//! token is the number of rows already returned.

use bytes::Bytes;
use http::HeaderValue;
use protocol::headers as name;
use protocol::query::QuerySpec;
use smol_str::SmolStr;
use sql::{InputDemand, InputOrder, QueryContext, QueryExecution, QuerySchema, SqlError, Statement, Value};

use super::feed::{Feed, PAGE_ITEMS_DEFAULT, invalid_continuation};
use crate::request::{Call, RequestHeaders};
use crate::response::{Reply, ServiceError};

/// Request units of a query over metadata.
const CHARGE: f64 = 2.0;

/// Runs the query in the body over `resources`, in their order. Cost grows with all of them.
pub(crate) fn run_query<'a>(
    call: &Call<'_>,
    feed: Feed<'_>,
    resources: impl Iterator<Item = &'a Bytes>,
) -> Result<Reply, ServiceError> {
    call.headers.check_continuation_limit()?;
    call.check_query_length()?;
    let statement = prepare(&call.body)?;
    let start = parse_position(call.headers)?;
    let limit = call.headers.page_size()?.limit(PAGE_ITEMS_DEFAULT);
    let context = QueryContext {
        now: call.now.0,
        random_seed: call.now.0.unsigned_abs(),
        work_units_max: call.evaluation.work_units_max(),
    };
    let rows = run(&statement, context, resources).map_err(|error| call.evaluation_error(error))?;
    let page: Vec<Bytes> = rows.iter().skip(start).take(limit).map(to_json).collect();
    let returned = start.saturating_add(page.len());
    let reply = feed.reply(page.iter()).charge(CHARGE);
    Ok(if returned < rows.len() { reply.header(name::CONTINUATION, continuation(returned)) } else { reply })
}

fn prepare(body: &[u8]) -> Result<Statement, ServiceError> {
    let spec = QuerySpec::parse(body).map_err(|error| ServiceError::bad_request(error.to_string()))?;
    let parameters = spec.parameters.iter().map(|parameter| {
        let value = sql::value::parse(parameter.value.get().as_bytes())
            .map_err(|error| ServiceError::bad_request(format!("parameter {}: {error}", parameter.name)))?;
        Ok((SmolStr::new(&parameter.name), value))
    });
    let parameters = parameters.collect::<Result<Vec<_>, ServiceError>>()?;
    Ok(Statement::prepare(&spec.query, &parameters, &QuerySchema::default())?)
}

fn run<'a>(
    statement: &Statement,
    context: QueryContext,
    resources: impl Iterator<Item = &'a Bytes>,
) -> Result<Vec<Value>, SqlError> {
    let mut run = QueryExecution::new(statement, context, InputOrder::Any);
    for resource in resources {
        let value = sql::value::parse(resource).expect("resources of the catalog are JSON");
        if run.push(&value)? == InputDemand::Enough {
            break;
        }
    }
    run.finish()
}

fn to_json(row: &Value) -> Bytes {
    let mut text = Vec::new();
    sql::value::write_json(row, &mut text);
    text.into()
}

/// Prefix of a continuation token.
const CONTINUATION_PREFIX: &str = "+ROWS:";

fn continuation(returned: usize) -> HeaderValue {
    HeaderValue::try_from(format!("{CONTINUATION_PREFIX}{returned}")).expect("digits fit a header")
}

fn parse_position(headers: &RequestHeaders<'_>) -> Result<usize, ServiceError> {
    match RequestHeaders::text(headers.continuation, name::CONTINUATION)? {
        None => Ok(0),
        Some(token) => token
            .strip_prefix(CONTINUATION_PREFIX)
            .and_then(|rows| rows.parse().ok())
            .ok_or_else(|| invalid_continuation(token)),
    }
}
