package scenarios;

import static harness.Check.check;
import static harness.Check.equal;
import static harness.Check.fails;
import static harness.Json.item;
import static harness.Json.key;
import static harness.Json.parse;

import com.azure.cosmos.models.CosmosPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.fasterxml.jackson.databind.node.ObjectNode;
import harness.Account;
import harness.Container;
import java.util.List;

/** Partial updates: every operation, its limits and its conditions. */
public final class Patches {
    private Patches() {}

    private static ObjectNode patch(Container container, CosmosPatchOperations operations) {
        return container.patch("1", key("a"), operations, new CosmosPatchItemRequestOptions()).getItem();
    }

    public static void patchEveryOperation(Account account) {
        Container container = account.container();
        container.create((ObjectNode) parse("{'id':'1','pk':'a','n':1,'f':1.5,'tags':['x','y'],'nested':{'a':1},'c':2}"));
        ObjectNode found = patch(
                container,
                CosmosPatchOperations.create()
                        .add("/new", parse("{'k':[1]}"))
                        .add("/tags/1", "between")
                        .add("/tags/-", "end")
                        .set("/nested/b", 2)
                        .replace("/nested/a", "other")
                        .increment("/n", 5)
                        .increment("/f", 0.25)
                        .increment("/created", -7)
                        .move("/c", "/moved"));
        equal(found.get("new"), parse("{'k':[1]}"), "new");
        equal(found.get("tags"), List.of("x", "between", "y", "end"), "tags");
        equal(found.get("nested"), parse("{'a':'other','b':2}"), "nested");
        equal(found.get("n"), 6, "n");
        equal(found.get("f"), 1.75, "f");
        equal(found.get("created"), -7, "created");
        check(!found.has("c") && found.get("moved").asInt() == 2, found);
        found = patch(container, CosmosPatchOperations.create().remove("/tags/1").remove("/nested"));
        equal(found.get("tags"), List.of("x", "y", "end"), "tags");
        check(!found.has("nested"), found);
    }

    public static void patchIsAllOrNothing(Account account) {
        Container container = account.container();
        container.create(item("id", "1", "pk", "a", "n", 1));
        fails(400, () -> patch(container, CosmosPatchOperations.create().set("/n", 2).replace("/missing", 1)));
        equal(container.read("1", "a").get("n"), 1, "n");
    }

    public static void patchRefusesWhatItCannotDo(Account account) {
        Container container = account.container();
        container.create(item("id", "1", "pk", "a", "n", 1));
        CosmosPatchOperations many = CosmosPatchOperations.create();
        for (int number = 0; number < 11; number++) {
            many.set("/n", 1);
        }
        for (CosmosPatchOperations operations : List.of(
                many,
                CosmosPatchOperations.create().set("/id", "2"),
                CosmosPatchOperations.create().set("/pk", "b"),
                CosmosPatchOperations.create().set("/_ts", 1),
                CosmosPatchOperations.create().add("/missing/child", 1),
                CosmosPatchOperations.create().remove("/missing"))) {
            fails(400, () -> patch(container, operations));
        }
        fails(404, () -> container.patch(
                "none", key("a"), CosmosPatchOperations.create().set("/n", 1), new CosmosPatchItemRequestOptions()));
    }

    public static void patchConditionsDecide(Account account) {
        Container container = account.container();
        container.create(item("id", "1", "pk", "a", "n", 1, "state", "open"));
        CosmosPatchItemRequestOptions ifOpen =
                new CosmosPatchItemRequestOptions().setFilterPredicate("from c where c.state = 'open'");
        CosmosPatchOperations close = CosmosPatchOperations.create().set("/state", "closed");
        container.patch("1", key("a"), close, ifOpen);
        var error = fails(412, () -> container.patch("1", key("a"), close, ifOpen));
        equal(error.getSubStatusCode(), 1110, "sub-status");
    }
}
