package scenarios;

import static harness.Check.check;
import static harness.Check.equal;
import static harness.Check.fails;
import static harness.Json.item;
import static harness.Json.key;

import com.azure.cosmos.ThrottlingRetryOptions;
import com.azure.cosmos.models.CosmosBatch;
import harness.Account;
import harness.Container;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;

/** More than the throughput allows. {@code clients/run} also runs this where it is enforced (PERI_RU=enforce). */
public final class Throttling {
    private static final boolean ENFORCED = "enforce".equals(System.getenv("PERI_RU"));
    /** About 6 RU each: three seconds' worth of 400 RU/s. */
    private static final int COUNT = 200;

    private Throttling() {}

    public static void throttlingOfALargeLoadIsWaitedOutByTheSdk(Account account) throws Exception {
        Container container = account.container();
        ExecutorService threads = Executors.newFixedThreadPool(20);
        try {
            List<Future<?>> writes = IntStream.range(0, COUNT)
                    .<Future<?>>mapToObj(number -> threads.submit(() -> {
                        container.upsert(item("id", "" + number, "pk", "k" + number));
                    }))
                    .toList();
            for (Future<?> write : writes) {
                write.get();
            }
        } finally {
            threads.shutdown();
        }
        equal(container.rows("SELECT VALUE COUNT(1) FROM c"), List.of(COUNT), "items");
    }

    public static void throttlingTellsTheImpatientHowLongToWait(Account account) {
        if (!ENFORCED) {
            return;
        }
        Container container = account.container();
        var impatient = account.open(account.builder()
                .throttlingRetryOptions(new ThrottlingRetryOptions().setMaxRetryAttemptsOnThrottledRequests(0)));
        Container same = impatient.database(account.database.id()).container(container.id());
        CosmosBatch batch = CosmosBatch.createCosmosBatch(key("a"));
        for (int number = 0; number < 100; number++) {
            batch.upsertItemOperation(item("id", "" + number, "pk", "a"));
        }
        double spent = same.execute(batch).getRequestCharge();
        check(spent > 500, "a hundred writes cost " + spent + " RU");
        var error = fails(429, () -> same.read("1", "a"));
        equal(error.getSubStatusCode(), 3200, "sub-status");
        Duration wait = error.getRetryAfterDuration();
        check(wait.toMillis() > 0 && wait.toMillis() < 2000, wait + " for " + spent + " RU");
        // The container's other client waits by itself.
        equal(container.read("1", "a").get("id"), "1", "id");
    }
}
