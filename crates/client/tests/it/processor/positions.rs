//! The lag and the positions of a processor, and rewinds.

use std::time::Duration;

use emulator::clock::Clock;
use perihelion::{BatchContext, ChangeFeedMode, ChangeFeedStart, HandlerError, ProcessorStart};
use serde_json::Value;

use super::{EVENT_TIMEOUT, Fixture, Reading, Received, eventually};

#[tokio::test]
async fn lag_is_estimated_from_another_process_with_and_without_instances() {
    let fixture = Fixture::start(3).await;
    fixture.write(0..30, 1).await;
    let received = Received::new();
    let running = received.start(fixture.processor("p")).await;
    received.until_all(0..30, 1).await;
    let outside = fixture.other_process();
    eventually("no lag", async || {
        (outside.processor("p").lag().await.expect("a lag").total() == 0).then_some(())
    })
    .await;
    eventually("no lag inside", async || (running.status().lag() == 0).then_some(())).await;
    running.stop().await.expect("stopped");

    fixture.write(0..30, 2).await;
    let lag = outside.processor("p").lag().await.expect("a lag");
    assert_eq!(lag.total(), 30, "{lag:?}");
    assert_eq!(lag.ranges.len(), 3);
    assert!(lag.oldest().is_some() && lag.ranges.iter().all(|range| range.owner.is_none()), "{lag:?}");

    // The lag is known although a partition was split.
    let partition = fixture.partitions().await.remove(0);
    fixture.split(partition).await;
    let lag = outside.processor("p").lag().await.expect("a lag");
    assert!(lag.total() >= 30 && lag.ranges.len() == 4, "{lag:?}");
    let running = received.start(fixture.processor("p")).await;
    received.until_all(0..30, 2).await;
    eventually("no lag again", async || (running.lag().await.expect("a lag").total() == 0).then_some(()))
        .await;
    running.stop().await.expect("stopped");
}

#[tokio::test]
async fn a_rewind_moves_running_instances_backward_and_forward() {
    let fixture = Fixture::start(2).await;
    fixture.write(0..10, 1).await;
    let received = Received::new();
    let first = received.start(fixture.processor("p").instance("first")).await;
    let second = received.start(fixture.other_process().processor("p").instance("second")).await;
    received.until_all(0..10, 1).await;
    let before = received.len();
    let generation =
        fixture.other_process().processor("p").rewind(ChangeFeedStart::Beginning).await.expect("rewound");
    assert_eq!(generation, 2);
    received
        .until("everything again", |received| received.by_sensor().values().all(|numbers| numbers.len() >= 2))
        .await;
    assert!(received.len() >= before + 10);
    let leases = fixture.processor("p").leases().await.expect("listed");
    assert!(leases.iter().all(|lease| lease.generation == 2), "{leases:?}");

    // Writes before a rewind to now are skipped.
    first.stop().await.expect("stopped");
    second.stop().await.expect("stopped");
    fixture.write(0..10, 2).await;
    assert_eq!(fixture.processor("p").rewind(ChangeFeedStart::Now).await.expect("rewound"), 3);
    fixture.write(0..10, 3).await;
    let ahead = Received::new();
    let running = ahead.start(fixture.processor("p")).await;
    ahead.until_all(0..10, 3).await;
    running.stop().await.expect("stopped");
    assert!(ahead.by_sensor().values().all(|numbers| numbers == &[3]), "{:?}", ahead.by_sensor());
}

#[tokio::test]
async fn a_processor_starts_and_is_rewound_at_a_point_in_time() {
    let clock = Clock::system();
    clock.freeze();
    let fixture = Fixture::start_with(2, |config| config.clock = clock.clone()).await;
    fixture.write(0..10, 1).await;
    clock.advance(Duration::from_secs(60));
    let later = clock.now().to_system_time();
    clock.advance(Duration::from_secs(60));
    fixture.write(0..5, 2).await;
    let received = Received::new();
    let running = received.start(fixture.processor("p").from(ProcessorStart::After(later))).await;
    received.until_all(0..5, 2).await;
    assert_eq!(received.len(), 5, "{:?}", received.by_sensor());
    running.processor().rewind(ChangeFeedStart::After(later)).await.expect("rewound");
    received.until("the same again", |received| received.len() == 10).await;
    running.processor().rewind(ChangeFeedStart::Beginning).await.expect("rewound");
    received.until_all(5..10, 1).await;
    running.stop().await.expect("stopped");
}

#[tokio::test]
async fn a_rewind_gets_a_processor_past_a_batch_that_always_fails() {
    let fixture = Fixture::start(1).await;
    fixture.write(0..3, 1).await;
    let received = Received::new();
    let recorder = received.clone();
    let running = fixture
        .processor("p")
        .retries(std::num::NonZeroU32::MIN, Duration::from_secs(3600), Duration::from_secs(3600))
        .start(move |readings: Vec<Reading>, context: BatchContext| {
            let bad = readings.iter().any(|reading| reading.number == 1);
            if !bad {
                recorder.record(readings, &context);
            }
            async move { if bad { Err("never") } else { Ok(()) } }
        })
        .await
        .expect("started");
    eventually("a failure", async || (running.status().failures > 0).then_some(())).await;
    running.processor().rewind(ChangeFeedStart::Now).await.expect("rewound");
    fixture.write(0..3, 2).await;
    received.until_all(0..3, 2).await;
    running.stop().await.expect("stopped");
}

#[tokio::test]
async fn a_processor_starts_now_and_delivers_all_versions_in_that_mode() {
    let fixture = Fixture::start(2).await;
    fixture.write(0..5, 1).await;
    let (changes, mut received) = tokio::sync::mpsc::unbounded_channel::<Value>();
    let running = fixture
        .processor("all")
        .mode(ChangeFeedMode::AllVersionsAndDeletes)
        .from(ProcessorStart::Now)
        .start(move |batch: Vec<Value>, _: BatchContext| {
            let sent = batch.into_iter().try_for_each(|change| changes.send(change));
            async move { sent.map_err(HandlerError::from) }
        })
        .await
        .expect("started");
    fixture.write(3..4, 2).await;
    fixture.write(3..4, 3).await;
    fixture.container("readings").delete_item("s3", "s3").await.expect("deleted");
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let change =
            tokio::time::timeout(EVENT_TIMEOUT, received.recv()).await.expect("in time").expect("open");
        let kind = change["metadata"]["operationType"].as_str().expect("a kind").to_owned();
        seen.push((kind, change["current"]["number"].as_u64()));
    }
    let expected = [("replace".into(), Some(2)), ("replace".into(), Some(3)), ("delete".into(), None)];
    assert_eq!(seen, expected);
    running.stop().await.expect("stopped");
}
