package scenarios;

import static harness.Check.equal;
import static harness.Check.fails;
import static harness.Check.ids;
import static harness.Check.sleep;
import static harness.Json.item;

import harness.Account;
import harness.Container;
import java.util.List;

/** Time to live. */
public final class Lifetimes {
    private Lifetimes() {}

    public static void itemsExpireAfterTheContainersDefault(Account account) {
        Container container = account.container(properties -> properties.setDefaultTimeToLiveInSeconds(2));
        container.create(item("id", "short", "pk", "a"));
        container.create(item("id", "forever", "pk", "a", "ttl", -1));
        container.create(item("id", "long", "pk", "a", "ttl", 1000));
        sleep(3200);
        fails(404, () -> container.read("short", "a"));
        equal(ids(container.rowsOf("a", "SELECT * FROM c")), List.of("forever", "long"), "ids");
        container.create(item("id", "short", "pk", "a"));
        fails(400, () -> container.create(item("id", "bad", "pk", "a", "ttl", 0)));
    }
}
