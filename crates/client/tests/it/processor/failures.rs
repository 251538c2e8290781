//! Handlers that fail, and containers that cannot store leases.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use emulator::faults::{ConnectionEffect, FaultRule};
use perihelion::{BatchContext, DeadLetter, ErrorKind, HandlerError, ProcessorStart};
use serde_json::json;

use super::{Fixture, Reading, Received, eventually};

#[tokio::test]
async fn a_change_that_cannot_be_handled_goes_to_the_hook_alone_and_the_rest_is_handled() {
    let fixture = Fixture::start(1).await;
    fixture.write(0..12, 1).await;
    // An item that cannot be deserialized into a reading.
    let odd = json!({"id": "odd", "sensor": "odd"});
    fixture.container("readings").create_item("odd", &odd).await.expect("written");
    let (received, letters) = (Received::new(), Arc::new(Mutex::new(Vec::<DeadLetter>::new())));
    let (recorder, keep) = (received.clone(), Arc::clone(&letters));
    let hook_fails = AtomicBool::new(true);
    let running = fixture
        .processor("p")
        .on_dead_letter(move |letter| {
            // The first time the hook fails as well: nothing may be skipped for that.
            let fails = hook_fails.swap(false, Ordering::Relaxed);
            if !fails {
                keep.lock().expect("no panic").push(letter);
            }
            async move { if fails { Err("the hook is not ready") } else { Ok(()) } }
        })
        .start(move |readings: Vec<Reading>, context: BatchContext| {
            let poisoned = readings.iter().any(|reading| reading.id == "s7");
            if !poisoned {
                recorder.record(readings, &context);
            }
            async move { if poisoned { Err("s7 is too hot") } else { Ok(()) } }
        })
        .await
        .expect("started");
    received.until_all(0..7, 1).await;
    received.until_all(8..12, 1).await;
    fixture.write(0..7, 2).await;
    received.until_all(0..7, 2).await;
    let status = running.status();
    assert_eq!(status.dead_letters, 2, "{status:?}");
    assert!(status.failures >= 6, "{status:?}");
    running.stop().await.expect("stopped");
    let letters = letters.lock().expect("no panic");
    let hot = letters.iter().find(|letter| letter.error.contains("too hot")).expect("s7");
    assert_eq!((hot.attempts, hot.read::<Reading>().expect("a reading").id.as_str()), (3, "s7"));
    let odd = letters.iter().find(|letter| letter.attempts == 1).expect("the odd one");
    assert!(odd.error.contains("missing field `number`"), "{}", odd.error);
    assert!(odd.read::<Reading>().is_err());
    assert_eq!(letters.len(), 2);
}

#[tokio::test]
async fn without_a_hook_a_batch_is_retried_until_it_succeeds_and_the_status_shows_it() {
    let fixture = Fixture::start(1).await;
    fixture.write(0..3, 1).await;
    let broken = Arc::new(AtomicBool::new(true));
    let (received, attempts) = (Received::new(), Arc::new(AtomicU32::new(0)));
    let (recorder, fails, tried) = (received.clone(), Arc::clone(&broken), Arc::clone(&attempts));
    let running = fixture
        .processor("p")
        .start(move |readings: Vec<Reading>, context: BatchContext| {
            tried.store(context.attempts + 1, Ordering::Relaxed);
            let fails = fails.load(Ordering::Relaxed);
            if !fails {
                recorder.record(readings, &context);
            }
            async move { if fails { Err("not today") } else { Ok(()) } }
        })
        .await
        .expect("started");
    // More attempts than a processor with a hook would make.
    eventually("ten attempts", async || (attempts.load(Ordering::Relaxed) >= 10).then_some(())).await;
    let lease = running.status().leases.remove(0);
    assert!(lease.failures >= 9, "{lease:?}");
    assert_eq!(lease.last_error.as_deref(), Some("not today"));
    assert_eq!(lease.continuation, "beginning", "nothing was skipped");
    // The report is visible from other processes too.
    eventually("the report", async || {
        let leases = fixture.other_process().processor("p").leases().await.expect("listed");
        leases[0].last_error.as_deref().filter(|error| *error == "not today").map(|_| ())
    })
    .await;
    broken.store(false, Ordering::Relaxed);
    received.until_all(0..3, 1).await;
    eventually("no failures", async || (running.status().leases[0].failures == 0).then_some(())).await;
    running.stop().await.expect("stopped");
}

#[tokio::test]
async fn a_stop_waits_for_a_handler_at_most_the_stop_timeout() {
    let fixture = Fixture::start(1).await;
    fixture.write(0..1, 1).await;
    let (begun, mut has_begun) = tokio::sync::watch::channel(false);
    let running = fixture
        .processor("p")
        .stop_timeout(Duration::from_millis(100))
        .start(move |_: Vec<Reading>, _: BatchContext| {
            begun.send_replace(true);
            std::future::pending::<Result<(), HandlerError>>()
        })
        .await
        .expect("started");
    has_begun.wait_for(|begun| *begun).await.expect("open");
    let error = running.stop().await.expect_err("the handler never ends");
    assert_eq!(error.kind(), ErrorKind::DeadlineExceeded);
    assert!(error.message().contains("delivered again"), "{error}");
    // There was no checkpoint: the next instance gets the same changes.
    let received = Received::new();
    let next = fixture.other_process().processor("p").lease_expiry(Duration::from_millis(600));
    let next = received.start(next.renew_interval(Duration::from_millis(100))).await;
    received.until_all(0..1, 1).await;
    next.stop().await.expect("stopped");
}

#[tokio::test]
async fn a_handler_that_panics_or_hangs_has_failed_and_the_batch_is_retried() {
    let fixture = Fixture::start(1).await;
    fixture.write(0..3, 1).await;
    let (received, attempts) = (Received::new(), AtomicU32::new(0));
    let recorder = received.clone();
    let running = fixture
        .processor("p")
        .handler_timeout(Duration::from_millis(300))
        .start(move |readings: Vec<Reading>, context: BatchContext| {
            let attempt = attempts.fetch_add(1, Ordering::Relaxed);
            if attempt >= 2 {
                recorder.record(readings, &context);
            }
            async move {
                match attempt {
                    0 => panic!("at first"),
                    1 => std::future::pending().await,
                    _ => Ok::<_, HandlerError>(()),
                }
            }
        })
        .await
        .expect("started");
    received.until_all(0..3, 1).await;
    assert_eq!(running.status().failures, 2);
    running.stop().await.expect("stopped");
    assert_eq!(received.len(), 3);
}

#[tokio::test]
async fn a_stop_finishes_the_current_batch_and_starts_no_other() {
    let fixture = Fixture::start(1).await;
    fixture.write(0..10, 1).await;
    let (received, begun) = (Received::new(), Arc::new(tokio::sync::Notify::new()));
    let (go_on, go_on_now) = tokio::sync::watch::channel(false);
    let (recorder, tell) = (received.clone(), Arc::clone(&begun));
    let running = fixture
        .processor("p")
        .start(move |readings: Vec<Reading>, context: BatchContext| {
            let (recorder, tell, mut wait) = (recorder.clone(), Arc::clone(&tell), go_on_now.clone());
            async move {
                tell.notify_one();
                wait.wait_for(|go_on| *go_on).await?;
                recorder.record(readings, &context);
                Ok::<_, HandlerError>(())
            }
        })
        .await
        .expect("started");
    begun.notified().await;
    let stopping = tokio::spawn(running.stop());
    go_on.send_replace(true);
    stopping.await.expect("no panic").expect("stopped");
    assert_eq!(received.len(), 5, "one page");
    // The checkpoint was written: the next instance starts after it.
    let again = Received::new();
    let running = again.start(fixture.processor("p")).await;
    again.until("the other page", |received| received.len() == 5).await;
    running.stop().await.expect("stopped");
    let mut all = received.by_sensor();
    all.extend(again.by_sensor());
    assert_eq!(all.len(), 10, "{all:?}");
}

#[tokio::test]
async fn while_leases_cannot_be_renewed_no_batch_is_delivered_that_others_may_have() {
    let fixture = Fixture::start(2).await;
    let (received, unsure) = (Received::new(), Arc::new(AtomicU32::new(0)));
    let (recorder, count) = (received.clone(), Arc::clone(&unsure));
    let running = fixture
        .processor("p")
        .lease_expiry(Duration::from_secs(1))
        .start(move |readings: Vec<Reading>, context: BatchContext| {
            count.fetch_add(u32::from(!context.is_lease_held()), Ordering::Relaxed);
            recorder.record(readings, &context);
            async { Ok::<_, HandlerError>(()) }
        })
        .await
        .expect("started");
    fixture.write(0..10, 1).await;
    received.until_all(0..10, 1).await;
    let rule = FaultRule::status(503, 0).in_container("plant", "leases");
    let rule = fixture.running.faults().add(rule).expect("a rule");
    // For longer than the lease expiry: every worker has tried to renew its lease, and waits.
    eventually("a failure of every lease", async || {
        let leases = running.status().leases;
        (leases.len() == 2 && leases.iter().all(|lease| lease.failures > 0)).then_some(())
    })
    .await;
    eventually("an error of the instance", async || running.status().last_error).await;
    fixture.write(0..10, 2).await;
    fixture.running.faults().remove(&rule).expect("removed");
    received.until_all(0..10, 2).await;
    eventually("no error", async || running.status().last_error.is_none().then_some(())).await;
    running.stop().await.expect("stopped");
    assert_eq!(unsure.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn faults_between_client_and_account_repeat_no_change_and_lose_none() {
    let fixture = Fixture::start(2).await;
    let received = Received::new();
    let running = received.start(fixture.processor("p")).await;
    fixture.running.faults().set_seed(7);
    for (container, status, sub_status) in [("leases", 503, 0), ("readings", 503, 0), ("leases", 429, 3200)] {
        let rule = FaultRule::status(status, sub_status).in_container("plant", container).share(0.2);
        fixture.running.faults().add(rule.retry_after(Duration::from_millis(1))).expect("a rule");
    }
    let gone =
        FaultRule::connection(ConnectionEffect::CloseAfter).in_container("plant", "leases").share(0.05);
    fixture.running.faults().add(gone).expect("a rule");
    let readings = fixture.container("readings");
    for number in 1..=5 {
        for sensor in 0..10 {
            let sensor = format!("s{sensor}");
            let reading = Reading { id: sensor.clone(), sensor: sensor.clone(), number };
            while readings.upsert_item(&sensor, &reading).repeatable().await.is_err() {}
        }
        received.until_all(0..10, number).await;
    }
    fixture.running.faults().clear().expect("cleared");
    running.stop().await.expect("stopped");
    let all: Vec<u32> = (1..=5).collect();
    assert!(received.by_sensor().values().all(|numbers| *numbers == all), "{:?}", received.by_sensor());
}

#[tokio::test]
async fn a_recreated_container_is_processed_from_the_start() {
    let fixture = Fixture::start(1).await;
    fixture.write(0..3, 1).await;
    let received = Received::new();
    let running = received.start(fixture.processor("p")).await;
    received.until_all(0..3, 1).await;
    fixture.container("readings").delete().await.expect("deleted");
    fixture.create("readings", "/sensor").await;
    fixture.write(0..3, 2).await;
    eventually("advice to start again", async || {
        let said = running.status().leases.first()?.last_error.clone()?;
        said.contains("start again").then_some(())
    })
    .await;
    running.stop().await.expect("stopped");
    // The name and the client are the same, and no state of the old container is left.
    let running = received.start(fixture.processor("p")).await;
    received.until_all(0..3, 2).await;
    running.stop().await.expect("stopped");
}

#[tokio::test]
async fn invalid_settings_are_errors_that_say_what_to_do() {
    let fixture = Fixture::start(1).await;
    let readings = fixture.container("readings");
    let start = async |processor: perihelion::ChangeFeedProcessor| {
        let handler = |_: Vec<Reading>, _: BatchContext| async { Ok::<_, HandlerError>(()) };
        processor.start(handler).await.expect_err("it cannot work")
    };
    let with = |leases: &str| readings.change_feed_processor("p").lease_container(&fixture.container(leases));
    for (processor, kind, advice) in [
        (readings.change_feed_processor("p"), ErrorKind::Configuration, "lease_container"),
        (with("nowhere"), ErrorKind::NotFound, "create it with the partition key /id"),
        (with("readings"), ErrorKind::Configuration, "has the partition key /sensor"),
        (fixture.processor("a/b"), ErrorKind::Configuration, "none of / \\ ? #"),
        (fixture.processor("p").from(ProcessorStart::Stored), ErrorKind::NotFound, "check the name"),
        (
            fixture.processor("p").renew_interval(Duration::from_secs(11)),
            ErrorKind::Configuration,
            "twice as often",
        ),
        (
            fixture.processor("p").mode(perihelion::ChangeFeedMode::AllVersionsAndDeletes),
            ErrorKind::BadRequest,
            "start now",
        ),
    ] {
        let error = start(processor).await;
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(advice), "{error}");
    }
    for error in [
        fixture.processor("p").lag().await.expect_err("it never ran"),
        fixture.processor("p").leases().await.expect_err("it never ran"),
        fixture.processor("p").rewind(perihelion::ChangeFeedStart::Now).await.expect_err("it never ran"),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    }
    let running = Received::new().start(fixture.processor("p").page_size(NonZeroU32::MIN)).await;
    let other = fixture.processor("p").mode(perihelion::ChangeFeedMode::AllVersionsAndDeletes);
    let error = start(other.from(ProcessorStart::Now)).await;
    assert!(error.message().contains("another name"), "{error}");
    running.stop().await.expect("stopped");
}
