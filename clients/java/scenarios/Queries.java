package scenarios;

import static harness.Check.check;
import static harness.Check.equal;
import static harness.Check.fails;
import static harness.Check.range;
import static harness.Check.sorted;
import static harness.Json.item;
import static harness.Json.key;
import static harness.Json.parse;

import com.azure.cosmos.models.*;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import harness.Account;
import harness.Container;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.StreamSupport;

/** Queries that need no merging: one partition, or rows that stand alone. */
public final class Queries {
    private static final List<String> FAMILIES = List.of(
            "{'id':'1','pk':'a','n':5,'name':'Ann','tags':['x','y'],'address':{'city':'Oslo'},"
                    + "'children':[{'n':'A','age':3},{'n':'B','age':9}]}",
            "{'id':'2','pk':'a','n':2,'name':'bob','tags':[],'address':{'city':'Rome'},'children':[{'n':'C','age':12}]}",
            "{'id':'3','pk':'a','n':9,'name':'Cid','tags':['y'],'address':{'city':'Oslo'}}",
            "{'id':'4','pk':'a','n':null,'name':'Dee'}",
            "{'id':'5','pk':'a','name':'Eve','n':'text'}");

    /** A query and its rows, in order. */
    private static final String[][] IN_ONE_PARTITION = {
        {"SELECT VALUE c.id FROM c WHERE c.n > 2 ORDER BY c.n", "['1','3']"},
        {"SELECT VALUE c.id FROM c WHERE c.n BETWEEN 2 AND 5 ORDER BY c.id", "['1','2']"},
        {"SELECT VALUE c.id FROM c WHERE c.n IN (2, 9, 'text') ORDER BY c.id", "['2','3','5']"},
        {"SELECT VALUE c.id FROM c WHERE c.name LIKE '%e%' ORDER BY c.id", "['4','5']"},
        {"SELECT VALUE c.id FROM c WHERE STARTSWITH(c.name, 'a', true)", "['1']"},
        {"SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(c.children) ORDER BY c.id", "['3','4','5']"},
        {"SELECT VALUE c.id FROM c WHERE IS_NULL(c.n)", "['4']"},
        {"SELECT c.id, c.address.city FROM c WHERE c.id = '2'", "[{'id':'2','city':'Rome'}]"},
        {"SELECT TOP 2 VALUE c.id FROM c ORDER BY c.id DESC", "['5','4']"},
        {"SELECT VALUE c.id FROM c ORDER BY c.id OFFSET 1 LIMIT 2", "['2','3']"},
        {"SELECT DISTINCT VALUE c.address.city FROM c ORDER BY c.address.city", "['Oslo','Rome']"},
        {
            "SELECT c.id, k.n FROM c JOIN k IN c.children WHERE k.age > 5 ORDER BY c.id",
            "[{'id':'1','n':'B'},{'id':'2','n':'C'}]"
        },
        {"SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE k FROM k IN c.children WHERE k.age < 5)", "['1']"},
        {"SELECT VALUE COUNT(1) FROM c", "[5]"},
        {"SELECT VALUE SUM(c.n) FROM c WHERE IS_NUMBER(c.n)", "[16.0]"},
        {"SELECT VALUE c.nothing ?? c.id FROM c WHERE c.id = '1'", "['1']"},
        {"SELECT VALUE DateTimePart('year', '2024-05-06T07:08:09Z')", "[2024]"},
    };

    private Queries() {}

    private static Container families(Container container) {
        FAMILIES.forEach(family -> container.create((ObjectNode) parse(family)));
        return container;
    }

    public static void queriesInOnePartition(Account account) {
        Container container = families(account.severalPartitions());
        List<String> wrong = new ArrayList<>();
        for (String[] scene : IN_ONE_PARTITION) {
            try {
                equal(container.rowsOf("a", scene[0]), parse(scene[1]), scene[0]);
            } catch (RuntimeException | AssertionError error) {
                wrong.add(scene[0] + ": " + harness.Check.brief(error));
            }
        }
        check(wrong.isEmpty(), String.join("\n  ", wrong));
    }

    public static void parametersAreValues(Account account) {
        Container container = families(account.severalPartitions());
        SqlQuerySpec query = new SqlQuerySpec(
                "SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(@ids, c.id) AND c.n < @most ORDER BY c.id",
                new SqlParameter("@ids", List.of("1", "2", "3")),
                new SqlParameter("@most", 9));
        equal(container.rows(query, new CosmosQueryRequestOptions()), List.of("1", "2"), "ids");
    }

    static Container filled(Account account, int count, int keys) {
        Container container = account.severalPartitions();
        for (int number = 0; number < count; number++) {
            container.create(item("id", String.format("%03d", number), "pk", "k" + number % keys, "n", number));
        }
        return container;
    }

    public static void filtersAndProjectionsAcrossPartitions(Account account) {
        Container container = filled(account, 60, 20);
        equal(container.rows("SELECT * FROM c").size(), 60, "items");
        equal(sorted(container.rows("SELECT VALUE c.n FROM c WHERE c.n < 3")), range(0, 3), "small ones");
        equal(sorted(container.rows("SELECT VALUE c.n FROM c WHERE c.pk = 'k3'")), List.of(3, 23, 43), "of one key");
        equal(container.rows("SELECT c.n, UPPER(c.pk) AS k FROM c WHERE c.id = '007'"), parse("[{'n':7,'k':'K7'}]"), "projection");
        equal(container.rows("SELECT * FROM c WHERE false"), List.of(), "nothing");
    }

    public static void pagesResume(Account account) {
        Container one = filled(account, 50, 1);
        Container many = filled(account, 50, 17);
        resumes(one, "SELECT VALUE c.n FROM c", new CosmosQueryRequestOptions().setPartitionKey(key("k0")), 3);
        resumes(one, "SELECT VALUE c.n FROM c ORDER BY c.n", new CosmosQueryRequestOptions().setPartitionKey(key("k0")), 7);
        resumes(many, "SELECT VALUE c.n FROM c", new CosmosQueryRequestOptions(), 5);
        resumes(many, "SELECT VALUE c.n FROM c ORDER BY c.n", new CosmosQueryRequestOptions(), 7);
    }

    /** A new query for every page, from the token of the last one. */
    private static void resumes(Container container, String query, CosmosQueryRequestOptions options, int size) {
        List<JsonNode> seen = new ArrayList<>();
        String token = null;
        for (int pages = 0; pages == 0 || token != null; pages++) {
            check(pages < 100, "the continuation never ends");
            FeedResponse<JsonNode> page =
                    container.query(new SqlQuerySpec(query), options, token, size).iterator().next();
            check(page.getResults().size() <= size, "a page of " + page.getResults().size());
            seen.addAll(page.getResults());
            token = page.getContinuationToken();
        }
        if (query.contains("ORDER BY")) {
            equal(seen, range(0, 50), query);
        }
        equal(sorted(seen), range(0, 50), query);
    }

    public static void aBadContinuationIsRefused(Account account) {
        Container container = filled(account, 3, 1);
        CosmosQueryRequestOptions options = new CosmosQueryRequestOptions().setPartitionKey(key("k0"));
        fails(400, () -> container.query(new SqlQuerySpec("SELECT * FROM c"), options, "no-such-token", 1)
                .iterator()
                .next());
    }

    public static void largeResponsesAreSplitIntoPages(Account account) {
        Container container = account.container();
        for (int number = 0; number < 8; number++) {
            container.create(item("id", "" + number, "pk", "a", "text", "x".repeat(1_000_000)));
        }
        Iterable<FeedResponse<JsonNode>> pages = container.query(
                new SqlQuerySpec("SELECT * FROM c"), new CosmosQueryRequestOptions().setPartitionKey(key("a")), null, 100);
        List<Integer> sizes = StreamSupport.stream(pages.spliterator(), false)
                .map(page -> page.getResults().size())
                .toList();
        check(sizes.size() >= 2, "8 MB came in pages of " + sizes);
        equal(sizes.stream().mapToInt(Integer::intValue).sum(), 8, "items");
    }

    public static void queriesReportMetrics(Account account) {
        Container container = families(account.container());
        CosmosQueryRequestOptions options = new CosmosQueryRequestOptions()
                .setPartitionKey(key("a"))
                .setQueryMetricsEnabled(true)
                .setIndexMetricsEnabled(true);
        FeedResponse<JsonNode> page = container.query(new SqlQuerySpec("SELECT * FROM c WHERE c.n > 1"), options, null, 100)
                .iterator()
                .next();
        equal(page.getResults().size(), 3, "rows");
        check(page.getRequestCharge() > 0, "no charge");
        String diagnostics = page.getCosmosDiagnostics().toString();
        check(diagnostics.contains("/n/?"), "no index metrics in " + diagnostics);
        check(diagnostics.contains("\"outputDocumentCount\":3"), "no query metrics in " + diagnostics);
    }

    public static void feedRangesCoverEverythingOnce(Account account) {
        Container container = filled(account, 60, 20);
        List<JsonNode> seen = new ArrayList<>();
        for (FeedRange feedRange : container.feedRanges()) {
            seen.addAll(container.rows(
                    new SqlQuerySpec("SELECT VALUE c.n FROM c"), new CosmosQueryRequestOptions().setFeedRange(feedRange)));
        }
        equal(sorted(seen), range(0, 60), "items");
    }

    public static void badQueriesAreRefused(Account account) {
        Container container = account.severalPartitions();
        for (String query : List.of(
                "SELECT * frm c", "nonsense", "SELECT NOFUNCTION(c.a) FROM c", "SELECT LEFT(c.a) FROM c", "SELECT x.a FROM c",
                "SELECT * FROM c WHERE c.a = 'open", "SELECT TOP -1 * FROM c")) {
            fails(400, () -> container.rowsOf("a", query));
            fails(400, () -> container.rows(query));
        }
    }
}
