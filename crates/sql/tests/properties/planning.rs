//! A query plan, executed as clients do, returns the rows of an execution over all documents.
//!
//! Documents are assigned to partitions in order; each partition executes the rewritten query; the rows are
//! merged by the plan alone.

use perihelion_sql::value::total_order;
use perihelion_sql::{QueryContext, QuerySchema, Statement, SupportedFeatures, Value, run_reference};
use proptest::prelude::*;
use protocol::container::PartitionKeyDefinition;
use protocol::query::{AggregateKind, DistinctType, ORDER_BY_FILTER, QueryInfo, SortOrder};

use crate::documents::documents;
use crate::queries::query;

fn run(text: &str, documents: &[Value]) -> Vec<Value> {
    let statement = Statement::prepare(text, &[], &QuerySchema::default())
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    run_reference(&statement, documents, QueryContext::default()).expect("generated queries do not fail")
}

/// The rows that a client returns for a plan, given the rows of each partition.
fn merge(info: &QueryInfo, partitions: Vec<Vec<Value>>) -> Vec<Value> {
    let mut rows: Vec<Value> = partitions.into_iter().flatten().collect();
    if !info.order_by.is_empty() {
        rows.sort_by(|left, right| compare_items(info, left, right));
        rows = rows.iter().map(|row| row.member("payload").clone()).collect();
    } else if !info.group_by_expressions.is_empty() {
        rows = merge_groups(info, &rows);
    } else if let [aggregate] = info.aggregates[..] {
        let parts: Vec<Value> = rows.iter().map(|row| row.element(0).clone()).collect();
        rows = vec![merged(aggregate, &parts)];
    } else if !info.group_by_alias_to_aggregate_type.is_empty() {
        let payloads: Vec<Value> = rows.iter().map(|row| row.member("payload").clone()).collect();
        rows = vec![merge_payloads(info, &payloads)];
    }
    rows.retain(Value::is_defined);
    if info.distinct_type != DistinctType::None {
        let mut distinct: Vec<Value> = Vec::new();
        for row in rows {
            if !distinct.contains(&row) {
                distinct.push(row);
            }
        }
        rows = distinct;
    }
    let count = |number: Option<u64>, otherwise| number.map_or(otherwise, |number| number as usize);
    let limit = count(info.limit, usize::MAX).min(count(info.top, usize::MAX));
    rows.into_iter().skip(count(info.offset, 0)).take(limit).collect()
}

fn compare_items(info: &QueryInfo, left: &Value, right: &Value) -> std::cmp::Ordering {
    let item = |row: &Value, at: usize| row.member("orderByItems").element(at).member("item").clone();
    let compare = |(at, order): (usize, &SortOrder)| {
        let found = total_order(&item(left, at), &item(right, at));
        if *order == SortOrder::Descending { found.reverse() } else { found }
    };
    info.order_by.iter().enumerate().map(compare).fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
}

fn merge_groups(info: &QueryInfo, rows: &[Value]) -> Vec<Value> {
    let mut groups: Vec<(&Value, Vec<Value>)> = Vec::new();
    for row in rows {
        let (key, payload) = (row.member("groupByItems"), row.member("payload").clone());
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, payloads)) => payloads.push(payload),
            None => groups.push((key, vec![payload])),
        }
    }
    groups
        .into_iter()
        .map(|(_, payloads)| match info.aggregates[..] {
            [aggregate] => merged(
                aggregate,
                &payloads.iter().map(|payload| payload.element(0).clone()).collect::<Vec<_>>(),
            ),
            _ if info.has_select_value => payloads[0].clone(),
            _ => merge_payloads(info, &payloads),
        })
        .collect()
}

fn merge_payloads(info: &QueryInfo, payloads: &[Value]) -> Value {
    Value::object(info.group_by_alias_to_aggregate_type.iter().map(|(alias, aggregate)| {
        let parts: Vec<Value> = payloads.iter().map(|payload| payload.member(alias).clone()).collect();
        let value = match aggregate {
            Some(aggregate) => merged(*aggregate, &parts),
            None => parts.first().cloned().unwrap_or(Value::Undefined),
        };
        (alias.into(), value)
    }))
}

/// Combines the partial values of one aggregate, as clients do.
fn merged(aggregate: AggregateKind, parts: &[Value]) -> Value {
    let items = || parts.iter().map(|part| part.member("item"));
    let total = |numbers: &mut dyn Iterator<Item = Option<f64>>| numbers.sum::<Option<f64>>();
    let number = |number: Option<f64>| number.map_or(Value::Undefined, Value::from);
    match aggregate {
        AggregateKind::Count | AggregateKind::Sum | AggregateKind::CountIf => {
            number(total(&mut items().map(Value::as_f64)))
        }
        AggregateKind::Average => {
            let sum = total(&mut items().map(|item| item.member("sum").as_f64()));
            let count = total(&mut items().map(|item| item.member("count").as_f64()));
            number(sum.zip(count).filter(|(_, count)| *count > 0.0).map(|(sum, count)| sum / count))
        }
        AggregateKind::Min | AggregateKind::Max => {
            let name = if aggregate == AggregateKind::Min { "min" } else { "max" };
            let mut extremes: Vec<Value> = parts
                .iter()
                .map(|part| part.member("item2"))
                .filter(|item| item.member("count").as_f64() != Some(0.0))
                .map(|item| item.member(name).clone())
                .collect();
            if extremes.iter().any(|extreme| !extreme.is_defined()) {
                return Value::Undefined;
            }
            extremes.sort_by(total_order);
            let chosen = if aggregate == AggregateKind::Min { extremes.first() } else { extremes.last() };
            chosen.cloned().unwrap_or(Value::Undefined)
        }
        AggregateKind::MakeList | AggregateKind::MakeSet => {
            let mut members: Vec<Value> = Vec::new();
            for member in items().flat_map(|item| item.as_array().unwrap_or_default()) {
                if aggregate == AggregateKind::MakeList || !members.contains(member) {
                    members.push(member.clone());
                }
            }
            Value::array(members)
        }
    }
}

proptest! {
    #[test]
    fn a_plan_executed_over_partitions_returns_the_rows_of_one_partition(
        parts in query(),
        documents in documents(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
    ) {
        let text = parts.text();
        let statement = Statement::prepare(&text, &[], &QuerySchema::default()).expect("a generated query");
        let definition = PartitionKeyDefinition::hash("/pk").expect("a path");
        // Clients do not order groups, so a plan that groups loses its ORDER BY.
        let loses_order = parts.clauses.contains("ORDER BY") && text.contains("AS v0");
        let Ok(plan) = statement.gateway_plan(&definition, &SupportedFeatures::all()) else { return Ok(()) };
        if loses_order {
            return Ok(());
        }
        let info = plan.query_info.expect("no generated query is a hybrid search");
        let rewritten = if info.rewritten_query.is_empty() { &text } else { &info.rewritten_query };
        let rewritten = rewritten.replace(ORDER_BY_FILTER, "true");
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(documents.len() + 1)).collect();
        ends.extend([0, documents.len()]);
        ends.sort_unstable();
        let partitions = ends.windows(2).map(|ends| run(&rewritten, &documents[ends[0]..ends[1]])).collect();
        let row_texts = |rows: &[Value]| rows.iter().map(ToString::to_string).collect::<Vec<_>>();
        let expected = run_reference(&statement, &documents, QueryContext::default()).expect("generated queries do not fail");
        prop_assert_eq!(row_texts(&merge(&info, partitions)), row_texts(&expected), "{}\n{}", text, rewritten);
    }
}
