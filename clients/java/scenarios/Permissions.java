package scenarios;

import static harness.Check.check;
import static harness.Check.equal;
import static harness.Check.fails;
import static harness.Check.name;
import static harness.Json.item;

import com.azure.cosmos.CosmosAsyncUser;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.models.*;
import harness.Account;
import harness.Client;
import harness.Container;
import java.util.List;

/** Users, permissions and resource tokens. */
public final class Permissions {
    private Permissions() {}

    public static void usersAreCreatedListedAndDeleted(Account account) {
        account.database.createUser("u1");
        account.database.createUser("u2");
        fails(409, () -> account.database.createUser("u1"));
        equal(account.database.users().stream().map(CosmosUserProperties::getId).sorted().toList(), List.of("u1", "u2"), "users");
        account.database.deleteUser("u1");
        fails(404, () -> account.database.deleteUser("u1"));
    }

    /** Permissions belong to the asynchronous client alone. */
    private static CosmosPermissionProperties grant(Account account, Container container, PermissionMode mode) {
        String user = name("u");
        account.database.createUser(user);
        CosmosPermissionProperties wanted =
                new CosmosPermissionProperties().setId("p").setContainerName(container.id()).setPermissionMode(mode);
        CosmosAsyncUser granter = account.asynchronousDatabase().getUser(user);
        CosmosPermissionProperties granted =
                granter.createPermission(wanted, new CosmosPermissionRequestOptions()).block().getProperties();
        check(granted.getToken().startsWith("type=resource"), granted.getToken());
        equal(granter.readAllPermissions().collectList().block().get(0).getId(), "p", "listed");
        return granted;
    }

    /** The container through a client that has nothing but the token. */
    private static Container with(Account account, Container container, CosmosPermissionProperties permission) {
        Client client = account.open(new CosmosClientBuilder()
                .endpoint(account.endpoint)
                .gatewayMode()
                .contentResponseOnWriteEnabled(true)
                .resourceToken(permission.getToken()));
        return client.database(account.database.id()).container(container.id());
    }

    public static void aReadTokenReadsButDoesNotWrite(Account account) {
        Container container = account.container();
        container.create(item("id", "1", "pk", "a"));
        Container reader = with(account, container, grant(account, container, PermissionMode.READ));
        equal(reader.read("1", "a").get("id"), "1", "id");
        equal(reader.rowsOf("a", "SELECT VALUE c.id FROM c"), List.of("1"), "ids");
        fails(403, () -> reader.create(item("id", "2", "pk", "a")));
        fails(403, () -> reader.delete("1", "a"));
    }

    public static void anAllTokenWrites(Account account) {
        Container container = account.container();
        Container writer = with(account, container, grant(account, container, PermissionMode.ALL));
        writer.create(item("id", "1", "pk", "a"));
        writer.delete("1", "a");
    }
}
