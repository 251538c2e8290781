//! Whether a query for a list of items takes time in proportion to the list.
//!
//! One container, and an OR of pairs of id and partition key, as clients read many items. A list of 1,000
//! pairs against ten of 100.

use crate::clock;
use crate::figures::{median, median_ratio, milliseconds};
use crate::item::Item;
use crate::options::Budget;
use crate::request::Request;
use crate::server::{Kind, Programs, Server};
use crate::subject::{create_database, fill_container_with};
use crate::workload::Container;

/// The items of the container.
const ITEMS: u64 = 3_000;
/// The pairs of the short list.
const SHORT: u64 = 100;
/// The pairs of the long list.
const LONG: u64 = 1_000;
/// Queries per round, after one that is not counted.
const REPETITIONS: usize = 10;
/// One physical partition, so that a list is one request.
const THROUGHPUT: &str = "400";

/// The time of the two lists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lists {
    pub(crate) short_millis: f64,
    pub(crate) long_millis: f64,
    /// Time of a pair of the long list by time of a pair of the short one.
    pub(crate) ratio: f64,
}

/// Fills the container of a fresh Perihelion and asks.
pub(crate) fn measure(
    programs: &Programs,
    budget: Budget,
    progress: &mut dyn FnMut(&str),
) -> Result<Lists, String> {
    progress("lists of pairs of id and partition key");
    let server = programs.start(Kind::Perihelion)?;
    create_database(&mut server.client()?)?;
    let container = fill_container_with(&server, "lists", ITEMS, THROUGHPUT)?;
    let (mut shorts, mut longs) = (Vec::new(), Vec::new());
    for _ in 0..budget.scaling_rounds {
        shorts.push(milliseconds_per_query(&server, &container, SHORT)?);
        longs.push(milliseconds_per_query(&server, &container, LONG)?);
    }
    let nothing = || "lists: nothing was measured".to_owned();
    Ok(Lists {
        short_millis: median(&shorts).ok_or_else(nothing)?,
        long_millis: median(&longs).ok_or_else(nothing)?,
        ratio: median_ratio(&longs, &shorts).ok_or_else(nothing)? * SHORT as f64 / LONG as f64,
    })
}

fn milliseconds_per_query(server: &Server, container: &Container, pairs: u64) -> Result<f64, String> {
    let mut client = server.client()?;
    let requests = requests(container, pairs);
    let mut times = Vec::with_capacity(REPETITIONS);
    for repetition in 0..=REPETITIONS {
        let start = clock::now();
        let mut count = 0;
        for request in &requests {
            let found = client.send(request)?.expect(&[200])?;
            // The first query is checked and not counted.
            if repetition == 0 {
                count += found.json()?["Documents"].as_array().map_or(0, Vec::len) as u64;
            }
        }
        match repetition {
            0 if count != pairs => return Err(format!("{count} items instead of {pairs}")),
            0 => {}
            _ => times.push(milliseconds(clock::now() - start)),
        }
    }
    median(&times).ok_or_else(|| "nothing was measured".to_owned())
}

/// One request per physical partition: every third item, in the form of the SDKs.
fn requests(container: &Container, pairs: u64) -> Vec<Request<'static>> {
    let pair = |number: u64| {
        let item = Item { number, count: ITEMS };
        format!("( c.id = \"{}\" AND c[\"pk\"] = \"{}\" )", item.id(), item.key())
    };
    let list: Vec<String> = (0..pairs).map(|number| pair(number * 3)).collect();
    container.on_every_range(&format!("SELECT * FROM c WHERE {}", list.join(" OR ")), &[])
}
