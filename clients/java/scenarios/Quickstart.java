package scenarios;

import static harness.Check.equal;

import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosAsyncDatabase;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosItemResponse;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import harness.Account;
import java.util.List;
import reactor.core.publisher.Flux;

/** The first thing a new user does, on each client as it is: no adapter in between. */
public final class Quickstart {
    /** An item as an application has it. */
    public static final class Product {
        public String id;
        public String category;
        public String name;
        public int quantity;

        public Product() {}

        Product(String id, String category, String name, int quantity) {
            this.id = id;
            this.category = category;
            this.name = name;
            this.quantity = quantity;
        }
    }

    private static final List<Product> PRODUCTS = List.of(
            new Product("aaaaaaaa-0000-1111-2222-bbbbbbbbbbbb", "gear-surf-surfboards", "Yamba Surfboard", 12),
            new Product("bbbbbbbb-1111-2222-3333-cccccccccccc", "gear-surf-surfboards", "Kiama Classic Surfboard", 25));

    private static final SqlQuerySpec BY_CATEGORY = new SqlQuerySpec(
            "SELECT * FROM products p WHERE p.category = @category ORDER BY p.quantity",
            new SqlParameter("@category", "gear-surf-surfboards"));

    private Quickstart() {}

    public static void quickstart(Account account) {
        List<String> names = account.flavour.name().equals("sync")
                ? synchronous(account.endpoint, account.key)
                : asynchronous(account.endpoint, account.key);
        equal(names, List.of("Yamba Surfboard", "Yamba Surfboard", "Kiama Classic Surfboard"), "names");
    }

    private static List<String> synchronous(String endpoint, String key) {
        try (CosmosClient client =
                new CosmosClientBuilder().endpoint(endpoint).key(key).gatewayMode().buildClient()) {
            client.createDatabaseIfNotExists("quickstart-java");
            CosmosDatabase database = client.getDatabase("quickstart-java");
            database.createContainerIfNotExists("products", "/category");
            CosmosContainer container = database.getContainer("products");
            for (Product product : PRODUCTS) {
                container.upsertItem(product, new CosmosItemRequestOptions());
            }
            CosmosItemResponse<Product> read = container.readItem(
                    PRODUCTS.get(0).id, new PartitionKey("gear-surf-surfboards"), Product.class);
            List<String> names = new java.util.ArrayList<>(List.of(read.getItem().name));
            for (Product found : container.queryItems(BY_CATEGORY, new CosmosQueryRequestOptions(), Product.class)) {
                names.add(found.name);
            }
            database.delete();
            return names;
        }
    }

    private static List<String> asynchronous(String endpoint, String key) {
        try (CosmosAsyncClient client =
                new CosmosClientBuilder().endpoint(endpoint).key(key).gatewayMode().buildAsyncClient()) {
            CosmosAsyncDatabase database = client.getDatabase("quickstart-java-async");
            CosmosAsyncContainer container = database.getContainer("products");
            List<String> names = client.createDatabaseIfNotExists("quickstart-java-async")
                    .then(database.createContainerIfNotExists("products", "/category"))
                    .thenMany(Flux.fromIterable(PRODUCTS).flatMap(container::upsertItem))
                    .then(container.readItem(
                            PRODUCTS.get(0).id, new PartitionKey("gear-surf-surfboards"), Product.class))
                    .map(read -> read.getItem().name)
                    .concatWith(container.queryItems(BY_CATEGORY, new CosmosQueryRequestOptions(), Product.class)
                            .map(found -> found.name))
                    .collectList()
                    .block();
            database.delete().block();
            return names;
        }
    }
}
