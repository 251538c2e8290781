//! Random items, random partitions that split between any two pages, random page sizes and stops: the
//! result is that of the same query over all items at once.

use std::collections::BTreeMap;
use std::sync::Mutex;

use proptest::prelude::*;
use protocol::partition::{EffectivePartitionKey, PartitionKey, effective_key, split_point};
use protocol::query::{QueryPlan, QuerySpec};
use protocol::resource_id::{ContainerRid, DatabaseRid, ItemRid};
use sql::value::parse;
use sql::{QueryContext, QuerySchema, Statement, run_reference};

use std::num::NonZeroUsize;

use super::*;
use crate::error::ErrorKind;

const CONTAINER: ContainerRid = ContainerRid { database: DatabaseRid(1), container: 1 };

/// A simulated container and its partitions.
#[derive(Debug)]
struct Simulation {
    definition: PartitionKeyDefinition,
    /// In the order of creation, each where it lies in EPK space.
    items: Vec<(EffectivePartitionKey, Value)>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The effective partition keys at which partitions begin.
    partitions: Vec<EffectivePartitionKey>,
    draws: u64,
    /// One in so many requests finds its partition split, or fails; none for never.
    split_every: Option<u64>,
    fail_every: Option<u64>,
    requests: u32,
}

impl Simulation {
    fn new(seed: u64, items: usize, partitions: usize) -> Simulation {
        let definition = PartitionKeyDefinition::hash("/pk").expect("a path");
        let mut draws = Draws(seed | 1);
        let items = (0..items).map(|ordinal| item(&definition, ordinal as u64, &mut draws)).collect();
        let ranges = protocol::partition::even_split(&definition, partitions);
        let state = State {
            partitions: ranges.into_iter().map(|range| range.min).collect(),
            draws: draws.0,
            split_every: None,
            fail_every: None,
            requests: 0,
        };
        Simulation { definition, items, state: Mutex::new(state) }
    }

    fn splitting(self, every: u64) -> Simulation {
        self.state.lock().expect("no panic").split_every = Some(every);
        self
    }

    fn failing(self, every: u64) -> Simulation {
        self.state.lock().expect("no panic").fail_every = Some(every);
        self
    }

    /// What the language makes of all items at once.
    fn expected(&self, query: &str) -> Vec<String> {
        let statement = Statement::prepare(query, &[], &QuerySchema::default()).expect(query);
        let rows =
            run_reference(&statement, self.items.iter().map(|(_, item)| item), QueryContext::default());
        rows.expect(query).iter().map(ToString::to_string).collect()
    }

    /// The number and bounds of the partition that holds all of `range`.
    fn owner(state: &State, range: &EpkRange) -> Option<usize> {
        let at = state.partitions.partition_point(|min| *min <= range.min).checked_sub(1)?;
        let max = state.partitions.get(at + 1).cloned().unwrap_or(EffectivePartitionKey::MAX);
        (range.max <= max).then_some(at)
    }
}

struct Draws(u64);

impl Draws {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below
    }
}

fn item(
    definition: &PartitionKeyDefinition,
    ordinal: u64,
    draws: &mut Draws,
) -> (EffectivePartitionKey, Value) {
    let pk = format!("pk{}", draws.next(40));
    let position = effective_key(definition, &PartitionKey::single(pk.as_str()));
    // Few values of every type, so that there are many equal ones, and some without any.
    let mixed = ["", "null", "true", "false", "1", "2.5", "-3", "\"a\"", "\"b\\\"\"", "[1]", "{\"x\":1}"];
    let mut text = format!(
        r#"{{"id":"i{ordinal:04}","_rid":"{}","pk":"{pk}","n":{},"g":"g{}","tags":[{}]"#,
        ItemRid { container: CONTAINER, ordinal },
        draws.next(5),
        draws.next(4),
        (0..draws.next(4)).map(|tag| tag.to_string()).collect::<Vec<_>>().join(","),
    );
    let value = mixed[draws.next(mixed.len() as u64) as usize];
    if !value.is_empty() {
        text.push_str(&format!(r#","k":{value}"#));
    }
    text.push('}');
    (position, parse(text.as_bytes()).expect("JSON"))
}

impl PageSource for Simulation {
    async fn page(&self, request: PageRequest) -> Result<Page, PageError> {
        let (yields, owner) = {
            let mut state = self.state.lock().expect("no panic");
            state.requests += 1;
            let mut draws = Draws(state.draws);
            let yields = draws.next(3);
            let due =
                |every: Option<u64>, draws: &mut Draws| every.is_some_and(|every| draws.next(every) == 0);
            let (splits, fails) = (due(state.split_every, &mut draws), due(state.fail_every, &mut draws));
            state.draws = draws.0;
            if fails {
                return Err(Error::new(ErrorKind::Unavailable, "not now").into());
            }
            if splits && let Some(at) = Simulation::owner(&state, &request.range) {
                let max = state.partitions.get(at + 1).cloned().unwrap_or(EffectivePartitionKey::MAX);
                let whole = EpkRange::new(state.partitions[at].clone(), max);
                if state.partitions.len() < 40
                    && let Some(middle) = split_point(&self.definition, &whole)
                {
                    state.partitions.insert(at + 1, middle);
                }
            }
            (yields, Simulation::owner(&state, &request.range))
        };
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
        if owner.is_none() {
            return Err(PageError::Gone);
        }
        Ok(self.page_of(&request))
    }

    async fn divide(&self, range: EpkRange, _: bool) -> Result<Vec<EpkRange>, Error> {
        let state = self.state.lock().expect("no panic");
        let ends = state.partitions.iter().skip(1).cloned().chain([EffectivePartitionKey::MAX]);
        let all = state.partitions.iter().cloned().zip(ends).map(|(min, max)| EpkRange::new(min, max));
        Ok(all.filter_map(|partition| partition.intersect(&range)).collect())
    }

    async fn plan(&self, _: Bytes) -> Result<QueryPlan, Error> {
        Err(Error::new(ErrorKind::BadRequest, "every query here has a local plan"))
    }
}

impl Simulation {
    fn page_of(&self, request: &PageRequest) -> Page {
        let spec = QuerySpec::parse(&request.body).expect("a query");
        let statement = Statement::prepare(&spec.query, &[], &QuerySchema::default()).expect(&spec.query);
        let mut items: Vec<&Value> = self
            .items
            .iter()
            .filter(|(position, _)| request.range.contains(position))
            .map(|(_, item)| item)
            .collect();
        let by_position = !statement.needs_merge() && statement.has_from();
        // Equal rows come in the order of creation, or against it, always in the same way in one range.
        if !by_position && request.range.min.as_bytes().iter().fold(0, |sum: u8, byte| sum ^ byte) % 8 >= 4 {
            items.reverse();
        }
        let run = |items: &[&Value]| {
            run_reference(&statement, items.iter().copied(), QueryContext::default()).expect("runs")
        };
        let items_max = request.items_max.map_or(7, |items| items.get() as usize);
        let (rows, continuation) = if by_position {
            // "ordinal rows": this many rows of that document, and all documents before it.
            let (from, given) = request.continuation.as_deref().map_or((0, 0), |text| {
                let (from, given) = text.split_once(' ').expect("a place");
                (from.parse().expect("an ordinal"), given.parse().expect("a number"))
            });
            let mut rows: Vec<Value> = Vec::new();
            let mut next = None;
            'items: for item in items {
                let ordinal =
                    item.member("_rid").as_str().expect("a rid").parse::<ItemRid>().expect("a rid").ordinal;
                let skip = match ordinal.cmp(&from) {
                    std::cmp::Ordering::Less => continue,
                    std::cmp::Ordering::Equal => given,
                    std::cmp::Ordering::Greater => 0,
                };
                for (at, row) in run(&[item]).into_iter().enumerate().skip(skip) {
                    if rows.len() == items_max {
                        next = Some(format!("{ordinal} {at}"));
                        break 'items;
                    }
                    rows.push(row);
                }
            }
            (rows, next)
        } else {
            // "count range": a number of rows of one very range.
            let whole = run(&items);
            let given = request.continuation.as_deref().map_or(0, |text| {
                let (given, range) = text.split_once(' ').expect("a count");
                assert_eq!(range, request.range.to_string(), "a count of another range means nothing here");
                given.parse().expect("a number")
            });
            let rows: Vec<Value> = whole.iter().skip(given).take(items_max).cloned().collect();
            let next = given + rows.len();
            (rows, (next < whole.len()).then(|| format!("{next} {}", request.range)))
        };
        let rows: Vec<String> = rows.iter().map(ToString::to_string).collect();
        let body = format!(r#"{{"_rid":"x","Documents":[{}],"_count":{}}}"#, rows.join(","), rows.len());
        Page { body: body.into(), continuation, charge: 1.0, ..Page::default() }
    }
}

fn body(query: &str) -> Bytes {
    serde_json::json!({"query": query}).to_string().into()
}

async fn start(
    simulation: &Arc<Simulation>,
    query: &str,
    options: QueryOptions,
) -> Result<QueryPages<Simulation>, Error> {
    QueryPages::start(Arc::clone(simulation), body(query), "rid", &simulation.definition, &options).await
}

/// All rows of a query, stopping after every `stop_every`th page to continue from its continuation.
async fn all_rows(
    simulation: &Arc<Simulation>,
    query: &str,
    page_items: Option<u32>,
    stop_every: usize,
) -> Vec<String> {
    let mut options =
        QueryOptions { page_items: page_items.and_then(NonZeroU32::new), ..QueryOptions::default() };
    let mut rows = Vec::new();
    loop {
        let mut pages = start(simulation, query, options.clone()).await.expect(query);
        for page in 1.. {
            let next = loop {
                match pages.next_page().await {
                    Ok(next) => break next,
                    Err(error) => assert_eq!(error.message(), "not now"),
                }
            };
            let Some(QueryPage { rows: more, has_more, .. }) = next else { return rows };
            if let (Some(most), false) = (page_items, query.contains("JOIN")) {
                assert!(more.len() <= most as usize, "{query}: {} rows", more.len());
            }
            rows.extend(more.iter().map(|row| String::from_utf8(row.to_vec()).expect("text")));
            if !has_more {
                return rows;
            }
            if page % stop_every == 0 {
                options.continuation = pages.continuation();
                break;
            }
        }
    }
}

fn on_tokio<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(work)
}

/// How a result is compared.
#[derive(Clone, Copy, Debug)]
enum Compare {
    /// Rows are equal one by one.
    Exactly,
    /// Each row as often, in any order.
    AnyOrder,
    /// The value of this member row by row, and each row as often.
    OrderedBy(&'static str),
    /// The value of this member row by row; equal rows may be others.
    Keys(&'static str),
    /// So many rows, all of them among those of the query without its cut.
    SomeOf(&'static str),
}

#[track_caller]
fn compare(query: &str, how: Compare, found: Vec<String>, expected: Vec<String>, simulation: &Simulation) {
    let sorted = |mut rows: Vec<String>| {
        rows.sort();
        rows
    };
    let keys = |rows: &[String], name: &str| -> Vec<String> {
        rows.iter().map(|row| parse(row.as_bytes()).expect("JSON").member(name).to_string()).collect()
    };
    match how {
        Compare::Exactly => assert_eq!(found, expected, "{query}"),
        Compare::AnyOrder => assert_eq!(sorted(found), sorted(expected), "{query}"),
        Compare::OrderedBy(name) => {
            assert_eq!(keys(&found, name), keys(&expected, name), "{query}");
            assert_eq!(sorted(found), sorted(expected), "{query}");
        }
        Compare::Keys(name) => {
            assert_eq!(keys(&found, name), keys(&expected, name), "{query}");
            let distinct: std::collections::BTreeSet<&String> = found.iter().collect();
            assert_eq!(distinct.len(), found.len(), "{query}: a row is repeated");
        }
        Compare::SomeOf(whole) => {
            assert_eq!(found.len(), expected.len(), "{query}");
            let mut left: BTreeMap<String, usize> = BTreeMap::new();
            for row in simulation.expected(whole) {
                *left.entry(row).or_default() += 1;
            }
            for row in found {
                let count = left.get_mut(&row).unwrap_or_else(|| panic!("{query}: {row} is no row"));
                *count = count.checked_sub(1).unwrap_or_else(|| panic!("{query}: {row} is repeated"));
            }
        }
    }
}

const QUERIES: &[(&str, Compare)] = &[
    ("SELECT * FROM c", Compare::AnyOrder),
    ("SELECT c.id, c.n FROM c WHERE c.n > 1", Compare::AnyOrder),
    ("SELECT VALUE c.k FROM c", Compare::AnyOrder),
    ("SELECT c.id, t FROM c JOIN t IN c.tags", Compare::AnyOrder),
    ("SELECT TOP 12 c.id FROM c", Compare::SomeOf("SELECT c.id FROM c")),
    ("SELECT TOP 0 c.id FROM c", Compare::Exactly),
    ("SELECT c.id FROM c OFFSET 7 LIMIT 9", Compare::SomeOf("SELECT c.id FROM c")),
    ("SELECT c.id, c.pk FROM c WHERE c.pk IN ('pk1', 'pk2', 'pk30')", Compare::AnyOrder),
    ("SELECT VALUE 1 + 1", Compare::Exactly),
    ("SELECT * FROM c WHERE false", Compare::Exactly),
    // In order: exactly where the order is total, by key where it is not.
    ("SELECT c.id, c.k FROM c ORDER BY c.k, c.id", Compare::Exactly),
    ("SELECT c.id, c.k FROM c ORDER BY c.k DESC, c.id", Compare::Exactly),
    ("SELECT c.id FROM c ORDER BY c.id DESC", Compare::Exactly),
    ("SELECT c.id, c.k FROM c ORDER BY c.k", Compare::OrderedBy("k")),
    ("SELECT c.id, c.k FROM c ORDER BY c.k DESC", Compare::OrderedBy("k")),
    ("SELECT c.id, c.n FROM c WHERE c.n < 3 ORDER BY c.n", Compare::OrderedBy("n")),
    ("SELECT c.id, c.n, t FROM c JOIN t IN c.tags ORDER BY c.n", Compare::OrderedBy("n")),
    ("SELECT TOP 15 c.id, c.n FROM c ORDER BY c.n DESC", Compare::Keys("n")),
    ("SELECT TOP 15 c.id, c.k FROM c ORDER BY c.k, c.id", Compare::Exactly),
    ("SELECT c.id FROM c ORDER BY c.n, c.id OFFSET 5 LIMIT 20", Compare::Exactly),
    ("SELECT VALUE c.k FROM c ORDER BY c.k, c.id", Compare::Exactly),
    // Distinct.
    ("SELECT DISTINCT c.g, c.n FROM c", Compare::AnyOrder),
    ("SELECT DISTINCT VALUE c.k FROM c", Compare::AnyOrder),
    ("SELECT DISTINCT TOP 3 VALUE c.g FROM c", Compare::SomeOf("SELECT DISTINCT VALUE c.g FROM c")),
    ("SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n", Compare::Exactly),
    ("SELECT DISTINCT VALUE c.k FROM c ORDER BY c.k DESC", Compare::Exactly),
    ("SELECT DISTINCT c.g, c.n FROM c ORDER BY c.n, c.g", Compare::Exactly),
    ("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.g FROM c)", Compare::Exactly),
    // Aggregates and groups.
    ("SELECT VALUE COUNT(1) FROM c", Compare::Exactly),
    ("SELECT VALUE COUNT(c.k) FROM c", Compare::Exactly),
    ("SELECT VALUE SUM(c.n) FROM c", Compare::Exactly),
    ("SELECT VALUE SUM(c.k) FROM c", Compare::Exactly),
    ("SELECT VALUE AVG(c.n) FROM c", Compare::Exactly),
    ("SELECT VALUE AVG(c.missing) FROM c", Compare::Exactly),
    ("SELECT VALUE MIN(c.n) FROM c WHERE c.n > 1", Compare::Exactly),
    ("SELECT VALUE MAX(c.id) FROM c", Compare::Exactly),
    ("SELECT VALUE MIN(c.k) FROM c", Compare::Exactly),
    ("SELECT VALUE MAX(c.k) FROM c WHERE IS_PRIMITIVE(c.k)", Compare::Exactly),
    ("SELECT COUNT(1) AS n, AVG(c.n), MIN(c.id) AS first FROM c", Compare::Exactly),
    ("SELECT c.g, COUNT(1) AS n, SUM(c.n) AS s FROM c GROUP BY c.g", Compare::AnyOrder),
    ("SELECT c.g, c.n, MAX(c.id) AS last FROM c GROUP BY c.g, c.n", Compare::AnyOrder),
    ("SELECT VALUE COUNT(1) FROM c GROUP BY c.k", Compare::AnyOrder),
    ("SELECT VALUE c.g FROM c GROUP BY c.g", Compare::AnyOrder),
    ("SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g ORDER BY c.g DESC", Compare::Exactly),
    (
        "SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g OFFSET 1 LIMIT 2",
        Compare::SomeOf("SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g"),
    ),
    ("SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'pk3'", Compare::Exactly),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, max_shrink_iters: 100, ..ProptestConfig::default() })]

    #[test]
    fn results_are_those_of_one_partition_whatever_splits_and_stops(
        seed in any::<u64>(),
        items in 0usize..80,
        partitions in 1usize..6,
        page_items in prop::option::of(1u32..20),
        stop_every in prop_oneof![1usize..4, Just(usize::MAX)],
        split_every in prop_oneof![Just(None), (2u64..12).prop_map(Some)],
        fail_every in prop_oneof![Just(None), (4u64..12).prop_map(Some)],
    ) {
        for (query, how) in QUERIES {
            let mut simulation = Simulation::new(seed, items, partitions);
            if let Some(every) = split_every {
                simulation = simulation.splitting(every);
            }
            if let Some(every) = fail_every {
                simulation = simulation.failing(every);
            }
            let simulation = Arc::new(simulation);
            let found = on_tokio(all_rows(&simulation, query, page_items, stop_every));
            compare(query, *how, found, simulation.expected(query), &simulation);
        }
    }
}

#[test]
fn a_continuation_of_another_query_or_container_is_an_error() {
    on_tokio(async {
        let simulation = Arc::new(Simulation::new(1, 50, 3));
        let options = QueryOptions::new().with_page_items(NonZeroU32::MIN);
        let mut pages = start(&simulation, "SELECT * FROM c", options.clone()).await.expect("a query");
        pages.next_page().await.expect("a page").expect("rows");
        let options = options.with_continuation(pages.continuation().expect("more"));
        start(&simulation, "SELECT * FROM c", options.clone()).await.expect("its own query");
        let error =
            start(&simulation, "SELECT c.id FROM c", options.clone()).await.expect_err("another query");
        assert_eq!(error.kind(), ErrorKind::BadRequest);
        assert!(error.to_string().contains("another query"), "{error}");
        let other = QueryPages::start(
            Arc::clone(&simulation),
            body("SELECT * FROM c"),
            "other",
            &simulation.definition,
            &options,
        )
        .await;
        assert_eq!(other.expect_err("another container").kind(), ErrorKind::BadRequest);
    });
}

#[test]
fn a_dropped_call_loses_no_row() {
    on_tokio(async {
        let simulation = Arc::new(Simulation::new(7, 60, 4));
        let query = "SELECT c.id FROM c ORDER BY c.id";
        let mut pages = start(&simulation, query, QueryOptions::new()).await.expect("a query");
        let mut rows = Vec::new();
        loop {
            // Poll once and drop, again and again: what is in progress must stay in progress.
            let polled = futures::FutureExt::now_or_never(pages.next_page());
            match polled {
                None => tokio::task::yield_now().await,
                Some(Ok(Some(page))) => {
                    rows.extend(page.rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()))
                }
                Some(Ok(None)) => break,
                Some(Err(error)) => panic!("{error}"),
            }
        }
        assert_eq!(rows, simulation.expected(query));
    });
}

#[test]
fn prefetching_stays_within_its_bounds() {
    on_tokio(async {
        let simulation = Arc::new(Simulation::new(3, 2000, 30));
        let mut options = QueryOptions::new().with_page_items(NonZeroU32::new(10).expect("not zero"));
        options.parallel_max = NonZeroUsize::new(4).expect("not zero");
        let mut pages = start(&simulation, "SELECT * FROM c", options).await.expect("a query");
        let page = pages.next_page().await.expect("a page").expect("rows");
        assert!(!page.rows.is_empty());
        let asked = simulation.state.lock().expect("no panic").requests as usize;
        assert!(asked <= PAGES_AHEAD_MAX + 1, "{asked} requests for one page");
        // A query that is cut short asks for no more rows than it needs.
        let mut pages =
            start(&simulation, "SELECT TOP 3 * FROM c", QueryOptions::new()).await.expect("a query");
        let page = pages.next_page().await.expect("a page").expect("rows");
        assert_eq!((page.rows.len(), page.has_more, pages.continuation()), (3, false, None));
    });
}

#[test]
fn a_part_of_the_epk_space_gives_its_rows_only() {
    on_tokio(async {
        let simulation = Arc::new(Simulation::new(5, 200, 3));
        let mut all = Vec::new();
        for range in protocol::partition::even_split(&simulation.definition, 7) {
            let options = QueryOptions::new().with_range(range);
            let mut pages = start(&simulation, "SELECT VALUE c.id FROM c", options).await.expect("a query");
            while let Some(page) = pages.next_page().await.expect("a page") {
                all.extend(page.rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()));
            }
        }
        all.sort();
        assert_eq!(all, simulation.expected("SELECT VALUE c.id FROM c ORDER BY c.id"));
    });
}
