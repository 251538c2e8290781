package scenarios;

import static harness.Check.equal;
import static harness.Json.item;
import static harness.Json.parse;

import com.azure.cosmos.models.*;
import harness.Account;
import harness.Container;
import java.util.List;

/** Vector search, full text search, and both ranked together. */
public final class Search {
    private Search() {}

    private static Container searchable(Account account) {
        Container container = account.severalPartitions(properties -> {
            CosmosVectorEmbedding embedding = new CosmosVectorEmbedding();
            embedding.setPath("/v");
            embedding.setDataType(CosmosVectorDataType.FLOAT32);
            embedding.setEmbeddingDimensions(3);
            embedding.setDistanceFunction(CosmosVectorDistanceFunction.COSINE);
            CosmosVectorEmbeddingPolicy vectors = new CosmosVectorEmbeddingPolicy();
            vectors.setCosmosVectorEmbeddings(List.of(embedding));
            properties.setVectorEmbeddingPolicy(vectors);
            CosmosFullTextPath path = new CosmosFullTextPath();
            path.setPath("/text");
            path.setLanguage("en-US");
            CosmosFullTextPolicy texts = new CosmosFullTextPolicy();
            texts.setDefaultLanguage("en-US");
            texts.setPaths(List.of(path));
            properties.setFullTextPolicy(texts);
            CosmosVectorIndexSpec vectorIndex = new CosmosVectorIndexSpec();
            vectorIndex.setPath("/v");
            vectorIndex.setType(CosmosVectorIndexType.FLAT.toString());
            CosmosFullTextIndex textIndex = new CosmosFullTextIndex();
            textIndex.setPath("/text");
            IndexingPolicy policy = new IndexingPolicy();
            policy.setVectorIndexes(List.of(vectorIndex));
            policy.setCosmosFullTextIndexes(List.of(textIndex));
            properties.setIndexingPolicy(policy);
        });
        container.create(item("id", "1", "pk", "1", "v", parse("[1,0,0]"), "text", "The swimmer swims across the cold lake"));
        container.create(item("id", "2", "pk", "2", "v", parse("[0,1,0]"), "text", "A runner never swims"));
        container.create(item("id", "3", "pk", "3", "v", parse("[1,1,0]"), "text", "Mountains and lakes of the north"));
        return container;
    }

    public static void theNearestVectorsComeFirst(Account account) {
        Container container = searchable(account);
        SqlQuerySpec query = new SqlQuerySpec(
                "SELECT TOP 2 c.id FROM c ORDER BY VectorDistance(c.v, @v)",
                new SqlParameter("@v", List.of(1.0, 0.1, 0.0)));
        List<String> found = container.rows(query, new CosmosQueryRequestOptions()).stream()
                .map(row -> row.get("id").asText())
                .toList();
        equal(found, List.of("1", "3"), "nearest");
    }

    public static void fullTextIsFilteredAndRanked(Account account) {
        Container container = searchable(account);
        equal(
                container.rows("SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, 'SWIMS')").size(), 2, "matches");
        equal(
                container.rows("SELECT TOP 1 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'swims', 'lake')")
                        .get(0)
                        .get("id"),
                "1",
                "best");
    }

    public static void hybridRanking(Account account) {
        Container container = searchable(account);
        equal(
                container.rows("SELECT TOP 2 c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'swims', 'lake'), "
                                + "VectorDistance(c.v, [1.0, 0.0, 0.0]))")
                        .get(0)
                        .get("id"),
                "1",
                "best");
    }
}
