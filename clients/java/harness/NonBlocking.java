package harness;

import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosAsyncDatabase;
import com.azure.cosmos.models.*;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import reactor.core.publisher.Flux;

/** The asynchronous client, {@code CosmosAsyncClient}; every call waits for its result. */
public final class NonBlocking implements Flavour {
    @Override
    public String name() {
        return "async";
    }

    @Override
    public Client connect(CosmosClientBuilder builder) {
        return new NonBlockingClient(builder.buildAsyncClient());
    }

    private record NonBlockingClient(CosmosAsyncClient client) implements Client {
        @Override
        public CosmosDatabaseResponse createDatabase(String id, ThroughputProperties throughput) {
            return client.createDatabase(id, throughput).block();
        }

        @Override
        public CosmosDatabaseResponse createDatabaseIfMissing(String id) {
            return client.createDatabaseIfNotExists(id).block();
        }

        @Override
        public List<CosmosDatabaseProperties> databases() {
            return client.readAllDatabases().collectList().block();
        }

        @Override
        public List<CosmosDatabaseProperties> queryDatabases(SqlQuerySpec query) {
            return client.queryDatabases(query, new CosmosQueryRequestOptions()).collectList().block();
        }

        @Override
        public Database database(String id) {
            return new NonBlockingDatabase(client.getDatabase(id));
        }

        @Override
        public void close() {
            client.close();
        }
    }

    private record NonBlockingDatabase(CosmosAsyncDatabase database) implements Database {
        @Override
        public String id() {
            return database.getId();
        }

        @Override
        public CosmosDatabaseResponse read() {
            return database.read().block();
        }

        @Override
        public CosmosDatabaseResponse delete() {
            return database.delete().block();
        }

        @Override
        public CosmosContainerResponse createContainer(
                CosmosContainerProperties properties, ThroughputProperties throughput) {
            return database.createContainer(properties, throughput).block();
        }

        @Override
        public CosmosContainerResponse createContainerIfMissing(CosmosContainerProperties properties) {
            return database.createContainerIfNotExists(properties).block();
        }

        @Override
        public List<CosmosContainerProperties> containers() {
            return database.readAllContainers().collectList().block();
        }

        @Override
        public List<CosmosContainerProperties> queryContainers(SqlQuerySpec query) {
            return database.queryContainers(query).collectList().block();
        }

        @Override
        public Container container(String id) {
            return new NonBlockingContainer(database.getContainer(id));
        }

        @Override
        public ThroughputResponse throughput() {
            return database.readThroughput().block();
        }

        @Override
        public ThroughputResponse replaceThroughput(ThroughputProperties properties) {
            return database.replaceThroughput(properties).block();
        }

        @Override
        public CosmosUserResponse createUser(String id) {
            return database.createUser(new CosmosUserProperties().setId(id)).block();
        }

        @Override
        public List<CosmosUserProperties> users() {
            return database.readAllUsers().collectList().block();
        }

        @Override
        public CosmosUserResponse deleteUser(String id) {
            return database.getUser(id).delete().block();
        }
    }

    private record NonBlockingContainer(CosmosAsyncContainer container) implements Container {
        @Override
        public String id() {
            return container.getId();
        }

        @Override
        public CosmosContainerResponse read(CosmosContainerRequestOptions options) {
            return container.read(options).block();
        }

        @Override
        public CosmosContainerResponse replace(CosmosContainerProperties properties) {
            return container.replace(properties).block();
        }

        @Override
        public CosmosContainerResponse delete() {
            return container.delete().block();
        }

        @Override
        public CosmosItemResponse<ObjectNode> create(
                ObjectNode item, PartitionKey key, CosmosItemRequestOptions options) {
            return container.createItem(item, key, options).block();
        }

        @Override
        public CosmosItemResponse<ObjectNode> upsert(
                ObjectNode item, PartitionKey key, CosmosItemRequestOptions options) {
            return container.upsertItem(item, key, options).block();
        }

        @Override
        public CosmosItemResponse<ObjectNode> replace(
                String id, ObjectNode item, PartitionKey key, CosmosItemRequestOptions options) {
            return container.replaceItem(item, id, key, options).block();
        }

        @Override
        public CosmosItemResponse<ObjectNode> read(String id, PartitionKey key, CosmosItemRequestOptions options) {
            return container.readItem(id, key, options, ObjectNode.class).block();
        }

        @Override
        public CosmosItemResponse<Object> delete(String id, PartitionKey key, CosmosItemRequestOptions options) {
            return container.deleteItem(id, key, options).block();
        }

        @Override
        public CosmosItemResponse<Object> deleteAll(PartitionKey key) {
            return container.deleteAllItemsByPartitionKey(key, new CosmosItemRequestOptions()).block();
        }

        @Override
        public CosmosItemResponse<ObjectNode> patch(
                String id,
                PartitionKey key,
                CosmosPatchOperations operations,
                CosmosPatchItemRequestOptions options) {
            return container.patchItem(id, key, operations, options, ObjectNode.class).block();
        }

        @Override
        public Iterable<FeedResponse<JsonNode>> query(
                SqlQuerySpec query, CosmosQueryRequestOptions options, String token, int size) {
            return container.queryItems(query, options, JsonNode.class).byPage(token, size).toIterable();
        }

        @Override
        public Iterable<FeedResponse<JsonNode>> readAll(PartitionKey key) {
            return container.readAllItems(key, JsonNode.class).byPage().toIterable();
        }

        @Override
        public Iterable<FeedResponse<JsonNode>> changes(CosmosChangeFeedRequestOptions options) {
            return container.queryChangeFeed(options, JsonNode.class).byPage().toIterable();
        }

        @Override
        public FeedResponse<JsonNode> readMany(List<CosmosItemIdentity> identities) {
            return container.readMany(identities, JsonNode.class).block();
        }

        @Override
        public List<FeedRange> feedRanges() {
            return container.getFeedRanges().block();
        }

        @Override
        public CosmosBatchResponse execute(CosmosBatch batch) {
            return container.executeCosmosBatch(batch).block();
        }

        @Override
        public List<CosmosBulkOperationResponse<Object>> bulk(List<CosmosItemOperation> operations) {
            return container.<Object>executeBulkOperations(Flux.fromIterable(operations)).collectList().block();
        }

        @Override
        public ThroughputResponse throughput() {
            return container.readThroughput().block();
        }

        @Override
        public ThroughputResponse replaceThroughput(ThroughputProperties properties) {
            return container.replaceThroughput(properties).block();
        }
    }
}
