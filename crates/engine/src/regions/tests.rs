use super::*;

fn topology(names: &[&str], multi_write: bool, level: ConsistencyLevel) -> Result<Topology, TopologyError> {
    let regions = names.iter().map(|name| Region::new(*name, 0)).collect();
    Topology::new(regions, multi_write, level, Lag::NONE)
}

fn three() -> Topology {
    topology(&["West US", "East US", "North Europe"], false, ConsistencyLevel::Session).unwrap()
}

#[test]
fn indistinguishable_region_names_are_rejected() {
    let level = ConsistencyLevel::Session;
    for (names, problem) in [
        (&[][..], TopologyError::Count(0)),
        (&["West US", "  "], TopologyError::EmptyName),
        (&["West US", "westus"], TopologyError::DuplicateName("westus".to_owned())),
    ] {
        assert_eq!(topology(names, false, level).unwrap_err(), problem, "{names:?}");
    }
    assert_eq!(
        topology(&["a", "b"], true, ConsistencyLevel::Strong).unwrap_err(),
        TopologyError::StrongMultiWrite
    );
}

#[test]
fn a_region_is_found_by_name_and_an_error_lists_all() {
    let topology = three();
    assert_eq!(topology.find("eastus"), Ok(RegionId(1)));
    let error = topology.find("Mars").unwrap_err().to_string();
    assert!(error.contains("'Mars'") && error.contains("'East US', 'North Europe'"), "{error}");
}

#[test]
fn a_failover_puts_a_region_first_and_keeps_the_rest_in_order() {
    let mut topology = three();
    topology.fail_over(RegionId(2)).unwrap();
    assert_eq!(topology.failover_order(), [RegionId(2), RegionId(0), RegionId(1)]);
    assert!(topology.takes_item_writes(RegionId(2)) && !topology.takes_item_writes(RegionId(0)));
}

#[test]
fn only_the_write_region_and_strong_reads_see_the_newest() {
    let topology = three();
    let up = Duration::from_secs(7);
    for (region, level, sees, honours_session) in [
        (0, ConsistencyLevel::Eventual, StalenessBound::Newest, false),
        (1, ConsistencyLevel::Strong, StalenessBound::Newest, true),
        (1, ConsistencyLevel::Session, StalenessBound::Replicated(up), true),
        (1, ConsistencyLevel::Eventual, StalenessBound::Replicated(up), false),
        (2, ConsistencyLevel::BoundedStaleness, StalenessBound::Bounded(up, MaxStaleness::default()), true),
    ] {
        let read = topology.read_context(RegionId(region), level, up);
        assert_eq!(
            (read.staleness, read.enforces_session_token),
            (sees, honours_session),
            "{region} {level:?}"
        );
    }
}

#[test]
fn a_lag_is_a_time_or_a_range_of_times() {
    for (text, shown) in [("30ms", "30ms"), ("20ms..50ms", "20ms..50ms"), ("0", "0s"), ("1s .. 2s", "1s..2s")]
    {
        assert_eq!(text.parse::<Lag>().unwrap().to_string(), shown, "{text}");
    }
    for text in ["", "50ms..20ms", "soon", "2days", "1..2"] {
        assert!(text.parse::<Lag>().is_err(), "{text}");
    }
    let lag: Lag = "20ms..50ms".parse().unwrap();
    assert_eq!(lag.at(0.5), Duration::from_millis(35));
}

#[test]
fn settings_are_restored_where_the_regions_are_the_same() {
    let mut before = three();
    before.fail_over(RegionId(2)).unwrap();
    before.set_lag(RegionId(0), RegionId(1), "5ms..7ms".parse().unwrap());
    before.set_paused(RegionId(1), Some(Duration::from_secs(77)));
    let stored = before.stored();
    let mut after = three();
    after.restore_settings(&stored);
    assert_eq!(after.failover_order(), [RegionId(2), RegionId(0), RegionId(1)]);
    assert_eq!(after.lag(RegionId(0), RegionId(1)).to_string(), "5ms..7ms");
    assert_eq!(after.lag(RegionId(1), RegionId(0)), Lag::NONE);
    assert_eq!(after.region(RegionId(1)).paused_at, Some(Duration::ZERO));
    assert_eq!(after.stored(), stored);
    before.remove(RegionId(0)).unwrap();
    let mut fewer = three();
    fewer.restore_settings(&before.stored());
    assert_eq!(fewer.failover_order(), [RegionId(2), RegionId(1)]);
    // Another lag to start with was meant; a region that is no more cannot write.
    let regions = vec![Region::new("east us", 0), Region::new("West US", 0)];
    let lag = "1s".parse().unwrap();
    let mut other = Topology::new(regions, false, ConsistencyLevel::Session, lag).unwrap();
    other.restore_settings(&stored);
    assert_eq!(other.failover_order(), [RegionId(1), RegionId(0)]);
    assert_eq!(other.lag(RegionId(1), RegionId(0)), lag);
    assert!(other.region(RegionId(0)).paused_at.is_some());
}
