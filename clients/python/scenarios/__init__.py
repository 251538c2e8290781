"""Every scenario, by subject, in the order in which they run."""

from . import (  # noqa: F401
    quickstart,
    databases,
    containers,
    partition_keys,
    items,
    concurrency,
    patches,
    batches,
    queries,
    merged_queries,
    paging,
    reading_many,
    change_feed,
    throughput,
    permissions,
    credentials,
    sessions,
    lifetimes,
    refusals,
    search,
)
