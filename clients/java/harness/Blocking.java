package harness;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.*;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;

/** The synchronous client, {@code CosmosClient}. */
public final class Blocking implements Flavour {
    @Override
    public String name() {
        return "sync";
    }

    @Override
    public Client connect(CosmosClientBuilder builder) {
        return new BlockingClient(builder.buildClient());
    }

    private record BlockingClient(CosmosClient client) implements Client {
        @Override
        public CosmosDatabaseResponse createDatabase(String id, ThroughputProperties throughput) {
            return client.createDatabase(id, throughput);
        }

        @Override
        public CosmosDatabaseResponse createDatabaseIfMissing(String id) {
            return client.createDatabaseIfNotExists(id);
        }

        @Override
        public List<CosmosDatabaseProperties> databases() {
            return client.readAllDatabases().stream().toList();
        }

        @Override
        public List<CosmosDatabaseProperties> queryDatabases(SqlQuerySpec query) {
            return client.queryDatabases(query, new CosmosQueryRequestOptions()).stream().toList();
        }

        @Override
        public Database database(String id) {
            return new BlockingDatabase(client.getDatabase(id));
        }

        @Override
        public void close() {
            client.close();
        }
    }

    private record BlockingDatabase(CosmosDatabase database) implements Database {
        @Override
        public String id() {
            return database.getId();
        }

        @Override
        public CosmosDatabaseResponse read() {
            return database.read();
        }

        @Override
        public CosmosDatabaseResponse delete() {
            return database.delete();
        }

        @Override
        public CosmosContainerResponse createContainer(
                CosmosContainerProperties properties, ThroughputProperties throughput) {
            return database.createContainer(properties, throughput);
        }

        @Override
        public CosmosContainerResponse createContainerIfMissing(CosmosContainerProperties properties) {
            return database.createContainerIfNotExists(properties);
        }

        @Override
        public List<CosmosContainerProperties> containers() {
            return database.readAllContainers().stream().toList();
        }

        @Override
        public List<CosmosContainerProperties> queryContainers(SqlQuerySpec query) {
            return database.queryContainers(query).stream().toList();
        }

        @Override
        public Container container(String id) {
            return new BlockingContainer(database.getContainer(id));
        }

        @Override
        public ThroughputResponse throughput() {
            return database.readThroughput();
        }

        @Override
        public ThroughputResponse replaceThroughput(ThroughputProperties properties) {
            return database.replaceThroughput(properties);
        }

        @Override
        public CosmosUserResponse createUser(String id) {
            return database.createUser(new CosmosUserProperties().setId(id));
        }

        @Override
        public List<CosmosUserProperties> users() {
            return database.readAllUsers().stream().toList();
        }

        @Override
        public CosmosUserResponse deleteUser(String id) {
            return database.getUser(id).delete();
        }
    }

    private record BlockingContainer(CosmosContainer container) implements Container {
        @Override
        public String id() {
            return container.getId();
        }

        @Override
        public CosmosContainerResponse read(CosmosContainerRequestOptions options) {
            return container.read(options);
        }

        @Override
        public CosmosContainerResponse replace(CosmosContainerProperties properties) {
            return container.replace(properties);
        }

        @Override
        public CosmosContainerResponse delete() {
            return container.delete();
        }

        @Override
        public CosmosItemResponse<ObjectNode> create(
                ObjectNode item, PartitionKey key, CosmosItemRequestOptions options) {
            return container.createItem(item, key, options);
        }

        @Override
        public CosmosItemResponse<ObjectNode> upsert(
                ObjectNode item, PartitionKey key, CosmosItemRequestOptions options) {
            return container.upsertItem(item, key, options);
        }

        @Override
        public CosmosItemResponse<ObjectNode> replace(
                String id, ObjectNode item, PartitionKey key, CosmosItemRequestOptions options) {
            return container.replaceItem(item, id, key, options);
        }

        @Override
        public CosmosItemResponse<ObjectNode> read(String id, PartitionKey key, CosmosItemRequestOptions options) {
            return container.readItem(id, key, options, ObjectNode.class);
        }

        @Override
        public CosmosItemResponse<Object> delete(String id, PartitionKey key, CosmosItemRequestOptions options) {
            return container.deleteItem(id, key, options);
        }

        @Override
        public CosmosItemResponse<Object> deleteAll(PartitionKey key) {
            return container.deleteAllItemsByPartitionKey(key, new CosmosItemRequestOptions());
        }

        @Override
        public CosmosItemResponse<ObjectNode> patch(
                String id,
                PartitionKey key,
                CosmosPatchOperations operations,
                CosmosPatchItemRequestOptions options) {
            return container.patchItem(id, key, operations, options, ObjectNode.class);
        }

        @Override
        public Iterable<FeedResponse<JsonNode>> query(
                SqlQuerySpec query, CosmosQueryRequestOptions options, String token, int size) {
            return container.queryItems(query, options, JsonNode.class).iterableByPage(token, size);
        }

        @Override
        public Iterable<FeedResponse<JsonNode>> readAll(PartitionKey key) {
            return container.readAllItems(key, JsonNode.class).iterableByPage();
        }

        @Override
        public Iterable<FeedResponse<JsonNode>> changes(CosmosChangeFeedRequestOptions options) {
            return container.queryChangeFeed(options, JsonNode.class).iterableByPage();
        }

        @Override
        public FeedResponse<JsonNode> readMany(List<CosmosItemIdentity> identities) {
            return container.readMany(identities, JsonNode.class);
        }

        @Override
        public List<FeedRange> feedRanges() {
            return container.getFeedRanges();
        }

        @Override
        public CosmosBatchResponse execute(CosmosBatch batch) {
            return container.executeCosmosBatch(batch);
        }

        @Override
        public List<CosmosBulkOperationResponse<Object>> bulk(List<CosmosItemOperation> operations) {
            List<CosmosBulkOperationResponse<Object>> responses = new ArrayList<>();
            container.executeBulkOperations(operations).forEach(responses::add);
            return responses;
        }

        @Override
        public ThroughputResponse throughput() {
            return container.readThroughput();
        }

        @Override
        public ThroughputResponse replaceThroughput(ThroughputProperties properties) {
            return container.replaceThroughput(properties);
        }
    }
}
