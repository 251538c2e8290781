//! The driver's specification, step by step, and the tests that hold it to its word.
//!
//! The `step_…` modules beside this one are the steps over sockets; most of what a step asks for is decided by
//! pure functions, whose tests stand beside them. [`STEPS`] says where each promise is kept, and a test that was
//! renamed or removed is missed here.

use std::path::Path;

/// What a step promises, and the tests of it: `path: name`, below `crates/`.
struct Requirement {
    step: &'static str,
    what: &'static str,
    tests: &'static [&'static str],
}

const fn requirement(step: &'static str, what: &'static str, tests: &'static [&'static str]) -> Requirement {
    Requirement { step, what, tests }
}

const STEPS: &[Requirement] = &[
    requirement(
        "1.1",
        "state components are replaced, never changed",
        &[
            "driver/src/pipeline/retry_state.rs: a_region_is_tried_once_until_all_regions_were_tried",
            "driver/src/routing/state_cell.rs: no_update_is_lost_between_writers",
            "driver/src/routing/state_cell.rs: a_snapshot_stays_as_it_was",
        ],
    ),
    requirement(
        "1.2",
        "one attempt: headers, signature, throttling",
        &[
            "driver/src/gateway/tests.rs: a_request_carries_the_common_headers_a_date_and_a_signature_that_fits",
            "driver/src/gateway/tests.rs: throttling_waits_as_long_as_the_service_asks_and_signs_anew",
        ],
    ),
    requirement(
        "1.3",
        "one operation against one region",
        &[
            "driver/src/pipeline/tests.rs: a_response_ends_the_operation_and_updates_the_session",
            "driver/tests/it/step_01_operations.rs: a_throttle_storm_is_waited_out_in_the_region_that_throttles",
        ],
    ),
    requirement(
        "1.4",
        "everything goes through execute_operation",
        &["driver/tests/it/step_01_operations.rs: an_item_is_made_read_changed_and_removed"],
    ),
    requirement(
        "1.5",
        "each pure function: the happy path, 429, the request",
        &[
            "driver/src/pipeline/evaluate/tests.rs: a_success_is_the_end",
            "driver/src/gateway/throttle.rs: the_hint_of_the_service_is_what_is_waited",
            "driver/src/gateway/throttle.rs: repeating_ends_within_both_limits",
            "driver/src/pipeline/build_request.rs: requests_carry_what_their_operation_needs_and_nothing_else",
        ],
    ),
    requirement(
        "2.1",
        "account endpoint state: build, mark unavailable, expire",
        &[
            "driver/src/routing/account_state.rs: preferred_regions_come_first_and_the_others_in_the_accounts_order",
            "driver/src/routing/account_state.rs: unavailable_marks_survive_a_refresh_and_expire",
            "driver/src/routing/mod.rs: the_best_region_with_the_least_against_it_is_chosen",
        ],
    ),
    requirement(
        "2.2",
        "403/3 with a rate-limited refresh, 503, 404/1002, 429/3092, 500 for reads",
        &[
            "driver/src/pipeline/evaluate/tests.rs: the_table_in_the_documentation_is_what_the_driver_does",
            "driver/src/routing/refresh.rs: the_pause_doubles_while_nothing_is_learnt_and_starts_over_with_news",
        ],
    ),
    requirement(
        "2.3",
        "the deadline is enforced down to the request",
        &[
            "driver/src/gateway/tests.rs: nothing_goes_on_beyond_the_deadline",
            "driver/tests/it/step_02_regions.rs: no_operation_outlives_its_deadline_whatever_the_regions_do",
        ],
    ),
    requirement(
        "2.4",
        "options in layers, and environment variables",
        &[
            "driver/src/options/mod.rs: the_innermost_layer_that_sets_an_option_wins",
            "driver/src/options/environment.rs: the_table_has_the_variables_of_the_specification_and_no_name_twice",
        ],
    ),
    requirement(
        "2.5",
        "every retry by itself, and failover between regions",
        &[
            "driver/tests/it/retries.rs: every_row_of_the_table_is_what_happens_over_sockets",
            "driver/tests/it/step_02_regions.rs: reads_go_on_when_a_region_goes_down_whichever_way_it_does",
            "driver/tests/it/step_02_regions.rs: writes_follow_a_failover_of_the_write_region",
            "driver/tests/it/step_02_regions.rs: a_region_that_drains_loses_reads_and_writes",
            "driver/tests/it/step_02_regions.rs: a_black_hole_is_avoided_after_the_timeout_of_one_attempt",
        ],
    ),
    requirement(
        "3.1",
        "session tokens are resolved, passed on and remembered",
        &[
            "driver/src/session/store.rs: the_furthest_that_was_seen_is_sent",
            "driver/src/session/mod.rs: a_token_goes_where_it_can_matter",
        ],
    ),
    requirement(
        "3.2",
        "a breaker per partition and region",
        &[
            "driver/src/routing/partition_state.rs: two_reads_or_five_writes_in_a_row_open_a_breaker",
            "driver/src/routing/partition_state.rs: a_success_or_five_minutes_begin_the_count_anew",
            "driver/src/routing/partition_state.rs: an_open_breaker_is_probed_after_five_seconds_and_not_twice_at_once",
        ],
    ),
    requirement(
        "3.3",
        "read consistency strategies",
        &["driver/src/pipeline/build_request.rs: a_read_strategy_is_asked_for_by_name_and_needs_no_session"],
    ),
    requirement(
        "3.4",
        "thresholds of the breaker are options",
        &["driver/src/options/circuit_breaker.rs: the_defaults_are_those_of_the_specification"],
    ),
    requirement(
        "3.5",
        "session retry, breakers that trip and reset, partitions that fail over",
        &[
            "driver/tests/it/step_03_sessions_and_partitions.rs: a_read_behind_its_session_goes_to_a_region_that_is_not",
            "driver/tests/it/step_03_sessions_and_partitions.rs: a_partition_that_is_bad_in_one_region_is_left_alone_there_and_comes_back",
            "driver/tests/it/step_03_sessions_and_partitions.rs: a_partition_whose_writes_moved_is_written_where_they_went_and_the_others_stay",
            "driver/tests/it/step_03_sessions_and_partitions.rs: a_partition_that_cannot_be_written_in_its_region_is_written_where_the_service_took_it",
            "driver/tests/it/step_03_sessions_and_partitions.rs: a_split_is_survived_by_reads_writes_and_sessions",
        ],
    ),
    requirement(
        "4.1",
        "two attempts race, and say which they are",
        &[
            "driver/src/hedging/tests.rs: the_second_attempt_starts_at_the_threshold_and_the_loser_is_dropped",
            "driver/src/pipeline/tests.rs: a_slow_read_is_raced_and_both_attempts_are_shown",
        ],
    ),
    requirement(
        "4.2",
        "the threshold follows the recent 99th percentile, between 50 ms and 4 s",
        &[
            "driver/src/hedging/tests.rs: the_threshold_stays_within_its_bounds",
            "driver/src/routing/latencies.rs: a_few_samples_say_nothing_and_a_percentile_outlives_an_outage",
            "driver/src/pipeline/tests.rs: the_threshold_follows_what_was_measured_and_not_what_was_abandoned",
        ],
    ),
    requirement(
        "4.3",
        "hedging is an option of every layer",
        &[
            "driver/src/options/hedging.rs: thresholds_stay_within_the_gates",
            "driver/src/hedging/tests.rs: the_caller_and_the_account_may_forbid_hedging",
            "driver/tests/it/step_04_hedging.rs: hedging_is_off_for_an_operation_that_disables_it",
        ],
    ),
    requirement(
        "4.4",
        "fires after the threshold",
        &[
            "driver/tests/it/step_04_hedging.rs: in_a_brown_out_the_second_region_responds_soon_after_the_threshold",
        ],
    ),
    requirement(
        "4.4",
        "the primary wins",
        &["driver/tests/it/step_04_hedging.rs: a_first_attempt_that_is_slow_and_still_first_wins_its_race"],
    ),
    requirement(
        "4.4",
        "the secondary wins",
        &[
            "driver/tests/it/step_04_hedging.rs: in_a_brown_out_the_second_region_responds_soon_after_the_threshold",
            "driver/src/hedging/winner.rs: a_read_takes_the_most_conclusive_response",
        ],
    ),
    requirement(
        "4.4",
        "both fail",
        &["driver/tests/it/step_04_hedging.rs: when_both_hedged_attempts_fail_a_third_region_is_tried"],
    ),
    requirement(
        "4.4",
        "writes are hedged on multi-write accounts only, and never meet themselves",
        &[
            "driver/tests/it/step_04_hedging.rs: writes_are_raced_only_where_several_regions_take_them",
            "driver/tests/it/step_04_hedging.rs: hedged_writes_are_done_once_and_do_not_conflict_with_themselves",
            "driver/tests/it/step_04_hedging.rs: the_duplicate_of_a_hedged_write_that_arrives_late_changes_nothing",
        ],
    ),
    requirement(
        "5.1",
        "ALPN decides; Gateway 2.0 is recognised",
        &[
            "driver/src/sharding/protocol.rs: the_known_protocol_decides_and_the_default_one_until_then",
            "driver/tests/it/step_05_gateways.rs: gateway_2_0_locations_are_recognised_and_nothing_is_sent_there",
        ],
    ),
    requirement(
        "5.2",
        "adaptive dispatch",
        &[
            "driver/tests/it/step_05_gateways.rs: over_http1_there_are_no_shards",
            "driver/tests/it/step_05_gateways.rs: over_tls_http2_is_agreed_on_and_gets_shards",
        ],
    ),
    requirement(
        "5.3",
        "clients come from a factory",
        &["driver/src/sharding/clients.rs: endpoints_share_clients_that_they_do_not_use_yet"],
    ),
    requirement(
        "5.4",
        "protocol detection, the factory, dispatch",
        &[
            "driver/src/sharding/protocol.rs: a_protocol_is_learned_and_may_change",
            "driver/src/sharding/clients.rs: a_retired_client_is_not_given_out_and_an_unused_one_is_gone",
            "driver/src/gateway/tests.rs: an_http1_gateway_gets_one_client_and_no_shards",
        ],
    ),
    requirement(
        "6.1",
        "what is in flight is counted without a lock and given back by drop",
        &[
            "driver/src/sharding/in_flight.rs: however_a_request_ends_it_is_no_longer_in_flight",
            "driver/src/sharding/shards.rs: many_threads_neither_lose_a_count_nor_exceed_a_limit",
        ],
    ),
    requirement(
        "6.2",
        "the least busy shard of the active set",
        &[
            "driver/src/sharding/select.rs: new_requests_gather_on_the_least_busy_of_the_active_set",
            "driver/src/sharding/select.rs: the_active_set_is_rounded_up",
        ],
    ),
    requirement(
        "6.3",
        "every knob of sharding, from the environment too",
        &[
            "driver/src/sharding/config.rs: the_defaults_are_valid_and_leave_room_below_the_services_limit",
            "driver/src/sharding/config.rs: the_environment_stands_above_the_defaults",
        ],
    ),
    requirement(
        "6.4",
        "HTTP/2 goes over shards",
        &["driver/tests/it/step_06_sharding.rs: the_requests_of_a_burst_share_connections"],
    ),
    requirement(
        "6.5",
        "selection under load, scale-up, counts, several endpoints",
        &[
            "driver/tests/it/step_06_sharding.rs: sixty_four_requests_at_once_take_several_connections_and_dropping_them_leaves_nothing",
            "driver/tests/it/step_06_sharding.rs: a_shard_is_connected_before_it_is_needed",
            "driver/src/sharding/shards.rs: a_burst_fills_one_shard_after_the_other_and_no_stream_limit_is_broken",
            "driver/src/sharding/shards.rs: endpoints_share_clients_but_not_counts",
        ],
    ),
    requirement(
        "7.1",
        "health: hang, failures beside healthy peers, idle, and a busy processor",
        &[
            "driver/src/sharding/health.rs: a_shard_whose_requests_get_no_response_hangs",
            "driver/src/sharding/health.rs: failures_in_a_row_evict_only_where_a_peer_does_better",
            "driver/src/sharding/health.rs: a_shard_without_requests_for_a_minute_is_idle",
            "driver/src/sharding/health.rs: a_process_that_is_out_of_processor_blames_itself_first",
        ],
    ),
    requirement(
        "7.2",
        "the background sweep",
        &[
            "driver/src/sharding/tests.rs: every_interval_idle_shards_are_closed_without_anybody_asking",
            "driver/src/sharding/tests.rs: a_shard_is_ready_before_the_others_are_full_and_no_request_waits_for_it",
        ],
    ),
    requirement("7.3", "TCP keepalive", &["http/src/connect/tcp.rs: sockets_have_keepalive_and_nodelay"]),
    requirement(
        "7.4",
        "connectivity is retried on another shard where that is safe",
        &[
            "driver/src/gateway/connectivity.rs: another_shard_is_tried_where_that_is_safe_and_useful",
            "driver/tests/it/step_07_connections.rs: requests_whose_connection_breaks_are_sent_over_another",
        ],
    ),
    requirement(
        "7.5",
        "eviction, idle reclaim, scale-down, retry on another shard",
        &[
            "driver/src/sharding/scale.rs: an_unhealthy_shard_is_replaced",
            "driver/src/sharding/scale.rs: idle_shards_go_newest_first_down_to_the_minimum",
            "driver/src/gateway/tests.rs: a_broken_connection_is_tried_again_over_another_shard",
        ],
    ),
    requirement(
        "8.1",
        "rules with conditions and results",
        &[
            "driver/src/faults/attributes.rs: a_rule_matches_when_all_it_says_about_the_request_does",
            "faults/src/set/tests.rs: requests_are_skipped_and_hits_are_limited",
        ],
    ),
    requirement(
        "8.2",
        "faults below sharding",
        &[
            "driver/src/faults/tests.rs: per_shard_a_fault_on_one_shard_sends_requests_to_the_others_while_it_is_evicted",
        ],
    ),
    requirement(
        "8.3",
        "the pipeline under injected faults",
        &[
            "driver/tests/it/step_08_fault_injection.rs: a_read_fails_over_and_every_attempt_is_recorded",
            "driver/tests/it/step_08_fault_injection.rs: throttling_is_waited_for_in_place",
            "driver/tests/it/step_08_fault_injection.rs: a_create_whose_response_is_lost_is_undecided_and_was_done_once",
            "driver/tests/it/step_08_fault_injection.rs: a_share_of_failures_slows_reads_down_and_fails_none",
        ],
    ),
    requirement(
        "§7.3 1",
        "shard eviction",
        &[
            "driver/src/faults/tests.rs: shard_eviction_a_shard_that_fails_again_and_again_is_replaced_by_a_healthy_one",
        ],
    ),
    requirement(
        "§7.3 2",
        "scale-up under failure",
        &["driver/src/faults/tests.rs: scale_up_under_failure_and_scale_down_after_recovery"],
    ),
    requirement(
        "§7.3 3",
        "scale-down after recovery",
        &["driver/src/faults/tests.rs: scale_up_under_failure_and_scale_down_after_recovery"],
    ),
    requirement(
        "§7.3 4",
        "a fault on one shard only",
        &[
            "driver/src/faults/tests.rs: per_shard_a_fault_on_one_shard_sends_requests_to_the_others_while_it_is_evicted",
        ],
    ),
    requirement(
        "§7.3 5",
        "the full pipeline",
        &[
            "driver/src/faults/tests.rs: full_pipeline_injected_responses_and_failures_are_handled_like_real_ones",
        ],
    ),
    requirement(
        "9.1",
        "the client reads items through the driver",
        &["client/tests/it/items.rs: an_item_is_created_read_replaced_and_deleted"],
    ),
    requirement(
        "9.2",
        "the client creates items through the driver",
        &["client/tests/it/items.rs: an_item_is_created_read_replaced_and_deleted"],
    ),
    requirement(
        "9.3",
        "and so against regions that fail",
        &["client/tests/it/examples.rs: the_example_two_regions_runs"],
    ),
    requirement(
        "10.1",
        "all other operations go through the driver",
        &[
            "client/tests/it/items.rs: a_patch_changes_properties_of_an_item_under_a_condition",
            "client/tests/it/items.rs: a_batch_is_applied_as_a_whole_or_not_at_all",
            "client/tests/it/feeds.rs: a_cross_partition_query_streams_rows_in_order",
            "client/tests/it/feeds.rs: changes_are_read_from_the_beginning_or_from_a_continuation",
            "client/tests/it/resources.rs: databases_and_containers_are_created_read_and_deleted",
            "client/tests/it/resources.rs: throughput_is_read_and_changed",
        ],
    ),
    requirement(
        "10.7",
        "faults are injected through the driver",
        &["driver/tests/it/step_08_fault_injection.rs: a_read_fails_over_and_every_attempt_is_recorded"],
    ),
    requirement(
        "10.8",
        "everything together",
        &[
            "driver/tests/it/load.rs: one_write_region_comes_and_goes",
            "driver/tests/it/load.rs: many_write_regions_come_and_go",
            "client/tests/it/examples.rs: every_example_is_run",
        ],
    ),
];

/// The numbered items of the specification. 10.2 to 10.6 remove code that was never here.
const NUMBERED: &[&str] = &[
    "1.1", "1.2", "1.3", "1.4", "1.5", "2.1", "2.2", "2.3", "2.4", "2.5", "3.1", "3.2", "3.3", "3.4", "3.5",
    "4.1", "4.2", "4.3", "4.4", "5.1", "5.2", "5.3", "5.4", "6.1", "6.2", "6.3", "6.4", "6.5", "7.1", "7.2",
    "7.3", "7.4", "7.5", "8.1", "8.2", "8.3", "9.1", "9.2", "9.3", "10.1", "10.7", "10.8", "§7.3 1",
    "§7.3 2", "§7.3 3", "§7.3 4", "§7.3 5",
];

#[test]
fn every_step_of_the_specification_has_its_tests() {
    for step in NUMBERED {
        assert!(STEPS.iter().any(|requirement| requirement.step == *step), "step {step} has no tests");
    }
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for Requirement { step, what, tests } in STEPS {
        assert!(NUMBERED.contains(step), "there is no step {step}");
        assert!(!tests.is_empty(), "step {step} ({what}) has no tests");
        for test in *tests {
            let (path, name) = test.split_once(": ").expect("a path and a name");
            let text = std::fs::read_to_string(crates.join(path))
                .unwrap_or_else(|error| panic!("step {step} ({what}): {path}: {error}"));
            assert!(is_tested(&text, name), "step {step} ({what}): no test {name} in {path}");
        }
    }
}

/// Whether a source has a test of this name, that runs.
fn is_tested(text: &str, name: &str) -> bool {
    let Some(at) = text.find(&format!("fn {name}(")) else { return false };
    let line = text[..at].rfind('\n').unwrap_or(0);
    let before = text[..line].lines().rev().map(str::trim);
    let attributes: Vec<&str> =
        before.take_while(|line| line.starts_with("#[") || line.starts_with("//")).collect();
    attributes.iter().any(|line| line.starts_with("#[test") || line.starts_with("#[tokio::test"))
        && !attributes.iter().any(|line| line.starts_with("#[ignore"))
}
