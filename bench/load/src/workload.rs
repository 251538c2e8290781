//! What is asked: the rows of the table as requests.
//!
//! In: a server, its containers and their partitions. Out: [`Script`]s for the generator, signed for the
//! date given. Whether the answers are right is checked once per server by `check`.

use crate::generator::Script;
use crate::item::{self, CATEGORIES, ID_DIGITS, ITEM_BYTES, Item, RANK_DIGITS, RANK_FIRST, RANKS};
use crate::request::{Account, Request};
use crate::server::Ordering;

/// The database of the comparison.
pub(crate) const DATABASE: &str = "bench";

/// One row of the table of throughputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Row {
    PointRead,
    Create,
    Upsert,
    PartitionQuery,
    OrderedQuery,
}

impl Row {
    /// All of them, in the order of the table.
    pub(crate) const ALL: [Row; 5] =
        [Row::PointRead, Row::Create, Row::Upsert, Row::PartitionQuery, Row::OrderedQuery];

    /// The name in tables and in `--rows`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Row::PointRead => "point read",
            Row::Create => "create",
            Row::Upsert => "upsert",
            Row::PartitionQuery => "single-partition query",
            Row::OrderedQuery => "cross-partition ORDER BY",
        }
    }
}

/// A container by name, and how many items it was filled with.
#[derive(Clone, Debug)]
pub(crate) struct Container {
    pub(crate) name: &'static str,
    pub(crate) count: u64,
    /// The ids of its physical partitions; empty where a server has none to ask by.
    pub(crate) ranges: Vec<String>,
}

impl Container {
    /// Its link, which is also what item feeds sign.
    pub(crate) fn link(&self) -> String {
        format!("dbs/{DATABASE}/colls/{}", self.name)
    }

    fn post<'a>(&self, headers: Vec<(&'a str, String)>, body: String) -> Request<'a> {
        Request {
            verb: "POST",
            path: format!("/{}/docs", self.link()),
            kind: "docs",
            link: self.link(),
            headers,
            body,
        }
    }

    /// Reads one item by id and partition key.
    pub(crate) fn point_read(&self, item: Item) -> Request<'static> {
        let link = format!("{}/docs/{}", self.link(), item.id());
        let headers = vec![(PARTITION_KEY, format!("[\"{}\"]", item.key()))];
        Request { verb: "GET", path: format!("/{link}"), kind: "docs", link, headers, body: String::new() }
    }

    /// Stores one item.
    pub(crate) fn write(&self, item: Item, mode: Write) -> Request<'static> {
        let mut headers = vec![
            (PARTITION_KEY, format!("[\"{}\"]", item.key())),
            ("content-type", "application/json".to_owned()),
        ];
        match mode {
            Write::Create => {}
            Write::CreateQuietly => headers.push(("prefer", "return=minimal".to_owned())),
            Write::Upsert => headers.push(("x-ms-documentdb-is-upsert", "true".to_owned())),
        }
        self.post(headers, item.json())
    }

    fn query(
        &self,
        scope: (&'static str, String),
        text: &str,
        parameters: &[(&str, String)],
    ) -> Request<'static> {
        let parameters: Vec<String> = parameters
            .iter()
            .map(|(name, value)| format!("{{\"name\":\"{name}\",\"value\":{value}}}"))
            .collect();
        let text = text.replace('"', "\\\"");
        let body = format!("{{\"query\":\"{text}\",\"parameters\":[{}]}}", parameters.join(","));
        let headers = vec![
            ("content-type", "application/query+json".to_owned()),
            ("x-ms-documentdb-isquery", "true".to_owned()),
            ("x-ms-max-item-count", "1000".to_owned()),
            scope,
        ];
        self.post(headers, body)
    }

    /// All items of one partition key. The filter is in the text as well as in the header: a server that
    /// does not look at the header would answer with the whole container otherwise.
    pub(crate) fn partition_query(&self, key: u64) -> Request<'static> {
        let key = item::key_text(key);
        let parameters = [("@pk", format!("\"{key}\""))];
        self.query((PARTITION_KEY, format!("[\"{key}\"]")), "SELECT * FROM c WHERE c.pk = @pk", &parameters)
    }

    /// The ten lowest ranks of a category, over all partitions.
    pub(crate) fn ordered_query(&self, category: u64, ordering: Ordering) -> Vec<Request<'static>> {
        let parameters = [("@category", category.to_string())];
        match ordering {
            Ordering::Direct => {
                let text = "SELECT TOP 10 * FROM c WHERE c.category = @category ORDER BY c.rank";
                vec![self.query((PARALLELIZE, "true".to_owned()), text, &parameters)]
            }
            Ordering::PerRange => {
                let text = concat!(
                    r#"SELECT TOP 10 c._rid, [{"item": c.rank}] AS orderByItems, c AS payload "#,
                    "FROM c WHERE ((c.category = @category) AND (true)) ORDER BY c.rank"
                );
                self.on_every_range(text, &parameters)
            }
        }
    }

    /// `text` once per physical partition, as clients send it.
    pub(crate) fn on_every_range(&self, text: &str, parameters: &[(&str, String)]) -> Vec<Request<'static>> {
        self.ranges.iter().map(|range| self.query((RANGE_ID, range.clone()), text, parameters)).collect()
    }
}

const PARTITION_KEY: &str = "x-ms-documentdb-partitionkey";
const RANGE_ID: &str = "x-ms-documentdb-partitionkeyrangeid";
const PARALLELIZE: &str = "x-ms-documentdb-query-parallelizecrosspartitionquery";

/// How an item is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Create,
    /// Without the item in the answer: for filling containers.
    CreateQuietly,
    Upsert,
}

/// Requests that are the same every time: reads and queries, repeated in turn.
pub(crate) struct Prepared {
    requests: Vec<Vec<u8>>,
    per_operation: usize,
    next: u64,
    least_body_bytes: usize,
}

impl Prepared {
    /// Signs every request of every operation; all operations have the same number of requests.
    pub(crate) fn new(
        account: &Account,
        date: &str,
        operations: Vec<Vec<Request<'_>>>,
        least: usize,
    ) -> Prepared {
        let per_operation = operations.first().map_or(1, Vec::len);
        let requests = operations.iter().flatten().map(|request| account.render(request, date)).collect();
        Prepared { requests, per_operation, next: 0, least_body_bytes: least }
    }
}

impl Script for Prepared {
    fn begin(&mut self) -> Option<u64> {
        self.next += 1;
        Some(self.next)
    }

    fn requests_per_operation(&self) -> usize {
        self.per_operation
    }

    fn write(&mut self, operation: u64, step: usize, request: &mut Vec<u8>) {
        let operations = self.requests.len() / self.per_operation;
        let index = (operation as usize % operations) * self.per_operation + step;
        request.extend_from_slice(&self.requests[index]);
    }

    fn accepts(&self, status: u16, body: &[u8]) -> bool {
        status == 200 && body.len() >= self.least_body_bytes
    }
}

/// Writes that differ in id or in rank: templates, patched in place.
///
/// All writes to one container have the same signature, because the id is not part of what is signed.
pub(crate) struct Patched {
    templates: Vec<Template>,
    patch: Patch,
    next: u64,
}

/// What changes from write to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patch {
    Id,
    Rank,
}

struct Template {
    bytes: Vec<u8>,
    id: usize,
    rank: usize,
}

impl Template {
    fn new(bytes: Vec<u8>) -> Template {
        let after = |mark: &[u8]| {
            let found = memchr::memmem::find(&bytes, mark).expect("an item has an id and a rank");
            found + mark.len()
        };
        let (id, rank) = (after(b"{\"id\":\"item-"), after(b"\"rank\":"));
        Template { bytes, id, rank }
    }
}

impl Patched {
    /// Creates with ids from `first` on, over the first thousand keys.
    pub(crate) fn creates(account: &Account, date: &str, container: &Container, first: u64) -> Patched {
        let items = (0..1_000).map(|number| Item { number, count: 10_000 });
        Patched::new(account, date, container, (items, Write::Create), (Patch::Id, first))
    }

    /// Upserts of items that exist, each time with another rank.
    pub(crate) fn upserts(account: &Account, date: &str, container: &Container) -> Patched {
        let count = container.count;
        let items = (0..count).map(|number| Item { number, count });
        Patched::new(account, date, container, (items, Write::Upsert), (Patch::Rank, 0))
    }

    fn new(
        account: &Account,
        date: &str,
        container: &Container,
        (items, mode): (impl Iterator<Item = Item>, Write),
        (patch, next): (Patch, u64),
    ) -> Patched {
        let render = |item| Template::new(account.render(&container.write(item, mode), date));
        Patched { templates: items.map(render).collect(), patch, next }
    }
}

impl Script for Patched {
    fn begin(&mut self) -> Option<u64> {
        self.next += 1;
        Some(self.next - 1)
    }

    fn requests_per_operation(&self) -> usize {
        1
    }

    fn write(&mut self, operation: u64, _step: usize, request: &mut Vec<u8>) {
        let template = &self.templates[operation as usize % self.templates.len()];
        request.extend_from_slice(&template.bytes);
        match self.patch {
            Patch::Id => write_digits(&mut request[template.id..template.id + ID_DIGITS], operation),
            Patch::Rank => {
                let rank = RANK_FIRST + item::scatter(operation) % RANKS;
                write_digits(&mut request[template.rank..template.rank + RANK_DIGITS], rank);
            }
        }
    }

    fn accepts(&self, status: u16, body: &[u8]) -> bool {
        let wanted = match self.patch {
            Patch::Id => 201,
            Patch::Rank => 200,
        };
        status == wanted && body.len() >= ITEM_BYTES
    }
}

/// Right-aligned decimal digits with leading zeros.
fn write_digits(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Fills a container with items `from..to`.
pub(crate) struct Fill<'a> {
    pub(crate) account: &'a Account,
    pub(crate) date: String,
    pub(crate) container: &'a Container,
    pub(crate) next: u64,
}

impl Script for Fill<'_> {
    fn begin(&mut self) -> Option<u64> {
        if self.next == self.container.count {
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }

    fn requests_per_operation(&self) -> usize {
        1
    }

    fn write(&mut self, operation: u64, _step: usize, request: &mut Vec<u8>) {
        let item = Item { number: operation, count: self.container.count };
        // A signature is good for fifteen minutes, so one date does for a whole container.
        let rendered = self.account.render(&self.container.write(item, Write::CreateQuietly), &self.date);
        request.extend_from_slice(&rendered);
    }

    fn accepts(&self, status: u16, _body: &[u8]) -> bool {
        status == 201
    }
}

/// The script of a row, signed for `date`. Creates take their ids from `first_id` on.
pub(crate) fn script(
    row: Row,
    account: &Account,
    date: &str,
    container: &Container,
    ordering: Ordering,
    first_id: u64,
) -> Box<dyn Script> {
    let count = container.count;
    match row {
        Row::PointRead => {
            // In an order that neither memory nor a cache would guess.
            let items = (0..count).map(|number| Item { number: item::scatter(number) % count, count });
            let operations = items.map(|item| vec![container.point_read(item)]).collect();
            Box::new(Prepared::new(account, date, operations, ITEM_BYTES))
        }
        Row::Create => Box::new(Patched::creates(account, date, container, first_id)),
        Row::Upsert => Box::new(Patched::upserts(account, date, container)),
        Row::PartitionQuery => {
            let operations = (0..item::keys(count)).map(|key| vec![container.partition_query(key)]).collect();
            Box::new(Prepared::new(account, date, operations, item::ITEMS_PER_KEY as usize * ITEM_BYTES))
        }
        Row::OrderedQuery => {
            let operations =
                (0..CATEGORIES).map(|category| container.ordered_query(category, ordering)).collect();
            Box::new(Prepared::new(account, date, operations, ITEM_BYTES))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{Container, Patched, Row, script, write_digits};
    use crate::generator::Script;
    use crate::request::Account;
    use crate::server::Ordering;
    use crate::signature::{Key, WELL_KNOWN_KEY};

    fn account() -> Account {
        let key = Key::parse(WELL_KNOWN_KEY).expect("the well-known key");
        Account { address: "127.0.0.1:1".parse().expect("an address"), key }
    }

    fn container() -> Container {
        Container { name: "items", count: 1_000, ranges: vec!["0".to_owned(), "1".to_owned()] }
    }

    fn body_of(script: &mut dyn Script, step: usize) -> Value {
        let operation = script.begin().expect("an operation");
        let mut request = Vec::new();
        script.write(operation, step, &mut request);
        let text = String::from_utf8(request).expect("text");
        let (_, body) = text.split_once("\r\n\r\n").expect("a body");
        serde_json::from_str(body).expect("valid JSON")
    }

    #[test]
    fn creates_differ_in_id_and_upserts_in_rank() {
        let mut creates = Patched::creates(&account(), "today", &container(), 7);
        let ids = [body_of(&mut creates, 0)["id"].clone(), body_of(&mut creates, 0)["id"].clone()];
        assert_eq!(ids, ["item-000000000007", "item-000000000008"]);

        let mut upserts = Patched::upserts(&account(), "today", &Container { count: 1, ..container() });
        let (first, second) = (body_of(&mut upserts, 0), body_of(&mut upserts, 0));
        assert_eq!(first["id"], second["id"]);
        assert_ne!(first["rank"], second["rank"]);
    }

    #[test]
    fn an_ordered_query_is_one_request_per_range_or_one_in_all() {
        for (ordering, requests) in [(Ordering::PerRange, 2), (Ordering::Direct, 1)] {
            let mut script = script(Row::OrderedQuery, &account(), "today", &container(), ordering, 0);
            assert_eq!(script.requests_per_operation(), requests);
            let body = body_of(script.as_mut(), requests - 1);
            assert_eq!(body["parameters"][0]["name"], "@category");
        }
    }

    #[test]
    fn digits_fill_their_place_from_the_right() {
        let mut place = *b"xxxx";
        write_digits(&mut place, 42);
        assert_eq!(&place, b"0042");
    }
}
