//! Random writes, random splits between any two requests, readers that stop and resume in another process: every
//! change is delivered once, in the order of its logical partition.

use std::collections::BTreeMap;
use std::sync::Mutex;

use proptest::prelude::*;
use protocol::container::PartitionKeyDefinition;
use protocol::partition::{EffectivePartitionKey, PartitionKey, effective_key, even_split, split_point};

use super::*;

/// A simulated container and its partitions.
#[derive(Debug)]
struct Simulation {
    definition: PartitionKeyDefinition,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    partitions: Vec<EffectivePartitionKey>,
    /// Every write: its place, its key and its number, which only ever grows.
    log: Vec<(EffectivePartitionKey, u32, u64)>,
    split_next: bool,
    fail_next: bool,
}

impl Simulation {
    fn new(partitions: usize) -> Simulation {
        let definition = PartitionKeyDefinition::hash("/pk").expect("a path");
        let partitions = even_split(&definition, partitions).into_iter().map(|range| range.min).collect();
        let state = State { partitions, log: Vec::new(), split_next: false, fail_next: false };
        Simulation { definition, state: Mutex::new(state) }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }

    fn write(&self, key: u32) {
        let place = effective_key(&self.definition, &PartitionKey::single(format!("k{key}")));
        let mut state = self.state();
        let number = state.log.len() as u64 + 1;
        state.log.push((place, key, number));
    }
}

impl ChangeSource for Simulation {
    async fn changes(&self, request: ChangeRequest) -> Result<Changes, PageError> {
        let mut state = self.state();
        if std::mem::take(&mut state.fail_next) {
            return Err(Error::new(ErrorKind::Unavailable, "not now").into());
        }
        let at = state.partitions.partition_point(|min| *min <= request.range.min) - 1;
        let max = state.partitions.get(at + 1).cloned().unwrap_or(EffectivePartitionKey::MAX);
        let whole = EpkRange::new(state.partitions[at].clone(), max);
        if std::mem::take(&mut state.split_next)
            && let Some(middle) = split_point(&self.definition, &whole)
        {
            state.partitions.insert(at + 1, middle);
            return Err(PageError::Gone);
        }
        if !whole.covers(&request.range) {
            return Err(PageError::Gone);
        }
        let end = state.log.len() as u64;
        let since = match &request.since {
            FeedPosition::Beginning | FeedPosition::Time(_) => 0,
            FeedPosition::Now => end,
            FeedPosition::Etag(etag) => etag.parse().expect("one of ours"),
        };
        let news: Vec<&(EffectivePartitionKey, u32, u64)> = state
            .log
            .iter()
            .filter(|(place, _, number)| *number > since && request.range.contains(place))
            .collect();
        // The latest version of each key, in the order of those writes.
        let delivered: Vec<_> = news
            .iter()
            .filter(|(_, key, number)| {
                request.mode == ChangeFeedMode::AllVersionsAndDeletes
                    || !news.iter().any(|(_, other, later)| other == key && later > number)
            })
            .take(request.items_max.map_or(usize::MAX, |items| items.get() as usize))
            .collect();
        let etag = delivered.last().map_or(since, |(_, _, number)| *number);
        let items: Vec<String> =
            delivered.iter().map(|(_, key, number)| format!("[{key},{number}]")).collect();
        let body = if items.is_empty() {
            String::new()
        } else {
            format!(r#"{{"Documents":[{}]}}"#, items.join(","))
        };
        Ok(Changes {
            body: body.into(),
            etag: etag.to_string(),
            lsn: Some(end),
            charge: 1.0,
            diagnostics: None,
            headers: ResponseHeaders::default(),
        })
    }

    async fn divide(&self, range: EpkRange, _: bool) -> Result<Vec<EpkRange>, Error> {
        let state = self.state();
        let ends = state.partitions.iter().skip(1).cloned().chain([EffectivePartitionKey::MAX]);
        let all = state.partitions.iter().cloned().zip(ends).map(|(min, max)| EpkRange::new(min, max));
        Ok(all.filter_map(|partition| partition.intersect(&range)).collect())
    }
}

fn on_tokio<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(work)
}

#[derive(Clone, Debug)]
enum Event {
    Write(u32),
    Read,
    Split,
    Fail,
    Stop,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (0u32..12).prop_map(Event::Write),
        4 => Just(Event::Read),
        1 => Just(Event::Split),
        1 => Just(Event::Fail),
        1 => Just(Event::Stop),
    ];
    prop::collection::vec(event, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_change_is_delivered_once_and_in_order(
        before in prop::collection::vec(0u32..12, 0..10),
        events in events(),
        partitions in 1usize..4,
        mode in prop_oneof![Just(ChangeFeedMode::LatestVersion), Just(ChangeFeedMode::AllVersionsAndDeletes)],
        page_items in prop::option::of(1u32..4),
    ) {
        let simulation = Arc::new(Simulation::new(partitions));
        before.iter().for_each(|key| simulation.write(*key));
        let delivered = on_tokio(async {
            let mut options = ChangeFeedOptions { page_items: page_items.and_then(NonZeroU32::new), ..Default::default() }
                .with_mode(mode)
                .with_start(ChangeFeedStart::Now);
            let mut feed = ChangeFeed::start(Arc::clone(&simulation), "rid", options.clone()).await.expect("a feed");
            let mut delivered: Vec<(u32, u64)> = Vec::new();
            let take = |page: ChangePage, delivered: &mut Vec<(u32, u64)>| {
                for item in &page.items {
                    delivered.push(serde_json::from_slice(item).expect("a change"));
                }
                page.caught_up()
            };
            for event in events {
                match event {
                    Event::Write(key) => simulation.write(key),
                    Event::Split => simulation.state().split_next = true,
                    Event::Fail => simulation.state().fail_next = true,
                    Event::Read => if let Ok(page) = feed.next_page().await {
                        take(page, &mut delivered);
                    },
                    Event::Stop => {
                        options = options.with_continuation(feed.continuation());
                        feed = ChangeFeed::start(Arc::clone(&simulation), "rid", options.clone()).await.expect("goes on");
                    }
                }
            }
            loop {
                match feed.next_page().await {
                    Ok(page) => if take(page, &mut delivered) { return delivered },
                    Err(error) => assert_eq!(error.message(), "not now"),
                }
            }
        });
        // Each key's writes in order, none twice, the last one always; with all versions, every one.
        let mut by_key: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for (key, number) in delivered {
            by_key.entry(key).or_default().push(number);
        }
        let mut written: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for (_, key, number) in simulation.state().log.iter().skip(before.len()) {
            written.entry(*key).or_default().push(*number);
        }
        if mode == ChangeFeedMode::AllVersionsAndDeletes {
            prop_assert_eq!(by_key, written);
        } else {
            prop_assert_eq!(by_key.keys().collect::<Vec<_>>(), written.keys().collect::<Vec<_>>());
            for (key, delivered) in by_key {
                prop_assert!(delivered.is_sorted_by(|earlier, later| earlier < later), "{delivered:?}");
                prop_assert!(delivered.iter().all(|number| written[&key].contains(number)));
                prop_assert_eq!(delivered.last(), written[&key].last());
            }
        }
    }
}

#[test]
fn from_the_beginning_everything_is_delivered_and_then_the_feed_is_caught_up() {
    on_tokio(async {
        let simulation = Arc::new(Simulation::new(3));
        (0..9).for_each(|key| simulation.write(key));
        let options = ChangeFeedOptions::new().with_start(ChangeFeedStart::Beginning);
        let mut feed = ChangeFeed::start(Arc::clone(&simulation), "rid", options).await.expect("a feed");
        let mut delivered = 0;
        loop {
            let page = feed.next_page().await.expect("a page");
            if page.caught_up() {
                break;
            }
            assert!(page.range.is_some() && page.charge > 0.0);
            delivered += page.items.len();
        }
        assert_eq!(delivered, 9);
        assert!(feed.next_page().await.expect("a page").caught_up());
        simulation.write(3);
        assert_eq!(feed.next_page().await.expect("a page").items.len(), 1);
    });
}

#[test]
fn all_versions_cannot_start_in_the_past() {
    on_tokio(async {
        let simulation = Arc::new(Simulation::new(1));
        let options = ChangeFeedOptions::new().with_mode(ChangeFeedMode::AllVersionsAndDeletes);
        for start in [ChangeFeedStart::Beginning, ChangeFeedStart::After(SystemTime::UNIX_EPOCH)] {
            let started =
                ChangeFeed::start(Arc::clone(&simulation), "rid", options.clone().with_start(start)).await;
            let error = started.expect_err("not kept");
            assert_eq!(error.kind(), ErrorKind::BadRequest);
            assert!(error.message().contains("start now"), "{error}");
        }
    });
}
