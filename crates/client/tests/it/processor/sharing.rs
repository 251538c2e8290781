//! Instances that share leases, and partitions that split and merge.

use std::collections::BTreeSet;
use std::time::Duration;

use perihelion::{BatchContext, HandlerError, RunningProcessor};
use serde_json::Value;

use super::{Fixture, Reading, Received, eventually};

/// Waits until each of these has this many leases.
async fn until_leases(instances: &[(&RunningProcessor, usize)]) {
    let what = format!("leases {:?}", instances.iter().map(|(_, leases)| leases).collect::<Vec<_>>());
    eventually(&what, async || {
        let settled = instances.iter().all(|(running, leases)| {
            let owned = running.status().leases;
            owned.len() == *leases && owned.iter().all(|lease| lease.wanted_by.is_none())
        });
        settled.then_some(())
    })
    .await;
}

#[tokio::test]
async fn one_instance_handles_everything_once_and_continues_after_a_stop() {
    let fixture = Fixture::start(3).await;
    fixture.write(0..20, 1).await;
    let received = Received::new();
    let running = received.start(fixture.processor("p")).await;
    received.until_all(0..20, 1).await;
    fixture.write(0..20, 2).await;
    received.until_all(0..20, 2).await;
    running.stop().await.expect("stopped");
    assert_eq!(received.len(), 40, "{:?}", received.by_sensor());

    // The next instance receives nothing again, and the leases were released.
    let leases = fixture.processor("p").leases().await.expect("listed");
    assert_eq!(leases.len(), 3);
    assert!(leases.iter().all(|lease| lease.owner.is_none()), "{leases:?}");
    fixture.write(5..10, 3).await;
    let again = Received::new();
    let running = again.start(fixture.processor("p")).await;
    again.until_all(5..10, 3).await;
    running.stop().await.expect("stopped");
    assert_eq!(again.len(), 5, "{:?}", again.by_sensor());
}

#[tokio::test]
async fn instances_share_leases_and_each_change_goes_to_one() {
    let fixture = Fixture::start(4).await;
    let received = Received::new();
    let first = received.start(fixture.processor("p").instance("first")).await;
    until_leases(&[(&first, 4)]).await;
    let second = received.start(fixture.other_process().processor("p").instance("second")).await;
    until_leases(&[(&first, 2), (&second, 2)]).await;
    fixture.write(0..40, 1).await;
    received.until_all(0..40, 1).await;
    let instances: BTreeSet<String> =
        received.seen.lock().expect("no panic").iter().map(|(instance, _)| instance.clone()).collect();
    assert_eq!(instances, BTreeSet::from([first.instance().to_owned(), second.instance().to_owned()]));
    // An instance that stops releases its leases at once: no expiry has to pass.
    second.stop().await.expect("stopped");
    until_leases(&[(&first, 4)]).await;
    fixture.write(0..40, 2).await;
    received.until_all(0..40, 2).await;
    first.stop().await.expect("stopped");
}

#[tokio::test]
async fn leases_of_a_crashed_instance_are_acquired_and_no_change_is_lost() {
    // The account's clock is frozen: leases expire by the clocks of the instances.
    let fixture = Fixture::start_with(4, |config| config.clock.freeze()).await;
    let received = Received::new();
    let expiry = Duration::from_secs(3);
    let first = received.start(fixture.processor("p").instance("first").lease_expiry(expiry)).await;
    until_leases(&[(&first, 4)]).await;
    let other = fixture.other_process().processor("p").instance("second").lease_expiry(expiry);
    let second = received.start(other).await;
    until_leases(&[(&first, 2), (&second, 2)]).await;
    fixture.write(0..40, 1).await;
    // A crash while there are changes to handle.
    drop(first);
    fixture.write(0..40, 2).await;
    received.until_all(0..40, 2).await;
    until_leases(&[(&second, 4)]).await;
    let owners = fixture.processor("p").leases().await.expect("listed");
    assert!(owners.iter().all(|lease| lease.owner.as_deref() == Some(second.instance())), "{owners:?}");
    second.stop().await.expect("stopped");
}

#[tokio::test]
async fn instances_that_start_together_in_regions_that_lag_agree_on_one_set_of_leases() {
    let regions = ["West US", "East US", "North Europe"];
    let fixture = Fixture::start_with(3, |config| {
        config.regions = regions.map(str::to_owned).to_vec().into();
        let lag = Duration::from_millis(150);
        config.lag = emulator::regions::Lag::between(lag, lag * 2).expect("a lag");
    })
    .await;
    let received = Received::new();
    let starting = regions
        .iter()
        .map(|region| received.start(fixture.other_process_in(region).processor("p").instance(*region)));
    let instances = futures::future::join_all(starting).await;
    fixture.write(0..20, 1).await;
    received.until_all(0..20, 1).await;
    until_leases(&[(&instances[0], 1), (&instances[1], 1), (&instances[2], 1)]).await;
    assert_eq!(fixture.processor("p").leases().await.expect("listed").len(), 3);
    for instance in instances {
        instance.stop().await.expect("stopped");
    }
}

#[tokio::test]
async fn a_split_replaces_a_lease_by_leases_of_its_parts() {
    let fixture = Fixture::start(1).await;
    let received = Received::new();
    fixture.write(0..20, 1).await;
    let running = received.start(fixture.processor("p")).await;
    received.until_all(0..20, 1).await;
    let partition = fixture.partitions().await.remove(0);
    fixture.split(partition).await;
    fixture.write(0..20, 2).await;
    received.until_all(0..20, 2).await;
    until_leases(&[(&running, 2)]).await;
    running.stop().await.expect("stopped");
    assert_eq!(received.len(), 40, "each once: {:?}", received.by_sensor());
    let leases = fixture.processor("p").leases().await.expect("listed");
    assert_eq!(leases.len(), 2, "{leases:?}");
}

#[tokio::test]
async fn leases_survive_a_merge_and_a_split_of_other_partitions() {
    let fixture = Fixture::start(2).await;
    let received = Received::new();
    fixture.write(0..20, 1).await;
    let running = received.start(fixture.processor("p")).await;
    received.until_all(0..20, 1).await;
    fixture.merge(&fixture.partitions().await).await;
    fixture.write(0..20, 2).await;
    received.until_all(0..20, 2).await;
    let whole = fixture.partitions().await.remove(0);
    fixture.split(whole).await;
    fixture.write(0..20, 3).await;
    received.until_all(0..20, 3).await;
    running.stop().await.expect("stopped");
    assert!(received.by_sensor().values().all(|numbers| numbers == &[1, 2, 3]), "{:?}", received.by_sensor());
}

/// Another instance becomes the owner of a lease while its first owner handles a batch.
#[tokio::test]
async fn a_worker_that_lost_its_lease_delivers_no_batch_and_writes_no_checkpoint() {
    let fixture = Fixture::start(1).await;
    fixture.write(0..10, 1).await;
    let received = Received::new();
    let (go_on, go_on_now) = tokio::sync::watch::channel(false);
    let (begun, mut has_begun) = tokio::sync::watch::channel(0);
    let recorder = received.clone();
    let running = fixture
        .processor("p")
        // The checkpoint has to find the loss, not a renewal or a round of the lease manager.
        .lease_expiry(Duration::from_secs(3600))
        .renew_interval(Duration::from_secs(1000))
        .acquire_interval(Duration::from_secs(1000))
        .start(move |readings: Vec<Reading>, context: BatchContext| {
            begun.send_modify(|count| *count += 1);
            let (recorder, mut wait) = (recorder.clone(), go_on_now.clone());
            async move {
                wait.wait_for(|go_on| *go_on).await?;
                recorder.record(readings, &context);
                Ok::<_, HandlerError>(())
            }
        })
        .await
        .expect("started");
    has_begun.wait_for(|count| *count == 1).await.expect("open");
    let leases = fixture.container("leases");
    let id = running.status().leases.remove(0).id;
    let mut lease = leases.read_item::<Value>(id.as_str(), &id).await.expect("there").into_value();
    lease["owner"] = "another instance".into();
    lease["term"] = (lease["term"].as_u64().expect("a number") + 1).into();
    leases.replace_item(id.as_str(), &id, &lease).await.expect("taken away");
    go_on.send_replace(true);
    eventually("no lease", async || running.status().leases.is_empty().then_some(())).await;
    assert_eq!((received.len(), *has_begun.borrow()), (5, 1), "the current batch and no other");
    let now = leases.read_item::<Value>(id.as_str(), &id).await.expect("there").into_value();
    assert_eq!((&now["owner"], &now["position"]), (&lease["owner"], &lease["position"]));
    running.stop().await.expect("stopped");
}

#[tokio::test]
async fn an_instance_respects_its_limits_of_leases_and_handlers() {
    let fixture = Fixture::start(4).await;
    fixture.write(0..40, 1).await;
    let (three, one) = (std::num::NonZeroUsize::new(3).expect("not zero"), std::num::NonZeroUsize::MIN);
    let at_work = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let received = Received::new();
    let recorder = received.clone();
    let processor = fixture.processor("p").max_leases(three).max_handlers(one);
    let running = processor
        .start(move |readings: Vec<Reading>, context: BatchContext| {
            let (recorder, at_work) = (recorder.clone(), std::sync::Arc::clone(&at_work));
            async move {
                let before = at_work.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                tokio::task::yield_now().await;
                at_work.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                if before == 0 {
                    recorder.record(readings, &context);
                    return Ok::<_, HandlerError>(());
                }
                panic!("two handlers at a time")
            }
        })
        .await
        .expect("started");
    until_leases(&[(&running, 3)]).await;
    let second = received.start(fixture.other_process().processor("p")).await;
    received.until_all(0..40, 1).await;
    until_leases(&[(&running, 2), (&second, 2)]).await;
    assert_eq!(running.status().failures, 0);
    running.stop().await.expect("stopped");
    second.stop().await.expect("stopped");
}
