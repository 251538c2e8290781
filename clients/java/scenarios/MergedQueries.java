package scenarios;

import static harness.Check.check;
import static harness.Check.equal;
import static harness.Check.range;
import static harness.Json.item;
import static harness.Json.parse;

import com.fasterxml.jackson.databind.JsonNode;
import harness.Account;
import harness.Container;
import java.util.List;

/** Cross-partition queries whose rows the SDK merges, by the plan the server gives. */
public final class MergedQueries {
    private static final int COUNT = 90;
    private static final List<String> WORDS = List.of("alpha", "beta", "gamma", "delta");

    private MergedQueries() {}

    private static Container filled(Account account) {
        Container container = account.severalPartitions();
        for (int number = 0; number < COUNT; number++) {
            container.create(item(
                    "id", String.format("%03d", number), "pk", "k" + number % 30, "n", number * 37 % COUNT,
                    "team", number % 3, "word", WORDS.get(number % 4), "odd", number % 2 == 1));
        }
        return container;
    }

    public static void orderByAcrossPartitions(Account account) {
        Container container = filled(account);
        equal(container.rows("SELECT VALUE c.n FROM c ORDER BY c.n"), range(0, COUNT), "ascending");
        List<JsonNode> descending = container.rows("SELECT VALUE c.n FROM c ORDER BY c.n DESC");
        equal(descending.get(0), COUNT - 1, "first");
        equal(descending.get(COUNT - 1), 0, "last");
        equal(container.rows("SELECT VALUE c.n FROM c WHERE c.n >= 80 ORDER BY c.n"), range(80, 90), "filtered");
    }

    public static void orderBySeveralPropertiesAcrossPartitions(Account account) {
        var composite = new com.azure.cosmos.models.IndexingPolicy();
        composite.setCompositeIndexes(List.of(List.of(
                new com.azure.cosmos.models.CompositePath()
                        .setPath("/team")
                        .setOrder(com.azure.cosmos.models.CompositePathSortOrder.DESCENDING),
                new com.azure.cosmos.models.CompositePath()
                        .setPath("/n")
                        .setOrder(com.azure.cosmos.models.CompositePathSortOrder.ASCENDING))));
        Container container = account.severalPartitions(properties -> properties.setIndexingPolicy(composite));
        for (int number = 0; number < 30; number++) {
            container.create(item("id", "" + number, "pk", "k" + number, "n", number, "team", number % 3));
        }
        List<JsonNode> rows = container.rows("SELECT c.team, c.n FROM c ORDER BY c.team DESC, c.n ASC");
        for (int at = 0; at < 30; at++) {
            equal(rows.get(at).get("team"), 2 - at / 10, "team");
            equal(rows.get(at).get("n"), at % 10 * 3 + 2 - at / 10, "n");
        }
    }

    public static void topOffsetAndLimitAcrossPartitions(Account account) {
        Container container = filled(account);
        equal(container.rows("SELECT TOP 5 VALUE c.n FROM c ORDER BY c.n"), range(0, 5), "top");
        equal(container.rows("SELECT TOP 5 * FROM c").size(), 5, "any five");
        equal(container.rows("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 3"), range(10, 13), "offset");
        equal(container.rows("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 500 LIMIT 30"), List.of(), "beyond the end");
    }

    public static void distinctAcrossPartitions(Account account) {
        Container container = filled(account);
        List<String> sorted = List.of("alpha", "beta", "delta", "gamma");
        equal(container.rows("SELECT DISTINCT VALUE c.word FROM c ORDER BY c.word"), sorted, "ordered");
        List<String> found = container.rows("SELECT DISTINCT VALUE c.word FROM c").stream()
                .map(JsonNode::asText)
                .sorted()
                .toList();
        equal(found, sorted, "unordered");
        equal(container.rows("SELECT DISTINCT c.team, c.odd FROM c").size(), 6, "pairs");
    }

    public static void aggregatesAcrossPartitions(Account account) {
        Container container = filled(account);
        equal(container.rows("SELECT VALUE COUNT(1) FROM c"), List.of(COUNT), "count");
        equal(container.rows("SELECT VALUE COUNT(1) FROM c WHERE c.odd"), List.of(45), "count of some");
        equal(container.rows("SELECT VALUE SUM(c.n) FROM c").get(0), COUNT * (COUNT - 1) / 2, "sum");
        equal(container.rows("SELECT VALUE AVG(c.n) FROM c").get(0), (COUNT - 1) / 2.0, "average");
        equal(container.rows("SELECT VALUE MIN(c.word) FROM c"), List.of("alpha"), "least");
        equal(container.rows("SELECT VALUE MAX(c.n) FROM c").get(0), COUNT - 1, "most");
    }

    public static void groupByAcrossPartitions(Account account) {
        Container container = filled(account);
        List<JsonNode> groups = container.rows(
                "SELECT c.team, COUNT(1) AS n, SUM(c.n) AS total, MIN(c.id) AS first FROM c GROUP BY c.team");
        equal(groups.size(), 3, "groups");
        int total = 0;
        for (JsonNode team : groups) {
            equal(team.get("n"), 30, "members");
            equal(team.get("first"), String.format("%03d", team.get("team").asInt()), "first");
            total += team.get("total").asInt();
        }
        equal(total, COUNT * (COUNT - 1) / 2, "sum of sums");
        check(container.rows("SELECT c.word, AVG(c.n) AS mean FROM c GROUP BY c.word").size() == 4, "words");
    }

    public static void orderBySortsByTypeFirst(Account account) {
        Container container = account.container();
        JsonNode values = parse("[null,false,true,-1,0.5,2,'','A','a']");
        for (int number = values.size() - 1; number >= 0; number--) {
            container.create(item("id", "" + number, "pk", "a", "v", values.get(number)));
        }
        // The SDK hands no null over as a row of its own.
        List<JsonNode> found = container.rowsOf("a", "SELECT c.v FROM c ORDER BY c.v").stream()
                .map(row -> row.get("v"))
                .toList();
        equal(found, values, "values");
    }
}
