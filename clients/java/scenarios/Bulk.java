package scenarios;

import static harness.Check.check;
import static harness.Check.equal;
import static harness.Json.item;
import static harness.Json.key;

import com.azure.cosmos.models.*;
import com.fasterxml.jackson.databind.node.ObjectNode;
import harness.Account;
import harness.Container;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Bulk: many operations of any partition, a hundred to a request. */
public final class Bulk {
    private Bulk() {}

    public static void bulkWritesReachEveryPartition(Account account) {
        Container container = account.severalPartitions();
        List<CosmosItemOperation> operations = new ArrayList<>();
        for (int number = 0; number < 500; number++) {
            ObjectNode body = item("id", "" + number, "pk", "k" + number % 40, "n", number);
            operations.add(CosmosBulkOperations.getCreateItemOperation(body, key("k" + number % 40), number));
        }
        for (CosmosBulkOperationResponse<Object> response : container.bulk(operations)) {
            check(response.getException() == null, response.getException());
            equal(response.getResponse().getStatusCode(), 201, "status");
            check(response.getResponse().getRequestCharge() > 0, "no charge");
        }
        equal(container.rows("SELECT VALUE COUNT(1) FROM c"), List.of(500), "items");
    }

    public static void everyKindOfOperationHasItsOwnResult(Account account) {
        Container container = account.severalPartitions();
        for (int number = 0; number < 5; number++) {
            container.create(item("id", "" + number, "pk", "k" + number, "n", number));
        }
        List<CosmosItemOperation> operations = List.of(
                CosmosBulkOperations.getCreateItemOperation(item("id", "0", "pk", "k0"), key("k0"), "taken"),
                CosmosBulkOperations.getUpsertItemOperation(item("id", "1", "pk", "k1", "n", 10), key("k1"), "upserted"),
                CosmosBulkOperations.getReplaceItemOperation("2", item("id", "2", "pk", "k2", "n", 20), key("k2"), "replaced"),
                CosmosBulkOperations.getPatchItemOperation(
                        "3", key("k3"), CosmosPatchOperations.create().increment("/n", 27), "patched"),
                CosmosBulkOperations.getReadItemOperation("4", key("k4"), "read"),
                CosmosBulkOperations.getDeleteItemOperation("none", key("k5"), "missing"));
        Map<String, Integer> codes = new TreeMap<>();
        for (CosmosBulkOperationResponse<Object> response : container.bulk(operations)) {
            codes.put(response.getOperation().getContext().toString(), response.getResponse().getStatusCode());
        }
        equal(
                codes,
                new TreeMap<>(Map.of(
                        "taken", 409, "upserted", 200, "replaced", 200, "patched", 200, "read", 200, "missing", 404)),
                "codes");
        equal(container.read("3", "k3").get("n"), 30, "n");
    }
}
