package scenarios;

import static harness.Check.equal;
import static harness.Check.sleep;
import static harness.Json.item;

import com.azure.cosmos.CosmosException;
import com.fasterxml.jackson.databind.node.ObjectNode;
import harness.Account;
import harness.Container;
import harness.Control;
import java.util.List;

/** A client with preferred regions goes on working while regions go away, drain and fail over. */
public final class Regions {
    private static final int ITEMS = 10;

    private Regions() {}

    /** A filled container as a client that reads in the second region sees it, and elsewhere if it has to. */
    private static Container near(Account account, List<String> regions) {
        Container container = account.container();
        for (int number = 0; number < ITEMS; number++) {
            container.create(item("id", "" + number, "pk", "k" + number, "n", number));
        }
        Container near = account.open(account.builder()
                        .preferredRegions(List.of(regions.get(1), regions.get(2), regions.get(0))))
                .database(account.database.id())
                .container(container.id());
        readsEverything(near);
        return near;
    }

    private static void readsEverything(Container container) {
        for (int number = 0; number < ITEMS; number++) {
            equal(untilItArrives(container, number).get("n"), number, "n");
        }
        equal(container.rows("SELECT VALUE COUNT(1) FROM c"), List.of(ITEMS), "items");
    }

    /** Regions are a few milliseconds apart, and another client wrote it. */
    private static ObjectNode untilItArrives(Container container, int number) {
        for (int attempt = 0; ; attempt++) {
            try {
                return container.read("" + number, "k" + number);
            } catch (CosmosException error) {
                if (error.getStatusCode() != 404 || attempt == 50) {
                    throw error;
                }
                sleep(20);
            }
        }
    }

    private static void during(String region, String change, String details, Runnable steps) {
        Control.region(region, change, details);
        try {
            steps.run();
        } finally {
            Control.region(region, "up", "{}");
        }
    }

    public static void regionsDownAreLeftForTheNextPreferredOne(Account account) {
        List<String> regions = Control.regions();
        if (regions.size() < 3) {
            return;
        }
        for (String as : List.of("refused", "unavailable")) {
            Container container = near(account, regions);
            during(regions.get(1), "down", "{\"as\":\"" + as + "\"}", () -> {
                readsEverything(container);
                container.upsert(item("id", "0", "pk", "k0", "n", 0));
            });
            readsEverything(container);
        }
    }

    public static void regionsThatDrainAreLeft(Account account) {
        List<String> regions = Control.regions();
        if (regions.size() < 3) {
            return;
        }
        Container container = near(account, regions);
        during(regions.get(1), "drain", "{}", () -> {
            readsEverything(container);
            container.upsert(item("id", "0", "pk", "k0", "n", 0));
        });
        readsEverything(container);
    }

    public static void regionsFailOverAndWritesFollow(Account account) {
        List<String> regions = Control.regions();
        if (regions.size() < 3) {
            return;
        }
        Container container = near(account, regions);
        try {
            int round = 0;
            for (String region : List.of(regions.get(1), regions.get(2), regions.get(0))) {
                Control.region(region, "failover", "{}");
                container.upsert(item("id", "0", "pk", "k0", "n", 0, "round", round++));
            }
            readsEverything(container);
        } finally {
            Control.region(regions.get(0), "failover", "{}");
        }
    }
}
