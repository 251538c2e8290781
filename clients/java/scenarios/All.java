package scenarios;

import java.util.List;

/** Every subject, in the order in which they run. */
public final class All {
    public static final List<Class<?>> SUBJECTS = List.of(
            Quickstart.class,
            Databases.class,
            Containers.class,
            Items.class,
            PartitionKeys.class,
            Patches.class,
            Batches.class,
            Bulk.class,
            Queries.class,
            MergedQueries.class,
            ChangeFeed.class,
            Throughput.class,
            Throttling.class,
            Permissions.class,
            Sessions.class,
            Regions.class,
            Lifetimes.class,
            Search.class,
            Modes.class);

    private All() {}
}
