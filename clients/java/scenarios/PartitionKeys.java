package scenarios;

import static harness.Check.equal;
import static harness.Check.fails;
import static harness.Check.ids;
import static harness.Json.item;
import static harness.Json.key;
import static harness.Json.keys;

import com.azure.cosmos.models.*;
import com.fasterxml.jackson.databind.JsonNode;
import harness.Account;
import harness.Container;
import java.util.Arrays;
import java.util.List;

/** Every kind of partition key, and every kind of value in one. */
public final class PartitionKeys {
    private static final List<Object> VALUES = Arrays.asList(
            "", "plain", "with space", "quote \" and \\ backslash", "ünïcödé 中文 😀", "x".repeat(300), 0, 1, -1, 1.5, -128,
            2147483647, 9007199254740992.0, 5e-324, 1.7976931348623157e308, true, false);

    private PartitionKeys() {}

    private static void everyValueMakesTheRoundTrip(Container container) {
        for (int number = 0; number < VALUES.size(); number++) {
            container.create(item("id", "item" + number, "pk", VALUES.get(number)));
        }
        for (int number = 0; number < VALUES.size(); number++) {
            Object value = VALUES.get(number);
            equal(container.read("item" + number, value).get("pk"), value, "pk");
            equal(container.rowsOf(value, "SELECT VALUE c.id FROM c"), List.of("item" + number), "items of " + value);
        }
        equal(container.rows("SELECT VALUE COUNT(1) FROM c"), List.of(VALUES.size()), "items across partitions");
    }

    public static void everyTypeOfValueIsAKey(Account account) {
        everyValueMakesTheRoundTrip(account.severalPartitions());
    }

    public static void versionOneKeys(Account account) {
        everyValueMakesTheRoundTrip(account.severalPartitions(properties ->
                properties.getPartitionKeyDefinition().setVersion(PartitionKeyDefinitionVersion.V1)));
    }

    public static void missingAndNullAreDifferentKeys(Account account) {
        Container container = account.severalPartitions();
        CosmosItemRequestOptions plain = new CosmosItemRequestOptions();
        PartitionKey none = new PartitionKey(null);
        container.create(item("id", "missing"), PartitionKey.NONE, plain);
        container.create(item("id", "null", "pk", null), none, plain);
        equal(container.read("missing", PartitionKey.NONE, plain).getItem().get("id"), "missing", "id");
        equal(container.read("null", none, plain).getItem().get("id"), "null", "id");
        fails(404, () -> container.read("null", PartitionKey.NONE, plain));
        fails(404, () -> container.read("missing", none, plain));
        equal(ids(container.rows("SELECT * FROM c")), List.of("missing", "null"), "ids");
    }

    public static void nestedAndQuotedPathsLeadToTheKey(Account account) {
        Container nested = account.container(properties ->
                properties.setPartitionKeyDefinition(Account.keyedBy("/address/city")));
        CosmosItemRequestOptions plain = new CosmosItemRequestOptions();
        nested.create(item("id", "1", "address", item("city", "Basel")), key("Basel"), plain);
        equal(nested.read("1", "Basel").get("id"), "1", "id");
        Container quoted = account.container(properties ->
                properties.setPartitionKeyDefinition(Account.keyedBy("/\"first-level\"/\"le/vel2\"")));
        quoted.create(item("id", "1", "first-level", item("le/vel2", "deep")), key("deep"), plain);
        equal(quoted.read("1", "deep").get("id"), "1", "id");
    }

    public static void hierarchicalKeysAndTheirPrefixes(Account account) {
        Container container = account.severalPartitions(properties ->
                properties.setPartitionKeyDefinition(Account.keyedBy("/tenant", "/user", "/session")));
        CosmosItemRequestOptions plain = new CosmosItemRequestOptions();
        for (String tenant : List.of("t1", "t2")) {
            for (String user : List.of("u1", "u2", "u3")) {
                for (int session = 1; session <= 2; session++) {
                    container.create(
                            item("id", tenant + user + session, "tenant", tenant, "user", user, "session", session),
                            keys(tenant, user, session),
                            plain);
                }
            }
        }
        equal(container.read("t1u21", keys("t1", "u2", 1), plain).getItem().get("user"), "u2", "user");
        equal(count(container, keys("t1")), 6, "items of a tenant");
        equal(count(container, keys("t1", "u1")), 2, "items of a user");
        equal(count(container, keys("t1", "u1", 1)), 1, "items of a session");
        equal(count(container, keys("nobody")), 0, "items of nobody");
        List<JsonNode> ordered = container.rowsOf(keys("t2"), "SELECT VALUE c.id FROM c ORDER BY c.id DESC");
        equal(ordered.get(0), "t2u32", "first");
        fails(400, () -> container.read("t1u11", keys("t1", "u1"), plain));
        container.delete("t1u11", keys("t1", "u1", 1), plain);
        equal(count(container, keys("t1")), 5, "items of a tenant after a delete");
    }

    private static int count(Container container, PartitionKey key) {
        return container.rowsOf(key, "SELECT * FROM c").size();
    }

    public static void aKeyThatDoesNotMatchTheItemIsRefused(Account account) {
        Container container = account.container();
        container.create(item("id", "1", "pk", "a"));
        fails(404, () -> container.read("1", "b"));
        var error = fails(
                400, () -> container.create(item("id", "2", "pk", "a"), key("b"), new CosmosItemRequestOptions()));
        equal(error.getSubStatusCode(), 1001, "sub-status");
    }
}
