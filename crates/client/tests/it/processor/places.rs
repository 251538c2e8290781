//! Where a processor is, and how it is sent elsewhere.

use std::time::Duration;

use emulator::clock::Clock;
use perihelion::{BatchContext, ChangeFeedMode, ChangeFeedStart, HandlerError, ProcessorStart};
use serde_json::Value;

use super::{PATIENCE, Plant, Reading, Told, eventually};

#[tokio::test]
async fn lag_is_told_from_outside_while_nothing_runs_and_while_something_does() {
    let plant = Plant::start(3).await;
    plant.write(0..30, 1).await;
    let told = Told::new();
    let running = told.start(plant.processor("p")).await;
    told.until_all(0..30, 1).await;
    let outside = plant.elsewhere();
    eventually("no lag", async || {
        (outside.processor("p").lag().await.expect("a lag").total() == 0).then_some(())
    })
    .await;
    eventually("no lag inside", async || (running.status().lag() == 0).then_some(())).await;
    running.stop().await.expect("stopped");

    plant.write(0..30, 2).await;
    let lag = outside.processor("p").lag().await.expect("a lag");
    assert_eq!(lag.total(), 30, "{lag:?}");
    assert_eq!(lag.ranges.len(), 3);
    assert!(lag.oldest().is_some() && lag.ranges.iter().all(|range| range.owner.is_none()), "{lag:?}");

    // A partition that splits meanwhile is no reason not to know.
    let partition = plant.partitions().await.remove(0);
    plant.split(partition).await;
    let lag = outside.processor("p").lag().await.expect("a lag");
    assert!(lag.total() >= 30 && lag.ranges.len() == 4, "{lag:?}");
    let running = told.start(plant.processor("p")).await;
    told.until_all(0..30, 2).await;
    eventually("no lag again", async || (running.lag().await.expect("a lag").total() == 0).then_some(()))
        .await;
    running.stop().await.expect("stopped");
}

#[tokio::test]
async fn a_rewind_sends_running_instances_back_and_ahead() {
    let plant = Plant::start(2).await;
    plant.write(0..10, 1).await;
    let told = Told::new();
    let first = told.start(plant.processor("p").instance("first")).await;
    let second = told.start(plant.elsewhere().processor("p").instance("second")).await;
    told.until_all(0..10, 1).await;
    let before = told.len();
    let generation =
        plant.elsewhere().processor("p").rewind(ChangeFeedStart::Beginning).await.expect("rewound");
    assert_eq!(generation, 2);
    told.until("everything again", |told| told.by_sensor().values().all(|numbers| numbers.len() >= 2)).await;
    assert!(told.len() >= before + 10);
    let leases = plant.processor("p").leases().await.expect("listed");
    assert!(leases.iter().all(|lease| lease.generation == 2), "{leases:?}");

    // Nothing runs, much is written, and none of it is wanted.
    first.stop().await.expect("stopped");
    second.stop().await.expect("stopped");
    plant.write(0..10, 2).await;
    assert_eq!(plant.processor("p").rewind(ChangeFeedStart::Now).await.expect("rewound"), 3);
    plant.write(0..10, 3).await;
    let ahead = Told::new();
    let running = ahead.start(plant.processor("p")).await;
    ahead.until_all(0..10, 3).await;
    running.stop().await.expect("stopped");
    assert!(ahead.by_sensor().values().all(|numbers| numbers == &[3]), "{:?}", ahead.by_sensor());
}

#[tokio::test]
async fn a_processor_begins_and_is_rewound_at_a_time() {
    let clock = Clock::system();
    clock.freeze();
    let plant = Plant::start_with(2, |config| config.clock = clock.clone()).await;
    plant.write(0..10, 1).await;
    clock.advance(Duration::from_secs(60));
    let later = clock.now().to_system_time();
    clock.advance(Duration::from_secs(60));
    plant.write(0..5, 2).await;
    let told = Told::new();
    let running = told.start(plant.processor("p").from(ProcessorStart::After(later))).await;
    told.until_all(0..5, 2).await;
    assert_eq!(told.len(), 5, "{:?}", told.by_sensor());
    running.processor().rewind(ChangeFeedStart::After(later)).await.expect("rewound");
    told.until("the same again", |told| told.len() == 10).await;
    running.processor().rewind(ChangeFeedStart::Beginning).await.expect("rewound");
    told.until_all(5..10, 1).await;
    running.stop().await.expect("stopped");
}

#[tokio::test]
async fn a_rewind_gets_a_processor_past_a_batch_that_always_fails() {
    let plant = Plant::start(1).await;
    plant.write(0..3, 1).await;
    let told = Told::new();
    let note = told.clone();
    let running = plant
        .processor("p")
        .retries(std::num::NonZeroU32::MIN, Duration::from_secs(3600), Duration::from_secs(3600))
        .start(move |readings: Vec<Reading>, context: BatchContext| {
            let bad = readings.iter().any(|reading| reading.number == 1);
            if !bad {
                note.note(readings, &context);
            }
            async move { if bad { Err("never") } else { Ok(()) } }
        })
        .await
        .expect("started");
    eventually("a failure", async || (running.status().failures > 0).then_some(())).await;
    running.processor().rewind(ChangeFeedStart::Now).await.expect("rewound");
    plant.write(0..3, 2).await;
    told.until_all(0..3, 2).await;
    running.stop().await.expect("stopped");
}

#[tokio::test]
async fn a_processor_begins_now_and_tells_all_versions_where_the_feed_does() {
    let plant = Plant::start(2).await;
    plant.write(0..5, 1).await;
    let (changes, mut told) = tokio::sync::mpsc::unbounded_channel::<Value>();
    let running = plant
        .processor("all")
        .mode(ChangeFeedMode::AllVersionsAndDeletes)
        .from(ProcessorStart::Now)
        .start(move |batch: Vec<Value>, _: BatchContext| {
            let sent = batch.into_iter().try_for_each(|change| changes.send(change));
            async move { sent.map_err(HandlerError::from) }
        })
        .await
        .expect("started");
    plant.write(3..4, 2).await;
    plant.write(3..4, 3).await;
    plant.container("readings").delete_item("s3", "s3").await.expect("deleted");
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let change = tokio::time::timeout(PATIENCE, told.recv()).await.expect("in time").expect("open");
        let kind = change["metadata"]["operationType"].as_str().expect("a kind").to_owned();
        seen.push((kind, change["current"]["number"].as_u64()));
    }
    let expected = [("replace".into(), Some(2)), ("replace".into(), Some(3)), ("delete".into(), None)];
    assert_eq!(seen, expected);
    running.stop().await.expect("stopped");
}
