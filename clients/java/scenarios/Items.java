package scenarios;

import static harness.Check.check;
import static harness.Check.equal;
import static harness.Check.fails;
import static harness.Check.ids;
import static harness.Json.item;
import static harness.Json.key;

import com.azure.cosmos.models.*;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import harness.Account;
import harness.Client;
import harness.Container;
import harness.Json;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/** Items: the verbs, what responses carry, and what ids and values may be. */
public final class Items {
    private static final CosmosItemRequestOptions PLAIN = new CosmosItemRequestOptions();

    private Items() {}

    public static void itemsAreCreatedReadReplacedUpsertedAndDeleted(Account account) {
        Container container = account.container();
        ObjectNode created = container.create(item("id", "1", "pk", "a", "n", 1));
        for (String member : List.of("_rid", "_self", "_etag", "_attachments", "_ts")) {
            check(created.has(member), "no " + member + " in " + created);
        }
        equal(container.read("1", "a"), created, "item");
        ObjectNode replaced = container.replace("1", item("id", "1", "pk", "a", "n", 2), key("a"), PLAIN).getItem();
        equal(replaced.get("_rid"), created.get("_rid"), "_rid");
        check(!replaced.get("_etag").equals(created.get("_etag")), "a replace must change the _etag");
        equal(container.upsert(item("id", "1", "pk", "a", "n", 3)).get("_rid"), created.get("_rid"), "_rid");
        check(!container.upsert(item("id", "2", "pk", "a")).get("_rid").equals(created.get("_rid")), "a shared _rid");
        equal(container.delete("1", "a").getStatusCode(), 204, "status");
        fails(404, () -> container.read("1", "a"));
        fails(404, () -> container.delete("1", "a"));
        fails(404, () -> container.replace("1", item("id", "1", "pk", "a"), key("a"), PLAIN));
        equal(ids(Container.collect(container.readAll(key("a")))), List.of("2"), "ids");
    }

    public static void anIdIsTakenOncePerKey(Account account) {
        Container container = account.container();
        container.create(item("id", "1", "pk", "a"));
        container.create(item("id", "1", "pk", "b"));
        var error = fails(409, () -> container.create(item("id", "1", "pk", "a")));
        check(error.getMessage().contains("Conflict"), error.getMessage());
    }

    public static void aReplaceMayRename(Account account) {
        Container container = account.container();
        ObjectNode created = container.create(item("id", "old", "pk", "a"));
        container.create(item("id", "taken", "pk", "a"));
        container.replace("old", item("id", "new", "pk", "a"), key("a"), PLAIN);
        equal(container.read("new", "a").get("_rid"), created.get("_rid"), "_rid");
        fails(404, () -> container.read("old", "a"));
        fails(409, () -> container.replace("new", item("id", "taken", "pk", "a"), key("a"), PLAIN));
    }

    public static void idsMayHoldAnyAllowedCharacter(Account account) {
        Container container = account.container();
        List<String> wanted = List.of(
                "with space", "中文😀", "a+b%c", "per%20cent", "x=1&y=2", ":colon;", "quote'\"", "~`!@$^*()[]{}|", "trailing.");
        for (String id : wanted) {
            container.create(item("id", id, "pk", "a"));
            equal(container.read(id, "a").get("id"), id, "id");
        }
        equal(ids(container.rowsOf("a", "SELECT * FROM c")), wanted.stream().sorted().toList(), "ids");
        wanted.forEach(id -> container.delete(id, "a"));
    }

    public static void idsAreLimited(Account account) {
        Container container = account.container();
        container.create(item("id", "i".repeat(1023), "pk", "a"));
        fails(400, () -> container.create(item("id", "i".repeat(1025), "pk", "a")));
        fails(400, () -> container.create(item("id", "", "pk", "a")));
        fails(400, () -> container.create(item("pk", "a")));
    }

    public static void valuesKeepTheirTypeAndOrder(Account account) {
        Container container = account.container();
        ObjectNode body = (ObjectNode) Json.parse("{'id':'1','pk':'a','zebra':1,'apple':2,'int':9007199254740991,"
                + "'negative':-9007199254740991,'float':0.1,'tiny':5.0E-324,'text':'tab\\t é 中 😀','empty':{},'none':[],"
                + "'null':null,'yes':true,'no':false,'deep':{'a':[{'b':[[1,[2,{'c':null}]]]}]}}");
        container.create(body);
        ObjectNode found = container.read("1", "a");
        List<String> names = new ArrayList<>();
        found.fieldNames().forEachRemaining(names::add);
        List<String> expected = new ArrayList<>();
        body.fieldNames().forEachRemaining(expected::add);
        equal(names.stream().filter(name -> !name.startsWith("_")).toList(), expected, "order of members");
        for (String member : expected) {
            equal(found.get(member), body.get(member), member);
        }
    }

    public static void responsesCarryChargeSessionAndEtag(Account account) {
        Container container = account.container();
        var created = container.create(item("id", "1", "pk", "a"), key("a"), PLAIN);
        check(created.getRequestCharge() > 0 && created.getSessionToken() != null, "no charge or session");
        equal(created.getETag(), created.getItem().get("_etag"), "etag");
        check(created.getActivityId() != null, "no activity id");
        var read = container.read("1", key("a"), PLAIN);
        equal(read.getRequestCharge(), 1.0, "charge of a small read");
        equal(read.getResponseHeaders().get("x-ms-item-lsn"), created.getResponseHeaders().get("lsn"), "item LSN");
        check(read.getDuration().toNanos() > 0, "no duration");
    }

    public static void diagnosticsNameTheRegionAndTheRequest(Account account) {
        Container container = account.container();
        container.create(item("id", "1", "pk", "a"));
        var diagnostics = container.read("1", key("a"), PLAIN).getDiagnostics();
        check(!diagnostics.getContactedRegionNames().isEmpty(), diagnostics);
        check(diagnostics.toString().contains("\"statusCode\":200"), diagnostics);
        var context = diagnostics.getDiagnosticsContext();
        equal(context.getStatusCode(), 200, "status");
        check(context.getTotalRequestCharge() > 0, "no charge");
        equal(context.getContainerName(), container.id(), "container");
    }

    public static void writesMayAnswerWithoutABody(Account account) {
        Container container = account.container();
        CosmosItemRequestOptions terse = new CosmosItemRequestOptions().setContentResponseOnWriteEnabled(false);
        CosmosPatchItemRequestOptions tersePatch = new CosmosPatchItemRequestOptions();
        tersePatch.setContentResponseOnWriteEnabled(false);
        for (CosmosItemResponse<ObjectNode> response : List.of(
                container.create(item("id", "1", "pk", "a"), key("a"), terse),
                container.upsert(item("id", "1", "pk", "a", "n", 1), key("a"), terse),
                container.replace("1", item("id", "1", "pk", "a", "n", 2), key("a"), terse),
                container.patch("1", key("a"), CosmosPatchOperations.create().increment("/n", 1), tersePatch))) {
            check(response.getItem() == null, response.getItem());
            check(response.getETag() != null, "no etag");
        }
        equal(container.read("1", "a").get("n"), 3, "n");
    }

    public static void anItemMayBeTwoMegabytesAndNoMore(Account account) {
        Container container = account.container();
        int size = 2 * 1024 * 1024 - 1000;
        container.create(item("id", "big", "pk", "a", "text", "x".repeat(size)));
        equal(container.read("big", "a").get("text").asText().length(), size, "length");
        fails(413, () -> container.create(item("id", "bigger", "pk", "a", "text", "x".repeat(2 * 1024 * 1024))));
    }

    public static void uniqueKeysHoldWithinALogicalPartition(Account account) {
        Container container = account.container(properties -> properties.setUniqueKeyPolicy(
                new UniqueKeyPolicy().setUniqueKeys(List.of(new UniqueKey(List.of("/email"))))));
        container.create(item("id", "1", "pk", "a", "email", "x@y"));
        container.create(item("id", "1", "pk", "b", "email", "x@y"));
        fails(409, () -> container.create(item("id", "2", "pk", "a", "email", "x@y")));
        container.delete("1", "a");
        container.create(item("id", "2", "pk", "a", "email", "x@y"));
    }

    public static void aStaleEtagRefusesTheWrite(Account account) {
        Container container = account.container();
        String first = container.create(item("id", "1", "pk", "a", "n", 1)).get("_etag").asText();
        CosmosItemRequestOptions stale = new CosmosItemRequestOptions().setIfMatchETag(first);
        String second = container.replace("1", item("id", "1", "pk", "a", "n", 2), key("a"), stale).getETag();
        fails(412, () -> container.replace("1", item("id", "1", "pk", "a", "n", 9), key("a"), stale));
        fails(412, () -> container.upsert(item("id", "1", "pk", "a", "n", 9), key("a"), stale));
        fails(412, () -> container.delete("1", key("a"), stale));
        CosmosPatchItemRequestOptions stalePatch = new CosmosPatchItemRequestOptions();
        stalePatch.setIfMatchETag(first);
        fails(412, () -> container.patch("1", key("a"), CosmosPatchOperations.create().set("/n", 9), stalePatch));
        equal(container.read("1", "a").get("n"), 2, "n");
        container.delete("1", key("a"), new CosmosItemRequestOptions().setIfMatchETag(second));
    }

    public static void anUnchangedItemIsNotReadAgain(Account account) {
        Container container = account.container();
        String etag = container.create(item("id", "1", "pk", "a")).get("_etag").asText();
        CosmosItemRequestOptions unless = new CosmosItemRequestOptions().setIfNoneMatchETag(etag);
        equal(container.read("1", key("a"), unless).getStatusCode(), 304, "status");
        container.upsert(item("id", "1", "pk", "a", "n", 1));
        equal(container.read("1", key("a"), unless).getItem().get("n"), 1, "n");
    }

    public static void manyItemsAreReadAtOnce(Account account) {
        Container container = account.severalPartitions();
        List<CosmosItemIdentity> wanted = new ArrayList<>();
        for (int number = 0; number < 120; number++) {
            container.create(item("id", "" + number, "pk", "k" + number % 10));
            if (number % 2 == 0) {
                wanted.add(new CosmosItemIdentity(key("k" + number % 10), "" + number));
            }
        }
        wanted.add(new CosmosItemIdentity(key("k1"), "none"));
        wanted.add(new CosmosItemIdentity(key("wrong"), "1"));
        FeedResponse<JsonNode> found = container.readMany(wanted);
        List<String> expected =
                IntStream.range(0, 120).filter(n -> n % 2 == 0).mapToObj(n -> "" + n).sorted().toList();
        equal(ids(found.getResults()), expected, "ids");
        check(found.getRequestCharge() > 0, "no charge");
    }

    public static void allItemsOfAKeyAreDeletedAtOnce(Account account) {
        Container container = account.severalPartitions();
        for (int number = 0; number < 10; number++) {
            container.create(item("id", "" + number, "pk", number % 2 == 0 ? "kept" : "gone"));
        }
        container.deleteAll(key("gone"));
        equal(container.rows("SELECT VALUE c.pk FROM c"), List.of("kept", "kept", "kept", "kept", "kept"), "keys");
    }

    public static void weakerConsistencyIsServedAndStrongerRefused(Account account) {
        Container container = account.container();
        container.create(item("id", "1", "pk", "a"));
        Client eventual = account.open(account.builder().consistencyLevel(com.azure.cosmos.ConsistencyLevel.EVENTUAL));
        equal(eventual.database(account.database.id()).container(container.id()).read("1", "a").get("id"), "1", "id");
        CosmosItemRequestOptions strong =
                new CosmosItemRequestOptions().setConsistencyLevel(com.azure.cosmos.ConsistencyLevel.STRONG);
        fails(400, () -> container.read("1", key("a"), strong));
    }
}
