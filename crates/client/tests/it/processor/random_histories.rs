//! Random histories of writes, splits, merges, rewinds and instances that start, stop and crash. `PERI_SEED=42` replays
//! one; `PERI_SEEDS=100` runs more.

use std::time::Duration;

use perihelion::{ChangeFeedStart, RunningProcessor};

use super::{Fixture, Received};

const SENSORS: u32 = 24;
const STEPS: u32 = 20;

fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("PERI_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PERI_SEEDS").unwrap_or(2),
    }
}

/// Runs one history. Without `with_crashes` no instance crashes and nothing is rewound, so every change is received
/// once.
async fn history(seed: u64, with_crashes: bool) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let fixture = Fixture::start(rng.u32(1..=3)).await;
    let received = Received::new();
    let processor = || {
        let processor = fixture.other_process().processor("p").poll_interval(Duration::from_millis(50));
        if with_crashes { processor.lease_expiry(Duration::from_secs(3)) } else { processor }
    };
    let mut instances: Vec<RunningProcessor> = vec![received.start(processor()).await];
    let mut steps = format!("seed {seed}:");
    let mut number = 0;
    for _ in 0..STEPS {
        match rng.u32(0..10) {
            0..=4 => {
                number += 1;
                let first = rng.u32(0..SENSORS);
                steps += &format!(" write {number} from {first}");
                fixture.write(first..SENSORS, number).await;
            }
            5 | 6 => {
                let partitions = fixture.partitions().await;
                let partition = partitions[rng.usize(0..partitions.len())];
                if partitions.len() < 8 {
                    steps += &format!(" split {partition}");
                    fixture.split(partition).await;
                }
            }
            7 => {
                let partitions = fixture.partitions().await;
                if partitions.len() > 1 {
                    let at = rng.usize(0..partitions.len() - 1);
                    steps += &format!(" merge {:?}", &partitions[at..at + 2]);
                    fixture.merge(&partitions[at..at + 2]).await;
                }
            }
            8 if instances.len() < 3 => {
                steps += " start";
                instances.push(received.start(processor()).await);
            }
            9 if with_crashes && rng.bool() => {
                steps += " rewind";
                processor().rewind(ChangeFeedStart::Beginning).await.expect("rewound");
            }
            _ if instances.len() > 1 => {
                let gone = instances.swap_remove(rng.usize(0..instances.len()));
                if with_crashes && rng.bool() {
                    steps += " crash";
                    drop(gone);
                } else {
                    steps += " stop";
                    gone.stop().await.expect("stopped");
                }
            }
            _ => {}
        }
    }
    number += 1;
    fixture.write(0..SENSORS, number).await;
    received.until_all(0..SENSORS, number).await;
    for instance in instances {
        instance.stop().await.expect("stopped");
    }
    for (sensor, numbers) in received.by_sensor() {
        if !with_crashes {
            let grows = numbers.is_sorted_by(|earlier, later| earlier < later);
            assert!(grows, "{sensor} was received as {numbers:?}; {steps}");
        }
        assert_eq!(numbers.iter().max(), Some(&number), "{sensor}; {steps}");
    }
    // The leases cover the EPK space and do not overlap.
    let leases = fixture.processor("p").leases().await.expect("listed");
    let is_contiguous = leases.windows(2).all(|pair| pair[0].range.max == pair[1].range.min);
    assert!(is_contiguous, "{leases:?}; {steps}");
}

#[tokio::test]
async fn every_change_is_delivered_once_and_in_order_despite_splits_merges_starts_and_stops() {
    for seed in seeds() {
        history(seed, false).await;
    }
}

#[tokio::test]
async fn every_change_is_delivered_despite_crashes_and_rewinds() {
    for seed in seeds() {
        history(1000 + seed, true).await;
    }
}
