//! Rules as JSON and as TOML: what is written is read back, whatever the rule.

use std::time::Duration;

use perihelion_faults::{
    ConnectionEffect, Delay, DelayPercentiles, DelayRange, Delayed, DistributionShape, FaultRule,
    HumanDuration, OperationKind, Probability, ResourceKind,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

/// One rule in each format.
const JSON: &str = r#"{
    "id": "storm",
    "match": {"operations": ["read", "query"], "regions": ["East US"], "partitionKey": ["p1", 7]},
    "share": 0.3, "skip": 2, "count": 100, "after": "5s", "for": "30s",
    "effect": {
        "delay": {"p50": "20ms", "p99": "200ms", "shape": "lognormal", "max": "1s"},
        "status": 429, "subStatus": 3200, "retryAfter": "50ms", "headers": {"x-note": "on purpose"}
    }
}"#;
const TOML: &str = r#"
id = "storm"
share = 0.3
skip = 2
count = 100
after = "5s"
for = "30s"
match = { operations = ["read", "query"], regions = ["East US"], partitionKey = ["p1", 7] }

[effect]
delay = "p50=20ms,p99=200ms,max=1s"
status = 429
subStatus = 3200
retryAfter = "50ms"
headers = { x-note = "on purpose" }
"#;

#[test]
fn a_rule_means_the_same_in_json_and_in_toml() {
    let rule = FaultRule::from_json(JSON.as_bytes()).expect("JSON");
    assert_eq!(toml::from_str::<FaultRule>(TOML).expect("TOML"), rule);
    rule.validate().expect("no contradiction");
    assert_eq!(rule.schedule.hits_max, Some(100));
    assert_eq!(rule.probability, Some(Probability(0.3)));
}

#[test]
fn an_unknown_field_is_named_in_both_formats() {
    let json =
        FaultRule::from_json(br#"{"effect":{"delay":"1s"},"colour":1}"#).expect_err("JSON").to_string();
    let toml =
        toml::from_str::<FaultRule>("colour = 1\neffect = { delay = '1s' }").expect_err("TOML").to_string();
    assert!(json.contains("colour") && toml.contains("colour"), "{json}\n{toml}");
}

fn durations() -> impl Strategy<Value = HumanDuration> {
    (0_u64..100_000_000).prop_map(|millis| HumanDuration(Duration::from_millis(millis)))
}

fn delays() -> impl Strategy<Value = Delay> {
    let shapes = prop_oneof![
        Just(DistributionShape::Lognormal),
        Just(DistributionShape::Normal),
        Just(DistributionShape::Exponential)
    ];
    prop_oneof![
        durations().prop_map(Delay::Fixed),
        (durations(), durations()).prop_map(|(from, to)| Delay::Uniform(DelayRange { from, to })),
        (durations(), durations(), shapes, option::of(durations())).prop_map(|(p50, p99, shape, max)| {
            Delay::Percentiles(DelayPercentiles { p50, p99, shape, max })
        }),
    ]
}

fn operations() -> impl Strategy<Value = Vec<OperationKind>> {
    vec(
        prop_oneof![
            Just(OperationKind::Read),
            Just(OperationKind::QueryPlan),
            Just(OperationKind::ChangeFeed),
            Just(OperationKind::DeletePartition),
            Just(OperationKind::Execute),
            Just(OperationKind::Metadata),
        ],
        0..3,
    )
}

fn resources() -> impl Strategy<Value = Vec<ResourceKind>> {
    vec(
        prop_oneof![
            Just(ResourceKind::Item),
            Just(ResourceKind::PartitionKeyRange),
            Just(ResourceKind::StoredProcedure),
            Just(ResourceKind::Other),
        ],
        0..3,
    )
}

fn connections() -> impl Strategy<Value = ConnectionEffect> {
    prop_oneof![
        Just(ConnectionEffect::CloseBefore),
        Just(ConnectionEffect::CloseAfter),
        Just(ConnectionEffect::Stall),
        Just(ConnectionEffect::GoAway),
        Just(ConnectionEffect::Refuse),
        Just(ConnectionEffect::BlackHole),
        Just(ConnectionEffect::FailBeforeSending),
        Just(ConnectionEffect::Timeout),
    ]
}

/// Partition keys; without null, which TOML does not have.
fn partition_keys() -> impl Strategy<Value = Value> {
    let part = prop_oneof![
        ".{0,8}".prop_map(Value::from),
        (-1_000_000_i64..1_000_000).prop_map(Value::from),
        any::<bool>().prop_map(Value::from)
    ];
    prop_oneof![part.clone(), vec(part, 1..4).prop_map(Value::from)]
}

prop_compose! {
    fn filtered()(
        operations in operations(),
        resources in resources(),
        database in option::of("[a-z]{1,8}"),
        container in option::of(".{1,8}"),
        partition_key in option::of(partition_keys()),
        partition_key_range in option::of(any::<u32>()),
        regions in vec("[A-Z][a-z]{1,8} US", 0..3),
        methods in vec("[A-Z]{3,6}", 0..2),
        endpoints in vec("[a-z]{1,8}:[0-9]{2,4}", 0..2),
        shards in vec(0_u64..1_000, 0..3),
    ) -> FaultRule {
        let mut rule = FaultRule::default();
        let filter = &mut rule.filter;
        (filter.operations, filter.resources) = (operations, resources);
        (filter.database, filter.container) = (database, container);
        (filter.partition_key, filter.partition_key_range) = (partition_key, partition_key_range);
        (filter.regions, filter.methods) = (regions, methods);
        (filter.endpoints, filter.shards) = (endpoints, shards);
        rule
    }
}

prop_compose! {
    fn rules()(
        mut rule in filtered(),
        id in option::of("[a-z0-9._:-]{1,16}"),
        share in option::of((1_u32..=1_000).prop_map(|thousandths| Probability(f64::from(thousandths) / 1_000.0))),
        counts in [option::of(0_u64..1_000_000), option::of(0_u64..1_000_000), option::of(0_u64..1_000_000)],
        times in [option::of(durations()), option::of(durations()), option::of(durations())],
        delay in option::of(delays()),
        response_is_delayed in any::<bool>(),
        status in option::of(400_u16..600),
        sub_status in option::of(any::<u32>()),
        message in option::of(".{0,20}"),
        headers in btree_map("x-[a-z]{1,8}", "[ -~]{0,8}", 0..3),
        connection in option::of(connections()),
    ) -> FaultRule {
        (rule.id, rule.probability) = (id, share);
        let schedule = &mut rule.schedule;
        [schedule.skip, schedule.every_nth, schedule.hits_max] = counts;
        [schedule.start_after, schedule.duration, rule.effect.retry_after] = times;
        let effect = &mut rule.effect;
        (effect.delay, effect.connection) = (delay, connection);
        effect.delayed = if response_is_delayed { Delayed::Response } else { Delayed::Request };
        (effect.status, effect.sub_status) = (status, sub_status);
        (effect.message, effect.headers) = (message, headers);
        rule
    }
}

proptest! {
    #[test]
    fn a_rule_survives_json(rule in rules()) {
        let json = serde_json::to_string(&rule).expect("JSON");
        prop_assert_eq!(FaultRule::from_json(json.as_bytes()).expect("a rule"), rule);
    }

    #[test]
    fn a_rule_survives_toml(rule in rules()) {
        let toml = toml::to_string(&rule).expect("TOML");
        prop_assert_eq!(toml::from_str::<FaultRule>(&toml).expect("a rule"), rule);
    }

    #[test]
    fn checking_a_rule_never_panics(rule in rules()) {
        // Whether the rule is accepted does not matter here.
        let _ = rule.validate();
        let _ = rule.supported_by(perihelion_faults::Applier::Account);
        let _ = rule.supported_by(perihelion_faults::Applier::Driver);
    }
}

#[test]
fn a_key_of_null_is_written_as_json_only() {
    let rule = FaultRule::from_json(
        json!({"match": {"partitionKey": [null]}, "effect": {"delay": "1s"}}).to_string().as_bytes(),
    );
    rule.expect("JSON has null").validate().expect("a partition key");
}
