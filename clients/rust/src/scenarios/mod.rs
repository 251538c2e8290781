//! Every scenario, by subject.

mod batches;
mod change_feed;
mod containers;
mod databases;
mod items;
mod lifetimes;
mod partition_keys;
mod patches;
mod queries;
mod quickstart;
mod sessions;
mod throughput;
mod vectors;

use crate::harness::Scenario;

/// Lists async functions as scenarios under their own names.
macro_rules! scenarios {
    ($($module:ident :: $function:ident),* $(,)?) => {
        vec![$(Scenario {
            name: stringify!($function),
            run: |account| Box::pin($module::$function(account)),
        }),*]
    };
}

/// All scenarios, in the order in which they run.
pub fn all() -> Vec<Scenario> {
    scenarios![
        quickstart::quickstart,
        databases::databases_are_created_read_queried_and_deleted,
        databases::a_wrong_key_is_refused,
        databases::what_is_missing_is_said_to_be,
        containers::containers_are_created_read_queried_replaced_and_deleted,
        containers::definitions_make_the_round_trip,
        containers::a_recreated_container_is_found_again,
        containers::resources_are_found_by_their_rid,
        items::items_are_created_read_replaced_upserted_and_deleted,
        items::responses_carry_charge_session_and_lsn,
        items::values_keep_their_type,
        items::ids_may_hold_any_allowed_character,
        items::preconditions_decide,
        items::items_travel_as_text_too,
        items::an_item_may_be_two_megabytes_and_no_more,
        items::unique_keys_hold_within_a_logical_partition,
        partition_keys::every_type_of_value_is_a_key,
        partition_keys::version_one_keys,
        partition_keys::hierarchical_keys_and_their_prefixes,
        patches::patch_every_operation,
        patches::patch_is_all_or_nothing,
        batches::a_batch_of_every_operation_succeeds,
        batches::a_failed_batch_leaves_nothing_behind,
        batches::batches_are_limited,
        queries::queries_in_one_partition,
        queries::filters_across_partitions,
        queries::order_by_top_and_distinct_across_partitions,
        queries::gateway_plans_across_partitions,
        queries::pages_resume,
        queries::queries_report_metrics,
        queries::feed_ranges_cover_everything_once,
        queries::bad_queries_are_refused,
        change_feed::the_feed_starts_at_the_beginning_and_resumes,
        change_feed::the_feed_starts_now_and_at_a_time,
        change_feed::the_feed_of_one_key,
        change_feed::all_versions_and_deletes,
        throughput::throughput_is_read_and_replaced,
        throughput::autoscale_is_read_and_replaced,
        throughput::more_throughput_leaves_everything_in_place,
        sessions::one_reads_ones_own_writes,
        sessions::a_token_may_be_handed_to_another_client,
        sessions::a_token_from_the_future_is_not_served,
        lifetimes::items_expire,
        vectors::the_nearest_vectors_come_first,
        vectors::policies_make_the_round_trip,
    ]
}
