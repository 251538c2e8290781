package harness;

import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosAsyncDatabase;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.azure.cosmos.models.PartitionKind;
import com.azure.cosmos.models.ThroughputProperties;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** The account under test, as one scenario sees it: it has a database of its own, which is deleted afterwards. */
public final class Account implements AutoCloseable {
    public final Flavour flavour;
    public final String endpoint;
    public final String key;
    /** A client that all scenarios of a flavour share: the SDK says to make one and keep it. */
    public final Client client;

    public final Database database;
    private final List<AutoCloseable> opened = new ArrayList<>();

    Account(Flavour flavour, String endpoint, String key, Client client) {
        this.flavour = flavour;
        this.endpoint = endpoint;
        this.key = key;
        this.client = client;
        String id = Check.name("db");
        client.createDatabase(id, null);
        this.database = client.database(id);
    }

    /** How every client of this program is built: in gateway mode, and a write responds with the item. */
    public static CosmosClientBuilder builder(String endpoint, String key) {
        return new CosmosClientBuilder()
                .endpoint(endpoint)
                .key(key)
                .gatewayMode()
                .contentResponseOnWriteEnabled(true);
    }

    public CosmosClientBuilder builder() {
        return builder(endpoint, key);
    }

    /** A client of its own, closed when the scenario ends. */
    public Client open(CosmosClientBuilder builder) {
        Client client = flavour.connect(builder);
        opened.add(client);
        return client;
    }

    /** The database as the asynchronous client sees it, for what that client alone has. */
    public CosmosAsyncDatabase asynchronousDatabase() {
        CosmosAsyncClient client = builder().buildAsyncClient();
        opened.add(client);
        return client.getDatabase(database.id());
    }

    /** A container as the asynchronous client sees it, for what that client alone has. */
    public CosmosAsyncContainer asynchronous(Container container) {
        return asynchronousDatabase().getContainer(container.id());
    }

    public Container container() {
        return container(properties -> {});
    }

    /** A container with the partition key /pk and 400 RU/s, as {@code define} changes it. */
    public Container container(Consumer<CosmosContainerProperties> define) {
        return container(400, define);
    }

    public Container container(int throughput, Consumer<CosmosContainerProperties> define) {
        CosmosContainerProperties properties = new CosmosContainerProperties(Check.name("c"), keyedBy("/pk"));
        define.accept(properties);
        database.createContainer(properties, ThroughputProperties.createManualThroughput(throughput));
        return database.container(properties.getId());
    }

    public Container severalPartitions() {
        return severalPartitions(properties -> {});
    }

    /** A container that spans several physical partitions. */
    public Container severalPartitions(Consumer<CosmosContainerProperties> define) {
        Container container = container(30_000, define);
        int ranges = container.feedRanges().size();
        Check.check(ranges >= 3, "30,000 RU/s gave only " + ranges + " physical partitions");
        return container;
    }

    /** A partition key definition of the second version; of several paths, a hierarchical one. */
    public static PartitionKeyDefinition keyedBy(String... paths) {
        PartitionKeyDefinition definition = new PartitionKeyDefinition();
        definition.setPaths(List.of(paths));
        definition.setKind(paths.length > 1 ? PartitionKind.MULTI_HASH : PartitionKind.HASH);
        definition.setVersion(PartitionKeyDefinitionVersion.V2);
        return definition;
    }

    @Override
    public void close() throws Exception {
        database.delete();
        for (AutoCloseable client : opened) {
            client.close();
        }
    }
}
