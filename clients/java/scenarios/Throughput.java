package scenarios;

import static harness.Check.check;
import static harness.Check.equal;
import static harness.Check.fails;
import static harness.Check.name;
import static harness.Check.range;
import static harness.Check.sorted;
import static harness.Json.item;

import com.azure.cosmos.models.*;
import harness.Account;
import harness.Container;
import harness.Database;
import java.util.List;

/** Throughput: manual, autoscale, shared, and what changing it does. */
public final class Throughput {
    private Throughput() {}

    private static Integer manual(ThroughputResponse response) {
        return response.getProperties().getManualThroughput();
    }

    public static void containersHaveManualThroughput(Account account) {
        Container container = account.container(1000, properties -> {});
        equal(manual(container.throughput()), 1000, "throughput");
        check(container.throughput().getMinThroughput() >= 400, "no minimum");
        equal(manual(container.replaceThroughput(ThroughputProperties.createManualThroughput(1200))), 1200, "throughput");
        equal(manual(container.throughput()), 1200, "throughput");
        fails(400, () -> container.replaceThroughput(ThroughputProperties.createManualThroughput(350)));
    }

    public static void containersHaveAutoscaleThroughput(Account account) {
        CosmosContainerProperties wanted = new CosmosContainerProperties(name("c"), "/pk");
        account.database.createContainer(wanted, ThroughputProperties.createAutoscaledThroughput(5000));
        Container container = account.database.container(wanted.getId());
        equal(container.throughput().getProperties().getAutoscaleMaxThroughput(), 5000, "largest throughput");
        container.replaceThroughput(ThroughputProperties.createAutoscaledThroughput(7000));
        equal(container.throughput().getProperties().getAutoscaleMaxThroughput(), 7000, "largest throughput");
    }

    public static void databasesMayHaveThroughput(Account account) {
        String id = name("db");
        account.client.createDatabase(id, ThroughputProperties.createManualThroughput(800));
        Database shared = account.client.database(id);
        equal(manual(shared.throughput()), 800, "throughput");
        equal(manual(shared.replaceThroughput(ThroughputProperties.createManualThroughput(900))), 900, "throughput");
        shared.delete();
    }

    public static void moreThroughputSplitsPartitionsAndLeavesEverythingInPlace(Account account) {
        Container container = account.container();
        for (int number = 0; number < 60; number++) {
            container.create(item("id", "" + number, "pk", "k" + number, "n", number));
        }
        equal(container.feedRanges().size(), 1, "ranges at 400 RU/s");
        container.replaceThroughput(ThroughputProperties.createManualThroughput(25_000));
        while (container.throughput().isReplacePending()) {
            Thread.onSpinWait();
        }
        equal(container.read("7", "k7").get("n"), 7, "n");
        equal(sorted(container.rows("SELECT VALUE c.n FROM c")), range(0, 60), "items");
        equal(container.rows("SELECT VALUE c.n FROM c ORDER BY c.n"), range(0, 60), "items in order");
        equal(container.rows("SELECT VALUE COUNT(1) FROM c"), List.of(60), "count");
    }
}
