package scenarios;

import static harness.Check.check;
import static harness.Check.equal;
import static harness.Check.ids;
import static harness.Check.name;
import static harness.Check.sleep;
import static harness.Json.item;

import com.azure.cosmos.ChangeFeedProcessor;
import com.azure.cosmos.ChangeFeedProcessorBuilder;
import com.azure.cosmos.models.*;
import com.fasterxml.jackson.databind.JsonNode;
import harness.Account;
import harness.Container;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** The change feed, latest version and all versions and deletes, and the processor that follows it. */
public final class ChangeFeed {
    private ChangeFeed() {}

    /** What the feed has now, and the continuation after it. */
    private record Changes(List<JsonNode> items, String token) {}

    private static Changes drain(Container container, CosmosChangeFeedRequestOptions options) {
        List<JsonNode> items = new ArrayList<>();
        String token = null;
        for (FeedResponse<JsonNode> page : container.changes(options)) {
            items.addAll(page.getResults());
            token = page.getContinuationToken();
        }
        return new Changes(items, token);
    }

    private static CosmosChangeFeedRequestOptions from(String token) {
        return CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(token);
    }

    private static List<String> sequence(int count) {
        return java.util.stream.IntStream.range(0, count).mapToObj(n -> "" + n).sorted().toList();
    }

    public static void theFeedStartsAtTheBeginningAndResumes(Account account) {
        Container container = account.severalPartitions();
        for (int number = 0; number < 30; number++) {
            container.create(item("id", "" + number, "pk", "k" + number % 7));
        }
        Changes all = drain(container, CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(FeedRange.forFullRange()));
        equal(ids(all.items), sequence(30), "changes");
        check(all.items.get(0).has("_lsn"), "a change carries its _lsn");
        container.upsert(item("id", "3", "pk", "k3", "n", 1));
        container.create(item("id", "new", "pk", "k1"));
        Changes more = drain(container, from(all.token));
        equal(ids(more.items), List.of("3", "new"), "changes after the token");
        equal(drain(container, from(more.token)).items, List.of(), "nothing new");
    }

    public static void theFeedStartsNowAndAtATime(Account account) {
        Container container = account.container();
        container.create(item("id", "before", "pk", "a"));
        Changes none = drain(container, CosmosChangeFeedRequestOptions.createForProcessingFromNow(FeedRange.forFullRange()));
        equal(none.items, List.of(), "changes from now");
        sleep(2100);
        Instant start = Instant.now();
        sleep(1100);
        container.create(item("id", "after", "pk", "a"));
        equal(ids(drain(container, from(none.token)).items), List.of("after"), "changes after now");
        Changes since = drain(
                container, CosmosChangeFeedRequestOptions.createForProcessingFromPointInTime(start, FeedRange.forFullRange()));
        equal(ids(since.items), List.of("after"), "changes since a time");
    }

    public static void theFeedOfOneKeyAndOfEachRange(Account account) {
        Container container = account.severalPartitions();
        for (int number = 0; number < 40; number++) {
            container.create(item("id", "" + number, "pk", "k" + number % 8));
        }
        Changes one = drain(container, CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(
                FeedRange.forLogicalPartition(new PartitionKey("k3"))));
        equal(ids(one.items), List.of("11", "19", "27", "3", "35"), "changes of a key");
        List<JsonNode> seen = new ArrayList<>();
        for (FeedRange range : container.feedRanges()) {
            seen.addAll(drain(container, CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(range)).items);
        }
        equal(ids(seen), sequence(40), "changes of every range");
    }

    public static void allVersionsAndDeletes(Account account) {
        Container container = account.severalPartitions(properties -> properties.setChangeFeedPolicy(
                ChangeFeedPolicy.createAllVersionsAndDeletesPolicy(Duration.ofMinutes(10))));
        Changes start = drain(container, CosmosChangeFeedRequestOptions.createForProcessingFromNow(FeedRange.forFullRange())
                .allVersionsAndDeletes());
        container.create(item("id", "1", "pk", "a", "n", 1));
        container.upsert(item("id", "1", "pk", "a", "n", 2));
        container.delete("1", "a");
        List<JsonNode> changes = drain(container, from(start.token).allVersionsAndDeletes()).items;
        List<String> kinds = changes.stream().map(change -> change.at("/metadata/operationType").asText()).toList();
        equal(kinds, List.of("create", "replace", "delete"), "operations");
        equal(changes.get(1).at("/current/n"), 2, "n");
    }

    /** The processor is the asynchronous client's, so it runs once. */
    public static void aProcessorHandsEveryChangeToItsHandler(Account account) throws InterruptedException {
        if (account.flavour.name().equals("sync")) {
            return;
        }
        Container container = account.severalPartitions();
        Container leases = account.container(
                properties -> properties.setPartitionKeyDefinition(Account.keyedBy("/id")));
        Set<String> seen = new ConcurrentSkipListSet<>();
        BlockingQueue<String> arrived = new LinkedBlockingQueue<>();
        ChangeFeedProcessor processor = new ChangeFeedProcessorBuilder()
                .hostName(name("host"))
                .feedContainer(account.asynchronous(container))
                .leaseContainer(account.asynchronous(leases))
                .options(new ChangeFeedProcessorOptions()
                        .setStartFromBeginning(true)
                        .setFeedPollDelay(Duration.ofMillis(100)))
                .handleChanges(changes -> changes.forEach(change -> {
                    seen.add(change.get("id").asText());
                    arrived.add(change.get("id").asText());
                }))
                .buildChangeFeedProcessor();
        for (int number = 0; number < 20; number++) {
            container.create(item("id", "" + number, "pk", "k" + number));
        }
        processor.start().block();
        while (seen.size() < 20) {
            check(arrived.poll(30, TimeUnit.SECONDS) != null, "only " + seen + " arrived");
        }
        container.create(item("id", "late", "pk", "k3"));
        while (!seen.contains("late")) {
            check(arrived.poll(30, TimeUnit.SECONDS) != null, "the late one did not arrive");
        }
        equal(processor.getCurrentState().block().size(), container.feedRanges().size(), "leases");
        processor.stop().block();
        equal(seen.size(), 21, "changes");
    }
}
