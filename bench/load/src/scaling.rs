//! Whether an indexed query's time follows what it returns or what the container holds.
//!
//! Two containers, one a hundred times the other, and queries that return a hundred items from either,
//! asked on one connection, in turn.

use crate::clock;
use crate::figures::{median, median_ratio};
use crate::generator::{self, Stop};
use crate::item::{self, ITEM_BYTES, ITEMS_PER_GROUP, RANK_FIRST, RANKS};
use crate::options::Budget;
use crate::request::Request;
use crate::server::{Kind, Programs, Server};
use crate::subject::{create_database, fill_container};
use crate::workload::{Container, Prepared};

/// One query on both containers.
#[derive(Clone, Debug)]
pub(crate) struct Scaling {
    pub(crate) name: &'static str,
    pub(crate) small_millis: f64,
    pub(crate) large_millis: f64,
    /// Time over the large container by time over the small one.
    pub(crate) ratio: f64,
}

/// The queries: an equality, a range, and an order with a limit.
#[derive(Clone, Copy, Debug)]
enum Query {
    Equality,
    Range,
    Ordered,
}

impl Query {
    const ALL: [Query; 3] = [Query::Equality, Query::Range, Query::Ordered];

    fn name(self) -> &'static str {
        match self {
            Query::Equality => "WHERE c[\"group\"] = @group",
            Query::Range => "WHERE c.rank >= @low AND c.rank < @high",
            Query::Ordered => "WHERE c.rank >= @low ORDER BY c.rank, first 100",
        }
    }

    /// The requests of one operation, one per physical partition: together they return a hundred items.
    fn requests(self, container: &Container, choice: u64) -> Vec<Request<'static>> {
        let group = choice % item::groups(container.count);
        // Ranks are spread evenly, so a hundred items lie within this many ranks.
        let width = RANKS * ITEMS_PER_GROUP / container.count;
        let low = RANK_FIRST + item::scatter(choice) % (RANKS - 2 * width);
        let number = |number: u64| number.to_string();
        match self {
            Query::Equality => container
                .on_every_range("SELECT * FROM c WHERE c[\"group\"] = @group", &[("@group", number(group))]),
            Query::Range => container.on_every_range(
                "SELECT * FROM c WHERE c.rank >= @low AND c.rank < @high",
                &[("@low", number(low)), ("@high", number(low + width))],
            ),
            Query::Ordered => {
                let share = ITEMS_PER_GROUP / container.ranges.len() as u64;
                let text = format!(
                    "SELECT TOP {share} c._rid, [{{\"item\": c.rank}}] AS orderByItems, c AS payload \
                     FROM c WHERE ((c.rank >= @low) AND (true)) ORDER BY c.rank"
                );
                container.on_every_range(&text, &[("@low", number(low))])
            }
        }
    }
}

/// Fills both containers of a fresh Perihelion and asks.
pub(crate) fn measure(
    programs: &Programs,
    budget: Budget,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Scaling>, String> {
    let server = programs.start(Kind::Perihelion)?;
    create_database(&mut server.client()?)?;
    progress(&format!("filling {} items", budget.small));
    let small = fill_container(&server, "small", budget.small)?;
    progress(&format!("filling {} items", budget.large));
    let large = fill_container(&server, "large", budget.large)?;

    let mut found = Vec::new();
    for query in Query::ALL {
        progress(query.name());
        for container in [&small, &large] {
            check(&server, query, container)?;
        }
        let (mut smalls, mut larges) = (Vec::new(), Vec::new());
        for _ in 0..budget.scaling_rounds {
            smalls.push(milliseconds_per_query(&server, query, &small, budget)?);
            larges.push(milliseconds_per_query(&server, query, &large, budget)?);
        }
        let nothing = || format!("{}: nothing was measured", query.name());
        found.push(Scaling {
            name: query.name(),
            small_millis: median(&smalls).ok_or_else(nothing)?,
            large_millis: median(&larges).ok_or_else(nothing)?,
            ratio: median_ratio(&larges, &smalls).ok_or_else(nothing)?,
        });
    }
    Ok(found)
}

/// About a hundred items, and exactly a hundred where the data allows it.
fn check(server: &Server, query: Query, container: &Container) -> Result<(), String> {
    let mut client = server.client()?;
    let mut count = 0;
    for request in query.requests(container, 17) {
        let found = client.send(&request)?.expect(&[200])?.json()?;
        count += found["Documents"].as_array().map_or(0, Vec::len);
    }
    let exact = !matches!(query, Query::Range);
    // Every range returns the same share of a hundred, which may leave a few out.
    let ranges = container.ranges.len();
    let expected = if matches!(query, Query::Ordered) { 100 / ranges * ranges } else { 100 };
    if count == expected || (!exact && (80..=120).contains(&count)) {
        Ok(())
    } else {
        Err(format!("{} over {} items returns {count} instead of {expected}", query.name(), container.count))
    }
}

fn milliseconds_per_query(
    server: &Server,
    query: Query,
    container: &Container,
    budget: Budget,
) -> Result<f64, String> {
    let operations = (0..500).map(|choice| query.requests(container, choice * 7)).collect();
    let mut script = Prepared::new(server.account(), &clock::date(), operations, ITEM_BYTES);
    let stop = Stop::After { warm_up: budget.warm_up, window: budget.window / 2 };
    let outcome = generator::run(server.target(), 1, stop, &mut script)?;
    match outcome.first_error {
        None => Ok(1e3 / outcome.rate()),
        Some(error) => Err(format!("{} over {} items: {error}", query.name(), container.count)),
    }
}

#[cfg(test)]
mod tests {
    use super::{RANK_FIRST, RANKS};
    use crate::item::Item;

    #[test]
    fn a_range_of_ranks_holds_about_a_hundred_items_in_either_container() {
        for count in [10_000, 1_000_000] {
            let width = RANKS * 100 / count;
            let low = RANK_FIRST + RANKS / 3;
            let ranks = (0..count).map(|number| Item { number, count }.rank());
            let within = ranks.filter(|rank| (low..low + width).contains(rank)).count();
            assert!((80..=120).contains(&within), "{within} of {count}");
        }
    }
}
