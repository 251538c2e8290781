//! Handlers that fail, and containers that cannot keep leases.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use emulator::faults::{ConnectionEffect, FaultRule};
use perihelion::{BatchContext, DeadLetter, ErrorKind, HandlerError, ProcessorStart};
use serde_json::json;

use super::{Plant, Reading, Told, eventually};

#[tokio::test]
async fn a_change_that_cannot_be_handled_goes_to_the_hook_alone_and_the_rest_is_handled() {
    let plant = Plant::start(1).await;
    plant.write(0..12, 1).await;
    // Something that is no reading at all.
    let odd = json!({"id": "odd", "sensor": "odd"});
    plant.container("readings").create_item("odd", &odd).await.expect("written");
    let (told, letters) = (Told::new(), Arc::new(Mutex::new(Vec::<DeadLetter>::new())));
    let (note, keep) = (told.clone(), Arc::clone(&letters));
    let hook_fails = AtomicBool::new(true);
    let running = plant
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
                note.note(readings, &context);
            }
            async move { if poisoned { Err("s7 is too hot") } else { Ok(()) } }
        })
        .await
        .expect("started");
    told.until_all(0..7, 1).await;
    told.until_all(8..12, 1).await;
    plant.write(0..7, 2).await;
    told.until_all(0..7, 2).await;
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
async fn without_a_hook_a_batch_is_tried_until_it_succeeds_and_says_so() {
    let plant = Plant::start(1).await;
    plant.write(0..3, 1).await;
    let broken = Arc::new(AtomicBool::new(true));
    let (told, attempts) = (Told::new(), Arc::new(AtomicU32::new(0)));
    let (note, fails, tried) = (told.clone(), Arc::clone(&broken), Arc::clone(&attempts));
    let running = plant
        .processor("p")
        .start(move |readings: Vec<Reading>, context: BatchContext| {
            tried.store(context.attempts + 1, Ordering::Relaxed);
            let fails = fails.load(Ordering::Relaxed);
            if !fails {
                note.note(readings, &context);
            }
            async move { if fails { Err("not today") } else { Ok(()) } }
        })
        .await
        .expect("started");
    // More often than there are attempts before a hook would be asked.
    eventually("ten attempts", async || (attempts.load(Ordering::Relaxed) >= 10).then_some(())).await;
    let lease = running.status().leases.remove(0);
    assert!(lease.failures >= 9, "{lease:?}");
    assert_eq!(lease.last_error.as_deref(), Some("not today"));
    assert_eq!(lease.continuation, "beginning", "nothing was skipped");
    // Those who look on from outside see it too.
    eventually("the report", async || {
        let leases = plant.elsewhere().processor("p").leases().await.expect("listed");
        leases[0].last_error.as_deref().filter(|error| *error == "not today").map(|_| ())
    })
    .await;
    broken.store(false, Ordering::Relaxed);
    told.until_all(0..3, 1).await;
    eventually("no failures", async || (running.status().leases[0].failures == 0).then_some(())).await;
    running.stop().await.expect("stopped");
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_handler_longer_than_it_may() {
    let plant = Plant::start(1).await;
    plant.write(0..1, 1).await;
    let (begun, mut has_begun) = tokio::sync::watch::channel(false);
    let running = plant
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
    assert!(error.message().contains("handed out again"), "{error}");
    // The place was not kept: the next one gets it.
    let told = Told::new();
    let next = plant.elsewhere().processor("p").lease_expiry(Duration::from_millis(600));
    let next = told.start(next.renew_interval(Duration::from_millis(100))).await;
    told.until_all(0..1, 1).await;
    next.stop().await.expect("stopped");
}

#[tokio::test]
async fn a_handler_that_panics_or_hangs_has_failed_and_the_batch_comes_again() {
    let plant = Plant::start(1).await;
    plant.write(0..3, 1).await;
    let (told, attempts) = (Told::new(), AtomicU32::new(0));
    let note = told.clone();
    let running = plant
        .processor("p")
        .handler_timeout(Duration::from_millis(300))
        .start(move |readings: Vec<Reading>, context: BatchContext| {
            let attempt = attempts.fetch_add(1, Ordering::Relaxed);
            if attempt >= 2 {
                note.note(readings, &context);
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
    told.until_all(0..3, 1).await;
    assert_eq!(running.status().failures, 2);
    running.stop().await.expect("stopped");
    assert_eq!(told.len(), 3);
}

#[tokio::test]
async fn a_stop_finishes_the_batch_at_hand_and_no_other() {
    let plant = Plant::start(1).await;
    plant.write(0..10, 1).await;
    let (told, begun) = (Told::new(), Arc::new(tokio::sync::Notify::new()));
    let (go_on, go_on_now) = tokio::sync::watch::channel(false);
    let (note, tell) = (told.clone(), Arc::clone(&begun));
    let running = plant
        .processor("p")
        .start(move |readings: Vec<Reading>, context: BatchContext| {
            let (note, tell, mut wait) = (note.clone(), Arc::clone(&tell), go_on_now.clone());
            async move {
                tell.notify_one();
                wait.wait_for(|go_on| *go_on).await?;
                note.note(readings, &context);
                Ok::<_, HandlerError>(())
            }
        })
        .await
        .expect("started");
    begun.notified().await;
    let stopping = tokio::spawn(running.stop());
    go_on.send_replace(true);
    stopping.await.expect("no panic").expect("stopped");
    assert_eq!(told.len(), 5, "one page");
    // Its place was kept: the next instance begins behind it.
    let again = Told::new();
    let running = again.start(plant.processor("p")).await;
    again.until("the other page", |told| told.len() == 5).await;
    running.stop().await.expect("stopped");
    let mut all = told.by_sensor();
    all.extend(again.by_sensor());
    assert_eq!(all.len(), 10, "{all:?}");
}

#[tokio::test]
async fn while_leases_cannot_be_renewed_nothing_is_handed_out_that_others_may_have_taken() {
    let plant = Plant::start(2).await;
    let (told, unsure) = (Told::new(), Arc::new(AtomicU32::new(0)));
    let (note, count) = (told.clone(), Arc::clone(&unsure));
    let running = plant
        .processor("p")
        .lease_expiry(Duration::from_secs(1))
        .start(move |readings: Vec<Reading>, context: BatchContext| {
            count.fetch_add(u32::from(!context.is_lease_held()), Ordering::Relaxed);
            note.note(readings, &context);
            async { Ok::<_, HandlerError>(()) }
        })
        .await
        .expect("started");
    plant.write(0..10, 1).await;
    told.until_all(0..10, 1).await;
    let rule = FaultRule::status(503, 0).in_container("plant", "leases");
    let rule = plant.running.faults().add(rule).expect("a rule");
    // For longer than a lease lasts: every worker has tried to make sure of its lease, and waits.
    eventually("trouble with every lease", async || {
        let leases = running.status().leases;
        (leases.len() == 2 && leases.iter().all(|lease| lease.failures > 0)).then_some(())
    })
    .await;
    eventually("trouble with all leases", async || running.status().last_error).await;
    plant.write(0..10, 2).await;
    plant.running.faults().remove(&rule).expect("removed");
    told.until_all(0..10, 2).await;
    eventually("no trouble", async || running.status().last_error.is_none().then_some(())).await;
    running.stop().await.expect("stopped");
    assert_eq!(unsure.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn faults_on_the_way_repeat_no_change_and_lose_none() {
    let plant = Plant::start(2).await;
    let told = Told::new();
    let running = told.start(plant.processor("p")).await;
    plant.running.faults().set_seed(7);
    for (container, status, sub_status) in [("leases", 503, 0), ("readings", 503, 0), ("leases", 429, 3200)] {
        let rule = FaultRule::status(status, sub_status).in_container("plant", container).share(0.2);
        plant.running.faults().add(rule.retry_after(Duration::from_millis(1))).expect("a rule");
    }
    let gone =
        FaultRule::connection(ConnectionEffect::CloseAfter).in_container("plant", "leases").share(0.05);
    plant.running.faults().add(gone).expect("a rule");
    let readings = plant.container("readings");
    for number in 1..=5 {
        for sensor in 0..10 {
            let sensor = format!("s{sensor}");
            let reading = Reading { id: sensor.clone(), sensor: sensor.clone(), number };
            while readings.upsert_item(&sensor, &reading).repeatable().await.is_err() {}
        }
        told.until_all(0..10, number).await;
    }
    plant.running.faults().clear().expect("cleared");
    running.stop().await.expect("stopped");
    let all: Vec<u32> = (1..=5).collect();
    assert!(told.by_sensor().values().all(|numbers| *numbers == all), "{:?}", told.by_sensor());
}

#[tokio::test]
async fn a_container_made_anew_is_told_apart_and_begun_anew() {
    let plant = Plant::start(1).await;
    plant.write(0..3, 1).await;
    let told = Told::new();
    let running = told.start(plant.processor("p")).await;
    told.until_all(0..3, 1).await;
    plant.container("readings").delete().await.expect("deleted");
    plant.create("readings", "/sensor").await;
    plant.write(0..3, 2).await;
    eventually("advice to start again", async || {
        let said = running.status().leases.first()?.last_error.clone()?;
        said.contains("start again").then_some(())
    })
    .await;
    running.stop().await.expect("stopped");
    // The same name and client, and nothing left over from before.
    let running = told.start(plant.processor("p")).await;
    told.until_all(0..3, 2).await;
    running.stop().await.expect("stopped");
}

#[tokio::test]
async fn what_cannot_work_says_what_to_do() {
    let plant = Plant::start(1).await;
    let readings = plant.container("readings");
    let start = async |processor: perihelion::ChangeFeedProcessor| {
        let handler = |_: Vec<Reading>, _: BatchContext| async { Ok::<_, HandlerError>(()) };
        processor.start(handler).await.expect_err("it cannot work")
    };
    let with = |leases: &str| readings.change_feed_processor("p").lease_container(&plant.container(leases));
    for (processor, kind, advice) in [
        (readings.change_feed_processor("p"), ErrorKind::Configuration, "lease_container"),
        (with("nowhere"), ErrorKind::NotFound, "create it with the partition key /id"),
        (with("readings"), ErrorKind::Configuration, "has the partition key /sensor"),
        (plant.processor("a/b"), ErrorKind::Configuration, "none of / \\ ? #"),
        (plant.processor("p").from(ProcessorStart::Stored), ErrorKind::NotFound, "check the name"),
        (
            plant.processor("p").renew_interval(Duration::from_secs(11)),
            ErrorKind::Configuration,
            "twice as often",
        ),
        (
            plant.processor("p").mode(perihelion::ChangeFeedMode::AllVersionsAndDeletes),
            ErrorKind::BadRequest,
            "start now",
        ),
    ] {
        let error = start(processor).await;
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(advice), "{error}");
    }
    for error in [
        plant.processor("p").lag().await.expect_err("it never ran"),
        plant.processor("p").leases().await.expect_err("it never ran"),
        plant.processor("p").rewind(perihelion::ChangeFeedStart::Now).await.expect_err("it never ran"),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    }
    let running = Told::new().start(plant.processor("p").page_size(NonZeroU32::MIN)).await;
    let other = plant.processor("p").mode(perihelion::ChangeFeedMode::AllVersionsAndDeletes);
    let error = start(other.from(ProcessorStart::Now)).await;
    assert!(error.message().contains("another name"), "{error}");
    running.stop().await.expect("stopped");
}
