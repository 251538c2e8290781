//! Random histories: writes, splits, merges, instances that start, stop and die, rewinds. `PERI_SEED=42` replays
//! one; `PERI_SEEDS=100` tries more.

use std::time::Duration;

use perihelion::{ChangeFeedStart, RunningProcessor};

use super::{Plant, Told};

const SENSORS: u32 = 24;
const STEPS: u32 = 20;

/// A small generator whose every draw follows from the seed.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }
}

fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("PERI_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PERI_SEEDS").unwrap_or(2),
    }
}

/// One history. Without `rough` nothing dies and nothing is rewound, so that everything is told once.
async fn history(seed: u64, rough: bool) {
    let mut draws = Draws(seed);
    let plant = Plant::start(1 + draws.below(3) as u32).await;
    let told = Told::new();
    let processor = || {
        let processor = plant.elsewhere().processor("p").poll_interval(Duration::from_millis(50));
        if rough { processor.lease_expiry(Duration::from_secs(3)) } else { processor }
    };
    let mut instances: Vec<RunningProcessor> = vec![told.start(processor()).await];
    let mut story = format!("seed {seed}:");
    let mut number = 0;
    for _ in 0..STEPS {
        match draws.below(10) {
            0..=4 => {
                number += 1;
                let first = draws.below(SENSORS as usize) as u32;
                story += &format!(" write {number} from {first}");
                plant.write(first..SENSORS, number).await;
            }
            5 | 6 => {
                let partitions = plant.partitions().await;
                let partition = partitions[draws.below(partitions.len())];
                if partitions.len() < 8 {
                    story += &format!(" split {partition}");
                    plant.split(partition).await;
                }
            }
            7 => {
                let partitions = plant.partitions().await;
                if partitions.len() > 1 {
                    let at = draws.below(partitions.len() - 1);
                    story += &format!(" merge {:?}", &partitions[at..at + 2]);
                    plant.merge(&partitions[at..at + 2]).await;
                }
            }
            8 if instances.len() < 3 => {
                story += " start";
                instances.push(told.start(processor()).await);
            }
            9 if rough && draws.below(2) == 0 => {
                story += " rewind";
                processor().rewind(ChangeFeedStart::Beginning).await.expect("rewound");
            }
            _ if instances.len() > 1 => {
                let gone = instances.swap_remove(draws.below(instances.len()));
                if rough && draws.below(2) == 0 {
                    story += " die";
                    drop(gone);
                } else {
                    story += " stop";
                    gone.stop().await.expect("stopped");
                }
            }
            _ => {}
        }
    }
    number += 1;
    plant.write(0..SENSORS, number).await;
    told.until_all(0..SENSORS, number).await;
    for instance in instances {
        instance.stop().await.expect("stopped");
    }
    for (sensor, numbers) in told.by_sensor() {
        if !rough {
            let grows = numbers.is_sorted_by(|earlier, later| earlier < later);
            assert!(grows, "{sensor} told {numbers:?}; {story}");
        }
        assert_eq!(numbers.iter().max(), Some(&number), "{sensor}; {story}");
    }
    // One lease for every place on the ring, and none over another.
    let leases = plant.processor("p").leases().await.expect("listed");
    let ends = leases.windows(2).all(|pair| pair[0].range.max == pair[1].range.min);
    assert!(ends, "{leases:?}; {story}");
}

#[tokio::test]
async fn every_change_is_told_once_and_in_order_whatever_splits_merges_starts_or_stops() {
    for seed in seeds() {
        history(seed, false).await;
    }
}

#[tokio::test]
async fn every_change_is_told_whoever_dies_and_whatever_is_rewound() {
    for seed in seeds() {
        history(1000 + seed, true).await;
    }
}
