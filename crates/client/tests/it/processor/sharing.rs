//! Instances that come and go, and partitions that do.

use std::collections::BTreeSet;

use perihelion::RunningProcessor;

use super::{Plant, Told, eventually};

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
    let plant = Plant::start(4).await;
    let told = Told::new();
    let first = told.start(plant.processor("p").instance("first")).await;
    until_leases(&[(&first, 4)]).await;
    let second = told.start(plant.elsewhere().processor("p").instance("second")).await;
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
async fn a_split_replaces_a_lease_by_its_parts() {
    let plant = Plant::start(1).await;
    let told = Told::new();
    plant.write(0..20, 1).await;
    let running = told.start(plant.processor("p")).await;
    told.until_all(0..20, 1).await;
    let partition = plant.partitions().await.remove(0);
    plant.split(&partition).await;
    plant.write(0..20, 2).await;
    told.until_all(0..20, 2).await;
    until_leases(&[(&running, 2)]).await;
    running.stop().await.expect("stopped");
    assert_eq!(told.len(), 40, "each once: {:?}", told.by_sensor());
    let leases = plant.processor("p").leases().await.expect("listed");
    assert_eq!(leases.len(), 2, "{leases:?}");
}
