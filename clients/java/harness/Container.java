package harness;

import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBatchResponse;
import com.azure.cosmos.models.CosmosBulkOperationResponse;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosContainerRequestOptions;
import com.azure.cosmos.models.CosmosContainerResponse;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosItemResponse;
import com.azure.cosmos.models.CosmosPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.SqlQuerySpec;
import com.azure.cosmos.models.ThroughputProperties;
import com.azure.cosmos.models.ThroughputResponse;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;

/** A container of either flavour. */
public interface Container {
    String id();

    CosmosContainerResponse read(CosmosContainerRequestOptions options);

    CosmosContainerResponse replace(CosmosContainerProperties properties);

    CosmosContainerResponse delete();

    CosmosItemResponse<ObjectNode> create(ObjectNode item, PartitionKey key, CosmosItemRequestOptions options);

    CosmosItemResponse<ObjectNode> upsert(ObjectNode item, PartitionKey key, CosmosItemRequestOptions options);

    CosmosItemResponse<ObjectNode> replace(
            String id, ObjectNode item, PartitionKey key, CosmosItemRequestOptions options);

    CosmosItemResponse<ObjectNode> read(String id, PartitionKey key, CosmosItemRequestOptions options);

    CosmosItemResponse<Object> delete(String id, PartitionKey key, CosmosItemRequestOptions options);

    CosmosItemResponse<Object> deleteAll(PartitionKey key);

    CosmosItemResponse<ObjectNode> patch(
            String id, PartitionKey key, CosmosPatchOperations operations, CosmosPatchItemRequestOptions options);

    /** Pages of at most {@code size} rows, from a continuation token or from the start. */
    Iterable<FeedResponse<JsonNode>> query(
            SqlQuerySpec query, CosmosQueryRequestOptions options, String token, int size);

    Iterable<FeedResponse<JsonNode>> readAll(PartitionKey key);

    Iterable<FeedResponse<JsonNode>> changes(CosmosChangeFeedRequestOptions options);

    FeedResponse<JsonNode> readMany(List<CosmosItemIdentity> identities);

    List<FeedRange> feedRanges();

    CosmosBatchResponse execute(CosmosBatch batch);

    List<CosmosBulkOperationResponse<Object>> bulk(List<CosmosItemOperation> operations);

    ThroughputResponse throughput();

    ThroughputResponse replaceThroughput(ThroughputProperties properties);

    /** Stores a new item under the value of its {@code pk}, and gives it as it is stored. */
    default ObjectNode create(ObjectNode item) {
        return create(item, Json.key(item), new CosmosItemRequestOptions()).getItem();
    }

    /** Stores an item, new or not, under the value of its {@code pk}. */
    default ObjectNode upsert(ObjectNode item) {
        return upsert(item, Json.key(item), new CosmosItemRequestOptions()).getItem();
    }

    default ObjectNode read(String id, Object key) {
        return read(id, Json.key(key), new CosmosItemRequestOptions()).getItem();
    }

    default CosmosItemResponse<Object> delete(String id, Object key) {
        return delete(id, Json.key(key), new CosmosItemRequestOptions());
    }

    default List<JsonNode> rows(SqlQuerySpec query, CosmosQueryRequestOptions options) {
        return collect(query(query, options, null, 100));
    }

    /** The rows of a query across partitions. */
    default List<JsonNode> rows(String query) {
        return rows(new SqlQuerySpec(query), new CosmosQueryRequestOptions());
    }

    /** The rows of a query in one partition. */
    default List<JsonNode> rowsOf(Object key, String query) {
        return rows(new SqlQuerySpec(query), new CosmosQueryRequestOptions().setPartitionKey(Json.key(key)));
    }

    static List<JsonNode> collect(Iterable<FeedResponse<JsonNode>> pages) {
        List<JsonNode> rows = new ArrayList<>();
        pages.forEach(page -> rows.addAll(page.getResults()));
        return rows;
    }
}
