package scenarios;

import static harness.Check.check;
import static harness.Check.equal;
import static harness.Check.fails;
import static harness.Json.item;
import static harness.Json.key;
import static harness.Json.keys;

import com.azure.cosmos.models.*;
import com.fasterxml.jackson.databind.node.ObjectNode;
import harness.Account;
import harness.Container;
import java.util.List;
import java.util.function.Consumer;

/** Transactional batches. */
public final class Batches {
    private Batches() {}

    private static List<Integer> codes(Container container, Consumer<CosmosBatch> define) {
        CosmosBatch batch = CosmosBatch.createCosmosBatch(key("a"));
        define.accept(batch);
        CosmosBatchResponse response = container.execute(batch);
        return response.getResults().stream().map(CosmosBatchOperationResult::getStatusCode).toList();
    }

    private static ObjectNode numbered(int number) {
        return item("id", "" + number, "pk", "a", "n", number);
    }

    public static void aBatchOfEveryOperationSucceeds(Account account) {
        Container container = account.container();
        for (int number = 1; number <= 5; number++) {
            container.create(numbered(number));
        }
        CosmosBatch batch = CosmosBatch.createCosmosBatch(key("a"));
        batch.createItemOperation(numbered(10));
        batch.upsertItemOperation(numbered(11));
        batch.upsertItemOperation(item("id", "1", "pk", "a", "n", 100));
        batch.replaceItemOperation("2", item("id", "2", "pk", "a", "n", 200));
        batch.patchItemOperation("3", CosmosPatchOperations.create().increment("/n", 30));
        batch.readItemOperation("4");
        batch.deleteItemOperation("5");
        CosmosBatchResponse response = container.execute(batch);
        check(response.isSuccessStatusCode(), response.getStatusCode());
        List<CosmosBatchOperationResult> results = response.getResults();
        equal(
                results.stream().map(CosmosBatchOperationResult::getStatusCode).toList(),
                List.of(201, 201, 200, 200, 200, 200, 204),
                "codes");
        List<Integer> numbers = results.subList(2, 6).stream()
                .map(result -> result.getItem(ObjectNode.class).get("n").asInt())
                .toList();
        equal(numbers, List.of(100, 200, 33, 4), "n");
        for (CosmosBatchOperationResult result : results.subList(0, 6)) {
            equal(result.getETag(), result.getItem(ObjectNode.class).get("_etag"), "etag");
            check(result.getRequestCharge() > 0, "no charge");
        }
        check(response.getRequestCharge() > 0 && response.getSessionToken() != null, "no charge or session");
        fails(404, () -> container.read("5", "a"));
    }

    public static void aFailedBatchLeavesNothingBehind(Account account) {
        Container container = account.container();
        container.create(numbered(1));
        CosmosBatchItemRequestOptions stale = new CosmosBatchItemRequestOptions().setIfMatchETag("\"stale\"");
        equal(codes(container, batch -> {
            batch.createItemOperation(numbered(9));
            batch.createItemOperation(numbered(9));
        }), List.of(424, 409), "a conflict");
        equal(codes(container, batch -> {
            batch.readItemOperation("none");
            batch.createItemOperation(numbered(9));
        }), List.of(404, 424), "a missing item");
        equal(codes(container, batch -> {
            batch.upsertItemOperation(item("id", "1", "pk", "a", "n", 5));
            batch.deleteItemOperation("none");
            batch.createItemOperation(numbered(9));
        }), List.of(424, 404, 424), "a missing item");
        equal(codes(container, batch -> {
            batch.replaceItemOperation("1", item("id", "1", "pk", "a", "n", 9), stale);
            batch.createItemOperation(numbered(9));
        }), List.of(412, 424), "a stale etag");
        equal(container.rowsOf("a", "SELECT VALUE c.n FROM c"), List.of(1), "items");
    }

    public static void batchesAreLimited(Account account) {
        Container container = account.container();
        check(filled(container, 100, 1).isSuccessStatusCode(), "a hundred operations are allowed");
        fails(400, () -> filled(container, 101, 1));
        fails(413, () -> filled(container, 2, 1_200_000));
    }

    private static CosmosBatchResponse filled(Container container, int count, int size) {
        CosmosBatch batch = CosmosBatch.createCosmosBatch(key("a"));
        for (int number = 0; number < count; number++) {
            batch.upsertItemOperation(item("id", "" + number, "pk", "a", "text", "x".repeat(size)));
        }
        return container.execute(batch);
    }

    public static void aBatchReadsItsOwnWrites(Account account) {
        Container container = account.severalPartitions(
                properties -> properties.setPartitionKeyDefinition(Account.keyedBy("/a", "/b")));
        CosmosBatch batch = CosmosBatch.createCosmosBatch(keys("x", "y"));
        batch.createItemOperation(item("id", "1", "a", "x", "b", "y", "n", 1));
        batch.patchItemOperation("1", CosmosPatchOperations.create().increment("/n", 1));
        batch.readItemOperation("1");
        CosmosBatchResponse response = container.execute(batch);
        equal(response.getResults().get(2).getItem(ObjectNode.class).get("n"), 2, "n");
    }
}
