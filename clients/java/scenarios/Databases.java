package scenarios;

import static harness.Check.check;
import static harness.Check.equal;
import static harness.Check.fails;
import static harness.Check.name;

import com.azure.core.credential.AccessToken;
import com.azure.cosmos.models.CosmosDatabaseProperties;
import com.azure.cosmos.models.CosmosDatabaseResponse;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import harness.Account;
import harness.Client;
import harness.Container;
import harness.Json;
import java.nio.charset.StandardCharsets;
import java.time.OffsetDateTime;
import java.util.Base64;
import java.util.List;
import reactor.core.publisher.Mono;

/** Databases, who may use them, and what is missing. */
public final class Databases {
    private Databases() {}

    public static void databasesAreCreatedReadListedQueriedAndDeleted(Account account) {
        String wanted = name("db");
        CosmosDatabaseResponse created = account.client.createDatabase(wanted, null);
        equal(created.getStatusCode(), 201, "status");
        check(created.getRequestCharge() > 0 && created.getActivityId() != null, "no charge or activity");
        CosmosDatabaseProperties read = account.client.database(wanted).read().getProperties();
        equal(read.getResourceId(), created.getProperties().getResourceId(), "_rid");
        check(read.getETag() != null && read.getTimestamp() != null, "no etag or time");
        List<String> listed = account.client.databases().stream().map(CosmosDatabaseProperties::getId).toList();
        check(listed.contains(wanted), listed);
        List<CosmosDatabaseProperties> found = account.client.queryDatabases(
                new SqlQuerySpec("SELECT * FROM root r WHERE r.id = @id", new SqlParameter("@id", wanted)));
        equal(found.stream().map(CosmosDatabaseProperties::getId).toList(), List.of(wanted), "queried");
        fails(409, () -> account.client.createDatabase(wanted, null));
        account.client.createDatabaseIfMissing(wanted);
        account.client.database(wanted).delete();
        fails(404, () -> account.client.database(wanted).read());
        fails(404, () -> account.client.database(wanted).delete());
    }

    public static void databaseNamesMayHoldAnyAllowedCharacter(Account account) {
        for (String words : List.of("with space", "中文 база", "a.b-c_d~e,f=g(h)[i]{j}@k!l$m^n+o", "per%20cent")) {
            String wanted = words + " " + name("x");
            account.client.createDatabase(wanted, null);
            equal(account.client.database(wanted).read().getProperties().getId(), wanted, "id");
            account.client.database(wanted).delete();
        }
    }

    public static void whatIsMissingIsSaidToBe(Account account) {
        fails(404, () -> account.client.database(name("none")).read());
        Container nowhere = account.database.container("none");
        fails(404, () -> nowhere.read(new com.azure.cosmos.models.CosmosContainerRequestOptions()));
        fails(404, () -> nowhere.create(Json.item("id", "1", "pk", "a")));
        Container container = account.container();
        var error = fails(404, () -> container.read("none", "a"));
        check(error.getMessage().contains("NotFound"), error.getMessage());
        check(error.getActivityId() != null, "no activity id");
        check(error.getDiagnostics().toString().contains("404"), error.getDiagnostics());
    }

    public static void aWrongKeyIsRefused(Account account) {
        String wrong = Base64.getEncoder().encodeToString("wrong key ".repeat(6).getBytes(StandardCharsets.UTF_8));
        try (Client stranger = account.flavour.connect(Account.builder(account.endpoint, wrong))) {
            stranger.database(account.database.id()).read();
            check(false, "a wrong key was accepted");
        } catch (RuntimeException error) {
            // The client reads the account when it is built, and wraps what it is told.
            check(error.getMessage().contains("Unauthorized") || error.getMessage().contains("401"), error.getMessage());
        }
    }

    /** A well-formed token of nobody in particular: a local account has no directory to ask. */
    public static void aDirectoryTokenIsAccepted(Account account) {
        Container container = account.container();
        container.create(Json.item("id", "1", "pk", "a"));
        long now = System.currentTimeMillis() / 1000;
        String token = part("{'alg':'none','typ':'JWT'}")
                + "."
                + part("{'aud':'https://localhost','iss':'https://sts.local','oid':'somebody','nbf':" + now + ",'exp':"
                        + (now + 3600) + "}")
                + ".c2lnbmF0dXJl";
        Client client = account.open(new com.azure.cosmos.CosmosClientBuilder()
                .endpoint(account.endpoint)
                .gatewayMode()
                .credential(request -> Mono.just(new AccessToken(token, OffsetDateTime.now().plusHours(1)))));
        Container theirs = client.database(account.database.id()).container(container.id());
        equal(theirs.read("1", "a").get("id"), "1", "id");
        theirs.upsert(Json.item("id", "2", "pk", "a"));
        equal(theirs.rows("SELECT VALUE c.id FROM c ORDER BY c.id"), List.of("1", "2"), "ids");
    }

    private static String part(String json) {
        byte[] bytes = Json.parse(json).toString().getBytes(StandardCharsets.UTF_8);
        return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
    }
}
