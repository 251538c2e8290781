//! The request charge of operations. Pure functions of sizes and counts.
//!
//! The figures are those the service publishes for point operations; for queries, which it prices
//! by an unpublished formula, a fit that depends on the work alone, so that a result read in ten
//! pages costs what it costs in one.

use protocol::account::ConsistencyLevel;

/// Request units of reading and of writing an item, by its size.
const PRICES: [(f64, f64, f64); 12] = [
    (1.0, 1.00, 4.95),
    (2.0, 1.04, 6.29),
    (4.0, 1.14, 6.67),
    (8.0, 1.33, 7.04),
    (16.0, 1.67, 9.52),
    (32.0, 2.19, 11.23),
    (64.0, 4.76, 22.67),
    (128.0, 9.95, 48.19),
    (256.0, 20.28, 98.29),
    (512.0, 40.95, 184.57),
    (1024.0, 145.90, 625.00),
    (2048.0, 291.80, 1250.00),
];

const TERM: f64 = 0.2;
const PATCH_OPERATION: f64 = 0.4;
const QUERY_BASE: f64 = 2.0;
const QUERY_DOCUMENT_LOADED: f64 = 0.045;
const QUERY_DOCUMENT_REJECTED: f64 = 0.02;
const QUERY_OUTPUT_KILOBYTE: f64 = 0.02;
const QUERY_PAGE_MIN: f64 = 0.01;

/// A request that found nothing or was rejected before any work.
pub const NOT_FOUND: f64 = 1.0;
/// A write that conflicts with an existing item.
pub const CONFLICT: f64 = 1.24;
/// A read or write whose precondition did not hold.
pub const PRECONDITION_FAILED: f64 = 1.24;
/// A request that was throttled. The service states this charge, and takes nothing from the bucket.
pub const THROTTLED: f64 = 0.38;
/// Reading a resource that is not an item.
pub const METADATA_READ: f64 = 1.0;

/// Reading an item of `bytes`.
pub fn read(bytes: usize) -> f64 {
    interpolate(bytes, |(_, read, _)| *read)
}

/// Reading a page of `items` that have `bytes` together: as much as reading each, and never nothing.
pub fn feed(items: usize, bytes: usize) -> f64 {
    match items {
        0 => NOT_FOUND,
        _ => items as f64 * read(bytes / items),
    }
}

/// The factor of a read's charge at this level: the stronger two read from two replicas.
pub fn read_factor(level: ConsistencyLevel) -> f64 {
    match level {
        ConsistencyLevel::Strong | ConsistencyLevel::BoundedStaleness => 2.0,
        ConsistencyLevel::Session | ConsistencyLevel::ConsistentPrefix | ConsistencyLevel::Eventual => 1.0,
    }
}

/// Creating an item of `bytes` with `terms` indexed values; deleting one costs the same.
pub fn create(bytes: usize, terms: usize) -> f64 {
    write(bytes) + TERM * terms as f64
}

/// Replacing an item, where `terms_changed` index entries went or came.
pub fn replace(old_bytes: usize, new_bytes: usize, terms_changed: usize) -> f64 {
    write(old_bytes) + write(new_bytes) + TERM * terms_changed as f64
}

/// What a patch costs on top of the replacement it makes.
pub fn patch(operations: usize) -> f64 {
    PATCH_OPERATION * operations as f64
}

/// The work one page of a query took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueryWork {
    /// Partitions whose first page this is.
    pub(crate) partitions_begun: usize,
    /// Items read that contributed to the result.
    pub(crate) loaded: usize,
    /// Items read that did not contribute.
    pub(crate) rejected: usize,
    /// Bytes of the result.
    pub(crate) output_bytes: usize,
}

/// One page of a query.
pub fn query(work: QueryWork) -> f64 {
    let charge = QUERY_BASE * work.partitions_begun as f64
        + QUERY_DOCUMENT_LOADED * work.loaded as f64
        + QUERY_DOCUMENT_REJECTED * work.rejected as f64
        + QUERY_OUTPUT_KILOBYTE * work.output_bytes as f64 / 1024.0;
    charge.max(QUERY_PAGE_MIN)
}

fn write(bytes: usize) -> f64 {
    interpolate(bytes, |(_, _, write)| *write)
}

/// Linear between the published sizes; below the first its price, beyond the last its slope.
fn interpolate(bytes: usize, price: impl Fn(&(f64, f64, f64)) -> f64) -> f64 {
    let kilobytes = bytes as f64 / 1024.0;
    let (first, last) = (&PRICES[0], PRICES.len() - 1);
    if kilobytes <= first.0 {
        return price(first);
    }
    let above = PRICES.partition_point(|(size, _, _)| *size < kilobytes).min(last);
    let (low, high) = (&PRICES[above - 1], &PRICES[above]);
    price(low) + (price(high) - price(low)) * (kilobytes - low.0) / (high.0 - low.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_sizes_have_their_published_prices() {
        for (kilobytes, read_price, write_price) in PRICES {
            let bytes = (kilobytes * 1024.0) as usize;
            assert!((read(bytes) - read_price).abs() < 1e-9);
            assert!((write(bytes) - write_price).abs() < 1e-9);
        }
        assert_eq!(read(10), 1.0);
        assert!((read(3 * 1024) - 1.09).abs() < 1e-9);
    }

    #[test]
    fn charges_match_the_model_s_examples() {
        assert!((create(1024, 10) - 6.95).abs() < 1e-9);
        assert!((replace(1024, 1024, 4) - 10.7).abs() < 1e-9);
    }

    #[test]
    fn a_feed_costs_what_its_items_cost() {
        assert_eq!(feed(0, 0), 1.0);
        assert_eq!(feed(1, 300), 1.0);
        assert_eq!(feed(100, 100 * 1024), 100.0);
        assert!((feed(10, 10 * 16 * 1024) - 16.7).abs() < 1e-9);
    }

    #[test]
    fn stronger_reads_cost_twice() {
        let factors = [
            (ConsistencyLevel::Strong, 2.0),
            (ConsistencyLevel::BoundedStaleness, 2.0),
            (ConsistencyLevel::Session, 1.0),
            (ConsistencyLevel::ConsistentPrefix, 1.0),
            (ConsistencyLevel::Eventual, 1.0),
        ];
        for (level, factor) in factors {
            assert_eq!(read_factor(level), factor, "{level:?}");
        }
    }

    #[test]
    fn a_query_costs_the_same_in_ten_pages_as_in_one() {
        let all = QueryWork { partitions_begun: 1, loaded: 100, rejected: 0, output_bytes: 102_400 };
        let page = QueryWork { partitions_begun: 0, loaded: 10, rejected: 0, output_bytes: 10_240 };
        let paged = query(QueryWork { partitions_begun: 1, ..page }) + 9.0 * query(page);
        assert!((paged - query(all)).abs() < 1e-6);
    }
}
