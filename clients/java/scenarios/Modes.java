package scenarios;

import static harness.Check.check;
import static harness.Check.fails;
import static harness.Json.item;

import harness.Account;
import harness.Client;
import harness.Container;
import harness.Control;

/** Direct mode, the SDK's default, which this account does not serve. */
public final class Modes {
    private Modes() {}

    public static void directModeIsToldWhatToSet(Account account) {
        if (!Control.isThere()) {
            return;
        }
        Container created = account.container();
        Client direct = account.open(account.builder().directMode());
        Container container = direct.database(account.database.id()).container(created.id());
        var error = fails(400, () -> container.create(item("id", "1", "pk", "a")));
        check(error.getMessage().contains("CosmosClientBuilder.gatewayMode()"), error.getMessage());
    }
}
