//! A cross-partition ORDER BY that reads the whole container.

use std::num::NonZeroU32;

use azure_data_cosmos_driver::CosmosDriver as PublishedDriver;
use azure_data_cosmos_driver::models::{CosmosOperation, FeedRange, MaxItemCountHint};
use azure_data_cosmos_driver::options::PlanOptions;
use bytes::Bytes;
use perihelion::{DriverOptions, OperationOptions};
use perihelion_driver::CosmosDriver;
use perihelion_driver::operation::ContainerName;
use perihelion_driver::query::QueryOptions;
use tokio::runtime::Runtime;

use crate::clock;
use crate::figures::median;
use crate::load::Work;
use crate::options::Options;
use crate::peri::{DATABASE, Indexing, Peri};
use crate::subject::{self, Kind, Shape, Wire, Worker};

const CONTAINER: &str = "ordered";
const QUERY: &str = r#"{"query":"SELECT * FROM c ORDER BY c.rank","parameters":[]}"#;
const PAGE_ITEMS: NonZeroU32 = NonZeroU32::new(1000).expect("a thousand is not zero");

/// What came of it, in the order of [`KINDS`].
#[derive(Clone, Debug)]
pub struct Ordered {
    /// How many items there were.
    pub items: u64,
    /// Seconds and processor seconds of each, round by round; of the second none if it cannot do it.
    pub rounds: Vec<[Option<(f64, f64)>; 2]>,
    /// Why the second cannot.
    pub refusal: Option<String>,
}

/// Those who can read a query at all.
pub const KINDS: [Kind; 2] = [Kind::Perihelion, Kind::Published];

impl Ordered {
    /// Seconds: the median of the rounds.
    pub fn seconds(&self, at: usize) -> f64 {
        median(self.rounds.iter().filter_map(|round| round[at]).map(|(seconds, _)| seconds))
    }

    /// Processor seconds: the median of the rounds.
    pub fn processor(&self, at: usize) -> f64 {
        median(self.rounds.iter().filter_map(|round| round[at]).map(|(_, processor)| processor))
    }
}

/// Fills a container, and reads it in order, over HTTP/2.
pub fn measure(options: &Options, peri: &Peri) -> Result<Ordered, String> {
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let items: u64 = if options.quick { 20_000 } else { 100_000 };
    runtime.block_on(fill(peri, CONTAINER, items))?;
    let ours =
        runtime.block_on(async { subject::perihelion_driver(Wire::Http2, peri, DriverOptions::new()) })?;
    let theirs = runtime.block_on(subject::published_driver(Wire::Http2, peri))?;
    let mut ordered = Ordered { items, rounds: Vec::new(), refusal: None };
    for _ in 0..(options.rounds / 4).clamp(1, 3) {
        let mut round = [None; 2];
        round[0] = Some(timed(&runtime, items, read(&ours))?);
        if ordered.refusal.is_none() {
            match timed(&runtime, items, read_published(&theirs)) {
                Ok(time) => round[1] = Some(time),
                Err(error) => ordered.refusal = Some(error),
            }
        }
        ordered.rounds.push(round);
    }
    Ok(ordered)
}

/// Makes items, many at a time.
pub async fn fill(peri: &Peri, container: &str, items: u64) -> Result<(), String> {
    peri.new_container(container, Indexing::Everything).await?;
    let shape = Shape { work: Work::Create, wire: Wire::Http2, in_flight: 64 };
    let workers = Worker::all(Kind::Perihelion, shape, peri, container).await?;
    let step = workers.len();
    let tasks: Vec<_> = workers
        .into_iter()
        .enumerate()
        .map(|(first, mut worker)| {
            tokio::spawn(async move {
                for number in (first as u64..items).step_by(step) {
                    worker.create(number, crate::item::json(number).into_bytes()).await?;
                }
                Ok::<_, String>(())
            })
        })
        .collect();
    for task in tasks {
        task.await.map_err(|error| error.to_string())??;
    }
    Ok(())
}

fn timed(
    runtime: &Runtime,
    items: u64,
    read: impl Future<Output = Result<InOrder, String>>,
) -> Result<(f64, f64), String> {
    let (processor, begun) = (clock::processor_time(), clock::now());
    let seen = runtime.block_on(read)?;
    let took = (clock::now() - begun).as_secs_f64();
    if seen.count != items {
        return Err(format!("{} rows instead of {items}", seen.count));
    }
    Ok((took, (clock::processor_time() - processor).as_secs_f64()))
}

async fn read(driver: &CosmosDriver) -> Result<InOrder, String> {
    let name = ContainerName::new(DATABASE, CONTAINER);
    let paging = QueryOptions::new().with_page_items(PAGE_ITEMS);
    let pages = driver.query(&name, QUERY, &paging, &OperationOptions::new()).await;
    let mut pages = pages.map_err(|error| error.to_string())?;
    let mut seen = InOrder::default();
    while let Some(page) = pages.next_page().await.map_err(|error| error.to_string())? {
        page.rows.iter().try_for_each(|row| seen.see(row))?;
    }
    Ok(seen)
}

async fn read_published(driver: &PublishedDriver) -> Result<InOrder, String> {
    let options = subject::published_options;
    let container = driver.resolve_container(DATABASE, CONTAINER, options()).await;
    let container = container.map_err(|error| error.to_string())?;
    let operation = CosmosOperation::query_items(container.clone(), Some(FeedRange::full()))
        .with_max_item_count(MaxItemCountHint::Limit(PAGE_ITEMS))
        .with_body(QUERY.as_bytes().to_vec());
    let plan = Box::pin(driver.plan_operation(operation, &options(), None, &PlanOptions::default())).await;
    let mut plan = plan.map_err(|error| error.to_string())?;
    let mut seen = InOrder::default();
    loop {
        let page = driver.execute_plan(&mut plan, Some(container.clone()), options()).await;
        let Some(page) = page.map_err(|error| error.to_string())? else { return Ok(seen) };
        let rows: Vec<Bytes> = page.into_body().items().map_err(|error| error.to_string())?;
        rows.iter().try_for_each(|row| seen.see(row))?;
    }
}

/// Rows that came in order.
#[derive(Debug, Default)]
struct InOrder {
    count: u64,
    last: u64,
}

impl InOrder {
    fn see(&mut self, row: &[u8]) -> Result<(), String> {
        const RANK: &[u8] = br#""rank":"#;
        let at = row.windows(RANK.len()).position(|window| window == RANK).ok_or("a row has no rank")?;
        let digits = row[at + RANK.len()..].iter().take_while(|byte| byte.is_ascii_digit());
        let rank = digits.fold(0_u64, |rank, digit| rank * 10 + u64::from(digit - b'0'));
        if rank < self.last {
            return Err(format!("rank {rank} comes after {}", self.last));
        }
        (self.count, self.last) = (self.count + 1, rank);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_out_of_order_are_noticed() {
        let mut seen = InOrder::default();
        for (row, fine) in
            [(r#"{"rank":7,"a":1}"#, true), (r#"{"a":1,"rank":12}"#, true), (r#"{"rank":8}"#, false)]
        {
            assert_eq!(seen.see(row.as_bytes()).is_ok(), fine, "{row}");
        }
        assert_eq!(seen.count, 2);
    }
}
