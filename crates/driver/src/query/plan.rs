//! The plan of a query: the query to send to each partition, and how to merge the rows.
//!
//! In: the query's body and the container's partition key. Out: a [`Plan`]. It is made here with
//! `sql` wherever that can; the gateway is asked for the rest: text this grammar does not know, ORDER BY
//! RANK, and ORDER BY a distance, whose direction depends on the container's vectors.

use bytes::Bytes;
use protocol::container::PartitionKeyDefinition;
use protocol::partition::EpkRange;
use protocol::query::{
    AggregateKind, DistinctType, HybridSearchQueryInfo, ORDER_BY_FILTER, QueryInfo, QueryPlan, QuerySpec,
    SortOrder,
};
use serde_json::value::RawValue;
use sql::ast::{OrderBy, Query, Selection, item_names, print_expression, print_query};
use sql::value::{SmolStr, parse};
use sql::{QuerySchema, Statement, SupportedFeatures, Value};

use super::hybrid::Hybrid;
use super::offset_limit::OffsetLimit;
use super::source::PageSource;
use crate::error::{Error, ErrorKind};

/// How a query is run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) template: Template,
    pub(super) merge: Merge,
    pub(super) distinct: DistinctType,
    pub(super) window: OffsetLimit,
    /// Where it can match, in EPK order.
    pub(super) ranges: Vec<EpkRange>,
}

/// How the rows of the partitions are merged.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Merge {
    /// The rows of the partitions follow each other.
    Concatenate,
    /// Rows are merged in the order of ORDER BY.
    Ordered(Ordering),
    /// Put together group by group.
    Grouped(Grouping),
    /// Distinct rows are counted; the name of the count, or none for the bare number.
    CountDistinct(Option<String>),
    /// Scored several times, and ranked.
    Hybrid(Hybrid),
}

/// The sort order of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ordering {
    pub(super) directions: Vec<SortOrder>,
    /// The first key as it can be asked for again; none when no condition can be put on it.
    pub(super) resume_on: Option<String>,
}

/// GROUP BY and aggregates.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Grouping {
    /// Whether rows are groups, and not all of them one.
    pub(super) by_key: bool,
    pub(super) output: GroupOutput,
    /// How the groups are sorted: by a key or by what is projected.
    pub(super) order: Vec<(GroupOrderKey, SortOrder)>,
}

/// What a group becomes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum GroupOutput {
    /// One aggregate, as in `SELECT VALUE COUNT(1)`.
    Aggregate(AggregateKind),
    /// One value of the group, as in `SELECT VALUE c.key`.
    Value,
    /// An object; members are aggregates or in common to the group.
    Object(Vec<(String, Option<AggregateKind>)>),
}

impl Default for GroupOutput {
    fn default() -> GroupOutput {
        GroupOutput::Object(Vec::new())
    }
}

/// What groups are sorted by.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum GroupOrderKey {
    /// The key of GROUP BY at this place.
    Key(usize),
    /// The projected member of this name; the whole row for `SELECT VALUE`.
    Member(Option<String>),
}

/// The query as it is sent, with a place for a condition.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Template {
    text: String,
    /// The parameters as they were given: a JSON array, or nothing.
    parameters: Option<Bytes>,
}

impl Template {
    /// A query without parameters.
    #[cfg(test)]
    pub(super) fn of_text(text: &str) -> Template {
        Template { text: text.to_owned(), parameters: None }
    }

    /// The template with another query text.
    pub(super) fn with_text(&self, change: impl FnOnce(&str) -> String) -> Template {
        Template { text: change(&self.text), parameters: self.parameters.clone() }
    }

    /// The body of a request for rows of which `filter` holds.
    pub(super) fn body(&self, filter: &str) -> Bytes {
        let text = self.text.replace(ORDER_BY_FILTER, filter);
        let mut body = Vec::with_capacity(text.len() + self.parameters.as_ref().map_or(0, Bytes::len) + 32);
        body.extend_from_slice(b"{\"query\":");
        sql::value::write_json_string(&text, &mut body);
        if let Some(parameters) = &self.parameters {
            body.extend_from_slice(b",\"parameters\":");
            body.extend_from_slice(parameters);
        }
        body.push(b'}');
        body.into()
    }
}

/// The plan of the query in `body`, local or from the gateway.
pub(super) async fn plan<S: PageSource>(
    source: &S,
    body: &Bytes,
    definition: &PartitionKeyDefinition,
) -> Result<Plan, Error> {
    let spec =
        QuerySpec::parse(body).map_err(|error| Error::new(ErrorKind::BadRequest, error.to_string()))?;
    match local(&spec, body, definition) {
        Some(local) => local,
        None => from_gateway(source.plan(body.clone()).await?, None, &spec, body),
    }
}

/// The local plan; `None` when the gateway should be asked.
pub(super) fn local(
    spec: &QuerySpec<'_>,
    body: &Bytes,
    definition: &PartitionKeyDefinition,
) -> Option<Result<Plan, Error>> {
    let parameters: Vec<(SmolStr, Value)> = spec
        .parameters
        .iter()
        .filter_map(|parameter| {
            Some((SmolStr::new(parameter.bare_name()), parse(parameter.value.get().as_bytes()).ok()?))
        })
        .collect();
    // Text that cannot be read here may mean something to a newer gateway; if not, its message is the
    // service's own.
    let statement = Statement::prepare_plan(&spec.query, &parameters, &QuerySchema::default()).ok()?;
    let plan = statement.gateway_plan(definition, &SupportedFeatures::all()).ok()?;
    let needs_policy = plan.query_info.as_ref().is_none_or(|info| info.has_non_streaming_order_by);
    if needs_policy {
        return None;
    }
    Some(from_gateway(plan, Some(statement.query()), spec, body))
}

/// Reads a plan. `query` is what it was made of, when that is known here.
fn from_gateway(
    plan: QueryPlan,
    query: Option<&Query>,
    spec: &QuerySpec<'_>,
    body: &Bytes,
) -> Result<Plan, Error> {
    let ranges = merged(plan.query_ranges.iter().map(|range| range.to_epk_range()).collect());
    if let Some(info) = &plan.hybrid_search_query_info {
        return hybrid(info, ranges, body);
    }
    let Some(info) = plan.query_info else {
        let message = "the service's plan does not say how to run the query; look at one partition at a time";
        return Err(Error::new(ErrorKind::BadResponse, message));
    };
    let take = match (info.top, info.limit) {
        (Some(top), Some(limit)) => Some(top.min(limit)),
        (top, limit) => top.or(limit),
    };
    let window = OffsetLimit { skip: info.offset.unwrap_or(0), take };
    let merge = merge(&info, query)?;
    let text = match (&merge, query) {
        // Cut here alone: a partition that counts rows by itself cannot continue counting after a split.
        (Merge::Concatenate, Some(query)) if info.distinct_type == DistinctType::None => {
            without_offset_limit(query, spec)
        }
        _ if info.rewritten_query.is_empty() => spec.query.clone().into_owned(),
        _ => info.rewritten_query.clone(),
    };
    let template = Template { text, parameters: parameters(body) };
    Ok(Plan { template, merge, distinct: info.distinct_type, window, ranges })
}

/// The plan of a hybrid search.
fn hybrid(info: &HybridSearchQueryInfo, ranges: Vec<EpkRange>, body: &Bytes) -> Result<Plan, Error> {
    let parameters = parameters(body);
    let template = |text: &str| Template { text: text.to_owned(), parameters: parameters.clone() };
    let merge = Merge::Hybrid(Hybrid::of(info, template)?);
    let window = OffsetLimit { skip: info.skip.unwrap_or(0), take: info.take };
    Ok(Plan { template: template(""), merge, distinct: DistinctType::None, window, ranges })
}

/// The query without TOP, OFFSET and LIMIT; as it was written when it has none.
fn without_offset_limit(query: &Query, spec: &QuerySpec<'_>) -> String {
    if query.top.is_none() && query.offset_limit.is_none() {
        return spec.query.clone().into_owned();
    }
    print_query(&Query { top: None, offset_limit: None, ..query.clone() })
}

fn merge(info: &QueryInfo, query: Option<&Query>) -> Result<Merge, Error> {
    if let Some(count) = &info.d_count_info {
        let name = (!info.has_select_value).then(|| count.d_count_alias.clone());
        return Ok(Merge::CountDistinct(name));
    }
    let is_grouped = !info.group_by_expressions.is_empty()
        || !info.aggregates.is_empty()
        || !info.group_by_alias_to_aggregate_type.is_empty();
    if is_grouped {
        let output = match (&info.aggregates[..], info.has_select_value) {
            ([aggregate], true) => GroupOutput::Aggregate(*aggregate),
            (_, true) => GroupOutput::Value,
            (_, false) => GroupOutput::Object(info.group_by_alias_to_aggregate_type.clone()),
        };
        let order = query.map_or(Ok(Vec::new()), |query| group_order(query, info))?;
        return Ok(Merge::Grouped(Grouping { by_key: !info.group_by_expressions.is_empty(), output, order }));
    }
    if info.order_by.is_empty() {
        return Ok(Merge::Concatenate);
    }
    let resume_on = info.order_by_expressions.first().filter(|_| !info.has_non_streaming_order_by).cloned();
    Ok(Merge::Ordered(Ordering { directions: info.order_by.clone(), resume_on }))
}

/// What groups are sorted by: keys of GROUP BY, or what is projected.
fn group_order(query: &Query, info: &QueryInfo) -> Result<Vec<(GroupOrderKey, SortOrder)>, Error> {
    let OrderBy::Keys(keys) = &query.order_by else { return Ok(Vec::new()) };
    let place = |text: &str| {
        if let Some(at) = info.group_by_expressions.iter().position(|key| key == text) {
            return Some(GroupOrderKey::Key(at));
        }
        match &query.selection {
            Selection::Value(value) => {
                (print_expression(value) == text).then_some(GroupOrderKey::Member(None))
            }
            Selection::List(items) => items
                .iter()
                .position(|item| print_expression(&item.expression) == text)
                .map(|at| GroupOrderKey::Member(Some(item_names(items)[at].to_string()))),
            Selection::Star => None,
        }
    };
    keys.iter()
        .map(|key| {
            let text = print_expression(&key.expression);
            let direction = match key.direction {
                Some(sql::ast::Direction::Descending) => SortOrder::Descending,
                _ => SortOrder::Ascending,
            };
            place(&text).map(|key| (key, direction)).ok_or_else(|| {
                let message = format!(
                    "ORDER BY `{text}` of groups is not merged across partitions: order by a key of GROUP BY or \
                     by something that is selected"
                );
                Error::new(ErrorKind::BadRequest, message)
            })
        })
        .collect()
}

/// The array of parameters as it stands in the body.
fn parameters(body: &Bytes) -> Option<Bytes> {
    #[derive(serde::Deserialize)]
    struct Parameters<'a> {
        #[serde(borrow, default)]
        parameters: Option<&'a RawValue>,
    }
    let parameters = serde_json::from_slice::<Parameters<'_>>(body).ok()?.parameters?;
    Some(body.slice_ref(parameters.get().as_bytes()))
}

/// Ranges without those that hold no key, neighbours put together.
fn merged(mut ranges: Vec<EpkRange>) -> Vec<EpkRange> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort();
    let mut merged: Vec<EpkRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.min <= last.max => {
                if range.max > last.max {
                    last.max = range.max;
                }
            }
            _ => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(query: &str) -> Option<Result<Plan, Error>> {
        let body = Bytes::from(
            serde_json::json!({"query": query, "parameters": [{"name": "@n", "value": 3}]}).to_string(),
        );
        let definition = PartitionKeyDefinition::hash("/pk").expect("a path");
        local(&QuerySpec::parse(&body).expect("a query"), &body, &definition)
    }

    fn check(query: &str) -> Plan {
        planned(query).expect("a local plan").expect("a plan that can be run")
    }

    fn sent(plan: &Plan) -> String {
        let body: serde_json::Value = serde_json::from_slice(&plan.template.body("true")).expect("JSON");
        assert_eq!(body["parameters"][0]["value"], 3, "parameters go along");
        body["query"].as_str().expect("text").replace('\n', " ")
    }

    #[test]
    fn rows_that_need_no_merge_are_asked_for_as_they_are_and_cut_here() {
        for (query, text, window) in [
            ("SELECT * FROM c", "SELECT * FROM c", (0, None)),
            ("select top 5 c.a from c", "SELECT c.a FROM c", (0, Some(5))),
            ("SELECT TOP @n * FROM c", "SELECT * FROM c", (0, Some(3))),
            (
                "SELECT * FROM c WHERE c.x = @n OFFSET 2 LIMIT 4",
                "SELECT * FROM c WHERE (c.x = @n)",
                (2, Some(4)),
            ),
        ] {
            let plan = check(query);
            assert_eq!(plan.merge, Merge::Concatenate, "{query}");
            assert_eq!((plan.window.skip, plan.window.take), window, "{query}");
            assert_eq!(sent(&plan), text);
        }
    }

    #[test]
    fn ordered_rows_carry_their_keys() {
        let plan = check("SELECT c.a FROM c WHERE c.b = 1 ORDER BY c.k DESC");
        let ordering = Ordering { directions: vec![SortOrder::Descending], resume_on: Some("c.k".into()) };
        assert_eq!(plan.merge, Merge::Ordered(ordering));
        let body: serde_json::Value =
            serde_json::from_slice(&plan.template.body("(c.k <= 5)")).expect("JSON");
        let text = body["query"].as_str().expect("text");
        assert!(text.contains("((c.b = 1) AND ((c.k <= 5)))"), "{text}");
    }

    #[test]
    fn groups_know_what_they_become_and_how_they_are_sorted() {
        let plan = check("SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g ORDER BY COUNT(1) DESC, c.g");
        let Merge::Grouped(grouping) = plan.merge else { panic!("{:?}", plan.merge) };
        assert!(grouping.by_key);
        assert_eq!(
            grouping.output,
            GroupOutput::Object(vec![("g".into(), None), ("n".into(), Some(AggregateKind::Count))])
        );
        assert_eq!(
            grouping.order,
            [
                (GroupOrderKey::Member(Some("n".into())), SortOrder::Descending),
                (GroupOrderKey::Key(0), SortOrder::Ascending)
            ]
        );
        let error = planned("SELECT c.g FROM c GROUP BY c.g ORDER BY SUM(c.x)")
            .expect("local")
            .expect_err("not selected");
        assert!(error.message().contains("SUM(c.x)"), "{error}");
        assert_eq!(
            check("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.x FROM c)").merge,
            Merge::CountDistinct(None)
        );
    }

    #[test]
    fn a_key_in_the_filter_narrows_the_epk_range() {
        let all = check("SELECT * FROM c").ranges;
        assert_eq!(all, [EpkRange::FULL]);
        let some = check("SELECT * FROM c WHERE c.pk IN ('a', 'b')").ranges;
        assert_eq!(some.len(), 2);
        assert!(some.iter().all(|range| EpkRange::FULL.covers(range)) && some.is_sorted());
    }

    #[test]
    fn what_is_not_known_here_is_left_to_the_gateway() {
        for query in
            ["SELECT BADFUNC(c.a) FROM c", "SELECT FROM", "SELECT * FROM c ORDER BY VectorDistance(c.v, [1])"]
        {
            assert!(planned(query).is_none(), "{query}");
        }
    }
}
