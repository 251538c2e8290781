//! The cache of a container's partition key ranges, updated incrementally.
//!
//! `pkranges` is a feed of changes: the first read lists all ranges, later ones with the ETag of the
//! last only what split or merged since. [`read_ranges`] follows it to its end over a [`RangeFeed`],
//! which knows how to ask; the map itself is [`PartitionMap`].

use std::future::Future;
use std::sync::Arc;

use protocol::partition_range::PartitionKeyRange;
use serde::Deserialize;

use super::single_flight::SingleFlight;
use crate::error::{Error, ErrorKind};
use crate::routing::PartitionMap;

/// The most pages of one read; more than that is an error of the server.
const PAGES_MAX: usize = 1000;

/// The ranges of a container at one moment.
#[derive(Clone, Debug)]
pub struct PartitionRanges {
    map: PartitionMap,
    /// The ranges that are alive, as they were listed.
    listed: Vec<PartitionKeyRange>,
    /// Where the feed continues.
    etag: Option<String>,
}

impl PartitionRanges {
    /// The map of the EPK space.
    pub fn map(&self) -> &PartitionMap {
        &self.map
    }

    /// Where the feed of changes continues.
    pub fn etag(&self) -> Option<&str> {
        self.etag.as_deref()
    }

    /// The ranges after `changes`: those that others name as their parents are gone.
    fn after(listed: Vec<PartitionKeyRange>, etag: Option<String>) -> Result<PartitionRanges, Error> {
        let map = PartitionMap::new(listed.clone())
            .map_err(|error| Error::new(ErrorKind::Unavailable, error.to_string()).with_source(error))?;
        let listed = listed.into_iter().filter(|range| map.get(range.id).is_some()).collect();
        Ok(PartitionRanges { map, listed, etag })
    }
}

/// One page of the feed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RangePage {
    /// Nothing changed since the ETag.
    NotModified,
    /// Ranges that are new since the ETag.
    Ranges {
        /// The ranges that the page lists.
        ranges: Vec<PartitionKeyRange>,
        /// Where the feed continues.
        etag: Option<String>,
        /// Set when this page is not all of the response.
        continuation: Option<String>,
    },
}

/// Reads pages of partition ranges.
pub(crate) trait RangeFeed: Sync {
    /// The page after `etag`, or from the beginning; `continuation` continues within one response.
    fn page(
        &self,
        etag: Option<&str>,
        continuation: Option<&str>,
    ) -> impl Future<Output = Result<RangePage, Error>> + Send;
}

/// Follows the feed to its end: all ranges, or those that changed since `known`. What does not fit what
/// was known is read again from the beginning, once.
pub(crate) async fn read_ranges(
    known: Option<&PartitionRanges>,
    feed: &impl RangeFeed,
) -> Result<PartitionRanges, Error> {
    if let Some(known) = known
        && known.etag.is_some()
    {
        let (mut listed, etag) = read_all_pages(feed, known.etag.clone()).await?;
        listed.extend_from_slice(&known.listed);
        if let Ok(ranges) = PartitionRanges::after(distinct(listed), etag) {
            return Ok(ranges);
        }
    }
    let (listed, etag) = read_all_pages(feed, None).await?;
    PartitionRanges::after(distinct(listed), etag)
}

/// All that the feed has after `etag`, newest first, and where it continues.
async fn read_all_pages(
    feed: &impl RangeFeed,
    mut etag: Option<String>,
) -> Result<(Vec<PartitionKeyRange>, Option<String>), Error> {
    let mut listed = Vec::new();
    let mut continuation: Option<String> = None;
    for _ in 0..PAGES_MAX {
        match feed.page(etag.as_deref(), continuation.as_deref()).await? {
            RangePage::NotModified => return Ok((listed, etag)),
            RangePage::Ranges { ranges, etag: next, continuation: more } => {
                let changed = next.is_some() && next != etag;
                listed.splice(..0, ranges);
                continuation = more;
                if continuation.is_none() {
                    // Without a new ETag there is nothing to ask for: this was all.
                    if !changed {
                        return Ok((listed, next.or(etag)));
                    }
                    etag = next;
                }
            }
        }
    }
    Err(Error::new(ErrorKind::BadResponse, "the list of partition ranges does not end"))
}

/// The first of each id.
fn distinct(listed: Vec<PartitionKeyRange>) -> Vec<PartitionKeyRange> {
    let mut seen = std::collections::HashSet::with_capacity(listed.len());
    listed.into_iter().filter(|range| seen.insert(range.id)).collect()
}

/// Reads the body of one page.
pub(crate) fn parse_ranges(body: &[u8]) -> Result<Vec<PartitionKeyRange>, Error> {
    #[derive(Deserialize)]
    struct Body {
        #[serde(rename = "PartitionKeyRanges")]
        ranges: Vec<PartitionKeyRange>,
    }
    let body: Body = serde_json::from_slice(body).map_err(|error| {
        Error::new(
            ErrorKind::BadResponse,
            format!("the service did not respond with partition ranges: {error}"),
        )
    })?;
    Ok(body.ranges)
}

/// The newest partition ranges of one container.
#[derive(Debug)]
pub struct RangesCache(SingleFlight<(), Arc<PartitionRanges>>);

impl Default for RangesCache {
    fn default() -> RangesCache {
        RangesCache(SingleFlight::new(1))
    }
}

impl RangesCache {
    /// A cache without ranges.
    pub fn new() -> RangesCache {
        RangesCache::default()
    }

    /// The cached ranges, if there are any.
    pub fn peek(&self) -> Option<Arc<PartitionRanges>> {
        self.0.peek(&())
    }

    /// The ranges; fetched if they are not cached. `read` is usually [`read_ranges`] from the
    /// beginning. `stored` is called once with ranges that were fetched, before anyone gets them.
    pub async fn get<F>(
        &self,
        read: impl FnOnce() -> F,
        stored: impl FnOnce(&PartitionRanges),
    ) -> Result<Arc<PartitionRanges>, Error>
    where
        F: Future<Output = Result<PartitionRanges, Error>> + Send + 'static,
    {
        self.0.refresh_then(&(), |_| false, || shared(read()), |ranges| stored(ranges)).await
    }

    /// Ranges that were read after `known`, which a response contradicted. `read` is usually
    /// [`read_ranges`] with what was known. `stored` is called once with ranges that were fetched, before anyone gets
    /// them.
    pub async fn refresh<F>(
        &self,
        known: &Arc<PartitionRanges>,
        read: impl FnOnce() -> F,
        stored: impl FnOnce(&PartitionRanges),
    ) -> Result<Arc<PartitionRanges>, Error>
    where
        F: Future<Output = Result<PartitionRanges, Error>> + Send + 'static,
    {
        let is_stale = |current: &Arc<PartitionRanges>| Arc::ptr_eq(current, known);
        self.0.refresh_then(&(), is_stale, || shared(read()), |ranges| stored(ranges)).await
    }
}

async fn shared(
    read: impl Future<Output = Result<PartitionRanges, Error>>,
) -> Result<Arc<PartitionRanges>, Error> {
    read.await.map(Arc::new)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use protocol::partition::{EffectivePartitionKey, EpkRange};
    use protocol::partition_range::RangeId;
    use protocol::resource_id::{ContainerRid, DatabaseRid};

    use super::*;

    fn range(id: u32, min: &str, max: &str, parents: &[u32]) -> PartitionKeyRange {
        let key = |hex| EffectivePartitionKey::from_hex(hex).expect("hex");
        let container = ContainerRid { database: DatabaseRid(1), container: 1 };
        PartitionKeyRange {
            parents: parents.iter().map(|id| RangeId(*id)).collect(),
            ..PartitionKeyRange::new(container, RangeId(id), EpkRange::new(key(min), key(max)))
        }
    }

    /// The service: everything that ever happened, in order; the ETag is how much of it was read.
    /// Pages hold `page` ranges.
    struct Service {
        history: Mutex<Vec<PartitionKeyRange>>,
        live: Mutex<Vec<u32>>,
        page: usize,
        requests: Mutex<u32>,
    }

    impl Service {
        fn new(page: usize) -> Service {
            let history = Mutex::new(vec![range(0, "", "FF", &[])]);
            Service { history, live: Mutex::new(vec![0]), page, requests: Mutex::new(0) }
        }

        fn change(&self, gone: &[u32], new: Vec<PartitionKeyRange>) {
            let mut live = self.live.lock().expect("no panic");
            live.retain(|id| !gone.contains(id));
            live.extend(new.iter().map(|range| range.id.0));
            self.history.lock().expect("no panic").extend(new);
        }

        fn take_request_count(&self) -> u32 {
            std::mem::take(&mut *self.requests.lock().expect("no panic"))
        }
    }

    impl RangeFeed for Service {
        async fn page(&self, etag: Option<&str>, continuation: Option<&str>) -> Result<RangePage, Error> {
            *self.requests.lock().expect("no panic") += 1;
            let history = self.history.lock().expect("no panic");
            let live = self.live.lock().expect("no panic");
            let since = etag.map_or(0, |etag| etag.parse().expect("one of ours"));
            let news: Vec<_> = history[since..].iter().filter(|range| live.contains(&range.id.0)).collect();
            if since == history.len() {
                return Ok(RangePage::NotModified);
            }
            let from: usize = continuation.map_or(0, |from| from.parse().expect("one of ours"));
            let to = (from + self.page).min(news.len());
            Ok(RangePage::Ranges {
                ranges: news[from..to].iter().map(|range| (*range).clone()).collect(),
                etag: Some(history.len().to_string()),
                continuation: (to < news.len()).then(|| to.to_string()),
            })
        }
    }

    fn ids(ranges: &PartitionRanges) -> Vec<u32> {
        ranges.map().partitions().iter().map(|partition| partition.id.0).collect()
    }

    #[tokio::test]
    async fn later_reads_bring_only_what_changed() {
        for page in [1, 2, 100] {
            let service = Service::new(page);
            let first = read_ranges(None, &service).await.expect("listed");
            assert_eq!((ids(&first), service.take_request_count()), (vec![0], 2));
            let same = read_ranges(Some(&first), &service).await.expect("nothing new");
            assert_eq!((ids(&same), service.take_request_count()), (vec![0], 1));
            service.change(&[0], vec![range(1, "", "80", &[0]), range(2, "80", "FF", &[0])]);
            let split = read_ranges(Some(&same), &service).await.expect("a split");
            assert_eq!(ids(&split), [1, 2]);
            service.change(&[2], vec![range(3, "80", "C0", &[0, 2]), range(4, "C0", "FF", &[0, 2])]);
            service.change(&[3, 4], vec![range(5, "80", "FF", &[0, 2, 3, 4])]);
            let merged = read_ranges(Some(&split), &service).await.expect("a split and a merge");
            assert_eq!(ids(&merged), [1, 5]);
            assert_eq!(merged.map().get(RangeId(5)).expect("alive").parents.len(), 4);
            let late = read_ranges(Some(&first), &service).await.expect("all of it at once");
            assert_eq!(ids(&late), [1, 5]);
        }
    }

    #[tokio::test]
    async fn what_does_not_fit_is_read_again_from_the_beginning() {
        let service = Service::new(100);
        let known = read_ranges(None, &service).await.expect("listed");
        // The map that was known is of another layout, which lacks half of the EPK space.
        let other = Service::new(100);
        other.change(&[0], vec![range(7, "", "40", &[])]);
        other.change(&[], vec![range(8, "40", "FF", &[])]);
        let ranges = read_ranges(Some(&known), &other).await.expect("read again");
        assert_eq!(ids(&ranges), [7, 8]);
    }

    #[tokio::test]
    async fn ranges_with_a_gap_are_a_transient_error() {
        let service = Service::new(100);
        service.change(&[0], vec![range(1, "", "80", &[0])]);
        let error = read_ranges(None, &service).await.expect_err("half of the EPK space");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("80"), "{error}");
    }

    #[tokio::test]
    async fn a_feed_that_never_ends_is_given_up() {
        struct Endless;
        impl RangeFeed for Endless {
            async fn page(&self, etag: Option<&str>, _: Option<&str>) -> Result<RangePage, Error> {
                let next = etag.map_or(0, |etag| etag.parse::<u32>().expect("one of ours")) + 1;
                Ok(RangePage::Ranges { ranges: vec![], etag: Some(next.to_string()), continuation: None })
            }
        }
        let error = read_ranges(None, &Endless).await.expect_err("endless");
        assert_eq!(error.kind(), ErrorKind::BadResponse);
    }

    #[test]
    fn a_page_is_read_whatever_else_it_says() {
        let body = br#"{"_rid":"AAAAAIAAAAA=","PartitionKeyRanges":[{"_rid":"AAAAAIAAAAACAAAAAAAAUA==","id":"0",
            "_etag":"\"1\"","minInclusive":"","maxExclusive":"FF","_self":"x","_ts":1,"newer":true}],"_count":1}"#;
        assert_eq!(parse_ranges(body).expect("ranges")[0].id, RangeId(0));
        for body in [&b""[..], b"{}", br#"{"PartitionKeyRanges":[{}]}"#] {
            assert_eq!(parse_ranges(body).expect_err("no ranges").kind(), ErrorKind::BadResponse);
        }
    }
}
