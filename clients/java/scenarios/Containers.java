package scenarios;

import static harness.Check.check;
import static harness.Check.equal;
import static harness.Check.fails;
import static harness.Check.name;

import com.azure.cosmos.models.*;
import harness.Account;
import harness.Client;
import harness.Container;
import harness.Json;
import java.time.Duration;
import java.util.List;

/** Containers and everything their definition carries. */
public final class Containers {
    private Containers() {}

    private static CosmosContainerProperties properties(Container container) {
        return container.read(new CosmosContainerRequestOptions()).getProperties();
    }

    public static void containersAreCreatedReadListedQueriedAndDeleted(Account account) {
        CosmosContainerProperties wanted = new CosmosContainerProperties(name("c"), "/pk");
        CosmosContainerProperties created = account.database.createContainer(wanted, null).getProperties();
        equal(created.getPartitionKeyDefinition().getPaths(), List.of("/pk"), "paths");
        equal(created.getIndexingPolicy().getIncludedPaths().get(0).getPath(), "/*", "included path");
        Container container = account.database.container(wanted.getId());
        CosmosContainerResponse read =
                container.read(new CosmosContainerRequestOptions().setQuotaInfoEnabled(true));
        equal(read.getProperties().getResourceId(), created.getResourceId(), "_rid");
        check(read.getResponseHeaders().getOrDefault("x-ms-resource-quota", "").contains("collectionSize"), "no quota");
        equal(ids(account.database.containers()), List.of(wanted.getId()), "listed");
        SqlQuerySpec byId =
                new SqlQuerySpec("SELECT * FROM root r WHERE r.id = @id", new SqlParameter("@id", wanted.getId()));
        equal(ids(account.database.queryContainers(byId)), List.of(wanted.getId()), "queried");
        fails(409, () -> account.database.createContainer(wanted, null));
        CosmosContainerResponse found = account.database.createContainerIfMissing(wanted);
        equal(found.getProperties().getResourceId(), created.getResourceId(), "_rid");
        container.delete();
        fails(404, () -> properties(container));
    }

    private static List<String> ids(List<CosmosContainerProperties> containers) {
        return containers.stream().map(CosmosContainerProperties::getId).toList();
    }

    public static void containersAreReplacedButKeepTheirPartitionKey(Account account) {
        Container container = account.container();
        CosmosContainerProperties changed = properties(container);
        changed.setDefaultTimeToLiveInSeconds(3600);
        changed.setIndexingPolicy(new IndexingPolicy()
                .setIncludedPaths(List.of(new IncludedPath("/a/?")))
                .setExcludedPaths(List.of(new ExcludedPath("/*"))));
        container.replace(changed);
        CosmosContainerProperties found = properties(container);
        equal(found.getDefaultTimeToLiveInSeconds(), 3600, "default TTL");
        equal(found.getIndexingPolicy().getIncludedPaths().get(0).getPath(), "/a/?", "included path");
        found.setPartitionKeyDefinition(Account.keyedBy("/other"));
        fails(400, () -> container.replace(found));
    }

    public static void definitionsMakeTheRoundTrip(Account account) {
        Container container = account.container(properties -> {
            IndexingPolicy policy = new IndexingPolicy();
            policy.setIncludedPaths(List.of(new IncludedPath("/*")));
            policy.setExcludedPaths(List.of(new ExcludedPath("/blob/*")));
            policy.setCompositeIndexes(List.of(List.of(
                    new CompositePath().setPath("/a").setOrder(CompositePathSortOrder.ASCENDING),
                    new CompositePath().setPath("/b").setOrder(CompositePathSortOrder.DESCENDING))));
            policy.setSpatialIndexes(List.of(new SpatialSpec()
                    .setPath("/where/*")
                    .setSpatialTypes(List.of(
                            SpatialType.POINT, SpatialType.LINE_STRING, SpatialType.POLYGON, SpatialType.MULTI_POLYGON))));
            properties.setIndexingPolicy(policy);
            properties.setDefaultTimeToLiveInSeconds(-1);
            properties.setUniqueKeyPolicy(
                    new UniqueKeyPolicy().setUniqueKeys(List.of(new UniqueKey(List.of("/email")))));
            properties.setConflictResolutionPolicy(ConflictResolutionPolicy.createLastWriterWinsPolicy("/stamp"));
            properties.setComputedProperties(
                    List.of(new ComputedProperty("lower", "SELECT VALUE LOWER(c.name) FROM c")));
            properties.setChangeFeedPolicy(ChangeFeedPolicy.createAllVersionsAndDeletesPolicy(Duration.ofMinutes(10)));
        });
        CosmosContainerProperties found = properties(container);
        equal(found.getDefaultTimeToLiveInSeconds(), -1, "default TTL");
        equal(found.getUniqueKeyPolicy().getUniqueKeys().get(0).getPaths(), List.of("/email"), "unique keys");
        equal(found.getConflictResolutionPolicy().getConflictResolutionPath(), "/stamp", "conflict path");
        equal(found.getComputedProperties().iterator().next().getName(), "lower", "computed property");
        equal(
                found.getChangeFeedPolicy().getRetentionDurationForAllVersionsAndDeletesPolicy().toMinutes(),
                10,
                "retention");
        IndexingPolicy policy = found.getIndexingPolicy();
        equal(policy.getCompositeIndexes().get(0).get(1).getPath(), "/b", "composite path");
        equal(policy.getSpatialIndexes().get(0).getSpatialTypes().size(), 4, "spatial types");
        equal(policy.getExcludedPaths().get(0).getPath(), "/blob/*", "excluded path");
    }

    public static void indexingMayBeSwitchedOff(Account account) {
        Container container = account.container(properties -> properties.setIndexingPolicy(
                new IndexingPolicy().setAutomatic(false).setIndexingMode(IndexingMode.NONE)));
        equal(properties(container).getIndexingPolicy().getIndexingMode(), IndexingMode.NONE, "mode");
        container.create(Json.item("id", "1", "pk", "a", "n", 1));
        equal(container.read("1", "a").get("n"), 1, "n");
    }

    public static void badDefinitionsAreRefused(Account account) {
        fails(400, () -> account.container(399, properties -> {}));
        fails(400, () -> account.container(450, properties -> {}));
        fails(400, () -> account.container(properties -> properties.setDefaultTimeToLiveInSeconds(0)));
        var wildcard = fails(400, () -> account.container(
                properties -> properties.setPartitionKeyDefinition(Account.keyedBy("/pk/*"))));
        check(wildcard.getMessage().contains("wildcard character"), wildcard.getMessage());
        fails(400, () -> account.container(
                properties -> properties.setPartitionKeyDefinition(Account.keyedBy("/a", "/b", "/c", "/d"))));
    }

    public static void aRecreatedContainerIsFoundAgain(Account account) {
        Container first = account.container();
        first.create(Json.item("id", "1", "pk", "a"));
        Client other = account.open(account.builder());
        other.database(account.database.id()).container(first.id()).delete();
        other.database(account.database.id()).createContainer(new CosmosContainerProperties(first.id(), "/pk"), null);
        // The first client still believes in the old container: it learns, and retries by itself.
        first.create(Json.item("id", "2", "pk", "b"));
        equal(first.rows("SELECT VALUE c.id FROM c"), List.of("2"), "ids");
    }
}
