package scenarios;

import static harness.Check.equal;
import static harness.Check.fails;
import static harness.Json.item;
import static harness.Json.key;

import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.SqlQuerySpec;
import harness.Account;
import harness.Container;

/** Session tokens: reading one's own writes, and asking for what is not there yet. */
public final class Sessions {
    private static final CosmosItemRequestOptions PLAIN = new CosmosItemRequestOptions();

    private Sessions() {}

    public static void oneReadsOnesOwnWrites(Account account) {
        Container container = account.severalPartitions();
        for (int number = 0; number < 20; number++) {
            container.create(item("id", "1", "pk", "k" + number, "n", 0));
            container.upsert(item("id", "1", "pk", "k" + number, "n", number));
            equal(container.read("1", "k" + number).get("n"), number, "n");
        }
    }

    public static void aTokenMayBeHandedToAnotherClient(Account account) {
        Container container = account.container();
        String token = container.create(item("id", "1", "pk", "a"), key("a"), PLAIN).getSessionToken();
        Container theirs = account.open(account.builder()).database(account.database.id()).container(container.id());
        equal(theirs.read("1", key("a"), new CosmosItemRequestOptions().setSessionToken(token)).getStatusCode(), 200, "status");
        CosmosQueryRequestOptions options =
                new CosmosQueryRequestOptions().setPartitionKey(key("a")).setSessionToken(token);
        equal(theirs.rows(new SqlQuerySpec("SELECT * FROM c"), options).size(), 1, "items");
    }

    public static void aTokenFromTheFutureIsNotServed(Account account) {
        Container container = account.container();
        String token = container.create(item("id", "1", "pk", "a"), key("a"), PLAIN).getSessionToken();
        String[] parts = token.split("#");
        parts[1] = "" + (Long.parseLong(parts[1]) + 1_000_000);
        CosmosItemRequestOptions future = new CosmosItemRequestOptions().setSessionToken(String.join("#", parts));
        equal(fails(404, () -> container.read("1", key("a"), future)).getSubStatusCode(), 1002, "sub-status");
    }
}
