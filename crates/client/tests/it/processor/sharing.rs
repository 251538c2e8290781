//! Instances that come and go, and partitions that do.

use std::collections::BTreeSet;
use std::time::Duration;

use perihelion::{BatchContext, HandlerError, RunningProcessor};
use serde_json::Value;

use super::{Plant, Reading, Told, eventually};

/// Waits until each of these has this many leases.
async fn until_leases(instances: &[(&RunningProcessor, usize)]) {
    let what = format!("leases {:?}", instances.iter().map(|(_, leases)| leases).collect::<Vec<_>>());
    eventually(&what, async || {
        let settled = instances.iter().all(|(running, leases)| {
            let held = running.status().leases;
            held.len() == *leases && held.iter().all(|lease| lease.wanted_by.is_none())
        });
        settled.then_some(())
    })
    .await;
}

#[tokio::test]
async fn one_instance_handles_everything_once_and_goes_on_after_a_stop() {
    let plant = Plant::start(3).await;
    plant.write(0..20, 1).await;
    let told = Told::new();
    let running = told.start(plant.processor("p")).await;
    told.until_all(0..20, 1).await;
    plant.write(0..20, 2).await;
    told.until_all(0..20, 2).await;
    running.stop().await.expect("stopped");
    assert_eq!(told.len(), 40, "{:?}", told.by_sensor());

    // Nothing is told again to the next one, and leases were let go of.
    let leases = plant.processor("p").leases().await.expect("listed");
    assert_eq!(leases.len(), 3);
    assert!(leases.iter().all(|lease| lease.owner.is_none()), "{leases:?}");
    plant.write(5..10, 3).await;
    let again = Told::new();
    let running = again.start(plant.processor("p")).await;
    again.until_all(5..10, 3).await;
    running.stop().await.expect("stopped");
    assert_eq!(again.len(), 5, "{:?}", again.by_sensor());
}

#[tokio::test]
async fn instances_share_leases_and_each_change_goes_to_one() {
    let plant = Plant::start(4).await;
    let told = Told::new();
    let first = told.start(plant.processor("p").instance("first")).await;
    until_leases(&[(&first, 4)]).await;
    let second = told.start(plant.elsewhere().processor("p").instance("second")).await;
    until_leases(&[(&first, 2), (&second, 2)]).await;
    plant.write(0..40, 1).await;
    told.until_all(0..40, 1).await;
    let instances: BTreeSet<String> =
        told.seen.lock().expect("no panic").iter().map(|(instance, _)| instance.clone()).collect();
    assert_eq!(instances, BTreeSet::from([first.instance().to_owned(), second.instance().to_owned()]));
    // One that stops lets go at once: nobody has to wait for its leases to run out.
    second.stop().await.expect("stopped");
    until_leases(&[(&first, 4)]).await;
    plant.write(0..40, 2).await;
    told.until_all(0..40, 2).await;
    first.stop().await.expect("stopped");
}

#[tokio::test]
async fn leases_of_an_instance_that_died_are_taken_over_and_nothing_is_lost() {
    // The account's time stands still: leases run out by that of whoever looks at them.
    let plant = Plant::start_with(4, |config| config.clock.freeze()).await;
    let told = Told::new();
    let expiry = Duration::from_secs(3);
    let first = told.start(plant.processor("p").instance("first").lease_expiry(expiry)).await;
    until_leases(&[(&first, 4)]).await;
    let other = plant.elsewhere().processor("p").instance("second").lease_expiry(expiry);
    let second = told.start(other).await;
    until_leases(&[(&first, 2), (&second, 2)]).await;
    plant.write(0..40, 1).await;
    // Dropped in the middle of it, without a word.
    drop(first);
    plant.write(0..40, 2).await;
    told.until_all(0..40, 2).await;
    until_leases(&[(&second, 4)]).await;
    let owners = plant.processor("p").leases().await.expect("listed");
    assert!(owners.iter().all(|lease| lease.owner.as_deref() == Some(second.instance())), "{owners:?}");
    second.stop().await.expect("stopped");
}

#[tokio::test]
async fn instances_that_start_together_in_regions_that_lag_agree_on_one_set_of_leases() {
    let regions = ["West US", "East US", "North Europe"];
    let plant = Plant::start_with(3, |config| {
        config.regions = regions.map(str::to_owned).to_vec();
        let lag = Duration::from_millis(150);
        config.lag = emulator::regions::Lag::between(lag, lag * 2).expect("a lag");
    })
    .await;
    let told = Told::new();
    let starting =
        regions.iter().map(|region| told.start(plant.near(region).processor("p").instance(*region)));
    let instances = futures::future::join_all(starting).await;
    plant.write(0..20, 1).await;
    told.until_all(0..20, 1).await;
    until_leases(&[(&instances[0], 1), (&instances[1], 1), (&instances[2], 1)]).await;
    assert_eq!(plant.processor("p").leases().await.expect("listed").len(), 3);
    for instance in instances {
        instance.stop().await.expect("stopped");
    }
}

#[tokio::test]
async fn a_split_replaces_a_lease_by_its_parts() {
    let plant = Plant::start(1).await;
    let told = Told::new();
    plant.write(0..20, 1).await;
    let running = told.start(plant.processor("p")).await;
    told.until_all(0..20, 1).await;
    let partition = plant.partitions().await.remove(0);
    plant.split(partition).await;
    plant.write(0..20, 2).await;
    told.until_all(0..20, 2).await;
    until_leases(&[(&running, 2)]).await;
    running.stop().await.expect("stopped");
    assert_eq!(told.len(), 40, "each once: {:?}", told.by_sensor());
    let leases = plant.processor("p").leases().await.expect("listed");
    assert_eq!(leases.len(), 2, "{leases:?}");
}

#[tokio::test]
async fn leases_survive_a_merge_and_a_split_elsewhere() {
    let plant = Plant::start(2).await;
    let told = Told::new();
    plant.write(0..20, 1).await;
    let running = told.start(plant.processor("p")).await;
    told.until_all(0..20, 1).await;
    plant.merge(&plant.partitions().await).await;
    plant.write(0..20, 2).await;
    told.until_all(0..20, 2).await;
    let whole = plant.partitions().await.remove(0);
    plant.split(whole).await;
    plant.write(0..20, 3).await;
    told.until_all(0..20, 3).await;
    running.stop().await.expect("stopped");
    assert!(told.by_sensor().values().all(|numbers| numbers == &[1, 2, 3]), "{:?}", told.by_sensor());
}

/// What somebody else has made of a lease that is held.
#[tokio::test]
async fn a_lease_that_was_taken_away_hands_out_no_other_batch_and_keeps_no_place() {
    let plant = Plant::start(1).await;
    plant.write(0..10, 1).await;
    let told = Told::new();
    let (go_on, go_on_now) = tokio::sync::watch::channel(false);
    let (begun, mut has_begun) = tokio::sync::watch::channel(0);
    let note = told.clone();
    let running = plant
        .processor("p")
        // Neither a renewal nor a look around is to find out before the checkpoint does.
        .lease_expiry(Duration::from_secs(3600))
        .renew_interval(Duration::from_secs(1000))
        .acquire_interval(Duration::from_secs(1000))
        .start(move |readings: Vec<Reading>, context: BatchContext| {
            begun.send_modify(|count| *count += 1);
            let (note, mut wait) = (note.clone(), go_on_now.clone());
            async move {
                wait.wait_for(|go_on| *go_on).await?;
                note.note(readings, &context);
                Ok::<_, HandlerError>(())
            }
        })
        .await
        .expect("started");
    has_begun.wait_for(|count| *count == 1).await.expect("open");
    let leases = plant.container("leases");
    let id = running.status().leases.remove(0).id;
    let mut lease = leases.read_item::<Value>(id.as_str(), &id).await.expect("there").into_value();
    lease["owner"] = "somebody else".into();
    lease["term"] = (lease["term"].as_u64().expect("a number") + 1).into();
    leases.replace_item(id.as_str(), &id, &lease).await.expect("taken away");
    go_on.send_replace(true);
    eventually("no lease", async || running.status().leases.is_empty().then_some(())).await;
    assert_eq!((told.len(), *has_begun.borrow()), (5, 1), "the batch at hand and no other");
    let now = leases.read_item::<Value>(id.as_str(), &id).await.expect("there").into_value();
    assert_eq!((&now["owner"], &now["position"]), (&lease["owner"], &lease["position"]));
    running.stop().await.expect("stopped");
}

#[tokio::test]
async fn an_instance_has_no_more_leases_and_handlers_than_it_may() {
    let plant = Plant::start(4).await;
    plant.write(0..40, 1).await;
    let (three, one) = (std::num::NonZeroUsize::new(3).expect("not zero"), std::num::NonZeroUsize::MIN);
    let at_work = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let told = Told::new();
    let note = told.clone();
    let processor = plant.processor("p").max_leases(three).max_handlers(one);
    let running = processor
        .start(move |readings: Vec<Reading>, context: BatchContext| {
            let (note, at_work) = (note.clone(), std::sync::Arc::clone(&at_work));
            async move {
                let before = at_work.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                tokio::task::yield_now().await;
                at_work.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                if before == 0 {
                    note.note(readings, &context);
                    return Ok::<_, HandlerError>(());
                }
                panic!("two handlers at a time")
            }
        })
        .await
        .expect("started");
    until_leases(&[(&running, 3)]).await;
    let second = told.start(plant.elsewhere().processor("p")).await;
    told.until_all(0..40, 1).await;
    until_leases(&[(&running, 2), (&second, 2)]).await;
    assert_eq!(running.status().failures, 0);
    running.stop().await.expect("stopped");
    second.stop().await.expect("stopped");
}
